//! The page of an assembly's run, in any mode: the outcome and why, the votes, guidance, messages or tree, the rules.

use std::sync::Arc;

use askama::Template;
use quorate::convene::{
    AssemblyVerdict, Consultation, CountedVote, Decision, Fragment, Member, Message, Needed, Node, Objection,
    Violation,
};

use super::Frame;
use super::Surroundings;
use super::chart::{self, Segment};
use super::live_run::LiveView;
use super::wording::{Mark, instant, minute, plain};
use crate::Server;

#[derive(Template)]
#[template(path = "assembly_run.html")]
pub(super) struct AssemblyPage {
    frame: Frame,
    decision: Decision,
    run: String,
    mark: Mark,
    live: Option<LiveView>,
    previous: Option<String>,
    opened: String,
    instant: String,
    because: Option<String>,
    /// Whether a member votes on some classes of proposals alone.
    has_classes: bool,
    can_resume: bool,
    /// What the bar of a vote shows.
    weights: [(&'static str, f64); 4],
    bar: Vec<Segment>,
    /// What the deciding rule and the quorums ask of the yes side: the share, its place of 1,000, and whether it decided.
    marks: Vec<(Needed, u64, bool)>,
    fragments: Vec<Fragment>,
    messages: Vec<Message>,
    violations: Vec<Violation>,
    reach: Vec<(String, Vec<usize>)>,
    /// Each member's last objection; open ones come first.
    objections: Vec<Objection>,
    /// The nodes of a hierarchy from the root down, each with its depth.
    tree: Vec<(usize, Node)>,
    /// The rules with their effects, as HTML.
    rules: String,
    /// The table of members, as HTML.
    members: String,
}

impl AssemblyPage {
    /// Why a member votes as it does, in its words, or why it does not; a reason that touches a locked trait is withheld (V6).
    fn reason(&self, vote: &CountedVote) -> String {
        let last = self.member(&vote.member).and_then(|member| member.consultations.last());
        match &vote.withheld {
            Some(withheld) => withheld.clone(),
            None if matches!(&*vote.vote, "missing" | "cancelled") => last.map(said).unwrap_or_default(),
            None => self.answered(&vote.member, "rationale").to_owned(),
        }
    }

    fn member(&self, id: &str) -> Option<&Member> {
        self.decision.members.iter().find(|member| member.id == id)
    }

    /// The classes of proposals that a member votes on; empty for all.
    fn classes(&self, member: &str) -> String {
        let found = self.member(member).and_then(|one| one.classes.as_ref());
        found.map_or_else(String::new, |classes| classes.join(", "))
    }

    /// A text of a member's own answer.
    fn answered(&self, member: &str, key: &str) -> &str {
        let answer = self.member(member).and_then(Member::answer);
        answer.and_then(|answer| answer.get(key)?.as_str()).unwrap_or_default()
    }

    /// The member that left a report out of what it passes up.
    fn dropped_by(&self, node: &Node) -> Option<&str> {
        let above = self.tree.iter().find(|(_, above)| Some(&above.member) == node.parent.as_ref());
        let above = above.map(|(_, above)| above).filter(|above| !above.from.contains(&node.member))?;
        (node.output.is_some() && !above.from.is_empty()).then_some(&*above.member)
    }
}

/// The page.
pub(super) fn page(server: &Arc<Server>, report: Decision, around: Surroundings) -> AssemblyPage {
    let word = report.verdict().map(AssemblyVerdict::as_str);
    let is_open = word.is_none();
    let is_incomplete = report.verdict() == Some(AssemblyVerdict::Incomplete);
    let weights = report.decision.as_ref().map_or([("", 0.0); 4], |count| {
        [("yes", count.yes), ("no", count.no), ("abstain", count.abstain), ("missing", count.missing)]
    });
    let all: f64 = weights.iter().map(|(_, weight)| weight).sum();
    let reached = if all > 0.0 { weights[0].1 / all } else { 0.0 };
    let mark = |needed: Needed, is_deciding| {
        let x = chart::mark(needed.place, reached);
        (needed, x, is_deciding)
    };
    let deciding = report.threshold().map(|needed| mark(needed, true));
    let quorums = report.quorums().into_iter().map(|needed| mark(needed, false));
    let mut objections = report.objections.clone().unwrap_or_default();
    objections.sort_by_key(|objection| (objection.taken_back, objection.answered, objection.round));
    let shown = word.unwrap_or("open").to_uppercase();
    let frame = Frame::new(
        server,
        format!("{shown} {}", report.title),
        "runs",
        format!("quorate show {}", report.run),
    );
    AssemblyPage {
        frame: frame.with_json(format!("/api/v1/runs/{}", report.run)),
        run: report.run.clone(),
        mark: Mark::of(word),
        live: around.live,
        previous: around.previous,
        opened: minute(report.opened_ms),
        instant: instant(report.opened_ms),
        because: report.verdict().map(|_| report.reason()),
        has_classes: report.members.iter().any(|member| member.classes.is_some()),
        can_resume: !server.read_only
            && !report.imported
            && !report.queued
            && (is_open || is_incomplete)
            && !around.is_driven,
        bar: chart::stacked(&weights),
        weights,
        marks: deciding.into_iter().chain(quorums).collect(),
        fragments: report.fragments.clone().unwrap_or_default(),
        messages: report.messages.clone().unwrap_or_default(),
        violations: report.violations.clone(),
        reach: reach(&report),
        objections,
        tree: tree(report.nodes.as_deref().unwrap_or_default()),
        rules: report.rules_doc().html(),
        members: quorate::view::members(report.usage()).html(),
        decision: report,
    }
}

/// The nodes of a hierarchy from the root down, each with its depth.
fn tree(nodes: &[Node]) -> Vec<(usize, Node)> {
    fn add(nodes: &[Node], parent: Option<&str>, depth: usize, tree: &mut Vec<(usize, Node)>) {
        // Each node once, whatever the records say.
        if depth > nodes.len() {
            return;
        }
        for node in nodes.iter().filter(|node| node.parent.as_deref() == parent) {
            tree.push((depth, node.clone()));
            add(nodes, Some(&node.member), depth + 1, tree);
        }
    }
    let mut tree = Vec::new();
    add(nodes, None, 0, &mut tree);
    tree
}

/// The answer to a question as JSON, or the reason why there is none.
pub(crate) fn said(asked: &Consultation) -> String {
    match &asked.answer {
        Some(answer) => serde_json::to_string_pretty(answer).unwrap_or_default(),
        None => asked.message.clone().unwrap_or_else(|| plain(asked.status.as_str())),
    }
}

/// How many messages each peer sent to each member, and last to all in reach; empty without a message.
fn reach(report: &Decision) -> Vec<(String, Vec<usize>)> {
    let messages = report.messages.as_deref().unwrap_or_default();
    if messages.is_empty() {
        return Vec::new();
    }
    let row = |from: &Member| {
        let sent = || messages.iter().filter(|message| message.from == from.id);
        let names = |message: &Message, id: &String| message.to.as_ref().is_some_and(|to| to.contains(id));
        let to_each = report.members.iter().map(|to| sent().filter(|message| names(message, &to.id)).count());
        let to_all = sent().filter(|message| message.to.is_none()).count();
        (from.id.clone(), to_each.chain([to_all]).collect())
    };
    report.members.iter().map(row).collect()
}
