//! `a-b`: outcomes of what an operator made with a playbook in its prompt, against those of what it made without.
//!
//! Which is which says whoever hands in what was made: `quorate review draft.md --made-by alice --trying SLUG`, with the
//! prompt of `quorate weave alice --trying SLUG`. Both kinds count from when the playbook has said what it says
//! now, in the order in which they were handed in. A verdict is worth 2 (SHIP), 1 (REVISE) or 0 (HOLD), and what a person decided beside it counts in
//! its place; advice is worth the less the more severe it is. What came to nothing does
//! not count, and a text counts once on each side.

use std::collections::BTreeSet;

use quorate_kernel::history::History;
use quorate_kernel::ports::ledger::Ledger as _;
use quorate_ledger::runs::Run;
use quorate_manifest::frontmatter;
use quorate_manifest::playbook::load::written_at;
use quorate_manifest::playbook::shelf::Book;
use quorate_manifest::timestamp;
use quorate_playbook::gate::{Finding, Terms, compare};
use quorate_protocol::Json;

use super::super::change::Keeping;
use super::super::versions::Record;
use super::{Passed, Shut};
use crate::service::stop::Stop;

/// How many runs are looked at.
const RUNS: u32 = 10_000;

/// Tries the gate.
///
/// # Errors
/// When the ledger does not answer.
pub async fn open(keeping: &Keeping, book: &Book, terms: Terms) -> Result<Result<Passed, Shut>, Stop> {
    let (finding, last) = find(keeping, book, terms).await?;
    if finding.passes() {
        let reference = last.map_or_else(|| "ledger".to_owned(), |run| format!("runs/{run}"));
        return Ok(Ok(Passed { kind: "run", reference, note: finding.to_string() }));
    }
    let operator = keeping
        .library
        .matched(&book.playbook)
        .first()
        .map_or("OPERATOR".to_owned(), |(one, _)| one.slug.clone());
    let slug = &book.playbook.slug;
    let help = format!(
        "hand in more with `quorate review FILE --made-by {operator} --trying {slug}`, and without `--trying`"
    );
    Ok(Err(Shut::new(finding.to_string(), help)))
}

/// What the outcomes so far come to, and the last run that counts.
///
/// # Errors
/// When the ledger does not answer.
pub async fn find(keeping: &Keeping, book: &Book, terms: Terms) -> Result<(Finding, Option<String>), Stop> {
    let slug = &book.playbook.slug;
    let operators: Vec<&str> =
        keeping.library.matched(&book.playbook).into_iter().map(|(known, _)| &*known.slug).collect();
    let since = since(keeping, book)?;
    let mut runs = keeping.desk.store.runs(RUNS).await?;
    runs.retain(|run| run.opened_ms >= since && run.verdict.is_some());
    runs.reverse();
    let (mut with, mut without, mut last) = (Vec::new(), Vec::new(), None);
    let mut seen = BTreeSet::new();
    for run in runs {
        let records = keeping.desk.store.records(&run.run).await?;
        let Ok(history) = History::of_what_is_left(&run.run, records) else { continue };
        let Some(producer) = history.opened.get("producer").and_then(Json::as_object) else { continue };
        let made_by = producer.get("operator").and_then(Json::as_str).unwrap_or_default();
        let Some(worth) = worth(&run, &history).filter(|_| operators.contains(&made_by)) else { continue };
        let trying: Vec<&str> = producer
            .get("trying")
            .and_then(Json::as_array)
            .into_iter()
            .flatten()
            .filter_map(Json::as_str)
            .collect();
        let is_with = trying.contains(&&**slug);
        // The same text judged twice is no second outcome.
        let artifact = history.opened.get("artifact_sha256").and_then(Json::as_str).unwrap_or_default();
        if (!is_with && !trying.is_empty()) || !seen.insert((is_with, artifact.to_owned())) {
            continue;
        }
        (if is_with { &mut with } else { &mut without }).push(worth);
        last = Some(run.run.to_string());
    }
    Ok((compare(&with, &without, terms), last))
}

/// From when on the playbook has said what it says now.
fn since(keeping: &Keeping, book: &Book) -> Result<i64, Stop> {
    let record = Record::read(&keeping.desk.environment, &keeping.library.root, book)?;
    let says = |text: &str| frontmatter::split(text).map(|parts| text[parts.body].trim() == book.text());
    let same = record.versions.iter().rev().take_while(|one| says(&one.text).unwrap_or_default());
    let at = same.last().map(|first| first.at.as_str());
    let at = at.or(book.playbook.created_at.as_deref()).or(written_at(&book.playbook));
    Ok(at.and_then(timestamp::read).unwrap_or(i64::MIN))
}

/// What an outcome is worth; `None` of one that came to nothing.
fn worth(run: &Run, history: &History) -> Option<f64> {
    let verdict = run.overridden.as_deref().or(run.verdict.as_deref())?.to_ascii_lowercase();
    match verdict.as_str() {
        "ship" => Some(2.0),
        "revise" => Some(1.0),
        "hold" => Some(0.0),
        _ => {
            let severity = history.outcome()?.get("risk")?.get("severity")?.as_u64()?;
            Some(10.0 - f64::from(u8::try_from(severity).ok()?))
        }
    }
}
