//! Reports of each mode, for the tests of every format.

use std::time::Duration;

use quorate_kernel::attempts::Cost;
use quorate_kernel::ports::executor::Usage;
use quorate_manifest::assembly::Mode;
use quorate_protocol::Json;
use quorate_protocol::assembly::{AssemblyRequest, Rule as Declared};
use serde_json::{Map, json};

use crate::service::convene::report::{
    AppliedRule, AssemblyOutcome, Consultation, CountedVote, Decision, ExactRatio, Fragment, Member, Message,
    Node, Objection, OutcomeKind, Risk, Rollup, SCHEMA, Violation, VoteCount,
};

/// Characters that a format might interpret, in a short text.
pub(super) const HOSTILE: &str = "```\n</sub><script>alert(1)</script> | a | b |\n--> x; end \"quoted\" 'q' `code` %%{init: {}}%% style:#\n\u{1b}[31mred\u{1b}[0m \u{202e}evil\u{2066} \u{E0012}paint\u{E0002}\r\n# heading\n- [x] [link](javascript:x) @octocat #1 \u{0}";

pub(super) fn answer(value: Json) -> Option<Map<String, Json>> {
    value.as_object().cloned()
}

fn consultation(
    invocation: String,
    status: &str,
    answer: Option<Map<String, Json>>,
    message: Option<&str>,
) -> Consultation {
    Consultation {
        invocation,
        status: serde_json::from_value(json!(status)).expect("a status"),
        answer,
        message: message.map(str::to_owned),
        failure: None,
        samples: None,
        probabilities: None,
        executor: "claude".to_owned(),
        ms: 1200,
    }
}

/// A member with one answer.
pub(super) fn asked(step: &str, id: &str, role: &str, value: Json) -> Member {
    let answered = consultation(format!("{step}/{id}"), "answered", answer(value), None);
    Member { consultations: vec![answered], ..unasked(id, role) }
}

/// A member without an answer.
pub(super) fn lacking(step: &str, id: &str, role: &str, status: &str, reason: &str) -> Member {
    let unanswered = consultation(format!("{step}/{id}"), status, None, Some(reason));
    Member { consultations: vec![unanswered], ..unasked(id, role) }
}

pub(super) fn unasked(id: &str, role: &str) -> Member {
    Member {
        id: id.to_owned(),
        role: role.to_owned(),
        place: 0,
        phase: None,
        classes: None,
        parent: None,
        consultations: Vec::new(),
        usage: None,
    }
}

pub(super) fn rule(id: &str, kind: &str, fired: bool, members: &[&str]) -> AppliedRule {
    AppliedRule {
        id: id.to_owned(),
        kind: kind.to_owned(),
        fired,
        members: members.iter().map(|id| (*id).to_owned()).collect(),
        node: None,
        emitted: None,
        decides: None,
        missing_as_no: false,
    }
}

pub(super) fn declared(id: &str, kind: &str, applies_to: Option<&[&str]>, params: Json) -> Declared {
    Declared {
        id: id.into(),
        kind: kind.into(),
        applies_to: applies_to.map(|ids| ids.iter().map(|id| (*id).into()).collect()),
        params: params.as_object().cloned().unwrap_or_default(),
    }
}

pub(super) fn advice(severity: u64, concern: &str, suggestion: &str) -> Json {
    json!({"severity": severity, "concern": concern, "evidence": ["a quote"], "suggestion": suggestion})
}

/// A run without members.
pub(super) fn bare(mode: Mode, request: AssemblyRequest) -> Decision {
    Decision {
        schema: SCHEMA,
        run: "r7k2m9q4xa1bc".to_owned(),
        opened_ms: 1_772_600_700_007,
        assembly: "release-board".to_owned(),
        title: "Release Board".to_owned(),
        mode,
        request,
        subject: "proposal.md".to_owned(),
        outcome: AssemblyOutcome {
            kind: OutcomeKind::of(mode),
            result: Some(crate::AssemblyVerdict::Done),
            code: None,
            because: None,
            rounds: None,
            ended_by: None,
        },
        partial: false,
        missing: Vec::new(),
        exit: 0,
        terminal: None,
        risk: None,
        should_escalate: None,
        operators: Some(vec!["lead".to_owned()]),
        fragments: None,
        decision: None,
        messages: None,
        topology: None,
        objecting: None,
        objections: None,
        synthesis: Map::new(),
        rollup: None,
        nodes: None,
        members: Vec::new(),
        declared_rules: Vec::new(),
        rules: Vec::new(),
        violations: Vec::new(),
        kept: true,
        ledger_flag: String::new(),
        imported: false,
        queued: false,
        executor: "claude".to_owned(),
        model_asked: true,
        recorded: None,
        spent: Cost {
            calls: 4,
            usage: Usage { tokens_in: Some(12_040), tokens_out: Some(2_310), ..Usage::default() },
            took: Duration::from_millis(8_400),
        },
        notes: Vec::new(),
    }
}

