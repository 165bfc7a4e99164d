//! Several reviews as one Markdown text for a pull request: a table, then each review, folded. All foreign text is escaped.

use quorate::service::report::Report;

use super::Extent;
use super::escape::{code, inline};
use super::markdown::markdown;
use super::wording::{amount, truncate};

/// The most rows of the table.
const MAX_ROWS: usize = 100;
/// The longest reason in the table, in characters.
const MAX_REASON: usize = 200;
/// The longest path in the table, in characters.
const MAX_PATH: usize = 200;

/// A text, and its review or the reason why there is none.
pub(crate) struct DigestEntry<'r> {
    pub(crate) path: &'r str,
    pub(crate) result: Result<&'r Report, String>,
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
        let path = inline(&truncate(self.path, MAX_PATH));
        let text = markdown(report, Extent::Screen);
        format!("\n<details>\n<summary>{}: {path}</summary>\n\n{text}\n</details>\n", self.verdict())
    }
}

/// The text, of at most so many characters, for entries in the order of the table.
pub(crate) fn digest(entries: &[DigestEntry<'_>], most: usize) -> String {
    let Some(first) = entries.first() else {
        return "### Quorate: no text to review\n\nNo text that is reviewed is changed.\n".to_owned();
    };
    let mut out = format!(
        "### Quorate: {} for {}\n\n| verdict | text | why |\n| --- | --- | --- |\n",
        first.verdict(),
        match entries.len() {
            1 => code(&truncate(first.path, MAX_PATH)),
            more => amount(more as u64, "text"),
        }
    );
    out.extend(entries.iter().take(MAX_ROWS).map(DigestEntry::row));
    if let more @ 1.. = entries.len().saturating_sub(MAX_ROWS) {
        out.push_str(&format!("\n… and {}.\n", amount(more as u64, "more text")));
    }
    let note = "\nThe other reviews are too long to be shown here; the reports of the workflow have them.\n";
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
        let text = digest(&entries, 60_000);
        assert!(text.starts_with("### Quorate: HOLD for 3 texts\n\n| verdict | text | why |\n"), "{text}");
        assert!(text.contains("| HOLD | ``drafts/`a`│b @team.md`` | 3 of 4 block"), "{text}");
        assert!(text.contains("| not reviewed | `drafts/d.bin` | it is not text in UTF-8 |"), "{text}");
        assert!(text.contains("<summary>HOLD: drafts/\\`a\\`\\|b @&#8203;team.md</summary>"), "{text}");
        assert_eq!(text.matches("<details>").count(), 2);
        assert_eq!(text.matches("</details>").count(), 2);
    }

    #[test]
    fn it_is_never_longer_than_allowed() {
        let hold = hold();
        let entries: Vec<DigestEntry<'_>> =
            (0..300).map(|_| DigestEntry { path: "drafts/a.md", result: Ok(&hold) }).collect();
        let text = digest(&entries, 60_000);
        assert!(text.chars().count() <= 60_000, "{}", text.chars().count());
        assert!(text.contains("… and 200 more texts."), "{text}");
        assert!(text.ends_with("have them.\n"), "{text}");
        assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
    }
}
