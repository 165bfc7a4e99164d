//! The report of an assembly's run, from its records alone: the members with their questions, and the share of yes
//! votes that the rules ask for.

use std::collections::BTreeMap;

use quorate_kernel::attempts::Cost;
use quorate_kernel::history::{History, replay as derive};
use quorate_kernel::ports::ledger::Kind;
use quorate_kernel::record::{self, Outcome, Samples, Status};
use quorate_manifest::assembly::{Grouping, Mode};
use quorate_protocol::Json;
use quorate_protocol::assembly::{self, AssemblyRequest, Rule, Setup};
use quorate_protocol::rules::{class_warnings, votes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, json};

use super::super::budget;
use super::super::error::Error;
use super::super::finalize::drops_answers_at_end;
use super::super::hidden_text;
use super::super::member_usage::{self, Failure, MemberUsage, RecordedAnswers};
use super::super::report::QUEUED_NOTE;
use super::super::run_opened;
use super::super::session::LedgerSession;
use super::spec;

pub use quorate_kernel::record::{
    AppliedRule, Contribution, CountedVote, ExactRatio, Fragment, Message, Node, Objection, Risk, Rollup,
    Violation, VoteCount,
};

/// The version of the JSON that `convene` prints.
pub(crate) const SCHEMA: &str = "quorate.convene/v1";

/// The status of a member without a question.
const NOT_ASKED: &str = "not_asked";

/// The outcome of an assembly's run in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum AssemblyVerdict {
    /// A vote passed.
    Pass,
    /// A vote failed.
    Fail,
    /// Guidance, a discussion or an assessment was completed.
    Done,
    /// The outcome touches a locked trait.
    Refused,
    /// Answers are missing; the run can be resumed.
    Incomplete,
}

impl AssemblyVerdict {
    /// The word in lower case, as records have it.
    pub fn as_str(self) -> &'static str {
        match self {
            AssemblyVerdict::Pass => "pass",
            AssemblyVerdict::Fail => "fail",
            AssemblyVerdict::Done => "done",
            AssemblyVerdict::Refused => "refused",
            AssemblyVerdict::Incomplete => "incomplete",
        }
    }
}

