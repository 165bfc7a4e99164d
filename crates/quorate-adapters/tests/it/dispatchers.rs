//! Every dispatcher, checked against the port's contract, and each against what its own text promises.

mod mentions;

use std::sync::Arc;

use quorate_adapters::default_registry;
use quorate_kernel::conversation::{Capability, Participant, Turn};
use quorate_kernel::ports::dispatcher::{Dispatcher, Input};
use quorate_kernel::ports::executor::ConfigError;
use quorate_protocol::{AbsenceReason, Json};
use quorate_testkit::conformance::dispatcher::{
    FixedAnswer, build, handles_large_windows, participant, requires_capability, select, selects_by_rules,
    turn,
};
use quorate_testkit::scripted::{Action, ScriptedExecutor};
use serde_json::json;

const SILENT: FixedAnswer = FixedAnswer(Err(AbsenceReason::Failed));

fn roster() -> Vec<Participant> {
    vec![
        participant("reviewer", "Reviewer", &["code-review", "security"]),
        participant("writer", "Migration Writer", &["database", "schema"]),
        participant("rev", "Rev", &[]),
    ]
}

fn try_dispatcher(kind: &str, block: Json) -> Result<Arc<dyn Dispatcher>, ConfigError> {
    let builder = default_registry().expect("it builds").dispatchers[kind].clone();
    let config = Arc::new(ScriptedExecutor::new(|_| Action::Hang)).into_member_config();
    build(&builder, &block, &roster(), Some(config))
}

fn dispatcher(kind: &str, block: Json) -> Arc<dyn Dispatcher> {
    try_dispatcher(kind, block).expect("a block that fits")
}

#[track_caller]
fn refused(kind: &str, block: Json, key: &str, says: &str) {
    let refused = try_dispatcher(kind, block.clone()).err().unwrap_or_else(|| panic!("{block} is taken"));
    let text = format!("{} {}", refused.message, refused.help.as_deref().unwrap_or_default());
    assert_eq!(refused.key.as_deref(), Some(key), "{text}");
    assert!(refused.help.is_some() && text.contains(says), "{text}");
}

async fn selected(dispatcher: &dyn Dispatcher, window: &[(&str, &str)]) -> Vec<String> {
    let window: Vec<Turn> =
        window.iter().enumerate().map(|(at, (by, content))| turn(at, by, content)).collect();
    let selected = select(dispatcher, &roster(), &window, &SILENT).await.expect("it decides");
    selected.iter().map(ToString::to_string).collect()
}

fn all() -> Vec<(Arc<dyn Dispatcher>, FixedAnswer)> {
    let routed = FixedAnswer(Ok(json!({"next": ["writer", "rev", "writer", "reviewer"]})));
    vec![
        (dispatcher("mention", json!({"kind": "mention"})), SILENT),
        (dispatcher("mention", json!({"boundary": "word"})), SILENT),
        (dispatcher("round-robin", json!({})), SILENT),
        (dispatcher("round-robin", json!({"turns": 9, "order": ["rev", "writer"]})), SILENT),
        (dispatcher("capability-match", json!({"rubric": "skim-and-tag"})), SILENT),
        (dispatcher("llm-router", json!({"executor": "x", "model": "m", "instructions": "i"})), routed),
        (dispatcher("fixed", json!({"next": ["writer", "reviewer"]})), SILENT),
    ]
}

#[test]
fn every_shipped_kind_is_held_against_the_contract() {
    let registry = default_registry().expect("it builds");
    let shipped: Vec<&str> = registry.dispatchers.keys().map(String::as_str).collect();
    assert_eq!(shipped, ["capability-match", "fixed", "llm-router", "mention", "round-robin"]);
    let mut held: Vec<&str> = all().iter().map(|(dispatcher, _)| dispatcher.kind()).collect();
    held.sort_unstable();
    held.dedup();
    assert_eq!(held, shipped);
}

#[tokio::test]
async fn all_select_by_the_rules() {
    for (dispatcher, ask) in all() {
        selects_by_rules(&*dispatcher, &roster(), &ask).await;
        handles_large_windows(&*dispatcher, &roster(), &ask).await;
    }
}

#[tokio::test]
async fn the_keys_of_all_dispatchers_are_known_to_each() {
    for (kind, mut block) in [
        ("mention", json!({})),
        ("round-robin", json!({})),
        ("capability-match", json!({})),
        ("llm-router", json!({})),
        ("fixed", json!({"next": ["rev"]})),
    ] {
        for (key, value) in [
            ("kind", json!(kind)),
            ("reentry", json!(true)),
            ("maxAgentTurns", json!(5)),
            ("window", json!(9)),
        ] {
            block[key] = value;
        }
        assert!(try_dispatcher(kind, block.clone()).is_ok(), "{kind}");
        block["windoe"] = json!(1);
        refused(kind, block, "windoe", "did you mean `window`?");
    }
}

