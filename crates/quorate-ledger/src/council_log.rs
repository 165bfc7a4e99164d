//! `council_log.jsonl`: a view of finished reviews with a stable format (D6, C10), and statistics of it. Lines of other
//! writers are read like ours.

mod compared;
mod index;
pub mod line;
pub mod priors;
pub mod stats;

use std::fs::File;
use std::io::{
    BufRead as _, BufReader, Error, ErrorKind, Read as _, Result, Seek as _, SeekFrom, Write as _,
};
use std::path::Path;

use quorate_kernel::clock::rfc3339;
use quorate_kernel::history::History;
use quorate_kernel::ports::executor::Usage;
use quorate_kernel::record::{Consultation, Override, Status};
use quorate_protocol::Json;
use quorate_protocol::answers::deliberator::{self, Answer, Round};
use serde_json::{Map, json};

use crate::files;
use crate::files::QuarantinedFile;
use line::{LogEvent, LogLine};

pub use compared::{CountedLog, compare, without_ledger};
pub(crate) use index::find_index_diff;
pub use index::{IndexedLog, MAX_COMPARED_BYTES, forget_index, rebuild_if_altered, sync};

/// The result of appending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendResult {
    /// `false` if the log already had the run's line of this event.
    pub written: bool,
    /// An incomplete last line, moved to `aside/`.
    pub quarantined: Option<QuarantinedFile>,
}

/// Checks that the log can be appended to. Creates nothing.
///
/// # Errors
/// The reason why it cannot.
pub fn can_append(log: &Path) -> Result<()> {
    if log.exists() {
        return files::open_append_private(log).and_then(|mut file| ensure_log(&mut file));
    }
    let parent = log.ancestors().skip(1).find(|dir| dir.exists()).unwrap_or(Path::new("."));
    let metadata = std::fs::metadata(parent)?;
    match (metadata.is_dir(), metadata.permissions().readonly()) {
        (false, _) => Err(ErrorKind::NotADirectory.into()),
        (true, true) => Err(ErrorKind::PermissionDenied.into()),
        (true, false) => Ok(()),
    }
}

/// Checks that an existing file looks like a log. Only reads it.
///
/// # Errors
/// If it contains something else, or cannot be read.
pub fn ensure_log_at(log: &Path) -> Result<()> {
    match files::open(log) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        opened => ensure_log(&mut opened?),
    }
}

/// Refuses a file with content but without a single log line. Appending would change a file that is not a log, and
/// quarantining its last line would remove the user's text.
fn ensure_log(file: &mut File) -> Result<()> {
    /// The longest line of a log, in bytes.
    const MAX_LINE: u64 = 64 << 20;
    file.seek(SeekFrom::Start(0))?;
    let mut lines = BufReader::new(&*file);
    let (mut line, mut before) = (Vec::new(), 0);
    loop {
        line.clear();
        if lines.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        // The first line of a log may be incomplete if its process crashed.
        if line::is_logs(&line) || (before == 0 && line::is_begun(&line)) {
            return Ok(());
        }
        before += usize::from(!line.trim_ascii().is_empty());
    }
    match before {
        0 => Ok(()),
        _ => Err(Error::new(ErrorKind::InvalidData, "not a council log: none of its lines is a log line")),
    }
}

/// Appends `line` (one JSON object without line break) unless it is after byte `since` already: a line of the same
/// span and event and, since a person may decide twice, for an override of the same time. `aside_dir` is where
/// `aside/` is.
///
/// # Errors
/// When the log cannot be written; then nothing was.
pub fn append_once(log: &Path, line: &str, since: u64, aside_dir: &Path) -> Result<AppendResult> {
    if let Some(dir) = log.parent() {
        match dir.file_name() {
            Some(name) if name == ".quorate" => files::ensure_quorate_dir(dir)?,
            _ => files::ensure_private_dir(dir)?,
        }
    }
    let mut file = files::open_append_private(log)?;
    file.lock()?;
    ensure_log(&mut file)?;
    let was_empty = file.metadata()?.len() == 0;
    let quarantined = repair_tail(&mut file, log, aside_dir)?;
    let new_line = LogLine::parse(line.as_bytes());
    let there = match new_line {
        Some(new_line) => contains_line(&mut file, since, &new_line)?,
        None => false,
    };
    if !there {
        let mut whole = String::with_capacity(line.len() + 1);
        whole.push_str(line);
        whole.push('\n');
        file.write_all(whole.as_bytes())?;
    }
    // The existing line may come from a process that crashed before it synced the file.
    file.sync_data()?;
    if was_empty || there {
        files::sync_dir_of(log)?;
    }
    Ok(AppendResult { written: !there, quarantined })
}

