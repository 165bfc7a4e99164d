//! Runtimes whose conversation and state are in the ledger's database: the ports' contracts, and a conversation that several
//! machines take part in. Needs the server that `scripts/services start postgres` starts, named by
//! `QUORATE_TEST_POSTGRES`.

#![cfg(feature = "postgres")]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support;
use crate::support::postgres::Database;
use crate::support::proxy::{Forwarding, Proxy};
use quorate::service::environment::Environment;
use quorate::service::host::Host;
use quorate::service::runtime::{Request, Runtime, open};
use quorate::service::workspace::PathOverrides;
use quorate_testkit::conformance::substrate::{answer, new_turn, read_all};
use quorate_testkit::conformance::{state, substrate};
use serde_json::json;
use support::TestDir;

/// A runtime that says little, with its conversation and state in the ledger's database.
fn manifest(substrate: &str) -> String {
    format!(
        "schema: agentruntimes/v1
kind: MultiAgentRuntime
id: there
participants:
  - {{id: ada, executor: script, displayName: Ada, config: {{path: answers.json}}}}
substrate: {substrate}
dispatcher: {{kind: mention}}
state: {{kind: postgres}}
"
    )
}

fn machine() -> TestDir {
    let answers = json!({"ada": {"content": "It holds.", "stateUpdate": {"seen": 1}}});
    let place = TestDir::with("answers.json", answers.to_string());
    place.write("there.yaml", manifest("{kind: postgres}"));
    place
}

fn runtime(place: &TestDir, file: &str, ledger: &str) -> Runtime {
    let environment = Environment {
        state_dir: Some(place.path("state")),
        trust: quorate::service::trust::Trust::default().trusting_all(),
        ..Environment::new(place.root())
    };
    let places = PathOverrides { ledger: Some(PathBuf::from(ledger)), ..PathOverrides::default() };
    let request = Request { path: place.path(file), ..Request::default() };
    open(&environment, &places, &request, &Host::new()).expect("a manifest that holds")
}

/// A few openings in turn, each like another process with a connection of its own; the first to be used makes the tables.
struct Handles<Port: ?Sized> {
    all: [Arc<Port>; 4],
    last: AtomicUsize,
}

impl<Port: ?Sized> Handles<Port> {
    fn new(open: impl Fn() -> Arc<Port>) -> Self {
        Handles { all: std::array::from_fn(|_| open()), last: AtomicUsize::new(0) }
    }

    fn next(&self) -> Arc<Port> {
        self.all[self.last.fetch_add(1, Ordering::SeqCst) % self.all.len()].clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_does_what_a_substrate_must() {
    let Some(database) = Database::new().await else { return };
    let (made, place) = (AtomicUsize::new(0), Arc::new(machine()));
    substrate::all(|| {
        let n = made.fetch_add(1, Ordering::SeqCst);
        let (place, url, file) = (place.clone(), database.url.clone(), format!("{n}.yaml"));
        place.write(&file, manifest(&format!("{{kind: postgres, conversation: talk {n}}}")));
        let handles = Handles::new(|| runtime(&place, &file, &url).substrate);
        Box::new(move || handles.next())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn states_do_what_a_store_must() {
    let Some(database) = Database::new().await else { return };
    let place = machine();
    let handles = Handles::new(|| runtime(&place, "there.yaml", &database.url).state);
    state::all(&move || handles.next()).await;
}

/// A connection that is lost before the statement or before its answer: the turn is there once, and is the caller's.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_whose_answer_is_lost_is_there_once() {
    let Some(database) = Database::new().await else { return };
    let (proxy, place) = (Proxy::of(&database.url).await, machine());
    let one = runtime(&place, "there.yaml", &proxy.url).substrate;
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
    let other = runtime(&place, "there.yaml", &database.url).substrate;
    for _ in 0..3 {
        database.terminate_others().await;
        other.append(new_turn("eve", "hello")).await.expect("it can be appended");
        database.terminate_others().await;
        count += 1;
        assert_eq!(read_all(&*one, 100).await.len(), count);
    }
}

#[test]
fn machines_share_a_conversation() {
    let runs = tokio::runtime::Runtime::new().unwrap();
    let Some(database) = runs.block_on(Database::new()) else { return };
    let run = |place: &TestDir, arguments: &[&str]| {
        let mut command = place.command(arguments);
        command.env("QUORATE_LEDGER", &database.url);
        support::finish(command.spawn().expect("the binary runs"))
    };
    // The first to speak makes the tables.
    let (one, two) = (machine(), machine());
    run(&one, &["say", "there.yaml", "@Ada, does it?", "--as", "eve"]).assert_code(0);
    run(&two, &["run", "there.yaml"]).assert_code(0).assert_stdout_contains("It holds.");
    let log = run(&one, &["log", "there.yaml"]).assert_code(0);
    log.assert_stdout_contains("@Ada, does it?").assert_stdout_contains("It holds.");
    run(&one, &["state", "there.yaml", "ada"]).assert_code(0).assert_stdout_contains("\"seen\": 1");
    // Nothing is answered twice, wherever it is run.
    run(&one, &["run", "there.yaml"]).assert_code(0);
    assert_eq!(run(&two, &["log", "there.yaml"]).stdout.matches("It holds.").count(), 1);
}

/// The address is the ledger's: a manifest names none, and says what is missing where the ledger is a file.
#[test]
fn without_a_server_it_says_what_is_missing() {
    let place = machine();
    let refused = place.run(&["say", "there.yaml", "hello"]).assert_code(5);
    refused
        .assert_stderr_contains("quorate:adapter_invalid")
        .assert_stderr_contains("the ledger is not in a Postgres database")
        .assert_stderr_contains("--ledger postgres://");
    place.write("there.yaml", manifest("{kind: postgres, url: \"postgres://elsewhere/q\"}"));
    place.run(&["say", "there.yaml", "hello"]).assert_code(5).assert_stderr_contains("`url`");
}
