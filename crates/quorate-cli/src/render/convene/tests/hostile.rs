//! Texts with control characters, markup or excessive length, and large or deep assemblies.

use std::sync::Arc;

use quorate::service::convene::plan::{DeferredQuestion, Plan, Question};
use quorate::service::convene::report::{Decision, CountedVote, Member, Message, Node, Rollup};
use quorate_manifest::assembly::Mode;
use quorate_protocol::assembly::AssemblyRequest;
use serde_json::json;

use super::super::super::layout::{ascii, columns_of};
use super::super::fixture::{HOSTILE, advice, asked, bare, guidance, talk, tree, unasked, vote};
use super::super::{Format, report};
use super::*;
use crate::render::convene;

const WIDTHS: [usize; 6] = [40, 53, 64, 80, 120, 200];

/// A report with every text replaced.
fn poisoned(mut report: Decision, text: &str) -> Decision {
    let put = |slot: &mut String| text.clone_into(slot);
    let put_if = |slot: &mut Option<String>| {
        if let Some(slot) = slot {
            text.clone_into(slot);
        }
    };
    put(&mut report.title);
    put(&mut report.subject);
    put(&mut report.executor);
    put_if(&mut report.because);
    for fragment in &mut report.fragments {
        put(&mut fragment.text);
    }
    for message in &mut report.messages {
        put(&mut message.text);
    }
    for member in &mut report.members {
        put(&mut member.role);
        for consultation in &mut member.consultations {
            put_if(&mut consultation.message);
            for value in consultation.answer.iter_mut().flat_map(|answer| answer.values_mut()) {
                if value.is_string() && *value != json!("yes") && *value != json!("no") {
                    *value = json!(text);
                }
            }
        }
    }
    for violation in &mut report.violations {
        put_if(&mut violation.locked);
        put_if(&mut violation.excerpt);
        violation.to = violation.to.iter().map(|_| text.to_owned()).collect();
    }
    for rollup in
        report.nodes.iter_mut().filter_map(|rollup| rollup.output.as_mut()).chain(&mut report.rollup)
    {
        put(&mut rollup.concern);
        put(&mut rollup.suggestion);
        rollup.evidence = vec![text.to_owned()];
    }
    if let Some(decision) = &mut report.decision {
        put_if(&mut decision.text);
        put_if(&mut decision.tie);
    }
    report.notes = vec![text.to_owned()];
    report
}

fn all() -> [Decision; 4] {
    [vote(), guidance(), talk(), tree()]
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
    for text in ["plain", HOSTILE, &long, &words, "", "\n\n", "é\u{301}\u{301}"] {
        for report in all() {
            let report = poisoned(report, text);
            for width in WIDTHS {
                fits(&human(&report, wide(width)), width);
            }
        }
    }
}

#[test]
fn hostile_text_is_sanitized() {
    for report in all() {
        let report = poisoned(report, HOSTILE);
        for text in [human(&report, wide(80)), markdown(&report)] {
            let odd = text.chars().find(|c| {
                (c.is_control() && *c != '\n')
                    || matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{E0000}'..='\u{E007F}')
            });
            assert_eq!(odd, None, "{text}");
        }
        let coloured = human(&report, TextOptions { colour: Colour::On, width: 80 });
        assert_eq!(anstream::adapter::strip_str(&coloured).to_string(), human(&report, wide(80)));
    }
}

#[test]
fn no_text_breaks_out_of_markdown_or_a_diagram() {
    for report in all() {
        let mode = report.mode;
        let text = markdown(&poisoned(report, HOSTILE));
        assert!(!text.contains("<script"), "{text}");
        let mut inside = false;
        let mut diagrams = 0;
        for line in text.lines() {
            match (inside, line) {
                (false, "```mermaid") => (inside, diagrams) = (true, diagrams + 1),
                (true, "```") => inside = false,
                (true, line) => assert!(known(line), "{mode:?}: {line}"),
                (false, line) => assert!(!line.starts_with("```"), "{line}"),
            }
        }
        assert!(!inside && diagrams > 0, "{text}");
        // A table's rows have as many cells as its heading.
        for table in text.split("\n\n").filter(|block| block.starts_with("| ")) {
            let cells = |row: &str| row.replace("\\|", "").matches('|').count();
            let heading = table.lines().next().map_or(0, cells);
            assert!(table.lines().all(|row| cells(row) == heading), "{table}");
        }
    }
}