/// The report of an assembly's run, finished or not. Its JSON is what `quorate convene --format json` prints, and
/// `quorate schema convene` prints the schema.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// # let dir = tempfile::tempdir()?;
/// # std::fs::write(dir.path().join("quorate.toml"), "strict_chain = true\n")?;
/// # let manifest = "---\nschema: assembly.workspace/v1\nname: board\ntitle: Board\ndescription: Decides.\nversion: 1.0.0\n\
/// #                 mode: voting\nmembers: [{id: cfo, persona: ws://personas/cfo, role: CFO}]\n---\n";
/// # std::fs::write(dir.path().join("ASSEMBLY.md"), manifest)?;
/// # std::fs::create_dir_all(dir.path().join("personas/cfo"))?;
/// # let persona = "---\nschema: persona/v1\nname: cfo\ntitle: CFO\ndescription: Counts.\nversion: 1.0.0\n---\n";
/// # std::fs::write(dir.path().join("personas/cfo/PERSONA.md"), persona)?;
/// # let quorate = quorate::Quorate::builder().workspace(dir.path()).build()?;
/// # let text = "# A second region\n\nResolution: open it.\n".to_owned();
/// # let proposal = quorate::Draft::Text { name: "proposal.md".to_owned(), text };
/// let decision = quorate.convene("ASSEMBLY.md").proposal(proposal).await?;
/// let count = decision.decision.as_ref().expect("a vote");
/// assert_eq!((count.yes, count.no, count.abstain), (0.0, 0.0, 1.0));
/// assert_eq!(serde_json::to_value(&*decision)?["exit"], decision.exit);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(
    deny_unknown_fields,
    title = "A convening, as `quorate convene --format json` prints it",
    description = "",
    extend("allOf" = required_by_mode())
)]
pub struct Decision {
    /// The version of the JSON.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: &'static str,
    /// The run's id in the ledger.
    pub run: String,
    /// The time of opening, in milliseconds since the Unix epoch.
    #[serde(skip)]
    pub opened_ms: i64,
    /// The assembly's name.
    pub assembly: String,
    /// The assembly's title.
    #[serde(skip)]
    pub title: String,
    /// The mode.
    pub mode: Mode,
    /// The request to the mode.
    #[schemars(with = "Json", extend("type" = ["object", "string"]))]
    pub request: AssemblyRequest,
    /// The subject: a path, or `-`.
    pub subject: String,
    /// The outcome, and its reason.
    pub outcome: AssemblyOutcome,
    /// Refused texts, in order.
    #[serde(serialize_with = "with_all_keys")]
    pub violations: Vec<Violation>,
    /// All members with all their questions, in the manifest's display order.
    pub members: Vec<Member>,
    /// The declared rules, in order.
    #[serde(skip)]
    pub declared_rules: Vec<assembly::Rule>,
    /// The applied rules, in order.
    #[serde(serialize_with = "without_effects")]
    pub rules: Vec<AppliedRule>,
    /// Whether an asked member gave no output.
    pub partial: bool,
    /// The members that were asked and gave no output.
    pub missing: Vec<String>,
    /// The names of the executors.
    pub executor: String,
    /// Whether a model was asked.
    pub model_asked: bool,
    /// The note if no model was asked: the answers were recorded before, or recordings are missing.
    #[serde(skip)]
    pub recorded: Option<String>,
    /// The calls of the run, their cost as far as known, and the working time.
    pub spent: Cost,
    /// Notes; first the ones about a missing model and missing members.
    pub notes: Vec<String>,
    /// The exit code: 0 pass or done, 1 fail, 2 refused, 3 incomplete or undecided.
    pub exit: u8,
    /// Advisory and hierarchy: the severity.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Risk")]
    pub risk: Option<Risk>,
    /// Advisory and hierarchy: whether to call a human.
    #[serde(rename = "shouldEscalate", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub should_escalate: Option<bool>,
    /// Advisory: the guidance.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Fragment>")]
    pub fragments: Option<Vec<Fragment>>,
    /// Advisory and voting: whether a rule ended the synthesis.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub terminal: Option<bool>,
    /// Advisory: the operators whose prompts the guidance goes into.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub operators: Option<Vec<String>>,
    /// Voting: the count of the votes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "VoteCount")]
    pub decision: Option<VoteCount>,
    /// Peer: the delivered messages, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Message>")]
    pub messages: Option<Vec<Message>>,
    /// Peer: the topology: `fully-connected`, `ring`, `star` or `peers`.
    #[serde(skip)]
    pub topology: Option<String>,
    /// Peer: members whose objection stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub objecting: Option<Vec<String>>,
    /// Peer: each member's last objection.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Objection>")]
    pub objections: Option<Vec<Objection>>,
    /// Peer: outputs of custom rules on the log.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub synthesis: Map<String, Json>,
    /// Hierarchy: the root's report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollup: Option<Rollup>,
    /// Hierarchy: every node, in roster order.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Node>")]
    pub nodes: Option<Vec<Node>>,
    /// Whether outcomes are stored; otherwise the record has only the hash (D8).
    #[serde(skip)]
    pub kept: bool,
    /// The arguments that commands about this run need besides its id, relative to the caller's directory:
    /// ` --ledger FILE`, or nothing.
    #[serde(skip)]
    pub ledger_flag: String,
    /// Whether it comes from another ledger, the only one that can resume it.
    #[serde(skip)]
    pub imported: bool,
    /// Whether it is a task of the queue, which its workers continue.
    #[serde(skip)]
    pub queued: bool,
}

/// The outcome of an assembly's run, and its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline, deny_unknown_fields)]
pub struct AssemblyOutcome {
    /// The kind of the outcome, which follows from the mode.
    pub kind: OutcomeKind,
    /// The outcome in one word; null while the run is undecided.
    pub result: Option<AssemblyVerdict>,
    /// A stable word for the reason, if there is one: `no_voters`, `locked`, `budget_exhausted`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub code: Option<String>,
    /// The reason in a sentence, where the result alone does not explain itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub because: Option<String>,
    /// Peer: the number of rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub rounds: Option<u64>,
    /// Peer: what ended the exchange.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub ended_by: Option<String>,
}

/// What an assembly's run results in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum OutcomeKind {
    /// The advisory mode: guidance for operators.
    Guidance,
    /// The voting mode: a counted vote.
    Decision,
    /// The peer mode: the log of a discussion.
    Log,
    /// The hierarchy mode: the report that the root passes up.
    Rollup,
}

