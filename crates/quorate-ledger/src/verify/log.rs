//! Checks `council_log.jsonl` against the ledger: each line of this ledger's runs is derived again from the run's
//! records and compared. Does not check lines of other programs and ledgers.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use quorate_kernel::canonical;
use quorate_kernel::history::History;
use quorate_kernel::ports::ledger::{Kind, Ledger as _, LedgerError, Record};
use quorate_kernel::record::{Override, RecordData, RunEnded, RunIntent, RunOpened};
use quorate_protocol::{Json, Name};
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::divergence::{Divergence, Findings, LedgerPart};
use super::walk::Walk;
use crate::council_log::line::LogEvent;
use crate::merkle::Hash;
use crate::store::engine::{Column, sql};
use crate::{Store, council_log, files};

/// The number of runs per read.
const PAGE: i64 = 500;
/// The protocol name of a review, before its version.
const REVIEW_PREFIX: &str = "council/";
/// The longest line that is checked, in bytes.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// The result for the log.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct LogCheck {
    /// The log as shown to the user.
    pub file: String,
    /// The number of lines that belong to runs of this ledger.
    pub ours: u64,
    /// The number of lines that name runs unknown to this ledger.
    pub unknown: u64,
    /// The first of these lines.
    pub first_unknown: Option<UnknownLine>,
    /// The number of lines that cannot be parsed, or that follow up on a run without naming it.
    pub unreadable: u64,
    /// Runs with lines in other logs, which were not checked.
    pub elsewhere: Option<OtherLogs>,
}

/// A line that names a run that the ledger does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct UnknownLine {
    /// Its number, from 1.
    pub line: u64,
    pub run: Name,
}

/// Runs with lines in other logs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct OtherLogs {
    /// The number of runs.
    pub runs: u64,
    /// The log of the first of them.
    pub file: String,
}

/// A line of this ledger's runs.
struct LoggedLine {
    number: u64,
    event: LogEvent,
    verdict: String,
    /// `None` if the line is not in this program's form: it may contain a field twice.
    hash: Option<Hash>,
    /// Whether it names its run in this program's form.
    is_ours: bool,
}

/// A run's existing or required line.
struct ExpectedLine {
    event: LogEvent,
    verdict: String,
    /// The hash of the whole line; `None` if it cannot be derived again, because bodies that it quotes were erased.
    hash: Option<Hash>,
    /// The numbers of the records before and after the line was written, as far as known.
    after: u64,
    before: Option<u64>,
    /// Whether the line may be missing: it is not written yet, or is in another log.
    pending: bool,
    /// The log that contains it; `None` for the log that its run names.
    log: Option<String>,
}

/// A line derived from its run's records, and the positions in the ledger between which it was written.
struct MatchedLine {
    number: u64,
    run: Name,
    event: LogEvent,
    after: u64,
    before: u64,
}

