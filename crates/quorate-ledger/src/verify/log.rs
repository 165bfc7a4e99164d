//! Checks `council_log.jsonl` against the ledger: each of our lines is derived again from its run's records and compared.
//! Lines of other programs and ledgers are not checked.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use quorate_kernel::canonical;
use quorate_kernel::history::History;
use quorate_kernel::ports::ledger::{Error, Kind as Word, Ledger as _, Record};
use quorate_kernel::record::{Override, RecordData, RunEnded, RunIntent, RunOpened};
use quorate_protocol::{Json, Name};
use sha2::{Digest as _, Sha256};

use super::divergence::{Divergence, Findings, Kind, Part};
use super::walk::Walk;
use crate::Store;
use crate::council_log::line::Event;
use crate::council_log::{self, view};
use crate::files;
use crate::merkle::Hash;
use crate::store::engine::{Column, sql};

/// How many runs are read at once.
const PAGE: i64 = 500;
/// The protocol name of a review, before its version.
const REVIEW_PREFIX: &str = "council/";
/// The longest line that is looked at, in bytes.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// The result for the log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogCheck {
    /// How many lines belong to runs of this ledger.
    pub ours: u64,
    /// How many lines name runs that this ledger does not have, and where the first of these is.
    pub unknown: u64,
    /// The number of the first of these lines, from 1, and the run that it names.
    pub first_unknown: Option<(u64, Name)>,
    /// How many lines cannot be read, or say that they follow up on a run and do not name it.
    pub unreadable: u64,
    /// The number of runs with lines in other logs, which were not checked.
    pub elsewhere: u64,
    /// The log of the first of these runs.
    pub first_elsewhere: Option<PathBuf>,
}

/// One of our lines.
struct LoggedLine {
    number: u64,
    event: Event,
    verdict: String,
    /// `None` where it does not stand as this program writes it: something may be in it twice.
    hash: Option<Hash>,
    /// It names its run as this program does.
    is_ours: bool,
}

/// A run's line in the log, or one that is required.
struct ExpectedLine {
    event: Event,
    verdict: String,
    /// Of the whole line; `None` where it cannot be made again, since bodies that it has words of were erased.
    hash: Option<Hash>,
    /// The number of the record that it was written after, and of the one that it was written before, where that is known.
    after: u64,
    before: Option<u64>,
    /// It may just not be written yet, or is in another log.
    pending: bool,
    /// The log that it is in; `None` for the one that its run names.
    log: Option<String>,
}

/// A line that follows from its run's records, and between which places of the ledger it was written.
struct MatchedLine {
    number: u64,
    run: Name,
    event: Event,
    after: u64,
    before: u64,
}

/// Holds a log against the runs that were walked over.
///
/// # Errors
/// When the log or the store cannot be read.
pub(super) async fn check(store: &Store, path: &Path, walk: &mut Walk) -> Result<LogCheck, Error> {
    let read = {
        let path = path.to_owned();
        tokio::task::spawn_blocking(move || read(&path)).await
    };
    let unreadable = |error: std::io::Error| Error::Unavailable {
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
        // A broken file may go round in circles, which is said of the table already.
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
                logged.elsewhere += 1;
                logged.first_elsewhere.get_or_insert_with(|| row.text(2).into());
            }
            // A decision is logged in the workspace where it was made, possibly this one.
            let decided = row.opt_text(3).is_some();
            if ours && (belongs || decided || !lines.is_empty()) {
                let records = store.records(&run).await;
                // What is wrong with the records themselves is said already.
                if let Ok(mut wanted) =
                    records.map_err(|_| ()).and_then(|records| expected_lines(&run, &records))
                {
                    for one in &mut wanted {
                        let is_here = one.log.as_deref().map_or(belongs, |log| logs.is_this_log(log));
                        one.pending |= !is_here;
                    }
                    let found = match_lines(&run, wanted, lines, &mut walk.findings);
                    written.extend(with_seqs(store, &run, found).await?);
                }
            }
        }
    }
    check_order(written, &mut walk.findings);
    if let Some(what) = council_log::find_index_diff(store, path).await? {
        let what = format!("what is counted of the log does not follow from it: {what}");
        walk.findings.add(Divergence::new(Kind::Changed, Part::LogIndex, what));
    }
    // Of runs without outcome, or whose row is another, nothing is logged.
    let mut unknown: Vec<(u64, &str)> = Vec::new();
    for (run, lines) in &lines {
        match walk.runs.contains_key(run.as_str()) {
            true if walk.options.since.is_none() => {
                for line in lines {
                    let what = format!("line {} of the log is of a run without an outcome", line.number);
                    walk.findings.add(Divergence::new(Kind::Inserted, Part::Log, what).of_run(run));
                }
            }
            _ => {
                let named = lines.iter().filter(|line| line.is_ours);
                unknown.extend(named.map(|line| (line.number, run.as_str())));
            }
        }
    }
    logged.unknown = unknown.len() as u64;
    logged.first_unknown = unknown.into_iter().min().map(|(number, run)| (number, run.into()));
    Ok(logged)
}

/// Whether a line of the log is of a run of this ledger and does not follow from the run's records.
///
/// # Errors
/// When the store does not answer.
pub(crate) async fn is_altered_line(store: &Store, line: &Json, written: &[u8]) -> Result<bool, Error> {
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
    /// By the names in runs.
    known: HashMap<String, bool>,
}