impl OutcomeKind {
    pub(crate) fn of(mode: Mode) -> OutcomeKind {
        match mode {
            Mode::Advisory => OutcomeKind::Guidance,
            Mode::Voting => OutcomeKind::Decision,
            Mode::Peer => OutcomeKind::Log,
            Mode::Hierarchy => OutcomeKind::Rollup,
        }
    }
}

/// The part of the schema that says which keys each mode always has.
fn required_by_mode() -> Json {
    let required = |(mode, keys): (Mode, &[&str])| json!({"if": {"properties": {"mode": {"const": mode}}}, "then": {"required": keys}});
    let modes: [(Mode, &[&str]); 4] = [
        (Mode::Advisory, &["fragments", "terminal", "operators"]),
        (Mode::Voting, &["terminal"]),
        (Mode::Peer, &["messages", "objecting", "objections"]),
        (Mode::Hierarchy, &["nodes"]),
    ];
    modes.map(required).into_iter().collect()
}

/// The published form of violations has all keys; records omit those without a value.
fn with_all_keys<S: Serializer>(violations: &[Violation], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(violations.iter().map(|violation| {
        json!({
            "code": violation.code, "candidate": violation.candidate, "member": violation.member,
            "what": violation.what, "trait": violation.locked, "layer": violation.layer,
            "excerpt": violation.excerpt, "to": violation.to,
        })
    }))
}

/// The published form of rules lacks the effects, which are in records.
fn without_effects<S: Serializer>(rules: &[AppliedRule], serializer: S) -> Result<S::Ok, S::Error> {
    let plain = |rule: &AppliedRule| AppliedRule {
        emitted: None,
        decides: None,
        missing_as_no: false,
        ..rule.clone()
    };
    serializer.collect_seq(rules.iter().map(plain))
}

/// The report of a run.
///
/// # Errors
/// If texts that it is derived from were erased, or another version of the mode wrote it.
pub(crate) async fn load(session: &LedgerSession, history: &History) -> Result<Decision, Error> {
    let setup = run_opened::assembly_setup(history).ok_or_else(|| run_opened::unknown_version(history))?;
    // If only the hash of an outcome is stored, the outcome is derived again from the answers.
    let kept = setup.overlays.enabled || history.outcome().is_none() || history.erased.records > 0;
    let artifact = match kept {
        true => None,
        false => {
            let mut protocol = spec::assembly(&setup)?;
            derive(history, session.load_inputs(history).await?, &mut protocol);
            protocol.artifact().and_then(Json::as_object).cloned()
        }
    };
    let mut report = Decision::read(history, &setup, artifact);
    report.ledger_flag = session.ledger_flag().to_owned();
    report.imported = session.store.is_imported(&history.run).await?;
    let open = report.verdict().is_none_or(|verdict| verdict == AssemblyVerdict::Incomplete);
    if open && report.queued {
        report.notes.push(QUEUED_NOTE.to_owned());
    } else if open && !report.imported && history.erased.records == 0 {
        let resume = format!("quorate resume {}{}", report.run, report.ledger_flag);
        report.notes.push(match drops_answers_at_end(history) && report.verdict().is_some() {
            true => {
                "This assembly keeps no answers, so the run cannot be resumed: convene it again.".to_owned()
            }
            false => budget::resume_note(session.workspace.config.budget.wall, history, &resume),
        });
    }
    report.add_counts(history);
    Ok(report)
}

/// A7: members in the order of the manifest's `display.defaultGrouping`, ties in roster order.
fn group_members(history: &History, mut members: Vec<Member>) -> Vec<Member> {
    let grouping = history.opened.grouping.clone().and_then(|word| serde_json::from_value(word).ok());
    match grouping {
        Some(Grouping::Phase) => members.sort_by(|a, b| a.phase.cmp(&b.phase)),
        Some(Grouping::Role) => members.sort_by(|a, b| a.role.cmp(&b.role)),
        Some(Grouping::Severity) => {
            let severity =
                |member: &Member| member.answer().and_then(|answer| answer.get("severity")?.as_u64());
            members.sort_by_key(|member| std::cmp::Reverse(severity(member)));
        }
        None => {}
    }
    members
}

impl Decision {
    /// The report of a run from its records alone; `None` if another version of the mode wrote it.
    pub(crate) fn of(history: &History) -> Option<Decision> {
        let mut report = Decision::read(history, &run_opened::assembly_setup(history)?, None);
        report.add_counts(history);
        Some(report)
    }