/// Compares a log with the walked runs.
///
/// # Errors
/// If the log or the store cannot be read.
pub(super) async fn check(store: &Store, path: &Path, walk: &mut Walk) -> Result<LogCheck, LedgerError> {
    let read = {
        let path = path.to_owned();
        tokio::task::spawn_blocking(move || read(&path)).await
    };
    let unreadable = |error: std::io::Error| LedgerError::Unavailable {
        what: format!("cannot read {}", path.display()),
        source: Some(Box::new(error)),
    };
    let (mut logged, mut lines) =
        read.map_err(std::io::Error::other).and_then(|read| read).map_err(unreadable)?;
    let mut logs = LogPaths::new(path);
    logs.find_moved(store, &lines).await?;
    let mut after = i64::MIN;
    let mut written = Vec::new();
    loop {
        use Column::{Int, Text};
        let rows = sql(
            "SELECT seq, run, log_path, override FROM run WHERE seq > $1 AND verdict IS NOT NULL ORDER BY seq LIMIT $2",
        );
        let rows = store.rows(rows.bind(after).bind(PAGE), &[Int, Text, Text, Text]).await?;
        // Reading a corrupt file may never end. The table is already reported.
        let Some(last) = rows.last().filter(|last| last.int(0) > after) else { break };
        after = last.int(0);
        for row in &rows {
            let run: Name = row.text(1).into();
            let known = walk.runs.get(&*run).is_some_and(|state| !state.row_unknown);
            let ours = known && !walk.ledger_facts.imported.contains(&*run);
            let lines = lines.remove(&*run).unwrap_or_default();
            logged.ours += lines.len() as u64;
            let belongs = logs.is_this_log(row.text(2));
            if ours && !belongs && !row.text(2).is_empty() && lines.is_empty() {
                let first = || OtherLogs { runs: 0, file: row.text(2).into() };
                logged.elsewhere.get_or_insert_with(first).runs += 1;
            }
            // A decision is logged in the workspace where it was made, possibly this one.
            let decided = row.opt_text(3).is_some();
            if ours && (belongs || decided || !lines.is_empty()) {
                let records = store.records(&run).await;
                // Differences between the records themselves are already reported.
                if let Ok(mut wanted) =
                    records.map_err(|_| ()).and_then(|records| expected_lines(&run, &records))
                {
                    for one in &mut wanted {
                        let is_here = one.log.as_deref().map_or(belongs, |log| logs.is_this_log(log));
                        one.pending |= !is_here;
                    }
                    let seqs = sql("SELECT n, seq FROM record WHERE run = $1").bind(&*run);
                    let seqs = store.rows(seqs, &[Int, Int]).await?;
                    let seqs: HashMap<u64, u64> =
                        seqs.iter().map(|row| (row.count(0), row.count(1))).collect();
                    for (number, line) in match_lines(&run, wanted, lines, &mut walk.findings) {
                        let Some(after) = seqs.get(&line.after).copied() else { continue };
                        let before = line.before.and_then(|n| seqs.get(&n).copied()).unwrap_or(u64::MAX);
                        let (run, event) = (run.clone(), line.event);
                        written.push(MatchedLine { number, run, event, after, before });
                    }
                }
            }
        }
    }
    check_order(written, &mut walk.findings);
    if let Some(what) = council_log::find_index_diff(store, path).await? {
        let what = format!("the index of the log does not match the log: {what}");
        walk.findings.add(Divergence::changed(LedgerPart::LogIndex, what));
    }
    // Runs without an outcome, or with a differing row, have no lines.
    let mut unknown: Vec<(u64, &str)> = Vec::new();
    for (run, lines) in &lines {
        match walk.runs.contains_key(run.as_str()) {
            true if walk.options.since.is_none() => {
                for line in lines {
                    let what = format!("line {} of the log belongs to a run without an outcome", line.number);
                    walk.findings.add(Divergence::inserted(LedgerPart::Log, what).of_run(run));
                }
            }
            _ => {
                let named = lines.iter().filter(|line| line.is_ours);
                unknown.extend(named.map(|line| (line.number, run.as_str())));
            }
        }
    }
    logged.unknown = unknown.len() as u64;
    logged.first_unknown = unknown.into_iter().min().map(|(line, run)| UnknownLine { line, run: run.into() });
    Ok(logged)
}

/// Whether a line of the log belongs to a run of this ledger and does not follow from the run's records.
///
/// # Errors
/// When the store does not answer.
pub(crate) async fn is_altered_line(store: &Store, line: &Json, written: &[u8]) -> Result<bool, LedgerError> {
    for (run, logged) in claimed_runs(0, line, written) {
        let run = Name::from(run);
        if store.compare_run(&run).await?.is_some() {
            return Ok(true);
        }
        let rows = sql("SELECT run FROM run WHERE run = $1").bind(&*run);
        // An imported run is logged where it was recorded.
        if store.rows(rows, &[Column::Text]).await?.is_empty() || store.is_imported(&run).await? {
            continue;
        }
        let wanted = expected_lines(&run, &store.records(&run).await?).unwrap_or_default();
        if !wanted.iter().any(|wanted| wanted.is_of(&logged)) {
            return Ok(true);
        }
    }
    Ok(false)
}

impl ExpectedLine {
    fn is_of(&self, line: &LoggedLine) -> bool {
        match self.hash {
            Some(hash) => line.hash == Some(hash),
            None => line.hash.is_some() && line.event == self.event && line.verdict == self.verdict,
        }
    }
}

/// Which of the logs that runs name are the configured one.
struct LogPaths {
    here: PathBuf,
    /// Logs by the names in runs.
    known: HashMap<String, bool>,
}

impl LogPaths {
    fn new(path: &Path) -> Self {
        LogPaths { here: canonical_path(path), known: HashMap::new() }
    }

    fn is_this_log(&mut self, named: &str) -> bool {
        let LogPaths { here, known } = self;
        *known.entry(named.to_owned()).or_insert_with(|| canonical_path(Path::new(named)) == *here)
    }

