//! The files that list playbooks: `_log.md`, one line for each event of a playbook, oldest first, only appended to (B5, B10); and
//! `_index.md`, all playbooks of a scope, which depends only on the playbooks (B5).

use std::collections::BTreeSet;
use std::fmt;
use std::fmt::Write as _;

use quorate_diagnostics::invisible::escape_invisible_except;
use quorate_manifest::playbook::{Playbook, Selector, Status, Target, Term};

/// The log's name in `playbooks/`.
pub const FILE_NAME: &str = "_log.md";

/// What a new log begins with.
const HEADER: &str = "# Log of playbooks\n\nWhat happened to the playbooks here, the newest last. `quorate` adds lines and changes none.\n\n";

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

/// The log with all of these lines, in the order of their times; `None` where each of them is there already. Other entries
/// stay, since they may belong to another ledger. Lines that are not entries are dropped.
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

/// The index's name in `playbooks/`.
pub const INDEX_FILE_NAME: &str = "_index.md";

/// The priority of what says none.
pub const DEFAULT_PRIORITY: u8 = 50;

/// The mark of an active playbook that passed no gate, in every view (B13).
pub const NEVER_GATED: &str = "never gated";

/// The index of playbooks, each with whether it is active although it passed no gate: by status, then priority, then slug,
/// independent of the input order.
pub fn index<'p>(playbooks: impl IntoIterator<Item = (&'p Playbook, bool)>) -> String {
    let mut all: Vec<(&Playbook, bool)> = playbooks.into_iter().collect();
    all.sort_by_key(|(playbook, _)| {
        (status_rank(playbook.status), std::cmp::Reverse(priority(playbook)), playbook.slug.clone())
    });
    let count = |wanted: Status| all.iter().filter(|(playbook, _)| playbook.status == wanted).count();
    let mut text = format!(
        "# Playbooks\n\n{} active, {} in shadow, {} archived. Written by `quorate`; changes are lost with the next write.\n",
        count(Status::Active),
        count(Status::Shadow),
        count(Status::Archived),
    );
    if !all.is_empty() {
        text.push_str(
            "\n| slug | title | targets | status | priority | lock_check |\n|---|---|---|---|---|---|\n",
        );
    }
    for (playbook, never_gated) in all {
        let status = playbook.status.as_str();
        let status = if never_gated { format!("{status}, {NEVER_GATED}") } else { status.to_owned() };
        let locks = playbook.lock_check.iter().map(|lock| cell(lock)).collect::<Vec<_>>().join(", ");
        let _ = writeln!(
            text,
            "| {} | {} | {} | {status} | {} | {} |",
            cell(&playbook.slug),
            cell(&playbook.title),
            cell(&describe_targets(playbook)),
            priority(playbook),
            locks,
        );
    }
    text
}

/// The priority with which a playbook is woven.
pub fn priority(playbook: &Playbook) -> u8 {
    playbook.priority.unwrap_or(DEFAULT_PRIORITY)
}

/// Where a status stands in lists.
pub fn status_rank(status: Status) -> u8 {
    match status {
        Status::Active => 0,
        Status::Shadow => 1,
        Status::Archived => 2,
    }
}

/// A text as one cell of a Markdown table.
fn cell(text: &str) -> String {
    let line: Vec<&str> = text.split_whitespace().collect();
    line.join(" ").replace('\\', "\\\\").replace('|', "\\|")
}

/// The targets of a playbook, in words.
fn describe_targets(playbook: &Playbook) -> String {
    if let Some(selector) = &playbook.selector {
        return describe_selector(selector);
    }
    let target = |target: &Target| format!("{}: {}", target.kind.as_str(), target.reference);
    playbook.targets.iter().flatten().map(target).collect::<Vec<_>>().join("; ")
}

fn describe_selector(selector: &Selector) -> String {
    let term = |axis: &str, values: &[String]| format!("{axis} = {}", values.join(" or "));
    let any_of = |clause: &Term| term(&clause.axis, &clause.any_of);
    let mut parts: Vec<String> =
        selector.axes.iter().map(|(axis, values)| term(axis, values.as_slice())).collect();
    parts.extend(selector.all_of.iter().flatten().map(any_of));
    if let Some(terms) = &selector.any_of {
        let terms: Vec<String> = terms.iter().map(any_of).collect();
        parts.push(format!("({})", terms.join(" or ")));
    }
    parts.join(" and ")
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

#[cfg(test)]
mod index_tests {
    use serde_json::{Value, json};

    use super::*;

    fn playbook(slug: &str, more: Value) -> Playbook {
        let mut playbook = json!({
            "schema": "playbooks/v1", "slug": slug, "title": "A | title\nof two lines.", "kind": "overlay",
            "targets": [{"kind": "role", "ref": "a"}, {"kind": "operator", "ref": "operator/*"}],
            "lock_check": ["warmth", "honesty"], "evidence": [{"kind": "run", "ref": "r1"}], "status": "shadow",
        });
        playbook.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        serde_json::from_value(playbook).unwrap()
    }

    #[test]
    fn every_playbook_has_a_line() {
        // B5
        let selector =
            json!({"selector": {"role": ["a", "b"], "anyOf": [{"axis": "skill", "anyOf": ["x"]}]}});
        let (one, two, three) = (
            playbook("one", json!({})),
            playbook("two", json!({"status": "active", "priority": 74, "lock_check": []})),
            playbook("three", selector),
        );
        let text = index([(&one, false), (&two, true), (&three, false)]);
        assert_eq!(text, index([(&three, false), (&one, false), (&two, true)]));
        let expected = "# Playbooks

1 active, 2 in shadow, 0 archived. Written by `quorate`; changes are lost with the next write.

| slug | title | targets | status | priority | lock_check |
|---|---|---|---|---|---|
| two | A \\| title of two lines. | role: a; operator: operator/* | active, never gated | 74 |  |
| one | A \\| title of two lines. | role: a; operator: operator/* | shadow | 50 | warmth, honesty |
| three | A \\| title of two lines. | role = a or b and (skill = x) | shadow | 50 | warmth, honesty |
";
        assert_eq!(text, expected);
        assert!(!index([]).contains("| slug |"));
    }
}
