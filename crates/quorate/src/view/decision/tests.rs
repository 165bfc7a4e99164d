//! Decisions of each mode; hostile, large and deep ones.

mod fixture;

use quorate_diagnostics::render::{Colour, TextOptions};
use serde_json::json;

use self::fixture::{HOSTILE, advice, asked, bare, guidance, talk, tree, unasked, vote};
use super::vote::{CELLS, bar};
use super::*;
use crate::service::convene::plan::{DeferredQuestion, Plan, PlannedRule, Question, SCHEMA};
use crate::service::convene::report::{Contribution, CountedVote, Message, Node, Rollup};
use crate::view::layout::{ascii, columns_of};

const WIDTHS: [usize; 5] = [53, 64, 80, 120, 200];

fn wide(width: usize) -> TextOptions {
    TextOptions { colour: Colour::Off, width }
}

fn text(decision: &Decision, width: usize) -> String {
    decision.doc(Extent::Full).text(wide(width))
}

fn markdown(decision: &Decision) -> String {
    decision.doc(Extent::Full).markdown()
}

fn all() -> [Decision; 4] {
    [vote(), guidance(), talk(), tree()]
}

/// Asserts that a text contains these parts in this order.
#[track_caller]
fn shows(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { panic!("`{part}` is not next in {text}") };
        rest = after;
    }
}

#[test]
fn a_vote() {
    shows(
        &text(&vote(), 100),
        &[
            "PASS  Release Board\ntwo-thirds (quorum) decides pass: 3.5 of 4.5 ≈ 0.778, needs 0.66.\n",
            "r7k2m9q4xa1bc, 2026-03-04 05:05 UTC",
            "voting, class budget",
            "claude, 4 calls, 8.4 s, 12,040 tokens read, 2,310 written",
            "\nTally\n",
            "3.5 (2 votes)",
            "0.5 (1 vote)",
            "0.5 (1 voter)",
            "3.5 of 4.5 ≈ 0.778, needs 0.66 (┃)",
            "\nVotes\n",
            "Within the plan.",
            "timed out: no answer within 60 s",
            "not asked: auditor (votes on security/audit)",
            "│ Raise the budget\n",
            "Rules, in order",
            "does not decide: it is for the class security",
            "decides pass: 3.5 of 4.5 ≈ 0.778, needs 0.66",
            "was not evaluated: two-thirds decided before it",
            "No answer\n  - legal: timed out: no answer within 60 s",
            "Notes\n  - Partial: no output from legal.",
            "More: `quorate show r7k2m9q4xa1bc --format markdown`",
        ],
    );
    let markdown = markdown(&vote());
    shows(
        &markdown,
        &[
            "| side | weight |",
            "| yes | 3.5 (2 votes) |",
            "```mermaid\npie showData title Weights\n  \"yes\" : 3.5\n",
            "r1[\"two#45;thirds #40;quorum#41;#58; decides pass#58; 3.5 of 4.5 #8776; 0.778, needs 0.66\"]:::fair",
            "d([\"pass\"])",
            "> Raise the budget",
            "> Resolution: by 20%.",
        ],
    );
    assert!(!markdown.contains(['█', '░', '┃']) && !markdown.contains("More:"), "{markdown}");
}

#[test]
fn a_member_that_decides_alone_is_named() {
    let mut decision = vote();
    let count = decision.decision.as_mut().expect("a count");
    count.contribution = vec![Contribution {
        member: "legal".to_owned(),
        vote: "no".to_owned(),
        rationale: "The licence forbids it.".to_owned(),
        evidence: Vec::new(),
    }];
    let part = "Decided alone\n  - legal votes no: The licence forbids it.";
    assert!(text(&decision, 80).contains(part), "{}", text(&decision, 80));
}

