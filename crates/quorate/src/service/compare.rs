//! Compares two runs on one artifact: kept, new and gone findings, and members that changed position; and the two rounds
//! of one review: how each deliberator's position and words changed.
//!
//! Members word a finding differently in each run, so the quote decides if there is one: two findings with the same
//! quote are the same finding; those of the same member are matched first.

use std::collections::{BTreeMap, VecDeque};

use quorate_diagnostics::{Body, codes};
use quorate_kernel::history::History;
use quorate_protocol::Name;
use quorate_protocol::answers::deliberator::{self, Answer as Read, Round};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::diff::{self, Piece};
use super::error::Error;
use super::report::{self, Answer, Deliberator, Review, erased_note};
use super::runs::outcome_word;
use super::session::LedgerSession;
use super::{convene, run_opened};
use crate::view::{Conclusion, Doc, Entry, Table, Text};

/// The version of a comparison's JSON.
pub(crate) const SCHEMA: &str = "quorate.compare/v1";

/// Two runs on one artifact
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// The version of this format
    #[schemars(extend("const" = SCHEMA))]
    pub schema: &'static str,
    /// The kind of both runs
    pub kind: ComparedKind,
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
    /// Findings of both runs, of run b alone and of run a alone
    pub findings: Findings,
    /// The position of each member in both runs, those that differ first
    pub positions: Vec<PositionChange>,
    /// What limits the comparison
    pub notes: Vec<String>,
}

/// What kind of runs are compared
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Kind")]
pub enum ComparedKind {
    /// Reviews by a council
    Review,
    /// Runs of an advisory assembly
    Advisory,
    /// Runs of a voting assembly
    Voting,
    /// Runs of a peer assembly
    Peer,
    /// Runs of a hierarchical assembly
    Hierarchy,
}

/// One of the two runs
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ComparedRun {
    /// The run's id
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
    /// The finding as run a words it
    pub a: Finding,
    /// The finding as run b words it
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
    /// What the member found, in its words
    pub issue: String,
    /// The suggested change; null without one
    pub fix: Option<String>,
}

/// A member's position in both runs; null where it was not asked
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PositionChange {
    /// The member's id
    pub member: String,
    /// Its position in run a
    pub a: Option<String>,
    /// Its position in run b
    pub b: Option<String>,
    /// Whether the positions differ
    pub changed: bool,
}

/// The content of one run.
struct Content {
    kind: ComparedKind,
    run: ComparedRun,
    artifact: String,
    artifact_type: String,
    findings: Vec<Finding>,
    positions: Vec<(String, String)>,
    note: Option<String>,
}

/// Compares two runs.
///
/// # Errors
/// `quorate:runs_incomparable` if they are not on one artifact or not of one kind; if there is no such run; and as loading
/// either run.
#[crate::boxed]
pub(crate) async fn compare(session: &LedgerSession, request: &CompareRequest) -> Result<Comparison, Error> {
    let b = session.find_run(&request.b).await?.run;
    let a = match request.a.as_deref().filter(|a| !a.is_empty()) {
        Some(a) => session.find_run(a).await?.run,
        None => session.store.previous_run(&b).await?.ok_or_else(|| {
            let body = Body::new(format!("the ledger has no decided run before {b} on the same artifact"));
            Error::not_found(codes::RUN_UNKNOWN, body.help("name two runs; `quorate runs` lists them"))
        })?,
    };
    let (a, b) = (load(session, &a).await?, load(session, &b).await?);
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
        findings: match_findings(a.findings, b.findings),
        positions: position_changes(a.positions, b.positions),
        notes: [a.note, b.note].into_iter().flatten().chain(open).collect(),
        a: a.run,
        b: b.run,
    })
}

/// Which runs are compared.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "CompareQuery")]
pub struct CompareRequest {
    /// The run that is compared: an id, the beginning of one, or latest. By default the run before b on the same artifact
    #[serde(default)]
    pub a: Option<String>,
    /// The run that it is compared with
    pub b: String,
}

