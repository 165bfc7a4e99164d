//! The report of a review: reads it from the ledger, and derives it from the run's records alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use quorate_adapters::executor::{llm, rubric};
use quorate_kernel::attempts::Cost;
use quorate_kernel::history::History;
use quorate_kernel::ports::ledger::{Kind, Ledger as _};
use quorate_kernel::record::{Consultation, CountedAnswer, HiddenText, Outcome, RunOpened, Samples, Status};
use quorate_kernel::redact::REDACTED;
use quorate_ledger::council_log::line::SUPERSEDED;
use quorate_manifest::council::{CrossRead, Policy};
use quorate_protocol::answers::deliberator::NOT_JUDGED;
use quorate_protocol::modes::council::{self, ADJUDICATOR, Setup};
use quorate_protocol::policy::{PolicyTable, Position, Verdict, policy_id};
use quorate_protocol::{Json, Name, PartKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, json};

use super::artifact::repository_path;
use super::budget;
use super::disk::{display_ledger, display_path};
use super::error::Error;
use super::hidden_text;
use super::member_usage::{self, Failure, MemberUsage, RecordedAnswers};
use super::session::LedgerSession;

pub use quorate_kernel::record::Override;

/// The version of a review's JSON.
pub(crate) const SCHEMA: &str = "quorate.review/v1";

/// A council's review of a draft, finished or not. Its JSON is what `quorate review --format json` prints, and
/// `quorate schema review` prints the schema.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// # let dir = tempfile::tempdir()?;
/// # let quorate = quorate::Quorate::builder().workspace(dir.path()).build()?;
/// let review = quorate.review_text("draft.md", "We guarantee 300% more revenue, forever.\n").await?;
/// println!("{}: {}", review.verdict_word(), review.because);
/// for finding in &review.findings {
///     println!("line {:?}: {}", finding.line, finding.issue);
/// }
/// assert_eq!(serde_json::to_value(&*review)?["run"], *review.run);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(
    deny_unknown_fields,
    title = "A review, as `quorate review --format json` prints it",
    description = ""
)]
pub struct Review {
    /// The version of the JSON.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: &'static str,
    /// The run's id in the ledger.
    pub run: String,
    /// The time of opening, in milliseconds since the Unix epoch.
    #[serde(skip)]
    pub opened_ms: i64,
    /// The verdict; null while the run is undecided.
    #[schemars(with = "Option<String>", extend("enum" = ["SHIP", "REVISE", "HOLD", "INCOMPLETE", null]))]
    pub verdict: Option<Verdict>,
    /// The exit code of the verdict, 0 if it is milder than the request's `fail_on`.
    #[schemars(description = "The exit code of the command.")]
    pub exit: u8,
    /// The artifact: a path, or `-` for standard input.
    pub artifact: String,
    /// Its path from the root of its git repository, if the caller found one.
    #[serde(skip)]
    pub repository_path: Option<String>,
    /// Whether the text was read from a file, which its author can edit.
    #[serde(skip)]
    pub(crate) is_file: bool,
    /// The stored text (redacted); `None` if it was erased.
    #[serde(skip)]
    pub text: Option<Arc<str>>,
    /// The invisible text of the draft, which `text` lacks.
    #[serde(skip)]
    pub(crate) hidden: Option<HiddenText>,
    /// The type of the text, under which verdicts are remembered.
    pub artifact_type: String,
    /// The tier, from 1 (strictest) to 3.
    #[schemars(range(min = 1, max = 3))]
    pub tier: u64,
    /// `seed/2`, `strict/1`, or `table/` and a hash of the council's own table.
    pub policy: String,
    /// The policy's name for people, with the row that decided, from 1: `lenient policy, row 2: {if: …}`.
    #[serde(skip)]
    pub rule: String,
    /// The number of the council's rounds.
    #[serde(skip)]
    pub rounds: u8,
    /// What its deliberators read of each other before round 2.
    #[serde(skip)]
    pub(crate) cross_read: CrossRead,
    /// Whether a member lacks an answer.
    pub partial: bool,
    /// The members without an answer.
    pub missing: Vec<String>,
    /// The policy's reason, in one sentence.
    pub because: String,
    /// The common reason of all members for not answering, if no model was asked: no rule applies to the text.
    #[serde(skip)]
    pub unjudged: Option<String>,
    /// The adjudicator's reasoning, or `because` without one.
    pub reasoning: String,
    /// What should change, in the adjudicator's words.
    pub revision_brief: Option<String>,
    /// Dissenting members, and their points.
    pub dissent_summary: Option<String>,
    /// In roster order.
    pub deliberators: Vec<Deliberator>,
    /// The adjudicator's answer.
    pub adjudicator: Adjudicator,
    /// In the order of the text; those without a line last.
    pub findings: Vec<Finding>,
    /// Earlier verdicts that the adjudicator saw.
    pub prior_verdicts_consulted: u64,
    /// The names of the executors.
    pub executor: String,
    /// Whether a stand-in gave one of the answers.
    #[serde(skip)]
    pub(crate) has_stand_ins: bool,
    /// Whether a model was asked.
    pub model_asked: bool,
    /// The note if no model was asked: the answers were recorded before, or recordings are missing.
    #[serde(skip)]
    pub recorded: Option<String>,
    /// The kinds of the executors.
    #[serde(skip)]
    pub kind: String,
    /// The mildest verdict whose exit code is not 0; `None` gives every verdict its own code.
    #[serde(skip)]
    pub(crate) fail_on: Option<FailOn>,
    /// The calls of the run, their cost as far as known, and the working time.
    pub spent: Cost,
    /// The latest decision of a person.
    #[serde(rename = "override", serialize_with = "published_override")]
    pub overridden: Option<Override>,
    /// The council's file as shown to the user; null for the built-in one.
    pub council: Option<String>,
    /// Whether it was recorded in another ledger, the only one that can resume it.
    #[serde(skip)]
    pub imported: bool,
    /// Whether it is a task of the queue, which its workers continue.
    #[serde(skip)]
    pub queued: bool,
    /// The address of the ledger that has the run; null if the caller did not ask for it, or it was removed.
    #[serde(serialize_with = "address")]
    #[schemars(with = "Option<String>")]
    pub ledger: Option<LedgerLocation>,
    /// Notes. If no model was asked, that note comes first.
    pub notes: Vec<String>,
}

