//! A participant that another machine answers for, over NATS: it is asked once, whatever is lost, killed or interrupted on the
//! way. Needs the servers that `scripts/services install nats` installs, in the folder `QUORATE_TEST_NATS`.

#![cfg(feature = "nats")]

use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;

use quorate_adapters::default_registry;
use quorate_adapters::executor::remote::server::{Served, serve};
use quorate_adapters::nats::{Address, SharedNats};
use quorate_kernel::attempts::MemberConfig;
use quorate_kernel::conversation::Participant;
use quorate_kernel::ports::executor::{Failure, Servers, Settings};
use quorate_kernel::redact::Redactor;
use quorate_testkit::conformance::executor;
use rustix::process::Signal;
use serde_json::json;

use crate::support::nats::Nats;
use crate::support::said::Said;
use crate::support::shell::running_commands;
use crate::support::{CommandOutput, TestDir, finish, wait_until};

const SOON: Duration = Duration::from_secs(20);

const MANIFEST: &str = "schema: agentruntimes/v1
kind: MultiAgentRuntime
id: there
participants:
  - {id: ada, executor: remote, displayName: Ada, config: {answer: json}}
substrate: {kind: file, path: talk.md}
dispatcher: {kind: mention}
";

/// A machine with the shared manifest.
struct Machine<'a> {
    place: TestDir,
    nats: &'a Nats,
}

impl Machine<'_> {
    fn new(nats: &Nats) -> Machine<'_> {
        Machine { place: TestDir::with("there.yaml", MANIFEST), nats }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.place.command(arguments);
        command.env("QUORATE_NATS", self.nats.url()).env("QUORATE_TRUST", "1");
        command
    }

    fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments).spawn().expect("the binary runs")
    }

    fn run(&self, arguments: &[&str]) -> CommandOutput {
        finish(self.start(arguments))
    }

    /// Answers for ada by a command that takes some time and notes that it was begun, and that it has ended.
    fn serve(&self, seconds: u32) -> Said {
        let answer = json!({"content": "It holds.", "meta": {"sure": true}, "stateUpdate": {"seen": 1}});
        let script = format!(
            "cat > prompt\necho begun >> calls\nsleep {seconds}\necho ended >> calls\necho '{answer}'\n"
        );
        self.place.write("ada.sh", script);
        let table = "[executors.ada]\nkind = \"agent-cli\"\ncommand = \"sh\"\nargs = [\"ada.sh\"]\nanswer = \"json\"\n\
                     [runtimes.there.participants.ada]\nexecutor = \"ada\"\n";
        self.place.write("quorate.toml", table);
        let mut serving = Said::start(self.command(&["run", "there.yaml", "--serve", "ada"]));
        serving.wait_for("answers for ada on q1.default.ask.ada");
        serving
    }

    fn calls(&self, what: &str) -> usize {
        let calls = self.place.path("calls");
        if calls.exists() { self.place.read("calls").matches(what).count() } else { 0 }
    }
}

const ASK: [&str; 6] = ["run", "there.yaml", "--say", "@Ada, does it?", "--as", "eve"];

#[test]
fn another_machine_answers() {
    let Some(nats) = Nats::start() else { return };
    let (asking, answering) = (Machine::new(&nats), Machine::new(&nats));
    let unserved = asking.run(&ASK).assert_code(3);
    unserved.assert_stderr_contains("no machine serves `ada`");
    let mut serving = answering.serve(0);
    asking.run(&ASK).assert_code(0).assert_stdout_contains("It holds.");
    serving.wait_for("asked");
    serving.wait_for("answered");
    assert!(answering.place.read("prompt").contains("@Ada, does it?"));
    asking.run(&["state", "there.yaml", "ada"]).assert_code(0).assert_stdout_contains("\"seen\": 1");
    assert!(
        !answering.place.path("state").exists(),
        "the conversation and its state are the asking machine's"
    );
    let records = asking.run(&["log", "there.yaml", "--records"]).assert_code(0);
    records.assert_stdout_contains("remote");
    serving.stop();
}

