//! Compares two runs on one artifact: kept, new and gone findings, and members that changed position.

mod matching;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::history::History;
use quorate_protocol::Name;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::{Value, json};

use super::convene;
use super::error::ServiceError;
use super::load_report;
use super::positions::positions;
use super::report::erased_note;
use super::run_opened;
use super::session::LedgerSession;

/// The version of a comparison's JSON.
pub const SCHEMA: &str = "quorate.compare/v1";

/// Two runs on one artifact
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    #[schemars(extend("const" = SCHEMA))]
    pub schema: &'static str,
    pub kind: Kind,
    /// The artifact's type of reviews, the name of an assembly
    pub artifact_type: String,
    /// What both runs are about: a path, or -
    pub artifact: String,
    /// The run that is compared
    pub a: ComparedRun,
    /// The run that it is compared with
    pub b: ComparedRun,
    /// Whether both runs judged the same text
    pub same_text: bool,
    /// Whether the verdict or outcome differs
    pub verdict_changed: bool,
    pub findings: Findings,
    /// The position of each member in both runs, those that differ first
    pub positions: Vec<PositionChange>,
    /// What limits the comparison
    pub notes: Vec<String>,
}

/// What kind of runs are compared
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Review,
    Advisory,
    Voting,
    Peer,
    Hierarchy,
}

/// One of the two runs
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ComparedRun {
    pub run: String,
    /// When it was opened, RFC 3339 in UTC
    pub opened: String,
    /// The verdict or outcome; null while nothing is decided
    pub verdict: Option<String>,
    /// The reason in a sentence
    pub because: Option<String>,
    /// SHA-256 of the text
    pub artifact_sha256: Option<String>,
}

/// What both runs found
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct Findings {
    /// Found in both runs
    pub kept: Vec<KeptFinding>,
    /// Found in run b alone
    pub new: Vec<Finding>,
    /// Found in run a alone
    pub gone: Vec<Finding>,
}

/// What both runs found, as each words it
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct KeptFinding {
    pub a: Finding,
    pub b: Finding,
}

/// What a member found: a finding of a review, guidance, an open objection, or the concern of a node
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Finding {
    /// The member
    pub by: String,
    /// The line of the quote, from 1; null without one
    pub line: Option<u64>,
    /// The quoted words; empty without a quote
    pub quote: String,
    pub issue: String,
    pub fix: Option<String>,
}

/// A member's position in both runs; null where it was not asked
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PositionChange {
    pub member: String,
    pub a: Option<String>,
    pub b: Option<String>,
    pub changed: bool,
}

/// The content of one run.
struct Content {
    kind: Kind,
    run: ComparedRun,
    artifact: String,
    artifact_type: String,
    findings: Vec<Finding>,
    positions: Vec<(String, String)>,
    note: Option<String>,
}

/// Compares run `a` with run `b`.
///
/// # Errors
/// `quorate:runs_incomparable` if they are not on one artifact or not of one kind; and as loading either run.
#[crate::boxed]
pub async fn compare(session: &LedgerSession, a: &Name, b: &Name) -> Result<Comparison, ServiceError> {
    let (a, b) = (load(session, a).await?, load(session, b).await?);
    let same_text = a.run.artifact_sha256.is_some() && a.run.artifact_sha256 == b.run.artifact_sha256;
    ensure_comparable(&a, &b, same_text)?;
    let open = [&a.run, &b.run].into_iter().filter(|run| run.verdict.is_none());
    let open = open.map(|run| format!("Run {} is not decided yet.", run.run)).collect::<Vec<_>>();
    Ok(Comparison {
        schema: SCHEMA,
        kind: b.kind,
        artifact_type: b.artifact_type,
        artifact: b.artifact,
        same_text,
        verdict_changed: a.run.verdict != b.run.verdict,
        findings: matching::compare(a.findings, b.findings),
        positions: position_changes(a.positions, b.positions),
        notes: [a.note, b.note].into_iter().flatten().chain(open).collect(),
        a: a.run,
        b: b.run,
    })
}