/// The location of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerLocation {
    /// The ledger's absolute address.
    pub ledger: String,
    /// The ledger's address as shown in this directory.
    pub shown: String,
    /// The arguments that commands about this run need in this directory: ` --ledger FILE`, or nothing.
    pub flag: String,
}

fn address<S: Serializer>(location: &Option<LedgerLocation>, serializer: S) -> Result<S::Ok, S::Error> {
    location.as_ref().map(|location| &location.ledger).serialize(serializer)
}

/// The published form of a person's decision has the decision alone; the record also has what it replaced.
fn published_override<S: Serializer>(decision: &Option<Override>, serializer: S) -> Result<S::Ok, S::Error> {
    let published = |Override { verdict, reason, by, .. }: &Override| json!({"verdict": verdict, "reason": reason, "by": by});
    decision.as_ref().map(published).serialize(serializer)
}

/// A deliberator's part in a review.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct Deliberator {
    /// Its id in the council.
    pub id: String,
    /// Its first answer.
    pub round1: Answer,
    /// Its second answer.
    pub round2: Answer,
    /// `round1`, `round2`, `round1_block` or `missing`; empty while the run is undecided.
    pub counted: String,
    /// Whether the counted answer is a block.
    #[serde(skip)]
    pub blocks: bool,
    /// Whether it blocks without a single finding whose quote is in the text.
    pub ungrounded: bool,
    /// Its executor and cost; `None` if it was not asked.
    #[serde(flatten)]
    pub usage: Option<MemberUsage>,
}

/// The adjudicator's part in a review.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct Adjudicator {
    /// Its answer.
    #[serde(flatten)]
    pub given: Answer,
    /// Its executor and cost; `None` if it was not asked.
    #[serde(flatten)]
    pub usage: Option<MemberUsage>,
}

