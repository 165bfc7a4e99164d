//! A vote at two widths, and as Markdown.

use super::super::fixture::vote;
use super::*;
use quorate::service::convene::report::Contribution;

#[test]
fn at_a_wide_terminal() {
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

    Decision
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
fn at_a_narrow_terminal() {
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

    Decision
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
fn as_markdown() {
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
