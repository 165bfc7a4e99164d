//! A budget for odd turns of phrase: constructions that English technical prose avoids.
//!
//! Counted are comments and string literals in source files and scripts, and the text of Markdown and HTML outside of code
//! blocks; code in backticks does not count. A line counts once for each pattern of [`PATTERNS`] that it matches.
//!
//! | pattern | write instead |
//! |---|---|
//! | "X is no Y" | "X is not a Y" |
//! | a clause with "what" or "whoever" as the subject | the noun |
//! | "that is there" | "exists", "is present" |
//! | "Of a run the id counts" | "The id of a run counts" |
//! | "as it is" | "unchanged" |
//! | "is to be checked" | "must be checked" |
//! | ", too" | "also", or nothing |
//! | "what came of", "makes good", "tells of", "has it that" | the plain verb |
//! | "whoever", "somebody", "nobody", "anybody" | the actor: the caller, a member, no member |
//! | "one that" for a noun | the noun |
//! | "as many as" | the number |
//! | "says of" | "reports", "describes" |

use std::path::Path;

use anyhow::Context as _;
use regex::{Captures, Regex};

/// The accepted number of odd turns in 1,000 lines of prose.
const BUDGET: usize = 4;
/// The number of places that a complaint shows for each pattern.
const SHOWN_PLACES: usize = 3;

const SUFFIXES: [&str; 8] = ["rs", "py", "js", "mjs", "ts", "sh", "md", "html"];
/// This file quotes the patterns.
const OWN_FILE: &str = "crates/xtask/src/tidy/voice.rs";

/// The name and expression of each turn of phrase.
const PATTERNS: [(&str, &str); 12] = [
    ("X is no Y", r"\b(?:is|are|was|were|be) no (\w+)"),
    (
        "a clause as subject",
        r#"(?:^|[.:;,("] |"|\()(?:What|Whatever|Whoever|Who|Whom|Whose)((?: \w+){1,6}) (?:is|are|was|were|has|have|does|do|can|may|must|says?|stands?|comes?|goes|needs?|belongs?)\b"#,
    ),
    (
        "that is there",
        r"\b(?:that|which|who|those that|what) (?:there )?(?:is|are|was|were) there\b|\bthat there (?:is|are|was|were)\b|\bthere is (?:that|what)\b",
    ),
    (
        "Of X, at the start",
        r#"(?:^|[.:;] |")Of (?:a|an|the|one|two|each|every|which|what|those|several|it|them)\b"#,
    ),
    ("as it is", r"\bas (?:it|they|he|she) (?:is|are|was|were)\b"),
    (
        "is to be done",
        r"\b(?:is|are|was|were) to be \w+ed\b|\b(?:is|are) to be (?:said|told|had|made|done|asked|seen|known)\b",
    ),
    (", too", r", too[.,;)]"),
    (
        "what came of, makes good, tells of, has it that",
        r"\bwhat came of\b|\bmake[sd]? good\b|\btell[s]? of\b|\bhear[s]? of\b|\bheld against\b|\bhold[s]? .{0,20}against\b|\bhas it that\b",
    ),
    ("whoever, somebody, nobody, anybody", r"\b(?:whoever|somebody|nobody|anybody)\b"),
    (
        "one that, for a noun",
        r"\b(?:of|by|for|with|in|than) one (?:that|which|who|whose)\b|\bone (?:is|are) (?:known|made|that)\b",
    ),
    ("as many as", r"\b(?:so|as) (?:many|much) [a-z]+ (?:as|in|at|of)\b"),
    ("says of", r"\b(?:says|said|say) (?:of|so|that already)\b"),
];

/// Words after "is no" that are plain English.
const PLAIN_AFTER_NO: &str = "longer more less fewer other different need reason way such matter better";

/// Complains if the prose of `crates`, `docs` and the Markdown files at the root has more odd turns than the budget.
pub(super) fn check_voice(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut files = Vec::new();
    for folder in ["crates", "docs"] {
        super::below(&root.join(folder), &SUFFIXES, &mut files)?;
    }
    for entry in std::fs::read_dir(root).context("reading the root")? {
        let path = entry?.path();
        if path.extension().is_some_and(|suffix| suffix == "md") {
            files.push(path);
        }
    }
    files.sort();
    let counter = Counter::new()?;
    let mut counts = Counts::default();
    for path in files {
        let shown = path.strip_prefix(root)?.to_string_lossy().replace('\\', "/");
        if shown != OWN_FILE {
            let text = std::fs::read(&path).with_context(|| format!("reading {shown}"))?;
            counter.count(&shown, &String::from_utf8_lossy(&text), &mut counts);
        }
    }
    Ok(counts.complaint().into_iter().collect())
}

/// The compiled expressions.
struct Counter {
    patterns: Vec<Regex>,
    code: Regex,
    literal: Regex,
}

#[derive(Default)]
struct Counts {
    lines: usize,
    /// The places of each pattern.
    places: [Vec<String>; PATTERNS.len()],
}

