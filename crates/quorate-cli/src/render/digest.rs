//! Several reviews as one Markdown text for a pull request: a table, then each review, folded. All foreign text is escaped.

use quorate::service::report::Report;

use super::Extent;
use super::escape::{code, html, inline};
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
