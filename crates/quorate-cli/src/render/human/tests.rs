//! Every kind of report as text for a terminal.

use super::super::fixture::{hold, incomplete, one_round, open, revise, ship};
use super::*;

#[test]
fn everybody_passes() {
    insta::assert_snapshot!(human(&ship(), Extent::Full, TextOptions::default()), @"
    SHIP  drafts/launch.md
    0 of 4 block, 0 of them irreducibly; the adjudicator asks for SHIP; policy seed/2 makes that SHIP.

      run      r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
      type     blog_post, tier 2, policy seed/2, 3 earlier verdicts consulted
      executor claude, 9 calls, 1 min 23 s, 12,040 tokens read, 2,310 written

      deliberator     round 1  round 2  score  block  irreducible  what changed
      ─────────────────────────────────────────────────────────────────────────
      skeptic         ship     ship     4      no     no           nothing
      voice_identity  ship     ship     4      no     no           nothing
      evidence        ship     ship     4      no     no           nothing
      strategy        ship     ship     4      no     no           nothing

    Reasoning
      Nobody found anything that should stop it.
    ");
}

#[test]
fn some_block_and_some_moved() {
    insta::assert_snapshot!(human(&revise(), Extent::Full, TextOptions::default()), @"
    REVISE  (rubric: 5 findings; content not judged)  drafts/launch.md
    2 of 4 block, 0 of them irreducibly; the adjudicator asks for REVISE; policy seed/2 makes that
    REVISE.

      run      r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
      type     blog_post, tier 2, policy seed/2, 3 earlier verdicts consulted
      executor rubric (no model was asked), 9 calls, 12 ms

      deliberator     round 1         round 2         score  block  irreducible  what changed
      ──────────────────────────────────────────────────────────────────────────────────────────────────
      skeptic         hold, blocks    revise, blocks  2      yes    no           hold → revise; no
                                                                                 longer irreducible;
                                                                                 concedes 2; escalates 1
      voice_identity  ship            ship            4      no     no           nothing
      evidence        revise          revise, blocks  2.5    yes    no           score 3 → 2.5; now
                                                                                 blocks
      strategy        revise, blocks  revise          3.5    no     no           score 3 → 3.5; no
                                                                                 longer blocks

      - skeptic concedes: The register of the opening is the voice member's concern. (and 1 more)
      - skeptic escalates: Two others stopped at the same sentence.

    Reasoning
      The numbers carry the argument, and neither has a source. Two of four say so.

      - the growth has no base
      - the promise about the price binds the company longer than anybody can know today

    Brief: 5 findings

      1. skeptic (blocks), evidence (blocks) and strategy
          --> drafts/launch.md:3:1
           |
         3 | Revenue grew 90% last quarter, and all our customers love it.
           | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
         - skeptic: Another cause is as likely.
         - evidence and strategy: A percentage without a base.
           fix: Say 90% of what, and link the report.

      2. skeptic (blocks)
          --> drafts/launch.md:3:36
           |
         3 | Revenue grew 90% last quarter, and all our customers love it.
           |                                    ^^^^^^^^^^^^^^^^^
         - Those who left were not asked.
           fix: Say how many of how many.

      3. strategy
          --> drafts/launch.md:6:10
           |
         6 | Buy now: the price will never change.
           |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^
         - A promise that cannot be taken back.
           fix: Say until when the price holds.

    Revision brief
      Name the base of the 90%. Drop the promise.

    Dissent
      Voice would ship it.
    ");
}

#[test]
fn hold_with_an_ungrounded_block_and_an_override() {
    insta::assert_snapshot!(human(&hold(), Extent::Full, TextOptions::default()), @"
    HOLD  drafts/launch.md
    3 of 4 block, 3 of them irreducibly; the adjudicator asks for HOLD; policy seed/2 makes that HOLD.
    A person decided SHIP: see below.

      run      r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
      type     blog_post, tier 2, policy seed/2, 3 earlier verdicts consulted
      executor claude, 9 calls, 1 min 23 s, 12,040 tokens read, 2,310 written

      deliberator     round 1       round 2       score  block            irreducible  what changed
      ─────────────────────────────────────────────────────────────────────────────────────────────
      skeptic         hold, blocks  hold, blocks  1      yes              yes          nothing
      voice_identity  hold, blocks  hold, blocks  1      yes, ungrounded  yes          nothing
      evidence        hold, blocks  hold, blocks  1      yes              yes          nothing
      strategy        ship          ship          4      no               no           nothing

    Brief: 2 findings

      1. evidence (blocks)
          --> drafts/launch.md:4:44
           |
         4 | Studies show that this changes everything. 日本語も「速い」です。
           |                                            ^^^^^^^^^^^^^^^^^^^^^^
         - Nobody measured it.
           fix: Measure it.

    Ungrounded: not in the text

      2. voice_identity (blocks)
         quoted: “we are the best <in> the world”
         - A superlative.

    A person's decision
      ana decided SHIP; the council's verdict stays HOLD.
      The embargo ends today.

    Notes
      - Ungrounded: voice_identity blocks without a quote from the text.
    ");
}

#[test]
fn answers_are_missing() {
    insta::assert_snapshot!(human(&incomplete(), Extent::Full, TextOptions::default()), @"
    INCOMPLETE  drafts/launch.md
    Fewer than 3 of 4 deliberators gave a valid second answer.

      run      r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
      type     blog_post, tier 2, policy seed/2, 3 earlier verdicts consulted
      executor claude, 9 calls, 1 min 23 s, 12,040 tokens read, 2,310 written

      deliberator     round 1       round 2             score  block  irreducible  what changed
      ───────────────────────────────────────────────────────────────────────────────────────────
      skeptic         ship          ship                4      no     no           nothing
      voice_identity  hold, blocks  timed out           1      yes    no           counted by its
                                                                                   round-1 block
      evidence        ship          ship                4      no     no           nothing
      strategy        failed        answer did not fit  –      –      –            missing

      - voice_identity, round 2: timed out: no answer within 90 s
      - strategy, round 1: failed: exit status 1: rate limit

    Notes
      - Everything answered so far is kept: `quorate resume r7k2m9q4xa1bc` asks again only for what is
        missing.
    ");
}

#[test]
fn nothing_is_decided() {
    insta::assert_snapshot!(human(&open(), Extent::Full, TextOptions::default()), @"
    OPEN  drafts/launch.md
    Nothing is decided yet. `quorate resume r7k2m9q4xa1bc` continues from the recorded answers.

      run      r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
      type     blog_post, tier 2, policy seed/2
      executor claude, 9 calls, 1 min 23 s, 12,040 tokens read, 2,310 written

      deliberator  round 1  round 2  score  block  irreducible  what changed
      ──────────────────────────────────────────────────────────────────────
      skeptic      ship     –        4      no     no           –
      evidence     –        –        –      –      –            –
    ");
}

#[test]
fn one_round_without_its_text() {
    insta::assert_snapshot!(human(&one_round(), Extent::Full, TextOptions::default()), @"
    REVISE  (rubric: 1 finding; content not judged)  drafts/launch.md
    2 of 4 block, 0 of them irreducibly; the adjudicator asks for REVISE; policy seed/2 makes that
    REVISE.

      run      r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
      type     blog_post, tier 2, policy seed/2, 3 earlier verdicts consulted
      executor rubric (no model was asked), 9 calls, 12 ms

      deliberator  round 1      score  block  irreducible
      ───────────────────────────────────────────────────
      skeptic      blocks       2.5    yes    no
      evidence     over budget  –      –      –

    Reasoning
      The numbers carry the argument, and neither has a source. Two of four say so.

      - the growth has no base
      - the promise about the price binds the company longer than anybody can know today

    Brief: 1 finding

      1. skeptic (blocks)
         line 3, column 14: “90%”
         - No base.

    Revision brief
      Name the base of the 90%. Drop the promise.

    Dissent
      Voice would ship it.
    ");
}

#[test]
fn narrow_terminal() {
    insta::assert_snapshot!(human(&revise(), Extent::Full, TextOptions { width: 48, ..TextOptions::default() }), @"
    REVISE  drafts/launch.md
    (rubric: 5 findings; content not judged)
    2 of 4 block, 0 of them irreducibly; the
    adjudicator asks for REVISE; policy seed/2 makes
    that REVISE.

      run      r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
      type     blog_post, tier 2, policy seed/2, 3
               earlier verdicts consulted
      executor rubric (no model was asked), 9 calls,
               12 ms

      skeptic
        round 1: hold, blocks
        round 2: revise, blocks
        score: 2
        block: yes
        irreducible: no
        what changed: hold → revise; no longer
                      irreducible; concedes 2;
                      escalates 1
      voice_identity
        round 1: ship
        round 2: ship
        score: 4
        block: no
        irreducible: no
        what changed: nothing
      evidence
        round 1: revise
        round 2: revise, blocks
        score: 2.5
        block: yes
        irreducible: no
        what changed: score 3 → 2.5; now blocks
      strategy
        round 1: revise, blocks
        round 2: revise
        score: 3.5
        block: no
        irreducible: no
        what changed: score 3 → 3.5; no longer
                      blocks

      - skeptic concedes: The register of the
        opening is the voice member's concern. (and
        1 more)
      - skeptic escalates: Two others stopped at the
        same sentence.

    Reasoning
      The numbers carry the argument, and neither
      has a source. Two of four say so.

      - the growth has no base
      - the promise about the price binds the
        company longer than anybody can know today

    Brief: 5 findings

      1. skeptic (blocks), evidence (blocks) and
         strategy
          --> drafts/launch.md:3:1
           |
         3 | Revenue grew 90% last quarter, and a...
           | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
         - skeptic: Another cause is as likely.
         - evidence and strategy: A percentage
           without a base.
           fix: Say 90% of what, and link the
                report.

      2. skeptic (blocks)
          --> drafts/launch.md:3:36
           |
         3 | ...er, and all our customers love it.
           |            ^^^^^^^^^^^^^^^^^
         - Those who left were not asked.
           fix: Say how many of how many.

      3. strategy
          --> drafts/launch.md:6:10
           |
         6 | Buy now: the price will never change.
           |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^
         - A promise that cannot be taken back.
           fix: Say until when the price holds.

    Revision brief
      Name the base of the 90%. Drop the promise.

    Dissent
      Voice would ship it.
    ");
}