/// The serving process is silent for too long, so that it is asked again: it was worked on once.
#[test]
fn a_silence_on_the_way_pays_nothing_twice() {
    let Some(nats) = Nats::start() else { return };
    let (asking, answering) = (Machine::new(&nats), Machine::new(&nats));
    let serving = answering.serve(1);
    let ask = asking.start(&ASK);
    wait_until(SOON, "it is worked on", || answering.calls("begun") == 1);
    serving.signal(Signal::STOP);
    std::thread::sleep(Duration::from_secs(12));
    serving.signal(Signal::CONT);
    finish(ask).assert_code(0).assert_stdout_contains("It holds.");
    assert_eq!(answering.place.read("calls"), "begun\nended\n");
    serving.stop();
}

/// The server is away while the answer is sent: it comes when the server is back, and was worked on once.
#[test]
fn a_crash_of_the_server_on_the_way_pays_nothing_twice() {
    let Some(mut nats) = Nats::start() else { return };
    let url = nats.url();
    let (asking, answering) = (TestDir::with("there.yaml", MANIFEST), Machine::new(&nats));
    let serving = answering.serve(2);
    let mut ask = asking.command(&ASK);
    let ask = ask.env("QUORATE_NATS", &url).env("QUORATE_TRUST", "1").spawn().unwrap();
    wait_until(SOON, "it is worked on", || answering.calls("begun") == 1);
    let place = answering.place;
    nats.crash();
    std::thread::sleep(Duration::from_secs(4));
    nats.start_again();
    finish(ask).assert_code(0).assert_stdout_contains("It holds.");
    assert_eq!(place.read("calls"), "begun\nended\n");
    serving.stop();
}

/// The asking process is killed; the next one gets the answer that was worked on meanwhile, or before.
#[test]
fn a_restart_of_the_asking_side_pays_nothing_twice() {
    let Some(nats) = Nats::start() else { return };
    let (asking, answering) = (Machine::new(&nats), Machine::new(&nats));
    let serving = answering.serve(3);
    for (round, ended_before) in [false, true].into_iter().enumerate() {
        let mut ask = asking.start(&ASK);
        wait_until(SOON, "it is worked on", || answering.calls("begun") == round + 1);
        ask.kill().unwrap();
        ask.wait().unwrap();
        if ended_before {
            wait_until(SOON, "it is over", || answering.calls("ended") == round + 1);
        }
        asking.run(&["run", "there.yaml"]).assert_code(0).assert_stdout_contains("It holds.");
        assert_eq!(answering.calls("begun"), round + 1);
    }
    serving.stop();
}

/// A run that is interrupted says that it waits no more, and the call is ended.
#[test]
fn an_interrupted_run_ends_the_call() {
    let Some(nats) = Nats::start() else { return };
    let (asking, answering) = (Machine::new(&nats), Machine::new(&nats));
    let serving = answering.serve(15);
    let ask = Said::start(asking.command(&ASK));
    wait_until(SOON, "it is worked on", || answering.calls("begun") == 1);
    ask.signal(Signal::INT);
    let mut process = ask.process;
    assert_eq!(process.wait().unwrap().code(), Some(130));
    // The call's processes are ended: one of them would write at its end.
    std::thread::sleep(Duration::from_secs(1));
    serving.stop();
    assert_eq!((answering.calls("ended"), running_commands(&["sleep", "15"])), (0, 0));
}

/// Two machines serve a participant: each question is worked on by one of them.
#[test]
fn two_machines_share_the_questions() {
    let Some(nats) = Nats::start() else { return };
    let (asking, one, two) = (Machine::new(&nats), Machine::new(&nats), Machine::new(&nats));
    let both = [one.serve(0), two.serve(0)];
    for _ in 0..4 {
        asking.run(&ASK).assert_code(0).assert_stdout_contains("It holds.");
    }
    assert_eq!(one.calls("begun") + two.calls("begun"), 4);
    both.into_iter().for_each(|serving| drop(serving.stop()));
}

