//! `a-b`: compares outcomes of an operator's texts made with a playbook in its prompt with those made without.
//!
//! The caller marks a text that was made with the playbook: `quorate review draft.md --made-by alice --trying SLUG`, with
//! the prompt of `quorate weave alice --trying SLUG`. Runs count from the time when a playbook first had this text, in the
//! order in which they ended. Outcomes of a similar text, also of another playbook, form a second test (B12). A verdict is worth 2
//! (SHIP), 1 (REVISE) or 0 (HOLD); advice is worth less the more severe it is. Only outcomes of one operator, one artifact
//! type and one configuration of a council or assembly are compared. Undecided runs, runs with missing answers, and runs
//! that try several playbooks do not count, and a text counts once on each side, whatever council judged it and however
//! little it changed.

use quorate_kernel::history::History;
use quorate_kernel::ports::ledger::Ledger as _;
use quorate_kernel::record;
use quorate_manifest::frontmatter;
use quorate_manifest::playbook::PlaybookFile;
use quorate_manifest::playbook::load::written_at;
use quorate_manifest::timestamp;
use quorate_playbook::gate::{
    Outcome, SeenTexts, Side, TestResult, TextIdentity, Thresholds, compare, course,
};
use quorate_protocol::Name;

use super::super::library::Library;
use super::super::recorded_versions::RecordedVersions;
use super::super::writer::LibraryWriter;
use super::evidence::{GateClosed, GateEvidence};
use crate::service::error::ServiceError;
use crate::service::session::LedgerSession;

/// Opens the gate if the sequential test passes.
///
/// # Errors
/// When the ledger does not answer.
#[crate::boxed]
pub async fn attempt(
    keeping: &LibraryWriter,
    book: &PlaybookFile,
    terms: Thresholds,
) -> Result<Result<GateEvidence, GateClosed>, ServiceError> {
    let Evaluation { result: finding, counted, .. } =
        evaluate(&keeping.library, &keeping.session, book, terms).await?;
    if finding.passes() {
        let reference =
            counted.last().map_or_else(|| "ledger".to_owned(), |last| format!("runs/{}", last.run));
        return Ok(Ok(GateEvidence { kind: "run", reference, note: finding.to_string() }));
    }
    let operator = keeping
        .library
        .operators_for(&book.playbook)
        .first()
        .map_or("OPERATOR".to_owned(), |(one, _)| one.slug.clone());
    let slug = &book.playbook.slug;
    let help = format!(
        "run more reviews with `quorate review FILE --made-by {operator} --trying {slug}`, and without `--trying`"
    );
    Ok(Err(GateClosed::new(finding.to_string(), help)))
}

/// The test of the outcomes so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    pub result: TestResult,
    /// The runs that count, in the order in which they ended.
    pub counted: Vec<CountedRun>,
    /// The evidence after each pair that is not a tie.
    pub course: Vec<f64>,
}

/// A run that counts.
#[derive(Debug, Clone, PartialEq)]
pub struct CountedRun {
    pub run: Name,
    /// Whether its text was made with the playbook.
    pub side: Side,
    /// The operator that made the text.
    pub made_by: String,
    /// The verdict, or the result of an assembly.
    pub outcome: String,
    pub score: f64,
}

/// Evaluates the outcomes so far.
///
/// # Errors
/// When the ledger does not answer.
#[crate::boxed]
pub async fn evaluate(
    library: &Library,
    session: &LedgerSession,
    book: &PlaybookFile,
    terms: Thresholds,
) -> Result<Evaluation, ServiceError> {
    let slug = &book.playbook.slug;
    let operators: Vec<&str> =
        library.operators_for(&book.playbook).into_iter().map(|(known, _)| &*known.slug).collect();
    let text = TextIdentity::new(book.text());
    let trials = RecordedVersions::load(&session.store, &library.scope).await?.trials;
    let written = since(library, book)?;
    let first = |is_wanted: &dyn Fn(&TextIdentity) -> bool| {
        trials.first_ms(is_wanted).map_or(written, |first| first.min(written))
    };
    let own_since = first(&|other| text.has_same_words(other));
    let similar_since = first(&|other| text.is_similar(other));
    let (mut own, mut similar) = (Tally::default(), Tally::default());
    for run in session.store.decided_since(similar_since).await? {
        let records = session.store.records(&run).await?;
        let Ok(history) = History::from_remaining_records(&run, records) else { continue };
        let at_ms = history.opened_ms;
        let text_of = |tried: &str| match tried == slug && at_ms >= written {
            true => Some(text.clone()),
            false => trials.text_at(tried, at_ms),
        };
        let Some((outcome, tried)) = countable_outcome(&history, text_of, &operators) else { continue };
        let (counts, is_own) = match &tried {
            None => (true, at_ms >= own_since),
            Some(tried) => (text.is_similar(tried), text.has_same_words(tried)),
        };
        if is_own {
            own.add(&run, &history, &outcome);
        }
        if counts {
            similar.add(&run, &history, &outcome);
        }
    }
    let (own, similar) = (own.evaluate(terms), similar.evaluate(terms));
    Ok(if own.result.passes() { similar } else { own })
}