impl Comparison {
    /// What changed between the runs, and what each found. A terminal shows the verdicts at the end.
    pub fn doc(&self) -> Doc {
        let Findings { kept, new, gone } = &self.findings;
        let text = if self.same_text { "the text is the same" } else { "the text changed" };
        let counts = format!("  {} gone, {} new, {} kept; {text}.", gone.len(), new.len(), kept.len());
        let verdict = |run: &ComparedRun| outcome_word(run.verdict.as_deref());
        let headline = match self.verdict_changed {
            true => verdict(&self.a).and(" → ").and(verdict(&self.b)),
            false => verdict(&self.b).and(" as before"),
        };
        let runs = Text::code(&self.a.run).and(" → ").and(Text::code(&self.b.run));
        let mut page = self.runs();
        page.append(self.changes());
        Doc::concluded(Conclusion {
            headline: headline.and(counts),
            run: Text::code(&self.artifact).and(" · ").and(runs),
            next: Doc::new(),
            bodies: vec![(0, self.changes())],
            page,
        })
    }

    /// Both runs.
    fn runs(&self) -> Doc {
        let mut doc = Doc::new();
        let run = |name: &str, run: &ComparedRun| {
            let because = run.because.as_deref().unwrap_or_default();
            [
                name.into(),
                Text::code(&run.run),
                run.opened.as_str().into(),
                outcome_word(run.verdict.as_deref()),
                because.into(),
            ]
        };
        let runs = [run("a", &self.a), run("b", &self.b)];
        doc.table(Table::new(["", "run", "opened", "verdict", "why"]).with_rows(runs));
        doc
    }

    /// The findings by what became of them, the positions, and what limits the comparison.
    fn changes(&self) -> Doc {
        let mut doc = Doc::new();
        let Findings { kept, new, gone } = &self.findings;
        let kept = kept.iter().map(|kept| {
            let before = Some(&kept.a.issue).filter(|issue| **issue != kept.b.issue);
            kept.b.entry(before.map(|issue| ("before", issue)))
        });
        let groups = [
            ("Gone", gone.iter().map(|finding| finding.entry(None)).collect::<Vec<_>>()),
            (
                "New",
                new.iter()
                    .map(|finding| finding.entry(finding.fix.as_ref().map(|fix| ("fix", fix))))
                    .collect(),
            ),
            ("Kept", kept.collect()),
        ];
        for (name, findings) in groups.into_iter().filter(|(_, findings)| !findings.is_empty()) {
            doc.heading(format!("{name} ({})", findings.len()));
            doc.items(findings);
        }
        if self.positions.iter().any(|position| position.changed) {
            doc.heading("Changed positions");
            let word = |position: &Option<String>| Text::from(position.as_deref().unwrap_or("not asked"));
            let row = |position: &PositionChange| {
                [Text::from(&position.member), word(&position.a), word(&position.b)]
            };
            let changed = self.positions.iter().filter(|position| position.changed);
            doc.table(Table::new(["member", "a", "b"]).with_rows(changed.map(row)));
        }
        doc.end_section();
        for note in &self.notes {
            doc.line(note);
        }
        doc
    }
}

impl Finding {
    /// `more` is a labelled text below it: its fix, or its earlier wording. A finding with a line needs no quote.
    fn entry(&self, more: Option<(&str, &String)>) -> Entry {
        let place = match self.line {
            Some(line) => format!(", line {line}:"),
            None if self.quote.is_empty() => ":".to_owned(),
            None => format!(": “{}”", self.quote),
        };
        let mut entry = Entry::from(format!("{}{place} {}", self.by, self.issue));
        if let Some((label, text)) = more {
            entry.body.line(format!("{label}: {text}"));
        }
        entry
    }
}

