//! What a member looks for: the items of its persona's `boundaries`, and of the lists in its body (or in its role's
//! text) below headings such as "Red lines", "Refuses", "Watches for", "Values" and "Asks".

use quorate_protocol::Json;

use crate::executor::rubric::checks::{self, Check};
use crate::executor::rubric::document::{BlockKind, Document};

use super::pattern::Pattern;
use super::stance::Stance;

/// How many items are kept.
const MAX_ITEMS: usize = 200;
/// A longer phrase is cut, in characters.
const MAX_PHRASE: usize = 100;
/// What a heading says of the items below it; the first that fits counts.
const HEADINGS: &[(&[&str], Stance)] = &[
    (&["red line"], Stance::RedLine),
    (&["refuse", "will not", "won't", "never", "says no"], Stance::Refuses),
    (&["redirect"], Stance::Redirects),
    (&["defer", "leaves to"], Stance::Defers),
    (&["ask", "question"], Stance::Asks),
    (
        &["watch", "look", "value", "care", "interest", "topic", "flag", "check", "concern", "focus"],
        Stance::Watches,
    ),
];
/// An item's explanation is behind one of these.
const EXPLAINS: [&str; 6] = [": ", " — ", " – ", " - ", "; ", " ("];

#[derive(Debug)]
pub(super) struct Item {
    /// As its list has it, without what explains it.
    pub(super) phrase: String,
    pub(super) stance: Stance,
    /// What counts as the item: the phrases that it quotes, else its own words.
    pub(super) patterns: Vec<Pattern>,
    /// The check that the item is called after; its findings count in place of words.
    pub(super) check: Option<&'static Check>,
}

/// The items of a persona, or of a role's text without a persona, the heaviest first.
pub(super) fn read(role: &str, persona: Option<&Json>) -> Vec<Item> {
    let mut items = Vec::new();
    let mut add = |written: &str, stance| items.extend(Item::read(written, stance));
    let body = match persona {
        None => role,
        Some(persona) => {
            let list = |key: &str| {
                let list = persona.pointer(key).and_then(Json::as_array);
                list.into_iter().flatten().filter_map(|item| item.get("topic").unwrap_or(item).as_str())
            };
            list("/boundaries/refuses").for_each(|item| add(item, Stance::Refuses));
            list("/boundaries/redirects").for_each(|item| add(item, Stance::Redirects));
            list("/boundaries/defers").for_each(|item| add(item, Stance::Defers));
            list("/tags").for_each(|item| add(item, Stance::Watches));
            persona.get("body").and_then(Json::as_str).unwrap_or_default()
        }
    };
    let mut section = None;
    for block in &Document::parse("", body).blocks {
        let written = &body[block.span.clone()];
        match block.kind {
            BlockKind::Heading => {
                let line = written.to_lowercase();
                let fits = |(words, _): &&(&[&str], Stance)| words.iter().any(|word| line.contains(word));
                section = HEADINGS.iter().find(fits).map(|(_, stance)| *stance);
            }
            BlockKind::Item => section.into_iter().for_each(|stance| add(written, stance)),
            _ => {}
        }
    }
    items.truncate(MAX_ITEMS);
    items.sort_by_key(|item| item.stance);
    items
}

impl Item {
    /// An item; none where it has no word that says something of a subject.
    fn read(written: &str, stance: Stance) -> Option<Item> {
        let line = written.split_whitespace().collect::<Vec<_>>().join(" ");
        // An id becomes words.
        let line = if line.contains(' ') { line } else { line.replace(['-', '_'], " ") };
        let head = match stance {
            Stance::Asks => line.find('?').map_or(&*line, |end| &line[..=end]),
            _ => EXPLAINS.iter().filter_map(|mark| line.find(mark)).min().map_or(&*line, |end| &line[..end]),
        };
        let phrase: String =
            head.trim_matches(|c: char| "*_`.,;: ".contains(c)).chars().take(MAX_PHRASE).collect();
        let quoted: Vec<Pattern> =
            line.split(['"', '“', '”']).skip(1).step_by(2).filter_map(Pattern::phrase).collect();
        let check = checks::ALL.iter().copied().find(|check| check.name.eq_ignore_ascii_case(&phrase));
        let patterns = match check {
            Some(_) => Vec::new(),
            None if quoted.is_empty() => vec![Pattern::words(&phrase, stance)?],
            None => quoted,
        };
        Some(Item { phrase, stance, patterns, check })
    }
}
