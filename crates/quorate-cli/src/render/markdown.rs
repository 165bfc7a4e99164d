//! A report as Markdown for a pull request, and the digest of several reviews: a table, then each review, folded.
//!
//! All foreign text is escaped: it cannot format, link or mention.

use quorate::service::member_usage::MemberUsage;
use quorate::service::report::ReviewReport;
use quorate_protocol::policy::Verdict;

use super::brief::{Brief, MAX_PLACES, Place, Point};
use super::layout::{one_line, sanitize, truncate};
use super::wording::{amount, duration, list, minute, undecided};
use super::{Extent, deliberator_row};

/// The longest shown quote, in characters.
const QUOTE: usize = 300;

pub(crate) fn markdown(report: &ReviewReport, extent: Extent) -> String {
    let members = match extent {
        Extent::Screen => String::new(),
        Extent::Full => members(&report.members),
    };
    let sections = match report.unjudged {
        Some(_) if extent == Extent::Screen => vec![head(report), overridden(report), foot(report)],
        _ => vec![
            head(report),
            table(report),
            section("Reasoning", (report.reasoning != report.because).then_some(&*report.reasoning)),
            brief(report),
            asks(report),
            section("Revision brief", report.revision_brief.as_deref()),
            section("Dissent", report.dissent_summary.as_deref()),
            overridden(report),
            members,
            notes(report),
            foot(report),
        ],
    };
    let sections: Vec<&str> =
        sections.iter().map(|section| section.trim_end()).filter(|text| !text.is_empty()).collect();
    sections.join("\n\n") + "\n"
}

fn head(report: &ReviewReport) -> String {
    let word = report.verdict_word();
    let because = match report.verdict {
        _ if !report.because.is_empty() => inline(&report.because),
        _ => undecided(&report.run, report.imported, report.queued),
    };
    let override_decision = report.overridden.as_ref().map_or_else(String::new, |override_decision| {
        format!("\n\nA person decided **{}**: see below.", inline(&override_decision.verdict))
    });
    let over_blocks =
        report.ship_over_blocks().map_or_else(String::new, |over_blocks| format!(" {over_blocks}"));
    let basis = report.basis().map_or_else(String::new, |basis| format!(" ({basis})"));
    format!("## {word}{over_blocks}{basis}: {}\n\n{because}{override_decision}", code(&report.artifact))
}

