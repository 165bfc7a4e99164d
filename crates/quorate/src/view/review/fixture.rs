//! Reports for the tests of every format.

use std::sync::Arc;
use std::time::Duration;

use quorate_kernel::attempts::Cost;
use quorate_kernel::ports::executor::Usage;
use quorate_manifest::council::CrossRead;
use quorate_protocol::Json;
use quorate_protocol::policy::Verdict;
use serde_json::json;

use crate::service::member_usage::Failure;
use crate::service::report::{Adjudicator, Answer, Deliberator, Finding, Override, Review, SCHEMA};

pub(crate) const TEXT: &str = "# Launch\n\nRevenue grew 90% last quarter, and all our customers love it.\nStudies show that this changes everything. 日本語も「速い」です。\n\nBuy now: the price will never change.\n";

pub(crate) fn answered(answer: Json) -> Answer {
    Answer { status: "answered".to_owned(), answer: answer.as_object().cloned(), ..Answer::default() }
}

pub(crate) fn absent(status: &str, message: Option<&str>) -> Answer {
    let failure = (status != "not_asked").then(|| Failure {
        kind: status.to_owned(),
        message: message.unwrap_or("no reason is recorded").to_owned(),
        http: None,
        retries: 0,
        excerpt: None,
    });
    let message = message.map(str::to_owned);
    Answer { status: status.to_owned(), message, failure, ..Answer::default() }
}

pub(crate) fn says(verdict: &str, score: f64, block: bool, irreducible: bool) -> Answer {
    answered(json!({"verdict": verdict, "score": score, "would_block": block, "irreducible": irreducible}))
}

pub(crate) fn deliberator(id: &str, round1: Answer, round2: Answer, counted: &str) -> Deliberator {
    let counts = if counted == "round2" { &round2 } else { &round1 };
    let blocks = counts.flag("would_block");
    Deliberator {
        id: id.to_owned(),
        round1,
        round2,
        counted: counted.to_owned(),
        blocks,
        ungrounded: false,
        usage: None,
    }
}

fn adjudicated(given: Answer) -> Adjudicator {
    Adjudicator { given, usage: None }
}

/// A finding whose quote is located in the text.
pub(crate) fn found(text: &str, by: &str, quote: &str, issue: &str, fix: Option<&str>) -> Finding {
    let start = text.find(quote);
    let before = start.map(|start| &text[..start]);
    Finding {
        by: by.to_owned(),
        line: before.map(|before| before.matches('\n').count() as u64 + 1),
        column: before
            .map(|before| before.rsplit('\n').next().unwrap_or_default().chars().count() as u64 + 1),
        span: start.map(|start| (start, start + quote.len())),
        quote: quote.to_owned(),
        issue: issue.to_owned(),
        fix: fix.map(str::to_owned),
    }
}

/// All four pass, without findings.
pub(crate) fn ship() -> Review {
    let calm =
        |id| deliberator(id, says("ship", 4.0, false, false), says("ship", 4.0, false, false), "round2");
    Review {
        schema: SCHEMA,
        run: "r7k2m9q4xa1bc".to_owned(),
        opened_ms: 1_772_600_700_007,
        artifact: "drafts/launch.md".to_owned(),
        repository_path: None,
        is_file: true,
        text: Some(Arc::from(TEXT)),
        has_stand_ins: false,
        hidden: None,
        artifact_type: "blog_post".to_owned(),
        tier: 2,
        policy: "seed/2".to_owned(),
        rule: "lenient policy, row 5: {then: SHIP}".to_owned(),
        rounds: 2,
        cross_read: CrossRead::Verdicts,
        verdict: Some(Verdict::Ship),
        exit: 0,
        partial: false,
        missing: Vec::new(),
        because: "0 of 4 block, 0 of them irreducibly; the adjudicator asks for SHIP; policy seed/2 makes that SHIP.".to_owned(),
        unjudged: None,
        reasoning: "Nobody found anything that should stop it.".to_owned(),
        revision_brief: None,
        dissent_summary: None,
        deliberators: ["skeptic", "voice_identity", "evidence", "strategy"].map(calm).into(),
        adjudicator: adjudicated(answered(
            json!({"verdict": "SHIP", "reasoning": "Nobody found anything that should stop it."}),
        )),
        findings: Vec::new(),
        prior_verdicts_consulted: 3,
        executor: "claude".to_owned(),
        model_asked: true,
        recorded: None,
        kind: "agent-cli".to_owned(),
        fail_on: None,
        spent: Cost {
            calls: 9,
            usage: Usage { tokens_in: Some(12_040), tokens_out: Some(2_310), ..Usage::default() },
            took: Duration::from_millis(83_400),
        },
        overridden: None,
        council: None,
        imported: false,
        queued: false,
        ledger: None,
        notes: Vec::new(),
    }
}

