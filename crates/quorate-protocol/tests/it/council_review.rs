//! A whole review: each member's task and material, and the outcome of their answers.

use quorate_manifest::council::{CrossRead, OnFailure, Rounds, VerdictPolicy};
use quorate_protocol::answers::Schema;
use quorate_protocol::modes::council::{Council, Setup, VERSION};
use quorate_protocol::{
    AbsenceReason, Command, ConsultationResult, Event, FactKind, Invoke, Json, Part, PartKind, Protocol as _,
    TimedEvent,
};
use serde_json::json;

const MEMBERS: [&str; 4] = ["skeptic", "voice", "evidence", "strategy"];
const DRAFT: &str = "The saw is free.\nBring it back.";

struct Review(Council);

impl Review {
    fn new(rounds: Rounds, policy: VerdictPolicy) -> Self {
        Review(Council::new(Setup {
            deliberators: MEMBERS.map(Into::into).to_vec(),
            rounds,
            cross_read: CrossRead::Findings,
            fail_fast: OnFailure::Continue,
            min_deliberators: 3,
            policy: policy.into(),
        }))
    }

    fn open(&mut self, priors: Vec<Json>) -> Vec<Command> {
        let inputs = vec![
            Part::new(PartKind::Context, "rules.md", "Rules."),
            Part::new(PartKind::Artifact, "draft.md", DRAFT),
        ];
        let opened = Event::Opened { run: "r".into(), inputs, priors, overlays: Vec::new() };
        self.0.advance(&TimedEvent { at_ms: 0, event: opened })
    }

    fn feed(&mut self, id: &str, result: ConsultationResult) -> Vec<Command> {
        self.0.advance(&TimedEvent { at_ms: 0, event: Event::Consulted { id: id.into(), result } })
    }

    fn answer(&mut self, id: &str, answer: Json) -> Vec<Command> {
        self.feed(id, ConsultationResult::Answered(answer))
    }

    /// Feeds one round's answers, of which only the last leads anywhere.
    fn round(&mut self, step: &str, answers: [Json; 4]) -> Vec<Command> {
        let mut last = Vec::new();
        for (member, answer) in MEMBERS.into_iter().zip(answers) {
            assert!(last.is_empty());
            last = self.answer(&format!("{step}/{member}"), answer);
        }
        last
    }
}

fn invokes(commands: &[Command]) -> Vec<&Invoke> {
    fn invoke(command: &Command) -> &Invoke {
        match command {
            Command::Invoke(invoke) => invoke,
            other => panic!("{other:?}"),
        }
    }
    commands.iter().map(invoke).collect()
}

fn kinds(invoke: &Invoke) -> Vec<PartKind> {
    invoke.parts.iter().map(|part| part.kind).collect()
}

/// The rule and the outcome, after which the review ends.
fn facts(commands: &[Command]) -> (&Json, &Json) {
    match commands {
        [Command::Record(rule), Command::Record(outcome), Command::Finish] => {
            assert_eq!((rule.kind, outcome.kind), (FactKind::Rule, FactKind::Outcome));
            (&rule.data, &outcome.data)
        }
        other => panic!("{other:?}"),
    }
}

fn ships() -> Json {
    json!({"verdict": "ship", "would_block": false, "irreducible": false})
}