/// How an invocation ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[schemars(rename = "answer", deny_unknown_fields)]
pub struct Answer {
    /// `answered`, `timed_out`, …; `not_asked` without an invocation.
    pub status: String,
    /// The answer as it was given; see `quorate schema answer`.
    pub answer: Option<Map<String, Json>>,
    /// The reason for a missing answer, if the record has more than the status.
    #[serde(skip)]
    pub message: Option<String>,
    /// The reason for a missing answer, in full.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Failure")]
    pub failure: Option<Failure>,
    /// How its samples differ, if it was asked several times.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Samples")]
    pub samples: Option<Samples>,
}

/// A deliberator's finding, as the outcome's record has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct Finding {
    /// The deliberator that found it.
    pub by: String,
    /// From 1; null if the quote is not in the text.
    #[schemars(range(min = 1))]
    pub line: Option<u64>,
    /// From 1, in characters.
    #[schemars(range(min = 1))]
    pub column: Option<u64>,
    /// Byte offsets into the text. The JSON says whether there are some.
    #[serde(rename(serialize = "grounded", deserialize = "span"), serialize_with = "is_some")]
    #[schemars(rename = "grounded", with = "bool", description = "Whether the quote stands in the text.")]
    pub span: Option<(usize, usize)>,
    /// The quoted words.
    pub quote: String,
    /// What is wrong.
    pub issue: String,
    /// How to mend it.
    pub fix: Option<String>,
}

/// The mildest verdict that fails a review; worse verdicts fail as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailOn {
    /// SHIP over a deliberator's block.
    ShipWithBlocks,
    /// REVISE.
    Revise,
    /// HOLD.
    Hold,
    /// INCOMPLETE, the lack of a verdict.
    Incomplete,
}

/// The exit code of a verdict (C5).
pub(crate) fn verdict_exit_code(verdict: Verdict) -> u8 {
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

    /// A boolean of the answer; `false` if absent.
    pub fn flag(&self, key: &str) -> bool {
        self.field(key) == Some(&Json::Bool(true))
    }
}

impl Review {
    /// The report of a run, given the text of its artifact.
    pub(crate) fn of(history: &History, text: Option<Arc<str>>) -> Review {
        let opened = &history.opened;
        let outcome = history.outcome().unwrap_or_default();
        let recorded = RecordedAnswers::count(history);
        let model_asked = member_usage::is_model_asked(history);
        let mut usage = MemberUsage::all(history);
        let mut report = Review {
            schema: SCHEMA,
            run: history.run.to_string(),
            opened_ms: history.opened_ms,
            artifact: opened.subject.clone().unwrap_or_default(),
            repository_path: None,
            is_file: opened.artifact_path.is_some(),
            hidden: opened.hidden.clone(),
            text,
            artifact_type: opened.artifact_type.clone().unwrap_or_default(),
            tier: opened.tier.unwrap_or(0),
            policy: policy(opened),
            rule: deciding_rule(history, &outcome),
            rounds: if opened.setup["rounds"] == json!("one") { 1 } else { 2 },
            cross_read: CrossRead::deserialize(&opened.setup["cross_read"]).unwrap_or(CrossRead::None),
            verdict: outcome.verdict.as_deref().and_then(council::read_verdict),
            exit: 0,
            deliberators: deliberators(history, &outcome.deliberators, &mut usage),
            partial: !outcome.missing.is_empty(),
            missing: outcome.missing,
            because: outcome.because.unwrap_or_default(),
            unjudged: None,
            reasoning: outcome.reasoning.unwrap_or_default(),
            revision_brief: outcome.revision_brief,
            dissent_summary: outcome.dissent_summary,
            adjudicator: Adjudicator {
                given: answer(history, "adjudicate", ADJUDICATOR),
                usage: usage.remove(ADJUDICATOR),
            },
            findings: outcome.findings.iter().filter_map(|found| Finding::deserialize(found).ok()).collect(),
            prior_verdicts_consulted: outcome.prior_verdicts_consulted.unwrap_or(0),
            executor: member_usage::executor_names(history),
            has_stand_ins: member_usage::has_stand_ins(history),
            model_asked,
            recorded: recorded.headline().filter(|_| !model_asked),
            kind: executor_kinds(history),
            fail_on: None,
            spent: Cost { calls: history.calls, usage: history.usage, took: history.wall },
            overridden: history.overrides.last().map(|(_, decision)| decision.clone()),
            council: opened.config.clone(),
            imported: false,
            queued: history.opened.queued.is_some(),
            ledger: None,
            notes: Vec::new(),
        };
        report.set_fail_on(None);
        report.explain_missing_answers();
        report.add_model_note();
        report.add_sorting(opened);
        report.add_notes();
        report.notes.extend(report.text.as_deref().filter(|_| opened.redactions > 0).and_then(withheld_note));
        for finding in &mut report.findings {
            finding.column = finding
                .line
                .zip(finding.column)
                .map(|(line, column)| hidden_text::column_in_draft(opened.hidden.as_ref(), line, column));
        }
        report.notes.extend(hidden_text::notes(opened));
        report.notes.extend(not_judged_notes(&report.deliberators));
        report.notes.extend(member_usage::notes(history));
        report.notes.extend(erased_note(history));
        report
    }

