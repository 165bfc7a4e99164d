//! `<slug>.history.md` (B7): every version of a playbook's file, readable by people and exact to the byte.
//!
//! A section holds a version: a heading and a line for people, a comment with the same data for machines, and the file's
//! text in a fence. Sections are only added. Each carries the SHA-256 of its data, of its text and of the whole previous
//! section, and has exactly one form: a section that differs from what [`append`] writes was changed. Versions removed from
//! the end leave no trace here; the playbook's own `history` and the ledger know their number.

use std::fmt::Write as _;

use quorate_manifest::tree::open::sha256_hex;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::log::{code_span, escaped, one_line};

/// The line below the heading.
const ABOUT: &str = "Every version of the file, the oldest first. `quorate` adds versions and changes none; each is sealed with \
the hash of the one before it.";

/// What the comment of a section begins with.
const DATA_START: &str = "<!-- quorate:version ";

/// How Git marks a conflict: the lines of its beginning and of its end begin with these.
const CONFLICT_MARKERS: [&str; 2] = ["<<<<<<< ", ">>>>>>> "];

/// The text that stands for further entries.
const TRUNCATED: &str = "the history is cut off here";

/// The error of an unresolved merge.
const UNMERGED: &str =
    "a merge of two histories was left unresolved; keep one side and add the versions of the other anew";

/// One version of a playbook's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Version {
    /// Which one, from 1.
    #[serde(rename = "version")]
    pub n: u32,
    /// When it was written, in RFC 3339.
    pub at: String,
    /// What was done: `created`, `delta`, `promoted`, `archived`, `superseded`.
    pub event: String,
    /// What was done, in words.
    pub summary: String,
    /// The author, if known.
    pub by: Option<String>,
    /// The whole file of that version.
    pub text: String,
}

/// Why a history is not what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryFileError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, in one sentence.
    pub reason: String,
}

impl std::fmt::Display for HistoryFileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for HistoryFileError {}

/// The versions that a history holds, in order; an empty text holds none.
///
/// # Errors
/// If any part differs from what was written.
pub fn parse(text: &str) -> Result<Vec<Version>, HistoryFileError> {
    Ok(read(text)?.versions)
}

/// A history with one more version; an empty text begins one.
///
/// # Errors
/// When the history is broken or another playbook's, or the version is not its next one.
pub fn append(existing: &str, slug: &str, version: &Version) -> Result<String, HistoryFileError> {
    let History { mut text, versions, last_hash: last } = read(existing)?;
    let next = versions.len() + 1;
    if usize::try_from(version.n) != Ok(next) {
        return Err(error_at(&text, text.len(), &format!("the next version is {next}, not {}", version.n)));
    }
    let head = header(slug);
    if text.is_empty() {
        text.push_str(&head);
    } else if !text.starts_with(&head) {
        return Err(HistoryFileError {
            line: 1,
            reason: format!("this is not the history of `{}`", code_span(slug)),
        });
    }
    let before = last.unwrap_or_else(|| sha256_hex(head.as_bytes()));
    text.push_str(&section(version, &before));
    Ok(text)
}

/// A history that was read.
struct History {
    /// The text of that version.
    text: String,
    versions: Vec<Version>,
    /// The hash of the last section.
    last_hash: Option<String>,
}

fn read(text: &str) -> Result<History, HistoryFileError> {
    let first = text.split_inclusive('\n').next().unwrap_or_default();
    if !first.ends_with("\r\n") {
        return read_exact(text);
    }
    // Git may have changed all line ends. If the hashes hold with them changed back, that is what was written.
    read_exact(&text.replace("\r\n", "\n")).map_err(|broken| {
        let reason = "the line ends were changed to CRLF, and not every one can be distinguished from those of the texts; \
            let Git leave them with `*.history.md -text` in .gitattributes";
        if broken.reason == UNMERGED { broken } else { HistoryFileError { line: 1, reason: reason.to_owned() } }
    })
}

fn read_exact(text: &str) -> Result<History, HistoryFileError> {
    let mut history = History { text: text.to_owned(), versions: Vec::new(), last_hash: None };
    if text.is_empty() {
        return Ok(history);
    }
    if !text.contains('\n') {
        return Err(error_at(text, text.len(), TRUNCATED));
    }
    let slug = text.lines().next().and_then(|line| line.strip_prefix("# History of `")?.strip_suffix('`'));
    let head = header(slug.unwrap_or_default());
    let marked = |at: usize| move |broken: HistoryFileError| find_conflict(text, at).unwrap_or(broken);
    expect_text(text, 0, &head).map_err(marked(0))?;
    let mut at = head.len();
    let mut before = sha256_hex(head.as_bytes());
    while at < text.len() {
        let n = history.versions.len() + 1;
        let (version, section) = next_version(text, at, n, &before).map_err(marked(at))?;
        at += section.len();
        before = sha256_hex(section.as_bytes());
        history.last_hash = Some(before.clone());
        history.versions.push(version);
    }
    Ok(history)
}

/// The version at an offset, and its section, compared with what [`append`] would write.
fn next_version(
    text: &str,
    at: usize,
    n: usize,
    before: &str,
) -> Result<(Version, String), HistoryFileError> {
    let version = parse_version(text, at)?;
    let section = section(&version, before);
    if text[at..].starts_with(&section) {
        if usize::try_from(version.n) == Ok(n) {
            return Ok((version, section));
        }
        return Err(error_at(text, at + 1, &format!("version {n} should stand here, not {}", version.n)));
    }
    // Which of the hashes is another says more than where.
    let data = text[at..].lines().nth(5).unwrap_or_default();
    let has = |key: &str, hash: &str| data.contains(&format!("\"{key}\":\"{hash}\""));
    if !has("before", before) {
        let reason = "the section before this one was changed, or sections are missing or in another order";
        return Err(error_at(text, at + 1, reason));
    }
    if !has("sha256", &sha256_hex(version.text.as_bytes())) {
        return Err(error_at(text, at + 1, "the text of this version was changed"));
    }
    expect_text(text, at, &section)?;
    Ok((version, section))
}

