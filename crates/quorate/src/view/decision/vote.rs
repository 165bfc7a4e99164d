//! A vote: the tally, each member's vote, the text that was decided, and the sides with their weights.

use std::fmt::Write as _;

use quorate_protocol::Json;
use serde_json::Map;

use super::{REASON, ROWS, TEXT, diagrams, last_status, rules};
use crate::service::convene::report::{CountedVote, Decision, Member, VoteCount};
use crate::view::layout::truncate;
use crate::view::wording::amount;
use crate::view::{Doc, Extent, Table, Text, Tone};

/// The most votes on one screen.
const SCREEN_VOTES: usize = 16;

impl Decision {
    /// The votes; in full with their tally, and with the members that were not asked.
    pub(super) fn add_vote(&self, doc: &mut Doc, extent: Extent) {
        let Some(count) = &self.decision else { return self.add_answers_so_far(doc) };
        if !count.contribution.is_empty() {
            doc.heading("Decided alone");
            doc.items(count.contribution.iter().take(ROWS).map(|alone| {
                let words = format!(" votes {}: {}", alone.vote, truncate(&alone.rationale, REASON));
                Text::strong(&alone.member).and(words)
            }));
        }
        let is_full = extent == Extent::Full;
        if is_full && !count.votes.is_empty() && total_weight(count) > 0.0 {
            doc.heading("Tally");
            let row = |side: Side| [Text::toned(side.tone, side.word), side.text.into()];
            doc.table(Table::new(["side", "weight"]).with_rows(sides(count).into_iter().map(row)));
            doc.line(self.ratio(count));
            add_diagrams(doc, self, count);
        }
        let selected = select_votes(&count.votes, if is_full { ROWS } else { SCREEN_VOTES });
        let row = |vote: &&CountedVote| {
            let role = self.member(&vote.member).filter(|_| is_full).map_or("", |member| &member.role);
            [
                Text::strong(&vote.member),
                role.into(),
                vote_text(&vote.vote),
                truncate(&vote.weight, DIGITS).into(),
                self.why(vote).into(),
            ]
        };
        let mut headings = [""; 5];
        if is_full && !selected.is_empty() {
            doc.heading("Votes");
            headings = ["member", "role", "vote", "weight", "why"];
        }
        doc.table(Table::new(headings).with_rows(selected.iter().map(row)).filled());
        self.add_more(doc, count.votes.len() - selected.len(), "more vote");
        if is_full {
            self.add_unasked(doc);
        }
        if let Some(text) = count.text.as_ref().filter(|_| is_full) {
            doc.heading("Decision");
            let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
            doc.passage(truncate(&lines.join("\n\n"), TEXT));
        }
    }

    /// The reason of a vote, or why it is missing.
    fn why(&self, vote: &CountedVote) -> String {
        let member = self.member(&vote.member);
        let answer = member.and_then(Member::answer);
        let rationale = answer.and_then(|answer| answer.get("rationale")?.as_str()).unwrap_or_default();
        match &*vote.vote {
            "missing" | "cancelled" => member.map_or_else(String::new, last_status),
            _ => truncate(vote.withheld.as_deref().unwrap_or(rationale), REASON),
        }
    }

    /// Adds the answers of an undecided vote.
    fn add_answers_so_far(&self, doc: &mut Doc) {
        let asked = self.asked();
        if asked.is_empty() {
            return;
        }
        let answer = |answer: &Map<String, Json>| {
            let rationale = answer.get("rationale").and_then(Json::as_str).unwrap_or_default();
            Some(vote_text(answer.get("vote")?.as_str()?).and(format!(": {}", truncate(rationale, REASON))))
        };
        let row = |member: &&Member| {
            let text = member.answer().and_then(answer).unwrap_or_else(|| last_status(member).into());
            [Text::strong(&member.id), text]
        };
        doc.heading("Answers so far");
        doc.table(Table::new(["member", "answer"]).with_rows(asked.iter().take(ROWS).map(row)));
        self.add_more(doc, asked.len().saturating_sub(ROWS), "more member");
    }