    /// If no rule applies to the text, gives that reason instead of the number of answers (C15).
    fn explain_missing_answers(&mut self) {
        if self.model_asked || self.recorded.is_some() || self.verdict != Some(Verdict::Incomplete) {
            return;
        }
        let answers = || self.deliberators.iter().flat_map(|one| [&one.round1, &one.round2]);
        let reasons: BTreeSet<&str> = answers().filter_map(|answer| answer.message.as_deref()).collect();
        let mut reasons = reasons.into_iter().map(|reason| reason.trim().trim_end_matches('.'));
        let (Some(reason), None) = (reasons.next(), reasons.next()) else { return };
        if answers().any(|answer| answer.answer.is_some()) {
            return;
        }
        let mut chars = reason.chars();
        let first: String = chars.next().into_iter().flat_map(char::to_uppercase).collect();
        let sentence = format!("{first}{}.", chars.as_str());
        // Without an adjudication the reasoning repeats the policy's reason.
        if self.reasoning == self.because {
            self.reasoning.clone_from(&sentence);
        }
        self.because.clone_from(&sentence);
        self.unjudged = Some(sentence);
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
            self.notes
                .push(format!("Ungrounded: {} blocks without a quote from the text.", ungrounded.join(", ")));
        }
    }

    /// If no model was asked, that is the first note (C8).
    fn add_model_note(&mut self) {
        if !self.model_asked {
            self.notes.push(match &self.recorded {
                Some(recorded) => format!("{recorded}."),
                None => format!(
                    "No model was asked: the answers come from the `{}` executor, which does not judge content.",
                    self.executor
                ),
            });
        }
    }

    /// The usage of each member that was asked, in roster order.
    pub fn usage(&self) -> impl Iterator<Item = &MemberUsage> {
        self.deliberators.iter().filter_map(|one| one.usage.as_ref()).chain(&self.adjudicator.usage)
    }

    /// The path by which code hosts know the artifact: from the root of its repository, else its name.
    pub fn hosted_path(&self) -> &str {
        let named = self.artifact.strip_prefix("./").unwrap_or(&self.artifact);
        self.repository_path.as_deref().unwrap_or(named)
    }

    /// Every missing answer: the member, the round (`None` for the adjudicator), and why.
    pub fn failures(&self) -> Vec<(&str, Option<u8>, &Failure)> {
        let of_rounds = self.deliberators.iter().flat_map(|deliberator| {
            let rounds = [(1, &deliberator.round1), (2, &deliberator.round2)];
            rounds.map(|(round, answer)| (&*deliberator.id, Some(round), answer.failure.as_ref()))
        });
        let all = of_rounds.chain([(ADJUDICATOR, None, self.adjudicator.given.failure.as_ref())]);
        all.filter_map(|(member, round, failure)| Some((member, round, failure?))).collect()
    }

    /// The verdict's word; without a verdict, whether the run is still pending.
    pub fn verdict_word(&self) -> &'static str {
        match self.verdict {
            Some(verdict) => verdict.as_str(),
            None if self.is_superseded() => SUPERSEDED,
            None => "OPEN",
        }
    }

    /// Whether the run was closed without a verdict because the draft changed.
    pub fn is_superseded(&self) -> bool {
        self.verdict.is_none() && !self.because.is_empty()
    }

    /// Sets the mildest verdict that fails the review, and with it the exit code.
    pub(crate) fn set_fail_on(&mut self, fail_on: Option<FailOn>) {
        self.fail_on = fail_on;
        self.exit = self.exit_code_of(self.verdict);
    }

    /// The exit code of a verdict on this text, 0 if it is milder than `fail_on`; that of INCOMPLETE while undecided. A
    /// SHIP over blocks that fails has the exit code of REVISE.
    pub(crate) fn exit_code_of(&self, verdict: Option<Verdict>) -> u8 {
        let verdict = verdict.unwrap_or(Verdict::Incomplete);
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

    /// The first thing to change: the first finding of a blocking deliberator, else the first finding, else the brief's
    /// first line; for a text that no rule applies to, the reason. `None` if the verdict requests no change.
    pub fn first_fix(&self) -> Option<String> {
        if let Some(reason) = &self.unjudged {
            return Some(reason.clone());
        }
        if !matches!(self.verdict, Some(Verdict::Revise | Verdict::Hold)) {
            return None;
        }
        let blocks = |finding: &&Finding| {
            self.deliberators.iter().any(|deliberator| deliberator.blocks && deliberator.id == finding.by)
        };
        let found = self.findings.iter().find(blocks).or_else(|| self.findings.first());
        let finding = found.map(|finding| {
            let place = finding.line.map_or_else(String::new, |line| format!("line {line}: "));
            format!("{place}{}", finding.fix.as_deref().unwrap_or(&finding.issue))
        });
        finding.or_else(|| Some(self.revision_brief.as_deref()?.lines().next()?.to_owned()))
    }

    /// The number of deliberators whose counted answer is a block.
    pub fn blocks(&self) -> usize {
        self.deliberators.iter().filter(|deliberator| deliberator.blocks).count()
    }

    /// The blocks that a SHIP overrides.
    pub fn ship_over_blocks(&self) -> Option<String> {
        let blocks = self.blocks();
        let noun = if blocks == 1 { "block" } else { "blocks" };
        (self.verdict == Some(Verdict::Ship) && blocks > 0).then(|| format!("over {blocks} {noun}"))
    }

    /// The basis of a verdict without a model: rules only, no judgement of the content.
    pub fn basis(&self) -> Option<String> {
        if let Some(recorded) = &self.recorded {
            return Some(recorded.to_lowercase());
        }
        if self.unjudged.is_some() {
            return Some(format!("{}: content not judged", self.kind));
        }
        let found = match (self.findings.len(), self.checks()) {
            (0, _) if !self.missing.is_empty() => "answers are missing".to_owned(),
            (0, Some(checks)) => format!("none of {checks} checks matched"),
            (0, None) => "nothing found".to_owned(),
            (1, _) => "1 finding".to_owned(),
            (many, _) => format!("{many} findings"),
        };
        (!self.model_asked).then(|| format!("{}: {found}; content not judged", self.kind))
    }

    /// An executor that asks a model, and the variable with its key, if the rubric answered and a variable with a key is
    /// set.
    pub fn executor_with_key(&self, is_set: impl Fn(&str) -> bool) -> Option<(&'static str, &'static str)> {
        llm::with_key(is_set).filter(|_| self.executor == rubric::KIND)
    }

    /// Adds the cost and the answer of the model that classified the tier.
    fn add_sorting(&mut self, opened: &RunOpened) {
        let Some(source) = &opened.tier_source else { return };
        if let Some(spent) = &source.spent {
            let calls = spent.calls.and_then(|calls| u32::try_from(calls).ok());
            self.spent.calls = self.spent.calls.saturating_add(calls.unwrap_or(0));
            self.spent.usage.add(spent.usage());
        }
        self.notes.push(match source.answered {
            true => format!("A model chose the tier: {}", source.reason),
            false => format!("No model chose the tier, so the strictest applies: {}", source.reason),
        });
    }

    /// Whether all answers come from rules: no model was asked, and each answer scores its checks.
    pub fn is_by_rule(&self) -> bool {
        self.checks().is_some()
    }

    /// The number of checks if no model was asked: each answer has a score for every check.
    fn checks(&self) -> Option<usize> {
        let scores = self
            .deliberators
            .iter()
            .filter_map(|deliberator| deliberator.round1.field("scores")?.as_object());
        let criteria: BTreeSet<&String> = scores.flat_map(Map::keys).collect();
        (!self.model_asked && self.recorded.is_none() && !criteria.is_empty()).then_some(criteria.len())
    }
}