fn table(report: &ReviewReport) -> String {
    let headings = deliberator_row::headings(report.rounds);
    let mut out = format!("| {} |\n|{}\n", headings.join(" | "), " --- |".repeat(headings.len()));
    for deliberator in &report.deliberators {
        let cells: Vec<String> =
            deliberator_row::row(report, deliberator).into_iter().map(|cell| inline(&cell.text)).collect();
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    let remarks = [deliberator_row::reactions(report), deliberator_row::absences(report)].concat();
    if !remarks.is_empty() {
        out.push('\n');
    }
    for (member, remark) in remarks {
        out.push_str(&format!("- {}: {}\n", inline(&member), inline(&remark)));
    }
    out
}

/// Each member's executor and usage.
pub(super) fn members(members: &[MemberUsage]) -> String {
    let (headings, rows) = deliberator_row::usage_table(members);
    if rows.is_empty() {
        return String::new();
    }
    let mut out = format!(
        "### {}\n\n| {} |\n|{}\n",
        deliberator_row::USAGE_TITLE,
        headings.join(" | "),
        " --- |".repeat(headings.len())
    );
    for cells in rows {
        let cells: Vec<String> = cells.iter().map(|cell| inline(cell)).collect();
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    if let more @ 1.. = deliberator_row::usage_left_out(members) {
        out.push_str(&format!("\n… and {}.\n", amount(more as u64, "more member")));
    }
    out
}

fn section(title: &str, text: Option<&str>) -> String {
    let body = text.map(paragraphs).filter(|text| !text.trim().is_empty());
    body.map_or_else(String::new, |body| format!("### {title}\n\n{body}"))
}

fn brief(report: &ReviewReport) -> String {
    let brief = Brief::of(report);
    if brief.is_empty() {
        return String::new();
    }
    let mut out = format!("### Brief: {}\n", amount(brief.findings as u64, "finding"));
    for (at, place) in brief.places.iter().enumerate() {
        out.push_str(&item(report, place, at + 1));
    }
    if !brief.ungrounded.is_empty() {
        out.push_str("\nUngrounded: these quotes are not in the text.\n");
    }
    for (at, place) in brief.ungrounded.iter().enumerate() {
        out.push_str(&item(report, place, brief.places.len() + at + 1));
    }
    if brief.more > 0 {
        let remainder = amount(brief.more as u64, "more finding");
        out.push_str(&format!(
            "\n… and {remainder} beyond the first {MAX_PLACES} places: `quorate show {} --format json` lists all.\n",
            report.run
        ));
    }
    out
}

fn item(report: &ReviewReport, place: &Place<'_>, number: usize) -> String {
    let name_of = |member: &&str| {
        format!(
            "**{}**{}",
            inline(member),
            if deliberator_row::blocks(report, member) { " (blocks)" } else { "" }
        )
    };
    let names: Vec<String> = place.by.iter().map(name_of).collect();
    let names = list(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let at = place.at.map_or_else(String::new, |(line, column)| {
        format!("{}, ", code(&format!("{}:{line}:{column}", report.artifact)))
    });
    let mut out = format!("\n{number}. {at}{names}\n\n   > {}\n\n", inline(&truncate(&place.quote, QUOTE)));
    for Point { by, issue, fix } in &place.points {
        let authors = if *by == place.by { String::new() } else { format!("{}: ", inline(&list(by))) };
        let fix = fix.as_ref().map_or_else(String::new, |fix| format!(" **Fix:** {}", inline(fix)));
        out.push_str(&format!("   - {authors}{}{fix}\n", inline(issue)));
    }
    out
}

fn asks(report: &ReviewReport) -> String {
    let items = super::deliberator_row::member_requests(report);
    let items: Vec<String> =
        items.iter().map(|(member, text)| format!("- {}: {}\n", inline(member), inline(text))).collect();
    if items.is_empty() { String::new() } else { format!("### What each asks for\n\n{}", items.concat()) }
}

fn overridden(report: &ReviewReport) -> String {
    let Some(override_decision) = &report.overridden else { return String::new() };
    let council = report.verdict.map_or("nothing yet", Verdict::as_str);
    let (author, verdict) = (inline(&override_decision.by), inline(&override_decision.verdict));
    format!(
        "### A person's decision\n\n{author} decided **{verdict}**; the council's verdict stays {council}.\n\n{}",
        paragraphs(&override_decision.reason)
    )
}

fn notes(report: &ReviewReport) -> String {
    let items: Vec<String> = report.all_notes().iter().map(|note| format!("- {}\n", inline(note))).collect();
    if items.is_empty() { String::new() } else { format!("### Notes\n\n{}", items.concat()) }
}

fn foot(report: &ReviewReport) -> String {
    format!(
        "<sub>run {}, {} UTC; {}, tier {}; policy {}; executor {}; {}, {}</sub>",
        inline(&report.run),
        minute(report.opened_ms),
        inline(&report.artifact_type),
        report.tier,
        inline(&report.policy),
        inline(&report.executor),
        amount(u64::from(report.calls), "call"),
        duration(report.took),
    )
}

/// The most rows of the table.
const MAX_ROWS: usize = 100;
/// The longest reason in the table, in characters.
const MAX_REASON: usize = 200;
/// The longest path in the table, in characters.
const MAX_PATH: usize = 200;

/// A text, and its review or the reason why there is none.
pub(crate) struct DigestEntry<'r> {
    pub(crate) path: &'r str,
    pub(crate) result: Result<&'r ReviewReport, String>,
}

impl DigestEntry<'_> {
    fn verdict(&self) -> &str {
        self.result.as_ref().map_or("not reviewed", |report| report.verdict_word())
    }

    fn why(&self) -> &str {
        match &self.result {
            Ok(report) => &report.because,
            Err(why) => why,
        }
    }

    fn row(&self) -> String {
        let path = code(&truncate(self.path, MAX_PATH));
        format!("| {} | {path} | {} |\n", self.verdict(), inline(&truncate(self.why(), MAX_REASON)))
    }

    fn details(&self) -> String {
        let Ok(report) = &self.result else { return String::new() };
        // Renderers do not parse Markdown within an HTML block.
        let path = html(&truncate(self.path, MAX_PATH));
        let text = markdown(report, Extent::Screen);
        format!(
            "\n<details>\n<summary>{}: <code>{path}</code></summary>\n\n{text}\n</details>\n",
            self.verdict()
        )
    }
}

/// The digest, cut to a maximum number of characters, for entries in the order of the table. `about` is a line below the
/// heading, and can be empty.
pub(crate) fn digest(entries: &[DigestEntry<'_>], about: &str, most: usize) -> String {
    let about = if about.is_empty() { String::new() } else { format!("{about}\n\n") };
    let heading = match entries {
        [] => "no text to review".to_owned(),
        [only] => format!("{} for {}", only.verdict(), code(&truncate(only.path, MAX_PATH))),
        several => counts(several),
    };
    let mut out = format!("### Quorate: {heading}\n\n{about}");
    if entries.is_empty() {
        out.push_str("No reviewed text has changed.\n");
        return out;
    }
    out.push_str("| verdict | text | why |\n| --- | --- | --- |\n");
    out.extend(entries.iter().take(MAX_ROWS).map(DigestEntry::row));
    if let more @ 1.. = entries.len().saturating_sub(MAX_ROWS) {
        out.push_str(&format!("\n… and {}.\n", amount(more as u64, "more text")));
    }
    let note = "\nThe other reviews are too long to be shown here.\n";
    let mut left = most.saturating_sub(out.chars().count() + note.len());
    for details in entries.iter().map(DigestEntry::details) {
        let Some(rest) = left.checked_sub(details.chars().count()) else {
            out.push_str(note);
            break;
        };
        left = rest;
        out.push_str(&details);
    }
    out
}

/// The number of texts with each verdict, in the order of the entries: `1 HOLD, 2 SHIP`.
fn counts(entries: &[DigestEntry<'_>]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for entry in entries {
        match counts.iter_mut().find(|(verdict, _)| *verdict == entry.verdict()) {
            Some((_, count)) => *count += 1,
            None => counts.push((entry.verdict(), 1)),
        }
    }
    let counts: Vec<String> = counts.iter().map(|(verdict, count)| format!("{count} {verdict}")).collect();
    counts.join(", ")
}

/// Has no width, but keeps renderers from recognizing a mention or a reference behind it.
const ZERO_WIDTH_SPACE: &str = "&#8203;";

/// Text on one line, for running text and table cells.
pub(crate) fn inline(text: &str) -> String {
    escaped(&one_line(text))
}

/// Escaped paragraphs. Lists stay lists.
pub(super) fn paragraphs(text: &str) -> String {
    let mut out = String::new();
    for paragraph in sanitize(text).trim().lines() {
        let words = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        let (bullet, rest) = match words.strip_prefix("- ").or_else(|| words.strip_prefix("* ")) {
            Some(rest) => ("- ", rest),
            None => ("", &*words),
        };
        out.push_str(bullet);
        out.push_str(&escaped(rest));
        out.push('\n');
    }
    out
}

/// A word as code, which its content cannot end.
pub(super) fn code(text: &str) -> String {
    let text = one_line(text).replace('|', "\u{2502}");
    let fence = "`".repeat(longest_run(&text) + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

/// Text on one line, within an HTML element.
pub(super) fn html(text: &str) -> String {
    one_line(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Lines as a code block, which their content cannot end.
pub(super) fn fenced(text: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    format!("{fence}text\n{}\n{fence}\n", text.trim_end())
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    let mut begin = 0;
    while let Some(c) = rest.next() {
        let from_here = &text[begin..];
        begin += c.len_utf8();
        match c {
            c if !before.is_alphanumeric() && begins_reference(from_here) => {
                out.push(c);
                out.push_str(ZERO_WIDTH_SPACE);
            }
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '@' | '#' if rest.peek().is_some_and(|next| next.is_alphanumeric()) => {
                out.push(c);
                out.push_str(ZERO_WIDTH_SPACE);
            }
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '$' | '!' => {
                out.push('\\');
                out.push(c);
            }
            // At the beginning of a line these start a heading, a list or a rule.
            '#' | '-' | '+' | '=' if out.is_empty() => {
                out.push('\\');
                out.push(c);
            }
            '.' | ')'
                if rest.peek().is_none_or(|next| *next == ' ')
                    && out.bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                out.push('\\');
                out.push(c);
            }
            // Bare addresses would become links.
            ':' if before.is_alphanumeric() && rest.peek() == Some(&'/') => {
                out.push(c);
                out.push_str(ZERO_WIDTH_SPACE);
            }
            // :tada: is a picture.
            ':' if !before.is_alphanumeric() && rest.peek().is_some_and(|next| begins_emoji(*next)) => {
                out.push(c);
                out.push_str(ZERO_WIDTH_SPACE);
            }
            '.' if out.ends_with("www") => {
                out.push_str(ZERO_WIDTH_SPACE);
                out.push(c);
            }
            c => out.push(c),
        }
        before = c;
    }
    out
}

/// Whether a text begins with what GitHub links without any sign: an issue (`GH-12`), an advisory, or a commit by seven or more digits of its
/// hash.
fn begins_reference(text: &str) -> bool {
    let (word, rest) = text.split_at(text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len()));
    let is_prefix = ["GH", "GHSA", "CVE"].iter().any(|prefix| word.eq_ignore_ascii_case(prefix));
    let is_hash = (7..=64).contains(&word.len())
        && word.bytes().all(|byte| byte.is_ascii_hexdigit())
        && word.bytes().any(|byte| byte.is_ascii_digit());
    is_hash || is_prefix && rest.starts_with('-') && rest[1..].starts_with(char::is_alphanumeric)
}

fn begins_emoji(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '_')
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{hold, ship};
    use super::*;

    #[test]
    fn the_table_names_every_text_and_the_reviews_follow() {
        let (hold, ship) = (hold(), ship());
        let entries = [
            DigestEntry { path: "drafts/`a`|b @team.md", result: Ok(&hold) },
            DigestEntry { path: "drafts/c.md", result: Ok(&ship) },
            DigestEntry { path: "drafts/d.bin", result: Err("it is not text in UTF-8".to_owned()) },
        ];
        let text = digest(&entries, "Commit 12.", 60_000);
        assert!(
            text.starts_with(
                "### Quorate: 1 HOLD, 1 SHIP, 1 not reviewed\n\nCommit 12.\n\n| verdict | text | why |\n"
            ),
            "{text}"
        );
        assert!(text.contains("| HOLD | ``drafts/`a`│b @team.md`` | 3 of 4 block"), "{text}");
        assert!(text.contains("| not reviewed | `drafts/d.bin` | it is not text in UTF-8 |"), "{text}");
        assert!(text.contains("<summary>HOLD: <code>drafts/`a`|b @team.md</code></summary>"), "{text}");
        assert_eq!(text.matches("<details>").count(), 2);
        assert_eq!(text.matches("</details>").count(), 2);
    }

    #[test]
    fn it_is_never_longer_than_allowed() {
        let hold = hold();
        let entries: Vec<DigestEntry<'_>> =
            (0..300).map(|_| DigestEntry { path: "drafts/a.md", result: Ok(&hold) }).collect();
        let text = digest(&entries, "Commit 12.", 60_000);
        assert!(text.chars().count() <= 60_000, "{}", text.chars().count());
        assert!(text.contains("… and 200 more texts."), "{text}");
        assert!(text.ends_with("shown here.\n"), "{text}");
        assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
    }
}

#[cfg(test)]
mod escape_tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(inline(text), expected);
    }

    #[test]
    fn nothing_formats_links_or_calls() {
        check("*a* _b_ `c` ~d~ [e](f) | g", "\\*a\\* \\_b\\_ \\`c\\` \\~d\\~ \\[e\\](f) \\| g");
        check("<script>&amp;", "&lt;script&gt;&amp;amp;");
        check("ping @octocat, fixes #12", "ping @&#8203;octocat, fixes #&#8203;12");
        check("https://a.example www.b.example", "https:&#8203;//a.example www&#8203;.b.example");
        check("# a\n\n- b", "\\# a - b");
        check("1. a", "1\\. a");
        check("2.5", "2.5");
        check("GH-12, at 10:30 :tada: so: no", "G&#8203;H-12, at 10:30 :&#8203;tada: so: no");
        check("CVE-2021-44228 ghsa-jfh8-c2jp", "C&#8203;VE-2021-44228 g&#8203;hsa-jfh8-c2jp");
        check("fixed in 9515ae5, v9515ae5", "fixed in 9&#8203;515ae5, v9515ae5");
        check("é9515ae56 defaced 123456 GH- é", "é9515ae56 defaced 123456 GH- é");
        check("", "");
    }

    #[test]
    fn paragraphs_and_lists_stay() {
        assert_eq!(paragraphs("a *b*\n\n* c\n- d\n===\n"), "a \\*b\\*\n\n- c\n- d\n\\===\n");
    }

    #[test]
    fn code_cannot_be_ended_from_within() {
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(code("``a"), "``` ``a ```");
        assert_eq!(code("a\n|b"), "`a │b`");
        assert_eq!(fenced("x\n```\ny\n"), "````text\nx\n```\ny\n````\n");
    }
}