fn with_notes<const N: usize>(mut report: Decision, recorded: [String; N]) -> Decision {
    report.partial = !report.missing.is_empty();
    report.add_leading_notes(recorded.into());
    report
}

/// Quorum is reached; one voter is missing, one may not vote on the class.
pub(super) fn vote() -> Decision {
    let ballot = |vote: &str, rationale: &str| json!({"vote": vote, "rationale": rationale, "evidence": []});
    let vote = |member: &str, weight: &str, vote: &str| CountedVote {
        member: member.to_owned(),
        weight: weight.to_owned(),
        vote: vote.to_owned(),
        withheld: None,
    };
    let mut auditor = unasked("auditor", "External Auditor");
    auditor.classes = Some(vec!["security".to_owned(), "audit".to_owned()]);
    let mut report = bare(Mode::Voting, AssemblyRequest::Voting { class: Some("budget".to_owned()) });
    report.outcome.result = Some(crate::AssemblyVerdict::Pass);
    report.members = vec![
        asked(
            "ask",
            "chair",
            "Chair",
            ballot(
                "yes",
                "The machines pay for themselves within a year; the numbers in the annex are conservative.",
            ),
        ),
        asked("ask", "finance", "Head of Finance", ballot("yes", "Within the plan.")),
        asked("ask", "ops", "Head of Operations", ballot("no", "Nobody has said who runs them.")),
        lacking("ask", "legal", "Counsel", "timed_out", "no answer within 60 s"),
        auditor,
    ];
    report.missing = vec!["legal".to_owned()];
    report.declared_rules = vec![
        declared("veto", "terminal", Some(&["ops"]), json!({"triggerVote": "no", "scope": "security"})),
        declared("two-thirds", "quorum", None, json!({"threshold": "0.66"})),
        declared("rest", "majority", None, json!({})),
    ];
    let decides = AppliedRule {
        decides: Some("pass".to_owned()),
        ..rule("two-thirds", "quorum", true, &["chair", "finance", "ops", "legal"])
    };
    report.rules = vec![rule("veto", "terminal", false, &[]), decides];
    report.decision = Some(VoteCount {
        result: "pass".to_owned(),
        ratio: 0.777_778,
        yes: 3.5,
        no: 0.5,
        abstain: 0.0,
        missing: 0.5,
        exact: ExactRatio { yes: "3.5".to_owned(), total: "4.5".to_owned() },
        rule: Some("two-thirds".to_owned()),
        tie: None,
        contribution: Vec::new(),
        text: Some(
            "Raise the budget\nResolution: by 20%.\nResult: pass. 2 yes, 1 no, 0 abstain, 1 without a vote."
                .to_owned(),
        ),
        votes: vec![
            vote("chair", "2.5", "yes"),
            vote("finance", "1", "yes"),
            vote("ops", "0.5", "no"),
            vote("legal", "0.5", "missing"),
        ],
    });
    with_notes(report, [])
}

