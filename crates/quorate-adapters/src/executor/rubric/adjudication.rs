//! The adjudicator: counts blocks, and lists the members' findings as one brief.
//!
//! Three blocks with an irreducible one among them are HOLD. Three reducible ones are REVISE, unless the last two verdicts
//! on this file were HOLD. One or two blocks are REVISE, none is SHIP. A member without a second answer counts by its first
//! one's block (C4).

use quorate_diagnostics::text::{one_line, shortened};
use quorate_protocol::Json;
use serde_json::json;

/// From this many blocks on, a verdict other than HOLD needs a reason.
const HOLD_BLOCKS: usize = 3;
/// After this many HOLDs of a file in a row the next one is not downgraded.
const HOLD_REPEATS: usize = 2;
/// How much of a quote an item of the brief shows, in characters.
const MAX_QUOTE_CHARS: usize = 48;
/// How many items a brief lists.
const MAX_ITEMS: usize = 20;

/// An answer that fits the adjudicator's schema. `last` and `first` are the members' answers of the last and the first
/// round, `priors` the earlier verdicts, each a JSON array; what is not of that form counts as none.
pub(super) fn adjudicate(artifact: &str, last: &str, first: &str, priors: &str) -> Json {
    let (last, first, priors) = (objects(last), objects(first), objects(priors));
    let members: Vec<Member<'_>> = last.iter().filter_map(|answer| Member::read(answer, &first)).collect();
    let blocking: Vec<&Member<'_>> = members.iter().filter(|member| member.blocks).collect();
    let irreducible = blocking.iter().filter(|member| text(member.answer, "irreducible") == "true").count();
    let answered = members.iter().any(|member| member.answered);
    let is_hold = |prior: &&Json| {
        let verdict = [text(prior, "verdict"), text(prior, "final_verdict")].concat();
        text(prior, "artifact") == artifact && verdict.to_uppercase().starts_with("HOLD")
    };
    let repeated = priors.iter().take_while(is_hold).count() >= HOLD_REPEATS;
    let blocks = blocking.len();
    let (verdict, decision) = match blocks {
        _ if !answered => ("HOLD", "No reviewer answered, and silence is not consent: HOLD.".to_owned()),
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
    let missing: Vec<&str> =
        members.iter().filter(|member| !member.answered_last).map(|member| member.id).collect();
    if !missing.is_empty() {
        reasons.push(format!("Without a last answer: {}.", join_names(&missing)));
    }
    if let Some(newest) = priors.first() {
        let verdict = [text(newest, "verdict"), text(newest, "final_verdict")].concat().to_uppercase();
        reasons.push(format!(
            "{} earlier verdicts on this type were read; the last was {verdict}.",
            priors.len()
        ));
    }
    reasons.push(decision);
    reasons.push("Counted by rule, no model was asked; nobody judged the content.".to_owned());
    json!({
        "verdict": verdict,
        "reasoning": reasons.join(" "),
        "revision_brief": brief(&members),
        "dissent_summary": dissent(&blocking, &members),
    })
}

/// A member and the answer that counts for it.
struct Member<'a> {
    id: &'a str,
    answer: &'a Json,
    answered: bool,
    answered_last: bool,
    blocks: bool,
}

impl<'a> Member<'a> {
    fn read(last: &'a Json, first: &'a [Json]) -> Option<Member<'a>> {
        let id = last.get("deliberator")?.as_str()?;
        let answers = |answer: &Json| text(answer, "status") == "answered";
        let blocks = |answer: &Json| answers(answer) && text(answer, "would_block") == "true";
        let earlier = first.iter().find(|answer| text(answer, "deliberator") == id && blocks(answer));
        let answer = earlier.filter(|_| !answers(last)).unwrap_or(last);
        Some(Member {
            id,
            answer,
            answered: answers(answer),
            answered_last: answers(last),
            blocks: blocks(answer),
        })
    }

    fn findings(&self) -> impl Iterator<Item = &'a Json> {
        self.answer.get("findings").and_then(Json::as_array).into_iter().flatten()
    }
}

fn objects(text: &str) -> Vec<Json> {
    let list: Vec<Json> = serde_json::from_str(text).unwrap_or_default();
    list.into_iter().filter(Json::is_object).collect()
}

