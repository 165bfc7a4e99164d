//! The kind of a text: from its front matter, else from its file name, else from its title.

use quorate_diagnostics::word_list::WordList;

use super::{BlockKind, Document};

const WORDS: &str = include_str!("../words/channel.txt");

/// The kinds of text that the checks tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channel {
    /// Goes out to people who are to be won: a post, an announcement, a newsletter.
    Outward,
    /// States what happened: an incident report, minutes.
    Report,
    /// Explains how something works: a README, a guide, a specification.
    Manual,
    Unstated,
}

const KEYS: &[&str] = &["channel", "type", "artifact_type", "kind", "category"];
static OUTWARD: WordList = WordList::new(WORDS, "outward");
static REPORT: WordList = WordList::new(WORDS, "report");
static MANUAL: WordList = WordList::new(WORDS, "manual");

/// Decides on the channel.
pub(super) fn detect(name: &str, document: &Document<'_>, front_matter: &[(String, String)]) -> Channel {
    let stated =
        front_matter.iter().filter(|(key, _)| KEYS.contains(&key.as_str())).map(|(_, value)| value.as_str());
    let file = name.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
    let title = document.blocks.first().filter(|block| block.kind == BlockKind::Heading);
    let title =
        title.map(|block| document.prose[block.span.clone()].to_ascii_lowercase()).unwrap_or_default();
    let by_words = stated
        .chain([file.as_str(), title.as_str()])
        .map(detect_in)
        .find(|channel| *channel != Channel::Unstated);
    by_words.unwrap_or(Channel::Unstated)
}

fn detect_in(text: &str) -> Channel {
    let has =
        |list: &WordList| text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| list.contains(word));
    match () {
        () if has(&REPORT) => Channel::Report,
        () if has(&MANUAL) => Channel::Manual,
        () if has(&OUTWARD) => Channel::Outward,
        () => Channel::Unstated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_wins_over_the_file_name_and_that_over_the_title() {
        let check = |name: &str, text: &str| Document::parse(name, text).channel;
        assert_eq!(check("a/README.md", "---\ntype: linkedin_post\n---\nHi."), Channel::Outward);
        assert_eq!(check("a/README.md", "# Launch\n\nHi."), Channel::Manual);
        assert_eq!(check("x.md", "# Incident report\n\nHi."), Channel::Report);
        assert_eq!(check("x.md", "Hi.\n\n```\ncode\n```\n"), Channel::Unstated);
        assert_eq!(check("x.md", "Hi."), Channel::Unstated);
    }
}
