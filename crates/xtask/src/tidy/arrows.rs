//! Crate arrows: data moves one way, and crates depend on each other in that order alone.

use std::path::Path;

use anyhow::Context as _;
use cargo_metadata::{DependencyKind, MetadataCommand};

/// For each crate, those of ours that it may depend on.
const ALLOWED: &[(&str, &[&str])] = &[
    ("quorate-diagnostics", &[]),
    ("quorate-manifest", &["quorate-diagnostics"]),
    ("quorate-protocol", &["quorate-diagnostics", "quorate-manifest"]),
    ("quorate-playbook", &["quorate-diagnostics", "quorate-manifest", "quorate-protocol"]),
    ("quorate-kernel", &["quorate-diagnostics", "quorate-manifest", "quorate-protocol", "quorate-playbook"]),
    (
        "quorate-adapters",
        &[
            "quorate-diagnostics",
            "quorate-manifest",
            "quorate-protocol",
            "quorate-playbook",
            "quorate-kernel",
        ],
    ),
    (
        "quorate-ledger",
        &[
            "quorate-diagnostics",
            "quorate-manifest",
            "quorate-protocol",
            "quorate-playbook",
            "quorate-kernel",
        ],
    ),
    (
        "quorate",
        &[
            "quorate-diagnostics",
            "quorate-manifest",
            "quorate-protocol",
            "quorate-playbook",
            "quorate-kernel",
            "quorate-adapters",
            "quorate-ledger",
        ],
    ),
    (
        "quorate-testkit",
        &[
            "quorate-diagnostics",
            "quorate-manifest",
            "quorate-protocol",
            "quorate-playbook",
            "quorate-kernel",
            "quorate-ledger",
        ],
    ),
    ("xtask", &[]),
];

/// What the protocol crate must not know.
const IMPURE: &[&str] = &["tokio", "futures", "async-trait", "getrandom", "rand", "jiff", "sqlx"];

pub(super) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let metadata =
        MetadataCommand::new().current_dir(root).no_deps().exec().context("reading cargo metadata")?;
    let mut complaints = Vec::new();
    for package in &metadata.packages {
        let name = package.name.as_str();
        let Some((_, allowed)) = ALLOWED.iter().find(|(one, _)| *one == name) else {
            complaints
                .push(format!("the crate {name} has no place among the arrows (xtask/src/tidy/arrows.rs)"));
            continue;
        };
        let normal = package.dependencies.iter().filter(|one| one.kind == DependencyKind::Normal);
        for dependency in normal {
            let ours = dependency.name.starts_with("quorate");
            if ours && !allowed.contains(&&*dependency.name) {
                complaints.push(format!("{name} must not depend on {}", dependency.name));
            }
            if name == "quorate-protocol" && IMPURE.contains(&&*dependency.name) {
                complaints
                    .push(format!("the protocol crate is pure; it must not depend on {}", dependency.name));
            }
        }
        let folder = package.manifest_path.parent().and_then(|dir| dir.file_name());
        if folder != Some(name) {
            complaints.push(format!("the crate {name} does not lie in a folder of its name"));
        }
    }
    Ok(complaints)
}