/// The newest decided run before this one on the same artifact.
///
/// # Errors
/// If the ledger does not answer.
#[crate::boxed]
pub async fn previous(session: &LedgerSession, run: &Name) -> Result<Option<Name>, ServiceError> {
    Ok(session.store.previous_run(run).await?)
}

/// As [`compare`], with runs as a user names them: by an id, a prefix of an id, or `latest`. Without `a`, compares with the
/// run before `b` on the same artifact.
///
/// # Errors
/// As [`compare`]; if there is no such run.
#[crate::boxed]
pub async fn compare_named(
    session: &LedgerSession,
    a: Option<&str>,
    b: &str,
) -> Result<Comparison, ServiceError> {
    let b = session.find_run(b).await?.run;
    let a = match a {
        Some(a) => session.find_run(a).await?.run,
        None => previous(session, &b).await?.ok_or_else(|| {
            let body = Body::new(format!("the ledger has no decided run before {b} on the same artifact"));
            ServiceError::not_found(codes::RUN_UNKNOWN, body.help("name two runs; `quorate runs` lists them"))
        })?,
    };
    compare(session, &a, &b).await
}

/// The JSON Schema of a comparison (2020-12).
pub fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12();
    let mut schema = settings.into_generator().into_root_schema_for::<Comparison>().to_value();
    schema["$id"] = json!(SCHEMA);
    schema
}

fn ensure_comparable(a: &Content, b: &Content, same_text: bool) -> Result<(), ServiceError> {
    let incomparable = |message: String, help: &str| {
        let body = Body::new(message).help(help);
        Err(ServiceError::configuration(codes::RUNS_INCOMPARABLE, body))
    };
    let (first, second) = (&a.run.run, &b.run.run);
    let is_review = |content: &Content| content.kind == Kind::Review;
    if is_review(a) != is_review(b) {
        let (review, assembly) = if is_review(a) { (first, second) } else { (second, first) };
        return incomparable(
            format!("cannot compare run {review}, a review, with run {assembly}, an assembly's"),
            "compare two reviews, or two runs of one assembly",
        );
    }
    if !is_review(a) && (a.kind, &a.artifact_type) != (b.kind, &b.artifact_type) {
        return incomparable(
            format!(
                "cannot compare run {first} of the assembly `{}` with run {second} of `{}`",
                a.artifact_type, b.artifact_type
            ),
            "compare two runs of one assembly",
        );
    }
    // Texts without a name are one artifact only if their bytes are equal.
    let same_name = a.artifact == b.artifact && a.artifact != "-";
    if !same_text && !same_name {
        return incomparable(
            format!(
                "cannot compare run {first} on `{}` with run {second} on `{}`: they are different artifacts",
                a.artifact, b.artifact
            ),
            "compare runs on one file, or on the same text; `quorate runs` lists the artifact of each",
        );
    }
    Ok(())
}

async fn load(session: &LedgerSession, run: &Name) -> Result<Content, ServiceError> {
    let history = session.partial_history(run).await?;
    match run_opened::is_assembly(&history) {
        true => assembly(session, &history).await,
        false => review(session, &history).await,
    }
}

fn compared(history: &History, verdict: Option<String>, because: Option<String>) -> ComparedRun {
    ComparedRun {
        run: history.run.to_string(),
        opened: quorate_manifest::timestamp::format(history.opened_ms),
        verdict,
        because: because.filter(|because| !because.is_empty()),
        artifact_sha256: history.opened.artifact_sha256.clone(),
    }
}

fn note(history: &History) -> Option<String> {
    erased_note(history).map(|note| format!("Run {}: {note}", history.run))
}

async fn review(session: &LedgerSession, history: &History) -> Result<Content, ServiceError> {
    let report = load_report::load_from(session, history).await?;
    let finding = |finding: &super::report::Finding| Finding {
        by: finding.by.clone(),
        line: finding.line,
        quote: finding.quote.clone(),
        issue: finding.issue.clone(),
        fix: finding.fix.clone(),
    };
    let mut held = positions(&report);
    let order = |id: &str| report.deliberators.iter().position(|one| one.id == id);
    held.sort_by_key(|position| order(&position.id));
    Ok(Content {
        kind: Kind::Review,
        run: compared(
            history,
            report.verdict.map(|verdict| verdict.as_str().to_owned()),
            Some(report.because.clone()),
        ),
        artifact: report.artifact.clone(),
        artifact_type: report.artifact_type.clone(),
        findings: report.findings.iter().map(finding).collect(),
        positions: held.iter().map(|position| (position.id.clone(), position.last().all_words())).collect(),
        note: note(history),
    })
}

