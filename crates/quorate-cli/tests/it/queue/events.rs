//! Events of runs over NATS: what workers say, what watchers hear, and that nothing depends on it. Needs a NATS server, too:
//! `scripts/services install nats` prints the folder that `QUORATE_TEST_NATS` takes.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};

use futures::StreamExt as _;
use quorate::NatsServers;
use quorate::cluster::nats::{Heard, NatsEvents, NatsOptions};
use quorate::measured::CommitEvents;
use serde_json::{Value, json};

use super::*;
use crate::support::nats::Nats;
use crate::support::said::Said;

async fn connect(nats: &str) -> async_nats::Client {
    async_nats::ConnectOptions::with_user_and_password("ada".into(), "s3cret".into())
        .connect(nats)
        .await
        .unwrap()
}

fn command_with_events(machine: &Machine<'_>, arguments: &[&str], events: &str) -> Command {
    let mut command = machine.place.command(arguments);
    command.env("QUORATE_LEDGER", &machine.database.url).env("QUORATE_TRUST", "1");
    command.env("QUORATE_NATS", events);
    command
}

fn said_by(machine: &Machine<'_>, arguments: &[&str], events: &str) -> Said {
    Said::start(command_with_events(machine, arguments, events))
}

/// Reads events until so many runs have ended.
fn until_ended(said: &Said, runs: usize) -> Vec<Value> {
    let (mut events, mut ended) = (Vec::new(), 0);
    while ended < runs {
        let line = said.stdout.recv_timeout(SOON).expect("an event");
        let event: Value = serde_json::from_str(&line).unwrap();
        ended += usize::from(event["kind"] == "ended");
        events.push(event);
    }
    events
}

/// Subscribes to everything, as another program would, until the receiver is dropped; returns once it is subscribed.
fn listen(url: &str) -> Receiver<(String, Vec<u8>)> {
    let (sender, receiver) = channel();
    let (url, (ready, is_ready)) = (url.to_owned(), channel());
    std::thread::spawn(move || {
        wait(async {
            let client = connect(&url).await;
            let mut messages = client.subscribe(">").await.unwrap();
            client.flush().await.unwrap();
            ready.send(()).unwrap();
            while let Some(message) = messages.next().await {
                if sender.send((message.subject.to_string(), message.payload.to_vec())).is_err() {
                    return;
                }
            }
        });
    });
    is_ready.recv_timeout(SOON).unwrap();
    receiver
}

#[test]
fn watchers_hear_of_every_record_and_believe_the_ledger_alone() {
    let (Some(database), Some(nats)) = (database(), Nats::start()) else { return };
    let machine = Machine::with_drafts(&database, 2);
    machine.enqueue(&["--tenant", "acme.eu"]);
    let heard = listen(&nats.url());
    let mut watching = said_by(&machine, &["watch", "--all", "--format", "json"], &nats.url());
    watching.wait_for("following every run");
    // Messages from any client: without a run, of an unknown run, invalid JSON, too long.
    wait(async {
        let client = connect(&nats.url()).await;
        let forged =
            json!({"run": "rforged", "n": 0, "kind": "run.ended", "at": "2026-01-01T00:00:00Z"}).to_string();
        let long = format!("{{\"run\": \"{}\"}}", "r".repeat(200_000));
        for payload in ["", "null", "[[[", "{\"run\": 1}", &forged, &long] {
            client.publish("q1.acme/eu.ev.run.rforged", payload.to_owned().into()).await.unwrap();
        }
        client.flush().await.unwrap();
    });
    let worker = Machine::new(&database, &all_ship(), "");
    let mut working = said_by(&worker, &["worker", "--until-empty"], &nats.url());
    let events = until_ended(&watching, 2);
    working.wait_for("2 tasks done");
    watching.stop();

    // The watcher shows the runs as the ledger has them, and nothing else.
    let mut of_runs: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for event in &events {
        of_runs.entry(event["run"].as_str().unwrap()).or_default().push(event);
    }
    let listed = machine.run(&["runs", "--format", "json"]).assert_code(0).json();
    let runs: Vec<&str> =
        listed["runs"].as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap()).collect();
    assert_eq!((of_runs.len(), runs.len()), (2, 2), "{events:?}");
    for run in &runs {
        let again = machine.run(&["watch", run, "--format", "json"]).assert_code(0);
        let again: Vec<Value> =
            again.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(again.iter().collect::<Vec<_>>(), of_runs[run]);
    }
    // What was sent names each record of the runs once, in order, and nothing of their texts.
    let mut sent: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (subject, payload) in heard.try_iter() {
        if !subject.ends_with("rforged") {
            sent.entry(subject).or_default().push(serde_json::from_slice(&payload).unwrap());
        }
    }
    assert_eq!(sent.len(), 2, "{sent:?}");
    for run in &runs {
        let of_run = "SELECT n || ' ' || kind FROM record WHERE run = ";
        let records = wait(database.column(&format!("{of_run}'{run}' ORDER BY n")));
        let sent = &sent[&format!("q1.acme/eu.ev.run.{run}")];
        let named = |event: &Value| format!("{} {}", event["n"], event["kind"].as_str().unwrap());
        assert_eq!(sent.iter().map(named).collect::<Vec<_>>(), records);
        for event in sent {
            let keys: Vec<&str> = event.as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!((keys, event["run"].as_str()), (vec!["at", "kind", "n", "run"], Some(*run)));
        }
    }
}