    /// A log that is missing at its old path moved with its workspace if this log has lines of its runs, or if it was
    /// beside the ledger like this one.
    async fn find_moved(
        &mut self,
        store: &Store,
        lines: &HashMap<String, Vec<LoggedLine>>,
    ) -> Result<(), LedgerError> {
        let rows = sql("SELECT DISTINCT log_path FROM run WHERE verdict IS NOT NULL ORDER BY log_path");
        let named = store.rows(rows, &[Column::Text]).await?;
        let gone = |named: &&str| !named.is_empty() && !Path::new(named).exists();
        let gone: HashSet<String> =
            named.iter().map(|row| row.text(0)).filter(gone).map(str::to_owned).collect();
        let is_beside = self.here.is_file()
            && !store.is_shared()
            && self.here.parent() == Some(canonical_path(store.dir()).as_path());
        let tail = |path: &Path| path.iter().rev().take(2).map(OsStr::to_owned).collect::<Vec<_>>();
        for named in gone.iter().filter(|named| is_beside && tail(Path::new(named)) == tail(&self.here)) {
            self.known.insert(named.clone(), true);
        }
        for run in lines.keys() {
            if gone.iter().all(|named| self.known.contains_key(named)) {
                break;
            }
            let row = sql("SELECT log_path FROM run WHERE run = $1").bind(run.as_str());
            for row in store.rows(row, &[Column::Text]).await? {
                if gone.contains(row.text(0)) {
                    self.known.insert(row.text(0).to_owned(), true);
                }
            }
        }
        Ok(())
    }
}

fn canonical_path(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned())
}

/// The lines in the log by the run that they name.
fn read(path: &Path) -> std::io::Result<(LogCheck, HashMap<String, Vec<LoggedLine>>)> {
    let (mut logged, mut lines) = (LogCheck::default(), HashMap::new());
    let mut file = match files::open(path) {
        Ok(file) => BufReader::new(file),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok((logged, lines)),
        Err(error) => return Err(error),
    };
    let mut text = Vec::new();
    for number in 1_u64.. {
        text.clear();
        let mut limited = std::io::Read::take(&mut file, MAX_LINE_BYTES);
        if limited.read_until(b'\n', &mut text)? == 0 {
            break;
        }
        if text.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match serde_json::from_slice::<Json>(&text) {
            Ok(Json::Object(line)) => {
                let line = Json::Object(line);
                for (run, line) in claimed_runs(number, &line, &text) {
                    lines.entry(run).or_insert_with(Vec::new).push(line);
                }
                logged.unreadable += u64::from(council_log::line::LogLine::parse(&text).is_none());
            }
            // A last line without line end may not be complete yet.
            _ if text.last() != Some(&b'\n') => break,
            _ => logged.unreadable += 1,
        }
    }
    Ok((logged, lines))
}

/// The runs that a line names. This program writes the run's id as both run and span. A line with only one of them is
/// from another program, but readers may still count it for that run.
fn claimed_runs(number: u64, line: &Json, written: &[u8]) -> Vec<(String, LoggedLine)> {
    let text = |key: &str| line.get(key).and_then(Json::as_str);
    let (run, span) = (text("run"), text("span_id"));
    let event = match text("event").unwrap_or("verdict") {
        "verdict" if line.get("parth_override") == Some(&Json::Bool(true)) => LogEvent::Override,
        "verdict" => LogEvent::Verdict,
        "resumed" => LogEvent::Resumed,
        "override" => LogEvent::Override,
        _ => return Vec::new(),
    };
    let is_ours = run.is_some() && run == span && text("event").is_some();
    // A line and its line end are written at once. Readers of the log do not count a line without its end.
    let is_exact = is_ours && written.strip_suffix(b"\n") == Some(line.to_string().as_bytes());
    let verdict = text("verdict").unwrap_or_default();
    let names = run.into_iter().chain(span.filter(|_| run != span));
    let line = |name: &str| {
        let hash = hash(line).filter(|_| is_exact);
        (name.to_owned(), LoggedLine { number, event, verdict: verdict.to_owned(), hash, is_ours })
    };
    names.map(line).collect()
}

fn hash(line: &Json) -> Option<Hash> {
    Some(Sha256::digest(canonical::text(line).ok()?.as_bytes()).into())
}

