//! Several samples of one member: which answer counts, what is recorded, and what a resumed run asks again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorate_kernel::attempts::StandIn;
use quorate_kernel::budget::Caps;
use quorate_kernel::driver::{Opening, RunConfig};
use quorate_kernel::extensions::Extensions;
use quorate_kernel::history::History;
use quorate_kernel::observer::NoopObserver;
use quorate_kernel::ports::executor::Invocation;
use quorate_kernel::ports::ledger::{Kind, Ledger, Record};
use quorate_kernel::record::RunOpened;
use quorate_kernel::redact::Redactor;
use quorate_manifest::council::{CrossRead, OnFailure, Rounds, VerdictPolicy};
use quorate_protocol::modes::council::{ADJUDICATOR, Council, Setup};
use quorate_protocol::{Json, Name, Part, PartKind};
use quorate_testkit::memory::Memory;
use quorate_testkit::scripted::{Action, ScriptedExecutor, TickingClock};
use serde_json::json;

const RUN: &str = "rsamples";

/// The samples that were asked of the member `a`, in order.
type Log = Arc<Mutex<Vec<u32>>>;

/// A council of `a`, `b` and `c` under the strict policy, in one round. Only `a` has samples, one for each character of `script`:
/// `n` does not block, `b` blocks, `i` says irreducible alone, `f` fails, `g` says no JSON, `h` hangs.
fn council(ledger: &Arc<Memory>, script: &'static str, caps: Caps, log: &Log) -> RunConfig {
    let setup = Setup {
        deliberators: ["a", "b", "c"].map(Name::from).to_vec(),
        rounds: Rounds::One,
        cross_read: CrossRead::None,
        fail_fast: OnFailure::Continue,
        min_deliberators: 3,
        policy: VerdictPolicy::Strict.into(),
    };
    let log = log.clone();
    let answer = move |invocation: &Invocation| {
        let mut behaviour = b'n';
        if &*invocation.member == "a" {
            log.lock().expect("no test panicked").push(invocation.sample);
            behaviour = script.as_bytes()[invocation.sample as usize - 1];
        }
        let text = match (&*invocation.step, behaviour) {
            (_, b'f') => return Action::Fail(1),
            (_, b'h') => return Action::Hang,
            (_, b'g') => "I would not block it.".to_owned(),
            ("adjudicate", _) => json!({"verdict": "SHIP", "reasoning": "fine"}).to_string(),
            (_, b'i') => json!({"would_block": false, "irreducible": true}).to_string(),
            (_, block) => json!({"would_block": block == b'b', "score": invocation.sample}).to_string(),
        };
        Action::Say(text, 10)
    };
    let executor = Arc::new(ScriptedExecutor::new(answer).as_model());
    let members = setup.deliberators.iter().cloned().chain([Name::from(ADJUDICATOR)]);
    let mut members: BTreeMap<_, _> =
        members.map(|member| (member, executor.clone().into_member_config())).collect();
    members.get_mut("a").expect("a is a member").samples =
        u32::try_from(script.len()).expect("a script is short");
    RunConfig {
        run: RUN.into(),
        seed: [7; 32],
        protocol: Box::new(Council::new(setup)),
        members,
        caps,
        wall: None,
        redactor: Redactor::default(),
        extensions: Extensions::default(),
        ledger: ledger.clone(),
        clock: Arc::new(TickingClock::default()),
        observer: Arc::new(NoopObserver),
    }
}

fn inputs() -> Vec<Part> {
    vec![Part::new(PartKind::Artifact, "a.md", "Always the fastest.")]
}

/// The run's verdict, the consultation of `a`, and its attempts.
async fn recorded(ledger: &Memory) -> (Json, Json, Vec<Json>) {
    let records = ledger.records(&RUN.into()).await.expect("the run is read");
    let of_a = |record: &&Record| {
        record.data.as_ref().and_then(|data| data.get("invocation")) == Some(&json!("r1/a"))
    };
    let data = |record: &Record| Json::Object(record.data.clone().expect("nothing was erased"));
    let outcome =
        records.iter().rfind(|record| record.is(Kind::Outcome)).map(data).expect("the run has an outcome");
    let consultation =
        records.iter().filter(|record| record.is(Kind::Consultation)).filter(of_a).map(data).next_back();
    let attempts = records.iter().filter(|record| record.is(Kind::Attempt)).filter(of_a).map(data);
    (outcome["verdict"].clone(), consultation.expect("a was asked"), attempts.collect())
}

async fn run(script: &'static str, caps: Caps) -> (Json, Json, Vec<Json>) {
    let ledger = Arc::new(Memory::new());
    let opening = Opening { opened: RunOpened::default(), inputs: inputs() };
    council(&ledger, script, caps, &Log::default()).open(opening).await.expect("the run ends");
    recorded(&ledger).await
}