#[test]
fn workers_are_told_of_new_tasks() {
    let (Some(database), Some(nats)) = (database(), Nats::start()) else { return };
    let machine = Machine::with_drafts(&database, 2);
    let (url, sent) = (nats.url(), listen(&nats.url()));
    let enqueue = || {
        let arguments = ["sweep", "--since", "all", "--enqueue", "--tenant", "acme.eu"];
        let done = command_with_events(&machine, &arguments, &url).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    enqueue();
    // Nothing new is queued, and nothing said.
    enqueue();
    assert_eq!(sent.try_iter().collect::<Vec<_>>(), [("q1.acme/eu.ev.queue".to_owned(), Vec::new())]);

    // Without this a worker would look again after an hour.
    let (ready, is_ready) = channel();
    let servers = NatsServers { urls: url.clone(), credentials: None, inbox: None };
    let told = std::thread::spawn(move || {
        wait(async {
            let events = CommitEvents::default();
            let options = NatsOptions { servers, publishes: false, listens: Some(Heard::Tasks) };
            let connected = NatsEvents::connect(&events, &options).await.unwrap();
            let mut reader = events.reader(Duration::from_secs(3_600));
            ready.send(()).unwrap();
            reader.wait_for_tasks().await;
            connected.close().await;
        });
    });
    is_ready.recv_timeout(SOON).unwrap();
    let mut number = 2;
    // The first event may reach the server before the subscription.
    wait_until(SOON, "the worker is told", || {
        machine.place.write(&format!("drafts/{number:02}.md"), format!("Number {number}.\n"));
        number += 1;
        enqueue();
        told.is_finished()
    });
    told.join().unwrap();

    // Without servers it is queued all the same, and found.
    drop(nats);
    machine.place.write("drafts/last.md", "The last one.\n");
    enqueue();
    let worker = Machine::new(&database, &all_ship(), "");
    assert_eq!(worker.work(&[]).len(), number + 1);
}

#[test]
fn runs_go_on_and_are_followed_while_nats_is_away() {
    let (Some(database), Some(mut nats)) = (database(), Nats::start()) else { return };
    nats.crash();
    let machine = Machine::with_drafts(&database, 0);
    machine.run(&["doctor"]);
    let enqueue = |name: &str| {
        machine.place.write(&format!("drafts/{name}.md"), format!("The meeting moved to {name}.\n"));
        machine.enqueue(&[]);
    };
    let worker = Machine::new(&database, &all_ship(), "");
    let mut watching = said_by(&machine, &["watch", "--all", "--format", "json"], &nats.url());
    let mut working = said_by(&worker, &["worker"], &nats.url());
    for said in [&mut watching, &mut working] {
        let away = said.wait_for("does not answer");
        assert!(away.contains(&format!("nats://127.0.0.1:{} does not", nats.port())), "{away}");
    }
    watching.wait_for("following every run");
    enqueue("monday");
    until_ended(&watching, 1);
    nats.start_again();
    for said in [&mut watching, &mut working] {
        said.wait_for("answers again");
    }
    let heard = listen(&nats.url());
    enqueue("tuesday");
    until_ended(&watching, 1);
    wait_until(SOON, "the worker tells again", || heard.try_recv().is_ok());
    nats.crash();
    for said in [&mut watching, &mut working] {
        said.wait_for("does not answer (the connection was lost)");
    }
    enqueue("friday");
    until_ended(&watching, 1);
    watching.stop();
    working.stop();
    machine.run(&["ledger", "verify"]).assert_code(0);
}

#[test]
fn a_user_who_may_not_listen_is_told_and_follows_runs_all_the_same() {
    let (Some(database), Some(nats)) = (database(), Nats::start()) else { return };
    let machine = Machine::with_drafts(&database, 1);
    machine.enqueue(&[]);
    let deaf = nats.url().replace("ada", "bob");
    let mut watching = said_by(&machine, &["watch", "--all", "--format", "json"], &deaf);
    watching.wait_for("refuses events: Permissions Violation for Subscription");
    let worker = Machine::new(&database, &all_ship(), "");
    assert_eq!(worker.work(&["--events", &nats.url()]).len(), 1);
    until_ended(&watching, 1);
    watching.stop();
}

#[test]
fn servers_that_cannot_be_used_are_refused_before_anything_is_done() {
    let (Some(database), Some(nats)) = (database(), Nats::start()) else { return };
    let machine = Machine::with_drafts(&database, 1);
    machine.enqueue(&[]);
    let wrong = nats.url().replace("s3cret", "gue55");
    let plain = nats.url().replace("nats:", "tls:");
    for url in [&*wrong, &plain, "http://127.0.0.1:1", "127.0.0.1:1", "nats://"] {
        for command in [&["watch", "--all"][..], &["worker", "--until-empty"], &["serve"]] {
            let refused = machine.run(&[command, &["--events", url]].concat()).assert_code(5);
            assert!(refused.stderr.contains("quorate:nats_unusable"), "{refused:?}");
            assert!(!refused.stderr.contains("gue55") && !refused.stderr.contains("s3cret"), "{refused:?}");
        }
    }
    let checked = |url: &str| {
        let checked = machine.run(&["doctor", "--events", url, "--format", "json"]).json();
        let checks = checked["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|check| check["name"] == "events").unwrap()
    };
    assert_eq!(checked(&wrong)["state"], "bad");
    let good = checked(&nats.url());
    assert!(
        good["state"] == "good" && good["detail"].as_str().unwrap().contains("an event came back in"),
        "{good}"
    );
    let missing = ["watch", "--all", "--events", &nats.url(), "--events-creds", "none.creds"];
    let refused = machine.run(&missing).assert_code(5);
    assert!(refused.stderr.contains("none.creds"), "{refused:?}");
    assert_eq!(machine.states(), ["ready"]);
}