/// Says where a text is another from a place on.
fn expect_text(text: &str, at: usize, expected: &str) -> Result<(), HistoryFileError> {
    let found = &text[at..];
    if found.starts_with(expected) {
        return Ok(());
    }
    let same = found.bytes().zip(expected.bytes()).take_while(|(a, b)| a == b).count();
    let reason = if same == found.len() { TRUNCATED } else { "this was changed" };
    Err(error_at(text, at + same, reason))
}

/// What the section that begins at a place claims to hold.
fn parse_version(text: &str, at: usize) -> Result<Version, HistoryFileError> {
    let cut = || error_at(text, text.len(), TRUNCATED);
    let mut lines = text[at..].split_inclusive('\n');
    let mut place = at;
    let mut data = None;
    // An empty line, the heading, the words and the data with empty lines between them, and the fence.
    for (number, start) in ["", "## v", "", "", "", DATA_START, "", "```"].into_iter().enumerate() {
        let line = lines.next().filter(|line| line.ends_with('\n')).ok_or_else(cut)?;
        let blank = start.is_empty() && number != 3;
        if !line.starts_with(start) || (blank && line != "\n") {
            return Err(error_at(text, place, "no section of a history looks like this"));
        }
        if start == DATA_START {
            data = Some((place, line));
        }
        place += line.len();
    }
    let (line_at, line) = data.ok_or_else(cut)?;
    let unreadable = || error_at(text, line_at, "the data of this version cannot be read");
    let data =
        line.strip_prefix(DATA_START).and_then(|data| data.strip_suffix(" -->\n")).ok_or_else(unreadable)?;
    let (_, data) = data.split_once(' ').ok_or_else(unreadable)?;
    let data: Value = serde_json::from_str(data).map_err(|_| unreadable())?;
    let word = |key: &str| data[key].as_str().map(str::to_owned).ok_or_else(unreadable);
    let number = |key: &str| data[key].as_u64().ok_or_else(unreadable);
    let bytes = usize::try_from(number("bytes")?).map_err(|_| unreadable())?;
    let changed = || match text.len() < place.saturating_add(bytes) {
        true => cut(),
        false => error_at(text, at + 1, "the text of this version was changed"),
    };
    Ok(Version {
        n: u32::try_from(number("n")?).map_err(|_| unreadable())?,
        at: word("at")?,
        event: word("event")?,
        summary: word("summary")?,
        by: if data["by"].is_null() { None } else { Some(word("by")?) },
        text: text.get(place..place.saturating_add(bytes)).ok_or_else(changed)?.to_owned(),
    })
}

fn header(slug: &str) -> String {
    format!("# History of `{}`\n\n{ABOUT}\n", code_span(slug))
}

/// A version as a section, below one with this hash.
fn section(version: &Version, before: &str) -> String {
    let Version { n, at, event, summary, by, text } = version;
    let quoted = |text: &str| Value::from(text).to_string();
    // Written by hand, because the order of a map's keys depends on how the program was built.
    let data = format!(
        "{{\"n\":{n},\"at\":{},\"event\":{},\"summary\":{},\"by\":{},\"bytes\":{},\"sha256\":\"{}\",\"before\":\"{before}\"}}",
        quoted(at),
        quoted(event),
        quoted(summary),
        by.as_deref().map_or("null".to_owned(), quoted),
        text.len(),
        sha256_hex(text.as_bytes()),
    );
    // The data must not open or close a comment or a tag; both signs occur only in strings, where JSON can escape them.
    let data = data.replace('<', "\\u003c").replace('>', "\\u003e");
    let seal = sha256_hex(data.as_bytes());
    let words = match by {
        Some(by) => format!("By {}: {}", one_line(by), one_line(summary)),
        None => format!("Summary: {}", one_line(summary)),
    };
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    let mut out = format!("\n## v{n} · {} · {}\n\n", escaped(&one_line(at)), escaped(&one_line(event)));
    let _ = write!(
        out,
        "{}\n\n{DATA_START}{seal} {data} -->\n\n{fence}markdown\n{text}",
        escaped(words.trim_end())
    );
    // Whether this line break is the text's own, its length says.
    out.push_str(if text.ends_with('\n') { "" } else { "\n" });
    out.push_str(&fence);
    out.push('\n');
    out
}

/// The longest run of backticks or tildes.
fn longest_run(text: &str) -> usize {
    let runs = |mark: char| text.split(move |c| c != mark).map(str::len).max().unwrap_or(0);
    runs('`').max(runs('~'))
}

fn error_at(text: &str, at: usize, why: &str) -> HistoryFileError {
    HistoryFileError { line: line_of(text, at), reason: why.to_owned() }
}

/// The line of a place, from 1.
fn line_of(text: &str, at: usize) -> usize {
    1 + text.as_bytes()[..at.min(text.len())].iter().filter(|byte| **byte == b'\n').count()
}

/// The merge that broke a section, if it left its marks from there on.
fn find_conflict(text: &str, at: usize) -> Option<HistoryFileError> {
    let mut lines = (line_of(text, at)..).zip(text[at..].lines());
    let (line, _) = lines.find(|(_, line)| line.starts_with(CONFLICT_MARKERS[0]))?;
    lines.find(|(_, line)| line.starts_with(CONFLICT_MARKERS[1]))?;
    Some(HistoryFileError { line, reason: UNMERGED.to_owned() })
}
