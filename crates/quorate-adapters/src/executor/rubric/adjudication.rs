//! The adjudicator: counts blocks, and lists the members' findings as one brief.
//!
//! Three blocks with an irreducible one among them are HOLD. Three reducible ones are REVISE, unless the last two verdicts
//! on this file were HOLD. One or two blocks are REVISE, none is SHIP. A member without a second answer counts by its first
//! one's block (C4).

use quorate_diagnostics::text::{one_line, shortened};
use quorate_protocol::Json;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Number, json};

/// From this many blocks on, a verdict other than HOLD needs a reason.
const HOLD_BLOCKS: usize = 3;
/// After this many HOLDs of a file in a row the next one is not downgraded.
const HOLD_REPEATS: usize = 2;
/// How much of a quote an item of the brief shows, in characters.
const MAX_QUOTE_CHARS: usize = 48;
/// How many items a brief lists.
const MAX_ITEMS: usize = 20;

/// A member's answer, as the protocol shows it to the others.
#[derive(Clone, Deserialize)]
struct Member {
    #[serde(rename = "deliberator")]
    id: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    would_block: bool,
    #[serde(default)]
    irreducible: bool,
    score: Option<Number>,
    #[serde(default)]
    findings: Vec<Finding>,
    /// Whether its first answer counts, since it has no other.
    #[serde(skip)]
    is_first: bool,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct Finding {
    quote: String,
    issue: String,
    fix: String,
    line: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Prior {
    verdict: String,
    final_verdict: String,
    artifact: String,
}

impl Member {
    fn answered(&self) -> bool {
        self.status == "answered"
    }

    fn blocks(&self) -> bool {
        self.answered() && self.would_block
    }
}

impl Prior {
    fn verdict(&self) -> String {
        [&*self.verdict, &self.final_verdict].concat().to_uppercase()
    }
}

/// An answer that fits the adjudicator's schema. `last` and `first` are the members' answers of the last and the first
/// round, `priors` the earlier verdicts, each a JSON array; what is not of that form counts as none.
pub(super) fn adjudicate(artifact: &str, last: &str, first: &str, priors: &str) -> Json {
    let (first, priors): (Vec<Member>, Vec<Prior>) = (objects(first), objects(priors));
    let mut members: Vec<Member> = objects(last);
    for member in members.iter_mut().filter(|member| !member.answered()) {
        match first.iter().find(|earlier| earlier.id == member.id && earlier.blocks()) {
            Some(earlier) => *member = Member { is_first: true, ..earlier.clone() },
            None => member.findings.clear(),
        }
    }
    let blocking: Vec<&Member> = members.iter().filter(|member| member.blocks()).collect();
    let (blocks, irreducible) = (blocking.len(), blocking.iter().filter(|member| member.irreducible).count());
    let is_hold = |prior: &&Prior| prior.artifact == artifact && prior.verdict().starts_with("HOLD");
    let repeated = priors.iter().take_while(is_hold).count() >= HOLD_REPEATS;
    let (verdict, decision) = match blocks {
        _ if !members.iter().any(Member::answered) => {
            ("HOLD", "No reviewer answered, and silence is not consent: HOLD.".to_owned())
        }
        HOLD_BLOCKS.. if irreducible > 0 => {
            ("HOLD", format!("{irreducible} of {blocks} blocks are on what no edit repairs: HOLD."))
        }
        HOLD_BLOCKS.. if repeated => (
            "HOLD",
            format!("{blocks} blocks, and asking for edits has not helped the last two times: HOLD."),
        ),
        HOLD_BLOCKS.. => {
            ("REVISE", format!("{blocks} blocks would be HOLD; edits repair what all of them name: REVISE."))
        }
        0 => ("SHIP", "The findings are not enough to block: SHIP.".to_owned()),
        1 => ("REVISE", "One block is enough to ask for a revision: REVISE.".to_owned()),
        _ => ("REVISE", format!("{blocks} blocks are enough to ask for a revision: REVISE.")),
    };
    let mut reasons = vec![describe_blocks(&blocking, members.len())];
    let missing = members.iter().filter(|member| member.is_first || !member.answered());
    let missing: Vec<&str> = missing.map(|member| &*member.id).collect();
    if !missing.is_empty() {
        reasons.push(format!("Without a last answer: {}.", join_names(&missing)));
    }
    if let Some(newest) = priors.first() {
        let (count, verdict) = (priors.len(), newest.verdict());
        reasons.push(format!("{count} earlier verdicts on this type were read; the last was {verdict}."));
    }
    reasons.push(decision);
    reasons.push("Counted by rule, no model was asked; nobody judged the content.".to_owned());
    json!({
        "verdict": verdict,
        "reasoning": reasons.join(" "),
        "revision_brief": brief(&members),
        "dissent_summary": dissent(&members),
    })
}

fn objects<T: DeserializeOwned>(text: &str) -> Vec<T> {
    let list: Vec<Json> = serde_json::from_str(text).unwrap_or_default();
    list.into_iter().filter(Json::is_object).filter_map(|one| serde_json::from_value(one).ok()).collect()
}

fn describe_blocks(blocking: &[&Member], members: usize) -> String {
    let each = blocking.iter().map(|member| {
        let how = if member.irreducible { " irreducibly" } else { "" };
        let when = if member.is_first { " in its first answer" } else { "" };
        let what = match &*member.findings {
            [] => String::new(),
            [only] => format!(" on “{}”", short(&only.quote)),
            [first, more @ ..] => format!(" on “{}” and {} more", short(&first.quote), more.len()),
        };
        format!("{}{how}{what}{when}", member.id)
    });
    match &*each.collect::<Vec<_>>().join("; ") {
        "" => "Nobody blocks.".to_owned(),
        each => format!("{} of {members} block: {each}.", blocking.len()),
    }
}

/// Which members disagree; `None` if all agree.
fn dissent(members: &[Member]) -> Option<String> {
    let (blocking, passing): (Vec<&Member>, Vec<&Member>) =
        members.iter().filter(|member| member.answered()).partition(|member| member.would_block);
    let scored = |member: &&Member| match &member.score {
        None => member.id.clone(),
        Some(score) => format!("{} (score {score})", member.id),
    };
    let passing: Vec<String> = passing.iter().map(scored).collect();
    let passing: Vec<&str> = passing.iter().map(String::as_str).collect();
    let blocking: Vec<&str> = blocking.iter().map(|member| &*member.id).collect();
    let differ = !blocking.is_empty() && !passing.is_empty();
    differ.then(|| format!("{} would let it go; {} would not.", join_names(&passing), join_names(&blocking)))
}

/// One change, and the members that ask for it.
struct Item<'a> {
    line: Option<u64>,
    quote: &'a str,
    members: Vec<&'a str>,
    blocked: bool,
    fixes: Vec<&'a str>,
}

/// The findings of all members as a numbered list: blocking ones first, then in the order of the text. Findings on one
/// line of which one's quote contains the other's are one item.
fn brief(members: &[Member]) -> Option<String> {
    let mut items: Vec<Item<'_>> = Vec::new();
    let findings = members.iter().flat_map(|member| member.findings.iter().map(move |one| (member, one)));
    for (member, Finding { quote, issue, fix, line }) in findings {
        let (quote, line) = (quote.trim(), *line);
        let same =
            |item: &Item<'_>| item.line == line && (item.quote.contains(quote) || quote.contains(item.quote));
        let at = items.iter().position(same).unwrap_or(items.len());
        if at == items.len() {
            items.push(Item { line, quote, members: Vec::new(), blocked: false, fixes: Vec::new() });
        }
        let item = &mut items[at];
        if quote.len() < item.quote.len() {
            item.quote = quote;
        }
        if !item.members.contains(&&*member.id) {
            item.members.push(&member.id);
        }
        // The findings say what is wrong; the brief says what to do.
        let fix = [fix.trim(), issue.trim()].into_iter().find(|text| !text.is_empty());
        item.fixes.extend(fix.filter(|fix| !item.fixes.contains(fix)));
        item.blocked |= member.blocks();
    }
    items.sort_by_key(|item| (!item.blocked, item.line));
    let lines = items.iter().take(MAX_ITEMS).enumerate().map(|(at, item)| {
        let quote =
            if item.quote.is_empty() { String::new() } else { format!(", “{}”", short(item.quote)) };
        let line = item.line.map_or("The text".to_owned(), |line| format!("Line {line}"));
        // One item, one line: a brief is a list.
        let fixes = one_line(&item.fixes.join(" "));
        format!("{}. {line}{quote}: {fixes} ({})", at + 1, join_names(&item.members))
    });
    let mut lines: Vec<String> = lines.collect();
    if items.len() > MAX_ITEMS {
        let more = items.len() - MAX_ITEMS;
        lines.push(format!("{}. And {more} smaller ones, which the members' answers list.", MAX_ITEMS + 1));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// A quote, shortened to what a reader needs to find the place.
fn short(quote: &str) -> String {
    shortened(&one_line(quote), MAX_QUOTE_CHARS)
}

/// Joins names in a sentence: `a`, `a and b`, `a, b and c`.
fn join_names(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [name] => (*name).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(id: &str, would_block: bool, irreducible: bool, quote: &str) -> Json {
        let findings = json!([{"quote": quote, "issue": "It is a claim without a source near it.", "fix": "Link it.", "line": 1}]);
        json!({"deliberator": id, "status": "answered", "would_block": would_block, "irreducible": irreducible, "score": 2, "findings": findings})
    }

    fn adjudicated(last: &Json, first: &Json, priors: &Json) -> Json {
        adjudicate("a.md", &last.to_string(), &first.to_string(), &priors.to_string())
    }

    fn verdict(blocks: usize, irreducible: usize, priors: &Json) -> Json {
        let members: Vec<Json> =
            (0..4).map(|n| member(&format!("m{n}"), n < blocks, n < irreducible, "dropped by 40%")).collect();
        adjudicated(&json!(members), &json!([]), priors)["verdict"].clone()
    }

    #[test]
    fn the_rule_over_all_counts() {
        // C3, C9
        for blocks in 0..=4 {
            for irreducible in 0..=blocks {
                let expected = match (blocks, irreducible) {
                    (3.., 1..) => "HOLD",
                    (0, _) => "SHIP",
                    _ => "REVISE",
                };
                assert_eq!(verdict(blocks, irreducible, &json!([])), expected, "{blocks} {irreducible}");
            }
        }
    }

    #[test]
    fn two_holds_of_a_file_in_a_row_make_the_third() {
        let hold = json!({"verdict": "HOLD", "artifact": "a.md"});
        let elsewhere = json!({"verdict": "HOLD", "artifact": "b.md"});
        let revised = json!({"final_verdict": "revise", "artifact": "a.md"});
        assert_eq!(verdict(3, 0, &json!([hold, hold])), "HOLD");
        assert_eq!(verdict(3, 0, &json!([elsewhere, elsewhere])), "REVISE");
        assert_eq!(verdict(3, 0, &json!([hold, revised, hold])), "REVISE");
        assert_eq!(verdict(2, 0, &json!([hold, hold])), "REVISE");
    }

    #[test]
    fn the_brief_is_merged_and_the_reasons_are_specific() {
        let last = json!([
            member("skeptic", true, false, "dropped by 40%"),
            member("evidence", true, true, "by 40%"),
            member("voice", false, false, "free")
        ]);
        let answer = adjudicated(&last, &json!([]), &json!([{"verdict": "hold"}]));
        let reasoning = answer["reasoning"].as_str().unwrap_or_default();
        for reason in
            ["2 of 3 block", "evidence irreducibly on “by 40%”", "the last was HOLD", "no model was asked"]
        {
            assert!(reasoning.contains(reason), "{reason}: {reasoning}");
        }
        assert_eq!(
            answer["revision_brief"],
            "1. Line 1, “by 40%”: Link it. (skeptic and evidence)\n2. Line 1, “free”: Link it. (voice)"
        );
        assert_eq!(
            answer["dissent_summary"],
            "voice (score 2) would let it go; skeptic and evidence would not."
        );
    }

    #[test]
    fn a_missing_last_answer_leaves_the_first_block_standing() {
        // C4
        let gone = json!({"deliberator": "skeptic", "status": "timed_out"});
        let last = json!([gone, member("evidence", false, false, "free")]);
        let first = json!([member("skeptic", true, false, "40%")]);
        assert_eq!(adjudicated(&last, &first, &json!([]))["verdict"], "REVISE");
        for (last, first) in
            [(json!([gone]), json!([])), (json!([]), json!("x")), (json!([7, {}]), json!({}))]
        {
            let answer = adjudicated(&last, &first, &json!("not even a list"));
            assert_eq!((&answer["verdict"], &answer["revision_brief"]), (&json!("HOLD"), &Json::Null));
        }
    }
}