impl LogPaths {
    fn new(path: &Path) -> Self {
        LogPaths { here: canonical_path(path), known: HashMap::new() }
    }

    fn is_this_log(&mut self, named: &str) -> bool {
        match self.known.get(named) {
            Some(belongs) => *belongs,
            None => {
                let belongs = canonical_path(Path::new(named)) == self.here;
                self.known.insert(named.to_owned(), belongs);
                belongs
            }
        }
    }

    /// A log that is not where it was went along with its workspace if there are lines of its runs here, or if it lay beside
    /// the ledger as the one here does.
    async fn find_moved(
        &mut self,
        store: &Store,
        lines: &HashMap<String, Vec<LoggedLine>>,
    ) -> Result<(), Error> {
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

/// The lines of the log that say that they are of a run, by run.
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
                logged.unreadable += u64::from(council_log::line::Line::parse(&text).is_none());
            }
            // A last line without its end may still be being written.
            _ if text.last() != Some(&b'\n') => break,
            _ => logged.unreadable += 1,
        }
    }
    Ok((logged, lines))
}

/// The runs that a line names. One that this program writes names its run as run and as span; one that names a
/// run as one of them alone is not its own, and may still be taken for it.
fn claimed_runs(number: u64, line: &Json, written: &[u8]) -> Vec<(String, LoggedLine)> {
    let text = |key: &str| line.get(key).and_then(Json::as_str);
    let (run, span) = (text("run"), text("span_id"));
    let event = match text("event").unwrap_or("verdict") {
        "verdict" if line.get("parth_override") == Some(&Json::Bool(true)) => Event::Override,
        "verdict" => Event::Verdict,
        "resumed" => Event::Resumed,
        "override" => Event::Override,
        _ => return Vec::new(),
    };
    let is_ours = run.is_some() && run == span && text("event").is_some();
    // A line is written with its line feed, at one go. Without one it is not counted by readers of the log.
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

/// The lines that a run's records have written.
fn expected_lines(run: &Name, records: &[Record]) -> Result<Vec<ExpectedLine>, ()> {
    let opened: RunOpened = records.first().and_then(|first| first.read().ok()?).ok_or(())?;
    // An assembly's runs are not logged.
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
        } else if record.is(Word::Outcome) {
            outcome = Some((record.n, word("verdict")));
        } else if record.is(Word::RunEnded) {
            wanted.extend(outcome.take().and_then(|outcome| review(run, &records[..at], outcome, reopened)));
            let log = data_of::<RunEnded>(record).and_then(|ended| ended.log_path);
            // A queued review is logged later, by the workspace that queued it.
            let is_later = |one: &ExpectedLine| opened.queued.is_some() && one.event != Event::Override;
            for one in wanted.iter_mut().filter(|one| one.pending && !is_later(one)) {
                (one.before, one.log, one.pending) = (Some(record.n), log.clone(), false);
            }
        } else if record.is(Word::Override) {
            let decision: Option<Override> = data_of(record);
            let history = History::from_records(run, records[..at].to_vec()).ok();
            let line = history
                .zip(decision.as_ref())
                .map(|(history, decision)| view::override_line(&history, record.at_ms, decision));
            wanted.push(ExpectedLine {
                event: Event::Override,
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
        // It was logged as INCOMPLETE when it first ended, and that still holds.
        (true, "INCOMPLETE") => return None,
        (true, _) => Event::Resumed,
        (false, _) => Event::Verdict,
    };
    let history = History::from_records(run, records.to_vec()).ok();
    let hash = history.and_then(|history| view::review_line(&history, event)).as_ref().and_then(hash);
    Some(ExpectedLine { event, verdict, hash, after: n, before: None, pending: true, log: None })
}

/// Reports wrong lines of a run. Returns the right ones with their kind.
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
                    format!("line {} of the log, its {event}, does not follow from its records", line.number);
                Divergence::new(Kind::Changed, Part::Log, what)
            }
            None if wanted.pending => continue,
            None => Divergence::new(Kind::Removed, Part::Log, format!("the log has no line of its {event}")),
        };
        findings.add(divergence.of_run(run));
    }
    for line in lines {
        let event = line.event.as_str();
        let what =
            format!("line {} of the log is one more of its {event} than its records have", line.number);
        findings.add(Divergence::new(Kind::Inserted, Part::Log, what).of_run(run));
    }
    found
}

/// Looks up where the records stand that a run's lines were written between.
async fn with_seqs(
    store: &Store,
    run: &Name,
    found: Vec<(u64, ExpectedLine)>,
) -> Result<Vec<MatchedLine>, Error> {
    let rows = sql("SELECT n, seq FROM record WHERE run = $1").bind(&**run);
    let rows = store.rows(rows, &[Column::Int, Column::Int]).await?;
    let places: HashMap<u64, u64> = rows.iter().map(|row| (row.count(0), row.count(1))).collect();
    let place = |n: u64| places.get(&n).copied();
    let written = found.into_iter().filter_map(|(number, wanted)| {
        let before = wanted.before.and_then(place).unwrap_or(u64::MAX);
        Some(MatchedLine {
            number,
            run: run.clone(),
            event: wanted.event,
            after: place(wanted.after)?,
            before,
        })
    });
    Ok(written.collect())
}

/// A line cannot be behind one that was written only after it was known to be there.
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
            findings.add(Divergence::new(Kind::Reordered, Part::Log, what).of_run(&line.run));
        }
        latest = latest.filter(|latest| latest.after >= line.after).or(Some(line));
    }
}