/// A field as text; empty where it is absent.
fn text(object: &Json, key: &str) -> String {
    match object.get(key) {
        Some(Json::String(text)) => text.trim().to_owned(),
        Some(Json::Bool(flag)) => flag.to_string(),
        Some(Json::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

fn describe_blocks(blocking: &[&Member<'_>], members: usize) -> String {
    let each = blocking.iter().map(|member| {
        let how = if text(member.answer, "irreducible") == "true" { " irreducibly" } else { "" };
        let when = if member.answered_last { "" } else { " in its first answer" };
        match (member.findings().count(), member.findings().next()) {
            (1, Some(only)) => format!("{}{how} on “{}”{when}", member.id, short(&text(only, "quote"))),
            (count, Some(first)) => {
                format!(
                    "{}{how} on “{}” and {} more{when}",
                    member.id,
                    short(&text(first, "quote")),
                    count - 1
                )
            }
            (_, None) => format!("{}{how}{when}", member.id),
        }
    });
    let each = each.collect::<Vec<_>>().join("; ");
    if blocking.is_empty() {
        "Nobody blocks.".to_owned()
    } else {
        format!("{} of {members} block: {each}.", blocking.len())
    }
}

/// Which members disagree; `None` if all agree.
fn dissent(blocking: &[&Member<'_>], members: &[Member<'_>]) -> Option<String> {
    let passing: Vec<String> = members
        .iter()
        .filter(|member| member.answered && !member.blocks)
        .map(|member| match text(member.answer, "score") {
            score if score.is_empty() => member.id.to_owned(),
            score => format!("{} (score {score})", member.id),
        })
        .collect();
    let passing: Vec<&str> = passing.iter().map(String::as_str).collect();
    let blocking: Vec<&str> = blocking.iter().map(|member| member.id).collect();
    let differ = !blocking.is_empty() && !passing.is_empty();
    differ.then(|| format!("{} would let it go; {} would not.", join_names(&passing), join_names(&blocking)))
}

/// One change, and the members that ask for it.
struct Item<'a> {
    line: Option<u64>,
    quote: String,
    members: Vec<&'a str>,
    blocked: bool,
    fixes: Vec<String>,
}

/// The findings of all members as a numbered list: blocking ones first, then in the order of the text. Findings on one
/// line of which one's quote contains the other's are one item.
fn brief(members: &[Member<'_>]) -> Option<String> {
    let mut items: Vec<Item<'_>> = Vec::new();
    for member in members {
        for finding in member.findings() {
            let (quote, line) = (text(finding, "quote"), finding.get("line").and_then(Json::as_u64));
            let same = |item: &Item<'_>| {
                item.line == line && (item.quote.contains(&quote) || quote.contains(&item.quote))
            };
            let at = items.iter().position(same).unwrap_or_else(|| {
                items.push(Item {
                    line,
                    quote: quote.clone(),
                    members: Vec::new(),
                    blocked: false,
                    fixes: Vec::new(),
                });
                items.len() - 1
            });
            let item = &mut items[at];
            if quote.len() < item.quote.len() {
                item.quote = quote;
            }
            if !item.members.contains(&member.id) {
                item.members.push(member.id);
            }
            // The findings say what is wrong; the brief says what to do.
            let fix =
                [text(finding, "fix"), text(finding, "issue")].into_iter().find(|text| !text.is_empty());
            item.fixes.extend(fix.filter(|fix| !item.fixes.contains(fix)));
            item.blocked |= member.blocks;
        }
    }
    items.sort_by_key(|item| (!item.blocked, item.line));
    let lines = items.iter().take(MAX_ITEMS).enumerate().map(|(at, item)| {
        let quote =
            if item.quote.is_empty() { String::new() } else { format!(", “{}”", short(&item.quote)) };
        let line = item.line.map_or("The text".to_owned(), |line| format!("Line {line}"));
        // One item, one line: a brief is a list.
        let fixes = one_line(&item.fixes.join(" "));
        format!("{}. {line}{quote}: {fixes} ({})", at + 1, join_names(&item.members))
    });
    let mut lines: Vec<String> = lines.collect();
    if let Some(more) = items.len().checked_sub(MAX_ITEMS).filter(|more| *more > 0) {
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