/// Ends a last line without line break if it is whole, and sets it aside if it is torn.
fn repair_tail(file: &mut File, log: &Path, aside_dir: &Path) -> Result<Option<QuarantinedFile>> {
    let length = file.seek(SeekFrom::End(0))?;
    let start = last_line_start(file, length)?;
    if start == length {
        return Ok(None);
    }
    let mut tail = Vec::new();
    file.seek(SeekFrom::Start(start))?;
    file.read_to_end(&mut tail)?;
    if LogLine::parse(&tail).is_some() {
        file.write_all(b"\n")?;
        return Ok(None);
    }
    let name = log.file_name().and_then(|name| name.to_str()).unwrap_or("council_log.jsonl");
    let piece = files::quarantine_bytes(aside_dir, &format!("{name}.torn"), &tail)?;
    file.set_len(start)?;
    Ok(Some(piece))
}

/// The offset of a last line without line break; the file's length if every line has one.
fn last_line_start(file: &mut File, length: u64) -> Result<u64> {
    const CHUNK: u64 = 64 * 1024;
    let mut end = length;
    let mut chunk = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(CHUNK);
        chunk.resize(usize::try_from(end - start).unwrap_or(0), 0);
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut chunk)?;
        if let Some(at) = chunk.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Whether the line exists after offset `since`. A log shorter than `since` was replaced and is read from the start.
fn contains_line(file: &mut File, since: u64, wanted: &LogLine) -> Result<bool> {
    let span = &*wanted.span;
    if span.is_empty() {
        return Ok(false);
    }
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(if since > length { 0 } else { since }))?;
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    let names_it = |line: &&[u8]| line.windows(span.len()).any(|window| window == span.as_bytes());
    let lines = text.split(|byte| *byte == b'\n').filter(names_it).filter_map(LogLine::parse);
    let is_it = |line: LogLine| {
        let same_time = line.event != LogEvent::Override || line.at_ms == wanted.at_ms;
        line.span == span && line.event == wanted.event && same_time
    };
    Ok(lines.into_iter().any(is_it))
}

/// The line of an ended review; `None` without an outcome. `event` distinguishes a first end from a review that
/// was logged as INCOMPLETE and resumed to a verdict.
pub fn review_line(history: &History, event: LogEvent) -> Option<Json> {
    let outcome = history.outcome_data()?;
    let opened = &history.opened;
    let of = |key: &str| outcome.get(key).cloned().unwrap_or(Json::Null);
    let elapsed_ms = u64::try_from(history.wall.as_millis()).unwrap_or(u64::MAX);
    let executor = opened.executors.first();
    let mut line = json!({
        "v": 2,
        "ts": rfc3339(history.decided_ms.unwrap_or(history.opened_ms)),
        "artifact": opened.subject,
        "artifact_type": opened.artifact_type,
        "round1": round(history, "r1"),
        "round2": round(history, "r2"),
        "adjudicator": {
            "final_verdict": of("verdict"),
            "reasoning": of("reasoning"),
            "revision_brief": of("revision_brief"),
            "dissent_summary": of("dissent_summary"),
            "applied_compounding": of("applied_compounding"),
            "prior_verdicts_consulted": of("prior_verdicts_consulted"),
        },
        "event": event.as_str(),
        "agent": "council",
        "sid": "quorate",
        "span_id": &*history.run,
        "parent_id": null,
        "persisted": true,
        "run": &*history.run,
        "verdict": of("verdict"),
        "policy": of("policy"),
        "partial": of("partial"),
        "artifact_path": opened.subject,
        "artifact_sha256": opened.artifact_sha256,
        "tier": opened.tier,
        "revision_brief": of("revision_brief"),
        "reasoning": of("reasoning"),
        "deliberators": deliberators(history),
        "prior_verdicts_used": of("prior_verdicts_consulted"),
        "runtime": executor.map(|executor| &executor.name),
        "model": executor.map_or_else(|| json!(""), |executor| json!(executor.model)),
        "calls": history.calls,
        "tokens": tokens(history.usage),
        "elapsed_seconds": elapsed_ms as f64 / 1000.0,
    });
    add_producer(&mut line, history);
    Some(line)
}