// X5
#[tokio::test(start_paused = true)]
async fn the_answer_of_most_samples_counts_and_a_failed_sample_never_approves() {
    for (script, verdict, answered, agree, chosen) in [
        ("nnb", "SHIP", 3, 2, Some(1)),
        ("bnn", "SHIP", 3, 2, Some(2)),
        ("nbb", "REVISE", 3, 2, Some(2)),
        ("nb", "REVISE", 2, 1, Some(2)),
        ("nnnbb", "SHIP", 5, 3, Some(1)),
        ("nfn", "SHIP", 2, 2, Some(1)),
        ("fnb", "REVISE", 2, 1, Some(3)),
        ("nhb", "REVISE", 2, 1, Some(3)),
        ("gnn", "SHIP", 2, 2, Some(2)),
        ("nffnn", "SHIP", 3, 3, Some(1)),
        ("nffnb", "REVISE", 3, 1, Some(5)),
        ("nff", "INCOMPLETE", 1, 0, None),
        ("nh", "INCOMPLETE", 1, 0, None),
        ("ggb", "INCOMPLETE", 1, 0, None),
        ("fff", "INCOMPLETE", 0, 0, None),
    ] {
        let (outcome, consultation, attempts) = run(script, Caps::default()).await;
        assert_eq!(outcome, verdict, "{script}: {consultation}");
        let samples = &consultation["samples"];
        let counts = [&samples["asked"], &samples["answered"], &samples["agree"], &samples["chosen"]];
        assert_eq!(json!(counts), json!([script.len(), answered, agree, chosen]), "{script}: {consultation}");
        let missing = samples["missing"].as_array().map_or(0, Vec::len);
        assert_eq!(missing, script.len() - answered, "{script}: {consultation}");
        // The answer is that of the chosen sample, unchanged.
        assert_eq!(consultation["answer"]["score"], json!(chosen), "{script}: {consultation}");
        assert_eq!(consultation["attempts"], attempts.len(), "{script}");
        let answers = attempts.iter().filter(|attempt| attempt["complaints"] == json!([]));
        let answers = answers.filter(|attempt| attempt["status"] == "said");
        assert_eq!(answers.count(), answered, "{script}");
        assert!(attempts.iter().all(|attempt| attempt["sample"].is_u64()), "{script}: {attempts:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_sample_is_recorded_as_before() {
    let (outcome, consultation, attempts) = run("n", Caps::default()).await;
    assert_eq!((outcome, attempts.len()), (json!("SHIP"), 1));
    assert!(consultation.get("samples").is_none(), "{consultation}");
    assert!(attempts[0].get("sample").is_none() && attempts[0].get("prompt_sha256").is_none());
}

// X8
#[tokio::test(start_paused = true)]
async fn a_sample_without_a_call_in_the_budget_counts_as_failed() {
    // Each deliberator has one call; the further ones are for samples.
    for (calls, answered, has_answer) in [(3, 1, false), (4, 2, true), (5, 3, true)] {
        let caps = Caps { calls: Some(calls), ..Caps::default() };
        let (outcome, consultation, attempts) = run("nnb", caps).await;
        assert_eq!(outcome, "INCOMPLETE", "the adjudicator has no call left");
        let samples = &consultation["samples"];
        assert_eq!(samples["answered"], answered, "{consultation}");
        assert_eq!(attempts.len(), answered, "{consultation}");
        assert_eq!(consultation["answer"].is_object(), has_answer, "{consultation}");
        if !has_answer {
            assert_eq!(
                (&consultation["status"], &consultation["scope"]),
                (&json!("over_budget"), &json!("run"))
            );
        }
    }
}

// X7
#[tokio::test(start_paused = true)]
async fn a_resumed_run_asks_only_for_samples_without_a_recorded_answer() {
    let (ledger, log) = (Arc::new(Memory::new()), Log::default());
    let opening = Opening { opened: RunOpened::default(), inputs: inputs() };
    let killed = council(&ledger, "nhb", Caps::default(), &log).open(opening);
    assert!(tokio::time::timeout(Duration::from_secs(1), killed).await.is_err(), "a sample hangs");
    let asked = std::mem::take(&mut *log.lock().unwrap());
    assert_eq!(asked, [1, 2, 3]);

    let records = ledger.records(&RUN.into()).await.unwrap();
    let history = History::from_records(&RUN.into(), records).unwrap();
    // Three samples of `a` were asked, and `b` and `c`.
    assert_eq!(history.calls, 5);
    let resumed = council(&ledger, "nbb", Caps::default(), &log);
    resumed.resume(&history, inputs(), Vec::new()).await.unwrap();
    assert_eq!(*log.lock().unwrap(), [2]);
    let (outcome, consultation, attempts) = recorded(&ledger).await;
    assert_eq!(outcome, "REVISE");
    assert_eq!((&consultation["samples"]["chosen"], &consultation["attempts"]), (&json!(2), &json!(1)));
    assert_eq!((&consultation["samples"]["answered"], attempts.len()), (&json!(3), 3));

    let records = ledger.records(&RUN.into()).await.unwrap();
    let history = History::from_records(&RUN.into(), records).unwrap();
    assert_eq!(history.calls, 7, "the second sample again, and the adjudicator");
    assert!(history.answered_samples.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_sample_that_answered_another_prompt_is_asked_again() {
    let (ledger, log) = (Arc::new(Memory::new()), Log::default());
    let opening = Opening { opened: RunOpened::default(), inputs: inputs() };
    let killed = council(&ledger, "nhn", Caps::default(), &log).open(opening);
    assert!(tokio::time::timeout(Duration::from_secs(1), killed).await.is_err(), "a sample hangs");
    log.lock().unwrap().clear();
    let records = ledger.records(&RUN.into()).await.unwrap();
    let history = History::from_records(&RUN.into(), records).unwrap();
    let mut resumed = council(&ledger, "nnn", Caps::default(), &log);
    resumed.members.get_mut("a").unwrap().role = "another role".into();
    resumed.resume(&history, inputs(), Vec::new()).await.unwrap();
    assert_eq!(*log.lock().unwrap(), [1, 2, 3]);
}

/// What a first process recorded whose second sample hung.
async fn killed(script: &'static str) -> (Arc<Memory>, History) {
    let ledger = Arc::new(Memory::new());
    let opening = Opening { opened: RunOpened::default(), inputs: inputs() };
    let killed = council(&ledger, script, Caps::default(), &Log::default()).open(opening);
    assert!(tokio::time::timeout(Duration::from_secs(1), killed).await.is_err(), "a sample hangs");
    let records = ledger.records(&RUN.into()).await.expect("the run is read");
    let history = History::from_records(&RUN.into(), records).expect("the run can be taken up");
    (ledger, history)
}

// X7, X8
#[tokio::test(start_paused = true)]
async fn recorded_samples_count_if_no_call_is_left() {
    for (script, agree, answer) in [("nhn", 2, json!(1)), ("nhb", 1, json!(3)), ("nh", 0, Json::Null)] {
        let (ledger, history) = killed(script).await;
        let (caps, log) = (Caps { calls: Some(history.calls), ..Caps::default() }, Log::default());
        council(&ledger, script, caps, &log).resume(&history, inputs(), Vec::new()).await.unwrap();
        assert_eq!(*log.lock().unwrap(), [0; 0], "{script}");
        let (_, consultation, _) = recorded(&ledger).await;
        assert_eq!(consultation["samples"]["answered"], script.len() - 1, "{script}: {consultation}");
        assert_eq!(consultation["samples"]["agree"], agree, "{script}: {consultation}");
        assert_eq!(consultation["answer"]["score"], answer, "{script}: {consultation}");
        let again = History::from_records(&RUN.into(), ledger.records(&RUN.into()).await.unwrap()).unwrap();
        assert_eq!(again.calls, history.calls, "{script}: no call was made");
    }
}

#[tokio::test(start_paused = true)]
async fn samples_that_all_contradict_each_other_are_asked_again() {
    let ledger = Arc::new(Memory::new());
    let opening = Opening { opened: RunOpened::default(), inputs: inputs() };
    council(&ledger, "bi", Caps::default(), &Log::default()).open(opening).await.unwrap();
    let (outcome, consultation, _) = recorded(&ledger).await;
    assert_eq!((outcome, &consultation["samples"]["answered"]), (json!("INCOMPLETE"), &json!(2)));
    let history = History::from_records(&RUN.into(), ledger.records(&RUN.into()).await.unwrap()).unwrap();
    assert!(history.answered_samples.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_recorded_sample_of_a_stand_in_keeps_the_reasons() {
    let stood_in = |mut config: RunConfig| {
        let down = ScriptedExecutor::new(|_: &Invocation| Action::Fail(1)).as_model();
        let member = config.members.get_mut("a").unwrap();
        let own = std::mem::replace(&mut member.executor, Arc::new(down));
        let timeout = member.timeout;
        let stand_in = StandIn { executor: own, executor_name: "backup".into(), timeout, retries: 0 };
        (member.stand_ins, member.retries) = ([stand_in].into(), 0);
        config
    };
    let ledger = Arc::new(Memory::new());
    let opening = Opening { opened: RunOpened::default(), inputs: inputs() };
    let first = stood_in(council(&ledger, "nhn", Caps::default(), &Log::default()));
    assert!(tokio::time::timeout(Duration::from_secs(1), first.open(opening)).await.is_err());
    let history = History::from_records(&RUN.into(), ledger.records(&RUN.into()).await.unwrap()).unwrap();
    let resumed = stood_in(council(&ledger, "nnn", Caps::default(), &Log::default()));
    resumed.resume(&history, inputs(), Vec::new()).await.unwrap();
    let (_, consultation, _) = recorded(&ledger).await;
    assert_eq!(consultation["samples"]["chosen"], 1, "{consultation}");
    assert_eq!(
        (&consultation["executor"], &consultation["tried"][0]["message"]),
        (&json!("backup"), &json!("scripted to fail"))
    );
}
