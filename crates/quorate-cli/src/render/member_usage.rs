//! Each member's executor and usage: the rows of the table at the end of `show`.

use super::paint::one_line;
use super::wording::{digit_groups, dollars, duration};
use quorate::service::member_usage::MemberUsage;

/// The title of the table.
pub(super) const TITLE: &str = "Who was asked";

/// The most rows; a larger assembly has the rest in its JSON.
const SHOWN: usize = 40;

/// A heading, and the text below it of a member's row.
type Column = (&'static str, fn(&MemberUsage) -> String);

/// The headings and rows of the table, without escapes. Columns that no member has a value for are left out. No rows
/// where no member was asked.
pub(super) fn table(members: &[MemberUsage]) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let columns: [Column; 9] = [
        ("member", |one| one_line(&one.member)),
        ("through", |one| one_line(&one.executor)),
        ("model", model),
        ("calls", |one| digit_groups(one.spent.calls.into())),
        ("tokens in", |one| count(one.spent.usage.tokens_in)),
        ("cached", |one| count(one.spent.usage.tokens_cached)),
        ("out", |one| count(one.spent.usage.tokens_out)),
        ("US$", |one| one.spent.usage.usd_nanos.map_or_else(String::new, dollars)),
        ("time", |one| duration(one.spent.took)),
    ];
    let shown = &members[..members.len().min(SHOWN)];
    let filled = columns.into_iter().filter(|(_, cell)| shown.iter().any(|one| !cell(one).is_empty()));
    let (headings, cells): (Vec<_>, Vec<_>) = filled.unzip();
    (headings, shown.iter().map(|one| cells.iter().map(|cell| cell(one)).collect()).collect())
}

/// How many members the table leaves out.
pub(super) fn left_out(members: &[MemberUsage]) -> usize {
    members.len().saturating_sub(SHOWN)
}

/// The model that answered, and the one that was asked if that is another.
fn model(one: &MemberUsage) -> String {
    let answered = one.model.as_deref().map(one_line).unwrap_or_default();
    match &one.requested_model {
        Some(asked) => format!("{answered} (asked for {})", one_line(asked)),
        None => answered,
    }
}

/// Empty where it is not known.
fn count(tokens: Option<u64>) -> String {
    tokens.map_or_else(String::new, digit_groups)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use quorate_diagnostics::render::TextOptions;
    use quorate_kernel::consultation::Cost;
    use quorate_kernel::ports::executor::Usage;

    use super::super::fixture::ship;
    use super::super::{Extent, human, markdown};
    use super::*;

    fn usage(member: &str, executor: &str, model: Option<&str>, usage: Usage) -> MemberUsage {
        MemberUsage {
            member: member.to_owned(),
            executor: executor.to_owned(),
            kind: "llm".to_owned(),
            model: model.map(str::to_owned),
            requested_model: None,
            spent: Cost { calls: 2, usage, took: Duration::from_millis(12_345) },
        }
    }

    #[test]
    fn each_member_has_a_row_and_no_column_is_empty() {
        let paid = Usage {
            tokens_in: Some(12_040),
            tokens_cached: Some(8_000),
            tokens_out: Some(2_310),
            usd_nanos: Some(41_100_000),
            ..Usage::default()
        };
        let mut report = ship();
        report.members = vec![
            MemberUsage {
                requested_model: Some("large".to_owned()),
                ..usage("skeptic", "anthropic", Some("large-2026"), paid)
            },
            usage("evidence", "rubric", None, Usage::default()),
        ];
        let shown = human(&report, Extent::Full, TextOptions { width: 100, ..TextOptions::default() });
        let table = &shown[shown.find(TITLE).expect("the table")..];
        insta::assert_snapshot!(table, @"
        Who was asked
          member    through    model                         calls  tokens in  cached  out    US$   time
          ────────────────────────────────────────────────────────────────────────────────────────────────
          skeptic   anthropic  large-2026 (asked for large)  2      12,040     8,000   2,310  0.05  12.3 s
          evidence  rubric                                   2                                      12.3 s
        ");
        let shown = markdown(&report, Extent::Full);
        assert!(shown.contains("| evidence | rubric |"), "{shown}");
        assert!(!human(&report, Extent::Screen, TextOptions::default()).contains(TITLE));
        report.members.remove(0);
        let (headings, _) = super::table(&report.members);
        assert_eq!(headings, ["member", "through", "calls", "time"]);
    }
}
