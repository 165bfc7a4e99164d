//! The report of a run: everything that a person or a program wants to see of it, read from its records alone.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use quorate_kernel::consultation::Cost;
use quorate_kernel::history::History;
use quorate_kernel::ports::executor::Usage;
pub use quorate_kernel::record::Override;
use quorate_kernel::record::{Consultation, CountedAnswer, RunOpened, Status};
use quorate_ledger::council_log::line::SUPERSEDED;
use quorate_protocol::Json;
use quorate_protocol::modes::council::outcome;
use quorate_protocol::policy::{Policy, Verdict};
use serde_json::{Map, json};

/// The version of the JSON that a review is printed as.
pub const SCHEMA: &str = "quorate.review/v1";

/// So many blocks the policy `seed` asks for before it holds a text back.
const SEED_BLOCKS_TO_HOLD: usize = 3;

/// A review, ended or not.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    pub run: String,
    /// When it was opened, in milliseconds since the Unix epoch.
    pub opened_ms: i64,
    /// What was reviewed: a path, or `-`.
    pub artifact: String,
    /// Its text as it was kept (redacted); `None` where it was erased.
    pub text: Option<Arc<str>>,
    pub artifact_type: String,
    pub tier: u64,
    /// `seed/1` or `strict/1`.
    pub policy: String,
    /// How many rounds the council has.
    pub rounds: u8,
    /// The verdict; `None` while nothing is decided.
    pub verdict: Option<Verdict>,
    /// Whether members lack output, and who.
    pub missing: Vec<String>,
    /// What the policy made of the answers, in one sentence.
    pub because: String,
    /// The adjudicator's reasoning, or `because` where there is none.
    pub reasoning: String,
    pub revision_brief: Option<String>,
    /// Who disagreed, on what.
    pub dissent_summary: Option<String>,
    /// In roster order.
    pub deliberators: Vec<Deliberator>,
    pub adjudicator: Answer,
    /// In the text's order, those without a place last.
    pub findings: Vec<Finding>,
    /// How many earlier verdicts the adjudicator saw.
    pub prior_verdicts_consulted: u64,
    pub executor: String,
    /// Whether a model was asked.
    pub model_asked: bool,
    pub kind: String,
    /// From which verdict on the exit code is not 0; `None`: every verdict has its own.
    pub fail_on: Option<FailOn>,
    pub calls: u32,
    /// What these calls cost, as far as it is known.
    pub usage: Usage,
    /// Time worked on it.
    pub took: Duration,
    /// The last decision of a person beside it.
    pub overridden: Option<Override>,
    /// The council's file as a user would name it; `None` for the built-in one.
    pub council: Option<String>,
    /// Whether it was recorded in another ledger, which alone can go on with it.
    pub imported: bool,
    /// The ledger that has the run; `None` where that was not asked.
    pub ledger: Option<LedgerLocation>,
    /// What else should be known, besides whether a model was asked.
    pub notes: Vec<String>,
}

/// Where a run is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerLocation {
    /// The ledger, as it can be named from anywhere.
    pub ledger: String,
    /// The ledger, as a user in this directory would name it.
    pub shown: String,
    /// What a command about this run needs besides its id in this directory: ` --ledger FILE`, or nothing.
    pub flag: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Deliberator {
    pub id: String,
    pub round1: Answer,
    /// Its second answer.
    pub round2: Answer,
    /// `round1`, `round2`, `round1_block` or `missing`; empty while nothing is decided.
    pub counted: String,
    /// Whether what counts of it is a block.
    pub blocks: bool,
    /// Whether it blocks without one finding whose quote stands in the text.
    pub ungrounded: bool,
}

/// How an invocation ended.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    /// `answered`, `timed_out`, …; `not_asked` where nobody was asked.
    pub status: String,
    /// The answer, as given.
    pub answer: Option<Map<String, Json>>,
    /// Why there is none.
    pub message: Option<String>,
}

/// Something that a deliberator found.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    pub by: String,
    /// 1-based; `None` where the quote does not stand in the text.
    pub line: Option<u64>,
    /// 1-based, in characters.
    pub column: Option<u64>,
    /// Byte offsets into the text.
    pub span: Option<(usize, usize)>,
    /// The words that it is about.
    pub quote: String,
    pub issue: String,
    pub fix: Option<String>,
}

