//! Executors that stand in when the service of another one fails: when they are asked, and what is recorded.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorate_kernel::attempts::{MemberConfig, StandIn};
use quorate_kernel::budget::Caps;
use quorate_kernel::observer::NoopObserver;
use quorate_kernel::ports::dispatcher::Question;
use quorate_kernel::ports::executor::Invocation;
use quorate_kernel::ports::ledger::Ledger;
use quorate_kernel::redact::Redactor;
use quorate_kernel::single_call::{SingleCall, SingleCallError};
use quorate_protocol::answers::Schema;
use quorate_protocol::{AbsenceReason, Json, Part, PartKind};
use quorate_testkit::memory::Memory;
use quorate_testkit::scripted::{Action, ScriptedExecutor, TickingClock};
use serde_json::json;

const FINE: &str = r#"{"verdict": "keeps", "traits": [], "reason": "It says nothing of warmth."}"#;
const STREAM: &str = "reflections/alice";

/// How an executor of the list behaves.
#[derive(Debug, Clone, Copy)]
enum Behaviour {
    Answers,
    Garbage,
    /// Its service fails.
    Down,
    Hangs,
    /// The model refuses, or its answer is cut off.
    Refuses,
    /// Its recording is missing.
    NotRecorded,
    /// The first attempt rules out stand-ins, and then its service fails.
    PostsThenDown,
}

use Behaviour::{Answers, Down, Garbage, Hangs, NotRecorded, PostsThenDown, Refuses};

/// What happened: the executors in the order of their calls, the result, and the last record.
struct Outcome {
    asked: Vec<&'static str>,
    /// The number of the attempt, of each call.
    numbers: Vec<u32>,
    result: Result<String, (AbsenceReason, Option<String>)>,
    consultation: Json,
    attempts: Vec<Json>,
}

const NAMES: [&str; 4] = ["first", "second", "third", "fourth"];

async fn asked(behaviours: &[Behaviour], caps: Caps) -> Outcome {
    let log: Arc<Mutex<Vec<(&'static str, u32)>>> = Arc::default();
    let executor = |name: &'static str, behaviour: Behaviour| {
        let log = log.clone();
        let script = move |invocation: &Invocation| {
            log.lock().expect("no test panicked").push((name, invocation.attempt));
            match behaviour {
                Answers => Action::Say(FINE.into(), 1),
                Garbage => Action::Say("It is fine.".into(), 1),
                Down => Action::Fail(1),
                Hangs => Action::Hang,
                Refuses => {
                    invocation.notes.note(|noted| noted.no_stand_in = true);
                    Action::Fail(1)
                }
                PostsThenDown => {
                    invocation.notes.note(|noted| noted.no_stand_in = invocation.attempt == 1);
                    Action::Fail(1)
                }
                NotRecorded => {
                    invocation.notes.note(|noted| noted.recorded = true);
                    Action::Fail(1)
                }
            }
        };
        Arc::new(ScriptedExecutor::new(script).as_model())
    };
    let stand_ins = behaviours.iter().zip(NAMES).skip(1).map(|(behaviour, name)| StandIn {
        executor: executor(name, *behaviour),
        executor_name: name.into(),
        timeout: Duration::from_secs(7),
        retries: 0,
    });
    let config = MemberConfig {
        executor_name: NAMES[0].into(),
        stand_ins: stand_ins.collect(),
        ..executor(NAMES[0], behaviours[0]).into_member_config()
    };
    let ledger = Arc::new(Memory::new());
    let call = SingleCall {
        stream: STREAM.into(),
        ledger: ledger.clone(),
        clock: Arc::new(TickingClock::default()),
        redactor: Redactor::default(),
        caps,
        observer: Arc::new(NoopObserver),
    };
    let question = Question {
        role: "You judge.".into(),
        task: "Say whether it keeps them.".into(),
        parts: vec![Part::new(PartKind::Fragment, "", "Be brief.")],
        answer_schema: Schema::Judgement,
    };
    let result = match call.ask(&"judge/alice".into(), &"judge".into(), &config, question).await {
        Ok(answered) => Ok(answered.call_info.executor.to_string()),
        Err(SingleCallError::Unanswered { absent, message, .. }) => Err((absent, message)),
        Err(SingleCallError::Ledger(error)) => panic!("{error}"),
    };
    let records = ledger.records(&STREAM.into()).await.expect("the stream is read");
    let mut data: Vec<Json> =
        records.into_iter().map(|record| Json::Object(record.data.expect("nothing was erased"))).collect();
    let consultation = data.pop().expect("there is a consultation");
    let (asked, numbers) = log.lock().expect("no test panicked").iter().copied().unzip();
    Outcome { asked, numbers, result, consultation, attempts: data }
}

