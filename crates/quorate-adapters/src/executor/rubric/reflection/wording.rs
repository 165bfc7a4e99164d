//! The wording of a body, and the normalization by which two texts count as the same.
//!
//! A producer is shown how to write, never that its work is reviewed, and nothing that an artifact says: quoted pieces
//! are left out, and so is a text that repeats several words of a quote.

use std::collections::{BTreeMap, BTreeSet};

use quorate_protocol::locks::fold;

use super::issue::{RecurringIssue, Run};

/// The longest sentence that is adopted, in characters.
const MAX_SENTENCE_CHARS: usize = 300;
/// This many consecutive words of a quote make a text a quotation; a shorter quote must occur whole.
const QUOTED_ROW_WORDS: usize = 4;
/// Prefixes of words that reveal a review, or that mention playbooks themselves.
const REVEALING_PREFIXES: &[&str] =
    &["adjudicat", "council", "deliberat", "judg", "playbook", "quorate", "review", "rubric", "verdict"];
/// The same for whole words.
const REVEALING_WORDS: &[&str] = &["finding", "findings", "jury", "juror", "jurors"];
const QUOTATION_PLACEHOLDER: char = '\u{fffc}';
/// Opening quotation marks, each with its closing ones.
const QUOTATION_MARKS: &[(char, &str)] = &[
    ('"', "\""),
    ('`', "`"),
    ('\u{201c}', "\u{201d}\u{201c}"),
    ('\u{201d}', "\u{201d}"),
    ('\u{201e}', "\u{201c}\u{201d}"),
    ('\u{ff02}', "\u{ff02}"),
    ('«', "»"),
    ('»', "«»"),
    ('‹', "›"),
    ('「', "」"),
    ('『', "』"),
    ('\u{2018}', "\u{2019}"),
    ('\'', "'"),
];

/// Words that no body may contain.
pub(super) struct ForbiddenWords {
    /// The words of the ids of members.
    member_ids: BTreeSet<Vec<String>>,
    /// Consecutive words of quotes.
    quoted_rows: BTreeSet<Vec<String>>,
}

impl ForbiddenWords {
    pub(super) fn from_runs(runs: &[Run<'_>]) -> ForbiddenWords {
        let mut unsaid = ForbiddenWords { member_ids: BTreeSet::new(), quoted_rows: BTreeSet::new() };
        for raised in runs.iter().flat_map(|run| &run.findings) {
            unsaid.member_ids.insert(words(raised.member));
            let quoted = words(raised.quote);
            match quoted.len() {
                0 | 1 => {}
                2..QUOTED_ROW_WORDS => _ = unsaid.quoted_rows.insert(quoted),
                _ => unsaid.quoted_rows.extend(quoted.windows(QUOTED_ROW_WORDS).map(<[String]>::to_vec)),
            }
        }
        unsaid.member_ids.remove(&Vec::new());
        unsaid
    }

    /// Whether a text may be shown to a producer.
    fn allows(&self, text: &str) -> bool {
        let words = words(text);
        let joined = fold(text).replace(['-', '\u{2010}', '\u{2011}', '\''], "");
        let joined = split(&joined);
        let reveals = |word: &String| {
            REVEALING_PREFIXES.iter().any(|start| word.starts_with(start))
                || REVEALING_WORDS.contains(&word.as_str())
        };
        let has = |set: &BTreeSet<Vec<String>>, long: usize| words.windows(long).any(|row| set.contains(row));
        let longest = self.member_ids.iter().map(Vec::len).max().unwrap_or(0);
        is_plain_prose(text)
            && !words.iter().chain(&joined).any(reveals)
            && !words.iter().any(|word| is_mixed(word))
            && !(1..=longest).any(|long| has(&self.member_ids, long))
            && !(2..=QUOTED_ROW_WORDS).any(|long| has(&self.quoted_rows, long))
    }
}

/// The body for a topic, one or two sentences; `None` if no allowed sentence is left.
pub(super) fn body(topic: &RecurringIssue<'_>, unsaid: &ForbiddenWords) -> Option<String> {
    let lead = lead_sentence(topic, unsaid);
    let fixes = topic.findings.iter().map(|(run, raised)| (run.id, one_line(raised.fix)));
    // If two fixes tie, neither applies to all runs.
    let fix = most_common(fixes.filter(|(_, fix)| !fix.is_empty()))
        .filter(|(fix, tied)| !(*tied && lead.is_some()) && unsaid.allows(fix));
    let fix = fix.and_then(|(fix, _)| {
        let mut body = sentence(first_sentence(&fix))?;
        let rest = fix[first_sentence(&fix).len()..].trim_start();
        if let Some(second) = sentence(first_sentence(rest)).filter(|_| lead.is_none()) {
            body = format!("{body} {second}");
        }
        Some(body)
    });
    match (lead, fix) {
        (Some(lead), Some(fix)) => Some(format!("{lead} {fix}")),
        (lead, fix) => lead.or(fix),
    }
}

/// The warning, from the issue's words: "a passage" replaces the quote, and numbers that differ between runs become N.
fn lead_sentence(topic: &RecurringIssue<'_>, unsaid: &ForbiddenWords) -> Option<String> {
    let forms =
        topic.findings.iter().map(|(run, raised)| (run.id, one_line(&replace_quotations(raised.issue))));
    let forms: Vec<(&str, String)> = forms.collect();
    let several = forms.iter().any(|(_, form)| *form != forms[0].1);
    let (mut form, _) = most_common(forms.into_iter())?;
    if let Some(rest) = form.strip_prefix(QUOTATION_PLACEHOLDER) {
        form = format!("a passage {}", rest.trim_start());
    }
    if several {
        form = replace_numbers(&form);
    }
    // Any other quotation has left a placeholder, which is not plain prose.
    let first = sentence(first_sentence(&form)).filter(|_| unsaid.allows(&form))?;
    Some(format!("Avoid this: {}", lowercase_first(&first)))
}

/// The text of the most runs; of a tie the first in alphabetical order, and whether there is a tie.
fn most_common<'r>(texts: impl Iterator<Item = (&'r str, String)>) -> Option<(String, bool)> {
    let mut runs: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (run, text) in texts {
        runs.entry(text).or_default().insert(run);
    }
    let most = runs.values().map(BTreeSet::len).max()?;
    let mut first = runs.into_iter().filter(|(_, runs)| runs.len() == most).map(|(text, _)| text);
    Some((first.next()?, first.next().is_some()))
}