impl Counter {
    fn new() -> anyhow::Result<Counter> {
        let patterns: Result<Vec<Regex>, _> =
            PATTERNS.iter().map(|(_, expression)| Regex::new(expression)).collect();
        Ok(Counter {
            patterns: patterns?,
            code: Regex::new("`[^`]*`")?,
            literal: Regex::new(r#""((?:[^"\\]|\\.){12,})""#)?,
        })
    }

    fn count(&self, path: &str, text: &str, counts: &mut Counts) {
        for (number, line) in self.prose(path, text) {
            counts.lines += 1;
            for (at, pattern) in self.patterns.iter().enumerate() {
                if pattern.captures_iter(&line).any(|found| is_odd(at, &found, &line)) {
                    counts.places[at].push(format!("{path}:{number}: {}", line.trim()));
                }
            }
        }
    }

    /// The numbered lines that people read.
    fn prose(&self, path: &str, text: &str) -> Vec<(usize, String)> {
        let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
        if path.ends_with(".md") || path.ends_with(".html") {
            let mut in_block = false;
            return lines
                .filter(|(_, line)| {
                    let is_fence =
                        line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
                    in_block ^= is_fence;
                    !is_fence && !in_block && !line.trim().is_empty()
                })
                .map(|(number, line)| (number, self.without_code(line)))
                .collect();
        }
        let mark = if path.ends_with(".py") || path.ends_with(".sh") { "#" } else { "//" };
        let mut found = Vec::new();
        for (number, line) in lines {
            let stripped = line.trim();
            if stripped.starts_with(mark) {
                found.push((number, self.without_code(stripped.trim_start_matches(['/', '#', '!', ' ']))));
                continue;
            }
            for literal in self.literal.captures_iter(line) {
                if literal[1].contains(' ') {
                    found.push((number, format!("\"{}", self.without_code(&literal[1]))));
                }
            }
        }
        found
    }

    fn without_code(&self, text: &str) -> String {
        self.code.replace_all(text, "`x`").into_owned()
    }
}

/// Whether a match is a turn to avoid: "is no longer" and "What to do" are plain English.
fn is_odd(pattern: usize, found: &Captures<'_>, line: &str) -> bool {
    match pattern {
        0 => PLAIN_AFTER_NO.split(" ").all(|word| word != &found[1]),
        1 => {
            let after = found.get(1).map_or("", |words| &line[words.start()..]);
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            after.strip_prefix(" to do").is_none_or(|rest| rest.starts_with(is_word))
        }
        _ => true,
    }
}

impl Counts {
    fn complaint(&self) -> Option<String> {
        let odd: usize = self.places.iter().map(Vec::len).sum();
        if odd * 1_000 <= BUDGET * self.lines {
            return None;
        }
        let mut text = format!(
            "{odd} odd turns of phrase in {} lines of prose are more than {BUDGET} in 1,000; rewrite, for example:",
            self.lines
        );
        for ((name, _), places) in PATTERNS.iter().zip(&self.places).filter(|(_, places)| !places.is_empty())
        {
            text.push_str(&format!("\n    {name} ({}):", places.len()));
            for place in places.iter().step_by((places.len() / SHOWN_PLACES).max(1)).take(SHOWN_PLACES) {
                text.push_str(&format!("\n        {place}"));
            }
        }
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of odd turns and of lines in a file.
    fn counted(path: &str, text: &str) -> (usize, usize) {
        let mut counts = Counts::default();
        Counter::new().unwrap().count(path, text, &mut counts);
        (counts.places.iter().map(Vec::len).sum(), counts.lines)
    }

    #[test]
    fn each_pattern_finds_its_turn() {
        for (at, text) in [
            "a run is no review",
            "What the member sent is kept.",
            "the file that is there",
            "Of a run the id counts.",
            "kept as it is",
            "the file is to be opened",
            "the ledger, too.",
            "what came of the run",
            "for whoever asks",
            "the id of one that failed",
            "as many calls as there are",
            "the record says so",
        ]
        .into_iter()
        .enumerate()
        {
            let mut counts = Counts::default();
            Counter::new().unwrap().count("a.md", text, &mut counts);
            assert_eq!(counts.places[at].len(), 1, "{text}");
        }
    }

    #[test]
    fn plain_english_is_not_odd() {
        for text in ["it is no longer open", "What to do: it is a file", "What to do is open", "Who asks?"] {
            assert_eq!(counted("a.md", text), (0, 1), "{text}");
        }
        assert_eq!(counted("a.md", "What to document is open").0, 1);
    }

    #[test]
    fn comments_literals_and_text_outside_of_code_blocks_count() {
        assert_eq!(counted("a.md", "a `is no b`\n\n```\nis no b\n```\nis no b\n"), (1, 2));
        assert_eq!(
            counted("a.rs", "// is no b\nlet is_no = f(\"it is no b, sir\");\nf(\"is no b\");\n"),
            (2, 2)
        );
        assert_eq!(counted("a.sh", "# is no b\n// is no b\n"), (1, 1));
    }

    #[test]
    fn the_budget_is_a_rate() {
        let mut counts = Counts { lines: 1_000, ..Counts::default() };
        counts.places[0] = vec!["a place".to_owned(); BUDGET];
        assert_eq!(counts.complaint(), None);
        counts.places[0].push("a place".to_owned());
        assert!(counts.complaint().is_some_and(|text| text.contains(&format!("X is no Y ({})", BUDGET + 1))));
    }
}
