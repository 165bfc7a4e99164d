//! Questions outside any run: what they come to, and what is recorded of them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorate_kernel::attempts::MemberConfig;
use quorate_kernel::budget::Caps;
use quorate_kernel::observer::NoopObserver;
use quorate_kernel::ports::dispatcher::Question;
use quorate_kernel::ports::executor::Invocation;
use quorate_kernel::ports::ledger::{Append, Durability, Entry, Kind, Ledger, Record};
use quorate_kernel::redact::Redactor;
use quorate_kernel::single_call::{Answer, SingleCall, SingleCallError};
use quorate_protocol::answers::Schema;
use quorate_protocol::{AbsenceReason, Name, Part, PartKind};
use quorate_testkit::memory::Memory;
use quorate_testkit::scripted::TickingClock;
use quorate_testkit::scripted::{Action, ScriptedExecutor};
use serde_json::{Map, json};

const FINE: &str = r#"{"verdict": "keeps", "traits": [], "reason": "It says nothing of warmth."}"#;
const STREAM: &str = "reflections/alice";

fn single_call(ledger: &Arc<Memory>) -> SingleCall {
    SingleCall {
        stream: STREAM.into(),
        ledger: ledger.clone(),
        clock: Arc::new(TickingClock::default()),
        redactor: Redactor::new(&["sk-[a-z0-9]+".into()]).expect("a pattern"),
        caps: Caps::default(),
        observer: Arc::new(NoopObserver),
    }
}

fn question() -> Question {
    Question {
        role: "You judge.".into(),
        task: "Say whether it keeps them.".into(),
        parts: vec![
            Part::new(PartKind::Fragment, "", "Be brief. The key is sk-abc1."),
            Part::new(PartKind::Traits, "", r#"[{"id": "warmth", "description": "not sk-abc2\""}]"#),
        ],
        answer_schema: Schema::Judgement,
    }
}

fn member_config(script: impl Fn(&Invocation) -> Action + Send + Sync + 'static) -> MemberConfig {
    Arc::new(ScriptedExecutor::new(script)).into_member_config()
}

async fn ask(call: &SingleCall, config: &MemberConfig) -> Result<Answer, SingleCallError> {
    call.ask(&"judge/alice".into(), &"judge".into(), config, question()).await
}

async fn records(ledger: &Memory) -> Vec<Record> {
    ledger.records(&STREAM.into()).await.expect("records")
}

/// The kind of each record, with the status of its attempt or consultation.
async fn statuses(ledger: &Memory) -> Vec<(String, String)> {
    let of = |record: Record| {
        let data = record.data.expect("kept");
        (record.kind, data["status"].as_str().expect("a status").to_owned())
    };
    records(ledger).await.into_iter().map(of).collect()
}

fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(kind, status)| ((*kind).to_owned(), (*status).to_owned())).collect()
}

