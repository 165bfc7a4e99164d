//! The rubric as a participant of a conversation (AIP-48): it reviews the last turn as it reviews a draft, through the
//! lens that its id or role names, and posts the few most serious findings.
//!
//! Its turn mentions no participant: at-signs are removed from quotes, so that repeating a name selects no one.

use quorate_kernel::conversation::ConversationContext;
use quorate_kernel::ports::executor::Failure;
use quorate_protocol::{Json, Part, PartKind};

use super::checks::{CheckFinding, Criteria, Reading};
use super::document::Document;
use super::finding::Lens;
use super::scope;

/// How many findings a turn lists.
const MAX_FINDINGS: usize = 3;
/// The most words of a line that only mentions a participant: "@Reviewer, what do you make of this?"
const MAX_MENTION_WORDS: usize = 12;
const NO_FINDINGS: &str = "I have read it, and there is nothing in it that I would change.";

/// Replies to the last turn.
///
/// # Errors
/// When the parts contain no turn.
pub(super) fn reply(
    lens: Lens,
    conversation: Option<&ConversationContext>,
    parts: &[Part],
    criteria: &Criteria<'_>,
) -> Result<String, Failure> {
    let text = match conversation.and_then(ConversationContext::trigger) {
        Some(turn) => turn.content.to_string(),
        None => last_turn(parts).ok_or_else(|| Failure::failed("the invocation has no turn to answer"))?,
    };
    let document = Document::parse("", without_mention_line(&text));
    if let Some(why) = scope::obstacle("", &document) {
        return Ok(format!("I cannot judge this: {why}."));
    }
    let reading = Reading::new(&document, criteria);
    let mut raised = reading.run(lens);
    raised.sort_by_key(|check_finding| {
        (std::cmp::Reverse(check_finding.finding.points()), check_finding.finding.span.start)
    });
    let mut turn = compose(&document, &raised).replace('@', "");
    let unread = scope::unread_places(&document, &reading.suppressions);
    if !unread.is_empty() {
        turn.push_str(&format!("\n\nI did not judge {}.", unread.join(", ")));
    }
    Ok(turn)
}

/// The text without a first line that only mentions a participant, if more text follows.
fn without_mention_line(text: &str) -> &str {
    match text.trim_start().split_once('\n') {
        Some((call, rest))
            if call.starts_with('@')
                && call.split_whitespace().count() <= MAX_MENTION_WORDS
                && !rest.trim().is_empty() =>
        {
            rest
        }
        _ => text,
    }
}

/// The content of the last turn among the parts.
fn last_turn(parts: &[Part]) -> Option<String> {
    let part = parts.iter().find(|part| part.kind == PartKind::Turns)?;
    let turns: Json = serde_json::from_str(&part.text).ok()?;
    Some(turns.as_array()?.last()?.get("content")?.as_str()?.to_owned())
}

/// The text of the turn; `raised` is sorted by weight.
fn compose(document: &Document<'_>, raised: &[CheckFinding]) -> String {
    let listed = &raised[..raised.len().min(MAX_FINDINGS)];
    let lead = match listed {
        [] => return NO_FINDINGS.to_owned(),
        [finding] => return format!("One thing I would change: {}", finding_line(document, finding)),
        [_, _] => "Two things",
        _ => "Three things",
    };
    let mut text = format!("{lead} I would change:\n");
    for (at, finding) in listed.iter().enumerate() {
        text.push_str(&format!("\n{}. {}", at + 1, finding_line(document, finding)));
    }
    match raised.len() - listed.len() {
        0 => {}
        1 => text.push_str("\n\nI have one more, which weighs no more than these."),
        more => text.push_str(&format!("\n\nI have {more} more, which weigh no more than these.")),
    }
    text
}

fn finding_line(document: &Document<'_>, check_finding: &CheckFinding) -> String {
    let quote = document.one_line(&document.quote(&check_finding.finding.span));
    match quote.is_empty() {
        true => format!("{} {}", check_finding.finding.issue, check_finding.finding.fix),
        false => {
            format!("\u{201c}{quote}\u{201d}. {} {}", check_finding.finding.issue, check_finding.finding.fix)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::executor::rubric::tests::Owned;

    const LAUNCH: &str = include_str!("../../../../../examples/launch-post.md");
    const INCIDENT: &str = include_str!("../../../../../examples/incident-report.md");

    fn said(lens: Lens, text: &str) -> String {
        let turns = json!([{"id": "t1", "participant": "a", "at": "", "content": "before"},
                           {"id": "t2", "participant": "a", "at": "", "content": text}]);
        let parts = [Part::new(PartKind::Turns, "", turns.to_string())];
        reply(lens, None, &parts, &Owned::default().criteria()).expect("it says something")
    }

    #[test]
    fn a_draft_is_answered_with_its_most_serious_findings() {
        let said = said(Lens::General, &format!("@Reviewer, please:\n\n{LAUNCH}"));
        assert!(said.starts_with("Three things I would change:\n\n1. \u{201c}"), "{said}");
        assert!(said.len() < 2_000 && !said.to_lowercase().contains("model"), "{said}");
    }

    #[test]
    fn what_was_not_read_or_judged_is_said() {
        assert_eq!(said(Lens::Voice, INCIDENT), NO_FINDINGS);
        let open = said(Lens::Voice, &format!("{INCIDENT}\n```sh\nlamp\n\nAlways free.\n"));
        assert!(
            open.starts_with(NO_FINDINGS) && open.ends_with(" (a code block that does not end)."),
            "{open}"
        );
        let short = said(Lens::General, "Thanks, that helps!");
        assert_eq!(short, "I cannot judge this: it has only 3 words of prose.");
        assert!(reply(Lens::General, None, &[], &Owned::default().criteria()).is_err());
    }

    #[test]
    fn nobody_is_mentioned() {
        let text = "Studies show that 87% of @Writer readers agree with us on this point, and the others have told us \
                    that they will think about it before the end of the month.";
        let said = said(Lens::General, text);
        assert!(said.contains("Writer") && !said.contains('@'), "{said}");
    }
}
