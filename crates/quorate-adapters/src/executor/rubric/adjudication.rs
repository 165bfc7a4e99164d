//! The adjudicator: counts blocks, considers earlier verdicts, and merges the findings into one brief.
//!
//! Three blocks with an irreducible one among them are HOLD. Three reducible blocks are REVISE, with a reason for the
//! downgrade; unless the last two verdicts on this type of text were HOLD on the same topic. One or two blocks are REVISE,
//! none is SHIP. A member without a second answer counts by its first one's block.
//!
//! Overlapping findings of several members become one item of the brief. Topics of findings, recognized by their words, let
//! this run be compared with the text of an earlier verdict.

use std::cmp::Reverse;
use std::ops::Range;

use quorate_diagnostics::text::one_line;
use serde_json::{Value, json};

use super::document::Document;
use super::lens_review::{PeerAnswer, join_names};
use crate::executor::rubric::lens_review::{PeerFinding, overlaps};

/// From this many blocks on, a verdict other than HOLD needs a reason.
const HOLD_BLOCKS: usize = 3;
/// After this many HOLDs in a row on the same topic the next one is not downgraded.
const HOLD_REPEATS: usize = 2;

/// The parsed input of the adjudicator.
pub(super) struct AdjudicationInput<'a> {
    pub(super) document: &'a Document<'a>,
    /// The last answers, in roster order.
    pub(super) last: Vec<PeerAnswer>,
    /// The first answers, for members that are missing from the last.
    pub(super) first: Vec<PeerAnswer>,
    /// The text of the prior verdicts; may be empty.
    pub(super) priors: &'a str,
    pub(super) artifact: &'a str,
}

/// An answer that fits the adjudicator's schema.
pub(super) fn adjudicate(input: AdjudicationInput<'_>) -> Value {
    let counted: Vec<CountedAnswer> =
        input.last.iter().map(|last| CountedAnswer::of(last, &input.first)).collect();
    let blocking: Vec<&CountedAnswer> = counted.iter().filter(|member| member.answer.blocks()).collect();
    let irreducible = blocking.iter().filter(|member| member.answer.irreducible).count();
    let answered = counted.iter().any(|member| member.answer.answered());
    let items = merge(input.document, counted.iter().map(|member| member.answer));
    let priors = PriorVerdicts::read(input.priors);
    let current = run_topics(&blocking, &counted);
    let repeats = priors.repeated_holds(input.artifact, &current);
    let verdict = match blocking.len() {
        _ if !answered => "HOLD",
        HOLD_BLOCKS.. if irreducible > 0 => "HOLD",
        HOLD_BLOCKS.. if repeats.is_some_and(|times| times >= HOLD_REPEATS) => "HOLD",
        0 => "SHIP",
        _ => "REVISE",
    };
    let mut reasons = vec![describe_blocks(&blocking, &counted)];
    reasons.extend(describe_convergence(&items));
    reasons.extend(priors.summary(&current));
    reasons.push(describe_decision(verdict, blocking.len(), irreducible, answered, !items.is_empty()));
    reasons.push("Counted by rule, no model was asked; nobody judged the content.".to_owned());
    json!({
        "verdict": verdict,
        "reasoning": reasons.join(" "),
        "revision_brief": numbered(&items),
        "dissent_summary": dissent_summary(&blocking, &counted),
    })
}

/// A member and the answer that counts for it.
struct CountedAnswer<'a> {
    answer: &'a PeerAnswer,
    /// Whether the second answer is missing and the first one's block counts in its place.
    is_first_answer: bool,
}

impl<'a> CountedAnswer<'a> {
    fn of(last: &'a PeerAnswer, first: &'a [PeerAnswer]) -> Self {
        let earlier = first
            .iter()
            .find(|answer| answer.id == last.id)
            .filter(|answer| !last.answered() && answer.blocks());
        CountedAnswer { answer: earlier.unwrap_or(last), is_first_answer: earlier.is_some() }
    }
}

