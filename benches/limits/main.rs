//! The speed limits that this project set itself, measured from the outside in one run on one machine: what, measured,
//! limit, ratio, and beside it what can be measured of others here. Nothing is asserted; the reader decides.
//!
//! `scripts/bench` builds and starts it. Timings are medians. Files come from the page cache, since they were just
//! written. A step that has to be free of everything else runs in a process of its own, which is this same program
//! with [`process::INSIDE`].

#![expect(clippy::disallowed_methods, reason = "processes, files and time are what is measured here")]

mod assemblies;
mod caching;
#[cfg(feature = "postgres")]
mod cluster;
mod critical_path;
mod inside;
mod large_log;
mod ledger;
mod locks;
mod log_lines;
mod manifests;
mod model_server;
mod models;
mod place;
mod playbooks;
mod process;
mod public_tool;
#[cfg(all(feature = "postgres", feature = "nats"))]
mod queue;
mod single_review;
mod sizes;
mod swarm;
mod sweep;
mod syncs;
mod table;
mod web;

use std::path::PathBuf;
use std::process::ExitCode;

use mimalloc::MiMalloc;
use place::Place;
use public_tool::PublicTool;
use table::Table;

/// The allocator of the binary.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Why something could not be measured.
type Failure = Box<dyn std::error::Error>;

/// One group of measurements.
type Step = fn(&mut Bench) -> Result<(), Failure>;

/// What all measurements share.
struct Bench {
    /// Where they put their files.
    place: Place,
    /// The program under measurement.
    quorate: PathBuf,
    /// The public tool, if `--peer` names one.
    public: Option<PublicTool>,
    table: Table,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|one| one != "--bench").collect();
    if let [first, rest @ ..] = &arguments[..]
        && first == process::INSIDE
    {
        return inside::main(rest);
    }
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<(), Failure> {
    let (peer, only) = match arguments {
        [flag, dir, only @ ..] if flag == "--peer" => (Some(PathBuf::from(dir)), only),
        only => (None, only),
    };
    let place = Place::new()?;
    let public = peer.map(|dir| PublicTool::new(&dir)).transpose()?;
    let quorate = PathBuf::from(env!("CARGO_BIN_EXE_quorate"));
    let mut bench = Bench { place, quorate, public, table: Table::default() };
    let steps = [
        ("review", single_review::measure as Step),
        ("critical-path", critical_path::measure),
        ("syncs", syncs::measure),
        ("log", large_log::measure),
        ("sweep", sweep::measure),
        ("swarm", swarm::measure),
        ("sizes", sizes::measure),
        ("manifests", manifests::measure),
        ("locks", locks::measure),
        ("assemblies", assemblies::measure),
        ("playbooks", playbooks::measure),
        ("ledger", ledger::measure),
        ("caching", caching::measure),
        ("models", models::measure),
        ("web", web::measure),
        #[cfg(feature = "postgres")]
        ("cluster", cluster::measure),
        #[cfg(all(feature = "postgres", feature = "nats"))]
        ("queue", queue::measure),
    ];
    if let Some(odd) = only.iter().find(|one| !steps.iter().any(|(name, _)| name == one)) {
        return Err(format!("there is no step `{odd}`: {}", steps.map(|(name, _)| name).join(", ")).into());
    }
    let before = load();
    for (_, step) in steps.iter().filter(|(name, _)| only.is_empty() || only.iter().any(|one| one == name)) {
        step(&mut bench)?;
    }
    if let (Some(before), Some(after)) = (before, load()) {
        let note = format!(
            "the machine's load was {before} before and {after} after; 1 is what this takes by itself"
        );
        bench.table.note(note);
    }
    print!("{}", bench.table);
    Ok(())
}

/// How many tasks wanted a processor in the last minute, where the system says.
fn load() -> Option<String> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next().map(str::to_owned)
}
