//! Each mode in each format; hostile, large and deep reports.

mod hostile;

use quorate::service::convene::report::{Contribution, Decision};
use quorate_diagnostics::render::{Colour, TextOptions};

use super::super::Extent;
use super::fixture::{guidance, talk, tree, vote};

fn human(report: &Decision, options: TextOptions) -> String {
    super::human::human(report, Extent::Full, options)
}

fn markdown(report: &Decision) -> String {
    super::markdown::markdown(report, Extent::Full)
}

fn wide(width: usize) -> TextOptions {
    TextOptions { colour: Colour::Off, width }
}

#[test]
fn at_a_wide_terminal() {
    insta::assert_snapshot!(human(&guidance(), wide(100)), @"
    DONE  Quiet Advisers
    2 fragments of guidance.

      run      r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
      assembly release-board
      mode     advisory, phase session, trigger sample
      subject  proposal.md
      risk     escalate (severity 9); requires human attention
      advice   goes to `lead`
      executor claude, 4 calls, 8.4 s, 12,040 tokens read, 2,310 written

    Guidance: 2 fragments

       1. coach, Coach  severity 9 █████████░  priority 50
         │ Say that you are no doctor, and name one.
         why   rule gravest (aggregate) on the concern “The user asks for a diagnosis, and gets one.”
         holds 14 days, until 2026-03-18 05:05 UTC

       2. critic, Critic  severity 6 ██████░░░░  priority 49
         │ Name one argument against before you agree.
         why   rule gravest (aggregate) on the concern “It agrees without a reason, three times in a
               row.”
         holds 14 days, until 2026-03-18 05:05 UTC

    Members
      member  role    phase    severity            concern
      ──────────────────────────────────────────────────────────────────────────────────────────────────
      critic  Critic  session   6 ██████░░░░       It agrees without a reason, three times in a row. (1
                                                   quote)
      coach   Coach   session   9 █████████░       The user asks for a diagnosis, and gets one. (1
                                                   quote)
      mirror  Mirror  session   5 █████░░░░░       The tone is cold. (1 quote)
      elder   Elder   session  answer did not fit

      not asked: sentinel (phase sentinel)

    Rules, in order
         rule      kind       what it did
      ──────────────────────────────────────────────────────────────────────────────────
      1  flattery  priority   does not fire
      2  gravest   aggregate  emits 3 fragments on the words of coach, critic and mirror

    Refused
      - fragment/mirror: the fragment of mirror touches the locked trait “skip the warmth” (folded: once
        characters are folded)
        words “Skip the warmth, be quick.”

    No answer
      - elder: answer did not fit: `severity` is missing

    Notes
      - Partial: no output from elder.

    More: `quorate show r7k2m9q4xa1bc --format markdown`, `quorate replay r7k2m9q4xa1bc`
    ");
}

#[test]
fn at_a_narrow_terminal() {
    insta::assert_snapshot!(human(&guidance(), wide(48)), @"
    DONE  Quiet Advisers
    2 fragments of guidance.

      run      r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
      assembly release-board
      mode     advisory, phase session, trigger
               sample
      subject  proposal.md
      risk     escalate (severity 9); requires human
               attention
      advice   goes to `lead`
      executor claude, 4 calls, 8.4 s, 12,040 tokens
               read, 2,310 written

    Guidance: 2 fragments

       1. coach, Coach  severity 9 █████████░
          priority 50
         │ Say that you are no doctor, and name
         │ one.
         why   rule gravest (aggregate) on the
               concern “The user asks for a
               diagnosis, and gets one.”
         holds 14 days, until 2026-03-18 05:05 UTC

       2. critic, Critic  severity 6 ██████░░░░
          priority 49
         │ Name one argument against before you
         │ agree.
         why   rule gravest (aggregate) on the
               concern “It agrees without a reason,
               three times in a row.”
         holds 14 days, until 2026-03-18 05:05 UTC

    Members
      critic
        role: Critic
        phase: session
        severity:  6 ██████░░░░
        concern: It agrees without a reason, three
                 times in a row. (1 quote)
      coach
        role: Coach
        phase: session
        severity:  9 █████████░
        concern: The user asks for a diagnosis, and
                 gets one. (1 quote)
      mirror
        role: Mirror
        phase: session
        severity:  5 █████░░░░░
        concern: The tone is cold. (1 quote)
      elder
        role: Elder
        phase: session
        severity: answer did not fit

      not asked: sentinel (phase sentinel)

    Rules, in order
         rule      kind       what it did
      ──────────────────────────────────────────────
      1  flattery  priority   does not fire
      2  gravest   aggregate  emits 3 fragments on
                              the words of coach,
                              critic and mirror

    Refused
      - fragment/mirror: the fragment of mirror
        touches the locked trait “skip the warmth”
        (folded: once characters are folded)
        words “Skip the warmth, be quick.”

    No answer
      - elder: answer did not fit: `severity` is
        missing

    Notes
      - Partial: no output from elder.

    `quorate replay r7k2m9q4xa1bc`
    ");
}

#[test]
fn as_markdown() {
    insta::assert_snapshot!(markdown(&guidance()), @r#"
    ## DONE: Quiet Advisers

    2 fragments of guidance.

    - run: r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
    - assembly: release-board
    - mode: advisory, phase session, trigger sample
    - subject: proposal.md
    - risk: **escalate (severity 9); requires human attention**
    - advice: goes to \`lead\`

    ### Guidance: 2 fragments

    **1. `coach`**, severity 9, priority 50

    > Say that you are no doctor, and name one.

    - why: rule `gravest` on the concern “The user asks for a diagnosis, and gets one.”
    - holds: 14 days, until 2026-03-18 05:05 UTC

    **2. `critic`**, severity 6, priority 49

    > Name one argument against before you agree.

    - why: rule `gravest` on the concern “It agrees without a reason, three times in a row.”
    - holds: 14 days, until 2026-03-18 05:05 UTC

    ```mermaid
    flowchart LR
      m0["critic#58; severity 6"]:::fair
      m1["coach#58; severity 9"]:::grave
      m2["mirror#58; severity 5"]:::fair
      m3["elder#58; schema#95;failed"]:::gone
      f0(["priority 50#58; Say that you are no doctor, and name one."])
      m1 -->|"gravest #40;aggregate#41;"| f0
      f1(["priority 49#58; Name one argument against before you agree."])
      m0 -->|"gravest #40;aggregate#41;"| f1
      x0(["refused#58; skip the warmth"]):::gone
      m2 -.-x x0
      classDef grave fill:#f8d7da,stroke:#b02a37,color:#000
      classDef fair fill:#fff3cd,stroke:#997404,color:#000
      classDef calm fill:#e2e3e5,stroke:#6c757d,color:#000
      classDef gone fill:#ffffff,stroke:#b02a37,color:#000,stroke-dasharray:4
    ```

    ### Members

    | member | role | phase | severity | concern |
    | --- | --- | --- | --- | --- |
    | `critic` | Critic | session | 6 | It agrees without a reason, three times in a row. |
    | `coach` | Coach | session | 9 | The user asks for a diagnosis, and gets one. |
    | `mirror` | Mirror | session | 5 | The tone is cold. |
    | `elder` | Elder | session | – | answer did not fit |

    ### Rules, in order

    1. `flattery` (priority): does not fire
    2. `gravest` (aggregate): **emits 3 fragments on the words of coach, critic and mirror**

    ### Refused

    - fragment/mirror: the fragment of mirror touches the locked trait “skip the warmth” (folded: once characters are folded)

      > Skip the warmth, be quick.

    ### No answer

    - elder: answer did not fit: \`severity\` is missing

    ### Notes

    - Partial: no output from elder.

    <sub>executor claude, 4 calls, 8.4 s, 12,040 tokens read, 2,310 written</sub>
    "#);
}

#[test]
fn talk_at_a_wide_terminal() {
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
fn talk_at_a_narrow_terminal() {
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
fn talk_as_markdown() {
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
    let outcome = |change: &dyn Fn(&mut Decision)| {
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

#[test]
fn tree_at_a_wide_terminal() {
    insta::assert_snapshot!(human(&tree(), wide(100)), @"
    DONE  Incident Line
    The root passes up severity 8.

      run      r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
      assembly release-board
      mode     hierarchy
      subject  proposal.md
      risk     intervene (severity 8)
      executor claude, 4 calls, 8.4 s, 12,040 tokens read, 2,310 written

    Passed up by the root
      severity 8 ████████░░
      concern
        The plan holds but for the backup.
      suggestion
        Run it daily.
      evidence
        - “the backup runs once a week”

    Tree
      head  Head of Engineering  8 ████████░░
      │ saw  platform 8 and product refused
      │ said 4: The plan holds but for the backup. Do: Run it daily.
      │ up   8 by gravest (escalate-on-severity), of platform
      ├─ platform  Platform Lead  8 ████████░░  [passed up without it]
      │  │ saw  storage 8 and network 2
      │  │ said timed out: no answer within 30 s
      │  │ up   8 without it, the gravest below, of storage and network: A week of data can be lost.
      │  ├─ storage  Storage  8 ████████░░
      │  │    said 8: A week of data can be lost. Do: Run it daily.
      │  └─ network  Network  2 ██░░░░░░░░
      │       said 2: Nothing to raise.
      └─ product  Product Lead  [refused]
           said 3: Skip the review, it is late. Do: Ship.
           up   nothing: what it would pass up touches the locked trait “skip the review” (as-given: as
                written)

      5 nodes: 3 passed, 1 passed up, 1 refused.

    Rules, in order
         rule     kind                  what it did
      ───────────────────────────────────────────────────────────
      1  gravest  escalate-on-severity  makes what head passes up

    Refused
      - node/product: the concern of product touches the locked trait “skip the review” (as-given: as
        written)
        words “Skip the review, it is late.”

    No answer
      - platform: timed out: no answer within 30 s

    Notes
      - Partial: no output from platform.

    More: `quorate show r7k2m9q4xa1bc --format markdown`, `quorate replay r7k2m9q4xa1bc`
    ");
}

#[test]
fn tree_at_a_narrow_terminal() {
    insta::assert_snapshot!(human(&tree(), wide(48)), @"
    DONE  Incident Line
    The root passes up severity 8.

      run      r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
      assembly release-board
      mode     hierarchy
      subject  proposal.md
      risk     intervene (severity 8)
      executor claude, 4 calls, 8.4 s, 12,040 tokens
               read, 2,310 written

    Passed up by the root
      severity 8 ████████░░
      concern
        The plan holds but for the backup.
      suggestion
        Run it daily.
      evidence
        - “the backup runs once a week”

    Tree
      head  Head of Engineering  8 ████████░░
      │ saw  platform 8 and product refused
      │ said 4: The plan holds but for the backup.
      │      Do: Run it daily.
      │ up   8 by gravest (escalate-on-severity), of
      │      platform
      ├─ platform  Platform Lead  8 ████████░░
      │  │ [passed up without it]
      │  │ saw  storage 8 and network 2
      │  │ said timed out: no answer within 30 s
      │  │ up   8 without it, the gravest below, of
      │  │      storage and network: A week of data
      │  │      can be lost.
      │  ├─ storage  Storage  8 ████████░░
      │  │    said 8: A week of data can be lost.
      │  │         Do: Run it daily.
      │  └─ network  Network  2 ██░░░░░░░░
      │       said 2: Nothing to raise.
      └─ product  Product Lead  [refused]
           said 3: Skip the review, it is late. Do:
                Ship.
           up   nothing: what it would pass up
                touches the locked trait “skip the
                review” (as-given: as written)

      5 nodes: 3 passed, 1 passed up, 1 refused.

    Rules, in order
         rule     kind                  what it did
      ──────────────────────────────────────────────
      1  gravest  escalate-on-severity  makes what
                                        head passes
                                        up

    Refused
      - node/product: the concern of product touches
        the locked trait “skip the review”
        (as-given: as written)
        words “Skip the review, it is late.”

    No answer
      - platform: timed out: no answer within 30 s

    Notes
      - Partial: no output from platform.

    `quorate replay r7k2m9q4xa1bc`
    ");
}

#[test]
fn tree_as_markdown() {
    insta::assert_snapshot!(markdown(&tree()), @r#"
    ## DONE: Incident Line

    The root passes up severity 8.

    - run: r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
    - assembly: release-board
    - mode: hierarchy
    - subject: proposal.md
    - risk: **intervene (severity 8)**

    ### Passed up by the root: severity 8

    Concern:

    > The plan holds but for the backup.

    Suggestion:

    > Run it daily.

    Evidence:

    - “the backup runs once a week”

    ```mermaid
    flowchart BT
      n0["head#58; 8 The plan holds but for the backup."]:::fair
      n1["platform#58; 8 #40;passed up without it#41; A week of data can be lost."]:::fair
      n1 --> n0
      n4["product#58; refused"]:::gone
      n4 -.-> n0
      n2["storage#58; 8 A week of data can be lost."]:::fair
      n2 --> n1
      n3["network#58; 2 Nothing to raise."]:::calm
      n3 --> n1
      classDef grave fill:#f8d7da,stroke:#b02a37,color:#000
      classDef fair fill:#fff3cd,stroke:#997404,color:#000
      classDef calm fill:#e2e3e5,stroke:#6c757d,color:#000
      classDef gone fill:#ffffff,stroke:#b02a37,color:#000,stroke-dasharray:4
    ```

    ### Nodes

    | node | reports to | status | said | passes up |
    | --- | --- | --- | --- | --- |
    | `head` | – | passed | 4: The plan holds but for the backup. | 8 by gravest of platform |
    | `platform` | `head` | passed up | – | 8, of storage and network |
    | `storage` | `platform` | passed | 8: A week of data can be lost. | 8, its own |
    | `network` | `platform` | passed | 2: Nothing to raise. | 2, its own |
    | `product` | `head` | refused | 3: Skip the review, it is late. | nothing |

    ### Rules, in order

    1. `gravest` (escalate-on-severity): **makes what head passes up**

    ### Refused

    - node/product: the concern of product touches the locked trait “skip the review” (as-given: as written)

      > Skip the review, it is late.

    ### No answer

    - platform: timed out: no answer within 30 s

    ### Notes

    - Partial: no output from platform.

    <sub>executor claude, 4 calls, 8.4 s, 12,040 tokens read, 2,310 written</sub>
    "#);
}

#[test]
fn vote_at_a_wide_terminal() {
    insta::assert_snapshot!(human(&vote(), wide(100)), @"
    PASS  Release Board
    two-thirds (quorum) decides pass: 3.5 of 4.5 ≈ 0.778, needs 0.66.

      run      r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
      assembly release-board
      mode     voting, class budget
      subject  proposal.md
      executor claude, 4 calls, 8.4 s, 12,040 tokens read, 2,310 written

    Tally
      yes      ████████████████████████████████┃█████░░░░░░░░░░░  3.5 (2 votes)
      no       █████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░   0.5 (1 vote)
      no vote  █████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░   0.5 (1 voter)

      3.5 of 4.5 ≈ 0.778, needs 0.66 (┃)

    Votes
      member   role                weight  vote     why
      ──────────────────────────────────────────────────────────────────────────────────────────────────
      chair    Chair               2.5     yes      The machines pay for themselves within a year; the
                                                    numbers in the annex are conservative.
      finance  Head of Finance     1       yes      Within the plan.
      ops      Head of Operations  0.5     no       Nobody has said who runs them.
      legal    Counsel             0.5     missing  timed out: no answer within 60 s

      not asked: auditor (votes on security/audit)

    VoteCount
      Raise the budget
      Resolution: by 20%.
      Result: pass. 2 yes, 1 no, 0 abstain, 1 without a vote.

    Rules, in order
         rule        kind      what it did
      ────────────────────────────────────────────────────────────────────────
      1  veto        terminal  does not decide: it is for the class security
      2  two-thirds  quorum    decides pass: 3.5 of 4.5 ≈ 0.778, needs 0.66
      3  rest        majority  was not evaluated: two-thirds decided before it

    No answer
      - legal: timed out: no answer within 60 s

    Notes
      - Partial: no output from legal.

    More: `quorate show r7k2m9q4xa1bc --format markdown`, `quorate replay r7k2m9q4xa1bc`
    ");
}

#[test]
fn vote_at_a_narrow_terminal() {
    insta::assert_snapshot!(human(&vote(), wide(48)), @"
    PASS  Release Board
    two-thirds (quorum) decides pass: 3.5 of 4.5 ≈
    0.778, needs 0.66.

      run      r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
      assembly release-board
      mode     voting, class budget
      subject  proposal.md
      executor claude, 4 calls, 8.4 s, 12,040 tokens
               read, 2,310 written

    Tally
      yes      ██████████████┃██░░░░░  3.5 (2 votes)
      no       ██░░░░░░░░░░░░░░░░░░░   0.5 (1 vote)
      no vote  ██░░░░░░░░░░░░░░░░░░░   0.5 (1 voter)

      3.5 of 4.5 ≈ 0.778, needs 0.66 (┃)

    Votes
      chair
        role: Chair
        weight: 2.5
        vote: yes
        why: The machines pay for themselves within
             a year; the numbers in the annex are
             conservative.
      finance
        role: Head of Finance
        weight: 1
        vote: yes
        why: Within the plan.
      ops
        role: Head of Operations
        weight: 0.5
        vote: no
        why: Nobody has said who runs them.
      legal
        role: Counsel
        weight: 0.5
        vote: missing
        why: timed out: no answer within 60 s

      not asked: auditor (votes on security/audit)

    VoteCount
      Raise the budget
      Resolution: by 20%.
      Result: pass. 2 yes, 1 no, 0 abstain, 1
      without a vote.

    Rules, in order
         rule        kind      what it did
      ──────────────────────────────────────────────
      1  veto        terminal  does not decide: it
                               is for the class
                               security
      2  two-thirds  quorum    decides pass: 3.5 of
                               4.5 ≈ 0.778, needs
                               0.66
      3  rest        majority  was not evaluated:
                               two-thirds decided
                               before it

    No answer
      - legal: timed out: no answer within 60 s

    Notes
      - Partial: no output from legal.

    `quorate replay r7k2m9q4xa1bc`
    ");
}

#[test]
fn vote_as_markdown() {
    insta::assert_snapshot!(markdown(&vote()), @r#"
    ## PASS: Release Board

    two-thirds (quorum) decides pass: 3.5 of 4.5 ≈ 0.778, needs 0.66.

    - run: r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
    - assembly: release-board
    - mode: voting, class budget
    - subject: proposal.md

    ### Tally: 3.5 of 4.5 ≈ 0.778, needs 0.66

    | side | weight |
    | --- | --- |
    | yes | 3.5 (2 votes) |
    | no | 0.5 (1 vote) |
    | no vote | 0.5 (1 voter) |

    > Raise the budget
    >
    > Resolution: by 20%.
    >
    > Result: pass. 2 yes, 1 no, 0 abstain, 1 without a vote.

    ```mermaid
    pie showData title Weights
      "yes" : 3.5
      "no" : 0.5
      "no vote" : 0.5
    ```

    ```mermaid
    flowchart TD
      v["4 votes"]
      r0["veto #40;terminal#41;#58; does not decide#58; it is for the class security"]:::calm
      v --> r0
      r1["two#45;thirds #40;quorum#41;#58; decides pass#58; 3.5 of 4.5 #8776; 0.778, needs 0.66"]:::fair
      r0 --> r1
      d(["pass"])
      r1 ==> d
      classDef grave fill:#f8d7da,stroke:#b02a37,color:#000
      classDef fair fill:#fff3cd,stroke:#997404,color:#000
      classDef calm fill:#e2e3e5,stroke:#6c757d,color:#000
      classDef gone fill:#ffffff,stroke:#b02a37,color:#000,stroke-dasharray:4
    ```

    ### Votes

    | member | role | weight | vote | why |
    | --- | --- | --- | --- | --- |
    | `chair` | Chair | 2.5 | yes | The machines pay for themselves within a year; the numbers in the annex are conservative. |
    | `finance` | Head of Finance | 1 | yes | Within the plan. |
    | `ops` | Head of Operations | 0.5 | no | Nobody has said who runs them. |
    | `legal` | Counsel | 0.5 | missing | timed out: no answer within 60 s |

    ### Rules, in order

    1. `veto` (terminal): does not decide: it is for the class security
    2. `two-thirds` (quorum): **decides pass: 3.5 of 4.5 ≈ 0.778, needs 0.66**
    3. `rest` (majority): was not evaluated: two-thirds decided before it

    ### No answer

    - legal: timed out: no answer within 60 s

    ### Notes

    - Partial: no output from legal.

    <sub>executor claude, 4 calls, 8.4 s, 12,040 tokens read, 2,310 written</sub>
    "#);
}

#[test]
fn a_member_that_decides_alone_is_named_in_every_format() {
    let mut report = vote();
    let decision = report.decision.as_mut().expect("a decision");
    decision.contribution = vec![Contribution {
        member: "legal".to_owned(),
        vote: "no".to_owned(),
        rationale: "The licence forbids it.".to_owned(),
        evidence: Vec::new(),
    }];
    let (human, markdown) = (human(&report, wide(80)), markdown(&report));
    assert!(human.contains("Decided alone\n  legal no: The licence forbids it."), "{human}");
    let section = "### Decided alone\n\n**`legal`** votes no:\n\n> The licence forbids it.";
    assert!(markdown.contains(section), "{markdown}");
}