/// The topics of the blocking members' findings, else of all members' findings.
fn run_topics(blocking: &[&CountedAnswer<'_>], counted: &[CountedAnswer<'_>]) -> Vec<&'static str> {
    let members: Vec<&CountedAnswer> =
        if blocking.is_empty() { counted.iter().collect() } else { blocking.to_vec() };
    let issues: Vec<&str> = members
        .iter()
        .flat_map(|member| &member.answer.findings)
        .map(|finding| finding.issue.as_str())
        .collect();
    topics_in(&issues.join("\n")).iter().map(|topic| topic.name).collect()
}

fn describe_blocks(blocking: &[&CountedAnswer<'_>], counted: &[CountedAnswer<'_>]) -> String {
    let missing: Vec<&str> = counted
        .iter()
        .filter(|member| member.is_first_answer || !member.answer.answered())
        .map(|member| member.answer.id.as_str())
        .collect();
    let mut text = match blocking {
        [] => "Nobody blocks.".to_owned(),
        _ => {
            let each: Vec<String> = blocking.iter().map(|member| describe_block(member)).collect();
            format!("{} of {} block: {}.", blocking.len(), counted.len(), each.join("; "))
        }
    };
    if !missing.is_empty() {
        text.push_str(&format!(" Without a last answer: {}.", join_names(&missing)));
    }
    text
}

fn describe_block(member: &CountedAnswer<'_>) -> String {
    let issues: Vec<&str> = member.answer.findings.iter().map(|finding| finding.issue.as_str()).collect();
    let topics: Vec<&str> = topics_in(&issues.join("\n")).iter().map(|topic| topic.name).collect();
    let how = if member.answer.irreducible { "irreducibly " } else { "" };
    let when = if member.is_first_answer { " in its first answer" } else { "" };
    let count = match issues.len() {
        0 => "no finding named".to_owned(),
        1 => "1 finding".to_owned(),
        many => format!("{many} findings"),
    };
    match (topics.as_slice(), member.answer.findings.first()) {
        ([], None) => format!("{} {how}({count}){when}", member.answer.id),
        ([], Some(first)) => format!("{} {how}on “{}”{when} ({count})", member.answer.id, first.quote),
        (topics, _) => format!("{} {how}on {}{when} ({count})", member.answer.id, join_names(topics)),
    }
}

fn describe_convergence(items: &[BriefItem<'_>]) -> Option<String> {
    let shared = items.iter().filter(|item| item.members.len() > 1).max_by_key(|item| item.members.len())?;
    let count = items.iter().filter(|item| item.members.len() > 1).count();
    let line = shared.line.map(|line| format!("line {line}")).unwrap_or_else(|| "the text".to_owned());
    let more =
        if count > 1 { format!(", and {} more shared by two or more", count - 1) } else { String::new() };
    Some(format!("{} converged on “{}” ({line}){more}.", join_names(&shared.members), shared.quote))
}

fn describe_decision(
    verdict: &str,
    blocks: usize,
    irreducible: usize,
    answered: bool,
    found: bool,
) -> String {
    match (verdict, blocks) {
        _ if !answered => "Nobody answered, and silence is no consent: HOLD.".to_owned(),
        ("HOLD", _) if irreducible > 0 => {
            format!("{irreducible} of {blocks} blocks are on what no edit repairs: HOLD.")
        }
        ("HOLD", _) => format!(
            "{blocks} blocks that edits could repair would be REVISE, but asking for the same edits has not helped: HOLD."
        ),
        ("REVISE", HOLD_BLOCKS..) => {
            format!(
                "{blocks} blocks would be HOLD; {blocks} of them name lines that an edit repairs, so it is brought down to REVISE with the brief."
            )
        }
        ("REVISE", 1) => "One block is enough to ask for a revision: REVISE.".to_owned(),
        ("REVISE", _) => format!("{blocks} blocks are enough to ask for a revision: REVISE."),
        _ if found => "What was found is not enough to block: SHIP.".to_owned(),
        _ => "No rule matched: SHIP.".to_owned(),
    }
}

/// Which members disagree; `None` if all agree.
fn dissent_summary(blocking: &[&CountedAnswer<'_>], counted: &[CountedAnswer<'_>]) -> Option<String> {
    let passing: Vec<String> = counted
        .iter()
        .filter(|member| member.answer.answered() && !member.answer.blocks())
        .map(|member| match member.answer.score {
            Some(score) => format!("{} (score {score})", member.answer.id),
            None => member.answer.id.clone(),
        })
        .collect();
    if blocking.is_empty() || passing.is_empty() {
        return None;
    }
    let passing: Vec<&str> = passing.iter().map(String::as_str).collect();
    let blocking: Vec<&str> = blocking.iter().map(|member| member.answer.id.as_str()).collect();
    Some(format!("{} would let it go; {} would not.", join_names(&passing), join_names(&blocking)))
}

/// How much of a quote an item shows, in characters.
const MAX_QUOTE_CHARS: usize = 48;
/// How many items a brief lists.
const MAX_BRIEF_ITEMS: usize = 20;

/// One change, and the members that ask for it.
struct BriefItem<'a> {
    /// The words that it concerns, the shortest of the given quotes.
    quote: &'a str,
    line: Option<usize>,
    /// The members that raised it, in roster order.
    members: Vec<&'a str>,
    blocked: bool,
    span: Option<Range<usize>>,
    issues: Vec<&'a str>,
    fixes: Vec<&'a str>,
}