/// From which verdict on a review fails, from the mildest to the worst; what is worse fails as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailOn {
    /// SHIP although a deliberator blocks.
    ShipWithBlocks,
    Revise,
    Hold,
    /// INCOMPLETE, which is no verdict.
    Incomplete,
}

/// The exit code of a verdict (C5).
pub fn verdict_exit_code(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Ship => 0,
        Verdict::Revise => 1,
        Verdict::Hold => 2,
        Verdict::Incomplete => 3,
    }
}

impl Answer {
    /// A field of the answer.
    pub fn field(&self, key: &str) -> Option<&Json> {
        self.answer.as_ref()?.get(key)
    }

    /// A boolean of the answer; `false` where there is none.
    pub fn flag(&self, key: &str) -> bool {
        self.field(key) == Some(&Json::Bool(true))
    }

    fn json(&self) -> Json {
        json!({"status": self.status, "answer": self.answer})
    }
}

/// What to say of a run whose answers were erased.
pub fn erased_note(history: &History) -> Option<String> {
    let records = history.erased.records;
    (records > 0).then(|| {
        format!("Answers of this run were erased; the ledger has the hashes of {records} records, and what it came to.")
    })
}

impl Report {
    /// The report of a run, given the text of its artifact.
    pub fn of(history: &History, text: Option<Arc<str>>) -> Report {
        let opened = &history.opened;
        let outcome = history.outcome().unwrap_or_default();
        let mut report = Report {
            run: history.run.to_string(),
            opened_ms: history.opened_ms,
            artifact: opened.subject.clone().unwrap_or_default(),
            text,
            artifact_type: opened.artifact_type.clone().unwrap_or_default(),
            tier: opened.tier.unwrap_or(0),
            policy: policy(opened),
            rounds: if opened.setup["rounds"] == json!("one") { 1 } else { 2 },
            verdict: outcome.verdict.as_deref().and_then(outcome::verdict),
            deliberators: deliberators(history, &outcome.deliberators),
            missing: outcome.missing,
            because: outcome.because.unwrap_or_default(),
            reasoning: outcome.reasoning.unwrap_or_default(),
            revision_brief: outcome.revision_brief,
            dissent_summary: outcome.dissent_summary,
            adjudicator: answer(history, "adjudicate", "adjudicator"),
            findings: outcome.findings.iter().filter_map(finding).collect(),
            prior_verdicts_consulted: outcome.prior_verdicts_consulted.unwrap_or(0),
            executor: opened.executor_names(),
            model_asked: opened.asks_a_model(),
            kind: opened.executors.iter().map(|one| &*one.kind).collect::<Vec<_>>().join(", "),
            fail_on: None,
            calls: history.calls,
            usage: history.usage,
            took: history.wall,
            overridden: history.overrides.last().map(|(_, decision)| decision.clone()),
            council: opened.config.clone(),
            imported: false,
            ledger: None,
            notes: Vec::new(),
        };
        report.add_notes();
        report.notes.extend(erased_note(history));
        report
    }

    fn add_notes(&mut self) {
        if !self.missing.is_empty() {
            self.notes.push(format!("Partial: no output from {}.", self.missing.join(", ")));
        }
        let ungrounded: Vec<&str> = self
            .deliberators
            .iter()
            .filter(|deliberator| deliberator.ungrounded)
            .map(|deliberator| &*deliberator.id)
            .collect();
        if !ungrounded.is_empty() {
            self.notes.push(format!(
                "Ungrounded: {} blocks without a quote that stands in the text.",
                ungrounded.join(", ")
            ));
        }
    }

    /// All notes; first, where no model was asked, that (C8).
    pub fn all_notes(&self) -> Vec<String> {
        let no_model = || {
            format!(
                "No model was asked: the answers come from the `{}` executor, and nobody judged the content.",
                self.executor
            )
        };
        (!self.model_asked).then(no_model).into_iter().chain(self.notes.iter().cloned()).collect()
    }

