//! Citations: a comment that names a rule (`X7`) names one of `docs/semantics.md`, and that page's links to code lead somewhere.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context as _;

use super::Source;

const PAGE: &str = "docs/semantics.md";
/// The letters under which rules are numbered.
const AREAS: &str = "MXAVPHLDCKBQ";

pub(super) fn check(root: &Path, sources: &[Source]) -> anyhow::Result<Vec<String>> {
    let page = std::fs::read_to_string(root.join(PAGE)).with_context(|| format!("reading {PAGE}"))?;
    let rules: BTreeSet<String> = page
        .split("<a id=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .map(str::to_uppercase)
        .collect();
    let mut complaints = Vec::new();
    for source in sources {
        for (number, line) in source.text.lines().enumerate() {
            let Some(comment) = comment(line) else { continue };
            for cited in citations(comment).filter(|cited| !rules.contains(*cited)) {
                complaints.push(format!("{}:{}: {PAGE} has no rule {cited}", source.path, number + 1));
            }
        }
    }
    for target in page.split("](../").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
        if !root.join(target).exists() {
            complaints.push(format!("{PAGE} links to {target}, which does not exist"));
        }
    }
    Ok(complaints)
}

/// What follows a line's `//`, where that is not part of an address.
fn comment(line: &str) -> Option<&str> {
    let start = line.match_indices("//").find(|(at, _)| !line[..*at].ends_with(':'))?.0;
    Some(&line[start..])
}

/// The words of a comment that look like a rule: a letter of an area and one or two digits.
fn citations(comment: &str) -> impl Iterator<Item = &str> {
    comment.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-' && c != '+').filter(|word| {
        let mut letters = word.chars();
        letters.next().is_some_and(|area| AREAS.contains(area))
            && (1..=2).contains(&letters.as_str().len())
            && letters.all(|c| c.is_ascii_digit())
    })
}
