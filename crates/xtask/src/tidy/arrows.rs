//! Crate arrows: data moves one way, and crates depend on each other in that order alone.

use std::path::Path;

use anyhow::Context as _;
use cargo_metadata::{DependencyKind, MetadataCommand};

/// Our crates in the order in which data moves through them: each may depend on those before it.
const ORDER: [&str; 13] = [
    "quorate-diagnostics",
    "quorate-text",
    "quorate-eval",
    "quorate-manifest",
    "quorate-protocol",
    "quorate-playbook",
    "quorate-kernel",
    "quorate-adapters",
    "quorate-ledger",
    "quorate",
    "quorate-mcp",
    "quorate-web",
    "quorate-cli",
];

/// Crates that are beside the order, each with the last of those that it may depend on.
const BESIDE: [(&str, &str); 2] = [("quorate-testkit", "quorate-ledger"), ("xtask", "")];

/// Crates that stand side by side: neither depends on the other, and the testkit not on the first.
const APART: [(&str, &str); 3] = [
    ("quorate-ledger", "quorate-adapters"),
    ("quorate-testkit", "quorate-adapters"),
    ("quorate-web", "quorate-mcp"),
];

/// Front ends that reach everything through the public API, each with all crates of this workspace that it may depend on.
const FRONT_ENDS: [(&str, &[&str]); 3] = [
    ("quorate-mcp", &["quorate-diagnostics", "quorate"]),
    ("quorate-web", &["quorate-diagnostics", "quorate"]),
    ("quorate-cli", &["quorate-diagnostics", "quorate", "quorate-mcp", "quorate-web"]),
];

/// The crates of this workspace that a crate may depend on; `None` if the crate has no place in the order.
fn allowed(name: &str) -> Option<Vec<&'static str>> {
    if let Some((_, all)) = FRONT_ENDS.iter().find(|(known, _)| *known == name) {
        return Some(all.to_vec());
    }
    let place = |name: &str| ORDER.iter().position(|known| *known == name);
    let before = match BESIDE.iter().find(|(known, _)| *known == name) {
        Some((_, last)) => place(last).map_or(0, |last| last + 1),
        None => place(name)?,
    };
    let apart = |other: &str| APART.contains(&(name, other));
    Some(ORDER[..before].iter().copied().filter(|other| !apart(other)).collect())
}

/// Crates whose functions are pure.
const PURE: [&str; 3] = ["quorate-text", "quorate-eval", "quorate-protocol"];

/// Crates that a pure crate must not depend on.
const IMPURE: &[&str] = &["tokio", "futures", "async-trait", "getrandom", "rand", "jiff", "sqlx"];

pub(super) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let metadata =
        MetadataCommand::new().current_dir(root).no_deps().exec().context("reading cargo metadata")?;
    let mut complaints = Vec::new();
    for package in &metadata.packages {
        let name = package.name.as_str();
        let Some(allowed) = allowed(name) else {
            complaints
                .push(format!("the crate {name} has no place among the arrows (xtask/src/tidy/arrows.rs)"));
            continue;
        };
        let normal =
            package.dependencies.iter().filter(|dependency| dependency.kind == DependencyKind::Normal);
        for dependency in normal {
            let ours = dependency.name.starts_with("quorate");
            if ours && !allowed.contains(&&*dependency.name) {
                complaints.push(format!("{name} must not depend on {}", dependency.name));
            }
            if PURE.contains(&name) && IMPURE.contains(&&*dependency.name) {
                complaints.push(format!("{name} is pure; it must not depend on {}", dependency.name));
            }
        }
        let folder = package.manifest_path.parent().and_then(|dir| dir.file_name());
        if folder != Some(name) {
            complaints.push(format!("the crate {name} does not lie in a folder of its name"));
        }
    }
    Ok(complaints)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_front_end_depends_on_the_public_api_alone() {
        assert_eq!(allowed("quorate-mcp"), Some(vec!["quorate-diagnostics", "quorate"]));
        let of_cli = allowed("quorate-cli").unwrap_or_default();
        assert!(of_cli.contains(&"quorate-mcp") && !of_cli.contains(&"quorate-kernel"));
        assert!(allowed("quorate-web").is_some_and(|all| !all.contains(&"quorate-mcp")));
        assert_eq!(allowed("quorate-unknown"), None);
    }

    #[test]
    fn front_ends_have_a_place_in_the_order() {
        let known = |name: &str| ORDER.contains(&name);
        assert!(FRONT_ENDS.iter().all(|(name, all)| known(name) && all.iter().all(|other| known(other))));
    }
}