/// Whether a line of a diagram is one that the renderer writes, with labels of letters, digits and numbers.
fn known(row: &str) -> bool {
    let safe = |label: &str| {
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
    row.matches('"').count().is_multiple_of(2) && labels.into_iter().all(safe)
}

/// A chain of `length` members, each below the one before.
fn chain(length: usize, severity: fn(usize) -> u64) -> Decision {
    let mut report = bare(Mode::Hierarchy, AssemblyRequest::Hierarchy);
    for at in 0..length {
        let parent = at.checked_sub(1).map(|parent| format!("n{parent}"));
        let id = format!("n{at}");
        let member = asked("node", &id, "Link", advice(severity(at), "It goes on.", ""));
        report.members.push(Member { parent: parent.clone(), ..member });
        report.nodes.push(Node {
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
    report
}

#[test]
fn a_deep_chain_is_folded() {
    insta::assert_snapshot!(human(&chain(200, |_| 4), wide(60)), @"
    DONE  Release Board
    The root passes up nothing.

      run      r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
      assembly release-board
      mode     hierarchy
      subject  proposal.md
      executor claude, 4 calls, 8.4 s, 12,040 tokens read, 2,310
               written

    Tree
      n0  Link  4 ████░░░░░░
      │ saw  n1 4
      │ said 4: It goes on.
      └─ ⋮ 198 members one below the other pass up the same:
         │ n1 … n198
         └─ n199  Link  4 ████░░░░░░
              said 4: It goes on.

    More: `quorate show r7k2m9q4xa1bc --format markdown`
    ");
}

#[test]
fn a_deep_chain_in_which_everything_changes_goes_on_below() {
    let report = chain(200, |at| (at % 7) as u64);
    for width in WIDTHS {
        let text = human(&report, wide(width));
        fits(&text, width);
        assert!(text.lines().count() < 1000, "{width}: {}", text.lines().count());
        assert!(text.contains("and 50 more members"), "{text}");
    }
    let text = human(&report, wide(60));
    assert!(text.contains("Tree, below n10"), "{text}");
}

#[test]
fn five_hundred_members_are_folded() {
    let member = |at: usize| format!("member-{at:03}");
    let mut board = vote();
    let ballot =
        |at: usize| json!({"vote": if at.is_multiple_of(9) { "no" } else { "yes" }, "rationale": "Because."});
    board.members = (0..500).map(|at| asked("ask", &member(at), "Voter", ballot(at))).collect();
    if let Some(decision) = &mut board.decision {
        let vote = |at: usize| CountedVote {
            member: member(at),
            weight: "1".to_owned(),
            vote: if at.is_multiple_of(9) { "no" } else { "yes" }.to_owned(),
            withheld: None,
        };
        decision.votes = (0..500).map(vote).collect();
    }
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
    for report in [board, advisers, peers, line] {
        for width in WIDTHS {
            let text = human(&report, wide(width));
            fits(&text, width);
            assert!(text.lines().count() < 700, "{:?} at {width}: {}", report.mode, text.lines().count());
            assert!(text.contains("more"), "{text}");
        }
        let diagrams = markdown(&report);
        let longest = diagrams.split("```").map(str::len).max().unwrap_or_default();
        assert!(longest < 50_000, "{:?}: {longest}", report.mode);
    }
}

#[test]
fn who_votes_no_is_shown_of_many() {
    let mut board = vote();
    if let Some(decision) = &mut board.decision {
        let vote = |at: usize| CountedVote {
            member: format!("m{at}"),
            weight: "1".to_owned(),
            vote: if at == 499 { "no" } else { "yes" }.to_owned(),
            withheld: None,
        };
        decision.votes = (0..500).map(vote).collect();
    }
    let text = human(&board, wide(100));
    assert!(text.contains("m499") && text.contains("and 440 more votes"), "{text}");
}

#[test]
fn a_terminal_with_ascii_alone_is_drawn_to() {
    for report in all() {
        let text = ascii(&human(&report, wide(80)));
        let odd: Vec<char> = text.chars().filter(|c| !c.is_ascii()).collect();
        assert!(odd.is_empty(), "{odd:?} in {text}");
        fits(&text, 80);
    }
}

#[test]
fn what_is_open_refused_or_incomplete_says_so() {
    let mut report = vote();
    report.verdict = None;
    report.decision = None;
    report.rules.clear();
    insta::assert_snapshot!(human(&report, wide(80)), @"
    OPEN  Release Board
    Nothing is decided yet. `quorate resume r7k2m9q4xa1bc` continues from the
    recorded answers.

      run      r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
      assembly release-board
      mode     voting, class budget
      subject  proposal.md
      executor claude, 4 calls, 8.4 s, 12,040 tokens read, 2,310 written

    Answers so far
      member   answer
      ───────────────────────────────────────────────────────────────────────────
      chair    yes: The machines pay for themselves within a year; the numbers in
               the annex are conservative.
      finance  yes: Within the plan.
      ops      no: Nobody has said who runs them.
      legal    timed out: no answer within 60 s

    Rules, in order
         rule        kind      what it did
      ─────────────────────────────────────────────
      1  veto        terminal  is not evaluated yet
      2  two-thirds  quorum    is not evaluated yet
      3  rest        majority  is not evaluated yet

    No answer
      - legal: timed out: no answer within 60 s

    Notes
      - Partial: no output from legal.

    More: `quorate show r7k2m9q4xa1bc --format markdown`
    ");
    let mut report = vote();
    report.verdict = Some(quorate::AssemblyVerdict::Incomplete);
    report.code = Some("missing_votes".to_owned());
    report.because = Some("it would pass, but a missing vote could change that".to_owned());
    let text = human(&report, wide(100));
    assert!(text.starts_with("INCOMPLETE  Release Board\nIt would pass, but a missing vote could change that (missing_votes).\n"), "{text}");
}

#[test]
fn colours_say_the_outcome() {
    let text = human(&vote(), TextOptions { colour: Colour::On, width: 100 });
    assert!(text.starts_with("\u{1b}[1m\u{1b}[32mPASS\u{1b}[0m"), "{text}");
    let plain = anstream::adapter::strip_str(&text).to_string();
    assert_eq!(plain, human(&vote(), wide(100)));
}

#[test]
fn formats_for_findings_have_no_words_for_an_assembly() {
    let shown = |format| report(&vote(), format, Extent::Full, wide(100));
    assert_eq!((shown(Format::Sarif), shown(Format::Github)), (None, None));
    assert!(shown(Format::Json).is_some_and(|text| text.starts_with('{')));
}

/// A plan: one member is asked at once, one later, two never; the prompt contains the end of a code block.
fn planned() -> Plan {
    let later = |member: &str, when: &str| DeferredQuestion {
        member: member.to_owned(),
        executor: "offline".to_owned(),
        when: when.to_owned(),
    };
    Plan {
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
            prompt: Some(Arc::from("You advise.\n\n```\nuser: \u{1b}[31mhi\n```\n")),
        }],
        later: vec![later("critic", "after the sentinels, unless they end the run")],
        never: vec![
            later("coach", "it is not in the phase session for sample"),
            later("elder", "it is not in the phase session for sample"),
        ],
        rules: vec![("gravest".to_owned(), "aggregate".to_owned())],
        locked_traits: vec!["skip `the` warmth".to_owned()],
    }
}

#[test]
fn a_plan() {
    insta::assert_snapshot!(convene::plan_human(&planned(), wide(80)), @r#"
    PLAN  Quiet Advisers
    my-advisory: advisory, phase session, trigger sample, sentinels first, on
    standard input. No member is asked now; a run begins with 1 question. Advice
    goes to `lead`.

    Asked at once
      member    invocation    executor  deadline
      ────────────────────────────────────────────
      sentinel  ask/sentinel  claude    1 min 30 s

    Asked later
      - critic (offline): after the sentinels, unless they end the run

    Not asked in this run
      - coach (offline) and elder (offline): it is not in the phase session for
        sample

    Rules, in order
         rule     kind
      ─────────────────────
      1  gravest  aggregate

    Locked traits: no outcome may contain these
      - “skip `the` warmth”

    Prompt of ask/sentinel
      You advise.

      ```
      user: [U+001B][31mhi
      ```
    "#);
    insta::assert_snapshot!(convene::plan_markdown(&planned()), @r#"
    ## PLAN: Quiet Advisers

    my-advisory: advisory, phase session, trigger sample, sentinels first, on standard input. No member is asked now; a run begins with 1 question. Advice goes to \`lead\`.

    ### Asked at once

    | member | invocation | executor | deadline |
    | --- | --- | --- | --- |
    | `sentinel` | `ask/sentinel` | `claude` | 1 min 30 s |

    ### Asked later

    - critic (offline): after the sentinels, unless they end the run

    ### Not asked in this run

    - coach (offline) and elder (offline): it is not in the phase session for sample

    ### Rules, in order

    1. `gravest` (aggregate)

    ### Locked traits

    No outcome may contain these.

    - ``skip `the` warmth``

    ### Prompt of `ask/sentinel`

    ````text
    You advise.

    ```
    user: [U+001B][31mhi
    ```
    ````
    "#);
}