#[test]
fn guidance_has_author_rule_and_validity() {
    shows(
        &text(&guidance(), 120),
        &[
            "DONE  Quiet Advisers\n2 fragments of guidance.\n",
            "escalate (severity 9); requires human attention",
            "goes to `lead`",
            "Guidance: 2 fragments\n\n  1. coach, Coach  severity 9 █████████░  priority 50\n",
            "│ Say that you are no doctor, and name one.",
            "rule gravest (aggregate) on the concern “The user asks for a diagnosis, and gets one.”",
            "14 days, until 2026-03-18 05:05 UTC",
            "\nMembers\n",
            "(1 quote)",
            "answer did not fit",
            "not asked: sentinel (phase sentinel)",
            "does not fire",
            "emits 3 fragments on the words of coach, critic and mirror",
            "Refused\n  - fragment/mirror: the fragment of mirror touches the locked trait “skip the warmth” (folded: once",
            "“Skip the warmth, be quick.”",
            "- elder: answer did not fit: `severity` is missing",
        ],
    );
    shows(
        &markdown(&guidance()),
        &[
            "> Say that you are no doctor, and name one.",
            "m0[\"critic#58; severity 6\"]:::fair",
            "m1 -->|\"gravest #40;aggregate#41;\"| f0",
            "m2 -.-x x0",
        ],
    );
}

#[test]
fn a_discussion_has_rounds() {
    shows(
        &text(&talk(), 100),
        &[
            "DONE  Copy Critique\n2 rounds, then no further objections; 3 messages.\n",
            "peer, ring",
            "Round 1\n  - copy → all [objects]\n    │ The claim “twice as fast” has no source",
            "- legal → brand [objects]\n    │ To brand: no.\n    × refused, not delivered: brand is out of its reach",
            "- passed: brand",
            "Round 2\n  - copy → legal\n",
            "- failed: brand",
            "collects what copy and legal said",
            "Refused\n  - message/1/legal, by legal: brand is out of its reach",
            "- brand, round 2: failed: exit status 1: rate limit",
        ],
    );
    shows(
        &markdown(&talk()),
        &[
            "sequenceDiagram\n",
            "  m0->>all: #91;objects#93; The claim",
            "  m1--xall: #91;objects#93; To brand#58; no.",
            "  m0->>m1: Good, then I have nothing left.",
        ],
    );
}

#[test]
fn an_objection_that_was_dropped_is_no_agreement() {
    let outcome = |change: &dyn Fn(&mut Decision)| {
        let mut decision = talk();
        change(&mut decision);
        decision.reason()
    };
    assert_eq!(outcome(&|_| {}), "2 rounds, then no further objections; 3 messages.");
    // No member ever objected, or an older version recorded no objections.
    let none = outcome(&|decision| decision.objections.clear());
    assert_eq!(none, "2 rounds, then no new objections; 3 messages.");
    let unanswered = outcome(&|decision| decision.objections[0].answered = false);
    assert_eq!(
        unanswered,
        "2 rounds, then no new objections; 3 messages. No reply reached copy after objecting."
    );
    let unresolved = outcome(&|decision| {
        decision.objections[1].taken_back = false;
        decision.objecting = vec!["legal".to_owned()];
    });
    assert_eq!(unresolved, "2 rounds, then no new objections; 3 messages. legal still objects.");
}

#[test]
fn a_hierarchy_is_a_tree() {
    shows(
        &text(&tree(), 120),
        &[
            "DONE  Incident Line\nThe root passes up severity 8.\n",
            "intervene (severity 8)",
            "Passed up by the root\n  severity 8 ████████░░\n",
            "│ The plan holds but for the backup.",
            "“the backup runs once a week”",
            "Tree\n  └─ head  Head of Engineering  8 ████████░░\n",
            "saw",
            "platform 8 and product refused",
            "4: The plan holds but for the backup. Do: Run it daily.",
            "8 by gravest (escalate-on-severity), of platform",
            "├─ platform  Platform Lead  8 ████████░░  [passed up without it]",
            "timed out: no answer within 30 s",
            "8 without it, the gravest below, of storage and network: A week of data can be lost.",
            "├─ storage  Storage",
            "└─ network  Network",
            "2: Nothing to raise.",
            "└─ product  Product Lead  [refused]",
            "nothing: what it would pass up touches the locked trait “skip the review”",
            "5 nodes: 3 passed, 1 passed up, 1 refused.",
            "makes what head passes up",
        ],
    );
    shows(
        &markdown(&tree()),
        &["flowchart BT\n", "n1 --> n0", "n4 -.-> n0", "- **head**  Head of Engineering"],
    );
}