fn ensure_comparable(a: &Content, b: &Content, same_text: bool) -> Result<(), Error> {
    let incomparable = |message: String, help: &str| {
        let body = Body::new(message).help(help);
        Err(Error::configuration(codes::RUNS_INCOMPARABLE, body))
    };
    let (first, second) = (&a.run.run, &b.run.run);
    let is_review = |content: &Content| content.kind == ComparedKind::Review;
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

async fn load(session: &LedgerSession, run: &Name) -> Result<Content, Error> {
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

async fn review(session: &LedgerSession, history: &History) -> Result<Content, Error> {
    let report = report::load_from(session, history).await?;
    let finding = |finding: &super::report::Finding| Finding {
        by: finding.by.clone(),
        line: finding.line,
        quote: finding.quote.clone(),
        issue: finding.issue.clone(),
        fix: finding.fix.clone(),
    };
    let held = report.deliberators.iter().map(|one| one.position(report.rounds));
    Ok(Content {
        kind: ComparedKind::Review,
        run: compared(
            history,
            report.verdict.map(|verdict| verdict.as_str().to_owned()),
            Some(report.because.clone()),
        ),
        artifact: report.artifact.clone(),
        artifact_type: report.artifact_type.clone(),
        findings: report.findings.iter().map(finding).collect(),
        positions: held.map(|position| (position.id.clone(), position.last().all_words())).collect(),
        note: note(history),
    })
}

async fn assembly(session: &LedgerSession, history: &History) -> Result<Content, Error> {
    use quorate_manifest::assembly::Mode;
    let report = convene::report::load(session, history).await?;
    let said = |by: &str, issue: &str, fix: Option<&str>| Finding {
        by: by.to_owned(),
        issue: issue.to_owned(),
        fix: fix.map(str::to_owned),
        ..Finding::default()
    };
    let status = |member: &convene::report::Member| (member.id.clone(), member.status().to_owned());
    let members = || report.members.iter().map(status).collect::<Vec<_>>();
    let (kind, findings, positions) = match report.mode {
        Mode::Advisory => {
            let guidance =
                report.fragments.iter().flatten().map(|piece| said(&piece.member, &piece.text, None));
            (ComparedKind::Advisory, guidance.collect(), members())
        }
        Mode::Voting => {
            let votes = report.decision.iter().flat_map(|decision| &decision.votes);
            let votes = votes.map(|vote| (vote.member.clone(), vote.vote.clone())).collect();
            (ComparedKind::Voting, Vec::new(), votes)
        }
        Mode::Peer => {
            let objects = |id: &str| report.objecting.iter().flatten().any(|one| one == id);
            let position = |member: &convene::report::Member| {
                let word = if objects(&member.id) { "objects" } else { "does not object" };
                (member.id.clone(), word.to_owned())
            };
            let open = report.objections.iter().flatten().filter(|objection| objects(&objection.member));
            let last = |objection: &convene::report::Objection| {
                let of = |message: &&convene::report::Message| {
                    message.from == objection.member && message.round == objection.round
                };
                let text = report.messages.iter().flatten().find(of).map_or("", |message| &*message.text);
                said(&objection.member, text, None)
            };
            (ComparedKind::Peer, open.map(last).collect(), report.members.iter().map(position).collect())
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
            let nodes = report.nodes.as_deref().unwrap_or_default();
            (
                ComparedKind::Hierarchy,
                nodes.iter().filter_map(concern).collect(),
                nodes.iter().map(position).collect(),
            )
        }
    };
    Ok(Content {
        kind,
        run: compared(
            history,
            report.verdict().map(|verdict| verdict.as_str().to_owned()),
            report.outcome.because.clone().or_else(|| deciding_rule(&report)),
        ),
        artifact: report.subject.clone(),
        artifact_type: report.assembly.clone(),
        findings,
        positions,
        note: note(history),
    })
}

/// The rule that decided a vote.
fn deciding_rule(report: &convene::report::Decision) -> Option<String> {
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

/// The property that a finding may share with another one; `None` if it lacks that property.
type Key = fn(&Finding) -> Option<Vec<String>>;

/// The shared properties, the strongest first. An empty part matches nothing.
const KEYS: [Key; 5] = [
    |finding| Some(vec![finding.by.clone(), plain(&finding.quote), plain(&finding.issue)]),
    |finding| quoted(finding).map(|quote| vec![quote, plain(&finding.issue)]),
    |finding| quoted(finding).map(|quote| vec![finding.by.clone(), quote]),
    |finding| quoted(finding).map(|quote| vec![quote]),
    // The quoted words were edited, and the member's words about them are the same.
    |finding| {
        Some(plain(&finding.issue))
            .filter(|issue| !issue.is_empty())
            .map(|issue| vec![finding.by.clone(), issue])
    },
];

/// Pairs findings of two runs, each at most once. Kept and new ones are in the order of `b`, gone ones in that of `a`.
fn match_findings(a: Vec<Finding>, b: Vec<Finding>) -> Findings {
    let mut pairs: Vec<Option<usize>> = vec![None; b.len()];
    let mut is_taken = vec![false; a.len()];
    for key in KEYS {
        let mut left: BTreeMap<Vec<String>, VecDeque<usize>> = BTreeMap::new();
        for (at, finding) in a.iter().enumerate().filter(|(at, _)| !is_taken[*at]) {
            if let Some(key) = key(finding) {
                left.entry(key).or_default().push_back(at);
            }
        }
        for (finding, pair) in b.iter().zip(&mut pairs).filter(|(_, pair)| pair.is_none()) {
            let Some(at) = key(finding).and_then(|key| left.get_mut(&key)?.pop_front()) else { continue };
            *pair = Some(at);
            is_taken[at] = true;
        }
    }
    let mut a: Vec<Option<Finding>> = a.into_iter().map(Some).collect();
    let mut findings = Findings::default();
    for (finding, pair) in b.into_iter().zip(pairs) {
        match pair.and_then(|at| a[at].take()) {
            Some(before) => findings.kept.push(KeptFinding { a: before, b: finding }),
            None => findings.new.push(finding),
        }
    }
    findings.gone = a.into_iter().flatten().collect();
    findings
}

fn quoted(finding: &Finding) -> Option<String> {
    Some(plain(&finding.quote)).filter(|quote| !quote.is_empty())
}

/// A text without differences of case and white space.
fn plain(text: &str) -> String {
    text.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

/// A deliberator's position in both rounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Position {
    /// The deliberator's id.
    pub id: String,
    /// Its first answer.
    pub first: Stance,
    /// Its second answer.
    pub second: Stance,
    /// The answer that counted; empty while the run is undecided.
    pub counted: String,
    /// Whether it blocks without a quote of the text.
    pub is_ungrounded: bool,
    /// Whether its decision differs in round 2: block, irreducible or score.
    pub has_changed: bool,
    /// How its words differ between the rounds; empty if they are equal or a round has no readable answer.
    pub rewording: Vec<Piece>,
}

/// A deliberator's answer in one round.
#[derive(Debug, Clone, PartialEq)]
pub struct Stance {
    /// How the invocation ended: `answered`, `timed_out`, …, `unreadable`.
    pub status: String,
    /// The answer; `None` without a readable one.
    pub read: Option<Read>,
    /// Why no answer is readable.
    pub message: Option<String>,
}

impl Stance {
    fn of(given: &Answer, round: Round) -> Stance {
        let read = given.answer.clone().and_then(|answer| Read::read(round, &answer.into()));
        let status = match given.status.as_str() {
            "answered" if read.is_none() => "unreadable".to_owned(),
            status => status.to_owned(),
        };
        Stance { status, read, message: given.message.clone() }
    }

    /// A short form: `blocks`, `REVISE, blocks`, `timed_out`.
    pub fn words(&self) -> String {
        let Some(read) = &self.read else { return self.status.clone() };
        let block = if read.would_block { "blocks" } else { "passes" };
        match read.verdict {
            Some(lean) if read.would_block => format!("{}, blocks", lean.as_str()),
            Some(lean) => lean.as_str().to_owned(),
            None => block.to_owned(),
        }
    }

    /// The short form, with `irreducible` and the score.
    pub fn all_words(&self) -> String {
        let irreducible =
            self.read.as_ref().is_some_and(|read| read.irreducible).then(|| "irreducible".to_owned());
        let score = self.read.as_ref().and_then(|read| read.score).map(|score| format!("score {score:.1}"));
        [Some(self.words()), irreducible, score].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// The requested change, then a line for each finding.
    fn text(&self) -> Option<String> {
        let read = self.read.as_ref()?;
        let finding = |finding: &deliberator::Finding| {
            let fix = finding.fix.as_ref().map_or_else(String::new, |fix| format!(" Fix: {fix}"));
            format!("“{}” {}{fix}", finding.quote, finding.issue)
        };
        let lines = read.revision_brief.clone().into_iter();
        let lines = lines.chain(read.findings.iter().flatten().map(finding)).collect::<Vec<_>>();
        Some(lines.join("\n"))
    }

    /// The parts that make two answers equal, however they are worded.
    fn decision(&self) -> Option<(String, bool, Option<String>)> {
        let read = self.read.as_ref()?;
        Some((self.words(), read.irreducible, read.score.map(|score| format!("{score:.1}"))))
    }
}

impl Review {
    /// The positions of its deliberators, those that changed first.
    pub fn positions(&self) -> Vec<Position> {
        let mut all: Vec<Position> = self.deliberators.iter().map(|one| one.position(self.rounds)).collect();
        all.sort_by_key(|position| (!position.has_changed, position.rewording.is_empty()));
        all
    }
}

impl Deliberator {
    /// Its first and its second answer in a council with this number of rounds.
    pub fn stances(&self, rounds: u8) -> [Stance; 2] {
        let last = if rounds == 1 { Round::First } else { Round::Second };
        [Stance::of(&self.round1, Round::First), Stance::of(&self.round2, last)]
    }

    /// Its position in a council with this number of rounds.
    pub fn position(&self, rounds: u8) -> Position {
        let [first, second] = self.stances(rounds);
        let rewording = match (first.text(), second.text()) {
            (Some(first), Some(second)) => diff::words(&first, &second),
            _ => Vec::new(),
        };
        Position {
            id: self.id.clone(),
            counted: self.counted.clone(),
            is_ungrounded: self.ungrounded,
            has_changed: self.round2.answer.is_some() && first.decision() != second.decision(),
            first,
            second,
            rewording,
        }
    }
}

impl Position {
    /// Its last position.
    pub fn last(&self) -> &Stance {
        if self.second.read.is_some() { &self.second } else { &self.first }
    }
}

#[cfg(test)]
mod position_tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::service::diff::Change;

    fn answered(answer: serde_json::Value) -> Answer {
        let answer: Map<String, serde_json::Value> = answer.as_object().cloned().unwrap();
        Answer {
            status: "answered".to_owned(),
            answer: Some(answer),
            message: None,
            failure: None,
            samples: None,
        }
    }

    fn position(first: Answer, second: Answer) -> Position {
        let deliberator = Deliberator {
            id: "a".to_owned(),
            round1: first,
            round2: second,
            counted: String::new(),
            blocks: false,
            ungrounded: false,
            usage: None,
        };
        deliberator.position(2)
    }

    #[test]
    fn what_a_deliberator_changed_is_told() {
        let first = json!({"would_block": true, "score": 2, "revision_brief": "Cut the first claim."});
        let second = json!({"would_block": false, "irreducible": false, "score": 4, "revision_brief": "Cut the second claim."});
        let changed = position(answered(first.clone()), answered(second.clone()));
        assert!(changed.has_changed);
        assert_eq!(
            (changed.first.all_words(), changed.second.all_words()),
            ("blocks, score 2.0".into(), "passes, score 4.0".into())
        );
        let removed = changed.rewording.iter().find(|piece| piece.change == Change::Removed).unwrap();
        assert_eq!(removed.text, "first");
        let mut same = first.clone();
        same["irreducible"] = json!(false);
        let same = position(answered(first.clone()), answered(same));
        assert!(!same.has_changed && same.rewording.is_empty());
    }

    #[test]
    fn a_missing_answer_changes_nothing() {
        let first = json!({"would_block": true, "score": 2});
        let late = Answer { status: "timed_out".to_owned(), ..Answer::default() };
        let position = position(answered(first), late);
        assert!(!position.has_changed && position.rewording.is_empty());
        assert_eq!((position.second.words(), position.last().words()), ("timed_out".into(), "blocks".into()));
        let unreadable = Stance::of(&answered(json!({"would_block": "no"})), Round::First);
        assert_eq!(unreadable.words(), "unreadable");
    }
}

#[cfg(test)]
mod tests {
    use quorate_diagnostics::render::TextOptions;

    use super::*;

    fn finding(by: &str, quote: &str, issue: &str) -> Finding {
        Finding { by: by.to_owned(), quote: quote.to_owned(), issue: issue.to_owned(), ..Finding::default() }
    }

    #[test]
    fn findings_are_grouped_by_what_became_of_them() {
        let run = |run: &str, verdict: &str| ComparedRun {
            run: run.to_owned(),
            opened: "2026-03-04T05:05:00.007Z".to_owned(),
            verdict: Some(verdict.to_owned()),
            because: None,
            artifact_sha256: None,
        };
        let compared = Comparison {
            schema: SCHEMA,
            kind: ComparedKind::Review,
            artifact_type: "blog_post".to_owned(),
            artifact: "draft.md".to_owned(),
            a: run("r1", "REVISE"),
            b: run("r2", "SHIP"),
            same_text: false,
            verdict_changed: true,
            findings: match_findings(
                vec![finding("tone", "q", "old")],
                vec![
                    Finding { line: Some(3), ..finding("tone", "q", "dull") },
                    finding("facts", "", "no source\u{1b}[31m"),
                ],
            ),
            positions: position_changes(
                vec![("tone".to_owned(), "blocks".to_owned())],
                vec![("tone".to_owned(), "passes".to_owned())],
            ),
            notes: Vec::new(),
        };
        let text = compared.doc().text(TextOptions::default());
        for shown in [
            "REVISE → SHIP  0 gone, 1 new, 1 kept; the text changed.",
            "New (1)\n  - facts: no source",
            "Kept (1)\n  - tone, line 3: dull\n    before: old",
            "passes",
        ] {
            assert!(text.contains(shown), "{shown}: {text}");
        }
        assert!(!text.contains("Gone") && !text.contains('\u{1b}'), "{text}");
    }

    fn shown(a: &[Finding], b: &[Finding]) -> (Vec<(String, String)>, Vec<String>, Vec<String>) {
        let found = match_findings(a.to_vec(), b.to_vec());
        let issues = |all: Vec<Finding>| all.into_iter().map(|finding| finding.issue).collect();
        let kept = found.kept.into_iter().map(|kept| (kept.a.issue, kept.b.issue)).collect();
        (kept, issues(found.new), issues(found.gone))
    }

    #[test]
    fn a_finding_in_other_words_is_kept_by_its_quote() {
        let a = [finding("tone", "Best in the  world", "unproven"), finding("facts", "40%", "no source")];
        let b = [finding("tone", "best in the world", "a boast"), finding("tone", "soon", "vague")];
        let (kept, new, gone) = shown(&a, &b);
        assert_eq!(kept, [("unproven".to_owned(), "a boast".to_owned())]);
        assert_eq!((new, gone), (vec!["vague".to_owned()], vec!["no source".to_owned()]));
    }

    #[test]
    fn the_same_member_comes_first_and_each_finding_counts_once() {
        let a = [finding("x", "q", "one"), finding("y", "q", "two")];
        let b = [finding("y", "q", "three"), finding("x", "q", "four"), finding("z", "q", "five")];
        let (kept, new, gone) = shown(&a, &b);
        assert_eq!(kept, [("two".to_owned(), "three".to_owned()), ("one".to_owned(), "four".to_owned())]);
        assert_eq!((new, gone), (vec!["five".to_owned()], Vec::<String>::new()));
    }

    #[test]
    fn an_edited_quote_is_kept_by_what_is_said_of_it() {
        let (kept, ..) = shown(&[finding("x", "old words", "vague")], &[finding("x", "new words", "Vague")]);
        assert_eq!(kept.len(), 1);
        let (kept, new, gone) = shown(&[finding("x", "", "a")], &[finding("y", "", "b")]);
        assert_eq!((kept.len(), new.len(), gone.len()), (0, 1, 1), "findings without a quote do not match");
    }

    #[test]
    fn every_finding_is_in_one_list() {
        let mut state = 5_u64;
        let mut draw = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 33) % below
        };
        for _ in 0..200 {
            let mut some = |n: u64| -> Vec<Finding> {
                (0..draw(n))
                    .map(|_| {
                        finding(
                            ["a", "b"][draw(2) as usize],
                            ["", "q", "r"][draw(3) as usize],
                            ["i", "j"][draw(2) as usize],
                        )
                    })
                    .collect()
            };
            let (a, b) = (some(9), some(9));
            let found = match_findings(a.clone(), b.clone());
            assert_eq!(found.kept.len() + found.gone.len(), a.len());
            assert_eq!(found.kept.len() + found.new.len(), b.len());
            assert_eq!(match_findings(a.clone(), a.clone()).kept.len(), a.len());
        }
    }
}
