//! How often a review waits for the disk, counted by the system: on an existing ledger, whole process.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::place::launch_post;
use crate::process::{command, run};
use crate::table::Measure;
use crate::{Bench, Failure};

pub(super) fn measure(bench: &mut Bench) -> Result<(), Failure> {
    let dir = bench.place.dir("syncs")?;
    launch_post(&dir)?;
    run(&mut command(&bench.quorate, &dir, &["review", "launch-post.md"]))?;
    match trace(&bench.quorate, &dir)? {
        Some(calls) => {
            let total = calls.lines().filter(|line| line.contains("sync(")).count();
            bench.table.limited(
                "syncs of a review on an existing ledger, SQLite's included",
                Measure::Count(total as u64),
                Measure::Count(9),
            );
            let own = own(&calls);
            bench.table.limited(
                "  those of our own: four steps and the log line",
                Measure::Count(own as u64),
                Measure::Count(5),
            );
        }
        None => bench.table.note("syncs were not counted: strace is not there or may not trace"),
    }
    Ok(())
}

/// The sync calls of a review with the files that they were for, one a line; `None` where that cannot be had.
fn trace(quorate: &Path, dir: &Path) -> Result<Option<String>, Failure> {
    let calls = dir.join("calls");
    let traced = Command::new("strace")
        .args(["-f", "-y", "-e", "trace=fsync,fdatasync", "-o"])
        .arg(&calls)
        .arg(quorate)
        .args(["review", "launch-post.md"])
        .current_dir(dir)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match traced {
        Ok(status) if status.code() == Some(1) => Ok(Some(std::fs::read_to_string(&calls)?)),
        _ => Ok(None),
    }
}

/// What is synced of the log and of the ledger's write-ahead log before the ledger's file itself is: that is when the
/// one is folded into the other. The write-ahead log's header and the folding are SQLite's.
fn own(calls: &str) -> usize {
    let of = |name: &str| calls.lines().filter(|line| line.contains(name)).count();
    let ahead = of("ledger.db-wal>");
    of("council_log.jsonl>") + ahead.saturating_sub(2)
}
