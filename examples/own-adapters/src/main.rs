//! Registers a substrate, a dispatcher and an executor of its own, and runs a manifest that names them.

mod parrot;
mod questions;
mod wall;

use std::sync::Arc;
use std::time::Duration;

use quorate::service::environment::Environment;
use quorate::service::host::Host;
use quorate::service::runtime::conversation::{ConversationReader, say};
use quorate::service::runtime::drive::{Until, drive};
use quorate::service::runtime::events::FanOut;
use quorate::service::runtime::{Request, open};
use quorate::service::workspace::PathOverrides;
use quorate_kernel::turn::Begin;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let host = Host::new()
        .with_substrate("wall", |_| Ok(Arc::new(wall::Wall::default())))
        .and_then(|host| host.with_dispatcher("questions", |_| Ok(Arc::new(questions::Questions))))
        .and_then(|host| host.with_executor("parrot", |_| Ok(Arc::new(parrot::Parrot))))
        .expect("nobody else has these kinds");
    let environment = Environment::from_process();
    let manifest = std::env::args().nth(1).expect("the manifest, as the only argument");
    let request = Request { path: manifest.into(), ..Request::default() };
    let ledger = std::env::temp_dir().join(format!("own-adapters-{}", std::process::id())).join("ledger.db");
    let places = PathOverrides { ledger: Some(ledger), ..PathOverrides::default() };
    let runtime = open(&environment, &places, &request, &host).expect("a manifest that holds");
    let ready = runtime.open_ledger().await.expect("a ledger");
    say(&ready.runtime, "Is anybody there?", "user").await.expect("a wall to write on");
    let (mut runner, _hold) = ready.runner(Begin::First, Arc::new(FanOut::default())).await.expect("a start");
    drive(&mut runner, Until::Idle, ready.runtime.wall, |_| {}).await.expect("a talk");
    runner.close(Duration::from_secs(1)).await.expect("records");
    for turn in ConversationReader::new(&ready.runtime).last(None).await.expect("turns") {
        println!("{}: {}", turn.participant, turn.content);
    }
}
