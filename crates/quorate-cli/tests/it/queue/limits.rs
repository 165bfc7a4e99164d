//! What bounds the queue: people who pause it, tenants by turns, quotas of pools.

use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use super::{Database, Machine, SOON, database, signal, wait};
use crate::models::Model;
use crate::support::council::all_ship;
use crate::support::{finish, wait_until};

#[test]
fn people_pause_cancel_and_drain_the_queue() {
    let Some(database) = database() else { return };
    let machine = Machine::with_drafts(&database, 3);
    let files = machine.enqueue(&["--tenant", "blog"]);
    let run = |at: usize| files[at]["run"].as_str().unwrap();
    machine.run(&["queue", "cancel", run(0)]).assert_code(0);
    machine.run(&["queue", "cancel", run(0)]).assert_code(5).assert_stderr_contains("quorate:queue_busy");
    machine.run(&["queue", "cancel", "rnothing"]).assert_code(4);
    machine.run(&["queue", "pause", "--tenant", "blog"]).assert_code(0);
    let worker = Machine::new(&database, &all_ship(), "");
    // A worker does not wait for paused tasks.
    worker.run(&["worker", "--until-empty"]).assert_code(0);
    assert_eq!(machine.states(), ["cancelled", "ready", "ready"]);
    let child = worker.start(&["worker", "--format", "json"]);
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(machine.states(), ["cancelled", "ready", "ready"]);
    machine.run(&["queue", "pause", "--tenant", "blog", "--off"]).assert_code(0);
    wait_until(SOON, "both are done", || wait(database.count("task WHERE state = 'done'")) == 2);
    machine.run(&["queue", "drain", "--timeout", "20s"]).assert_code(0);
    machine.enqueue(&["--force"]);
    std::thread::sleep(Duration::from_millis(1_500));
    let status = machine.run(&["queue", "status", "--format", "json"]).assert_code(0).json();
    assert_eq!(status["paused"], true);
    let count = |tenant: &str, state: &str| {
        let all = status["tasks"].as_array().unwrap();
        all.iter()
            .find(|one| one["tenant"] == tenant && one["state"] == state)
            .map_or(0, |one| one["tasks"].as_u64().unwrap())
    };
    assert_eq!(
        (count("default", "ready"), count("blog", "done"), count("blog", "cancelled")),
        (3, 2, 1),
        "{status}"
    );
    signal(&child, Signal::TERM);
    finish(child).assert_code(0);
}

#[test]
fn tenants_are_served_by_turns_and_the_urgent_first() {
    let Some(database) = database() else { return };
    let many = Machine::with_drafts(&database, 8);
    many.enqueue(&["--tenant", "many", "--priority", "2"]);
    let few = Machine::with_drafts(&database, 2);
    few.enqueue(&["--tenant", "few"]);
    let urgent = Machine::with_drafts(&database, 9);
    let last = urgent.enqueue(&["--tenant", "many", "--priority", "0"]);
    assert_eq!(last.iter().filter(|file| file["fate"] == "queued").count(), 1);
    let worker = Machine::new(&database, &all_ship(), "");
    let ended = worker.work(&["--slots", "1"]);
    let tenants: Vec<&str> = ended.iter().map(|end| end["tenant"].as_str().unwrap()).collect();
    assert_eq!(tenants[..4].iter().filter(|tenant| **tenant == "few").count(), 2, "{tenants:?}");
    let first = ended.iter().find(|end| end["tenant"] == "many").unwrap();
    assert_eq!(first["subject"], "drafts/08.md", "{ended:?}");
    let other = worker.run(&["worker", "--until-empty", "--class", "large"]).assert_code(0);
    assert!(other.stdout.is_empty());
}

/// A worker that asks a model over HTTP.
fn with_model<'a>(database: &'a Database, model: &Model, more: &str) -> Machine<'a> {
    let machine = Machine::new(database, &all_ship(), "");
    machine.place.write(
        "quorate.toml",
        format!(
            "[defaults]\nexecutor = \"scripted\"\n[executors.scripted]\nkind = \"llm\"\nbase_url = \"{}\"\nmodel = \"m\"\n{more}\n",
            model.address
        ),
    );
    machine
}

