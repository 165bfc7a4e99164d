//! A database that fails over to a standby which takes every commit before it is acknowledged.

use std::process::Child;
use std::time::Duration;

use rustix::process::Signal;

use super::chaos::{command, machine, model};
use super::signal;
use crate::support::own_postgres::Server;
use crate::support::{TestDir, finish, wait_until};

const DRAFTS: usize = 30;
const WORKERS: usize = 2;

#[test]
fn a_failover_loses_nothing_that_was_acknowledged() {
    let Some(server) = Server::start() else { return };
    server.script("standby");
    let (model, calls) = model(|_| Duration::from_millis(150));
    let (queueing, places) = (machine(DRAFTS, 0), [(); WORKERS].map(|()| TestDir::new()));
    let start = |place: &TestDir, arguments: &[&str]| -> Child {
        command(place, arguments, (&model, 64), &server.url).spawn().unwrap()
    };
    finish(start(&queueing, &["sweep", "--since", "all", "--enqueue"])).assert_code(0);
    let working =
        places.each_ref().map(|place| start(place, &["worker", "--slots", "2", "--format", "json"]));
    let done = || server.column("SELECT run FROM task WHERE state = 'done'");
    wait_until(Duration::from_secs(60), "some are done", || done().len() >= 5);
    let before = done();
    server.script("failover");
    assert!(before.len() < DRAFTS, "there was more to do");
    let open = "SELECT CAST(COUNT(*) AS TEXT) FROM task WHERE state <> 'done'";
    wait_until(Duration::from_secs(120), "all are done", || server.count(open) == 0);
    let after = done();
    assert!(before.iter().all(|run| after.contains(run)));
    for child in working {
        signal(&child, Signal::TERM);
        finish(child).assert_code(0);
    }
    let outcomes = "SELECT CAST(COUNT(*) AS TEXT) FROM record WHERE kind = 'outcome'";
    assert_eq!(server.count(outcomes), DRAFTS, "each is decided once");
    // Calls in flight may be repeated, once for each slot of a worker.
    let asked = calls.lock().unwrap().len();
    assert!((DRAFTS * 7..=DRAFTS * 7 + WORKERS * 2 * 3).contains(&asked), "{asked} calls");
    for place in [&queueing, &places[0]] {
        finish(start(place, &["ledger", "verify"])).assert_code(0);
    }
}