#[test]
fn what_is_open_or_incomplete_says_so() {
    let mut decision = vote();
    decision.verdict = None;
    decision.decision = None;
    decision.rules.clear();
    shows(
        &text(&decision, 80),
        &[
            "OPEN  Release Board\nNothing is decided yet. `quorate resume r7k2m9q4xa1bc` continues from the\n",
            "Answers so far",
            "no: Nobody has said who runs them.",
            "timed out: no answer within 60 s",
            "is not evaluated yet",
        ],
    );
    let mut decision = vote();
    decision.verdict = Some(AssemblyVerdict::Incomplete);
    decision.code = Some("missing_votes".to_owned());
    decision.because = Some("it would pass, but a missing vote could change that".to_owned());
    let text = text(&decision, 100);
    let head =
        "INCOMPLETE  Release Board\nIt would pass, but a missing vote could change that (missing_votes).\n";
    assert!(text.starts_with(head), "{text}");
}

#[test]
fn a_cell_for_each_step_and_a_mark_that_only_its_side_reaches() {
    let severity = |severity| severity_text(severity).plain();
    assert_eq!(severity(7), "7 ███████░░░");
    assert_eq!(severity(u64::MAX).matches('█').count(), 10);
    let bar = |part, needs| bar(part, needs, Tone::Plain).plain();
    assert!(bar(0.66, Some(0.66)).starts_with(&format!("{}┃", "█".repeat(18))));
    assert!(bar(0.6599, Some(0.66)).starts_with(&format!("{}░┃", "█".repeat(17))));
    assert_eq!(bar(1.0, Some(1.0)), format!("{}┃", "█".repeat(CELLS)));
    assert!(bar(0.001, None).starts_with("█░"));
    assert_eq!(bar(f64::NAN, None), "░".repeat(CELLS));
}

/// A decision with every text replaced.
fn poisoned(mut decision: Decision, text: &str) -> Decision {
    let put = |slot: &mut String| text.clone_into(slot);
    let put_if = |slot: &mut Option<String>| {
        if let Some(slot) = slot {
            text.clone_into(slot);
        }
    };
    put(&mut decision.title);
    put(&mut decision.subject);
    put(&mut decision.executor);
    put_if(&mut decision.because);
    decision.fragments.iter_mut().for_each(|fragment| put(&mut fragment.text));
    decision.messages.iter_mut().for_each(|message| put(&mut message.text));
    for member in &mut decision.members {
        put(&mut member.role);
        for asked in &mut member.consultations {
            put_if(&mut asked.message);
            for value in asked.answer.iter_mut().flat_map(|answer| answer.values_mut()) {
                if value.is_string() && *value != json!("yes") && *value != json!("no") {
                    *value = json!(text);
                }
            }
        }
    }
    for violation in &mut decision.violations {
        put_if(&mut violation.locked);
        put_if(&mut violation.excerpt);
        violation.to = violation.to.iter().map(|_| text.to_owned()).collect();
    }
    let outputs = decision.nodes.iter_mut().filter_map(|node| node.output.as_mut());
    for rollup in outputs.chain(&mut decision.rollup) {
        put(&mut rollup.concern);
        put(&mut rollup.suggestion);
        rollup.evidence = vec![text.to_owned()];
    }
    if let Some(count) = &mut decision.decision {
        put_if(&mut count.text);
        put_if(&mut count.tie);
    }
    decision.notes = vec![text.to_owned()];
    decision
}

/// Asserts that no line exceeds the terminal's width.
#[track_caller]
fn fits(text: &str, width: usize) {
    for line in text.lines() {
        assert!(columns_of(line) <= width, "{} > {width}: {line}\n{text}", columns_of(line));
    }
}

#[test]
fn nothing_is_wider_than_the_terminal() {
    let long = "x".repeat(900);
    let words = "a few words and 日本語の文字 and more ".repeat(30);
    for poison in ["plain", HOSTILE, &long, &words, "", "\n\n", "é\u{301}\u{301}"] {
        for decision in all() {
            let decision = poisoned(decision, poison);
            for width in WIDTHS {
                fits(&text(&decision, width), width);
            }
        }
    }
}