    /// The verdict's word; where there is none, whether it is still to come.
    pub fn verdict_word(&self) -> &'static str {
        match self.verdict {
            Some(verdict) => verdict.as_str(),
            None if self.is_superseded() => SUPERSEDED,
            None => "OPEN",
        }
    }

    /// Whether the run was closed without a verdict, since the draft was changed.
    pub fn is_superseded(&self) -> bool {
        self.verdict.is_none() && !self.because.is_empty()
    }

    /// The exit code that the verdict gives, 0 where it is milder than what is to fail; that of INCOMPLETE while nothing is
    /// decided. SHIP over blocks, where that is to fail, exits as REVISE does.
    pub fn exit_code(&self) -> u8 {
        let verdict = self.verdict.unwrap_or(Verdict::Incomplete);
        let Some(threshold) = self.fail_on else { return verdict_exit_code(verdict) };
        let reached = match verdict {
            Verdict::Ship if self.blocks() > 0 => FailOn::ShipWithBlocks,
            Verdict::Ship => return 0,
            Verdict::Revise => FailOn::Revise,
            Verdict::Hold => FailOn::Hold,
            Verdict::Incomplete => FailOn::Incomplete,
        };
        match reached >= threshold {
            true => verdict_exit_code(verdict).max(verdict_exit_code(Verdict::Revise)),
            false => 0,
        }
    }

    /// What to change first: what a deliberator that blocks found first, else what anybody found, else the brief's first line.
    /// Nothing where the verdict asks for no change.
    pub fn first_fix(&self) -> Option<String> {
        if !matches!(self.verdict, Some(Verdict::Revise | Verdict::Hold)) {
            return None;
        }
        let blocks =
            |finding: &&Finding| self.deliberators.iter().any(|seat| seat.blocks && seat.id == finding.by);
        let found = self.findings.iter().find(blocks).or_else(|| self.findings.first());
        let finding = found.map(|finding| {
            let place = finding.line.map_or_else(String::new, |line| format!("line {line}: "));
            format!("{place}{}", finding.fix.as_deref().unwrap_or(&finding.issue))
        });
        finding.or_else(|| Some(self.revision_brief.as_deref()?.lines().next()?.to_owned()))
    }

    /// How many deliberators block by what counts of them.
    pub fn blocks(&self) -> usize {
        self.deliberators.iter().filter(|deliberator| deliberator.blocks).count()
    }

    /// What a SHIP goes over: the blocks that were not enough to stop it, and how many the policy asks for.
    pub fn ship_over_blocks(&self) -> Option<String> {
        let blocks = self.blocks();
        let policy = self.policy.split('/').next().unwrap_or_default();
        let needed = if policy == Policy::Seed.id().split('/').next().unwrap_or_default() {
            SEED_BLOCKS_TO_HOLD
        } else {
            1
        };
        let noun = if blocks == 1 { "block" } else { "blocks" };
        (self.verdict == Some(Verdict::Ship) && blocks > 0)
            .then(|| format!("over {blocks} {noun} (policy {policy}: {needed} are needed)"))
    }

    /// What the verdict rests on, where no model was asked: nobody then has judged what the text says.
    pub fn basis(&self) -> Option<String> {
        let found = match (self.findings.len(), self.checks()) {
            (0, Some(checks)) => format!("none of {checks} checks matched"),
            (0, None) => "nothing found".to_owned(),
            (1, _) => "1 finding".to_owned(),
            (many, _) => format!("{many} findings"),
        };
        (!self.model_asked).then(|| format!("{}: {found}; nobody judged the content", self.kind))
    }

    /// Whether the answers were counted by rule: no model was asked, and each scores its checks.
    pub fn is_by_rule(&self) -> bool {
        self.checks().is_some()
    }

    /// How many checks were made where no model was asked: each answer has a score for every one.
    fn checks(&self) -> Option<usize> {
        let scores = self
            .deliberators
            .iter()
            .filter_map(|deliberator| deliberator.round1.field("scores")?.as_object());
        let criteria: BTreeSet<&String> = scores.flat_map(Map::keys).collect();
        (!self.model_asked && !criteria.is_empty()).then_some(criteria.len())
    }

    /// The object that `--format json` prints.
    pub fn json(&self) -> Json {
        let deliberator = |deliberator: &Deliberator| json!({"id": deliberator.id, "round1": deliberator.round1.json(), "round2": deliberator.round2.json(), "counted": deliberator.counted, "ungrounded": deliberator.ungrounded});
        let finding = |finding: &Finding| {
            json!({
                "by": finding.by, "line": finding.line, "column": finding.column, "quote": finding.quote, "issue": finding.issue,
                "fix": finding.fix, "grounded": finding.span.is_some(),
            })
        };
        let spent = Cost { calls: self.calls, usage: self.usage, took: self.took }.json();
        json!({
            "schema": SCHEMA,
            "run": self.run,
            "verdict": self.verdict.map(Verdict::as_str),
            "exit": self.exit_code(),
            "artifact": self.artifact,
            "artifact_type": self.artifact_type,
            "tier": self.tier,
            "policy": self.policy,
            "partial": !self.missing.is_empty(),
            "missing": self.missing,
            "because": self.because,
            "reasoning": self.reasoning,
            "revision_brief": self.revision_brief,
            "dissent_summary": self.dissent_summary,
            "deliberators": self.deliberators.iter().map(deliberator).collect::<Vec<_>>(),
            "adjudicator": self.adjudicator.json(),
            "findings": self.findings.iter().map(finding).collect::<Vec<_>>(),
            "prior_verdicts_consulted": self.prior_verdicts_consulted,
            "executor": self.executor,
            "model_asked": self.model_asked,
            "spent": spent,
            "council": self.council,
            "ledger": self.ledger.as_ref().map(|kept| &kept.ledger),
            "override": self.overridden.as_ref().map(|decision| json!({"verdict": decision.verdict, "reason": decision.reason, "by": decision.by})),
            "notes": self.all_notes(),
        })
    }
}

