//! A council that ends before everybody has answered: whom its outcome names (X5, X12).

use quorate_manifest::council::{CrossRead, OnFailure, Rounds, VerdictPolicy};
use quorate_protocol::modes::council::{Council, Setup};
use quorate_protocol::{
    AbsenceReason, Command, ConsultationResult, Event, FactKind, Json, Part, PartKind, Protocol as _,
    TimedEvent,
};
use serde_json::json;

const MEMBERS: [&str; 4] = ["skeptic", "voice", "evidence", "strategy"];

fn council(fail_fast: OnFailure) -> Council {
    let mut council = Council::new(Setup {
        deliberators: MEMBERS.map(Into::into).to_vec(),
        rounds: Rounds::Two,
        cross_read: CrossRead::Verdicts,
        fail_fast,
        min_deliberators: 3,
        policy: VerdictPolicy::Seed.into(),
    });
    let inputs = vec![Part::new(PartKind::Artifact, "draft.md", "A draft.")];
    let opened = Event::Opened { run: "r".into(), inputs, priors: Vec::new(), overlays: Vec::new() };
    assert_eq!(council.advance(&TimedEvent { at_ms: 0, event: opened }).len(), MEMBERS.len());
    council
}

fn feed(council: &mut Council, id: &str, result: ConsultationResult) -> Vec<Command> {
    council.advance(&TimedEvent { at_ms: 0, event: Event::Consulted { id: id.into(), result } })
}

fn ships(council: &mut Council, id: &str) -> Vec<Command> {
    let irreducible = json!({"verdict": "ship", "would_block": false, "irreducible": false, "score": 4});
    feed(council, id, ConsultationResult::Answered(irreducible))
}

fn outcome(commands: &[Command]) -> Option<&Json> {
    commands.iter().find_map(|command| match command {
        Command::Record(fact) if fact.kind == FactKind::Outcome => Some(&fact.data),
        _ => None,
    })
}

#[test]
fn a_review_that_ends_at_the_first_failure_names_whom_it_did_not_wait_for() {
    for (answered, round) in [(0, "r1"), (2, "r1"), (0, "r2"), (3, "r2")] {
        let mut council = council(OnFailure::End);
        if round == "r2" {
            for member in MEMBERS {
                ships(&mut council, &format!("r1/{member}"));
            }
        }
        for member in &MEMBERS[..answered] {
            assert!(ships(&mut council, &format!("{round}/{member}")).is_empty());
        }
        let failed = feed(
            &mut council,
            &format!("{round}/{}", MEMBERS[answered]),
            ConsultationResult::Absent(AbsenceReason::Failed),
        );
        let outcome = outcome(&failed).expect("it has ended");
        assert_eq!((&outcome["incomplete"], &outcome["partial"]), (&json!("fail_fast"), &json!(true)));
        assert_eq!(outcome["missing"], json!(MEMBERS[answered..]), "{answered} answered in {round}");
        let cancelled: Vec<&str> = failed
            .iter()
            .filter_map(|command| if let Command::Cancel(id) = command { Some(&**id) } else { None })
            .collect();
        let waiting = MEMBERS[answered + 1..].iter().map(|member| format!("{round}/{member}"));
        assert_eq!(cancelled, waiting.collect::<Vec<_>>());
    }
}

#[test]
fn an_answer_that_cannot_be_read_is_missing() {
    let mut council = council(OnFailure::Continue);
    for member in MEMBERS {
        ships(&mut council, &format!("r1/{member}"));
    }
    for member in &MEMBERS[..2] {
        ships(&mut council, &format!("r2/{member}"));
    }
    feed(&mut council, "r2/evidence", ConsultationResult::Answered(json!({"verdict": "ship"})));
    let last = feed(&mut council, "r2/strategy", ConsultationResult::Absent(AbsenceReason::TimedOut));
    let outcome = outcome(&last).expect("two valid second answers are too few");
    assert_eq!(outcome["missing"], json!(["evidence", "strategy"]));
    assert_eq!(outcome["incomplete"], json!("second_round"));
}