/// Two block; findings overlap; the others react.
pub(crate) fn revise() -> Review {
    let mut second = says("revise", 2.0, true, false);
    if let Some(answer) = &mut second.answer {
        answer.insert(
            "concessions".to_owned(),
            json!(["The register of the opening is the voice member's concern.", "b"]),
        );
        answer.insert("escalations".to_owned(), json!("Two others stopped at the same sentence."));
    }
    let finding = |by, quote, issue, fix| found(TEXT, by, quote, issue, fix);
    Review {
        verdict: Some(Verdict::Revise),
        exit: 1,
        because: "2 of 4 block, 0 of them irreducibly; the adjudicator asks for REVISE; policy seed/2 makes that REVISE.".to_owned(),
        reasoning: "The numbers carry the argument, and neither has a source.\nTwo of four say so.\n\n- the growth has no base\n- the promise about the price binds the company longer than anybody can know today".to_owned(),
        revision_brief: Some("Name the base of the 90%. Drop the promise.".to_owned()),
        dissent_summary: Some("Voice would ship it.".to_owned()),
        deliberators: vec![
            deliberator("skeptic", says("hold", 2.0, true, true), second, "round2"),
            deliberator("voice_identity", says("ship", 4.0, false, false), says("ship", 4.0, false, false), "round2"),
            deliberator("evidence", says("revise", 3.0, false, false), says("revise", 2.5, true, false), "round2"),
            deliberator("strategy", says("revise", 3.0, true, false), says("revise", 3.5, false, false), "round2"),
        ],
        findings: vec![
            finding("evidence", "90%", "A percentage without a base.", Some("Say 90% of what, and link the report.")),
            finding("skeptic", "Revenue grew 90% last quarter", "Another cause is as likely.", None),
            finding("strategy", "90%", "A percentage without a base.", Some("Say 90% of what, and link the report.")),
            finding("skeptic", "all our customers", "Those who left were not asked.", Some("Say how many of how many.")),
            finding("strategy", "the price will never change", "A promise that cannot be taken back.", Some("Say until when the price holds.")),
        ],
        executor: "rubric".to_owned(),
        model_asked: false,
        recorded: None,
        kind: "rubric".to_owned(),
        spent: Cost { calls: 9, usage: Usage::default(), took: Duration::from_millis(12) },
        notes: vec![
            "No model was asked: the answers come from the `rubric` executor, which does not judge content."
                .to_owned(),
        ],
        ..ship()
    }
}

/// Three block irreducibly, one with a quote that does not occur in the text; a person overrides.
pub(crate) fn hold() -> Review {
    let blocks = |id| deliberator(id, says("hold", 1.0, true, true), says("hold", 1.0, true, true), "round2");
    let mut report = Review {
        verdict: Some(Verdict::Hold),
        exit: 2,
        because: "3 of 4 block, 3 of them irreducibly; the adjudicator asks for HOLD; policy seed/2 makes that HOLD.".to_owned(),
        reasoning: String::new(),
        findings: vec![
            found(TEXT, "evidence", "日本語も「速い」です。", "Nobody measured it.", Some("Measure it.")),
            found(TEXT, "voice_identity", "we are the\nbest <in> the world", "A superlative.", None),
        ],
        overridden: Some(Override { verdict: "SHIP".to_owned(), reason: "The embargo ends today.".to_owned(), by: "ana".to_owned(), ..Override::default() }),
        notes: vec!["Ungrounded: voice_identity blocks without a quote from the text.".to_owned()],
        ..ship()
    };
    report.deliberators = vec![
        blocks("skeptic"),
        blocks("voice_identity"),
        blocks("evidence"),
        deliberator("strategy", says("ship", 4.0, false, false), says("ship", 4.0, false, false), "round2"),
    ];
    report.deliberators[1].ungrounded = true;
    report
}

/// Half of the answers are missing.
pub(crate) fn incomplete() -> Review {
    Review {
        verdict: Some(Verdict::Incomplete),
        exit: 3,
        partial: true,
        because: "Fewer than 3 of 4 deliberators gave a valid second answer.".to_owned(),
        reasoning: "Fewer than 3 of 4 deliberators gave a valid second answer.".to_owned(),
        missing: vec!["voice_identity".to_owned(), "strategy".to_owned()],
        deliberators: vec![
            deliberator("skeptic", says("ship", 4.0, false, false), says("ship", 4.0, false, false), "round2"),
            deliberator("voice_identity", says("hold", 1.0, true, false), absent("timed_out", Some("no answer within 90 s")), "round1_block"),
            deliberator("evidence", says("ship", 4.0, false, false), says("ship", 4.0, false, false), "round2"),
            deliberator("strategy", absent("failed", Some("exit status 1: rate\nlimit")), absent("schema_failed", None), "missing"),
        ],
        adjudicator: adjudicated(absent("not_asked", None)),
        notes: vec!["Everything answered so far is kept: `quorate resume r7k2m9q4xa1bc` asks again only for what is missing.".to_owned()],
        ..ship()
    }
}

/// Undecided, in round 1.
pub(crate) fn open() -> Review {
    Review {
        verdict: None,
        exit: 3,
        because: String::new(),
        reasoning: String::new(),
        deliberators: vec![
            deliberator("skeptic", says("ship", 4.0, false, false), absent("not_asked", None), ""),
            deliberator("evidence", absent("not_asked", None), absent("not_asked", None), ""),
        ],
        adjudicator: adjudicated(absent("not_asked", None)),
        prior_verdicts_consulted: 0,
        ..ship()
    }
}

/// One round, and the text was erased.
pub(crate) fn one_round() -> Review {
    Review {
        rounds: 1,
        text: None,
        deliberators: vec![
            deliberator(
                "skeptic",
                answered(json!({"would_block": true, "scores": {"a": 2, "b": 3}})),
                absent("not_asked", None),
                "round1",
            ),
            deliberator("evidence", absent("over_budget", None), absent("not_asked", None), "missing"),
        ],
        findings: vec![found(TEXT, "skeptic", "90%", "No base.", None)],
        ..revise()
    }
}
