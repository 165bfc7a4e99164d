//! A log of 100 000 lines: indexing it, looking up earlier verdicts, auditing it.

use std::time::Duration;

use crate::log_lines;
use crate::process::{command, median};
use crate::table::Measure;
use crate::{Bench, Failure, process};

const LINES: u64 = 100_000;
const TIMES: usize = 11;

pub(super) fn measure(bench: &mut Bench) -> Result<(), Failure> {
    let dir = bench.place.dir("large-log")?;
    let quorate_dir = dir.join(".quorate");
    let (ledger, log) = (quorate_dir.join("ledger.db"), quorate_dir.join("council_log.jsonl"));
    log_lines::write(&log, LINES)?;
    let megabytes = std::fs::metadata(&log)?.len() / 1_000_000;

    let mut firsts = Vec::new();
    for _ in 0..3 {
        let _ = std::fs::remove_file(&ledger);
        firsts.push(process::measure_inside("index", &quorate_dir)?);
    }
    let first = crate::process::middle(firsts);
    bench.table.limited(
        format!("first indexing of 100 000 lines, {megabytes} MB, in process"),
        Measure::Time(first),
        Measure::Time(Duration::from_secs(3)),
    );
    let lookup = process::measure_inside("lookup", &quorate_dir)?;
    bench.table.limited(
        "earlier verdicts of one type in 100 000 lines, in process",
        Measure::Time(lookup),
        Measure::Time(Duration::from_millis(1)),
    );
    if let Some(public) = &bench.public {
        bench.table.peer("the public tool's lookup", Measure::Time(public.lookup(&log)?));
    }

    let limit = (Measure::Time(Duration::from_millis(500)), Measure::Memory(64 * 1024));
    let audits: [(&str, &[&str]); 2] = [
        ("audit of 100 000 lines", &["audit"]),
        ("audit --since 2026-09-01", &["audit", "--since", "2026-09-01"]),
    ];
    for (what, arguments) in audits {
        let took = median(TIMES, &[0], || Ok(command(&bench.quorate, &dir, arguments)))?;
        let public = bench.public.as_ref().map(|public| public.audit(&log, arguments)).transpose()?;
        bench.table.limited(format!("{what}, indexed, whole process"), Measure::Time(took.wall), limit.0);
        if let Some(public) = public {
            bench.table.peer("the public tool's audit", Measure::Time(public.wall));
        }
        bench.table.limited("  its peak memory", Measure::Memory(took.peak_kib), limit.1);
        if let Some(public) = public {
            bench.table.peer("the public tool's audit", Measure::Memory(public.peak_kib));
        }
    }
    let took = median(3, &[0], || {
        let _ = std::fs::remove_file(&ledger);
        Ok(command(&bench.quorate, &dir, &["audit"]))
    })?;
    bench.table.unlimited("audit of 100 000 lines, the first time, whole process", Measure::Time(took.wall));
    bench.table.unlimited("  its peak memory", Measure::Memory(took.peak_kib));
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}
