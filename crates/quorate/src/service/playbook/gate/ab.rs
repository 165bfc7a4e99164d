//! `a-b`: compares outcomes of an operator's texts made with a playbook in its prompt with those made without.
//!
//! The caller says which is which: `quorate review draft.md --made-by alice --trying SLUG`, with the prompt of `quorate
//! weave alice --trying SLUG`. Both kinds count from when the playbook got its current text, in the order in which the runs
//! ended. A verdict is worth 2 (SHIP), 1 (REVISE) or 0 (HOLD); advice is worth less the more severe it is. Only outcomes of
//! one operator, one artifact type and one configuration of a council or assembly are compared. Undecided runs, runs with
//! missing answers, and runs that try several playbooks do not count, and a text counts once on each side, whatever council
//! judged it and however little it changed.

use quorate_kernel::history::History;
use quorate_kernel::ports::ledger::Ledger as _;
use quorate_kernel::record;
use quorate_manifest::frontmatter;
use quorate_manifest::playbook::catalog::PlaybookFile;
use quorate_manifest::playbook::load::written_at;
use quorate_manifest::timestamp;
use quorate_playbook::gate::{Outcome, SeenTexts, Side, TestResult, Thresholds, compare, course};
use quorate_protocol::Name;

use super::super::library::Library;
use super::super::writer::LibraryWriter;
use super::evidence::{GateClosed, GateEvidence};
use crate::service::error::ServiceError;
use crate::service::session::LedgerSession;

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
        "review more with `quorate review FILE --made-by {operator} --trying {slug}`, and without `--trying`"
    );
    Ok(Err(GateClosed::new(finding.to_string(), help)))
}

/// What the outcomes so far come to.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    pub result: TestResult,
    /// The runs that count, in the order in which they ended.
    pub counted: Vec<CountedRun>,
    /// The evidence after each pair that is no tie.
    pub course: Vec<f64>,
}

/// A run that counts.
#[derive(Debug, Clone, PartialEq)]
pub struct CountedRun {
    pub run: Name,
    /// Whether its text was made with the playbook.
    pub side: Side,
    /// Who made the text.
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
    let since = since(library, book)?;
    let (mut outcomes, mut counted, mut once) = (Vec::new(), Vec::new(), SeenTexts::default());
    for run in session.store.decided_since(since).await? {
        let records = session.store.records(&run).await?;
        let Ok(history) = History::from_remaining_records(&run, records) else { continue };
        let Some(outcome) = countable_outcome(&history, slug, &operators) else { continue };
        let producer = history.opened.producer.as_ref();
        let sketch = producer.and_then(|producer| serde_json::from_value(producer.sketch.clone()).ok());
        if once.insert(outcome.side, history.opened.artifact_sha256.as_deref().unwrap_or_default(), sketch) {
            counted.push(CountedRun {
                run,
                side: outcome.side,
                made_by: producer.map(|producer| producer.operator.clone()).unwrap_or_default(),
                outcome: history
                    .outcome()
                    .and_then(|outcome| outcome.word().map(str::to_owned))
                    .unwrap_or_default(),
                score: outcome.score,
            });
            outcomes.push(outcome);
        }
    }
    Ok(Evaluation { result: compare(&outcomes, terms), counted, course: course(&outcomes) })
}

/// A run's outcome for the gate; `None` if it does not test this playbook alone.
fn countable_outcome(history: &History, slug: &str, operators: &[&str]) -> Option<Outcome> {
    let producer = history.opened.producer.as_ref()?;
    let made_by = Some(&*producer.operator).filter(|made_by| operators.contains(made_by))?;
    let side = match &producer.trying[..] {
        [] => Side::Without,
        [one] if one == slug => Side::With,
        // The effect of several playbooks cannot be attributed to one.
        _ => return None,
    };
    let worth = worth(&history.outcome()?)?;
    // The whole configuration of the run except the text itself.
    let opened = &history.opened;
    let instrument = ["council", "assembly"].into_iter().find_map(|whole| opened.fingerprint_of(whole))?;
    let sort = opened.artifact_type.as_deref().unwrap_or_default();
    Some(Outcome { comparison_key: format!("{made_by} {instrument} {sort}"), side, score: worth })
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