#[test]
fn workers_share_one_quota_of_a_pool_and_one_wait() {
    let Some(database) = database() else { return };
    let machine = Machine::with_drafts(&database, 2);
    let asking = with_model(&database, &Model::start(1), "");
    asking.place.write("council.yaml", machine.place.read("council.yaml"));
    asking.place.write("drafts/a.md", "The meeting moved.\n");
    // A worker asks the model that its own table names.
    let named = asking.run(&["sweep", "--since", "all", "--enqueue", "--model", "--other"]);
    named.assert_code(64);
    let named = asking.run(&["sweep", "--since", "all", "--enqueue", "--model", "other"]);
    named.assert_code(5).assert_stderr_contains("quorate:queue_invalid");
    let model = Model::with_pause(64, Duration::ZERO);
    let workers = [with_model(&database, &model, ""), with_model(&database, &model, "")];
    machine.enqueue(&[]);
    assert_eq!(workers[0].work(&[]).len(), 2);
    let pools = machine.run(&["queue", "quota", "--format", "json"]).assert_code(0).json();
    let pool = pools["pools"][0]["pool"].as_str().expect("a worker has asked it").to_owned();
    assert_eq!(pools["pools"][0]["calls_per_hour"], json!(null));
    machine.run(&["queue", "quota", &pool, "--rate", "10/s", "--burst", "1"]).assert_code(0);
    machine.enqueue(&["--force"]);
    let before = model.requests().len();
    let began = Instant::now();
    let working: Vec<Child> =
        workers.iter().map(|worker| worker.start(&["worker", "--until-empty", "--slots", "1"])).collect();
    working.into_iter().for_each(|child| drop(finish(child).assert_code(0)));
    let calls = model.requests().len() - before;
    assert_eq!(calls, 18);
    // One call may have been saved up.
    assert!(began.elapsed() >= Duration::from_millis(1_700), "18 calls in {:?}", began.elapsed());

    for (rate, shown) in [("90/h", "90 an hour"), ("600/min", "10 a second"), ("7/min", "7 a minute")] {
        machine.run(&["queue", "quota", &pool, "--rate", rate]).assert_stdout_contains(shown);
    }
    machine.run(&["queue", "quota", &pool, "--rate", "0/h"]).assert_code(64);

    // A service that limits one worker has all of them wait.
    machine.run(&["queue", "quota", &pool, "--rate", "none"]).assert_code(0);
    let strict = Model::with_pause(1, Duration::from_millis(200));
    let worker = with_model(&database, &strict, "concurrency = 4");
    machine.enqueue(&["--force"]);
    let child = worker.start(&["worker", "--until-empty"]);
    wait_until(SOON, "all wait", || {
        wait(database.count("quota WHERE blocked_until_ms > EXTRACT(EPOCH FROM clock_timestamp()) * 1000"))
            == 1
    });
    signal(&child, Signal::KILL);
    finish(child);
}

#[test]
fn a_tenant_has_a_share_and_limits() {
    let Some(database) = database() else { return };
    let machine = Machine::with_drafts(&database, 6);
    machine.run(&["queue", "tenant", "blog", "--max-waiting", "5"]).assert_code(0);
    let sweep = ["sweep", "--since", "all", "--enqueue", "--tenant", "blog"];
    machine.run(&sweep).assert_code(5).assert_stderr_contains("quorate:queue_full");
    assert_eq!(wait(database.count("task")), 0);
    let changed = [
        "queue",
        "tenant",
        "blog",
        "--max-waiting",
        "none",
        "--max-running",
        "2",
        "--weight",
        "3",
        "--format",
        "json",
    ];
    let tenant = machine.run(&changed).assert_code(0).json();
    assert_eq!(tenant, json!({"name": "blog", "weight": 3, "max_running": 2, "max_waiting": null}));
    machine.run(&sweep).assert_code(0);
    Machine::with_drafts(&database, 6).enqueue(&["--tenant", "other"]);
    let slow = Machine::new(&database, &all_ship(), "delay = \"30s\"");
    let child = slow.start(&["worker", "--slots", "6"]);
    let leased =
        |tenant: &str| wait(database.count(&format!("task WHERE state = 'leased' AND tenant = '{tenant}'")));
    wait_until(SOON, "all slots are taken", || leased("blog") + leased("other") == 6);
    assert_eq!((leased("blog"), leased("other")), (2, 4));
    signal(&child, Signal::KILL);
    finish(child);
    wait(database.run("UPDATE lease SET until_ms = 0"));
    machine.run(&["queue", "tenant", "blog", "--max-running", "none"]).assert_code(0);
    let worker = Machine::new(&database, &all_ship(), "delay = \"30s\"");
    let child = worker.start(&["worker", "--slots", "8"]);
    wait_until(SOON, "all slots are taken", || leased("blog") + leased("other") == 8);
    signal(&child, Signal::KILL);
    finish(child);
    // Three times as many as the other's, over all that they were given.
    assert!(leased("blog") >= 5, "{} of blog, {} of the other", leased("blog"), leased("other"));
}

/// However many tasks one tenant has queued before, another one of the same weight waits for one of them before each of its
/// own: at most twice as long as alone.
#[test]
fn beside_a_flooding_tenant_another_waits_at_most_twice_as_long() {
    const OWN: usize = 4;
    let Some(database) = database() else { return };
    let (flooding, small) = (Machine::with_drafts(&database, 30), Machine::with_drafts(&database, 0));
    flooding.enqueue(&["--tenant", "flood"]);
    // The flood is already being worked on.
    let begun = flooding.start(&["worker", "--slots", "1", "--format", "json"]);
    wait_until(SOON, "some are done", || wait(database.count("task WHERE state = 'done'")) >= 3);
    signal(&begun, Signal::TERM);
    finish(begun).assert_code(0);
    // What was judged before would not be queued.
    for draft in 0..OWN {
        small
            .place
            .write(&format!("drafts/{draft:02}.md"), format!("Of {draft} others, none came on Friday.\n"));
    }
    small.enqueue(&["--tenant", "small"]);
    let ended = flooding.work(&["--slots", "1"]);
    let is_own = |end: &&serde_json::Value| end["tenant"] == "small";
    assert_eq!(ended.iter().filter(is_own).count(), OWN);
    let last = ended.iter().rposition(|end| is_own(&end)).expect("they are done");
    assert!(last < 2 * OWN, "the last of {OWN} was number {}: {ended:?}", last + 1);
    assert!(ended.len() >= 20, "the flood went on after them");
}
