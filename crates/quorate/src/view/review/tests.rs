//! Every kind of review as text and as Markdown: widths, colours, unusual text, many findings.

use std::time::Duration;

use quorate_diagnostics::render::{Colour, TextOptions};
use quorate_kernel::attempts::Cost;
use quorate_kernel::ports::executor::Usage;
use quorate_kernel::record::Tried;
use quorate_manifest::money::Money;

use super::fixture::{found, hold, incomplete, one_round, open, revise, ship};
use super::*;
use crate::view::layout::strip;

fn terminal(review: &Review, extent: Extent, options: TextOptions) -> String {
    review.doc(extent).text(options)
}

#[test]
fn lines_fit_and_end_without_spaces() {
    for report in [ship(), revise(), hold(), incomplete(), open(), one_round()] {
        for width in [40, 60, 80, 100, 120] {
            let text = terminal(&report, Extent::Full, TextOptions { width, ..TextOptions::default() });
            for line in text.lines() {
                assert_eq!(line, line.trim_end(), "{text}");
                if line.contains(" | ") && width < 60 {
                    // Quoted source is cut no shorter than this.
                    continue;
                }
                assert!(line.chars().count() <= width, "{} > {width}: {line}\n{text}", line.chars().count());
            }
        }
    }
}

#[test]
fn colours_add_nothing_but_colours() {
    for report in [ship(), revise(), hold(), incomplete(), open(), one_round()] {
        let coloured =
            terminal(&report, Extent::Full, TextOptions { colour: Colour::On, ..TextOptions::default() });
        let plain: String = strip(&coloured).lines().map(|line| format!("{}\n", line.trim_end())).collect();
        assert_eq!(plain, terminal(&report, Extent::Full, TextOptions::default()));
    }
    let coloured =
        terminal(&hold(), Extent::Full, TextOptions { colour: Colour::On, ..TextOptions::default() });
    assert!(coloured.starts_with("\u{1b}[1m\u{1b}[31mHOLD\u{1b}[0m  "), "{coloured:?}");
}