    /// `2.5 of 3 = 0.833, needs 0.66`.
    pub(super) fn ratio(&self, count: &VoteCount) -> String {
        let needs = self.threshold();
        let is_close = needs.as_ref().is_some_and(|needs| (needs.part - count.ratio).abs() < 0.000_5);
        let rounded = if is_close { format!("{:.6}", count.ratio) } else { format!("{:.3}", count.ratio) };
        let rounded = rounded.trim_end_matches('0').trim_end_matches('.');
        let needs = needs.map_or_else(String::new, |needs| format!(", needs {}", needs.text));
        let is_exact = rounded.parse::<f64>() == Ok(count.ratio) && count.ratio.to_string().len() < 8;
        let equality = if is_exact { "=" } else { "≈" };
        format!("{} of {} {equality} {rounded}{needs}", count.exact.yes, count.exact.total)
    }
}

/// One side of a vote.
pub(super) struct Side {
    /// `yes`, `no`, `abstain` or `no vote`.
    pub(super) word: &'static str,
    pub(super) weight: f64,
    /// The sum of its weights, and the number of its votes.
    pub(super) text: String,
    pub(super) tone: Tone,
}

/// The most digits of a weight.
const DIGITS: usize = 12;

/// The sides of a vote; abstentions and missing votes only if there are any.
pub(super) fn sides(count: &VoteCount) -> Vec<Side> {
    let votes = |words: &[&str]| count.votes.iter().filter(|vote| words.contains(&&*vote.vote)).count();
    let all = [
        ("yes", count.yes, votes(&["yes"]), "vote", Tone::Good),
        ("no", count.no, votes(&["no"]), "vote", Tone::Bad),
        ("abstain", count.abstain, votes(&["abstain"]), "vote", Tone::Plain),
        ("no vote", count.missing, votes(&["missing", "cancelled"]), "voter", Tone::Absent),
    ];
    let shown = all.into_iter().filter(|(word, .., votes, _, _)| *votes > 0 || matches!(*word, "yes" | "no"));
    let side = |(word, weight, votes, noun, tone): (_, f64, usize, &str, _)| {
        let text = format!("{} ({})", truncate(&weight.to_string(), DIGITS), amount(votes as u64, noun));
        Side { word, weight, text, tone }
    };
    shown.map(side).collect()
}

/// The weight of all sides.
pub(super) fn total_weight(count: &VoteCount) -> f64 {
    count.yes + count.no + count.abstain + count.missing
}

/// Selects from many votes: missing ones, no and abstain before yes.
fn select_votes(votes: &[CountedVote], most: usize) -> Vec<&CountedVote> {
    let order = ["missing", "no", "abstain", "cancelled"];
    let mut places: Vec<usize> = (0..votes.len()).collect();
    places.sort_by_key(|at| order.iter().position(|word| *word == votes[*at].vote).unwrap_or(order.len()));
    places.truncate(most);
    places.sort_unstable();
    places.into_iter().map(|at| &votes[at]).collect()
}

fn vote_text(vote: &str) -> Text {
    let tone = match vote {
        "yes" => Tone::Good,
        "no" => Tone::Bad,
        "missing" | "cancelled" => Tone::Absent,
        _ => Tone::Plain,
    };
    Text::toned(tone, vote)
}

/// The weights of a vote, and the rules that it passed through.
fn add_diagrams(doc: &mut Doc, decision: &Decision, count: &VoteCount) {
    let mut pie = "pie showData title Weights\n".to_owned();
    for side in sides(count).into_iter().filter(|side| side.weight > 0.0) {
        let _ = writeln!(pie, "  \"{}\" : {}", side.word, side.weight);
    }
    doc.diagram(pie);
    let summaries = rules::summaries(decision);
    if summaries.is_empty() {
        return;
    }
    let mut flow = format!("flowchart TD\n  v[\"{}\"]\n", amount(count.votes.len() as u64, "vote"));
    let mut from = "v".to_owned();
    for (at, rule) in summaries.iter().take(diagrams::MEMBERS).enumerate() {
        let text = diagrams::label(&format!("{} ({}): {}", rule.id, rule.kind, rule.did));
        let class = if rule.has_fired { "fair" } else { "calm" };
        let _ = writeln!(flow, "  r{at}[\"{text}\"]:::{class}\n  {from} --> r{at}");
        from = format!("r{at}");
        if rule.has_fired {
            let _ = writeln!(flow, "  d([\"{}\"])\n  r{at} ==> d", diagrams::label(&count.result));
            break;
        }
    }
    doc.diagram(flow + diagrams::CLASSES);
}