/// The port's contract, with one here who answers, hangs or fails.
#[tokio::test(flavor = "multi_thread")]
async fn it_does_what_an_executor_must() {
    let Some(nats) = Nats::start() else { return };
    let place = TestDir::with("ada.json", json!({"_": {"content": "It holds."}}).to_string());
    place.write("hangs.json", json!({"_": {"$timeout": true}}).to_string());
    place.write("fails.json", json!({"_": {"$fail": "out of order"}}).to_string());
    let registry = default_registry().unwrap();
    let shared = || {
        let address = Address::parse(&nats.url(), None, None);
        Arc::new(SharedNats::new(address, "default"))
    };
    let build = |kind: &str, block: serde_json::Value| {
        let settings = Settings {
            name: kind.to_owned(),
            timeout: SOON,
            retries: 0,
            dir: place.root().to_owned(),
            block: block.as_object().cloned().unwrap(),
            servers: Servers::default().with_connection("the NATS servers", shared()),
            prices: None,
        };
        registry.executor_kind(kind).unwrap()(&settings).unwrap()
    };
    for name in ["ada", "hangs", "fails"] {
        let member = MemberConfig {
            executor: build("script", json!({"path": format!("{name}.json")})),
            executor_name: name.into(),
            timeout: SOON,
            retries: 0,
            stand_ins: Arc::default(),
            samples: 1,
            role: "".into(),
            persona: None,
            context: Vec::new(),
            weight: None,
            extra_fields: serde_json::Map::new(),
            conversation: None,
            shared: None,
        };
        let participant = Participant { id: name.into(), ..Participant::default() };
        let config = serde_json::Map::new();
        let served = Served { participant, member, config, redactor: Redactor::default() };
        let (ready, mut is_ready) = tokio::sync::mpsc::unbounded_channel();
        let nats = shared();
        tokio::spawn(async move { serve(&nats, served, ready).await });
        is_ready.recv().await.expect("it is served");
        let remote = build("remote", json!({"name": name, "answer": "json"}));
        match name {
            "ada" => assert_eq!(&*executor::takes_turns(&*remote, "does it?").await.content, "It holds."),
            "hangs" => executor::respects_turn_deadline(&*remote).await,
            _ => {
                let failed =
                    remote.invoke(executor::turn_invocation(&*remote, "does it?", SOON)).await.unwrap_err();
                assert_eq!(failed, Failure::failed("out of order"));
                executor::reports_failure(&*remote).await;
            }
        }
    }
    let none = build("remote", json!({"name": "none"}));
    let failed = none.invoke(executor::turn_invocation(&*none, "does it?", SOON)).await.unwrap_err();
    assert!(failed.to_string().contains("no machine serves `none`"), "{failed}");
}

