//! Members that take their time: two rounds of four at once and an adjudicator, 100 ms each, cannot take less than
//! 300 ms. The whole process is measured, its start and its ledger included.

use std::time::Duration;

use crate::place::launch_post;
use crate::process::{command, median};
use crate::table::Measure;
use crate::{Bench, Failure};

const HOST: &str = "[executors.slow]\nkind = \"script\"\npath = \"answers.json\"\ndelay = \"100ms\"\n";
const ANSWERS: &str = r#"{
  "r1": {"would_block": false, "score": 4},
  "r2": {"would_block": false, "irreducible": false, "score": 4},
  "adjudicate": {"final_verdict": "SHIP", "reasoning": "Nobody blocks."}
}"#;

pub(super) fn measure(bench: &mut Bench) -> Result<(), Failure> {
    let dir = bench.place.dir("critical-path")?;
    launch_post(&dir)?;
    std::fs::write(dir.join("quorate.toml"), HOST)?;
    std::fs::write(dir.join("answers.json"), ANSWERS)?;
    let arguments = ["review", "launch-post.md", "--executor", "slow"];
    let took = median(11, &[0], || {
        let _ = std::fs::remove_dir_all(dir.join(".quorate"));
        Ok(command(&bench.quorate, &dir, &arguments))
    })?;
    let limit = Duration::from_millis(300).mul_f64(1.05);
    bench.table.limited(
        "members of 100 ms (critical path 300 ms), whole process",
        Measure::Time(took.wall),
        Measure::Time(limit),
    );
    Ok(())
}