/// The lines that follow from a run's records.
fn expected_lines(run: &Name, records: &[Record]) -> Result<Vec<ExpectedLine>, ()> {
    let opened: RunOpened = records.first().and_then(|first| first.read().ok()?).ok_or(())?;
    // Runs of assemblies are not logged.
    if !opened.protocol.starts_with(REVIEW_PREFIX) {
        return Ok(Vec::new());
    }
    let mut wanted: Vec<ExpectedLine> = Vec::new();
    let mut reopened = false;
    let mut outcome: Option<(u64, String)> = None;
    for (record, at) in records.iter().zip(0..) {
        let data = record.data.as_ref();
        let word = |key: &str| data.and_then(|data| data.get(key)?.as_str()).unwrap_or_default().to_owned();
        if let Some(intent) = data_of::<RunIntent>(record) {
            if !intent.supersedes.is_empty() {
                (reopened, outcome) = (true, None);
            }
        } else if record.is(Kind::Outcome) {
            outcome = Some((record.n, word("verdict")));
        } else if record.is(Kind::RunEnded) {
            wanted.extend(outcome.take().and_then(|outcome| review(run, &records[..at], outcome, reopened)));
            let log = data_of::<RunEnded>(record).and_then(|ended| ended.log_path);
            // The workspace that queued a review logs it later.
            let is_later = |line: &ExpectedLine| opened.queued.is_some() && line.event != LogEvent::Override;
            for line in wanted.iter_mut().filter(|line| line.pending && !is_later(line)) {
                (line.before, line.log, line.pending) = (Some(record.n), log.clone(), false);
            }
        } else if record.is(Kind::Override) {
            let decision: Option<Override> = data_of(record);
            let history = History::from_records(run, records[..at].to_vec()).ok();
            let line = history
                .zip(decision.as_ref())
                .map(|(history, decision)| council_log::override_line(&history, record.at_ms, decision));
            wanted.push(ExpectedLine {
                event: LogEvent::Override,
                pending: decision.as_ref().is_some_and(Override::is_unlogged),
                verdict: decision.map(|decision| decision.verdict).unwrap_or_default(),
                hash: line.as_ref().and_then(hash),
                after: record.n,
                before: None,
                log: None,
            });
        }
    }
    wanted.extend(outcome.and_then(|outcome| review(run, records, outcome, reopened)));
    Ok(wanted)
}

fn data_of<T: RecordData>(record: &Record) -> Option<T> {
    record.read().ok().flatten()
}

/// The line of a review that is about to end.
fn review(
    run: &Name,
    records: &[Record],
    (n, verdict): (u64, String),
    reopened: bool,
) -> Option<ExpectedLine> {
    let event = match (reopened, &*verdict) {
        // It was logged as INCOMPLETE at its first end, and that is still true.
        (true, "INCOMPLETE") => return None,
        (true, _) => LogEvent::Resumed,
        (false, _) => LogEvent::Verdict,
    };
    let history = History::from_records(run, records.to_vec()).ok();
    let hash = history.and_then(|history| council_log::review_line(&history, event)).as_ref().and_then(hash);
    Some(ExpectedLine { event, verdict, hash, after: n, before: None, pending: true, log: None })
}

/// Reports wrong lines of a run. Returns the correct ones with their kinds.
fn match_lines(
    run: &Name,
    wanted: Vec<ExpectedLine>,
    mut lines: Vec<LoggedLine>,
    findings: &mut Findings,
) -> Vec<(u64, ExpectedLine)> {
    let (mut found, mut left) = (Vec::new(), Vec::new());
    for wanted in wanted {
        match lines.iter().position(|line| wanted.is_of(line)) {
            Some(at) => found.push((lines.remove(at).number, wanted)),
            None => left.push(wanted),
        }
    }
    for wanted in left {
        let event = wanted.event.as_str();
        let divergence = match lines.iter().position(|line| line.event == wanted.event) {
            Some(at) => {
                let line = lines.remove(at);
                let what =
                    format!("line {} of the log, its {event}, does not match its records", line.number);
                Divergence::changed(LedgerPart::Log, what)
            }
            None if wanted.pending => continue,
            None => Divergence::removed(LedgerPart::Log, format!("the log has no line for its {event}")),
        };
        findings.add(divergence.of_run(run));
    }
    for line in lines {
        let event = line.event.as_str();
        let what = format!("line {} of the log duplicates its {event}", line.number);
        findings.add(Divergence::inserted(LedgerPart::Log, what).of_run(run));
    }
    found
}

/// A line that was written before another one cannot follow it.
fn check_order(mut written: Vec<MatchedLine>, findings: &mut Findings) {
    written.sort_unstable_by_key(|line| line.number);
    let mut latest: Option<&MatchedLine> = None;
    for line in &written {
        if let Some(latest) = latest.filter(|latest| latest.after > line.before) {
            let what = format!(
                "line {} of the log, its {}, follows line {}, which is of {} and was written later",
                line.number,
                line.event.as_str(),
                latest.number,
                latest.run
            );
            findings.add(Divergence::reordered(LedgerPart::Log, what).of_run(&line.run));
        }
        latest = latest.filter(|latest| latest.after >= line.after).or(Some(line));
    }
}
