//! Guidance at two widths, and as Markdown.

use super::super::fixture::guidance;
use super::*;

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