    /// Adds the notes on recorded and erased answers.
    fn add_counts(&mut self, history: &History) {
        if let found @ 1.. = history.opened.redactions {
            let places = if found == 1 { "place" } else { "places" };
            self.notes.push(format!(
                "Not judged: what looks like a secret, in {found} {places}; members do not see it."
            ));
        }
        self.notes.extend(hidden_text::notes(&history.opened));
        self.notes.extend(member_usage::notes(history));
        self.notes.extend(crate::service::report::erased_note(history));
    }

    fn read(history: &History, setup: &Setup, artifact: Option<Map<String, Json>>) -> Decision {
        let mut outcome = history.outcome_data().cloned().unwrap_or_default();
        outcome.extend(artifact.into_iter().flatten());
        let outcome: Outcome = record::read(&outcome).unwrap_or_default();
        let opened = &history.opened;
        let recorded = RecordedAnswers::count(history);
        let model_asked = member_usage::is_model_asked(history);
        let violations = history.facts.iter().filter(|(kind, _)| kind == Kind::Violation.as_str());
        let spent = Cost { calls: history.calls, usage: history.usage, took: history.wall };
        // A word of another version counts as no verdict.
        let verdict = outcome.verdict.and_then(|word| serde_json::from_value(Json::String(word)).ok());
        let (is_advisory, is_peer) = (setup.mode == Mode::Advisory, setup.mode == Mode::Peer);
        let mut report = Decision {
            schema: SCHEMA,
            run: history.run.to_string(),
            opened_ms: history.opened_ms,
            assembly: setup.assembly.to_string(),
            title: opened.title.clone().unwrap_or_default(),
            mode: setup.mode,
            request: setup.request.clone(),
            subject: opened.subject.clone().unwrap_or_default(),
            outcome: AssemblyOutcome {
                kind: OutcomeKind::of(setup.mode),
                result: verdict,
                code: outcome.code,
                because: outcome.because,
                ended_by: outcome.rounds.map(|_| outcome.ended_by.unwrap_or_default()),
                rounds: outcome.rounds,
            },
            violations: violations.map(|(_, data)| record::read(data).unwrap_or_default()).collect(),
            members: group_members(history, Member::all(&setup.members, history)),
            declared_rules: setup.rules.clone(),
            rules: outcome.rules,
            partial: !outcome.missing.is_empty(),
            missing: outcome.missing,
            executor: member_usage::executor_names(history),
            model_asked,
            recorded: recorded.headline().filter(|_| !model_asked),
            spent,
            notes: Vec::new(),
            exit: exit_code(verdict),
            risk: outcome.risk,
            should_escalate: outcome.should_escalate,
            fragments: is_advisory.then_some(outcome.fragments),
            terminal: matches!(setup.mode, Mode::Advisory | Mode::Voting)
                .then_some(outcome.terminal.unwrap_or_default()),
            operators: is_advisory
                .then(|| setup.operators.iter().filter(|operator| !operator.is_empty()).cloned().collect()),
            decision: outcome.decision,
            messages: is_peer.then_some(outcome.messages),
            topology: outcome.topology,
            objecting: is_peer.then_some(outcome.objecting),
            objections: is_peer.then_some(outcome.objections),
            synthesis: outcome.synthesis,
            rollup: outcome.rollup,
            nodes: (setup.mode == Mode::Hierarchy).then_some(outcome.nodes),
            kept: setup.overlays.enabled,
            ledger_flag: String::new(),
            imported: false,
            queued: history.opened.queued.is_some(),
        };
        report.add_leading_notes(outcome.notes);
        report
    }

    /// Adds the notes that follow from the report, then the recorded ones.
    pub(crate) fn add_leading_notes(&mut self, recorded: Vec<String>) {
        if !self.model_asked {
            self.notes.push(match &self.recorded {
                Some(recorded) => format!("{recorded}."),
                None => {
                    format!("No model was asked: the answers come from the `{}` executor.", self.executor)
                }
            });
        }
        self.notes.extend(self.class_warnings());
        if self.partial {
            self.notes.push(format!("Partial: no output from {}.", self.missing.join(", ")));
        }
        if !self.kept {
            let note = "Outcomes of this assembly are not kept; the ledger has only their hash.";
            self.notes.push(note.to_owned());
        }
        self.notes.extend(recorded);
    }

    /// The outcome in one word; `None` while the run is undecided.
    pub fn verdict(&self) -> Option<AssemblyVerdict> {
        self.outcome.result
    }