#[test]
fn members_are_asked_round_by_round_and_shown_what_the_council_shares() {
    let mut review = Review::new(Rounds::Two, VerdictPolicy::Strict);
    assert_eq!(review.0.version(), VERSION);
    let commands = review.open(vec![json!({"run": "r0", "verdict": "HOLD"})]);
    let first = invokes(&commands);
    assert_eq!(first.iter().map(|invoke| &*invoke.member).collect::<Vec<_>>(), MEMBERS);
    for invoke in &first {
        assert_eq!(&*invoke.id, format!("r1/{}", invoke.member));
        assert_eq!((&*invoke.step, invoke.schema), ("r1", Schema::FirstAnswer));
        assert_eq!(kinds(invoke), [PartKind::Artifact], "the context is the driver's to show");
        assert!(invoke.task.contains("round 1"));
    }
    assert!(review.open(Vec::new()).is_empty(), "it is opened once");
    assert!(review.answer("adjudicate", json!({"verdict": "SHIP", "reasoning": "x"})).is_empty());
    assert!(review.answer("r2/skeptic", ships()).is_empty(), "nobody has asked yet");

    let issue =
        json!({"would_block": true, "score": 2, "findings": [{"quote": "free", "issue": "It is not."}]});
    let commands = review.round("r1", [issue, ships(), ships(), ships()]);
    let second = invokes(&commands);
    assert_eq!(second.iter().map(|invoke| &*invoke.member).collect::<Vec<_>>(), MEMBERS);
    for invoke in &second {
        assert_eq!((&*invoke.step, invoke.schema), ("r2", Schema::SecondAnswer));
        assert_eq!(kinds(invoke), [PartKind::Artifact, PartKind::CrossRead]);
        let shown = &*invoke.parts[1].text;
        assert!(shown.contains("It is not.") && !shown.contains("would_block"), "{shown}");
        assert!(invoke.task.contains("round 2"));
    }

    let commands = review.round("r2", [ships(), ships(), ships(), ships()]);
    let [last] = &invokes(&commands)[..] else { panic!("one adjudicator") };
    assert_eq!((&*last.id, &*last.member, &*last.step), ("adjudicate", "adjudicator", "adjudicate"));
    assert_eq!(last.schema, Schema::Adjudication);
    assert_eq!(
        kinds(last),
        [PartKind::Artifact, PartKind::CrossRead, PartKind::SecondAnswers, PartKind::PriorVerdicts]
    );
    assert!(last.parts[1].text.contains("would_block"), "the adjudicator is shown everything");
    assert!(last.parts[3].text.contains("r0"));
    assert!(review.answer("adjudicator", json!({"verdict": "SHIP", "reasoning": "x"})).is_empty());
    assert!(!review.answer("adjudicate", json!({"verdict": "SHIP", "reasoning": "x"})).is_empty());
}

#[test]
fn the_outcome_says_who_blocked_on_what_and_what_to_revise() {
    let mut review = Review::new(Rounds::Two, VerdictPolicy::Strict);
    review.open(vec![json!({"run": "r0"})]);
    let findings = json!([
        {"quote": "Bring it back.", "issue": "When?", "fix": "Say when."},
        {"quote": "free", "issue": "It is not."},
    ]);
    let blocks = json!({"would_block": true, "revision_brief": "Say when.", "findings": findings});
    review.round("r1", [blocks.clone(), ships(), ships(), ships()]);
    let lists = json!({"would_block": false, "irreducible": false, "top_3_issues": ["Too short", "Too dry"]});
    let groundless = json!({"would_block": true, "irreducible": false});
    review.round("r2", [json!({"would_block": true, "irreducible": false}), lists, groundless, ships()]);
    let asked = json!({"verdict": "REVISE", "reasoning": "It needs a day.", "dissent_summary": "voice"});
    let commands = review.answer("adjudicate", asked);
    let (rule, outcome) = facts(&commands);

    let because = "2 of 4 block, 0 of them irreducibly; the adjudicator asks for REVISE; policy strict/1 makes that REVISE.";
    assert_eq!(rule["because"], json!(because));
    assert_eq!((&rule["blocks"], &rule["adjudicator"]), (&json!(2), &json!("REVISE")));
    assert_eq!((&outcome["verdict"], &outcome["incomplete"]), (&json!("REVISE"), &Json::Null));
    assert_eq!((&outcome["because"], &outcome["reasoning"]), (&json!(because), &json!("It needs a day.")));
    assert_eq!(outcome["dissent_summary"], json!("voice"));
    assert_eq!(
        outcome["revision_brief"],
        json!("skeptic: Say when.\nvoice: Too short; Too dry"),
        "the adjudicator says nothing of it, so the members' own words are the brief"
    );
    assert_eq!((&outcome["partial"], &outcome["missing"]), (&json!(false), &json!([])));
    assert_eq!(
        (&outcome["applied_compounding"], &outcome["prior_verdicts_consulted"]),
        (&json!(true), &json!(1))
    );
    let member = |id: &str, would_block: bool, ungrounded: bool| json!({"id": id, "counted": "round2", "would_block": would_block, "irreducible": false, "ungrounded": ungrounded});
    assert_eq!(
        outcome["deliberators"],
        json!([
            member("skeptic", true, false),
            member("voice", false, false),
            member("evidence", true, true),
            member("strategy", false, false)
        ])
    );
    // In the text's order, by the first answer where the last lists none.
    assert_eq!(
        outcome["findings"],
        json!([
            {"by": "skeptic", "line": 1, "column": 12, "span": [11, 15], "quote": "free", "issue": "It is not.",
             "fix": null, "grounded": true},
            {"by": "skeptic", "line": 2, "column": 1, "span": [17, 31], "quote": "Bring it back.", "issue": "When?",
             "fix": "Say when.", "grounded": true},
        ])
    );
}