async fn assembly(session: &LedgerSession, history: &History) -> Result<Content, ServiceError> {
    use quorate_manifest::assembly::Mode;
    let report = convene::report::load(session, history).await?;
    let said = |by: &str, issue: &str, fix: Option<&str>| Finding {
        by: by.to_owned(),
        issue: issue.to_owned(),
        fix: fix.map(str::to_owned),
        ..Finding::default()
    };
    let status = |member: &convene::report::Member| (member.id.clone(), member.status.clone());
    let members = || report.members.iter().map(status).collect::<Vec<_>>();
    let (kind, findings, positions) = match report.mode {
        Mode::Advisory => {
            let guidance = report.fragments.iter().map(|piece| said(&piece.member, &piece.text, None));
            (Kind::Advisory, guidance.collect(), members())
        }
        Mode::Voting => {
            let votes = report.decision.iter().flat_map(|decision| &decision.votes);
            let votes = votes.map(|vote| (vote.member.clone(), vote.vote.clone())).collect();
            (Kind::Voting, Vec::new(), votes)
        }
        Mode::Peer => {
            let objects = |id: &str| report.objecting.iter().any(|one| one == id);
            let position = |member: &convene::report::Member| {
                let word = if objects(&member.id) { "objects" } else { "does not object" };
                (member.id.clone(), word.to_owned())
            };
            let open = report.objections.iter().filter(|objection| objects(&objection.member));
            let last = |objection: &convene::report::Objection| {
                let of = |message: &&convene::report::Message| {
                    message.from == objection.member && message.round == objection.round
                };
                let text = report.messages.iter().find(of).map_or("", |message| &*message.text);
                said(&objection.member, text, None)
            };
            (Kind::Peer, open.map(last).collect(), report.members.iter().map(position).collect())
        }
        Mode::Hierarchy => {
            let concern = |node: &convene::report::Node| {
                let output = node.output.as_ref()?;
                Some(said(&node.member, &output.concern, Some(&output.suggestion)))
            };
            let position = |node: &convene::report::Node| {
                let word = match &node.output {
                    Some(output) => format!("severity {}", output.severity),
                    None => node.status.clone(),
                };
                (node.member.clone(), word)
            };
            let nodes = &report.nodes;
            (
                Kind::Hierarchy,
                nodes.iter().filter_map(concern).collect(),
                nodes.iter().map(position).collect(),
            )
        }
    };
    Ok(Content {
        kind,
        run: compared(
            history,
            report.verdict.clone(),
            report.because.clone().or_else(|| deciding_rule(&report)),
        ),
        artifact: report.subject.clone(),
        artifact_type: report.assembly.clone(),
        findings,
        positions,
        note: note(history),
    })
}

/// The rule that decided a vote.
fn deciding_rule(report: &convene::report::Report) -> Option<String> {
    let decides =
        |rule: &convene::report::AppliedRule| Some(format!("{} decides {}", rule.id, rule.decides.as_ref()?));
    report.rules.iter().find_map(decides)
}

/// The positions by member, in the order of run b, those that differ first.
fn position_changes(a: Vec<(String, String)>, b: Vec<(String, String)>) -> Vec<PositionChange> {
    let of = |all: &[(String, String)], member: &str| {
        all.iter().find(|(id, _)| id == member).map(|(_, position)| position.clone())
    };
    let left = a.iter().filter(|(member, _)| of(&b, member).is_none());
    let members: Vec<String> = b.iter().chain(left).map(|(member, _)| member.clone()).collect();
    let mut changes: Vec<PositionChange> = members
        .into_iter()
        .map(|member| {
            let (a, b) = (of(&a, &member), of(&b, &member));
            PositionChange { changed: a != b, member, a, b }
        })
        .collect();
    changes.sort_by_key(|position| !position.changed);
    changes
}