/// The operator that made the artifact, if the run's record names one.
fn add_producer(line: &mut Json, history: &History) {
    if let Some(producer) = &history.opened.producer {
        line["producer"] = json!(producer.operator);
    }
}

/// The tokens that the calls read and wrote, as far as the executors reported them; `null` if none did.
fn tokens(usage: Usage) -> Json {
    let (read, written) = (usage.tokens_in, usage.tokens_out);
    if read.is_none() && written.is_none() {
        return Json::Null;
    }
    json!({"total": read.unwrap_or(0).saturating_add(written.unwrap_or(0)), "in": read, "out": written})
}

/// The line of a person's override.
pub fn override_line(history: &History, at_ms: i64, decision: &Override) -> Json {
    let mut line = json!({
        "v": 2,
        "ts": rfc3339(at_ms),
        "event": LogEvent::Override.as_str(),
        "agent": "person",
        "by": decision.by,
        "run": &*history.run,
        "span_id": &*history.run,
        "artifact": history.opened.subject,
        "artifact_type": history.opened.artifact_type,
        "verdict": decision.verdict,
        "council_verdict": decision.council_verdict,
        "reason": decision.reason,
    });
    add_producer(&mut line, history);
    line
}

/// The result of asking a member in a step.
fn find<'a>(history: &'a History, step: &str, member: &str) -> Option<&'a Consultation> {
    history.consultations().find(|asked| &*asked.step == step && &*asked.member == member)
}

/// One round's entries in roster order: each recorded answer with its member and its status.
fn round(history: &History, step: &str) -> Vec<Json> {
    let entry = |member: &str| {
        let ended = find(history, step, member)?;
        let mut entry = ended.answer.as_ref().and_then(Json::as_object).cloned().unwrap_or_default();
        entry.insert("deliberator".into(), json!(member));
        entry.insert("status".into(), json!(ended.status));
        entry.insert("schema_failed".into(), json!(ended.status == Status::SchemaFailed));
        Some(Json::Object(entry))
    };
    roster(history).iter().filter_map(|member| entry(member)).collect()
}

fn roster(history: &History) -> Vec<&str> {
    let setup = history.opened.setup.get("deliberators").and_then(Json::as_array);
    setup.into_iter().flatten().filter_map(Json::as_str).collect()
}

