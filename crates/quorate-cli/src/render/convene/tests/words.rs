//! The head of a report in every mode, and plans.

use std::sync::Arc;

use quorate_manifest::assembly::Mode;
use quorate_protocol::assembly::AssemblyRequest;

use super::super::fixture::vote;
use super::super::{Format, plan, report};
use super::*;
use quorate::service::convene::plan::{DeferredQuestion, Plan, Question};

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
    report.verdict = Some("incomplete".to_owned());
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
    insta::assert_snapshot!(plan::human(&planned(), wide(80)), @r#"
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
    insta::assert_snapshot!(plan::markdown(&planned()), @r#"
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
