//! Appends to the log: under its lock, one line per run, synced. A torn last line is moved to quarantine first and never
//! joined with the next.

use std::fs::File;
use std::io::{
    BufRead as _, BufReader, Error, ErrorKind, Read as _, Result, Seek as _, SeekFrom, Write as _,
};
use std::path::Path;

use super::line::{self, Event, Line};
use crate::files;
use crate::quarantine::{self, QuarantinedFile};

/// The result of appending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendResult {
    /// Whether a line was written; `false` if the run's line of this event existed already.
    pub written: bool,
    /// A torn last line, now in `aside/`.
    pub quarantined: Option<QuarantinedFile>,
}

/// Whether a log can be appended to; creates nothing.
///
/// # Errors
/// When it cannot be, and why.
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

/// Whether an existing file looks like a log; it is only read.
///
/// # Errors
/// When it holds something else, or cannot be read.
pub fn ensure_log_at(log: &Path) -> Result<()> {
    match files::open(log) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        opened => ensure_log(&mut opened?),
    }
}

/// Refuses a file that is no log: one in which something stands, and no line of it is a log's. Another file would be changed
/// by appending to it, and a torn line that is quarantined would be the user's text.
fn ensure_log(file: &mut File) -> Result<()> {
    /// No line of a log is longer.
    const MAX_LINE: u64 = 64 << 20;
    file.seek(SeekFrom::Start(0))?;
    let mut lines = BufReader::new(&*file);
    let (mut line, mut before) = (Vec::new(), 0);
    loop {
        line.clear();
        if lines.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        // The first line that a process ever wrote may be torn.
        if line::is_logs(&line) || (before == 0 && line::is_begun(&line)) {
            return Ok(());
        }
        before += usize::from(!line.trim_ascii().is_empty());
    }
    match before {
        0 => Ok(()),
        _ => Err(Error::new(ErrorKind::InvalidData, "it is no log: no line of it is a log's")),
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
    let new_line = Line::parse(line.as_bytes());
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
    // A line that is there already may have been left by a process that died before it was synced.
    file.sync_data()?;
    if was_empty || there {
        quarantine::sync_directory(log)?;
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
    if Line::parse(&tail).is_some() {
        file.write_all(b"\n")?;
        return Ok(None);
    }
    let name = log.file_name().and_then(|name| name.to_str()).unwrap_or("council_log.jsonl");
    let piece = quarantine::write(aside_dir, &format!("{name}.torn"), &tail)?;
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

/// Whether a line is after a byte. A log that is shorter than that was replaced and is read whole.
fn contains_line(file: &mut File, since: u64, wanted: &Line) -> Result<bool> {
    let span = &*wanted.span;
    if span.is_empty() {
        return Ok(false);
    }
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(if since > length { 0 } else { since }))?;
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    let names_it = |line: &&[u8]| line.windows(span.len()).any(|window| window == span.as_bytes());
    let lines = text.split(|byte| *byte == b'\n').filter(names_it).filter_map(Line::parse);
    let is_it = |line: Line| {
        let same_time = line.event != Event::Override || line.at_ms == wanted.at_ms;
        line.span == span && line.event == wanted.event && same_time
    };
    Ok(lines.into_iter().any(is_it))
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