#[test]
fn odd_lines_are_quoted() {
    let text = "one\r\n\tsaid 日本 is \u{1b}[31mbest\u{202e} of all\r\nthree\r\n";
    let mut report = revise();
    report.text = Some(text.into());
    report.findings = vec![
        found(text, "skeptic", "日本 is", "wide | <b>", None),
        found(text, "skeptic", "best", "control\u{1b}[0m", None),
        found(text, "evidence", "all\r\nthree", "two lines", Some("one\nline")),
    ];
    let text = terminal(&report, Extent::Full, TextOptions::default());
    let (problems, _) = text.split_once("\n\n  decided by").expect("the details");
    insta::assert_snapshot!(problems, @"
    REVISE  (rubric: content not judged)  2 of 4 reviewers object (skeptic and evidence). Fixable.

    drafts/launch.md:2:7  blocks (skeptic)
      2 │  said 日本 is [U+001B][31mbest[U+202E] of all
        │       ^^^^^^^
        wide | <b>

    drafts/launch.md:2:18  blocks (skeptic)
      2 │  said 日本 is [U+001B][31mbest[U+202E] of all
        │                           ^^^^
        control[U+001B][0m

    drafts/launch.md:2:27  blocks (evidence)
      2 │  said 日本 is [U+001B][31mbest[U+202E] of all
        │                                           ^^^
        two lines
        → one line
    ");
}

/// A review with this number of findings, each at its own place, half of them blocking.
fn many(findings: usize) -> Review {
    let place = |number: usize| format!("Sentence {number:03} of the text makes a claim that needs a source");
    let text: String = (0..findings).map(|number| place(number) + ", and goes on.\n\n").collect();
    let issue = "A figure without a source near it, which does not say compared with what it is large.";
    let fix =
        "Say where the figure is from: link it, name the data and its date, or take it out of the text.";
    let one = |number: usize| {
        let by = if number.is_multiple_of(2) { "skeptic" } else { "voice_identity" };
        found(&text, by, &place(number), &format!("{issue} ({number})"), Some(fix))
    };
    Review { text: Some(text.as_str().into()), findings: (0..findings).map(one).collect(), ..revise() }
}

#[test]
fn outputs_have_limits() {
    let silent = || {
        let mut review = incomplete();
        review.findings = many(3).findings;
        review
    };
    let outputs = [
        (ship(), 8),
        (open(), 8),
        (incomplete(), 11),
        (silent(), 30),
        (hold(), 24),
        (many(3), 30),
        (many(10), 45),
        (many(15), 60),
    ];
    for (review, most) in outputs {
        let text = terminal(&review, Extent::Screen, TextOptions::default());
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() <= most, "{} > {most}: {text}", lines.len());
        let is_verdict = |line: &&&str| line.starts_with(review.verdict_word());
        let verdicts = lines.iter().filter(is_verdict).count();
        assert_eq!(verdicts, if lines.len() > 24 { 2 } else { 1 }, "{text}");
        assert!(lines.iter().rev().take(5).any(|line| line.starts_with(review.verdict_word())), "{text}");
        for finding in &review.findings {
            let issue = &finding.issue[..finding.issue.len().min(40)];
            assert!(text.contains(issue), "{issue}: {text}");
        }
    }
    let mut ungrounded = many(10);
    for finding in &mut ungrounded.findings {
        (finding.span, finding.line, finding.column) = (None, None, None);
    }
    let text = terminal(&ungrounded, Extent::Screen, TextOptions { width: 80, ..TextOptions::default() });
    assert!(text.lines().count() <= 45 && text.contains("… and 3 more issues"), "{text}");
    let cut = terminal(&many(50), Extent::Screen, TextOptions::default());
    assert!(cut.contains("… and 35 more issues: `quorate show r7k2m9q4xa1bc --full` shows all."), "{cut}");
    assert!(cut.lines().count() <= 60, "{cut}");
    let full = terminal(&many(300), Extent::Full, TextOptions::default());
    assert!(full.contains("… and 100 more issues: `quorate show r7k2m9q4xa1bc --format json`"), "{full}");
}

#[test]
fn short_lines_have_place_severity_issue_and_members() {
    insta::assert_snapshot!(revise().short(2), @"
    drafts/launch.md:3:1: block: A percentage without a base (evidence and strategy)
    drafts/launch.md:3:1: block: Another cause is as likely (skeptic)
    drafts/launch.md: REVISE: 2 of 4 reviewers object (skeptic and evidence). Fixable. (+2 more)
    ");
    let mut hostile = hold();
    hostile.artifact = "a\nb\u{1b}[31m.md".to_owned();
    assert_eq!(hostile.short(9).lines().count(), 3, "{}", hostile.short(9));
    assert!(!hostile.short(9).contains('\u{1b}'));
}

#[test]
fn the_answer_is_one_sentence_in_plain_words() {
    let mut over_blocks = revise();
    over_blocks.verdict = Some(Verdict::Ship);
    let mut partial = ship();
    partial.missing = vec!["strategy".to_owned()];
    partial.deliberators[3].counted = "missing".to_owned();
    let answers = [
        (ship(), "0 of 4 reviewers object."),
        (revise(), "2 of 4 reviewers object (skeptic and evidence). Fixable."),
        (hold(), "3 of 4 reviewers object, and say that no edit repairs it."),
        (over_blocks, "2 of 4 reviewers object (skeptic and evidence); the policy lets it pass."),
        (partial, "0 of the 3 who answered object. No answer from strategy."),
        (incomplete(), "Fewer than 3 of 4 reviewers gave a valid second answer."),
    ];
    for (review, answer) in answers {
        assert_eq!(review.answer(), answer);
    }
}

#[test]
fn markdown_revise() {
    insta::assert_snapshot!(revise().doc(Extent::Screen).markdown(), @r"
    ## REVISE  (rubric: content not judged)  2 of 4 reviewers object (skeptic and evidence). Fixable.

    `drafts/launch.md` · `r7k2m9q4xa1bc` · 9 calls · 12 ms

    `drafts/launch.md:3:1` **A percentage without a base.** · **blocks (evidence)** · raised by evidence and strategy

    > Revenue grew 90% last quarter

    Fix: Say 90% of what, and link the report.

    **Another cause is as likely.** · **blocks (skeptic)**

    `drafts/launch.md:3:36` **Those who left were not asked.** · **blocks (skeptic)**

    > all our customers

    Fix: Say how many of how many.

    `drafts/launch.md:6:10` **A promise that cannot be taken back.** · suggestion (strategy)

    > the price will never change

    Fix: Say until when the price holds.

    <details>
    <summary>Every answer</summary>

    - decided by: lenient policy, row 5: {then: SHIP}
    - run: r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
    - type: blog\_post, tier 2, 3 earlier verdicts consulted
    - executor: rubric

    | deliberator | round 1 | round 2 | score | blocks | what changed |
    | --- | --- | --- | --- | --- | --- |
    | skeptic | hold, blocks | revise, blocks | 2 | yes | hold → revise; no longer says that no edit repairs it |
    | voice\_identity | ship | ship | 4 | no | nothing |
    | evidence | revise | revise, blocks | 2.5 | yes | score 3 → 2.5; now blocks |
    | strategy | revise, blocks | revise | 3.5 | no | score 3 → 3.5; no longer blocks |

    - skeptic concedes: The register of the opening is the voice member's concern.
    - skeptic concedes: b

    - skeptic escalates: Two others stopped at the same sentence.

    ### Reasoning

    The numbers carry the argument, and neither has a source.
    Two of four say so.

    - the growth has no base
    - the promise about the price binds the company longer than anybody can know today

    ### Revision brief

    Name the base of the 90%. Drop the promise.

    ### Dissent

    Voice would ship it.

    </details>

    skeptic (2) and evidence (2.5) block; voice\_identity (4) would ship it; strategy (3.5) would revise it.

    No model was asked: the built-in rubric checks how a text is written, not whether it is true.
    ");
}

#[test]
fn markdown_hold() {
    insta::assert_snapshot!(hold().doc(Extent::Screen).markdown(), @r"
    ## HOLD  3 of 4 reviewers object, and say that no edit repairs it.

    `drafts/launch.md` · `r7k2m9q4xa1bc` · 9 calls · 1 min 23 s, 12,040 tokens read, 2,310 written

    ana decided **SHIP**: The embargo ends today.

    `drafts/launch.md:4:44` **Nobody measured it.** · **blocks (evidence)**

    > 日本語も「速い」です。

    Fix: Measure it.

    `drafts/launch.md` **A superlative.** · **blocks (voice\_identity)**

    > we are the best &lt;in&gt; the world

    <details>
    <summary>Every answer</summary>

    - decided by: lenient policy, row 5: {then: SHIP}
    - run: r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
    - type: blog\_post, tier 2, 3 earlier verdicts consulted
    - executor: claude

    | deliberator | round 1 | round 2 | score | blocks | what changed |
    | --- | --- | --- | --- | --- | --- |
    | skeptic | hold, blocks | hold, blocks | 1 | yes, and no edit repairs it | nothing |
    | voice\_identity | hold, blocks | hold, blocks | 1 | yes, and no edit repairs it, ungrounded | nothing |
    | evidence | hold, blocks | hold, blocks | 1 | yes, and no edit repairs it | nothing |
    | strategy | ship | ship | 4 | no | nothing |

    </details>

    skeptic (1), voice\_identity (1) and evidence (1) block; strategy (4) would ship it.

    Ungrounded: voice\_identity blocks without a quote from the text.
    ");
}

#[test]
fn everybody_passes() {
    insta::assert_snapshot!(terminal(&ship(), Extent::Full, TextOptions::default()), @"
    Nobody found anything that should stop it.

      decided by  lenient policy, row 5: {then: SHIP}
      run         r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
      type        blog_post, tier 2, 3 earlier verdicts consulted
      executor    claude

      deliberator     round 1  round 2  score  blocks  what changed
      ─────────────────────────────────────────────────────────────
      skeptic         ship     ship     4      no      nothing
      voice_identity  ship     ship     4      no      nothing
      evidence        ship     ship     4      no      nothing
      strategy        ship     ship     4      no      nothing

    skeptic (4), voice_identity (4), evidence (4) and strategy (4) would ship it.

    SHIP  0 of 4 reviewers object.
    drafts/launch.md · r7k2m9q4xa1bc · 9 calls · 1 min 23 s, 12,040 tokens read, 2,310 written
    ");
}

#[test]
fn some_block_and_some_moved() {
    insta::assert_snapshot!(terminal(&revise(), Extent::Full, TextOptions::default()), @"
    REVISE  (rubric: content not judged)  2 of 4 reviewers object (skeptic and evidence). Fixable.

    drafts/launch.md:3:1  blocks (evidence) · raised by evidence and strategy
      3 │ Revenue grew 90% last quarter, and all our customers love it.
        │ ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        A percentage without a base.
        → Say 90% of what, and link the report.
      blocks (skeptic)
        Another cause is as likely.

    drafts/launch.md:3:36  blocks (skeptic)
      3 │ Revenue grew 90% last quarter, and all our customers love it.
        │                                    ^^^^^^^^^^^^^^^^^
        Those who left were not asked.
        → Say how many of how many.

    drafts/launch.md:6:10  suggestion (strategy)
      6 │ Buy now: the price will never change.
        │          ^^^^^^^^^^^^^^^^^^^^^^^^^^^
        A promise that cannot be taken back.
        → Say until when the price holds.

      decided by  lenient policy, row 5: {then: SHIP}
      run         r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
      type        blog_post, tier 2, 3 earlier verdicts consulted
      executor    rubric

      deliberator     round 1         round 2         score  blocks  what changed
      ──────────────────────────────────────────────────────────────────────────────────────────────────
      skeptic         hold, blocks    revise, blocks  2      yes     hold → revise; no longer says that
                                                                     no edit repairs it
      voice_identity  ship            ship            4      no      nothing
      evidence        revise          revise, blocks  2.5    yes     score 3 → 2.5; now blocks
      strategy        revise, blocks  revise          3.5    no      score 3 → 3.5; no longer blocks

      - skeptic concedes: The register of the opening is the voice member's concern.
      - skeptic concedes: b

      - skeptic escalates: Two others stopped at the same sentence.

    Reasoning
      The numbers carry the argument, and neither has a source. Two of four say so.

      - the growth has no base
      - the promise about the price binds the company longer than anybody can know today

    Revision brief
      Name the base of the 90%. Drop the promise.

    Dissent
      Voice would ship it.

    skeptic (2) and evidence (2.5) block; voice_identity (4) would ship it; strategy (3.5) would revise
    it.
    No model was asked: the built-in rubric checks how a text is written, not whether it is true.

    REVISE  (rubric: content not judged)  2 of 4 reviewers object (skeptic and evidence). Fixable.
    drafts/launch.md · r7k2m9q4xa1bc · 9 calls · 12 ms
    Next: edit drafts/launch.md and review it again.
    ");
}

#[test]
fn hold_with_an_ungrounded_block_and_an_override() {
    insta::assert_snapshot!(terminal(&hold(), Extent::Full, TextOptions::default()), @"
    HOLD  3 of 4 reviewers object, and say that no edit repairs it.

    drafts/launch.md:4:44  blocks (evidence)
      4 │ Studies show that this changes everything. 日本語も「速い」です。
        │                                            ^^^^^^^^^^^^^^^^^^^^^^
        Nobody measured it.
        → Measure it.

    drafts/launch.md  blocks (voice_identity)
        “we are the best <in> the world” is not in the text.
        A superlative.

      decided by  lenient policy, row 5: {then: SHIP}
      run         r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
      type        blog_post, tier 2, 3 earlier verdicts consulted
      executor    claude

      deliberator     round 1       round 2       score  blocks                        what changed
      ─────────────────────────────────────────────────────────────────────────────────────────────
      skeptic         hold, blocks  hold, blocks  1      yes, and no edit repairs it   nothing
      voice_identity  hold, blocks  hold, blocks  1      yes, and no edit repairs it,  nothing
                                                         ungrounded
      evidence        hold, blocks  hold, blocks  1      yes, and no edit repairs it   nothing
      strategy        ship          ship          4      no                            nothing

    skeptic (1), voice_identity (1) and evidence (1) block; strategy (4) would ship it.
    Ungrounded: voice_identity blocks without a quote from the text.

    HOLD  3 of 4 reviewers object, and say that no edit repairs it.
    drafts/launch.md · r7k2m9q4xa1bc · 9 calls · 1 min 23 s, 12,040 tokens read, 2,310 written
    ana decided SHIP: The embargo ends today.
    ");
}

#[test]
fn answers_are_missing() {
    insta::assert_snapshot!(terminal(&incomplete(), Extent::Full, TextOptions::default()), @"
      decided by  lenient policy, row 5: {then: SHIP}
      run         r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
      type        blog_post, tier 2, 3 earlier verdicts consulted
      executor    claude

      deliberator     round 1       round 2             score  blocks  what changed
      ─────────────────────────────────────────────────────────────────────────────────────────────
      skeptic         ship          ship                4      no      nothing
      voice_identity  hold, blocks  timed out           1      yes     counted by its round-1 block
      evidence        ship          ship                4      no      nothing
      strategy        failed        answer did not fit  –      –       –

    voice_identity (1) blocks; skeptic (4) and evidence (4) would ship it.
    voice_identity, round 2  no answer: timed out: no answer within 90 s
    strategy, round 1  no answer: failed: exit status 1: rate limit

    INCOMPLETE  Fewer than 3 of 4 reviewers gave a valid second answer.
    drafts/launch.md · r7k2m9q4xa1bc · 9 calls · 1 min 23 s, 12,040 tokens read, 2,310 written
    Next: `quorate resume r7k2m9q4xa1bc` asks again only for what is missing.
    ");
}

#[test]
fn nothing_is_decided() {
    insta::assert_snapshot!(terminal(&open(), Extent::Full, TextOptions::default()), @"
      decided by  lenient policy, row 5: {then: SHIP}
      run         r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
      type        blog_post, tier 2
      executor    claude

      deliberator  round 1  round 2  score  blocks  what changed
      ──────────────────────────────────────────────────────────
      skeptic      ship     –        4      no      –
      evidence     –        –        –      –       –

    skeptic (4) would ship it.

    OPEN  Nothing is decided yet. `quorate resume r7k2m9q4xa1bc` continues from the recorded answers.
    drafts/launch.md · r7k2m9q4xa1bc · 9 calls · 1 min 23 s, 12,040 tokens read, 2,310 written
    ");
}

#[test]
fn one_round_without_its_text() {
    insta::assert_snapshot!(terminal(&one_round(), Extent::Full, TextOptions::default()), @"
    drafts/launch.md:3:14  blocks (skeptic)
        No base.

      decided by  lenient policy, row 5: {then: SHIP}
      run         r7k2m9q4xa1bc, 2026-03-04 05:05 UTC
      type        blog_post, tier 2, 3 earlier verdicts consulted
      executor    rubric

      deliberator  round 1      score  blocks
      ───────────────────────────────────────
      skeptic      blocks       2.5    yes
      evidence     over budget  –      –

    Dissent
      Voice would ship it.

    skeptic (2.5) blocks.
    No model was asked: the built-in rubric checks how a text is written, not whether it is true.

    REVISE  (rubric: content not judged)  1 of 2 reviewers objects (skeptic). Fixable.
    drafts/launch.md · r7k2m9q4xa1bc · 9 calls · 12 ms
    Next: edit drafts/launch.md and review it again.
    ");
}

#[test]
fn narrow_terminal() {
    insta::assert_snapshot!(terminal(&revise(), Extent::Full, TextOptions { width: 48, ..TextOptions::default() }), @"
    REVISE  (rubric: content not judged)  2 of 4
      reviewers object (skeptic and evidence).
      Fixable.

    drafts/launch.md:3:1  blocks (evidence) · raised
    by evidence and strategy
      3 │ Revenue grew 90% last quarter, and all ou…
        │ ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        A percentage without a base.
        → Say 90% of what, and link the report.
      blocks (skeptic)
        Another cause is as likely.

    drafts/launch.md:3:36  blocks (skeptic)
      3 │ …arter, and all our customers love it.
        │             ^^^^^^^^^^^^^^^^^
        Those who left were not asked.
        → Say how many of how many.

    drafts/launch.md:6:10  suggestion (strategy)
      6 │ Buy now: the price will never change.
        │          ^^^^^^^^^^^^^^^^^^^^^^^^^^^
        A promise that cannot be taken back.
        → Say until when the price holds.

      decided by  lenient policy, row 5: {then:
                  SHIP}
      run         r7k2m9q4xa1bc, 2026-03-04 05:05
                  UTC
      type        blog_post, tier 2, 3 earlier
                  verdicts consulted
      executor    rubric

      skeptic
        round 1: hold, blocks
        round 2: revise, blocks
        score: 2
        blocks: yes
        what changed: hold → revise; no longer says
                      that no edit repairs it
      voice_identity
        round 1: ship
        round 2: ship
        score: 4
        blocks: no
        what changed: nothing
      evidence
        round 1: revise
        round 2: revise, blocks
        score: 2.5
        blocks: yes
        what changed: score 3 → 2.5; now blocks
      strategy
        round 1: revise, blocks
        round 2: revise
        score: 3.5
        blocks: no
        what changed: score 3 → 3.5; no longer
                      blocks

      - skeptic concedes: The register of the
        opening is the voice member's concern.
      - skeptic concedes: b

      - skeptic escalates: Two others stopped at the
        same sentence.

    Reasoning
      The numbers carry the argument, and neither
      has a source. Two of four say so.

      - the growth has no base
      - the promise about the price binds the
        company longer than anybody can know today

    Revision brief
      Name the base of the 90%. Drop the promise.

    Dissent
      Voice would ship it.

    skeptic (2) and evidence (2.5) block;
    voice_identity (4) would ship it; strategy (3.5)
    would revise it.
    No model was asked: the built-in rubric checks
    how a text is written, not whether it is true.

    REVISE  (rubric: content not judged)  2 of 4
      reviewers object (skeptic and evidence).
      Fixable.
    drafts/launch.md · r7k2m9q4xa1bc · 9 calls · 12
      ms
    Next: edit drafts/launch.md and review it again.
    ");
}

fn usage(member: &str, executor: &str, model: Option<&str>, usage: Usage) -> MemberUsage {
    MemberUsage {
        member: member.to_owned(),
        executor: executor.to_owned(),
        kind: "llm".to_owned(),
        model: model.map(str::to_owned),
        is_answered: true,
        spent: Cost { calls: 2, usage, took: Duration::from_millis(12_345) },
        ..MemberUsage::default()
    }
}

#[test]
fn a_stand_in_is_shown_with_the_reasons() {
    let tried = |executor: &str, message: &str| Tried {
        executor: executor.to_owned(),
        message: message.to_owned(),
        http: Some(503),
    };
    let mut stood_in = usage("skeptic", "ollama:qwen3", Some("qwen3"), Usage::default());
    stood_in.stand_in_for = Some("opus".to_owned());
    stood_in.tried = vec![tried("opus", "the service is overloaded"), tried("gpt", "no key")];
    let shown = members([&stood_in, &usage("evidence", "opus", None, Usage::default())])
        .text(TextOptions { width: 120, ..TextOptions::default() });
    for part in [
        "ollama:qwen3 (for opus)",
        "skeptic: answered by ollama:qwen3, standing in for opus: the service is overloaded; gpt: no key",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
    assert!(!shown.contains("evidence: answered"), "{shown}");
}

#[test]
fn each_member_has_a_row_and_no_column_is_empty() {
    let paid = Usage {
        tokens_in: Some(12_040),
        tokens_cached: Some(8_000),
        tokens_out: Some(2_310),
        money: Some(Money::from_nanos(41_100_000)),
        ..Usage::default()
    };
    let mut report = ship();
    report.deliberators[0].usage = Some(MemberUsage {
        requested_model: Some("large".to_owned()),
        ..usage("skeptic", "anthropic", Some("large-2026"), paid)
    });
    report.deliberators[2].usage = Some(usage("evidence", "rubric", None, Usage::default()));
    let shown = terminal(&report, Extent::Full, TextOptions::default());
    let table = &shown[shown.find("Who was asked").expect("the table")..];
    insta::assert_snapshot!(table, @"
    Who was asked
      member    through    model                         calls  tokens in  cached  out    US$   time
      ────────────────────────────────────────────────────────────────────────────────────────────────
      skeptic   anthropic  large-2026 (asked for large)  2      12,040     8,000   2,310  0.05  12.3 s
      evidence  rubric                                   2                                      12.3 s

    skeptic (4), voice_identity (4), evidence (4) and strategy (4) would ship it.

    SHIP  0 of 4 reviewers object.
    drafts/launch.md · r7k2m9q4xa1bc · 9 calls · 1 min 23 s, 12,040 tokens read, 2,310 written
    ");
    let shown = report.doc(Extent::Full).markdown();
    assert!(shown.contains("| evidence | rubric |"), "{shown}");
    assert!(!terminal(&report, Extent::Screen, TextOptions::default()).contains("Who was asked"));
    report.deliberators[0].usage = None;
    let shown = members(report.usage()).markdown();
    assert!(shown.contains("| member | through | calls | time |"), "{shown}");
}

#[test]
fn phrases_meet_when_they_share_a_character_and_passages_when_they_share_half() {
    assert!(overlaps(Some(&(0..10)), Some((9, 20))));
    assert!(!overlaps(Some(&(0..10)), Some((10, 20))));
    assert!(!overlaps(Some(&(0..1000)), Some((10, 20))));
    assert!(overlaps(Some(&(0..1000)), Some((100, 700))));
    assert!(!overlaps(Some(&(0..10)), None));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "it is about time")]
fn many_findings_are_gathered_in_one_pass() {
    let mut report = hold();
    let one = report.findings[0].clone();
    let finding = |n: usize| Finding {
        span: n.is_multiple_of(2).then_some((n * 10, n * 10 + 12)),
        quote: format!("quote {}", n / 4),
        issue: format!("issue {n}"),
        ..one.clone()
    };
    report.findings = (0..40_000).map(finding).collect();
    let started = std::time::Instant::now();
    let found = places(&report);
    assert_eq!((found.len(), count(&found)), (30_000, 40_000));
    assert!(started.elapsed() < std::time::Duration::from_secs(10), "{:?}", started.elapsed());
    // Overlapping quotes are one place, and so are equal words.
    report.findings = (0..8_usize)
        .map(|n| Finding { span: n.is_multiple_of(2).then_some((n, n + 12)), ..finding(n) })
        .collect();
    let found = places(&report);
    assert_eq!((found.len(), found[0].points.len()), (3, 4));
}
