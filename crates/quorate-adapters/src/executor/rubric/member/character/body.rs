//! A persona's body: list items under headings such as "Watches for", items that begin with "Don't", bold words, and
//! sentences such as "You look for x, y and z".

use super::{How, Reader};
use crate::executor::rubric::document::{BlockKind, Document};
use crate::executor::rubric::member::text::folded_line;
use crate::executor::rubric::member::topic::Stance;

/// What a heading says of the items below it; the first that fits counts.
const SECTIONS: &[(&[&str], Stance)] = &[
    (
        &[" refuse", " red line", " will not", " won't", " never", " not do", " blocks on", " says no"],
        Stance::Refuses,
    ),
    (&[" defer", " leaves to", " hand"], Stance::Defers),
    (&[" ask", " question"], Stance::Asks),
    (
        &[
            " watch",
            " look",
            " care",
            " flag",
            " mind",
            " worr",
            " check",
            " object",
            " priorit",
            " focus",
            " listen",
            " red flag",
            " concern",
            " values",
        ],
        Stance::Watches,
    ),
];
/// Headings that say nothing of a subject.
const PLAIN: &[&str] = &[
    " background",
    " voice",
    " sample",
    " note",
    " purpose",
    " when to",
    " role",
    " persona",
    " style",
    " tone",
    " example",
    " how ",
    " about",
    " overview",
    " do ",
    " you ",
];
/// After these in a sentence stands what a persona looks for.
const LEADS: &[&str] = &[
    "watch for",
    "watches for",
    "watch out for",
    "watches out for",
    "look for",
    "looks for",
    "listen for",
    "listens for",
    "object to",
    "objects to",
    "care about",
    "cares about",
    "worry about",
    "worries about",
    "flag",
    "flags",
    "guard against",
    "guards against",
];
const REFUSALS: &[&str] = &[
    "refuse",
    "refuses",
    "refuse to",
    "refuses to",
    "say no to",
    "says no to",
    "vote against",
    "votes against",
];
/// With these an item says what not to do.
const DONTS: &[&str] = &["don't ", "don’t ", "do not ", "never ", "no "];
/// A longer piece of a sentence is no phrase.
const WORDS: usize = 8;

pub(super) fn read(body: &str, reader: &mut Reader) {
    let document = Document::parse("", body);
    let mut section: Option<Stance> = None;
    let mut plain = false;
    for block in &document.blocks {
        let written = &body[block.span.clone()];
        if block.kind == BlockKind::Heading {
            let line = folded_line(written) + " ";
            section = SECTIONS
                .iter()
                .find(|(words, _)| words.iter().any(|word| line.contains(word)))
                .map(|(_, is)| *is);
            plain = PLAIN.iter().any(|word| line.contains(word));
            if section.is_none() && !plain {
                reader.names(written);
            }
            continue;
        }
        reader.minds(written, How::Mentioned, None);
        match section {
            Some(stance) if block.kind == BlockKind::Item => reader.topic(item(written, stance), stance),
            _ if block.kind == BlockKind::Item => dont(written, reader),
            _ => {}
        }
        if section.is_none() && !plain {
            bold(written, reader);
        }
        sentences(&document, block.sentences.clone(), reader);
    }
}

/// What an item is about: what stands before its explanation.
fn item(written: &str, stance: Stance) -> &str {
    let line = written.trim();
    if stance == Stance::Asks {
        return line.find('?').map_or(line, |to| &line[..=to]);
    }
    let bare = line.trim_start_matches(['*', '_', '`']);
    let first =
        [": ", ":*", " — ", " – ", " - ", ". ", "; ", " ("].iter().filter_map(|mark| bare.find(mark)).min();
    let head = bare[..first.unwrap_or(bare.len())].trim_matches(|c: char| "*_`.,;:".contains(c));
    DONTS.iter().find_map(|dont| strip(head, dont)).unwrap_or(head)
}

fn dont(written: &str, reader: &mut Reader) {
    let line = written.trim().trim_start_matches(['*', '_']);
    if let Some(rest) = DONTS.iter().find_map(|dont| strip(line, dont)) {
        reader.topic(item(rest, Stance::Watches), Stance::Watches);
    }
}

/// Strips a prefix, whatever its case.
fn strip<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then(|| &text[prefix.len()..])
}

fn bold(written: &str, reader: &mut Reader) {
    for piece in written.split("**").skip(1).step_by(2) {
        let piece = piece.trim_matches(|c: char| c.is_whitespace() || ".,;:!?".contains(c));
        if !piece.is_empty() && piece.split_whitespace().count() <= WORDS && !piece.contains('\n') {
            reader.topic(piece, Stance::Watches);
        }
    }
}

fn sentences(document: &Document<'_>, which: std::ops::Range<usize>, reader: &mut Reader) {
    for sentence in &document.sentences[which] {
        let words = document.words_of(sentence);
        let leads = [(REFUSALS, Stance::Refuses), (LEADS, Stance::Watches)];
        let found = leads.into_iter().find_map(|(leads, stance)| {
            let lead = |at: usize| {
                let fits = |lead: &&&str| {
                    let mut parts = lead.split(' ').enumerate();
                    parts.all(|(n, part)| words.get(at + n).is_some_and(|word| word.text == part))
                };
                leads.iter().filter(fits).map(|lead| at + lead.split(' ').count()).max()
            };
            (0..words.len().min(6)).find_map(lead).map(|from| (from, stance))
        });
        let Some((from, stance)) = found else { continue };
        let Some(first) = words.get(from) else { continue };
        let rest = &document.text[first.start..sentence.span.end];
        for piece in rest
            .split([',', ';', ':'])
            .flat_map(|piece| piece.split(" and "))
            .flat_map(|piece| piece.split(" or "))
        {
            let piece = piece.trim().trim_start_matches("for ").trim_end_matches(['.', '!', '*']);
            if piece.split_whitespace().count() <= WORDS {
                reader.topic(piece, stance);
            }
        }
    }
}
