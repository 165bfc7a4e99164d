//! A talk at two widths, and as Markdown.

use super::super::fixture::talk;
use super::*;
use quorate::service::convene::report::Report;

#[test]
fn at_a_wide_terminal() {
    insta::assert_snapshot!(human(&talk(), wide(100)), @"
    DONE  Copy Critique
    2 rounds, then no further objections; 3 messages.

      run      r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
      assembly release-board
      mode     peer, ring
      subject  proposal.md
      executor claude, 4 calls, 8.4 s, 12,040 tokens read, 2,310 written

    Round 1
      copy → all  [objects]
      │ The claim “twice as fast” has no source, and the second paragraph promises what we do not sell.
          ↳ legal → brand  [objects]
          │ To brand: no.
          × refused, not delivered: brand is out of its reach
      passed: brand

    Round 2
          ↳ copy → legal
          │ Good, then I have nothing left.
          ↳ legal → copy
          │ I shall add the source to the footnote.
      failed: brand

    Rules, in order
         rule     kind       what it did
      ────────────────────────────────────────────────────────
      1  collect  aggregate  collects what copy and legal said

    Refused
      - message/1/legal, by legal: brand is out of its reach

    No answer
      - brand, round 2: failed: exit status 1: rate limit

    Notes
      - Partial: no output from brand.

    More: `quorate show r7k2m9q4xa1bc --format markdown`, `quorate replay r7k2m9q4xa1bc`
    ");
}

#[test]
fn at_a_narrow_terminal() {
    insta::assert_snapshot!(human(&talk(), wide(48)), @"
    DONE  Copy Critique
    2 rounds, then no further objections; 3
    messages.

      run      r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
      assembly release-board
      mode     peer, ring
      subject  proposal.md
      executor claude, 4 calls, 8.4 s, 12,040 tokens
               read, 2,310 written

    Round 1
      copy → all  [objects]
      │ The claim “twice as fast” has no source, and
      │ the second paragraph promises what we do not
      │ sell.
          ↳ legal → brand  [objects]
          │ To brand: no.
          × refused, not delivered: brand is out of
            its reach
      passed: brand

    Round 2
          ↳ copy → legal
          │ Good, then I have nothing left.
          ↳ legal → copy
          │ I shall add the source to the footnote.
      failed: brand

    Rules, in order
         rule     kind       what it did
      ──────────────────────────────────────────────
      1  collect  aggregate  collects what copy and
                             legal said

    Refused
      - message/1/legal, by legal: brand is out of
        its reach

    No answer
      - brand, round 2: failed: exit status 1: rate
        limit

    Notes
      - Partial: no output from brand.

    `quorate replay r7k2m9q4xa1bc`
    ");
}

#[test]
fn as_markdown() {
    insta::assert_snapshot!(markdown(&talk()), @"
    ## DONE: Copy Critique

    2 rounds, then no further objections; 3 messages.

    - run: r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
    - assembly: release-board
    - mode: peer, ring
    - subject: proposal.md

    ```mermaid
    sequenceDiagram
      participant m0 as copy
      participant m1 as legal
      participant all as everybody
      Note over all: round 1
      m0->>all: #91;objects#93; The claim #8220;twice as fast#8221; has no source, and the second parag…
      m1--xall: #91;objects#93; To brand#58; no.
      Note over all: round 2
      m0->>m1: Good, then I have nothing left.
      m1->>m0: I shall add the source to the footnote.
    ```

    ### Round 1

    `copy` → all *(objects)*

    > The claim “twice as fast” has no source, and the second paragraph promises what we do not sell.

    `legal` → brand *(objects)* **refused, not delivered: brand is out of its reach**

    > To brand: no.

    - passed: brand

    ### Round 2

    `copy` → legal

    > Good, then I have nothing left.

    `legal` → copy

    > I shall add the source to the footnote.

    - `brand`: failed

    ### Rules, in order

    1. `collect` (aggregate): **collects what copy and legal said**

    ### Refused

    - message/1/legal, by legal: brand is out of its reach

    ### No answer

    - brand, round 2: failed: exit status 1: rate limit

    ### Notes

    - Partial: no output from brand.

    <sub>executor claude, 4 calls, 8.4 s, 12,040 tokens read, 2,310 written</sub>
    ");
}

#[test]
fn an_objection_that_was_dropped_is_no_agreement() {
    let outcome = |change: &dyn Fn(&mut Report)| {
        let mut report = talk();
        change(&mut report);
        let text = human(&report, wide(200));
        text.lines().skip(1).take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(outcome(&|_| {}), "2 rounds, then no further objections; 3 messages.");
    // No member ever objected, or an older version recorded no objections.
    let none = outcome(&|report| report.objections.clear());
    assert_eq!(none, "2 rounds, then no new objections; 3 messages.");
    let unanswered = outcome(&|report| report.objections[0].answered = false);
    assert_eq!(
        unanswered,
        "2 rounds, then no new objections; 3 messages. No reply reached copy after objecting."
    );
    let unresolved = outcome(&|report| {
        report.objections[1].taken_back = false;
        report.objecting = vec!["legal".to_owned()];
    });
    assert_eq!(unresolved, "2 rounds, then no new objections; 3 messages. legal still objects.");
}
