//! Checking a workspace of 1 000 assemblies of five layers each (with shared parents) and 5 000 personas, and resolving
//! one view of it, each as a whole process.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::process::{command, median};
use crate::table::Measure;
use crate::{Bench, Failure};

const PERSONAS: usize = 5_000;
/// How many children each layer has: 5 x 5 x 8 x 5 views below one root.
const WIDTHS: [usize; 4] = [5, 5, 8, 5];
const CHECKS: usize = 5;
const RESOLVES: usize = 21;

pub(super) fn measure(bench: &mut Bench) -> Result<(), Failure> {
    let dir = bench.place.dir("manifests")?;
    std::fs::write(dir.join("quorate.toml"), "strict_chain = true\n")?;
    for number in 0..PERSONAS {
        write(&dir.join(format!("personas/p-{number:04}/PERSONA.md")), &persona(number))?;
    }
    let mut written = 0;
    layer(&dir.join("org"), 0, &mut written)?;

    // One processor, as the limit has it.
    let pinned = || {
        let mut command = Command::new("taskset");
        command.args(["-c", "0"]).arg(&bench.quorate).args(["check", "."]).current_dir(&dir);
        Ok(command)
    };
    let took = median(CHECKS, &[0], pinned)?;
    let what =
        format!("check of {written} assemblies (1 000 of them views of five layers) and {PERSONAS} personas");
    bench.table.limited(what, Measure::Time(took.wall), Measure::Time(Duration::from_secs(1)));
    bench.table.limited("  its peak memory", Measure::Memory(took.peak_kib), Measure::Memory(100 * 1024));
    let view = "org/n1/n1/n1/n1/ASSEMBLY.md";
    let took = median(RESOLVES, &[0], || Ok(command(&bench.quorate, &dir, &["resolve", view])))?;
    let limit = Measure::Time(Duration::from_millis(15));
    bench.table.limited("resolve of one view of five layers, whole process", Measure::Time(took.wall), limit);
    Ok(())
}

/// A layer, and below it what extends it.
fn layer(dir: &Path, depth: usize, written: &mut usize) -> Result<(), Failure> {
    write(&dir.join("ASSEMBLY.md"), &assembly(depth, *written))?;
    *written += 1;
    for child in 0..WIDTHS.get(depth).copied().unwrap_or(0) {
        layer(&dir.join(format!("n{child}")), depth + 1, written)?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    Ok(std::fs::write(path, text)?)
}

fn persona(number: usize) -> String {
    format!(
        "---\nschema: persona/v1\nname: p-{number:04}\ntitle: Persona {number}\ndescription: |\n  A persona that exists to be loaded, with a description of ordinary length.\nversion: 1.0.0\nvoice:\n  register: plain-direct\n  tonality: [rigorous, calm]\nboundaries:\n  refuses: [inventing sources]\ntags: [bench]\n---\nYou are persona {number}. You look at sources first and say what is missing.\n"
    )
}

fn assembly(depth: usize, number: usize) -> String {
    let mut text = format!(
        "---\nschema: assembly.workspace/v1\nname: a-{number}\ntitle: Assembly {number}\ndescription: |\n  An assembly that exists to be resolved, with a description of ordinary length.\nversion: 1.0.0\n"
    );
    text.push_str(if depth == 0 {
        "mode: advisory\nmembers:\n"
    } else {
        "extends: ../ASSEMBLY.md\nmembers:\n"
    });
    for member in 0..2 {
        let persona = (number * 4 + member) % PERSONAS;
        let _ = write!(
            text,
            "  - id: m{depth}-{member}\n    persona: ws://personas/p-{persona:04}\n    role: Member\n    phase: session\n    triggers: [sample, manual]\n    timeout_ms: 30000\n    gatherInput: {{ strategy: recent-messages, params: {{ limit: 20 }} }}\n"
        );
    }
    if depth == 0 {
        text.push_str("synthesis:\n  rules:\n    - id: sentinel-wins\n      kind: terminal\n      appliesTo: [m0-0]\n      params: { triggerSeverity: 9 }\n    - id: gravest\n      kind: aggregate\n      params: { minSeverity: 5, topN: 2 }\nlockedTraits: [warmth, honesty]\naudit:\n  overlays: { enabled: true, maxActive: 6, defaultTtl: P14D }\n");
    }
    text.push_str("---\n# Assembly\n");
    text
}