fn is_some<S: Serializer>(span: &Option<(usize, usize)>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bool(span.is_some())
}

fn policy(opened: &RunOpened) -> String {
    let written = &opened.setup["policy"];
    let known = Policy::deserialize(written).map(|policy| policy_id(&policy));
    known.unwrap_or_else(|_| written.as_str().unwrap_or_default().to_owned())
}

/// The policy, and the row that the recorded positions and the adjudicator's request lead to; the policy alone without a
/// verdict.
fn deciding_rule(history: &History, outcome: &Outcome) -> String {
    let Ok(setup) = Setup::deserialize(&history.opened.setup) else { return policy(&history.opened) };
    let name = format!("{} policy", setup.policy.shown());
    let recorded = history.facts.iter().rev().find(|(kind, _)| kind == Kind::Rule.as_str());
    let asked = recorded.and_then(|(_, rule)| Verdict::read(rule.get("adjudicator")?.as_str()?));
    let decided = outcome.verdict.as_deref().and_then(Verdict::read);
    let (Some(asked), Some(_)) = (asked, decided) else { return name };
    let position = |id: &Name| {
        let counted = outcome.deliberators.iter().find(|counted| *counted.id == **id);
        Position {
            block: counted.is_some_and(|counted| counted.would_block),
            irreducible: counted.is_some_and(|counted| counted.irreducible),
        }
    };
    let positions: Vec<Position> = setup.deliberators.iter().map(position).collect();
    let (at, _) = PolicyTable::new(&setup.policy, &setup.deliberators).decide(&positions, asked);
    match setup.policy.rows().get(at) {
        Some(row) => format!("{name}, row {}: {row}", at + 1),
        None => name,
    }
}

