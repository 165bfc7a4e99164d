//! A report as Markdown for a pull request, and the digest of several reviews: a table, then each review, folded.
//!
//! All foreign text is escaped: it cannot format, link or mention.

use quorate::service::member_usage::MemberUsage;
use quorate::service::report::Review;
use quorate_protocol::policy::Verdict;

use super::brief::{Brief, MAX_PLACES, Place, Point};
use super::layout::truncate;
use super::wording::{amount, duration, list, minute, undecided};
use super::{Extent, deliberator_row};
pub(crate) use quorate::view::markdown::{code, fenced, html, inline, paragraphs};

/// The longest shown quote, in characters.
const QUOTE: usize = 300;

pub(crate) fn markdown(report: &Review, extent: Extent) -> String {
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

fn head(report: &Review) -> String {
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

fn table(report: &Review) -> String {
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

fn brief(report: &Review) -> String {
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

fn item(report: &Review, place: &Place<'_>, number: usize) -> String {
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

fn asks(report: &Review) -> String {
    let items = super::deliberator_row::member_requests(report);
    let items: Vec<String> =
        items.iter().map(|(member, text)| format!("- {}: {}\n", inline(member), inline(text))).collect();
    if items.is_empty() { String::new() } else { format!("### What each asks for\n\n{}", items.concat()) }
}

fn overridden(report: &Review) -> String {
    let Some(override_decision) = &report.overridden else { return String::new() };
    let council = report.verdict.map_or("nothing yet", Verdict::as_str);
    let (author, verdict) = (inline(&override_decision.by), inline(&override_decision.verdict));
    format!(
        "### A person's decision\n\n{author} decided **{verdict}**; the council's verdict stays {council}.\n\n{}",
        paragraphs(&override_decision.reason)
    )
}

fn notes(report: &Review) -> String {
    let items: Vec<String> = report.all_notes().iter().map(|note| format!("- {}\n", inline(note))).collect();
    if items.is_empty() { String::new() } else { format!("### Notes\n\n{}", items.concat()) }
}

fn foot(report: &Review) -> String {
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
    pub(crate) result: Result<&'r Review, String>,
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