#[test]
fn a_finding_whose_quote_is_nowhere_grounds_no_block() {
    let mut review = Review::new(Rounds::One, VerdictPolicy::Strict);
    review.open(Vec::new());
    let elsewhere =
        json!({"would_block": true, "findings": [{"quote": "The drill", "issue": "It is not free."}]});
    let commands = review.round("r1", [elsewhere, ships(), ships(), ships()]);
    let [last] = &invokes(&commands)[..] else { panic!("one round, then the adjudicator") };
    assert_eq!(kinds(last), [PartKind::Artifact, PartKind::CrossRead]);
    let commands = review.answer("adjudicate", json!({"verdict": "SHIP", "reasoning": "x"}));
    let (_, outcome) = facts(&commands);
    let skeptic = &outcome["deliberators"][0];
    assert_eq!((&skeptic["counted"], &skeptic["ungrounded"]), (&json!("round1"), &json!(true)));
    assert_eq!(outcome["findings"][0]["grounded"], json!(false));
    assert_eq!((&outcome["verdict"], &outcome["applied_compounding"]), (&json!("REVISE"), &json!(false)));
}

#[test]
fn only_what_blocks_or_is_no_ship_is_to_be_revised() {
    let brief = |blocks: [bool; 4], policy| {
        let mut review = Review::new(Rounds::One, policy);
        review.open(Vec::new());
        let answer = |block| json!({"would_block": block, "revision_brief": "Say when."});
        review.round("r1", blocks.map(answer));
        let commands = review.answer("adjudicate", json!({"verdict": "SHIP", "reasoning": "x"}));
        let (_, outcome) = facts(&commands);
        (outcome["verdict"].clone(), !outcome["revision_brief"].is_null())
    };
    assert_eq!(brief([false; 4], VerdictPolicy::Strict), (json!("SHIP"), false));
    assert_eq!(brief([true, false, false, false], VerdictPolicy::Seed), (json!("SHIP"), true));
    assert_eq!(brief([true; 4], VerdictPolicy::Seed), (json!("HOLD"), true));
}

#[test]
fn a_budget_that_is_spent_ends_the_review_at_any_step() {
    let spent = || ConsultationResult::Absent(AbsenceReason::RunOverBudget);
    let mut review = Review::new(Rounds::Two, VerdictPolicy::Seed);
    review.open(Vec::new());
    for member in &MEMBERS[..3] {
        review.answer(&format!("r1/{member}"), ships());
    }
    let commands = review.feed("r1/strategy", spent());
    assert_eq!(facts(&commands).1["incomplete"], json!("budget_exhausted"));
    let mut review = Review::new(Rounds::One, VerdictPolicy::Seed);
    review.open(Vec::new());
    review.round("r1", [ships(), ships(), ships(), ships()]);
    let commands = review.feed("adjudicate", spent());
    let (rule, outcome) = facts(&commands);
    assert_eq!(
        (&outcome["verdict"], &outcome["incomplete"]),
        (&json!("INCOMPLETE"), &json!("budget_exhausted"))
    );
    assert_eq!((&outcome["missing"], &rule["adjudicator"]), (&json!(["adjudicator"]), &Json::Null));
}

#[test]
fn three_valid_answers_are_enough_for_a_council_that_needs_three() {
    let mut review = Review::new(Rounds::One, VerdictPolicy::Seed);
    review.open(Vec::new());
    review.feed("r1/skeptic", ConsultationResult::Absent(AbsenceReason::TimedOut));
    for member in &MEMBERS[1..3] {
        review.answer(&format!("r1/{member}"), ships());
    }
    let commands = review.answer("r1/strategy", ships());
    assert_eq!(invokes(&commands).len(), 1, "the adjudicator");
}