fn deliberators(
    history: &History,
    counted: &[CountedAnswer],
    usage: &mut BTreeMap<String, MemberUsage>,
) -> Vec<Deliberator> {
    let one = |id: &str| {
        let counted = counted.iter().find(|counted| counted.id == id).cloned().unwrap_or_default();
        Deliberator {
            id: id.to_owned(),
            round1: answer(history, "r1", id),
            round2: answer(history, "r2", id),
            counted: counted.counted,
            blocks: counted.would_block,
            ungrounded: counted.ungrounded,
            usage: usage.remove(id),
        }
    };
    deliberator_ids(history).map(one).collect()
}

/// The kinds of all executors, each once.
fn executor_kinds(history: &History) -> String {
    let mut kinds: BTreeSet<&str> = history.opened.executors.iter().map(|one| &*one.kind).collect();
    if member_usage::has_stand_ins(history) {
        kinds = member_usage::answers(history).map(|ended| &*ended.kind).collect();
    }
    kinds.into_iter().collect::<Vec<_>>().join(", ")
}

/// The ids of the deliberators, in roster order.
pub(super) fn deliberator_ids(history: &History) -> impl Iterator<Item = &str> {
    history.opened.setup["deliberators"].as_array().into_iter().flatten().filter_map(Json::as_str)
}

fn answer(history: &History, step: &str, member: &str) -> Answer {
    // An erased consultation keeps its invocation, and a step's only invocation is named after the step.
    let only = |ended: &Consultation| ended.status == Status::Erased && &*ended.member == step;
    let is = |ended: &&Consultation| &*ended.step == step && (&*ended.member == member || only(ended));
    let Some(ended) = history.consultations().find(is) else {
        return Answer { status: "not_asked".to_owned(), ..Answer::default() };
    };
    Answer {
        status: ended.status.as_str().to_owned(),
        answer: ended.answer.as_ref().and_then(Json::as_object).cloned(),
        message: ended.text.clone().filter(|text| !text.trim().is_empty()),
        failure: Failure::of(history, ended),
        samples: ended.samples.clone(),
    }
}

/// The maximum number of parts that one member lists.
const MAX_PARTS: usize = 20;

/// The note about a run whose answers were erased.
pub(crate) fn erased_note(history: &History) -> Option<String> {
    let records = history.erased.records;
    (records > 0).then(|| {
        format!("Answers of this run were erased; the ledger keeps the hashes of {records} records, and the outcome.")
    })
}

