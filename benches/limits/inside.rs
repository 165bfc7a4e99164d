//! What is measured inside a process: indexing a log, looking up earlier verdicts in it, playbooks, and calls of models.
//! Says its number on standard output; times are in nanoseconds. It is also the server that answers these calls.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use quorate_ledger::Store;
use quorate_ledger::council_log::{self, priors};

use crate::log_lines::{TYPES, artifact_type};
use crate::{Failure, model_server, models, playbooks, process, web};

const LOOKUPS: usize = 200;

/// Is the process of its own.
pub(super) fn main(arguments: &[String]) -> ExitCode {
    let [what, dir] = arguments else { return ExitCode::FAILURE };
    let ledger = Path::new(dir).join("ledger.db");
    let log = Path::new(dir).join("council_log.jsonl");
    let dir = PathBuf::from(dir);
    let measured = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::from);
    let measured = measured.and_then(|runtime| match &**what {
        one if one.starts_with(playbooks::OURS) => {
            nanos(playbooks::inside(&one[playbooks::OURS.len()..], &dir))
        }
        one if one.starts_with(models::OURS) => {
            runtime.block_on(models::inside(&one[models::OURS.len()..], &dir))
        }
        model_server::SERVE => model_server::serve().map(|never| match never {}),
        web::GENERATE => nanos(runtime.block_on(web::generate(&dir))),
        "index" => nanos(runtime.block_on(index(&ledger, &log))),
        _ => nanos(runtime.block_on(lookup(&ledger, &log))),
    });
    match measured {
        Ok(number) => {
            println!("{number}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn nanos(took: Result<Duration, Failure>) -> Result<u64, Failure> {
    Ok(u64::try_from(took?.as_nanos())?)
}

async fn index(ledger: &Path, log: &Path) -> Result<Duration, Failure> {
    let store = Store::open(ledger).await?.store;
    let start = Instant::now();
    council_log::sync(&store, log).await?;
    let took = start.elapsed();
    store.close().await;
    Ok(took)
}

/// What a review does: holds the log against its index, then takes the newest verdicts of its type.
async fn lookup(ledger: &Path, log: &Path) -> Result<Duration, Failure> {
    let store = Store::open(ledger).await?.store;
    let mut all = Vec::with_capacity(LOOKUPS);
    for (_, number) in (0..LOOKUPS).zip((0..TYPES).cycle()) {
        let start = Instant::now();
        let indexed = council_log::sync(&store, log).await?;
        let found = priors::priors(&store, log, indexed, &artifact_type(number)).await?;
        all.push(start.elapsed());
        if found.len() != priors::LIMIT as usize {
            return Err(format!("{} verdicts were found, not {}", found.len(), priors::LIMIT).into());
        }
    }
    store.close().await;
    Ok(process::middle(all))
}
