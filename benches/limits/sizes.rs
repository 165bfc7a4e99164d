//! Sizes at the edge: the largest artifact that is reviewed, and a sweep of many small ones. There is no limit to
//! hold them against.

use crate::place::long_text;
use crate::process::{command, median, run};
use crate::table::Measure;
use crate::{Bench, Failure, sweep};

pub(super) fn measure(bench: &mut Bench) -> Result<(), Failure> {
    let dir = bench.place.dir("large-artifact")?;
    std::fs::write(dir.join("long.md"), long_text(2 * 1024 * 1024))?;
    let took = median(5, &[0, 1, 2], || {
        let _ = std::fs::remove_dir_all(dir.join(".quorate"));
        Ok(command(&bench.quorate, &dir, &["review", "long.md"]))
    })?;
    bench.table.unlimited("review of 2 MiB", Measure::Time(took.wall));
    bench.table.unlimited("  its peak memory", Measure::Memory(took.peak_kib));

    let dir = bench.place.dir("many")?;
    sweep::council(bench, &dir, 2_000)?;
    let took = run(&mut command(&bench.quorate, &dir, &["sweep", "--since", "all"]))?;
    bench.table.unlimited("sweep of 2 000 drafts", Measure::Time(took.wall));
    bench.table.unlimited("  its peak memory", Measure::Memory(took.peak_kib));
    let took = median(3, &[0], || Ok(command(&bench.quorate, &dir, &["sweep", "--since", "all"])))?;
    bench.table.unlimited("the same again, all judged", Measure::Time(took.wall));
    Ok(())
}
