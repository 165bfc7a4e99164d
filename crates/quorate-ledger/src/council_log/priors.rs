//! The compounding loop: the adjudicator sees earlier verdicts on the same type of artifact.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use quorate_kernel::ports::ledger::LedgerError;
use quorate_protocol::Json;
use serde_json::json;
use sqlx::Row as _;

use super::IndexedLog;
use crate::{Store, files, verify};

/// The number of earlier verdicts that the adjudicator sees.
pub const LIMIT: u32 = 5;
/// The longest text of an earlier verdict, in characters.
const MAX_TEXT_CHARS: usize = 500;

/// The newest verdicts on a type of artifact, in the form that the adjudicator sees. Lines of this ledger's runs are
/// compared with the records.
///
/// # Errors
/// When log or store cannot be read.
#[crate::boxed]
pub async fn priors(
    store: &Store,
    log: &Path,
    indexed: IndexedLog,
    artifact_type: &str,
) -> Result<Vec<Json>, LedgerError> {
    let Some(id) = indexed.id else { return Ok(Vec::new()) };
    let places = {
        let mut writer = store.writer().await;
        let connection = writer.log_index();
        let rows = sqlx::query(
            "SELECT at_byte, bytes FROM log_line WHERE log = ? AND artifact_type = ? AND prior = 1 ORDER BY id DESC LIMIT ?",
        )
        .bind(id)
        .bind(artifact_type)
        .bind(i64::from(LIMIT))
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| store.error(error))?;
        rows.iter()
            .map(|row| (row.get::<i64, _>(0).unsigned_abs(), row.get::<i64, _>(1).unsigned_abs()))
            .collect::<Vec<_>>()
    };
    let read = || -> std::io::Result<Vec<Vec<u8>>> {
        let mut file = files::open(log)?;
        let mut found = Vec::with_capacity(places.len());
        for (at, bytes) in &places {
            let mut text = vec![0; usize::try_from(*bytes).unwrap_or(0)];
            file.seek(SeekFrom::Start(*at))?;
            file.read_exact(&mut text)?;
            found.push(text);
        }
        Ok(found)
    };
    let lines = read().map_err(|error| LedgerError::Unavailable {
        what: format!("cannot read {}", log.display()),
        source: Some(Box::new(error)),
    })?;
    let mut priors = Vec::with_capacity(lines.len());
    for text in &lines {
        // According to the index, the line exists.
        let line: Json = serde_json::from_slice(text).unwrap_or_default();
        let is_altered = line.is_null() || verify::is_altered_line(store, &line, text).await?;
        priors.push(if is_altered { altered(&line) } else { prior(&line) });
    }
    Ok(priors)
}

/// The verdict shown for a line of this ledger that differs from its run's records (D13).
pub const ALTERED: &str = "ALTERED";

/// The entry for such a line, without its text.
fn altered(line: &Json) -> Json {
    let run = line["span_id"].as_str().unwrap_or_default();
    json!({"ts": null, "verdict": ALTERED, "artifact": format!("run {run}"), "reasoning": null, "revision_brief": null})
}

/// The entry for a line, in either form of the log.
fn prior(line: &Json) -> Json {
    let adjudicator = &line["adjudicator"];
    let first = |values: [&Json; 3]| {
        values.into_iter().find(|value| value.is_string()).cloned().unwrap_or(Json::Null)
    };
    let verdict = first([&line["verdict"], &adjudicator["final_verdict"], &adjudicator["verdict"]]);
    let brief = first([&line["revision_brief"], &adjudicator["revision_brief"], &Json::Null]);
    let reasoning = first([&line["reasoning"], &adjudicator["reasoning"], &line["adjudicator_reasoning"]]);
    json!({
        "ts": truncate(&line["ts"]),
        "verdict": verdict,
        "artifact": truncate(&first([&line["artifact"], &line["artifact_path"], &Json::Null])),
        "reasoning": truncate(&reasoning),
        "revision_brief": truncate(&brief),
    })
}

fn truncate(text: &Json) -> Json {
    let Some(text) = text.as_str() else { return Json::Null };
    match text.char_indices().nth(MAX_TEXT_CHARS) {
        None => json!(text),
        Some((end, _)) => json!(format!("{}…", &text[..end])),
    }
}