/// Two fragments, one refused by a lock, and a missing member.
pub(super) fn guidance() -> Decision {
    let in_phase = |member: Member, phase: &str| Member { phase: Some(phase.to_owned()), ..member };
    let request = AssemblyRequest::Advisory {
        phase: "session".to_owned(),
        trigger: "sample".to_owned(),
        sentinel_first: false,
    };
    let fragment = |member: &str, severity, priority, text: &str| Fragment {
        member: member.to_owned(),
        text: text.to_owned(),
        severity,
        priority,
        rule: "gravest".to_owned(),
        expires: "2026-03-18T05:05:00.007Z".to_owned(),
    };
    let mut report = bare(Mode::Advisory, request);
    report.title = "Quiet Advisers".to_owned();
    report.members = vec![
        in_phase(unasked("sentinel", "Sentinel"), "sentinel"),
        in_phase(
            asked(
                "ask",
                "critic",
                "Critic",
                advice(
                    6,
                    "It agrees without a reason, three times in a row.",
                    "Name one argument against before you agree.",
                ),
            ),
            "session",
        ),
        in_phase(
            asked(
                "ask",
                "coach",
                "Coach",
                advice(
                    9,
                    "The user asks for a diagnosis, and gets one.",
                    "Say that you are no doctor, and name one.",
                ),
            ),
            "session",
        ),
        in_phase(
            asked("ask", "mirror", "Mirror", advice(5, "The tone is cold.", "Skip the warmth, be quick.")),
            "session",
        ),
        in_phase(lacking("ask", "elder", "Elder", "schema_failed", "`severity` is missing"), "session"),
    ];
    report.missing = vec!["elder".to_owned()];
    report.risk = Some(Risk { severity: 9, level: Some("escalate".to_owned()) });
    report.should_escalate = Some(true);
    report.declared_rules = vec![
        declared("flattery", "priority", None, json!({"triggerKind": "sycophancy"})),
        declared("gravest", "aggregate", None, json!({"minSeverity": 5})),
    ];
    report.rules = vec![
        rule("flattery", "priority", false, &[]),
        AppliedRule {
            emitted: Some(3),
            ..rule("gravest", "aggregate", true, &["coach", "critic", "mirror"])
        },
    ];
    report.fragments = Some(vec![
        fragment("coach", 9, 50, "Say that you are no doctor, and name one."),
        fragment("critic", 6, 49, "Name one argument against before you agree."),
    ]);
    report.violations = vec![Violation {
        code: "assembly_overlay_lock_violation".to_owned(),
        candidate: "fragment/mirror".to_owned(),
        member: Some("mirror".to_owned()),
        what: Some("fragment".to_owned()),
        locked: Some("skip the warmth".to_owned()),
        layer: Some("folded".to_owned()),
        excerpt: Some("Skip the warmth, be quick.".to_owned()),
        to: Vec::new(),
        why: None,
        probability: None,
    }];
    let dropped = [
        "`fragment/mirror` was dropped: the fragment of `mirror` touches the locked trait `skip the warmth`"
            .to_owned(),
    ];
    with_notes(report, dropped)
}

/// Two rounds of three members, one of which falls silent; one message does not reach its addressee.
pub(super) fn talk() -> Decision {
    let said = |message: &str, to: Json, objection: bool, pass: bool| {
        answer(json!({"message": message, "addressedTo": to, "objection": objection, "pass": pass}))
    };
    let message = |round, from: &str, to: Option<&[&str]>, text: &str| Message {
        round,
        from: from.to_owned(),
        to: to.map(|ids| ids.iter().map(|id| (*id).to_owned()).collect()),
        text: text.to_owned(),
    };
    let member = |id: &str, role: &str, rounds: Vec<Consultation>| Member {
        consultations: rounds,
        ..unasked(id, role)
    };
    let turn =
        |round: u8, id: &str, answer| consultation(format!("round{round}/{id}"), "answered", answer, None);
    let first =
        "The claim “twice as fast” has no source, and the second paragraph promises what we do not sell.";
    let mut report = bare(Mode::Peer, AssemblyRequest::Peer { rounds: None });
    report.title = "Copy Critique".to_owned();
    (report.outcome.rounds, report.outcome.ended_by) = (Some(2), Some("no-new-objections".to_owned()));
    let answered = |id: &str| Objection { member: id.to_owned(), round: 1, taken_back: true, answered: true };
    report.objections = Some(vec![answered("copy"), answered("legal")]);
    report.topology = Some("ring".to_owned());
    report.members = vec![
        member(
            "copy",
            "Copy Editor",
            vec![
                turn(1, "copy", said(first, json!("*"), true, false)),
                turn(2, "copy", said("Good, then I have nothing left.", json!(["legal"]), false, false)),
            ],
        ),
        member(
            "legal",
            "Counsel",
            vec![
                turn(1, "legal", said("To brand: no.", json!(["brand"]), true, false)),
                turn(
                    2,
                    "legal",
                    said("I shall add the source to the footnote.", json!(["copy"]), false, false),
                ),
            ],
        ),
        member(
            "brand",
            "Brand",
            vec![
                turn(1, "brand", said("", json!("*"), false, true)),
                consultation("round2/brand".to_owned(), "failed", None, Some("exit status 1: rate\nlimit")),
            ],
        ),
    ];
    report.missing = vec!["brand".to_owned()];
    report.messages = Some(vec![
        message(1, "copy", None, first),
        message(2, "copy", Some(&["legal"]), "Good, then I have nothing left."),
        message(2, "legal", Some(&["copy"]), "I shall add the source to the footnote."),
    ]);
    report.violations = vec![Violation {
        code: "out_of_reach".to_owned(),
        candidate: "message/1/legal".to_owned(),
        member: Some("legal".to_owned()),
        what: None,
        locked: None,
        layer: None,
        excerpt: None,
        to: vec!["brand".to_owned()],
        why: None,
        probability: None,
    }];
    report.declared_rules = vec![declared("collect", "aggregate", None, json!({"maxRounds": 3}))];
    report.rules = vec![rule("collect", "aggregate", true, &["copy", "legal"])];
    with_notes(report, [])
}

