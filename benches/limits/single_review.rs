//! One review as a whole process, beside the bare start of a process.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::place::launch_post;
use crate::process::{command, median};
use crate::table::Measure;
use crate::{Bench, Failure};

const TIMES: usize = 41;
/// REVISE, which is what the example gets.
const REVISE: &[i32] = &[1];

pub(super) fn measure(bench: &mut Bench) -> Result<(), Failure> {
    let dir = bench.place.dir("review")?;
    let post = launch_post(&dir)?;
    let review = || command(&bench.quorate, &dir, &["review", "launch-post.md"]);
    let empty = median(TIMES, REVISE, || {
        let _ = std::fs::remove_dir_all(dir.join(".quorate"));
        Ok(review())
    })?;
    let existing = median(TIMES, REVISE, || Ok(review()))?;
    let hello = hello_world(&dir)?;
    let python = python_start(&dir)?;
    let public = bench.public.as_ref().map(|public| public.review(&dir, &post, TIMES / 4)).transpose()?;

    let table = &mut bench.table;
    table.limited(
        "review with the rubric, empty ledger, whole process",
        Measure::Time(empty.wall),
        Measure::Time(Duration::from_millis(20)),
    );
    table.peer("the start of a Rust process (hello, world)", Measure::Time(hello.wall));
    if let Some(python) = python {
        table.peer("the start of a Python process (-c pass)", Measure::Time(python.wall));
    }
    if let Some(public) = public {
        table.peer("the public tool's mocked review", Measure::Time(public.wall));
    }
    table.unlimited("  its processor time", Measure::Time(empty.busy));
    table.limited("  its peak memory", Measure::Memory(empty.peak_kib), Measure::Memory(30 * 1024));
    if let Some(public) = public {
        table.peer("the public tool's mocked review", Measure::Memory(public.peak_kib));
    }
    table.unlimited("the same on an existing ledger", Measure::Time(existing.wall));
    Ok(())
}

/// The least that a Rust program takes.
fn hello_world(dir: &Path) -> Result<crate::process::Took, Failure> {
    let source = dir.join("hello.rs");
    std::fs::write(&source, "fn main() { println!(\"hello, world\"); }\n")?;
    let built = Command::new("rustc").args(["-O", "hello.rs"]).current_dir(dir).status()?;
    if !built.success() {
        return Err("rustc could not build a hello, world".into());
    }
    median(TIMES, &[0], || Ok(command(&dir.join("hello"), dir, &[])))
}

/// The least that a Python program takes; `None` where there is no Python.
fn python_start(dir: &Path) -> Result<Option<crate::process::Took>, Failure> {
    match crate::public_tool::interpreter() {
        Some(python) => median(TIMES, &[0], || Ok(command(&python, dir, &["-c", "pass"]))).map(Some),
        None => Ok(None),
    }
}