#[tokio::test]
async fn reentry_lets_a_participant_answer_itself() {
    for (kind, block) in [
        ("mention", json!({"reentry": true})),
        ("round-robin", json!({"reentry": true, "order": ["rev"], "turns": 3})),
        ("fixed", json!({"reentry": true, "next": ["rev"]})),
    ] {
        assert_eq!(
            selected(&*dispatcher(kind, block), &[("a", "?"), ("rev", "@Rev")]).await,
            ["rev"],
            "{kind}"
        );
    }
}

#[tokio::test]
async fn mentions_need_the_capability() {
    let window = [turn(0, "someone", "@Reviewer")];
    requires_capability(
        &*dispatcher("mention", json!({})),
        Capability::Mentions,
        &roster(),
        &window,
        &SILENT,
    )
    .await;
}

#[tokio::test]
async fn mentions_select_in_the_order_of_the_manifest() {
    let plain = dispatcher("mention", json!({}));
    assert_eq!(
        selected(&*plain, &[("a", "@Rev, then @migration, then @Reviewer")]).await,
        ["reviewer", "writer", "rev"]
    );
    assert_eq!(selected(&*plain, &[("a", "@Reviewer")]).await, ["reviewer", "rev"]);
    assert_eq!(selected(&*plain, &[("reviewer", "@Reviewer @migration")]).await, ["writer", "rev"]);
    assert_eq!(selected(&*plain, &[("a", "@Reviewer"), ("a", "thanks")]).await, [""; 0]);
    let word = dispatcher("mention", json!({"boundary": "word"}));
    assert_eq!(selected(&*word, &[("a", "@Reviewer")]).await, ["reviewer"]);
    refused("mention", json!({"boundary": "wrod"}), "boundary", "`word`");
}

#[test]
fn names_that_select_each_other_are_a_caution() {
    let cautions = |block, names: &[&str]| {
        let people: Vec<Participant> =
            names.iter().enumerate().map(|(at, name)| participant(&format!("p{at}"), name, &[])).collect();
        dispatcher("mention", block).warnings(&people)
    };
    let said = cautions(json!({}), &["Rev", "Reviewer", "Ann Lee"]);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].contains("`@Reviewer`") && said[0].contains("`p1`") && said[0].contains("`p0`"),
        "{said:?}"
    );
    assert!(said[0].contains("boundary: word"), "{said:?}");
    assert_eq!(cautions(json!({"boundary": "word"}), &["Rev", "Reviewer"]), [""; 0]);
    for names in [["Ann Lee", "ann Bo"], ["Ann", "ANN Bo"], ["Ann", "Ann Lee"], ["Ann", "Ann"]] {
        for block in [json!({}), json!({"boundary": "word"})] {
            let said = cautions(block, &names);
            assert!(said.len() == 1 && said[0].contains("another displayName"), "{names:?}: {said:?}");
            assert!(!said[0].contains("boundary: word"), "{names:?}: {said:?}");
        }
    }
    assert_eq!(cautions(json!({}), &["Ann", "Bo", "Cy Dee"]), [""; 0]);
}

#[tokio::test]
async fn a_round_is_one_turn_of_each_participant() {
    let round = dispatcher("round-robin", json!({}));
    let mut window = vec![("ann", "hello")];
    for expected in ["reviewer", "writer", "rev"] {
        assert_eq!(selected(&*round, &window).await, [expected]);
        window.push((expected, "."));
    }
    assert_eq!(selected(&*round, &window).await, [""; 0]);
    window.push(("bo", "and now?"));
    assert_eq!(selected(&*round, &window).await, ["reviewer"]);
}

#[tokio::test]
async fn a_round_begins_with_the_first_and_has_as_many_turns_as_it_says() {
    // K11
    let round = dispatcher("round-robin", json!({"turns": 1, "order": ["rev", "reviewer"]}));
    assert_eq!(selected(&*round, &[("ann", "?")]).await, ["rev"]);
    assert_eq!(selected(&*round, &[("ann", "?"), ("rev", "!")]).await, [""; 0]);
    let window = [("ann", "?"), ("rev", "!"), ("ann", "?")];
    assert_eq!(selected(&*round, &window).await, ["rev"], "no round depends on another");
    let two = dispatcher("round-robin", json!({"order": ["rev", "reviewer"]}));
    assert_eq!(
        selected(&*two, &[("ann", "?"), ("writer", ".")]).await,
        [""; 0],
        "it is outside of the order"
    );
    // Between the turns of a round there may be others.
    let window = [
        turn(0, "ann", "?"),
        turn(1, "rev", "!"),
        turn(2, "bo", "?"),
        turn(3, "rev", "!"),
        turn(1, "rev", "!"),
    ];
    let (participants, capabilities) = (roster(), Capability::ALL.into());
    let input = Input {
        window: &window,
        chain: 1,
        participants: &participants,
        capabilities: &capabilities,
        ask: &SILENT,
    };
    assert_eq!(two.select(input).await, Ok(vec!["reviewer".into()]));
    let more = dispatcher("round-robin", json!({"turns": 4}));
    let window = [("ann", "?"), ("reviewer", "."), ("writer", "."), ("rev", ".")];
    assert_eq!(selected(&*more, &window).await, ["reviewer"]);
}