/// The map of deliberators in the form that the public tool reads.
fn deliberators(history: &History) -> Json {
    let member = |id: &str| {
        let (first, second) = (find(history, "r1", id), find(history, "r2", id));
        let answer = |ended: Option<&Consultation>, key: &str| ended?.answer.as_ref()?.get(key).cloned();
        let read = |round, ended: Option<&Consultation>| Answer::read(round, ended?.answer.as_ref()?);
        let (first_read, second_read) = (read(Round::First, first), read(Round::Second, second));
        let score = |read: &Option<Answer>| json!(read.as_ref().and_then(|answer| answer.score));
        let flag = |data, key| json!(answer(data, key) == Some(json!(true)));
        let failed =
            |ended: Option<&Consultation>| ended.is_some_and(|ended| ended.status == Status::SchemaFailed);
        let error = [second, first].into_iter().flatten().find_map(|ended| ended.text.clone());
        let found = [&second_read, &first_read].into_iter().find_map(|read| read.as_ref()?.findings.as_ref());
        let listed =
            [second, first].into_iter().filter_map(|ended| ended?.answer.as_ref()).map(deliberator::issues);
        let listed = listed.into_iter().find(|all| !all.is_empty()).unwrap_or_default();
        let issues = found.into_iter().flatten().map(|finding| finding.issue.clone()).chain(listed);
        let repaired = |ended: &&Consultation| ended.repaired || ended.status == Status::SchemaFailed;
        let reprompts = [first, second].into_iter().flatten().filter(repaired).count();
        json!({
            "role": id,
            "r1_score": score(&first_read),
            "r1_would_block": flag(first, "would_block"),
            "r2_score": score(&second_read),
            "r2_would_block": flag(second, "would_block"),
            "r2_irreducible": flag(second, "irreducible"),
            "top_issues": issues.take(5).collect::<Vec<_>>(),
            "succeeded": first.is_some_and(|ended| ended.answer.is_some()),
            "error": error,
            "schema_failed": failed(first) || failed(second),
            "reprompts": reprompts,
        })
    };
    roster(history).iter().map(|id| ((*id).to_owned(), member(id))).collect::<Map<_, _>>().into()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests look at files")]
mod tests {
    use super::*;

    const LINE: &str = r#"{"v":2,"span_id":"r1","verdict":"SHIP"}"#;

    fn text(path: &Path) -> String {
        String::from_utf8(std::fs::read(path).unwrap()).unwrap()
    }

    #[test]
    fn a_run_gets_one_line_however_often_it_is_appended() {
        // C10
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("deep/council_log.jsonl");
        assert!(append_once(&log, LINE, 0, dir.path()).unwrap().written);
        assert!(!append_once(&log, LINE, 0, dir.path()).unwrap().written);
        let resumed = LINE.replace("\"v\"", "\"event\":\"resumed\",\"v\"");
        assert!(append_once(&log, &resumed, 0, dir.path()).unwrap().written);
        assert_eq!(text(&log).lines().count(), 2);
    }

    #[test]
    fn what_is_no_log_is_neither_cut_nor_appended_to() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("council_log.jsonl");
        let long = format!("{}\n", "x".repeat(100_000));
        for foreign in [
            "notes",
            "notes\nwithout an end",
            "\n\nnotes\n",
            "quorate:ed25519:secret:AAAA\n",
            "SQLite format 3\0\u{1}\n\0{\"v\":",
            "{\n  \"verdict\": \"SHIP\"\n}\n",
            "{\"name\":\"package\",\"version\":\"1\"}",
            "[\"v\"]\n",
            "{\"verdict\":2}x\n",
            "{\"v\":1,\"ts\":\"2026-05-18T14:23:11Z\",\"event\":\"message\",\"text\":\"a talk\"}\n",
            "{\"quorate_export\":1,\"v\":1}\n{\"head\":\"{\\\"kind\\\":\\\"outcome\\\"}\",\"v\":1}\n",
            &long,
        ] {
            std::fs::write(&log, foreign).unwrap();
            for refused in
                [can_append(&log), ensure_log_at(&log), append_once(&log, LINE, 0, dir.path()).map(drop)]
            {
                assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidData, "{foreign:.40}");
            }
            assert_eq!(text(&log), foreign);
            assert!(!dir.path().join("aside").exists());
        }
        for taken in
            ["", "\n", "{\"v\":2,\"verd", "lost\n{\"verdict\":\"HOLD\"}\nlost\n", "\u{feff}\n{\"span_id\":1}"]
        {
            std::fs::write(&log, taken).unwrap();
            can_append(&log).unwrap();
            append_once(&log, LINE, 0, dir.path()).unwrap();
            assert!(text(&log).ends_with(&format!("{LINE}\n")), "{taken}");
        }
    }

    #[test]
    fn a_torn_line_is_set_aside_and_a_whole_one_is_ended() {
        // D6
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("council_log.jsonl");
        std::fs::write(&log, "{\"verdict\":\"HOLD\"}\n{\"v\":2,\"verd").unwrap();
        let appended = append_once(&log, LINE, 0, dir.path()).unwrap();
        assert_eq!(text(&log), format!("{{\"verdict\":\"HOLD\"}}\n{LINE}\n"));
        assert_eq!(text(&appended.quarantined.unwrap().path), "{\"v\":2,\"verd");
        std::fs::write(&log, "{\"verdict\":\"HOLD\"}").unwrap();
        assert_eq!(append_once(&log, LINE, 0, dir.path()).unwrap().quarantined, None);
        assert_eq!(text(&log), format!("{{\"verdict\":\"HOLD\"}}\n{LINE}\n"));
    }
}