/// Merges the findings of all members: blocking ones first, then by number of members, then in the order of the text.
fn merge<'a>(document: &Document<'_>, members: impl Iterator<Item = &'a PeerAnswer>) -> Vec<BriefItem<'a>> {
    let mut items: Vec<BriefItem<'a>> = Vec::new();
    for member in members {
        for finding in &member.findings {
            match items.iter_mut().find(|item| item.is_same_place(document, finding)) {
                Some(item) => item.add(member, finding),
                None => items.push(BriefItem::new(member, finding)),
            }
        }
    }
    items.sort_by_key(|item| {
        (!item.blocked, Reverse(item.members.len()), item.line, item.span.as_ref().map(|span| span.start))
    });
    items
}

/// The items as a numbered list.
fn numbered(items: &[BriefItem<'_>]) -> Option<String> {
    let mut lines: Vec<String> = items
        .iter()
        .take(MAX_BRIEF_ITEMS)
        .enumerate()
        .map(|(at, item)| format!("{}. {}", at + 1, item.to_line()))
        .collect();
    if items.len() > MAX_BRIEF_ITEMS {
        lines.push(format!(
            "{}. And {} smaller ones, which the members' answers list.",
            MAX_BRIEF_ITEMS + 1,
            items.len() - MAX_BRIEF_ITEMS
        ));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

impl<'a> BriefItem<'a> {
    fn new(member: &'a PeerAnswer, finding: &'a PeerFinding) -> Self {
        let mut item = BriefItem {
            quote: &finding.quote,
            line: finding.line,
            members: Vec::new(),
            blocked: false,
            span: finding.span.clone(),
            issues: Vec::new(),
            fixes: Vec::new(),
        };
        item.add(member, finding);
        item
    }

    fn is_same_place(&self, document: &Document<'_>, finding: &PeerFinding) -> bool {
        match (&self.span, &finding.span) {
            // A quoted sentence and a word in it are one item only if they are of similar size: a sentence that is too
            // long and a phrase in it need two edits.
            (Some(a), Some(b)) => {
                overlaps(a, b)
                    && document.line_of(a.start) == document.line_of(b.start)
                    && 2 * a.len().max(b.len()) <= 5 * a.len().min(b.len())
            }
            (None, None) => self.quote == finding.quote && self.line == finding.line,
            _ => false,
        }
    }

    fn add(&mut self, member: &'a PeerAnswer, finding: &'a PeerFinding) {
        if !self.members.contains(&member.id.as_str()) {
            self.members.push(&member.id);
        }
        if finding.quote.len() < self.quote.len() {
            self.quote = &finding.quote;
        }
        for (list, text) in [(&mut self.issues, &finding.issue), (&mut self.fixes, &finding.fix)] {
            if !text.is_empty() && !list.contains(&text.as_str()) {
                list.push(text);
            }
        }
        self.blocked |= member.blocks();
    }

    fn to_line(&self) -> String {
        let place = match (self.line, self.quote.is_empty()) {
            (Some(line), false) => format!("Line {line}, “{}”: ", short(self.quote)),
            (Some(line), true) => format!("Line {line}: "),
            (None, false) => format!("“{}”: ", short(self.quote)),
            (None, true) => String::new(),
        };
        // The findings say what is wrong; the brief says what to do.
        let texts = if self.fixes.is_empty() { &self.issues } else { &self.fixes };
        // One item, one line: a brief is a list.
        let texts = one_line(&texts.join(" "));
        format!("{place}{texts} ({})", join_names(&self.members))
    }
}

/// A quote, shortened to what a reader needs to find the place.
fn short(quote: &str) -> String {
    match quote.char_indices().nth(MAX_QUOTE_CHARS) {
        None => quote.to_owned(),
        Some((end, _)) => format!("{}…", quote[..end].trim_end()),
    }
}

/// Earlier verdicts, newest first.
struct PriorVerdicts(Vec<PriorVerdict>);

struct PriorVerdict {
    artifact: String,
    verdict: String,
    topics: Vec<&'static str>,
}

impl PriorVerdicts {
    /// Reads the part. Text in another format yields no verdicts.
    fn read(text: &str) -> PriorVerdicts {
        let Ok(Value::Array(all)) = serde_json::from_str(text) else { return PriorVerdicts(Vec::new()) };
        let prior = |value: &Value| {
            let string = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            let verdict =
                [string("verdict"), string("final_verdict")].into_iter().find(|word| !word.is_empty())?;
            let text = format!("{}\n{}", string("reasoning"), string("revision_brief"));
            Some(PriorVerdict {
                artifact: string("artifact"),
                verdict: verdict.to_uppercase(),
                topics: topics_in(&text).iter().map(|topic| topic.name).collect(),
            })
        };
        PriorVerdicts(all.iter().filter_map(prior).collect())
    }

    /// How many of the newest verdicts in a row were HOLD on this artifact and on a current topic; `None` if the newest was
    /// not. Verdicts on other artifacts do not show whether a repetition helps.
    fn repeated_holds(&self, artifact: &str, current: &[&'static str]) -> Option<usize> {
        let same_artifact = self.0.iter().take_while(|prior| prior.artifact == artifact).count();
        self.repeated_topics(current).map(|(times, _)| times.min(same_artifact)).filter(|times| *times > 0)
    }

    /// A sentence about the verdicts and recurring topics; `None` without verdicts.
    fn summary(&self, current: &[&'static str]) -> Option<String> {
        let newest = self.0.first()?;
        if let Some((times, common)) = self.repeated_topics(current).filter(|(_, common)| !common.is_empty())
        {
            let which = if times == 1 {
                "The last verdict on this type was".to_owned()
            } else {
                format!("The last {times} verdicts on this type were")
            };
            return Some(format!("{which} HOLD for {}; the same again.", join_names(&common)));
        }
        let again: Vec<&str> =
            newest.topics.iter().copied().filter(|topic| current.contains(topic)).collect();
        let about = if again.is_empty() {
            String::new()
        } else {
            format!(", and {} came up again", join_names(&again))
        };
        let several = if self.0.len() == 1 {
            "One earlier verdict on this type was read".to_owned()
        } else {
            format!("{} earlier verdicts on this type were read", self.0.len())
        };
        Some(format!("{several}; the last was {}{about}.", newest.verdict))
    }

    fn repeated_topics(&self, current: &[&'static str]) -> Option<(usize, Vec<&'static str>)> {
        let mut common: Option<(usize, Vec<&'static str>)> = None;
        for prior in self.0.iter().take_while(|prior| prior.verdict == "HOLD") {
            let before = common.as_ref().map_or(current, |(_, topics)| topics.as_slice());
            let both: Vec<&'static str> =
                before.iter().copied().filter(|topic| prior.topics.contains(topic)).collect();
            if both.is_empty() {
                break;
            }
            common = Some((common.map_or(1, |(times, _)| times + 1), both));
        }
        common
    }
}

/// A topic: its name, and the words that indicate it.
pub(super) struct Topic {
    /// This name in a text also indicates the topic.
    pub(super) name: &'static str,
    cues: &'static [&'static str],
}

static TOPICS: &[Topic] = &[
    Topic { name: "boasting", cues: &["boast"] },
    Topic {
        name: "unsourced claims",
        cues: &[
            "without a source",
            "unsourced",
            "no source",
            "citation",
            "names nobody",
            "no comparison",
            "rests on nothing",
        ],
    },
    Topic {
        name: "figures without a base",
        cues: &["does not say compared", "does not say of how many", "baseline"],
    },
    Topic { name: "absolutes", cues: &["absolute", "allows no exception", "overclaim", "overstate"] },
    Topic { name: "survivorship", cues: &["survivor", "those who stayed"] },
    Topic { name: "causal leaps", cues: &["causal", "makes a cause", "post hoc"] },
    Topic {
        name: "a missing other side",
        cues: &["counter-position", "what speaks against", "one-sided", "could turn out wrong"],
    },
    Topic { name: "tired phrases", cues: &["says little", "banned phrase", "hype", "cliché", "buzzword"] },
    Topic { name: "pivots", cues: &["knocks down"] },
    Topic { name: "long sentences", cues: &["a sentence of", "sentence length"] },
    Topic { name: "shouting", cues: &["shouts", "exclamation"] },
    Topic {
        name: "lasting promises",
        cues: &["promise", "binds for ever", "takes on a risk", "hold you to", "irreversible"],
    },
    Topic { name: "a missing call to action", cues: &["call to action", "asks nothing of them"] },
    Topic { name: "the stated goals", cues: &["stated goal", "non-goal", "reason to stop"] },
];

/// The topics that a text touches, in a fixed order.
pub(super) fn topics_in(text: &str) -> Vec<&'static Topic> {
    let text = text.to_lowercase();
    let touches =
        |topic: &&Topic| text.contains(topic.name) || topic.cues.iter().any(|word| text.contains(word));
    TOPICS.iter().filter(touches).collect()
}

#[cfg(test)]
mod tests {
    use super::super::lens_review;
    use super::*;

    const TEXT: &str = "Errors dropped by 40% and results are guaranteed.\n\nIt is free forever.\n";

    fn member(id: &str, would_block: bool, irreducible: bool, quote: &str) -> Value {
        let findings = json!([{"quote": quote, "issue": "It is a claim without a source near it.", "fix": "Link it.", "line": 1}]);
        json!({"deliberator": id, "status": "answered", "would_block": would_block, "irreducible": irreducible, "score": 2, "findings": findings})
    }

    fn adjudicated(last: &Value, first: &Value, priors: &Value) -> Value {
        let document = Document::parse("", TEXT);
        let read = |value: &Value| lens_review::read_peer_answers(&value.to_string(), &document);
        adjudicate(AdjudicationInput {
            document: &document,
            last: read(last),
            first: read(first),
            priors: &priors.to_string(),
            artifact: "a.md",
        })
    }

    fn verdict(blocks: usize, irreducible: usize, priors: &Value) -> Value {
        let members: Vec<Value> =
            (0..4).map(|n| member(&format!("m{n}"), n < blocks, n < irreducible, "dropped by 40%")).collect();
        adjudicated(&json!(members), &json!([]), priors)["verdict"].clone()
    }

    #[test]
    fn the_rule_over_all_counts() {
        // C3, C9
        let expect = |blocks: usize, irreducible: usize| match (blocks, irreducible) {
            (3.., 1..) => "HOLD",
            (0, _) => "SHIP",
            _ => "REVISE",
        };
        for blocks in 0..=4 {
            for irreducible in 0..=blocks {
                assert_eq!(
                    verdict(blocks, irreducible, &json!([])),
                    expect(blocks, irreducible),
                    "{blocks} {irreducible}"
                );
            }
        }
    }

    #[test]
    fn two_holds_in_a_row_for_the_same_make_the_third() {
        let hold = json!({"verdict": "HOLD", "artifact": "a.md", "reasoning": "Unsourced claims."});
        let other = json!({"verdict": "HOLD", "artifact": "a.md", "reasoning": "Shouting."});
        let elsewhere = json!({"verdict": "HOLD", "artifact": "b.md", "reasoning": "Unsourced claims."});
        assert_eq!(verdict(3, 0, &json!([elsewhere, elsewhere])), "REVISE");
        assert_eq!(verdict(3, 0, &json!([hold, hold])), "HOLD");
        assert_eq!(verdict(3, 0, &json!([hold, other])), "REVISE");
        assert_eq!(
            verdict(3, 0, &json!([hold, {"verdict": "REVISE", "reasoning": "Unsourced claims."}, hold])),
            "REVISE"
        );
        assert_eq!(verdict(2, 0, &json!([hold, hold])), "REVISE");
    }

    #[test]
    fn reasoning_is_specific_and_the_brief_is_merged() {
        let last = json!([
            member("skeptic", true, false, "dropped by 40%"),
            member("evidence", true, true, "by 40%"),
            member("voice", false, false, "free")
        ]);
        let answer = adjudicated(&last, &json!([]), &json!([{"verdict": "hold", "reasoning": "unsourced"}]));
        let reasoning = answer["reasoning"].as_str().unwrap_or_default();
        for reason in [
            "2 of 3 block",
            "evidence irreducibly on unsourced claims",
            "skeptic and evidence converged",
            "was HOLD",
            "no model was asked",
        ] {
            assert!(reasoning.contains(reason), "{reason}: {reasoning}");
        }
        let brief = answer["revision_brief"].as_str().unwrap_or_default();
        assert_eq!(brief.lines().count(), 2, "{brief}");
        assert!(answer["dissent_summary"].as_str().is_some_and(|summary| summary.contains("voice")));
    }

    #[test]
    fn a_missing_last_answer_leaves_the_first_block_standing() {
        // C4
        let gone = json!({"deliberator": "skeptic", "status": "timed_out"});
        let last = json!([gone, member("evidence", false, false, "free")]);
        let first = json!([member("skeptic", true, false, "40%")]);
        assert_eq!(adjudicated(&last, &first, &json!([]))["verdict"], "REVISE");
        assert_eq!(adjudicated(&json!([gone]), &json!([]), &json!([]))["verdict"], "HOLD");
        assert_eq!(adjudicated(&json!([]), &json!([]), &json!([]))["verdict"], "HOLD");
    }

    #[test]
    fn nothing_to_say_is_no_brief() {
        let calm = json!([{"deliberator": "a", "status": "answered", "would_block": false, "findings": []}]);
        let answer = adjudicated(&calm, &json!([]), &json!("not even a list"));
        assert_eq!(
            (&answer["verdict"], &answer["revision_brief"], &answer["dissent_summary"]),
            (&json!("SHIP"), &Value::Null, &Value::Null)
        );
    }
}

#[cfg(test)]
mod priors_tests {
    use super::*;

    #[test]
    fn what_is_said_of_them() {
        let say = |text: &str| PriorVerdicts::read(text).summary(&["unsourced claims"]);
        assert_eq!(say("[]"), None);
        assert_eq!(say("nonsense"), None);
        let hold = r#"{"verdict": "hold", "reasoning": "no source"}"#;
        assert_eq!(
            say(&format!("[{hold}, {hold}]")).as_deref(),
            Some("The last 2 verdicts on this type were HOLD for unsourced claims; the same again.")
        );
        assert_eq!(
            say(r#"[{"final_verdict": "REVISE", "revision_brief": "unsourced"}]"#).as_deref(),
            Some(
                "One earlier verdict on this type was read; the last was REVISE, and unsourced claims came up again."
            )
        );
    }
}

#[cfg(test)]
mod topics_tests {
    use super::*;

    fn names(text: &str) -> Vec<&'static str> {
        topics_in(text).iter().map(|topic| topic.name).collect()
    }

    #[test]
    fn topics_are_read_from_anybodys_words() {
        assert_eq!(
            names("Unsourced numbers again, and too much hype."),
            ["unsourced claims", "tired phrases"]
        );
        assert_eq!(names("“forever” binds for ever."), ["lasting promises"]);
        assert!(names("evidence-calibration and strategy-stakes").is_empty());
    }
}