/// Outcomes of one test.
#[derive(Default)]
struct Tally {
    outcomes: Vec<Outcome>,
    counted: Vec<CountedRun>,
    once: SeenTexts,
}

impl Tally {
    /// Adds an outcome, unless its text counts already.
    fn add(&mut self, run: &Name, history: &History, outcome: &Outcome) {
        let producer = history.opened.producer.as_ref();
        let sketch = producer.and_then(|producer| serde_json::from_value(producer.sketch.clone()).ok());
        let sha256 = history.opened.artifact_sha256.as_deref().unwrap_or_default();
        if !self.once.insert(outcome.side, sha256, sketch) {
            return;
        }
        let word = history.outcome().and_then(|outcome| outcome.word().map(str::to_owned));
        self.counted.push(CountedRun {
            run: run.clone(),
            side: outcome.side,
            made_by: producer.map(|producer| producer.operator.clone()).unwrap_or_default(),
            outcome: word.unwrap_or_default(),
            score: outcome.score,
        });
        self.outcomes.push(outcome.clone());
    }

    fn evaluate(self, terms: Thresholds) -> Evaluation {
        let (result, course) = (compare(&self.outcomes, terms), course(&self.outcomes));
        Evaluation { result, counted: self.counted, course }
    }
}

/// A run's outcome for the gate, and the text that it tries, if it tries one; `None` if it does not test a single text.
fn countable_outcome(
    history: &History,
    text_of: impl Fn(&str) -> Option<TextIdentity>,
    operators: &[&str],
) -> Option<(Outcome, Option<TextIdentity>)> {
    let producer = history.opened.producer.as_ref()?;
    let made_by = Some(&*producer.operator).filter(|made_by| operators.contains(made_by))?;
    let (side, tried) = match &producer.trying[..] {
        [] => (Side::Without, None),
        [one] => (Side::With, Some(text_of(one)?)),
        // The effect of several playbooks cannot be attributed to one.
        _ => return None,
    };
    let worth = worth(&history.outcome()?)?;
    // The whole configuration of the run except the text itself.
    let opened = &history.opened;
    let instrument = ["council", "assembly"].into_iter().find_map(|whole| opened.fingerprint_of(whole))?;
    let sort = opened.artifact_type.as_deref().unwrap_or_default();
    Some((Outcome { comparison_key: format!("{made_by} {instrument} {sort}"), side, score: worth }, tried))
}

/// The time since which the playbook has its current text.
fn since(library: &Library, book: &PlaybookFile) -> Result<i64, ServiceError> {
    let record = library.record(book)?;
    let says = |text: &str| frontmatter::split(text).map(|parts| text[parts.body].trim() == book.text());
    let same = record.versions.iter().rev().take_while(|version| says(&version.text).unwrap_or_default());
    let at = same.last().map(|first| first.at.as_str());
    let at = at.or(book.playbook.created_at.as_deref()).or(written_at(&book.playbook));
    Ok(at.and_then(timestamp::parse).unwrap_or(i64::MIN))
}

/// The value of an outcome; `None` for an undecided run, or one with missing answers. A person's later decision does not
/// count: it would change what an earlier evaluation has counted.
fn worth(outcome: &record::Outcome) -> Option<f64> {
    if outcome.partial != Some(false) {
        return None;
    }
    match (outcome.verdict.as_deref(), outcome.stand.as_deref()) {
        (Some("SHIP"), _) => Some(2.0),
        (Some("REVISE"), _) => Some(1.0),
        (Some("HOLD"), _) => Some(0.0),
        (_, Some("done")) => {
            let severity = outcome.risk.as_ref()?.severity;
            Some(10.0 - f64::from(u8::try_from(severity).ok()?))
        }
        _ => None,
    }
}