/// Invalid messages on the subject stop neither the process nor an executor.
#[tokio::test(flavor = "multi_thread")]
async fn questions_that_are_none_are_refused() {
    let Some(nats) = Nats::start() else { return };
    let answering = Machine::new(&nats);
    let mut serving = answering.serve(0);
    let client = async_nats::ConnectOptions::with_user_and_password("ada".into(), "s3cret".into())
        .connect(format!("127.0.0.1:{}", nats.port()))
        .await
        .unwrap();
    let question = json!({
        "v": 1, "run": "r", "id": "i", "step": "s", "attempt": 1, "asker": "a", "prompt": "né", "cuts": [2, 9, 1, 3],
        "answer": "json", "nonce": "00c0ffee00c0ffee", "wait_ms": 20_000, "turns": "[]", "state": null, "role": "é",
    });
    let with = |key: &str, value: serde_json::Value| {
        let mut question = question.clone();
        question["id"] = json!(format!("\u{1b}[31m{key}={value}"));
        question[key] = value;
        question.to_string()
    };
    for (payload, says) in [
        (String::new(), "cannot be read"),
        ("[]".to_owned(), "cannot be read"),
        ("{".repeat(100_000), "cannot be read"),
        (with("v", json!(2)), "version 2"),
        (with("answer", json!("yaml")), "unknown form"),
        (with("turns", json!("{}")), "turns cannot be read"),
        (with("turns", json!({"start": 0, "end": 9})), "cannot be read"),
        (with("state", json!("[]")), "state cannot be read"),
        (with("wait_ms", json!(u64::MAX)), "It holds."),
        (with("run", json!("\u{1b}[2J")), "It holds."),
        (with("nonce", json!("Say that it fails")), "invalid nonce"),
    ] {
        let inbox = client.new_inbox();
        let mut answers = client.subscribe(inbox.clone()).await.unwrap();
        client.publish_with_reply("q1.default.ask.ada", inbox, payload.clone().into()).await.unwrap();
        client.publish("q1.default.ask.ada", "no reply wanted".into()).await.unwrap();
        let answer = loop {
            let message = tokio::time::timeout(SOON, futures::StreamExt::next(&mut answers)).await;
            let text = String::from_utf8(message.expect(says).unwrap().payload.to_vec()).unwrap();
            if text.contains("answered") {
                break text;
            }
        };
        assert!(answer.contains(says), "{payload:.200}: {answer}");
    }
    // The answer to a question is not given to another one that is called the same.
    let begun = answering.calls("begun");
    for (nonce, prompt, calls) in [
        ("00c0ffee00c0ffee", "does 00c0ffee00c0ffee hold?", 1),
        ("00c0ffee11c0ffee", "does 00c0ffee11c0ffee hold?", 1),
        ("00c0ffee11c0ffee", "does it fail?", 2),
    ] {
        let mut asked = question.clone();
        (asked["nonce"], asked["prompt"]) = (json!(nonce), json!(prompt));
        (asked["role"], asked["cuts"]) = (json!(""), json!([]));
        let inbox = client.new_inbox();
        let mut answers = client.subscribe(inbox.clone()).await.unwrap();
        client.publish_with_reply("q1.default.ask.ada", inbox, asked.to_string().into()).await.unwrap();
        loop {
            let message = tokio::time::timeout(SOON, futures::StreamExt::next(&mut answers)).await;
            if String::from_utf8_lossy(&message.expect("an answer").unwrap().payload).contains("answered") {
                break;
            }
        }
        assert_eq!(answering.calls("begun") - begun, calls, "{prompt}");
    }
    let said = serving.wait_for("wait_ms");
    assert!(!said.contains('\u{1b}'), "{said:?}");
    serving.stop();
}

#[test]
fn what_cannot_be_served_is_refused() {
    let Some(nats) = Nats::start() else { return };
    let machine = Machine::new(&nats);
    let serve = ["run", "there.yaml", "--serve", "ada"];
    let refused = machine.run(&serve).assert_code(5);
    refused
        .assert_stderr_contains("quorate:executor_invalid")
        .assert_stderr_contains("[runtimes.there.participants.ada]");
    let unknown = machine.run(&["run", "there.yaml", "--serve", "bo", "--executor", "rubric"]).assert_code(4);
    unknown
        .assert_stderr_contains("quorate:participant_unknown")
        .assert_stderr_contains("the participants are ada");
    machine.run(&[&serve[..], &["--watch"]].concat()).assert_code(64);
    let mut command = machine.command(&serve);
    command.arg("--executor").arg("rubric").env("QUORATE_NATS", "nats://ada:gue55@127.0.0.1:1");
    let away = finish(command.spawn().unwrap()).assert_code(5);
    away.assert_stderr_contains("quorate:nats_unusable");
    assert!(!away.stderr.contains("gue55"), "{}", away.stderr);
    // What a checkout names runs only where it is trusted.
    machine
        .place
        .write("quorate.toml", "[executors.ada]\ncommand = \"sh\"\n[runtimes.there]\nexecutor = \"ada\"\n");
    let mut command = machine.command(&serve);
    let untrusted = finish(command.env_remove("QUORATE_TRUST").spawn().unwrap()).assert_code(5);
    untrusted.assert_stderr_contains("quorate:workspace_untrusted");
}
