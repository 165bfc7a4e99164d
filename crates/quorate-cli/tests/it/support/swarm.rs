//! A runtime that says little, whose conversation and state are on a server, and the conformance suites over it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use quorate::{Conversation, NatsServers, Quorate, Trust};
use quorate_testkit::conformance::{state, substrate};
use serde_json::json;

use super::TestDir;

/// Where it is kept, and by which kinds.
#[derive(Clone)]
pub(crate) struct Swarm {
    pub(crate) substrate: &'static str,
    pub(crate) state: &'static str,
    /// `None` for a file of each machine's own.
    pub(crate) ledger: Option<PathBuf>,
    pub(crate) nats: Option<String>,
}

/// A workspace whose files are trusted.
pub(crate) fn workspace(place: &TestDir, nats: Option<String>, ledger: Option<PathBuf>) -> Quorate {
    let mut builder = Quorate::builder().workspace(place.root());
    builder = builder.state_dir(place.path("state")).trust(Trust::Workspace);
    if let Some(urls) = nats {
        builder = builder.nats(NatsServers { urls, credentials: None, inbox: None });
    }
    if let Some(ledger) = ledger {
        builder = builder.ledger(ledger);
    }
    builder.build().expect("a workspace")
}

impl Swarm {
    fn manifest(&self, conversation: &str) -> String {
        let Swarm { substrate, state, .. } = self;
        format!(
            "schema: agentruntimes/v1
kind: MultiAgentRuntime
id: there
participants:
  - {{id: ada, executor: script, displayName: Ada, config: {{path: answers.json}}}}
substrate: {{kind: {substrate}, conversation: {conversation}}}
dispatcher: {{kind: mention}}
state: {{kind: {state}}}
"
        )
    }

    /// A machine with the manifest `there.yaml`.
    pub(crate) fn machine(&self) -> TestDir {
        let answers = json!({"ada": {"content": "It holds.", "stateUpdate": {"seen": 1}}});
        let place = TestDir::with("answers.json", answers.to_string());
        place.write("there.yaml", self.manifest("there"));
        place
    }

    /// The conversation of a manifest, as another process opens it.
    pub(crate) fn open(&self, place: &TestDir, file: &str) -> Conversation {
        let quorate = workspace(place, self.nats.clone(), self.ledger.clone());
        quorate.conversation(place.path(file)).expect("a manifest that holds")
    }

    /// Holds the substrate against the port's contract.
    pub(crate) async fn check_substrate(&self) {
        let (made, place) = (AtomicUsize::new(0), Arc::new(self.machine()));
        substrate::all(|| {
            let n = made.fetch_add(1, Ordering::SeqCst);
            let file = format!("{n}.yaml");
            place.write(&file, self.manifest(&format!("talk {n}")));
            let handles = Handles::new(|| self.open(&place, &file).substrate().clone());
            Box::new(move || handles.next())
        })
        .await;
    }

    /// Holds the store of states against the port's contract.
    pub(crate) async fn check_state(&self) {
        let place = self.machine();
        let handles = Handles::new(|| self.open(&place, "there.yaml").states().clone());
        state::all(&move || handles.next()).await;
    }

    /// What several machines see of one conversation.
    pub(crate) fn check_machines(&self) {
        let run = |place: &TestDir, arguments: &[&str]| {
            let mut command = place.command(arguments);
            command.envs(self.ledger.iter().map(|ledger| ("QUORATE_LEDGER", ledger)));
            command.envs(self.nats.iter().map(|nats| ("QUORATE_NATS", nats)));
            super::finish(command.spawn().expect("the binary runs"))
        };
        // The first to speak makes what is not there.
        let (one, two) = (self.machine(), self.machine());
        run(&one, &["say", "there.yaml", "@Ada, does it?", "--as", "eve"]).assert_code(0);
        run(&two, &["run", "there.yaml"]).assert_code(0).assert_stdout_contains("It holds.");
        let log = run(&one, &["log", "there.yaml"]).assert_code(0);
        log.assert_stdout_contains("@Ada, does it?").assert_stdout_contains("It holds.");
        run(&one, &["state", "there.yaml", "ada"]).assert_code(0).assert_stdout_contains("\"seen\": 1");
        // Nothing is answered twice, wherever it is run.
        run(&one, &["run", "there.yaml"]).assert_code(0);
        assert_eq!(run(&two, &["log", "there.yaml"]).stdout.matches("It holds.").count(), 1);
        // A manifest from elsewhere must not read or write what others keep there.
        let mut command = one.command(&["log", "there.yaml"]);
        command.envs(self.ledger.iter().map(|ledger| ("QUORATE_LEDGER", ledger)));
        command.envs(self.nats.iter().map(|nats| ("QUORATE_NATS", nats))).env_remove("QUORATE_TRUST");
        let untrusted = super::finish(command.spawn().expect("the binary runs")).assert_code(5);
        untrusted
            .assert_stderr_contains("quorate:workspace_untrusted")
            .assert_stderr_contains("keep the conversation");
    }
}

/// A few openings in turn, each like another process with a connection of its own; the first to be used makes what is not
/// there.
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