/// Replaces numbers by the letter N.
fn replace_numbers(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c.is_numeric() {
            true if out.ends_with('N') => {}
            true => out.push('N'),
            false => out.push(c),
        }
    }
    out
}

/// The key by which two texts count as the same: normalized, without quoted pieces, digits and punctuation.
pub(super) fn comparison_key(text: &str) -> String {
    let normalized = replace_quotations(&fold(&replace_quotations(text)));
    let letters_only: String = normalized
        .chars()
        .filter(|c| !c.is_numeric() && !matches!(c, '\'' | '\u{2019}'))
        .map(|c| if c.is_alphabetic() { c } else { ' ' })
        .collect();
    letters_only.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text on one line, without invisible characters.
pub(super) fn one_line(text: &str) -> String {
    let seen = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    seen.collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first sentence of a text.
pub(super) fn first_sentence(text: &str) -> &str {
    let mut ends = text.match_indices(['.', '!', '?']).map(|(at, mark)| at + mark.len());
    let ends_here = |end: &usize| {
        let rest = &text[*end..];
        let next = rest.trim_start();
        rest.len() > next.len() && next.starts_with(|c: char| !c.is_lowercase())
    };
    ends.find(ends_here).map_or(text, |end| &text[..end])
}

/// A sentence with a capital and an end; `None` if the text is empty or too long.
fn sentence(text: &str) -> Option<String> {
    let text = text.trim().trim_end_matches([',', ':', ';', '-', '–', '—', ' ']);
    let first = text.chars().next()?;
    if text.chars().count() > MAX_SENTENCE_CHARS || !text.contains(char::is_alphabetic) {
        return None;
    }
    let end = if text.ends_with(['.', '!', '?', '…']) { "" } else { "." };
    Some(format!("{}{}{end}", first.to_uppercase(), &text[first.len_utf8()..]))
}

/// A sentence in the form that follows a colon: a first word with several capitals keeps them.
fn lowercase_first(text: &str) -> String {
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(first), Some(second)) if !second.is_uppercase() && (first != 'I' || second.is_lowercase()) => {
            format!("{}{}", first.to_lowercase(), &text[first.len_utf8()..])
        }
        _ => text.to_owned(),
    }
}

/// Whether a text is plain prose: no markup, quotation, address, or invisible character.
fn is_plain_prose(text: &str) -> bool {
    let chars: Vec<char> = text.chars().collect();
    let may = |(at, c): (usize, &char)| match c {
        '\'' | '\u{2019}' => {
            let is_alphanumeric_at =
                |at: Option<usize>| at.and_then(|at| chars.get(at)).is_some_and(|c| c.is_alphanumeric());
            is_alphanumeric_at(at.checked_sub(1)) && is_alphanumeric_at(Some(at + 1))
        }
        c => c.is_alphanumeric() || " .,;:!?()-–—/%&+…€$£".contains(*c),
    };
    chars.iter().enumerate().all(may) && !text.contains("//") && !text.contains("www.")
}

/// Whether a word mixes Latin and other letters, as imitations of other words do.
fn is_mixed(word: &str) -> bool {
    word.bytes().any(|byte| byte.is_ascii_alphabetic())
        && word.chars().any(|c| c.is_alphabetic() && !c.is_ascii())
}

/// The normalized words of a text.
fn words(text: &str) -> Vec<String> {
    split(&fold(text))
}

fn split(normalized: &str) -> Vec<String> {
    normalized
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Replaces each quoted piece by a placeholder. A quotation without an end extends to the end of the text.
fn replace_quotations(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        match closing_quote(&chars, at) {
            Some(end) => {
                out.push(QUOTATION_PLACEHOLDER);
                at = end;
            }
            None => {
                out.push(c);
                at += 1;
            }
        }
    }
    out
}

/// The end of the quotation that begins at `at`, if one does.
fn closing_quote(chars: &[char], at: usize) -> Option<usize> {
    let open = chars[at];
    let (_, closers) = QUOTATION_MARKS.iter().find(|(mark, _)| *mark == open)?;
    let word = |at: Option<usize>| at.and_then(|at| chars.get(at)).is_some_and(|c| c.is_alphanumeric());
    // These are apostrophes too.
    let single = matches!(open, '\'' | '\u{2018}');
    if single && (word(at.checked_sub(1)) || !word(Some(at + 1))) {
        return None;
    }
    // Code may be delimited by several.
    let run = chars[at..].iter().take_while(|c| **c == open).count();
    let wide = if open == '`' { run } else { 1 };
    let mut end = at + wide;
    while end < chars.len() {
        let closes = closers.contains(chars[end]) && !(single && word(Some(end + 1)));
        let as_wide =
            chars[end..].iter().take(wide).all(|c| closers.contains(*c)) && end + wide <= chars.len();
        if closes && as_wide {
            return Some(end + wide);
        }
        end += 1;
    }
    (!single).then_some(chars.len())
}