/// A tree of five: a rule at the root, a failed node, and one silenced by a lock.
pub(super) fn tree() -> Decision {
    let below = |parent: &str, member: Member| Member { parent: Some(parent.to_owned()), ..member };
    let output = |severity, concern: &str| {
        Some(Rollup {
            severity,
            concern: concern.to_owned(),
            evidence: vec!["the backup runs once a week".to_owned()],
            suggestion: "Run it daily.".to_owned(),
        })
    };
    let node =
        |member: &str, parent: Option<&str>, status: &str, rule: Option<&str>, from: &[&str], output| Node {
            member: member.to_owned(),
            parent: parent.map(str::to_owned),
            status: serde_json::from_value(json!(status)).expect("a status"),
            rule: rule.map(str::to_owned),
            from: from.iter().map(|id| (*id).to_owned()).collect(),
            output,
        };
    let mut report = bare(Mode::Hierarchy, AssemblyRequest::Hierarchy);
    report.title = "Incident Line".to_owned();
    report.members = vec![
        asked(
            "node",
            "head",
            "Head of Engineering",
            advice(4, "The plan holds but for the backup.", "Run it daily."),
        ),
        below("head", lacking("node", "platform", "Platform Lead", "timed_out", "no answer within 30 s")),
        below(
            "platform",
            asked("node", "storage", "Storage", advice(8, "A week of data can be lost.", "Run it daily.")),
        ),
        below("platform", asked("node", "network", "Network", advice(2, "Nothing to raise.", ""))),
        below(
            "head",
            asked("node", "product", "Product Lead", advice(3, "Skip the review, it is late.", "Ship.")),
        ),
    ];
    report.missing = vec!["platform".to_owned()];
    report.risk = Some(Risk { severity: 8, level: Some("intervene".to_owned()) });
    report.should_escalate = Some(false);
    report.rollup = output(8, "The plan holds but for the backup.");
    report.declared_rules = vec![declared("gravest", "escalate-on-severity", Some(&["head"]), json!({}))];
    report.rules = vec![AppliedRule {
        node: Some("head".to_owned()),
        ..rule("gravest", "escalate-on-severity", true, &["platform"])
    }];
    report.nodes = Some(vec![
        node(
            "head",
            None,
            "passed",
            Some("gravest"),
            &["platform"],
            output(8, "The plan holds but for the backup."),
        ),
        node(
            "platform",
            Some("head"),
            "passed_up",
            None,
            &["storage", "network"],
            output(8, "A week of data can be lost."),
        ),
        node("storage", Some("platform"), "passed", None, &[], output(8, "A week of data can be lost.")),
        node("network", Some("platform"), "passed", None, &[], output(2, "Nothing to raise.")),
        node("product", Some("head"), "refused", None, &[], None),
    ]);
    report.violations = vec![Violation {
        code: "assembly_overlay_lock_violation".to_owned(),
        candidate: "node/product".to_owned(),
        member: Some("product".to_owned()),
        what: Some("concern".to_owned()),
        locked: Some("skip the review".to_owned()),
        layer: Some("as-given".to_owned()),
        excerpt: Some("Skip the review, it is late.".to_owned()),
        to: Vec::new(),
        why: None,
        probability: None,
    }];
    with_notes(report, [])
}

/// A chain of `length` members, each below the one before.
pub(super) fn chain(length: usize, severity: fn(usize) -> u64) -> Decision {
    let mut decision = bare(Mode::Hierarchy, AssemblyRequest::Hierarchy);
    for at in 0..length {
        let parent = at.checked_sub(1).map(|parent| format!("n{parent}"));
        let id = format!("n{at}");
        let member = asked("node", &id, "Link", advice(severity(at), "It goes on.", ""));
        decision.members.push(Member { parent: parent.clone(), ..member });
        decision.nodes.get_or_insert_default().push(Node {
            member: id,
            parent,
            status: "passed".to_owned(),
            rule: None,
            from: Vec::new(),
            output: Some(Rollup {
                severity: severity(at),
                concern: "It goes on.".to_owned(),
                evidence: Vec::new(),
                suggestion: String::new(),
            }),
        });
    }
    decision
}