    /// Rules without the effect that their author might expect.
    pub(crate) fn class_warnings(&self) -> Vec<String> {
        let members = self.members.iter().map(|one| (&*one.id, one.classes.as_deref()));
        class_warnings(&self.request, &self.declared_rules, members)
    }

    /// The usage of each member that was asked, in the order of the manifest.
    pub fn usage(&self) -> impl Iterator<Item = &MemberUsage> {
        let mut members: Vec<&Member> = self.members.iter().collect();
        members.sort_by_key(|member| member.place);
        members.into_iter().filter_map(|member| member.usage.as_ref())
    }

    /// Verdict and reason as plain text.
    pub fn brief(&self) -> String {
        let because =
            self.outcome.because.as_ref().map_or_else(String::new, |because| format!(": {because}"));
        format!("{}{because}\n", self.verdict().map_or("undecided", AssemblyVerdict::as_str))
    }
}

fn exit_code(verdict: Option<AssemblyVerdict>) -> u8 {
    match verdict {
        Some(AssemblyVerdict::Pass | AssemblyVerdict::Done) => 0,
        Some(AssemblyVerdict::Fail) => 1,
        Some(AssemblyVerdict::Refused) => 2,
        Some(AssemblyVerdict::Incomplete) | None => 3,
    }
}

/// A member and all its questions.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct Member {
    /// Its id in the manifest.
    pub id: String,
    /// The title of the role.
    pub role: String,
    /// Its place in the manifest's roster, from 0.
    #[serde(skip)]
    pub(crate) place: usize,
    /// Advisory: the phase that it is asked in.
    #[serde(skip)]
    pub phase: Option<String>,
    /// Voting: the classes that it votes on; `None` is all.
    #[serde(skip)]
    pub classes: Option<Vec<String>>,
    /// Hierarchy: the node that it reports to.
    #[serde(skip)]
    pub parent: Option<String>,
    /// Its questions, in order. The JSON has the last result, and the list only if there are several.
    #[serde(flatten, serialize_with = "last_result")]
    #[schemars(with = "LastResult")]
    pub consultations: Vec<Consultation>,
    /// Its executor and cost; `None` if it was not asked.
    #[serde(flatten)]
    pub usage: Option<MemberUsage>,
}

/// The keys of a member's JSON that follow from its questions.
#[derive(Serialize, JsonSchema)]
struct LastResult<'m> {
    /// The status of the last question; `not_asked` without one.
    status: &'m str,
    /// The last answer, as given.
    #[schemars(with = "Json")]
    answer: Option<&'m Map<String, Json>>,
    /// The reason for a missing answer, if the record has more than the status.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    message: Option<&'m str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Failure")]
    failure: Option<&'m Failure>,
    /// How the samples of the last answer differ, if it was asked several times.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Samples")]
    samples: Option<&'m Samples>,
    /// The probability of each option of the last answer, if a decision model gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BTreeMap<String, f64>")]
    probabilities: Option<&'m BTreeMap<String, f64>>,
    /// All questions in order, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Consultation>")]
    consultations: Option<&'m [Consultation]>,
}

fn last_result<S: Serializer>(asked: &[Consultation], serializer: S) -> Result<S::Ok, S::Error> {
    let last = asked.last();
    let result = LastResult {
        status: last.map_or(NOT_ASKED, |last| last.status.as_str()),
        answer: last_answer(asked),
        message: last.and_then(|last| last.message.as_deref()),
        failure: last.and_then(|last| last.failure.as_ref()),
        samples: last.and_then(|last| last.samples.as_ref()),
        probabilities: last.and_then(|last| last.probabilities.as_ref()),
        consultations: Some(asked).filter(|all| all.len() > 1),
    };
    result.serialize(serializer)
}

fn last_answer(asked: &[Consultation]) -> Option<&Map<String, Json>> {
    asked.iter().rev().find_map(|one| one.answer.as_ref())
}

/// A question to a member, and its result.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct Consultation {
    /// Its id in the run's records.
    pub invocation: String,
    /// How it ended.
    #[schemars(with = "String")]
    pub status: Status,
    /// The answer, as given.
    #[schemars(with = "Json")]
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
    /// The probability of each option, if a decision model answered; of a yes-or-no question that of `yes` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BTreeMap<String, f64>")]
    pub probabilities: Option<BTreeMap<String, f64>>,
    /// The name of the executor.
    #[schemars(with = "Option<String>")]
    pub executor: String,
    /// The duration, in milliseconds.
    #[schemars(with = "Option<u64>")]
    pub ms: u64,
}

