//! A worker and the database that do not reach each other any more, while the model that it asks answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use super::chaos::{command, machine, model, now_ms};
use super::{SOON, database, signal, wait};
use crate::support::proxy::{Forwarding, Proxy};
use crate::support::{TestDir, finish, wait_until};

/// How long a lease lasts, and how exactly a worker knows its end.
const LEASE_MS: i64 = 15_000;
const EXACT_MS: i64 = 1_000;
/// Reviews at once, each of which asks three members in a round.
const SLOTS: usize = 2;

#[test]
fn a_worker_that_is_parted_from_the_database_asks_until_its_leases_end_and_writes_nothing_then() {
    let Some(database) = database() else { return };
    let is_slow = Arc::new(AtomicBool::new(true));
    let pause = is_slow.clone();
    let (model, calls) = model(move |_| match pause.load(Ordering::SeqCst) {
        true => Duration::from_secs(5),
        false => Duration::from_millis(1),
    });
    let proxies = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let proxy = proxies.block_on(Proxy::of(&database.url));
    let (queueing, parted, other) = (machine(SLOTS, 0), TestDir::new(), TestDir::new());
    // One call at a time: the members of a round are asked one after another.
    let start = |place: &TestDir, arguments: &[&str], ledger: &str| {
        command(place, arguments, (&model, 1), ledger).spawn().unwrap()
    };
    finish(start(&queueing, &["sweep", "--since", "all", "--enqueue"], &database.url)).assert_code(0);
    let slots = SLOTS.to_string();
    let working = start(&parted, &["worker", "--slots", &slots, "--format", "json"], &proxy.url);
    wait_until(SOON, "it asks", || calls.lock().unwrap().len() == 2);
    proxy.set_forwarding(Forwarding::Nothing);
    let parted_ms = now_ms();
    std::thread::sleep(Duration::from_millis((LEASE_MS + 10_000).cast_unsigned()));
    let after = |ms: i64| calls.lock().unwrap().iter().filter(|(_, at_ms)| *at_ms > parted_ms + ms).count();
    assert!(calls.lock().unwrap().len() < SLOTS * 3, "there was more to ask");
    assert_eq!(after(LEASE_MS + EXACT_MS), 0, "it asks no longer than its leases last");
    // Another one ends the runs.
    is_slow.store(false, Ordering::SeqCst);
    let ended = finish(start(&other, &["worker", "--until-empty", "--format", "json"], &database.url));
    assert_eq!(ended.assert_code(0).stdout.matches("\"end\":\"done\"").count(), SLOTS);
    let records = || wait(database.count("record WHERE run <> 'ledger'"));
    let all = records();
    proxy.set_forwarding(Forwarding::All);
    std::thread::sleep(Duration::from_secs(3));
    signal(&working, Signal::TERM);
    let lines = finish(working).assert_code(0).stdout;
    let ends: Vec<String> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["end"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!((ends, records()), (vec!["lost".to_owned(); SLOTS], all));
    finish(start(&queueing, &["ledger", "verify"], &database.url)).assert_code(0);
}
