//! A hierarchy at two widths, and as Markdown.

use super::super::fixture::tree;
use super::*;

#[test]
fn at_a_wide_terminal() {
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
                it is given)

      5 nodes: 3 passed, 1 passed up, 1 refused.

    Rules, in order
         rule     kind                  what it did
      ───────────────────────────────────────────────────────────
      1  gravest  escalate-on-severity  makes what head passes up

    Refused
      - node/product: the concern of product touches the locked trait “skip the review” (as-given: as it
        is given)
        words “Skip the review, it is late.”

    No answer
      - platform: timed out: no answer within 30 s

    Notes
      - Partial: no output from platform.

    More: `quorate show r7k2m9q4xa1bc --format markdown`, `quorate replay r7k2m9q4xa1bc`
    ");
}

#[test]
fn at_a_narrow_terminal() {
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
                review” (as-given: unchanged)

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
        (as-given: unchanged)
        words “Skip the review, it is late.”

    No answer
      - platform: timed out: no answer within 30 s

    Notes
      - Partial: no output from platform.

    `quorate replay r7k2m9q4xa1bc`
    ");
}

#[test]
fn as_markdown() {
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

    - node/product: the concern of product touches the locked trait “skip the review” (as-given: unchanged)

      > Skip the review, it is late.

    ### No answer

    - platform: timed out: no answer within 30 s

    ### Notes

    - Partial: no output from platform.

    <sub>executor claude, 4 calls, 8.4 s, 12,040 tokens read, 2,310 written</sub>
    "#);
}