#[test]
fn hostile_text_is_sanitized() {
    for decision in all() {
        let doc = poisoned(decision, HOSTILE).doc(Extent::Full);
        let plain = doc.text(wide(80));
        for shown in [&plain, &doc.markdown(), &doc.html()] {
            let odd = shown.chars().find(|c| {
                (c.is_control() && !matches!(c, '\n' | '\t'))
                    || matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{E0000}'..='\u{E007F}')
            });
            assert_eq!(odd, None, "{shown}");
        }
        for marked_up in [doc.markdown(), doc.html()] {
            assert!(!marked_up.contains("<script"), "{marked_up}");
        }
        let odd: Vec<char> = ascii(&plain).chars().filter(|c| !c.is_ascii()).collect();
        assert!(odd.is_empty(), "{odd:?} in {plain}");
    }
}

#[test]
fn no_text_breaks_out_of_a_diagram() {
    for decision in all() {
        let mode = decision.mode;
        let text = markdown(&poisoned(decision, HOSTILE));
        let mut inside = false;
        let mut diagrams = 0;
        for line in text.lines() {
            match (inside, line) {
                (false, "```mermaid") => (inside, diagrams) = (true, diagrams + 1),
                (true, "```") => inside = false,
                (true, line) => assert!(is_ours(line), "{mode:?}: {line}"),
                (false, line) => assert!(!line.trim_start().starts_with("```"), "{line}"),
            }
        }
        assert!(!inside && diagrams > 0, "{text}");
    }
}

/// Whether a line of a diagram is one that the diagrams write, with labels of letters, digits and numbers.
fn is_ours(row: &str) -> bool {
    let is_safe = |label: &str| {
        let mut rest = label;
        while let Some((_, after)) = rest.split_once('#') {
            let Some((number, after)) = after.split_once(';') else { return false };
            if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
                return false;
            }
            rest = after;
        }
        !label.contains(['"', '`', '<', '>', '{', '%', '|', '\u{1b}'])
            && !label.split(' ').any(|word| word == "end")
    };
    let quoted: Vec<&str> = row.split('"').skip(1).step_by(2).collect();
    let label_after = |separator: &str| row.split_once(separator).map(|(_, label)| label);
    let message_label = if row.starts_with("  m") && quoted.is_empty() {
        label_after(": ").or_else(|| label_after(" as "))
    } else {
        None
    };
    let labels = quoted.iter().copied().chain(message_label);
    row.matches('"').count().is_multiple_of(2) && labels.into_iter().all(is_safe)
}

/// A chain of `length` members, each below the one before.
fn chain(length: usize, severity: fn(usize) -> u64) -> Decision {
    let mut decision = bare(Mode::Hierarchy, AssemblyRequest::Hierarchy);
    for at in 0..length {
        let parent = at.checked_sub(1).map(|parent| format!("n{parent}"));
        let id = format!("n{at}");
        let member = asked("node", &id, "Link", advice(severity(at), "It goes on.", ""));
        decision.members.push(Member { parent: parent.clone(), ..member });
        decision.nodes.push(Node {
            member: id,
            parent,
            status: "passed".to_owned(),
            rule: None,
            from: Vec::new(),
            output: Some(Rollup {
                severity: severity(at),
                concern: "It goes on.".to_owned(),
                evidence: Vec::new(),
                suggestion: String::new(),
            }),
        });
    }
    decision
}

#[test]
fn a_deep_chain_is_folded_or_goes_on_below() {
    let folded = text(&chain(200, |_| 4), 60);
    shows(&folded, &["└─ n0  Link", "⋮ 198 members one below the other pass up the same:", "└─ n199  Link"]);
    let changing = chain(200, |at| (at % 7) as u64);
    for width in WIDTHS {
        let text = text(&changing, width);
        fits(&text, width);
        assert!(text.lines().count() < 1000, "{width}: {}", text.lines().count());
        shows(&text, &["Tree, below n7", "and 50 more members"]);
    }
}

