//! The length of what people read, on a terminal of 80 columns.

use crate::support::council::{COUNCIL, all_ship_except};
use crate::support::{CommandOutput, TestDir, assembly, finish};
use serde_json::{Value, json};

/// Runs a command for 80 columns.
fn run(place: &TestDir, arguments: &[&str]) -> CommandOutput {
    finish(place.command(arguments).env("COLUMNS", "80").spawn().expect("the binary runs"))
}

fn sentence(number: usize) -> String {
    format!("Sentence {number:02} of the text makes a claim that needs a source.")
}

/// Answers with this number of findings, each about its own sentence and raised by three members, one of which blocks.
fn answers(findings: usize) -> Value {
    let finding = |number: usize| {
        json!({
            "quote": sentence(number),
            "issue": format!("Figure {number:02} has no source near it, and does not say compared with what it is large."),
            "fix": "Say where the figure is from: link it, name the data and its date, or take it out of the text.",
        })
    };
    let findings: Vec<Value> = (0..findings).map(finding).collect();
    let answer = |blocks: bool| json!({"would_block": blocks, "irreducible": false, "score": 2, "block_reason": "No source.", "findings": findings});
    all_ship_except(json!({
        "r1/evidence": answer(true), "r1/skeptic": answer(false), "r1/strategy": answer(false),
        "r2/evidence": answer(true), "r2/skeptic": answer(false), "r2/strategy": answer(false),
        "adjudicate": {"verdict": "REVISE", "reasoning": "The figures need sources."},
    }))
}

#[test]
fn outputs_have_limits() {
    let place = TestDir::scripted(&answers(3));
    let text: String = (0..15).map(|number| format!("{} It goes on.\n\n", sentence(number))).collect();
    place.write("drafts/post.md", text);
    place.write(
        "council.yaml",
        format!("{COUNCIL}tier_rules: {{tier_1: {{post: ['*post*']}}}}\nwatch: {{paths: [./drafts/]}}\n"),
    );
    let board = TestDir::new();
    let members: Vec<String> = (0..6).map(|number| format!("member-{number}")).collect();
    let members: Vec<(&str, &str)> = members.iter().map(|id| (&**id, "weight: 1")).collect();
    assembly::write(&board, "voting", &members, "synthesis: {rules: [{id: most, kind: majority}]}\n");
    assembly::answers(&board, &json!({"ask": assembly::vote_answer("yes")}));
    board.write("proposal.md", "# A new region\n\nResolution: open it.\n");

    let limited = |place: &TestDir, arguments: &[&str], most: usize, verdict: &str| {
        let ran = run(place, arguments);
        // A terminal wraps the lines of diagnostics.
        let is_laid_out = !ran.stdout.is_empty();
        let text = if is_laid_out { ran.stdout } else { ran.stderr };
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() <= most, "{arguments:?}: {} lines, and at most {most}: {text}", lines.len());
        let widest = lines.iter().map(|line| line.chars().count()).max().unwrap_or_default();
        assert!(widest <= 80 || !is_laid_out, "{arguments:?}: {widest} columns: {text}");
        if !verdict.is_empty() {
            let last = lines.iter().rposition(|line| line.starts_with(verdict));
            assert!(last.is_some_and(|at| lines.len() - at <= 5), "{arguments:?} ends otherwise: {text}");
        }
        text
    };
    for (findings, most) in [(3, 30), (10, 45), (15, 60)] {
        place.answers(&answers(findings));
        let text = limited(&place, &["review", "drafts/post.md"], most, "REVISE");
        for number in 0..15 {
            let times = text.matches(&format!("Figure {number:02}")).count();
            assert_eq!(times, usize::from(number < findings), "issue {number}: {text}");
        }
        assert!(text.contains("Next: edit drafts/post.md and review it again."), "{text}");
        assert!(text.contains(" --full`"), "{text}");
    }
    limited(&place, &["show", "drafts/post.md"], 60, "REVISE");
    let full = run(&place, &["show", "drafts/post.md", "--full"]).assert_code(0);
    assert!(full.stdout.contains("The figures need sources."), "{}", full.stdout);
    limited(&place, &["runs"], 8, "");
    limited(&place, &["sweep", "--since", "all", "--force"], 6, "");
    limited(&place, &["review", "missing.md"], 8, "");
    limited(&board, &["convene", "ASSEMBLY.md", "--proposal", "proposal.md"], 14, "PASS");
}