#[test]
fn a_round_that_cannot_be_held_is_refused() {
    refused("round-robin", json!({"order": ["revv"]}), "order", "did you mean `rev`?");
    refused("round-robin", json!({"order": ["rev", "rev"]}), "order", "twice");
    assert!(try_dispatcher("round-robin", json!({"turns": 0})).is_err());
    let cut = dispatcher("round-robin", json!({"turns": 8, "maxAgentTurns": 4})).warnings(&roster());
    assert!(cut.len() == 1 && cut[0].contains("maxAgentTurns: 8"), "{cut:?}");
    assert_eq!(dispatcher("round-robin", json!({})).warnings(&roster()), [""; 0]);
}

#[tokio::test]
async fn capabilities_are_matched_with_the_last_turn() {
    let tags = dispatcher("capability-match", json!({"kind": "capability-match", "rubric": "skim-and-tag"}));
    assert_eq!(selected(&*tags, &[("a", "Please review the schemas of the migration")]).await, ["writer"]);
    assert_eq!(selected(&*tags, &[("a", "The schema"), ("a", "Review it, please")]).await, ["reviewer"]);
    assert_eq!(selected(&*tags, &[("a", "security of the database")]).await, ["reviewer"], "a tie");
    assert_eq!(selected(&*tags, &[("reviewer", "security of the database")]).await, ["writer"]);
    assert_eq!(selected(&*tags, &[("a", "Good morning")]).await, [""; 0]);
    refused("capability-match", json!({"rubric": "deep"}), "rubric", "skim-and-tag");
    let cautions = tags.warnings(&roster());
    assert!(cautions.len() == 1 && cautions[0].contains("`rev`"), "{cautions:?}");
}

#[tokio::test]
async fn a_router_is_believed_only_where_it_names_participants() {
    let router = dispatcher("llm-router", json!({"kind": "llm-router", "model": "m"}));
    let window = [turn(0, "rev", "who knows?")];
    let routed = async |answer| select(&*router, &roster(), &window, &FixedAnswer(answer)).await;
    let ids = |ids: &[&str]| Ok(ids.iter().map(|id| (*id).into()).collect::<Vec<_>>());
    assert_eq!(routed(Ok(json!({"next": ["writer", "reviewer"]}))).await, ids(&["writer", "reviewer"]));
    assert_eq!(routed(Ok(json!({"next": ["writer", "rev", "writer"]}))).await, ids(&["writer"]));
    let stranger = routed(Ok(json!({"next": ["writer", "Reviewer"]}))).await.unwrap_err().to_string();
    assert!(stranger.contains("\"Reviewer\", who does not take part"), "{stranger}");
    assert_eq!(routed(Ok(json!({"next": []}))).await, ids(&[]));
    for absent in [
        AbsenceReason::SchemaFailed,
        AbsenceReason::TimedOut,
        AbsenceReason::Failed,
        AbsenceReason::OverBudget,
        AbsenceReason::RunOverBudget,
    ] {
        let error = routed(Err(absent)).await.expect_err("no model was asked").to_string();
        assert!(error.contains("`scripted`"), "{error}");
    }
}

#[test]
fn a_router_that_cannot_route_is_a_caution() {
    let registry = default_registry().expect("it builds");
    let settings = quorate_kernel::ports::executor::Settings {
        name: "rubric".into(),
        timeout: std::time::Duration::from_secs(1),
        retries: 0,
        dir: "/".into(),
        block: Default::default(),
        servers: Default::default(),
        prices: None,
    };
    let executor =
        registry.executor_kind("rubric").expect("shipped")(&settings).expect("it needs no settings");
    let mut config = Arc::new(ScriptedExecutor::new(|_| Action::Hang)).into_member_config();
    config.executor = executor;
    config.executor_name = "rubric".into();
    let builder = registry.dispatchers["llm-router"].clone();
    let router = build(&builder, &json!({}), &roster(), Some(config)).expect("it fits");
    assert!(router.warnings(&roster())[0].contains("another `executor`"));
    assert_eq!(dispatcher("llm-router", json!({})).warnings(&roster()), [""; 0]);
    assert!(build(&builder, &json!({"executor": "none"}), &roster(), None).is_err());
}

#[tokio::test]
async fn a_fixed_choice_is_the_same_for_all_turns() {
    let fixed = dispatcher("fixed", json!({"next": ["writer", "reviewer"]}));
    assert_eq!(selected(&*fixed, &[("a", "anything")]).await, ["writer", "reviewer"]);
    assert_eq!(selected(&*fixed, &[("writer", "anything")]).await, ["reviewer"]);
    refused("fixed", json!({}), "next", "list the ids");
    refused("fixed", json!({"next": ["writre"]}), "next", "did you mean `writer`?");
}