fn absent(failed: Result<Answer, SingleCallError>) -> (AbsenceReason, Option<String>, u32) {
    match failed.expect_err("no answer") {
        SingleCallError::Unanswered { absent, message, call_info: asked } => {
            (absent, message, asked.spent.calls)
        }
        SingleCallError::Ledger(error) => panic!("{error}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_given_and_recorded() {
    let ledger = Arc::new(Memory::new());
    let seen: Arc<Mutex<Vec<Invocation>>> = Arc::default();
    let shown = seen.clone();
    let config = member_config(move |invocation| {
        shown.lock().expect("not poisoned").push(invocation.clone());
        Action::Say(FINE.into(), 5)
    });
    let answered = ask(&single_call(&ledger), &config).await.expect("an answer");
    assert_eq!(answered.answer["verdict"], "keeps");
    assert_eq!((&*answered.call_info.executor, answered.call_info.kind), ("scripted", "scripted"));
    assert_eq!(answered.call_info.spent.calls, 1);

    let records = records(&ledger).await;
    assert_eq!(statuses(&ledger).await, pairs(&[("attempt", "said"), ("consultation", "answered")]));
    let last = records[1].data.as_ref().expect("kept");
    assert_eq!(
        (&last["invocation"], &last["member"], &last["step"]),
        (&json!("judge/alice"), &json!("judge"), &json!("judge"))
    );
    assert_eq!(last["answer"], answered.answer);
    assert_eq!(last["prompt_sha256"].as_str(), answered.call_info.prompt_sha256.as_deref());
    assert_eq!((&last["redactions"], ledger.syncs()), (&json!(2), 1));

    // The shown texts contain no secrets and are between markers, and JSON stays JSON.
    let seen = seen.lock().expect("not poisoned");
    let asked = seen.first().expect("asked");
    assert_eq!((&*asked.run, &*asked.role), (STREAM, "You judge."));
    assert!(
        !asked.prompt.contains("sk-abc") && asked.prompt.contains("<<<material fragment "),
        "{}",
        asked.prompt
    );
    assert_eq!(&*asked.parts[0].text, "Be brief. The key is [REDACTED].");
    let traits: serde_json::Value = serde_json::from_str(&asked.parts[1].text).expect("JSON");
    assert_eq!(traits[0]["description"], "not [REDACTED]\"");
}

#[tokio::test(start_paused = true)]
async fn garbage_is_asked_about_once() {
    // X4
    let ledger = Arc::new(Memory::new());
    let once = member_config(|invocation| match invocation.attempt {
        1 => Action::Say("It is fine, sk-abc3.".into(), 1),
        _ => Action::Say(FINE.into(), 1),
    });
    let answered = ask(&single_call(&ledger), &once).await.expect("an answer");
    assert_eq!(answered.call_info.spent.calls, 2);
    let wanted = [("attempt", "said"), ("attempt", "said"), ("consultation", "answered")];
    assert_eq!(statuses(&ledger).await, pairs(&wanted));
    let records = records(&ledger).await;
    let data = |at: usize| records[at].data.as_ref().expect("kept");
    assert_eq!((&data(0)["text"], &data(1)["why"]), (&json!("It is fine, [REDACTED]."), &json!("re-prompt")));
    assert_eq!((&data(2)["repaired"], &data(2)["attempts"]), (&json!(true), &json!(2)));

    let ledger = Arc::new(Memory::new());
    let (why, message, calls) =
        absent(ask(&single_call(&ledger), &member_config(|_| Action::Say("no".into(), 1))).await);
    assert_eq!((why, calls), (AbsenceReason::SchemaFailed, 2));
    assert!(message.is_some_and(|message| message.contains("no JSON object")));
    let wanted = [("attempt", "said"), ("attempt", "said"), ("consultation", "schema_failed")];
    assert_eq!(statuses(&ledger).await, pairs(&wanted));
}

#[tokio::test(start_paused = true)]
async fn a_hanging_call_times_out_and_a_failed_one_is_retried() {
    // X4, X5
    let ledger = Arc::new(Memory::new());
    let (why, _, calls) = absent(ask(&single_call(&ledger), &member_config(|_| Action::Hang)).await);
    assert_eq!((why, calls), (AbsenceReason::TimedOut, 1));
    assert_eq!(statuses(&ledger).await, pairs(&[("attempt", "timed_out"), ("consultation", "timed_out")]));

    let ledger = Arc::new(Memory::new());
    let failing = MemberConfig { timeout: Duration::from_secs(60), ..member_config(|_| Action::Fail(1)) };
    let (why, message, calls) = absent(ask(&single_call(&ledger), &failing).await);
    assert_eq!((why, message.as_deref(), calls), (AbsenceReason::Failed, Some("scripted to fail"), 2));
    let wanted = [("attempt", "failed"), ("attempt", "failed"), ("consultation", "failed")];
    assert_eq!(statuses(&ledger).await, pairs(&wanted));
}

#[tokio::test(start_paused = true)]
async fn without_a_call_left_no_executor_is_asked() {
    // X8
    let ledger = Arc::new(Memory::new());
    let asked: Arc<Mutex<Vec<(String, u32)>>> = Arc::default();
    let member = ScriptedExecutor::new(|_| Action::Say("no".into(), 1)).with_call_log(asked.clone());
    let config = Arc::new(member).into_member_config();
    let none = SingleCall { caps: Caps { calls: Some(0), ..Caps::default() }, ..single_call(&ledger) };
    assert_eq!(absent(ask(&none, &config).await), (AbsenceReason::RunOverBudget, None, 0));
    assert_eq!(statuses(&ledger).await, pairs(&[("consultation", "over_budget")]));
    assert!(asked.lock().expect("not poisoned").is_empty());

    let one = SingleCall { caps: Caps { calls: Some(1), ..Caps::default() }, ..single_call(&ledger) };
    let (why, _, calls) = absent(ask(&one, &config).await);
    assert_eq!((why, calls), (AbsenceReason::RunOverBudget, 1));
    assert_eq!(asked.lock().expect("not poisoned").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn records_go_behind_what_is_there_and_what_comes_in_between() {
    let ledger = Arc::new(Memory::new());
    let other = |from: u64| {
        let stream: Name = STREAM.into();
        let data = Map::from_iter([("status".to_owned(), json!("other"))]);
        Append::one(&stream, from, Entry { kind: Kind::Override, at_ms: 0, data }, Durability::Written)
    };
    ledger.append(other(0)).await.expect("appended");
    let meanwhile = ledger.clone();
    let slow = member_config(|_| Action::Say(FINE.into(), 100));
    let call = single_call(&ledger);
    let (answered, moved) = tokio::join!(ask(&call, &slow), async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        meanwhile.append(other(1)).await
    });
    assert!(answered.is_ok() && moved.is_ok());
    let wanted =
        [("override", "other"), ("override", "other"), ("attempt", "said"), ("consultation", "answered")];
    assert_eq!(statuses(&ledger).await, pairs(&wanted));
}