// X4
#[tokio::test(start_paused = true)]
async fn a_stand_in_is_asked_after_the_retries_of_a_service_that_fails() {
    // The first executor has one retry, a stand-in none.
    for (behaviours, order, answers) in [
        (&[Answers, Down][..], &["first"][..], Some("first")),
        (&[Down, Answers], &["first", "first", "second"], Some("second")),
        (&[Hangs, Answers], &["first", "second"], Some("second")),
        (&[Down, Down, Answers], &["first", "first", "second", "third"], Some("third")),
        (&[Down, Hangs, Answers], &["first", "first", "second", "third"], Some("third")),
        (&[Down, Down, Down], &["first", "first", "second", "third"], None),
        // An answer that does not fit is an answer.
        (&[Garbage, Answers], &["first", "first"], None),
        (&[Down, Garbage, Answers], &["first", "first", "second", "second"], None),
        // So is a refusal.
        (&[Refuses, Answers], &["first", "first"], None),
        (&[Down, Refuses, Answers], &["first", "first", "second"], None),
        (&[PostsThenDown, Answers], &["first", "first"], None),
        // A question without a recording goes to no model.
        (&[NotRecorded, Answers], &["first", "first"], None),
    ] {
        let outcome = asked(behaviours, Caps::default()).await;
        assert_eq!(outcome.asked, order, "{behaviours:?}");
        assert_eq!(outcome.result.ok().as_deref(), answers, "{behaviours:?}");
        assert_eq!(outcome.consultation["attempts"], json!(order.len()), "{behaviours:?}");
    }
}

// X4
#[tokio::test(start_paused = true)]
async fn the_record_names_the_executor_that_answered_and_those_before_it() {
    let Outcome { consultation, attempts, numbers, .. } =
        asked(&[Down, Hangs, Answers], Caps::default()).await;
    assert_eq!(numbers, [1, 2, 1, 1], "each executor has its own first attempt");
    assert_eq!(
        (&consultation["executor"], &consultation["stand_in_for"], &consultation["asks_a_model"]),
        (&json!("third"), &json!("first"), &json!(true))
    );
    assert_eq!(
        consultation["tried"],
        json!([
            {"executor": "first", "message": "scripted to fail"},
            {"executor": "second", "message": "no answer within 7 s (timeout of [executors.second])"},
        ])
    );
    let executors: Vec<&Json> = attempts.iter().map(|attempt| &attempt["executor"]).collect();
    assert_eq!(executors, [&Json::Null, &Json::Null, &json!("second"), &json!("third")]);
    assert_eq!(attempts[2]["why"], "stand-in");
    // Without a stand-in, records have none of these fields.
    let Outcome { consultation, attempts, .. } = asked(&[Answers, Answers], Caps::default()).await;
    for field in ["stand_in_for", "asks_a_model", "tried"] {
        assert_eq!(consultation[field], Json::Null, "{field}");
    }
    assert_eq!(attempts[0]["executor"], Json::Null);
}

// X4
#[tokio::test(start_paused = true)]
async fn a_failure_has_the_reason_of_every_executor() {
    let (absent, message) = asked(&[Down, Hangs, Down], Caps::default()).await.result.unwrap_err();
    assert_eq!(absent, AbsenceReason::Failed);
    assert_eq!(
        message.as_deref(),
        Some(
            "`first`: scripted to fail; `second`: no answer within 7 s (timeout of [executors.second]); `third`: scripted to fail"
        )
    );
    let (absent, message) = asked(&[Down, Garbage], Caps::default()).await.result.unwrap_err();
    assert_eq!(absent, AbsenceReason::SchemaFailed);
    assert!(message.is_some_and(|message| message.starts_with("`first`: scripted to fail; `second`: ")));
}

// X4, X8
#[tokio::test(start_paused = true)]
async fn no_stand_in_is_asked_if_the_budget_has_no_call_left() {
    let caps = |calls| Caps { calls: Some(calls), ..Caps::default() };
    // The retry of the first executor takes the second call.
    for (calls, order) in [(1, &["first"][..]), (2, &["first", "first"]), (3, &["first", "first", "second"])]
    {
        let outcome = asked(&[Down, Answers], caps(calls)).await;
        assert_eq!(outcome.asked, order, "{calls}");
        let absent = outcome.result.err().map(|(absent, _)| absent);
        assert_eq!(absent, (calls < 3).then_some(AbsenceReason::RunOverBudget), "{calls}");
    }
}
