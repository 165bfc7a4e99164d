//! A sweep of 50 drafts beside a log of 10 000 lines, as a whole process: with the log indexed, and the first time.

use std::path::Path;
use std::time::Duration;

use crate::log_lines;
use crate::place::drafts;
use crate::process::{command, median};
use crate::table::Measure;
use crate::{Bench, Failure};

const LINES: u64 = 10_000;
const DRAFTS: usize = 50;
const TIMES: usize = 9;
const ARGUMENTS: &[&str] = &["sweep", "--since", "all"];

pub(super) fn measure(bench: &mut Bench) -> Result<(), Failure> {
    let dir = bench.place.dir("sweep")?;
    council(bench, &dir, DRAFTS)?;
    let log = dir.join("council_log.jsonl");
    log_lines::write(&log, LINES)?;
    let length = std::fs::metadata(&log)?.len();
    let ledger = dir.join(".quorate/ledger.db");
    let indexed = dir.join("indexed.db");

    crate::process::median(1, &[0], || Ok(command(&bench.quorate, &dir, &["audit"])))?;
    std::fs::rename(&ledger, &indexed)?;
    let limit = Measure::Time(Duration::from_millis(300));
    for (what, before) in [("indexed", Some(&*indexed)), ("the first time", None)] {
        let took = median(TIMES, &[0], || {
            reset(&log, length, &ledger, before)?;
            Ok(command(&bench.quorate, &dir, ARGUMENTS))
        })?;
        bench.table.limited(
            format!("sweep of 50 drafts, log of 10 000 lines, {what}"),
            Measure::Time(took.wall),
            limit,
        );
        if let Some(public) = &bench.public {
            reset(&log, length, &ledger, None)?;
            bench.table.peer("the public tool's sweep", Measure::Time(public.sweep(&dir, &log)?.wall));
        }
        bench.table.unlimited("  its processor time", Measure::Time(took.busy));
        bench.table.unlimited("  its peak memory", Measure::Memory(took.peak_kib));
    }
    Ok(())
}

/// Sets a council up beside so many drafts; what it calls blog posts is of tier 1.
pub(super) fn council(bench: &Bench, dir: &Path, count: usize) -> Result<(), Failure> {
    crate::process::median(1, &[0], || Ok(command(&bench.quorate, dir, &["init", "council"])))?;
    std::fs::remove_dir_all(dir.join("drafts"))?;
    drafts(&dir.join("drafts"), count)
}

/// Takes back what the sweep before has done.
fn reset(log: &Path, length: u64, ledger: &Path, before: Option<&Path>) -> Result<(), Failure> {
    std::fs::OpenOptions::new().write(true).open(log)?.set_len(length)?;
    let _ = std::fs::remove_file(ledger);
    if let Some(before) = before {
        std::fs::copy(before, ledger)?;
    }
    Ok(())
}