#[test]
fn five_hundred_members_are_folded() {
    let member = |at: usize| format!("member-{at:03}");
    let word = |at: usize| if at.is_multiple_of(9) { "no" } else { "yes" };
    let counted = |at: usize| CountedVote {
        member: member(at),
        weight: "1".to_owned(),
        vote: word(at).to_owned(),
        withheld: None,
    };
    let ballot = |at: usize| json!({"vote": word(at), "rationale": "Because."});
    let mut board = vote();
    board.members = (0..500).map(|at| asked("ask", &member(at), "Voter", ballot(at))).collect();
    if let Some(count) = &mut board.decision {
        count.votes = (0..500).map(counted).collect();
    }
    let board_text = text(&board, 100);
    assert!(board_text.contains("member-495") && board_text.contains("and 440 more votes"), "{board_text}");
    let mut advisers = guidance();
    advisers.members =
        (0..500).map(|at| asked("ask", &member(at), "Adviser", advice((at % 11) as u64, "c", "s"))).collect();
    let mut peers = talk();
    let answer = |at: usize| json!({"message": format!("message {at}")});
    peers.members = (0..500).map(|at| asked("round1", &member(at), "Peer", answer(at))).collect();
    let message = |at: usize| Message { round: 1, from: member(at), to: None, text: format!("message {at}") };
    peers.messages = (0..500).map(message).collect();
    let mut line = tree();
    line.nodes.clear();
    line.members = (0..500)
        .map(|at| Member { parent: (at > 0).then(|| member(0)), ..unasked(&member(at), "Node") })
        .collect();
    for decision in [board, advisers, peers, line] {
        for width in WIDTHS {
            let text = text(&decision, width);
            fits(&text, width);
            assert!(text.lines().count() < 700, "{:?} at {width}: {}", decision.mode, text.lines().count());
            assert!(text.contains("more"), "{text}");
        }
        let longest = markdown(&decision).split("```").map(str::len).max().unwrap_or_default();
        assert!(longest < 50_000, "{:?}: {longest}", decision.mode);
    }
}

#[test]
fn colours_repeat_what_the_words_say() {
    let coloured = vote().doc(Extent::Full).text(TextOptions { colour: Colour::On, width: 100 });
    assert!(coloured.starts_with("\u{1b}[1m\u{1b}[32mPASS\u{1b}[0m"), "{coloured}");
}

#[test]
fn a_plan_has_every_prompt() {
    let later = |member: &str, when: &str| DeferredQuestion {
        member: member.to_owned(),
        executor: "offline".to_owned(),
        when: when.to_owned(),
    };
    let plan = Plan {
        schema: SCHEMA,
        dry_run: true,
        assembly: "my-advisory".to_owned(),
        title: "Quiet Advisers".to_owned(),
        mode: Mode::Advisory,
        request: AssemblyRequest::Advisory {
            phase: "session".to_owned(),
            trigger: "sample".to_owned(),
            sentinel_first: true,
        },
        subject: "-".to_owned(),
        notes: vec!["Advice goes to `lead`.".to_owned()],
        first: vec![Question {
            invocation: "ask/sentinel".to_owned(),
            member: "sentinel".to_owned(),
            executor: "claude".to_owned(),
            timeout_ms: 90_000,
            prompt: Some("You advise.\n\n```\nuser: \u{1b}[31mhi\n```\n".to_owned()),
        }],
        later: vec![later("critic", "after the sentinels, unless they end the run")],
        never: vec![
            later("coach", "it is not in the phase session for sample"),
            later("elder", "it is not in the phase session for sample"),
        ],
        rules: vec![PlannedRule { id: "gravest".to_owned(), kind: "aggregate".to_owned() }],
        locked_traits: vec!["skip `the` warmth".to_owned()],
    };
    shows(
        &plan.doc().text(wide(200)),
        &[
            "PLAN  Quiet Advisers\nmy-advisory: advisory, phase session, trigger sample, sentinels first, on",
            "a run begins with 1 question.",
            "Asked at once",
            "1 min 30 s",
            "- critic (offline): after the sentinels, unless they end the run",
            "- coach (offline) and elder (offline): it is not in the phase session for sample",
            "1. gravest (aggregate)",
            "- “skip `the` warmth”",
            "Prompt of ask/sentinel\n  You advise.\n\n  ```\n  user: [U+001B][31mhi\n  ```\n",
        ],
    );
    shows(&plan.doc().markdown(), &["````text\nYou advise.\n\n```\nuser: [U+001B][31mhi\n```\n````"]);
}
