//! What may be said to a producer, and how: the wording of a body, and the folding by which two texts are the same.
//!
//! A producer is told how to write, never that somebody reads what it writes. And it is told nothing that an artifact
//! says: quoted pieces are left out, and so is a text that repeats some words of what was quoted.

use std::collections::{BTreeMap, BTreeSet};

use quorate_protocol::locks::fold;

use super::recurring::{RecurringIssue, Run};

/// The longest sentence that is taken over, in characters.
const MAX_SENTENCE_CHARS: usize = 300;
/// So many words in a row of something quoted make a text a quotation; a shorter quotation has to be there whole.
const QUOTED_ROW_WORDS: usize = 4;
/// How words begin that reveal that somebody reads what a producer writes, or that talk of playbooks themselves.
const REVEALING_PREFIXES: &[&str] =
    &["adjudicat", "council", "deliberat", "judg", "playbook", "quorate", "review", "rubric", "verdict"];
/// The same of words that have to be there whole.
const REVEALING_WORDS: &[&str] = &["finding", "findings", "jury", "juror", "jurors"];
/// What stands in place of a quoted piece.
const QUOTATION_PLACEHOLDER: char = '\u{fffc}';
/// Quotation marks that open, each with those that close.
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

/// What no body says.
pub(super) struct ForbiddenWords {
    /// The words of the ids of those who found something.
    member_ids: BTreeSet<Vec<String>>,
    /// What stands in quotations, in rows of a few words.
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

    /// Whether a text may be said to a producer.
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

/// The body for a topic, one or two sentences; `None` where nothing can be said.
pub(super) fn body(topic: &RecurringIssue<'_>, unsaid: &ForbiddenWords) -> Option<String> {
    let lead = lead_sentence(topic, unsaid);
    let fixes = topic.findings.iter().map(|(run, raised)| (run.id, one_line(raised.fix)));
    // Where as many runs advise one thing as another, none of it is what all of them are about.
    let fix = most_common(fixes.filter(|(_, fix)| !fix.is_empty()))
        .filter(|(fix, tied)| !(*tied && lead.is_some()) && unsaid.allows(fix));
    let fix = fix.and_then(|(fix, _)| {
        let mut said = sentence(first_sentence(&fix))?;
        let rest = fix[first_sentence(&fix).len()..].trim_start();
        if let Some(second) = sentence(first_sentence(rest)).filter(|_| lead.is_none()) {
            said = format!("{said} {second}");
        }
        Some(said)
    });
    match (lead, fix) {
        (Some(lead), Some(fix)) => Some(format!("{lead} {fix}")),
        (lead, fix) => lead.or(fix),
    }
}

/// What to look out for, from the issue's words: a passage takes the place of the one that was quoted, and a number that
/// is another each time is just a number.
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
    // Whatever else was quoted has left a gap, which is not plain.
    let first = sentence(first_sentence(&form)).filter(|_| unsaid.allows(&form))?;
    Some(format!("Avoid this: {}", lowercase_first(&first)))
}

/// What was said in the most runs; of several such texts the first by letters, and whether there are several.
fn most_common<'r>(texts: impl Iterator<Item = (&'r str, String)>) -> Option<(String, bool)> {
    let mut runs: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (run, text) in texts {
        runs.entry(text).or_default().insert(run);
    }
    let most = runs.values().map(BTreeSet::len).max()?;
    let mut first = runs.into_iter().filter(|(_, runs)| runs.len() == most).map(|(text, _)| text);
    Some((first.next()?, first.next().is_some()))
}

/// Numbers as the letter N.
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

/// The words by which two texts are the same: folded, without quoted pieces, digits and punctuation.
pub(super) fn comparison_key(text: &str) -> String {
    let folded = replace_quotations(&fold(&replace_quotations(text)));
    let letters: String = folded
        .chars()
        .filter(|c| !c.is_numeric() && !matches!(c, '\'' | '\u{2019}'))
        .map(|c| if c.is_alphabetic() { c } else { ' ' })
        .collect();
    letters.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text on one line, without characters that are not seen.
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

/// A sentence with a capital and an end; `None` where there is none, or it is long.
fn sentence(text: &str) -> Option<String> {
    let text = text.trim().trim_end_matches([',', ':', ';', '-', '–', '—', ' ']);
    let first = text.chars().next()?;
    if text.chars().count() > MAX_SENTENCE_CHARS || !text.contains(char::is_alphabetic) {
        return None;
    }
    let end = if text.ends_with(['.', '!', '?', '…']) { "" } else { "." };
    Some(format!("{}{}{end}", first.to_uppercase(), &text[first.len_utf8()..]))
}

/// A sentence as it goes on after a colon: a first word of more than one capital keeps its own.
fn lowercase_first(text: &str) -> String {
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if !second.is_uppercase() && (first != 'I' || second.is_lowercase()) => {
            format!("{}{}", first.to_lowercase(), &text[first.len_utf8()..])
        }
        _ => text.to_owned(),
    }
}

/// Whether a text is prose and no more: no markup, no quotation, no address, nothing that a reader does not see.
fn is_plain_prose(text: &str) -> bool {
    let letters: Vec<char> = text.chars().collect();
    let may = |(at, c): (usize, &char)| match c {
        '\'' | '\u{2019}' => {
            let beside =
                |at: Option<usize>| at.and_then(|at| letters.get(at)).is_some_and(|c| c.is_alphanumeric());
            beside(at.checked_sub(1)) && beside(Some(at + 1))
        }
        c => c.is_alphanumeric() || " .,;:!?()-–—/%&+…€$£".contains(*c),
    };
    letters.iter().enumerate().all(may) && !text.contains("//") && !text.contains("www.")
}

/// Whether a word has Latin letters and others, as words have that want to look like one they are not.
fn is_mixed(word: &str) -> bool {
    word.bytes().any(|byte| byte.is_ascii_alphabetic())
        && word.chars().any(|c| c.is_alphabetic() && !c.is_ascii())
}

/// The words of a text, folded.
fn words(text: &str) -> Vec<String> {
    split(&fold(text))
}

fn split(folded: &str) -> Vec<String> {
    folded.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// A text with a sign in place of each quoted piece. A quotation that does not end goes on to the end.
fn replace_quotations(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(&c) = letters.get(at) {
        match closing_quote(&letters, at) {
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

/// Where the quotation ends that begins here, if one does.
fn closing_quote(letters: &[char], at: usize) -> Option<usize> {
    let open = letters[at];
    let (_, closers) = QUOTATION_MARKS.iter().find(|(mark, _)| *mark == open)?;
    let word = |at: Option<usize>| at.and_then(|at| letters.get(at)).is_some_and(|c| c.is_alphanumeric());
    // These are apostrophes as well.
    let single = matches!(open, '\'' | '\u{2018}');
    if single && (word(at.checked_sub(1)) || !word(Some(at + 1))) {
        return None;
    }
    // Code may stand between several.
    let run = letters[at..].iter().take_while(|c| **c == open).count();
    let wide = if open == '`' { run } else { 1 };
    let mut end = at + wide;
    while end < letters.len() {
        let closes = closers.contains(letters[end]) && !(single && word(Some(end + 1)));
        let as_wide =
            letters[end..].iter().take(wide).all(|c| closers.contains(*c)) && end + wide <= letters.len();
        if closes && as_wide {
            return Some(end + wide);
        }
        end += 1;
    }
    (!single).then_some(letters.len())
}
