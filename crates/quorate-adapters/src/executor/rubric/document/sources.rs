//! Which sentences name a source: a link, a footnote, a citation in brackets, or words that say where from. Also the kind
//! of a text, from its front matter, else its file name, else its title.

use std::sync::LazyLock;

use regex::Regex;

use super::{BlockKind, Document};
use crate::executor::rubric::phrases::{compiled, list};

/// `[12]`, `(n = 40)`, or brackets with a name and a year: `(Okafor 2021)`.
static CITATION: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r"\[\^?\d+\]|\([nN]\s*=|\([^()]*\p{Lu}[^()]*\b(?:19|20)\d\d\b[^()]*\)|\b[nN] = \d")
});
/// A year, and a name within a sentence.
static YEAR: LazyLock<Regex> = LazyLock::new(|| compiled(r"\b(?:19|20)\d\d\b"));
static NAME: LazyLock<Regex> = LazyLock::new(|| compiled(r"[\w,;]\s+(\p{Lu}[\w-]+)"));
/// Words that look like names but name no person or body.
const CALENDAR: &str = "january february march april may june july august september october november december monday tuesday \
    wednesday thursday friday saturday sunday q1 q2 q3 q4";

/// Marks the sentences that cite, from the places of links and footnotes and from the words themselves.
pub(super) fn mark_citations(document: &mut Document<'_>, marks: &[usize]) {
    for at in marks {
        if let Some(index) = document.sentence_at(*at) {
            document.sentences[index].cites = true;
        }
    }
    let prose = &document.prose;
    let has_sample = document.sentences.iter().any(|one| list("sampled").is_in(&prose[one.span.clone()]));
    for sentence in &mut document.sentences {
        let prose = &prose[sentence.span.clone()];
        sentence.cites |= list("source cues").is_in(prose)
            || CITATION.is_match(prose)
            || is_dated_report(prose)
            || has_sample && list("of the sample").is_in(prose);
    }
}

/// “In March 2024 the Office for Statistics counted …”: a named party other than the author, at a named time.
fn is_dated_report(prose: &str) -> bool {
    let named =
        |name: &regex::Captures<'_>| CALENDAR.split(' ').all(|word| !name[1].eq_ignore_ascii_case(word));
    YEAR.is_match(prose)
        && list("reporting").is_in(prose)
        && !list("author").is_in(prose)
        && NAME.captures_iter(prose).any(|name| named(&name))
}

/// The kinds of text that the checks tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Channel {
    /// Goes out to people who are to be won: a post, an announcement, a newsletter.
    Outward,
    /// States what happened: an incident report, minutes.
    Report,
    /// Explains how something works, or lays down rules: a README, a guide, a specification, a law.
    Manual,
    Unstated,
}

/// Words of file names, titles and front matter, of which the first list with one of them counts.
static CHANNELS: LazyLock<[(Channel, Regex); 3]> = LazyLock::new(|| {
    let words = |words: &str| compiled(&format!(r"(?i)(?:\A|[^a-z0-9])(?:{words})(?:[^a-z0-9]|\z)"));
    [
        (Channel::Report, words("incident|postmortem|report|retrospective|minutes|memo|review|rca")),
        (
            Channel::Manual,
            words(
                "readme|guide|manual|docs?|spec|specification|reference|contributing|changelog|howto|architecture|design|tutorial|\
                 runbook|rfc|adr|protocol|invariants?|schema|api|regulations?|statutes?|bylaws?|ordinance|policy|terms|\
                 constitution|charter|law|rules|act of|act \\d+|[a-z]+ act\\s*\\z",
            ),
        ),
        (
            Channel::Outward,
            words(
                "post|launch|announcement|announce|newsletter|blog|linkedin|tweet|thread|social|marketing|landing|promise|press|\
                 pitch|campaign|email",
            ),
        ),
    ]
});
/// Words of requirements in capitals: RFC 2119.
static REQUIREMENT: LazyLock<Regex> = LazyLock::new(|| compiled(r"\b(?:MUST|SHALL|SHOULD)\b(?: NOT\b)?"));
const CHANNEL_KEYS: &[&str] = &["channel", "type", "artifact_type", "kind", "category"];

/// Decides on the channel.
pub(super) fn detect_channel(
    name: &str,
    document: &Document<'_>,
    front_matter: &[(String, String)],
) -> Channel {
    let stated = front_matter.iter().filter(|(key, _)| CHANNEL_KEYS.contains(&key.as_str()));
    let file = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let title = document.blocks.first().filter(|block| block.kind == BlockKind::Heading);
    let title = title.map_or("", |block| document.prose[block.span.clone()].trim());
    let in_text =
        |text: &str| CHANNELS.iter().find(|(_, words)| words.is_match(text)).map(|(channel, _)| *channel);
    let by_words = stated.map(|(_, value)| value.as_str()).chain([file, title]).find_map(in_text);
    let requires = || REQUIREMENT.find_iter(&document.prose).nth(1).is_some();
    by_words.unwrap_or_else(|| if requires() { Channel::Manual } else { Channel::Unstated })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_links_notes_brackets_samples_and_words() {
        for (text, expected) in [
            ("It rose 5% ([report](r.md)). It fell.", [true, false]),
            ("See https://x.example/a_b for more. [Try it](https://x.example).", [true, false]),
            ("It rose 5%.[^1] See [below](#later).\n\n[^1]: Where.", [true, false]),
            ("It rose (Okafor 2021). Plain (in brackets, 2021).", [true, false]),
            ("It fell [3]. Of some [two].", [true, false]),
            ("Measured on one laptop. In the end it did.", [true, false]),
            ("A 2023 survey by the Fraunhofer Institute found 41%. A 2023 study found 41%.", [true, false]),
            ("We interviewed 48 nurses. They were tired.", [true, false]),
            ("Of the 48, 65% left; we asked them all. It was late.", [true, false]),
        ] {
            let cites: Vec<bool> = Document::parse("", text).sentences.iter().map(|s| s.cites).collect();
            assert_eq!(cites, expected, "{text}");
        }
    }

    #[test]
    fn front_matter_wins_over_the_file_name_and_that_over_the_title() {
        let check = |name: &str, text: &str| Document::parse(name, text).channel;
        assert_eq!(check("a/README.md", "---\ntype: linkedin_post\n---\nHi."), Channel::Outward);
        assert_eq!(check("a/README.md", "# Launch\n\nHi."), Channel::Manual);
        assert_eq!(check("x.md", "# Incident report\n\nHi."), Channel::Report);
        assert_eq!(check("x.md", "# RFC 12: Tokens\n\nHi."), Channel::Manual);
        assert_eq!(check("x.md", "# Data Retention Act\n\nHi."), Channel::Manual);
        assert_eq!(check("x.md", "It MUST work. It SHALL NOT fail."), Channel::Manual);
        assert_eq!(check("x.md", "Hi."), Channel::Unstated);
    }
}