fn policy(opened: &RunOpened) -> String {
    let name = opened.setup["policy"].as_str().unwrap_or_default();
    quorate_protocol::policy::Policy::ALL
        .iter()
        .map(|policy| policy.id())
        .find(|id| id.split('/').next() == Some(name))
        .unwrap_or(name)
        .to_owned()
}

fn deliberators(history: &History, counted: &[CountedAnswer]) -> Vec<Deliberator> {
    let setup = history.opened.setup["deliberators"].as_array();
    let one = |id: &str| {
        let counted = counted.iter().find(|counted| counted.id == id).cloned().unwrap_or_default();
        Deliberator {
            id: id.to_owned(),
            round1: answer(history, "r1", id),
            round2: answer(history, "r2", id),
            counted: counted.counted,
            blocks: counted.would_block,
            ungrounded: counted.ungrounded,
        }
    };
    setup.into_iter().flatten().filter_map(Json::as_str).map(one).collect()
}

fn answer(history: &History, step: &str, member: &str) -> Answer {
    // Of a consultation that was erased the invocation is known, and a step's only one is named after the step.
    let only = |ended: &Consultation| ended.status == Status::Erased && &*ended.member == step;
    let is = |ended: &&Consultation| &*ended.step == step && (&*ended.member == member || only(ended));
    let Some(ended) = history.consultations().find(is) else {
        return Answer { status: "not_asked".to_owned(), ..Answer::default() };
    };
    Answer {
        status: ended.status.as_str().to_owned(),
        answer: ended.answer.as_ref().and_then(Json::as_object).cloned(),
        message: ended.text.clone().filter(|text| !text.trim().is_empty()),
    }
}

fn finding(value: &Json) -> Option<Finding> {
    let object = value.as_object()?;
    let offset = |at: usize| usize::try_from(value["span"].get(at)?.as_u64()?).ok();
    Some(Finding {
        by: string(object, "by"),
        line: value["line"].as_u64(),
        column: value["column"].as_u64(),
        span: offset(0).zip(offset(1)),
        quote: string(object, "quote"),
        issue: string(object, "issue"),
        fix: optional(object, "fix"),
    })
}

fn string(data: &Map<String, Json>, key: &str) -> String {
    data.get(key).and_then(Json::as_str).unwrap_or_default().to_owned()
}

fn optional(data: &Map<String, Json>, key: &str) -> Option<String> {
    data.get(key).and_then(Json::as_str).filter(|text| !text.trim().is_empty()).map(str::to_owned)
}
