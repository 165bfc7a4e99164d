//! Runtimes whose conversation and state are on NATS servers: the ports' contracts, over one server and over a cluster whose
//! leader crashes. Needs the servers that `scripts/services install nats` installs, in the folder `QUORATE_TEST_NATS`.

#![cfg(feature = "nats")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use nkeys::KeyPair;
use quorate_kernel::conversation::Turn;
use quorate_testkit::conformance::substrate::{answer, new_turn, read_all};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::support::nats::Nats;
use crate::support::swarm::Swarm;
use crate::support::{TestDir, finish};

fn swarm(nats: &Nats) -> Swarm {
    Swarm { substrate: "nats", state: "nats-kv", ledger: None, nats: Some(nats.url()) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_does_what_a_substrate_must() {
    let Some(nats) = Nats::with_streams(1) else { return };
    swarm(&nats).check_substrate().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn states_do_what_a_store_must() {
    let Some(nats) = Nats::with_streams(1) else { return };
    swarm(&nats).check_state().await;
}

#[test]
fn machines_share_a_conversation() {
    let Some(nats) = Nats::with_streams(1) else { return };
    swarm(&nats).check_machines();
}

/// Writers on a cluster whose leader crashes, twice: what was acknowledged is there once, in every writer's order, and a
/// reader that only waits and reads misses none of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_crash_of_the_leader_loses_and_doubles_nothing() {
    const WRITERS: usize = 3;
    let Some(mut nats) = Nats::with_streams(3) else { return };
    let swarm = swarm(&nats);
    let place = swarm.machine();
    let open = || swarm.open(&place, "there.yaml").substrate().clone();
    let trigger = open().append(new_turn("ann", "first")).await.expect("it can be appended").turn.id;
    let stop = Arc::new(AtomicBool::new(false));
    let counts = Arc::new([const { AtomicUsize::new(0) }; WRITERS]);
    let mut writing = JoinSet::new();
    for at in 0..WRITERS {
        let (handle, stop, trigger, counts) = (open(), stop.clone(), trigger.clone(), counts.clone());
        writing.spawn(async move {
            let mut appended = Vec::new();
            while !stop.load(Ordering::SeqCst) {
                // Every second one has a key, and is sent once more as after a restart.
                let author = format!("w{at}-{}", appended.len());
                let is_keyed = appended.len() % 2 == 0;
                let turn = if is_keyed { answer(&author, "yes", &trigger) } else { new_turn(&author, "yes") };
                let first = handle.append(turn.clone()).await.expect("it can be appended");
                assert!(first.fresh, "{author}");
                if is_keyed {
                    let again = handle.append(turn).await.expect("it can be appended");
                    assert!(!again.fresh && again.turn == first.turn, "{author}");
                }
                appended.push(first.turn);
                counts[at].store(appended.len(), Ordering::SeqCst);
                sleep(Duration::from_millis(20)).await;
            }
            appended
        });
    }
    let reader = open();
    let (ended, stopped) = (Arc::new(AtomicUsize::new(usize::MAX)), stop.clone());
    let total = ended.clone();
    let reading = tokio::spawn(async move {
        let mut seen: Vec<Turn> = Vec::new();
        while !stopped.load(Ordering::SeqCst) || seen.len() < total.load(Ordering::SeqCst) {
            reader.changed().await.expect("it can wait");
            let since = seen.last().map(|turn| turn.id.clone());
            seen.extend(reader.read(since.as_ref(), 50).await.expect("it can be read").turns);
        }
        seen
    });
    // Each writer appends this many more turns while all nodes are there, and without the leader.
    let all_go_on = async || {
        let before = counts.each_ref().map(|count| count.load(Ordering::SeqCst));
        while counts.iter().zip(before).any(|(count, before)| count.load(Ordering::SeqCst) < before + 5) {
            sleep(Duration::from_millis(20)).await;
        }
    };
    for _ in 0..2 {
        timeout(Duration::from_secs(60), all_go_on()).await.expect("the writers go on");
        let leader = leader(&nats).await;
        nats.crash_node(leader);
        timeout(Duration::from_secs(60), all_go_on()).await.expect("the writers go on without the leader");
        nats.start_node_again(leader);
    }
    stop.store(true, Ordering::SeqCst);
    let appended = writing.join_all().await;
    let all = read_all(&*open(), 100).await;
    ended.store(all.len(), Ordering::SeqCst);
    // Wakes the reader, should it have seen all already.
    open().append(new_turn("ann", "last")).await.expect("it can be appended");
    let seen = timeout(Duration::from_secs(30), reading).await.expect("it receives the rest").unwrap();
    assert_eq!(seen[..all.len()], all[..]);
    assert_eq!(all.len(), 1 + appended.iter().map(Vec::len).sum::<usize>(), "nothing is lost or there twice");
    for own in appended {
        let there: Vec<Turn> = all.iter().filter(|turn| own.contains(turn)).cloned().collect();
        assert_eq!(there, own);
    }
}

/// The node that leads the conversation's stream, as soon as there is one.
async fn leader(nats: &Nats) -> usize {
    let streams = async_nats::jetstream::new(connect(nats).await);
    for _ in 0..10 {
        // While the nodes elect one, a request is not answered.
        let Ok(stream) = streams.get_stream("q1-default-c-there").await else { continue };
        let info = stream.cached_info();
        assert_eq!(info.config.num_replicas, 3, "a cluster keeps three copies");
        let leader = info.cluster.as_ref().and_then(|cluster| cluster.leader.as_deref());
        match leader {
            Some(name) => return name.strip_prefix('n').unwrap().parse().unwrap(),
            None => sleep(Duration::from_millis(500)).await,
        }
    }
    panic!("no leader")
}

async fn connect(nats: &Nats) -> async_nats::Client {
    async_nats::ConnectOptions::with_user_and_password("ada".into(), "s3cret".into())
        .connect(nats.url().split(',').collect::<Vec<_>>())
        .await
        .unwrap()
}

/// Messages of other programs on a conversation's subjects change no turn; invalid ones are ignored.
#[tokio::test(flavor = "multi_thread")]
async fn messages_that_are_no_turns_are_passed_over() {
    let Some(nats) = Nats::with_streams(1) else { return };
    let swarm = swarm(&nats);
    let substrate = swarm.open(&swarm.machine(), "there.yaml").substrate().clone();
    let first = substrate.append(new_turn("ann", "first")).await.unwrap().turn;
    let streams = async_nats::jetstream::new(connect(&nats).await);
    let head = |fields: &str| format!("{{\"meta\":{{}},\"added_as\":\"x\",{fields}}}\nhello");
    let long = format!(
        "{}{}",
        head("\"participant\":\"eve\",\"timestamp\":\"2026-05-18T18:23:11.504Z\""),
        "x".repeat(300_000)
    );
    for (at, payload) in [
        "",
        "\n",
        "hello",
        "{}\n",
        "[1]\nhello",
        "\u{feff}{}\n",
        &*head("\"participant\":\"e v e\",\"timestamp\":\"2026-05-18T18:23:11.504Z\""),
        &head("\"participant\":\"eve\",\"timestamp\":\"now\""),
        &head("\"participant\":\"\",\"timestamp\":\"2026-05-18T18:23:11.504Z\""),
        &long,
    ]
    .into_iter()
    .enumerate()
    {
        let sent =
            streams.publish(format!("q1.default.c.there.forged-{at}"), payload.to_owned().into()).await;
        sent.unwrap().await.unwrap();
    }
    let second = substrate.append(new_turn("ann", "second")).await.unwrap().turn;
    assert_eq!(read_all(&*substrate, 3).await, [first.clone(), second.clone()]);
    assert_eq!(substrate.window(&second.id, 2).await.unwrap(), [first.clone(), second.clone()]);
    assert_eq!(substrate.window(&second.id, 1).await.unwrap(), std::slice::from_ref(&second));
    // The number in an id is not believed.
    let (hash, _) = second.id.rsplit_once('_').unwrap();
    for unknown in [format!("{hash}_1"), format!("{hash}_3"), format!("{hash}_x"), "t_0".to_owned()] {
        let page = substrate.read(Some(&unknown.as_str().into()), 9).await.unwrap();
        assert!(!page.known && page.turns.len() == 2, "{unknown}");
    }
    // A turn whose subject another message occupies is refused, and not reported as appended.
    let turn = answer("bea", "yes", &first.id);
    let key = quorate_kernel::entropy::sha256_hex(turn.stamp.as_ref().unwrap().key.as_bytes());
    streams.publish(format!("q1.default.c.there.{key}"), "taken".into()).await.unwrap().await.unwrap();
    let refused = substrate.append(turn).await.unwrap_err();
    assert!(refused.to_string().contains("not a turn in the turn's place"), "{refused}");
}

/// A user with the rights that the documentation names, and answers on subjects of its own.
#[test]
fn few_rights_are_enough() {
    let Some(nats) = Nats::with_streams(1) else { return };
    let place = swarm(&nats).machine();
    let run = |arguments: &[&str]| {
        let mut command = place.command(arguments);
        command
            .env("QUORATE_NATS", nats.url().replace("ada", "cleo"))
            .env("QUORATE_NATS_INBOX", "_INBOX_cleo");
        finish(command.spawn().unwrap()).assert_code(0)
    };
    run(&["run", "there.yaml", "--say", "@Ada, does it?", "--as", "eve"]).assert_stdout_contains("It holds.");
    run(&["state", "there.yaml", "ada"]).assert_stdout_contains("\"seen\": 1");
    run(&["log", "there.yaml"]).assert_stdout_contains("@Ada, does it?");
}

/// A `.creds` file as the tools of NATS write it: a token that the account has signed, and the user's key.
#[test]
fn a_creds_file_signs_in() {
    let [operator, account, user, stranger] =
        [KeyPair::new_operator(), KeyPair::new_account(), KeyPair::new_user(), KeyPair::new_user()];
    let token = |issuer: &KeyPair, subject: &KeyPair, nats: serde_json::Value| {
        let head = json!({"typ": "JWT", "alg": "ed25519-nkey"});
        let claims = json!({
            "jti": subject.public_key(), "iat": 1_700_000_000, "iss": issuer.public_key(), "name": "test",
            "sub": subject.public_key(), "nats": nats,
        });
        let signed = [head, claims].map(|part| BASE64.encode(part.to_string())).join(".");
        format!("{signed}.{}", BASE64.encode(issuer.sign(signed.as_bytes()).unwrap()))
    };
    let unlimited = json!({
        "subs": -1, "conn": -1, "leaf": -1, "imports": -1, "exports": -1, "data": -1, "payload": -1, "wildcards": true,
    });
    let users = format!(
        "operator: {}\nresolver: MEMORY\nresolver_preload: {{ {}: {} }}\n",
        token(&operator, &operator, json!({"type": "operator", "version": 2})),
        account.public_key(),
        token(&operator, &account, json!({"type": "account", "version": 2, "limits": unlimited})),
    );
    let Some(nats) = Nats::with_users(&users) else { return };
    let of_user = json!({"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1});
    let creds = |key: &KeyPair| {
        format!(
            "-----BEGIN NATS USER JWT-----\n{}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
            token(&account, &user, of_user.clone()),
            key.seed().unwrap()
        )
    };
    let place = TestDir::with("ada.creds", creds(&user));
    // The token alone is not enough.
    place.write("stolen.creds", creds(&stranger));
    let url = format!("nats://127.0.0.1:{}", nats.port());
    let checked = |file: &str| {
        let checked =
            place.run(&["doctor", "--events", &url, "--events-creds", file, "--format", "json"]).json();
        let checks = checked["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|check| check["name"] == "events").unwrap()
    };
    let good = checked("ada.creds");
    assert!(good["state"] == "good" && good["detail"].as_str().unwrap().contains("came back in"), "{good}");
    assert_eq!(checked("stolen.creds")["state"], "bad");
}

/// Servers that cannot keep a conversation are refused, with what to do.
#[tokio::test(flavor = "multi_thread")]
async fn servers_that_cannot_keep_it_are_refused() {
    let (Some(nats), Some(without)) = (Nats::with_streams(1), Nats::start()) else { return };
    let refusal = async |nats: Option<String>| {
        let swarm = Swarm { nats, ..swarm(&without) };
        let substrate = swarm.open(&swarm.machine(), "there.yaml").substrate().clone();
        let error = substrate.append(new_turn("ann", "hello")).await.unwrap_err();
        std::error::Error::source(&error).expect("a reason").to_string()
    };
    assert!(refusal(Some(without.url())).await.contains("has no JetStream"));
    let wrong = nats.url().replace("s3cret", "gue55");
    let refused = refusal(Some(wrong)).await;
    assert!(refused.contains("authorization violation") && !refused.contains("gue55"), "{refused}");
    // A stream that might lose turns.
    let streams = async_nats::jetstream::new(connect(&nats).await);
    let config = async_nats::jetstream::stream::Config {
        name: "q1-default-c-there".to_owned(),
        subjects: vec!["q1.default.c.there.*".to_owned()],
        max_age: Duration::from_secs(60),
        deny_delete: true,
        ..Default::default()
    };
    streams.create_stream(config).await.unwrap();
    let refused = refusal(Some(nats.url())).await;
    assert!(refused.contains("has other settings than Quorate gives it: its retention"), "{refused}");
}

/// A manifest names no address: without one it says what is missing, and no password is shown.
#[test]
fn without_servers_it_says_what_is_missing() {
    let swarm = Swarm { substrate: "nats", state: "nats-kv", ledger: None, nats: None };
    let place = swarm.machine();
    let refused = place.run(&["say", "there.yaml", "hello"]).assert_code(5);
    refused.assert_stderr_contains("quorate:adapter_invalid").assert_stderr_contains("QUORATE_NATS");
    let began = std::time::Instant::now();
    let mut command = place.command(&["say", "there.yaml", "hello"]);
    let away = finish(command.env("QUORATE_NATS", "nats://127.0.0.1:9").spawn().unwrap()).assert_code(5);
    away.assert_stderr_contains("quorate:substrate_unavailable").assert_stderr_contains("nats://127.0.0.1:9");
    assert!(began.elapsed() < Duration::from_secs(20), "an address that may be wrong is not waited for");
    for (nats, says) in [("http://ada:s3cret@127.0.0.1", "nats://"), ("nats://", "no host")] {
        let mut command = place.command(&["say", "there.yaml", "hello"]);
        let refused = finish(command.env("QUORATE_NATS", nats).spawn().unwrap()).assert_code(5);
        refused.assert_stderr_contains("quorate:adapter_invalid").assert_stderr_contains(says);
        assert!(!refused.stderr.contains("s3cret"), "{}", refused.stderr);
    }
}
