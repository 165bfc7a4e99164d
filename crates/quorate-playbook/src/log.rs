//! `_log.md` (B5, B10): one line for each event of a playbook, oldest first. Lines are only added.

use std::collections::BTreeSet;
use std::fmt;

use quorate_diagnostics::invisible::escape_invisible_except;

/// The log's name in `playbooks/`.
pub const FILE_NAME: &str = "_log.md";

/// What a new log begins with.
pub const HEADER: &str = "# Log of playbooks\n\nWhat happened to the playbooks here, the newest last. `quorate` adds lines and changes none.\n\n";

/// How many characters of the words a line has.
const MAX_CHARS: usize = 300;

/// One thing that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// When, in RFC 3339.
    pub at: &'a str,
    /// What, as in `playbook.promoted`.
    pub event: &'a str,
    pub slug: &'a str,
    pub words: &'a str,
}

/// The line, without a line break.
impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at, event, words) = (one_line(self.at), one_line(self.event), one_line(self.words));
        write!(f, "- {at} · {event} · `{}`", code_span(self.slug))?;
        if words.is_empty() {
            return Ok(());
        }
        let more = words.chars().count() > MAX_CHARS;
        let shown: String = words.chars().take(if more { MAX_CHARS - 1 } else { MAX_CHARS }).collect();
        write!(f, " · {}{}", escaped(shown.trim_end()), if more { "…" } else { "" })
    }
}

/// Whether a log has a line, so that what is done again after a crash says it once.
pub fn contains(log: &str, line: &str) -> bool {
    let line = line.trim_end_matches(['\r', '\n']);
    log.lines().any(|known| known.trim_end_matches('\r') == line)
}

/// The log with lines below it. A last line that a crash has cut off ends where it was cut.
pub fn append(existing: &str, lines: &[String]) -> String {
    let mut out = if existing.trim().is_empty() { HEADER.to_owned() } else { existing.to_owned() };
    let end = if out.contains("\r\n") { "\r\n" } else { "\n" };
    if !out.ends_with('\n') {
        out.push_str(if out.ends_with('\r') { "\n" } else { end });
    }
    for line in lines {
        // A line break inside would be two entries.
        out.push_str(&one_line(line));
        out.push_str(end);
    }
    out
}

/// The log with all of these lines, in the order of their times; `None` where each of them is there already. Lines
/// that it has beside them stay: they may be of another ledger. What is no line of it goes.
pub fn restore(existing: &str, lines: &[String]) -> Option<(String, usize)> {
    let existing_lines: BTreeSet<&str> = existing.lines().map(|line| line.trim_end_matches('\r')).collect();
    let missing: BTreeSet<&str> =
        lines.iter().map(String::as_str).filter(|line| !existing_lines.contains(line)).collect();
    if missing.is_empty() {
        return None;
    }
    let is_entry = |line: &&str| line.starts_with("- ") && line.contains(" · playbook");
    let mut seen = BTreeSet::new();
    let known = existing.lines().map(|line| line.trim_end_matches('\r')).filter(is_entry);
    let all = lines.iter().map(String::as_str).chain(known);
    let mut all: Vec<&str> = all.filter(|line| seen.insert(*line)).collect();
    // A stable sort: what happened at one time stays in the ledger's order.
    all.sort_by_key(|line| line.split(" · ").next());
    let all: Vec<String> = all.into_iter().map(str::to_owned).collect();
    Some((append("", &all), missing.len()))
}

/// A text in one line, in which everything is seen: control characters and white space are blanks, one at a time.
pub(crate) fn one_line(text: &str) -> String {
    let text = escape_invisible_except(text, char::is_control);
    let blank = |c: char| c.is_control() || c.is_whitespace();
    text.split(blank).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A text that opens no HTML, which could hide what follows.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('<', "\\<")
}

/// A name that is between backticks.
pub(crate) fn code_span(text: &str) -> String {
    one_line(text).replace('`', "'")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &str) -> String {
        Line { at: "2026-11-21T10:00:00.000Z", event: "playbook.promoted", slug: "a-b", words }.to_string()
    }

    #[test]
    fn a_line_is_one_line() {
        // B5
        assert_eq!(
            line("by the gate\r\n`a-b`\u{2028}\t<!-- 12 of 14\u{202E}"),
            "- 2026-11-21T10:00:00.000Z · playbook.promoted · `a-b` · by the gate `a-b`[U+2028] \\<!-- 12 of 14[U+202E]"
        );
        assert_eq!(line(" \n"), "- 2026-11-21T10:00:00.000Z · playbook.promoted · `a-b`");
        let long = line(&"ü ".repeat(400));
        assert!(long.ends_with("ü ü…") && long.chars().count() < 370, "{long}");
        assert!(line(&"x".repeat(300)).ends_with("xxx"));
    }

    #[test]
    fn lines_are_added_once_and_never_glued() {
        // B5
        let one = line("one");
        let log = append("", std::slice::from_ref(&one));
        assert_eq!(log, format!("{HEADER}{one}\n"));
        assert!(
            contains(&log, &one)
                && contains(&log, &format!("{one}\n"))
                && contains(&log.replace('\n', "\r\n"), &one)
        );
        assert!(!contains(&log, &line("on")) && !contains(&log, &line("one more")));

        let torn = &log[..log.len() - 3];
        assert!(!contains(torn, &one));
        let two = line("two");
        assert_eq!(append(torn, &[one.clone(), two.clone()]), format!("{torn}\n{one}\n{two}\n"));
        assert_eq!(append("a\r\nb\r", std::slice::from_ref(&two)), format!("a\r\nb\r\n{two}\r\n"));
        assert_eq!(append(&log, &[]), log);
        assert_eq!(append("x", &["a\nb".to_owned()]), "x\na b\n");
    }

    #[test]
    fn a_log_is_rebuilt_from_its_lines() {
        // B5
        let at = |second: u32, words: &str| {
            let at = format!("2026-11-21T10:00:0{second}.000Z");
            Line { at: &at, event: "playbook.promoted", slug: "a-b", words }.to_string()
        };
        let lines = [at(1, "one"), at(3, "three"), at(3, "also three")];
        let whole = append("", &lines);
        assert_eq!(restore(&whole, &lines), None);
        assert_eq!(restore(&whole.replace('\n', "\r\n"), &lines), None);
        assert_eq!(restore("", &lines), Some((whole.clone(), 3)));
        let others = at(2, "of another ledger");
        let cut = append("", &[lines[0].clone(), others.clone(), "torn".to_owned()]);
        let expected = append("", &[lines[0].clone(), others, lines[1].clone(), lines[2].clone()]);
        assert_eq!(restore(&cut, &lines), Some((expected, 2)));
    }
}
