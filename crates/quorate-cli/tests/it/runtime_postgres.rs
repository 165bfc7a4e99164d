//! Runtimes whose conversation and state are in the ledger's database: the ports' contracts, and a conversation that several
//! machines take part in. Needs the server that `scripts/services start postgres` starts, named by
//! `QUORATE_TEST_POSTGRES`.

#![cfg(feature = "postgres")]

use crate::support::postgres::Database;
use crate::support::proxy::{Forwarding, Proxy};
use crate::support::swarm::Swarm;
use quorate_testkit::conformance::substrate::{answer, new_turn, read_all};

fn swarm(ledger: &str) -> Swarm {
    Swarm { substrate: "postgres", state: "postgres", ledger: Some(ledger.into()), nats: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_does_what_a_substrate_must() {
    let Some(database) = Database::new().await else { return };
    swarm(&database.url).check_substrate().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn states_do_what_a_store_must() {
    let Some(database) = Database::new().await else { return };
    swarm(&database.url).check_state().await;
}

#[test]
fn machines_share_a_conversation() {
    let runs = tokio::runtime::Runtime::new().unwrap();
    let Some(database) = runs.block_on(Database::new()) else { return };
    swarm(&database.url).check_machines();
}

/// A connection that is lost before the statement or before its answer: the turn is there once, and is the caller's.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_whose_answer_is_lost_is_there_once() {
    let Some(database) = Database::new().await else { return };
    let proxy = Proxy::of(&database.url).await;
    let swarm = |url: &str| {
        let swarm = swarm(url);
        swarm.open(&swarm.machine(), "there.yaml").substrate().clone()
    };
    let one = swarm(&proxy.url);
    let trigger = one.append(new_turn("ann", "first")).await.expect("it can be appended").turn.id;
    // The proxy recognizes a turn by what is in it.
    let marked = "with \"data_sha256\" in it";
    let mut count = 1;
    for (n, lets) in [Forwarding::CutAfterRecord, Forwarding::CutBeforeRecord].into_iter().enumerate() {
        for turn in [new_turn("ann", marked), answer(&format!("bea{n}"), marked, &trigger)] {
            proxy.set_forwarding(lets);
            let appended = one.append(turn.clone()).await.expect("it is tried again");
            assert!(appended.fresh, "{lets:?}");
            count += 1;
            let all = read_all(&*one, 100).await;
            assert_eq!(all.len(), count, "{lets:?}");
            assert_eq!(all.last(), Some(&appended.turn));
            let again = one.append(turn).await.expect("it can be appended");
            assert_eq!(again.fresh, again.turn.stamp.is_none(), "what has a key is taken once");
            count += usize::from(again.fresh);
        }
    }
    // A server that ends connections, as at its restart, is connected to again.
    let other = swarm(&database.url);
    for _ in 0..3 {
        database.terminate_others().await;
        other.append(new_turn("eve", "hello")).await.expect("it can be appended");
        database.terminate_others().await;
        count += 1;
        assert_eq!(read_all(&*one, 100).await.len(), count);
    }
}

/// The address is the ledger's: a manifest names none, and says what is missing where the ledger is a file.
#[test]
fn without_a_server_it_says_what_is_missing() {
    let here = Swarm { ledger: None, ..swarm("") };
    let place = here.machine();
    let refused = place.run(&["say", "there.yaml", "hello"]).assert_code(5);
    refused
        .assert_stderr_contains("quorate:adapter_invalid")
        .assert_stderr_contains("the ledger is not in a Postgres database")
        .assert_stderr_contains("--ledger postgres://");
    let manifest = place.read("there.yaml").replace("conversation: there", "url: \"postgres://elsewhere/q\"");
    place.write("there.yaml", manifest);
    place.run(&["say", "there.yaml", "hello"]).assert_code(5).assert_stderr_contains("`url`");
}