impl Member {
    /// All members of a roster, with their consultations.
    fn all(roster: &[assembly::Member], history: &History) -> Vec<Member> {
        let mut by_member: BTreeMap<&str, Vec<Consultation>> = BTreeMap::new();
        for data in history.consultations() {
            by_member.entry(&data.member).or_default().push(Consultation::of(history, data));
        }
        let mut usage = MemberUsage::all(history);
        let of = |(place, member): (usize, &assembly::Member)| Member {
            id: member.id.to_string(),
            role: member.role.clone(),
            place,
            phase: member.phase.clone(),
            classes: member.vote_class.clone(),
            parent: member.parent.as_ref().map(ToString::to_string),
            consultations: by_member.remove(&*member.id).unwrap_or_default(),
            usage: usage.remove(&*member.id),
        };
        roster.iter().enumerate().map(of).collect()
    }

    /// The status of its last question; `not_asked` without one.
    pub fn status(&self) -> &str {
        self.consultations.last().map_or(NOT_ASKED, |last| last.status.as_str())
    }

    /// Its last answer.
    pub fn answer(&self) -> Option<&Map<String, Json>> {
        last_answer(&self.consultations)
    }
}

impl Consultation {
    fn of(history: &History, ended: &record::Consultation) -> Consultation {
        Consultation {
            invocation: ended.invocation.to_string(),
            status: ended.status.clone(),
            answer: ended.answer.as_ref().and_then(Json::as_object).cloned(),
            message: ended.text.clone(),
            failure: Failure::of(history, ended),
            samples: ended.samples.clone(),
            probabilities: ended.probabilities.clone(),
            executor: ended.executor.clone(),
            ms: ended.spent.ms.unwrap_or_default(),
        }
    }
}

/// A share that the yes side needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Needed {
    /// A fraction of the rule's base: 0 to 1.
    pub part: f64,
    /// The manifest's notation, or words.
    pub text: String,
    /// The rule that asks for it.
    pub rule: String,
    /// The position of the threshold on a line of all weights that starts with the yes side: 0 to 1.
    pub place: f64,
}

impl Decision {
    /// The recorded rule that decided.
    pub fn deciding_rule(&self) -> Option<&AppliedRule> {
        let rule = self.decision.as_ref()?.rule.as_ref()?;
        self.rules.iter().find(|candidate| candidate.fired && candidate.id == *rule)
    }

    /// A rule as declared in the manifest.
    pub fn declared_rule(&self, id: &str) -> Option<&Rule> {
        self.declared_rules.iter().find(|declared| *declared.id == *id)
    }

    /// The share that the deciding rule asks for; `None` for rules without one.
    pub fn threshold(&self) -> Option<Needed> {
        let rule = self.deciding_rule()?;
        needed(self.decision.as_ref()?, &rule.id, &rule.kind, self.declared_rule(&rule.id))
    }

    /// The shares that declared quorums over all voters ask for, in order, besides that of the deciding rule.
    pub fn quorums(&self) -> Vec<Needed> {
        let Some(decision) = &self.decision else { return Vec::new() };
        let deciding = self.deciding_rule().map(|rule| &*rule.id);
        let others = self.declared_rules.iter().filter(|rule| {
            *rule.kind == *votes::QUORUM && rule.applies_to.is_none() && deciding != Some(&*rule.id)
        });
        others.filter_map(|rule| needed(decision, &rule.id, &rule.kind, Some(rule))).collect()
    }
}

fn needed(decision: &VoteCount, id: &str, kind: &str, declared: Option<&Rule>) -> Option<Needed> {
    let param = |key: &str| declared?.params.get(key);
    let (part, text) = match kind {
        votes::QUORUM => {
            let threshold = param("threshold")?;
            let text = threshold.as_str().map_or_else(|| threshold.to_string(), str::to_owned);
            (text.parse().ok()?, text)
        }
        votes::MAJORITY => (0.5, "more than half".to_owned()),
        votes::UNANIMITY => (1.0, "everybody".to_owned()),
        _ => return None,
    };
    let all = decision.yes + decision.no + decision.abstain + decision.missing;
    let is_cast = param("denominator").and_then(Json::as_str) == Some("cast");
    let counted = if is_cast { all - decision.abstain } else { all };
    let place = if all > 0.0 { part * counted / all } else { part };
    Some(Needed { part, text, rule: id.to_owned(), place })
}