/// The notes about the parts of a text that members say they did not judge.
fn not_judged_notes(deliberators: &[Deliberator]) -> Vec<String> {
    let mut parts: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut answered = 0;
    for deliberator in deliberators {
        let Some(answer) = deliberator.round2.answer.as_ref().or(deliberator.round1.answer.as_ref()) else {
            continue;
        };
        answered += 1;
        let listed = answer.get(NOT_JUDGED).and_then(Json::as_array).into_iter().flatten();
        for part in listed.filter_map(Json::as_str).take(MAX_PARTS) {
            match parts.iter_mut().find(|(known, _)| *known == part) {
                Some((_, by)) => by.push(&deliberator.id),
                None => parts.push((part, vec![&deliberator.id])),
            }
        }
    }
    let note = |(part, by): (&str, Vec<&str>)| match by.len() == answered {
        true => format!("Not judged: {part}."),
        false => format!("Not judged by {}: {part}.", by.join(", ")),
    };
    parts.into_iter().map(note).collect()
}

/// The note on the parts of the recorded text that were withheld from the members.
fn withheld_note(text: &str) -> Option<String> {
    /// A longer list would fill the screen.
    const LISTED: usize = 10;
    let lines: Vec<String> = (1..)
        .zip(text.lines())
        .filter(|(_, line)| line.contains(REDACTED))
        .map(|(number, _)| number.to_string())
        .collect();
    let more = lines.len().saturating_sub(LISTED);
    let listed = lines[..lines.len() - more].join(", ");
    let noun = if lines.len() == 1 { "line" } else { "lines" };
    let and_more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!lines.is_empty()).then(|| {
        format!("Not judged: what looks like a secret in {noun} {listed}{and_more}; members do not see it.")
    })
}

/// The note of an incomplete run of the queue.
pub(super) const QUEUED_NOTE: &str = "Everything answered so far is kept, and a worker asks again only for what is missing; once the task is dead, \
    `quorate queue retry RUN` has it tried again.";

/// The report of a run.
///
/// # Errors
/// If its records are missing or corrupt, or the ledger does not answer.
#[crate::boxed]
pub(crate) async fn load(session: &LedgerSession, run: &Name) -> Result<Review, Error> {
    load_from(session, &session.partial_history(run).await?).await
}

/// The report of a review, from a history that is already loaded.
///
/// # Errors
/// If the ledger does not answer.
#[crate::boxed]
pub(crate) async fn load_from(session: &LedgerSession, history: &History) -> Result<Review, Error> {
    let artifact = history.inputs().into_iter().find(|(kind, ..)| *kind == PartKind::Artifact);
    let text = match artifact {
        Some((.., sha256)) => session.store.body(&sha256).await?,
        None => None,
    };
    let imported = session.store.is_imported(&history.run).await?;
    Ok(report(session, history, text, imported))
}

/// The report of a review that this process has run to its end, with the recorded text of the artifact. Reads nothing.
pub(super) fn of_own_run(session: &LedgerSession, history: &History, text: Arc<str>) -> Review {
    report(session, history, Some(text), false)
}

fn report(session: &LedgerSession, history: &History, text: Option<Arc<str>>, imported: bool) -> Review {
    let mut report = Review::of(history, text);
    report.repository_path = match &*report.artifact {
        "-" => None,
        named => repository_path(&session.environment.directory, Path::new(named)),
    };
    let near = |path: String| display_path(&session.environment, Path::new(&path));
    report.council = report.council.map(near);
    let ledger = session.store.address();
    report.ledger = session.environment.keeps_ledgers.then(|| LedgerLocation {
        ledger: ledger.to_string(),
        shown: display_ledger(&session.environment, ledger),
        flag: session.ledger_flag().to_owned(),
    });
    report.imported = imported;
    if report.verdict == Some(Verdict::Incomplete) && report.queued {
        report.notes.push(QUEUED_NOTE.to_owned());
    } else if report.verdict == Some(Verdict::Incomplete)
        && session.environment.keeps_ledgers
        && !report.imported
        && history.erased.records == 0
    {
        let resume = session.resume_command(&history.run);
        report.notes.push(budget::resume_note(session.workspace.config.budget.wall, history, &resume));
    }
    report
}
