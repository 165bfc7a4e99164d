//! Decisions of each mode; hostile, large and deep ones.

mod fixture;

use quorate_diagnostics::render::{Colour, TextOptions};
use serde_json::json;

use self::fixture::{HOSTILE, advice, asked, chain, guidance, talk, tree, unasked, vote};
use super::*;
use crate::service::convene::plan::{DeferredQuestion, Plan, PlannedRule, PlannedStandIns, Question, SCHEMA};
use crate::service::convene::report::{Contribution, CountedVote, Message};
use crate::view::layout::{columns_of, strip};

/// The characters that documents draw with.
const DRAWN: &str = "─–│├└…×⋮→≈“”·";

const WIDTHS: [usize; 6] = [40, 53, 64, 80, 120, 200];

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

#[test]
fn a_vote() {
    insta::assert_snapshot!(text(&vote(), 100), @"
    PASS  3.5 of 4.5 ≈ 0.778, needs 0.66 (rule two-thirds).

      run       r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
      assembly  release-board
      mode      voting, class budget
      subject   proposal.md
      executor  claude, 4 calls, 8.4 s, 12,040 tokens read, 2,310 written

    Tally
      side     weight
      ──────────────────────
      yes      3.5 (2 votes)
      no       0.5 (1 vote)
      no vote  0.5 (1 voter)

      3.5 of 4.5 ≈ 0.778, needs 0.66

    Votes
      member   role                vote     weight  why
      ──────────────────────────────────────────────────────────────────────────────────────────────────
      chair    Chair               yes      2.5     The machines pay for themselves within a year; the
                                                    numbers in the annex are conservative.
      finance  Head of Finance     yes      1       Within the plan.
      ops      Head of Operations  no       0.5     Nobody has said who runs them.
      legal    Counsel             missing  0.5     timed out: no answer within 60 s

      not asked: auditor (votes on security/audit)

    Decision
      │ Raise the budget
      │ Resolution: by 20%.
      │ Result: pass. 2 yes, 1 no, 0 abstain, 1 without a vote.

    Rules, in order
         rule        kind      what it did
      ────────────────────────────────────────────────────────────────────────
      1  veto        terminal  does not decide: it is for the class security
      2  two-thirds  quorum    decides pass: 3.5 of 4.5 ≈ 0.778, needs 0.66
      3  rest        majority  was not evaluated: two-thirds decided before it

    legal  no answer: timed out: no answer within 60 s

    PASS  3.5 of 4.5 ≈ 0.778, needs 0.66 (rule two-thirds).
    Release Board · r7k2m9q4xa1bc · 4 calls · 8.4 s, 12,040 tokens read, 2,310 written
    ");
    insta::assert_snapshot!(markdown(&vote()), @r#"
    ## PASS  3.5 of 4.5 ≈ 0.778, needs 0.66 (rule two-thirds).

    Release Board · `r7k2m9q4xa1bc` · 4 calls · 8.4 s, 12,040 tokens read, 2,310 written

    - run: r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
    - assembly: release-board
    - mode: voting, class budget
    - subject: proposal.md
    - executor: claude, 4 calls, 8.4 s, 12,040 tokens read, 2,310 written

    ### Tally

    | side | weight |
    | --- | --- |
    | yes | 3.5 (2 votes) |
    | no | 0.5 (1 vote) |
    | no vote | 0.5 (1 voter) |

    3.5 of 4.5 ≈ 0.778, needs 0.66

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

    | member | role | vote | weight | why |
    | --- | --- | --- | --- | --- |
    | chair | Chair | yes | 2.5 | The machines pay for themselves within a year; the numbers in the annex are conservative. |
    | finance | Head of Finance | yes | 1 | Within the plan. |
    | ops | Head of Operations | no | 0.5 | Nobody has said who runs them. |
    | legal | Counsel | missing | 0.5 | timed out: no answer within 60 s |

    not asked: auditor (votes on security/audit)

    ### Decision

    > Raise the budget
    >
    > Resolution: by 20%.
    >
    > Result: pass. 2 yes, 1 no, 0 abstain, 1 without a vote.

    ### Rules, in order

    |  | rule | kind | what it did |
    | --- | --- | --- | --- |
    | 1 | veto | terminal | does not decide: it is for the class security |
    | 2 | two-thirds | quorum | decides pass: 3.5 of 4.5 ≈ 0.778, needs 0.66 |
    | 3 | rest | majority | was not evaluated: two-thirds decided before it |

    **legal**  no answer: timed out: no answer within 60 s
    "#);
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
    let (text, markdown) = (text(&decision, 80), markdown(&decision));
    assert!(text.contains("Decided alone\n  - legal votes no: The licence forbids it.\n"), "{text}");
    let section = "### Decided alone\n\n- **legal** votes no: The licence forbids it.\n";
    assert!(markdown.contains(section), "{markdown}");
}

#[test]
fn guidance_has_author_rule_and_validity() {
    insta::assert_snapshot!(text(&guidance(), 100), @"
    DONE  2 fragments of guidance.

      run       r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
      assembly  release-board
      mode      advisory, phase session, trigger sample
      subject   proposal.md
      risk      escalate (severity 9); requires human attention
      advice    goes to `lead`
      executor  claude, 4 calls, 8.4 s, 12,040 tokens read, 2,310 written

    Guidance: 2 fragments

      1. coach, Coach  severity 9  priority 50
         │ Say that you are no doctor, and name one.
         why    rule gravest (aggregate) on the concern “The user asks for a diagnosis, and gets one.”
         holds  14 days, until 2026-03-18 05:05 UTC

      2. critic, Critic  severity 6  priority 49
         │ Name one argument against before you agree.
         why    rule gravest (aggregate) on the concern “It agrees without a reason, three times in a
                row.”
         holds  14 days, until 2026-03-18 05:05 UTC

    Members
      member  role    phase    severity            concern
      ──────────────────────────────────────────────────────────────────────────────────────────────────
      critic  Critic  session  6                   It agrees without a reason, three times in a row. (1
                                                   quote)
      coach   Coach   session  9                   The user asks for a diagnosis, and gets one. (1
                                                   quote)
      mirror  Mirror  session  5                   The tone is cold. (1 quote)
      elder   Elder   session  answer did not fit

      not asked: sentinel (phase sentinel)

    Rules, in order
         rule      kind       what it did
      ──────────────────────────────────────────────────────────────────────────────────
      1  flattery  priority   does not fire
      2  gravest   aggregate  emits 3 fragments on the words of coach, critic and mirror

    Refused: fragment/mirror: the fragment of mirror touches the locked trait “skip the warmth” (folded:
    once characters are folded)
    │ Skip the warmth, be quick.
    elder  no answer: answer did not fit: `severity` is missing

    DONE  2 fragments of guidance.
    Quiet Advisers · r7k2m9q4xa1bc · 4 calls · 8.4 s, 12,040 tokens read, 2,310 written
    ");
    insta::assert_snapshot!(markdown(&guidance()), @r#"
    ## DONE  2 fragments of guidance.

    Quiet Advisers · `r7k2m9q4xa1bc` · 4 calls · 8.4 s, 12,040 tokens read, 2,310 written

    - run: r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
    - assembly: release-board
    - mode: advisory, phase session, trigger sample
    - subject: proposal.md
    - risk: **escalate (severity 9); requires human attention**
    - advice: goes to \`lead\`
    - executor: claude, 4 calls, 8.4 s, 12,040 tokens read, 2,310 written

    ### Guidance: 2 fragments

    1. **coach**, Coach  severity **9**  priority 50

       > Say that you are no doctor, and name one.

       - why: rule gravest (aggregate) on the concern “The user asks for a diagnosis, and gets one.”
       - holds: 14 days, until 2026-03-18 05:05 UTC

    2. **critic**, Critic  severity **6**  priority 49

       > Name one argument against before you agree.

       - why: rule gravest (aggregate) on the concern “It agrees without a reason, three times in a row.”
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
    | critic | Critic | session | 6 | It agrees without a reason, three times in a row. (1 quote) |
    | coach | Coach | session | 9 | The user asks for a diagnosis, and gets one. (1 quote) |
    | mirror | Mirror | session | 5 | The tone is cold. (1 quote) |
    | elder | Elder | session | answer did not fit |  |

    not asked: sentinel (phase sentinel)

    ### Rules, in order

    |  | rule | kind | what it did |
    | --- | --- | --- | --- |
    | 1 | flattery | priority | does not fire |
    | 2 | gravest | aggregate | emits 3 fragments on the words of coach, critic and mirror |

    Refused: fragment/mirror: the fragment of mirror touches the locked trait “skip the warmth” (folded: once characters are folded)

    > Skip the warmth, be quick.

    **elder**  no answer: answer did not fit: \`severity\` is missing
    "#);
}

#[test]
fn a_discussion_has_rounds() {
    insta::assert_snapshot!(text(&talk(), 100), @"
    DONE  2 rounds, then no further objections; 3 messages.

      run       r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
      assembly  release-board
      mode      peer, ring
      subject   proposal.md
      executor  claude, 4 calls, 8.4 s, 12,040 tokens read, 2,310 written

    Round 1
      - copy → all [objects]
        │ The claim “twice as fast” has no source, and the second paragraph promises what we do not
        │ sell.
      - legal → brand [objects]
        │ To brand: no.
        × refused, not delivered: brand is out of its reach
      - passed: brand

    Round 2
      - copy → legal
        │ Good, then I have nothing left.
      - legal → copy
        │ I shall add the source to the footnote.
      - failed: brand

    Rules, in order
         rule     kind       what it did
      ────────────────────────────────────────────────────────
      1  collect  aggregate  collects what copy and legal said

    Refused: message/1/legal, by legal: brand is out of its reach
    brand, round 2  no answer: failed: exit status 1: rate limit

    DONE  2 rounds, then no further objections; 3 messages.
    Copy Critique · r7k2m9q4xa1bc · 4 calls · 8.4 s, 12,040 tokens read, 2,310 written
    ");
    insta::assert_snapshot!(markdown(&talk()), @r"
    ## DONE  2 rounds, then no further objections; 3 messages.

    Copy Critique · `r7k2m9q4xa1bc` · 4 calls · 8.4 s, 12,040 tokens read, 2,310 written

    - run: r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
    - assembly: release-board
    - mode: peer, ring
    - subject: proposal.md
    - executor: claude, 4 calls, 8.4 s, 12,040 tokens read, 2,310 written

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

    - **copy** → all **\[objects\]**

      > The claim “twice as fast” has no source, and the second paragraph promises what we do not sell.

    - **legal** → brand **\[objects\]**

      > To brand: no.

      × refused, not delivered: brand is out of its reach

    - passed: brand

    ### Round 2

    - **copy** → legal

      > Good, then I have nothing left.

    - **legal** → copy

      > I shall add the source to the footnote.

    - **failed:** brand

    ### Rules, in order

    |  | rule | kind | what it did |
    | --- | --- | --- | --- |
    | 1 | collect | aggregate | collects what copy and legal said |

    Refused: message/1/legal, by legal: brand is out of its reach

    **brand, round 2**  no answer: failed: exit status 1: rate limit
    ");
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
    let none = outcome(&|decision| decision.objections = Some(Vec::new()));
    assert_eq!(none, "2 rounds, then no new objections; 3 messages.");
    let unanswered =
        outcome(&|decision| decision.objections.as_mut().expect("objections")[0].answered = false);
    assert_eq!(
        unanswered,
        "2 rounds, then no new objections; 3 messages. No reply reached copy after objecting."
    );
    let unresolved = outcome(&|decision| {
        decision.objections.as_mut().expect("objections")[1].taken_back = false;
        decision.objecting = Some(vec!["legal".to_owned()]);
    });
    assert_eq!(unresolved, "2 rounds, then no new objections; 3 messages. legal still objects.");
}

#[test]
fn a_hierarchy_is_a_tree() {
    insta::assert_snapshot!(text(&tree(), 100), @"
    DONE  The root passes up severity 8.

      run       r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
      assembly  release-board
      mode      hierarchy
      subject   proposal.md
      risk      intervene (severity 8)
      executor  claude, 4 calls, 8.4 s, 12,040 tokens read, 2,310 written

    Passed up by the root
      severity 8
      concern
      │ The plan holds but for the backup.
      suggestion
      │ Run it daily.
      evidence
      - “the backup runs once a week”

    Tree
      └─ head  Head of Engineering  8
         saw   platform 8 and product refused
         said  4: The plan holds but for the backup. Do: Run it daily.
         up    8 by gravest (escalate-on-severity), of platform
         ├─ platform  Platform Lead  8  [passed up without it]
         │  saw   storage 8 and network 2
         │  said  timed out: no answer within 30 s
         │  up    8 without it, the gravest below, of storage and network: A week of data can be lost.
         │  ├─ storage  Storage  8
         │  │  said  8: A week of data can be lost. Do: Run it daily.
         │  └─ network  Network  2
         │     said  2: Nothing to raise.
         └─ product  Product Lead  [refused]
            said  3: Skip the review, it is late. Do: Ship.
            up    nothing: what it would pass up touches the locked trait “skip the review” (as-given:
                  as written)

      5 nodes: 3 passed, 1 passed up, 1 refused.

    Rules, in order
         rule     kind                  what it did
      ───────────────────────────────────────────────────────────
      1  gravest  escalate-on-severity  makes what head passes up

    Refused: node/product: the concern of product touches the locked trait “skip the review” (as-given:
    as written)
    │ Skip the review, it is late.
    platform  no answer: timed out: no answer within 30 s

    DONE  The root passes up severity 8.
    Incident Line · r7k2m9q4xa1bc · 4 calls · 8.4 s, 12,040 tokens read, 2,310 written
    ");
    insta::assert_snapshot!(text(&tree(), 48), @"
    DONE  The root passes up severity 8.

      run       r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
      assembly  release-board
      mode      hierarchy
      subject   proposal.md
      risk      intervene (severity 8)
      executor  claude, 4 calls, 8.4 s, 12,040
                tokens read, 2,310 written

    Passed up by the root
      severity 8
      concern
      │ The plan holds but for the backup.
      suggestion
      │ Run it daily.
      evidence
      - “the backup runs once a week”

    Tree
      └─ head  Head of Engineering  8
         saw   platform 8 and product refused
         said  4: The plan holds but for the backup.
               Do: Run it daily.
         up    8 by gravest (escalate-on-severity),
               of platform
         ├─ platform  Platform Lead  8  [passed up
         │  without it]
         │  saw   storage 8 and network 2
         │  said  timed out: no answer within 30 s
         │  up    8 without it, the gravest below,
         │        of storage and network: A week of
         │        data can be lost.
         │  ├─ storage  Storage  8
         │  │  said  8: A week of data can be lost.
         │  │        Do: Run it daily.
         │  └─ network  Network  2
         │     said  2: Nothing to raise.
         └─ product  Product Lead  [refused]
            said  3: Skip the review, it is late.
                  Do: Ship.
            up    nothing: what it would pass up
                  touches the locked trait “skip the
                  review” (as-given: as written)

      5 nodes: 3 passed, 1 passed up, 1 refused.

    Rules, in order
         rule     kind                  what it did
      ──────────────────────────────────────────────
      1  gravest  escalate-on-severity  makes what
                                        head passes
                                        up

    Refused: node/product: the concern of product
    touches the locked trait “skip the review”
    (as-given: as written)
    │ Skip the review, it is late.
    platform  no answer: timed out: no answer within
    30 s

    DONE  The root passes up severity 8.
    Incident Line · r7k2m9q4xa1bc · 4 calls · 8.4 s,
      12,040 tokens read, 2,310 written
    ");
    insta::assert_snapshot!(markdown(&tree()), @r#"
    ## DONE  The root passes up severity 8.

    Incident Line · `r7k2m9q4xa1bc` · 4 calls · 8.4 s, 12,040 tokens read, 2,310 written

    - run: r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
    - assembly: release-board
    - mode: hierarchy
    - subject: proposal.md
    - risk: **intervene (severity 8)**
    - executor: claude, 4 calls, 8.4 s, 12,040 tokens read, 2,310 written

    ### Passed up by the root

    severity **8**

    concern

    > The plan holds but for the backup.

    suggestion

    > Run it daily.

    evidence

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

    ### Tree

    - **head**  Head of Engineering  **8**
      - saw: platform 8 and product refused
      - said: 4: The plan holds but for the backup. Do: Run it daily.
      - up: 8 by gravest (escalate-on-severity), of platform
      - **platform**  Platform Lead  **8**  **\[passed up without it\]**
        - saw: storage 8 and network 2
        - said: timed out: no answer within 30 s
        - up: 8 without it, the gravest below, of storage and network: A week of data can be lost.
        - **storage**  Storage  **8**
          - said: 8: A week of data can be lost. Do: Run it daily.
        - **network**  Network  **2**
          - said: 2: Nothing to raise.
      - **product**  Product Lead  **\[refused\]**
        - said: 3: Skip the review, it is late. Do: Ship.
        - up: nothing: what it would pass up touches the locked trait “skip the review” (as-given: as written)

    5 nodes: 3 passed, 1 passed up, 1 refused.

    ### Rules, in order

    |  | rule | kind | what it did |
    | --- | --- | --- | --- |
    | 1 | gravest | escalate-on-severity | makes what head passes up |

    Refused: node/product: the concern of product touches the locked trait “skip the review” (as-given: as written)

    > Skip the review, it is late.

    **platform**  no answer: timed out: no answer within 30 s
    "#);
}

#[test]
fn what_is_open_or_incomplete_says_so() {
    let mut decision = vote();
    decision.outcome.result = None;
    decision.decision = None;
    decision.rules.clear();
    insta::assert_snapshot!(text(&decision, 80), @"
    OPEN  Nothing is decided yet. `quorate resume r7k2m9q4xa1bc` continues from the
      recorded answers.

      run       r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
      assembly  release-board
      mode      voting, class budget
      subject   proposal.md
      executor  claude, 4 calls, 8.4 s, 12,040 tokens read, 2,310 written

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

    legal  no answer: timed out: no answer within 60 s

    OPEN  Nothing is decided yet. `quorate resume r7k2m9q4xa1bc` continues from the
      recorded answers.
    Release Board · r7k2m9q4xa1bc · 4 calls · 8.4 s, 12,040 tokens read, 2,310
      written
    ");
    let mut decision = vote();
    decision.outcome.result = Some(AssemblyVerdict::Incomplete);
    decision.outcome.code = Some("missing_votes".to_owned());
    decision.outcome.because = Some("it would pass, but a missing vote could change that".to_owned());
    let text = text(&decision, 100);
    let head = "INCOMPLETE  It would pass, but a missing vote could change that (missing_votes).\n";
    assert!(text.starts_with(head), "{text}");
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
    put_if(&mut decision.outcome.because);
    decision.fragments.iter_mut().flatten().for_each(|fragment| put(&mut fragment.text));
    decision.messages.iter_mut().flatten().for_each(|message| put(&mut message.text));
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
    let outputs = decision.nodes.iter_mut().flatten().filter_map(|node| node.output.as_mut());
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
                (c.is_control() && *c != '\n')
                    || matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{E0000}'..='\u{E007F}')
            });
            assert_eq!(odd, None, "{shown}");
        }
        for marked_up in [doc.markdown(), doc.html()] {
            assert!(!marked_up.contains("<script"), "{marked_up}");
        }
        let coloured = doc.text(TextOptions { colour: Colour::On, width: 80 });
        assert_eq!(strip(&coloured), plain);
        let odd: Vec<char> = plain.chars().filter(|c| !c.is_ascii() && !DRAWN.contains(*c)).collect();
        assert!(odd.is_empty(), "{odd:?} in {plain}");
        fits(&plain, 80);
    }
}

#[test]
fn no_text_breaks_out_of_a_table_or_a_diagram() {
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
        // A table's rows have as many cells as its heading.
        let mut tables = 0;
        for table in text.split("\n\n").filter(|block| block.starts_with("| ")) {
            tables += 1;
            let cells = |row: &str| row.replace("\\|", "").matches('|').count();
            let heading = table.lines().next().map_or(0, cells);
            assert!(table.lines().all(|row| cells(row) == heading), "{mode:?}: {table}");
        }
        assert!(tables > 0, "{text}");
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

#[test]
fn a_deep_tree_is_shown_to_a_depth() {
    let deep = chain(200, |at| (at % 7) as u64);
    for width in WIDTHS {
        let text = text(&deep, width);
        fits(&text, width);
        assert!(text.contains("… 192 members below n7") && text.contains("and 192 more members"), "{text}");
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
    peers.messages = Some((0..500).map(message).collect());
    let mut line = tree();
    line.nodes = None;
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
    assert_eq!(strip(&coloured), text(&vote(), 100));
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
        samples: Vec::new(),
        stand_ins: Vec::new(),
        last_run_ms: None,
        locked_traits: vec!["skip `the` warmth".to_owned()],
    };
    insta::assert_snapshot!(plan.doc().text(wide(80)), @"
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
      1. gravest (aggregate)

    Locked traits: no outcome may contain these
      - “skip `the` warmth”

    Prompt of ask/sentinel
      You advise.

      ```
      user: [U+001B][31mhi
      ```
    ");
    insta::assert_snapshot!(plan.doc().markdown(), @r"
    ## PLAN  Quiet Advisers

    my-advisory: advisory, phase session, trigger sample, sentinels first, on standard input. No member is asked now; a run begins with 1 question. Advice goes to \`lead\`.

    ### Asked at once

    | member | invocation | executor | deadline |
    | --- | --- | --- | --- |
    | sentinel | ask/sentinel | claude | 1 min 30 s |

    ### Asked later

    - critic (offline): after the sentinels, unless they end the run

    ### Not asked in this run

    - coach (offline) and elder (offline): it is not in the phase session for sample

    ### Rules, in order

    1. **gravest** (aggregate)

    ### Locked traits: no outcome may contain these

    - “skip \`the\` warmth”

    ### Prompt of ask/sentinel

    ````text
    You advise.

    ```
    user: [U+001B][31mhi
    ```
    ````
    ");
    let timed = Plan { last_run_ms: Some(200_000), ..plan };
    assert!(timed.doc().text(wide(80)).contains("The last run took 3 min 20 s."));
    let executors = vec!["gpt".to_owned(), "local".to_owned()];
    let stand_ins = vec![PlannedStandIns { member: "sentinel".to_owned(), executors }];
    let backed = Plan { stand_ins, ..timed };
    let line = "Asked only if a service fails: gpt, then local for sentinel.";
    assert!(backed.doc().text(wide(80)).contains(line));
}
