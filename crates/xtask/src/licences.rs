//! The licence texts of what is linked into the binary: `cargo run -p xtask -- licences TARGET`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, bail};
use cargo_metadata::{CargoOpt, DependencyKind, Metadata, MetadataCommand, PackageId};

/// What the files with a licence's text, or with notices that go with it, begin with.
const NAMES: [&str; 5] = ["license", "licence", "copying", "notice", "unlicense"];

/// Writes the texts to standard output, each once, below the packages that have it.
pub(crate) fn run(target: Option<&str>) -> anyhow::Result<()> {
    let Some(target) = target else { bail!("usage: cargo run -p xtask -- licences TARGET") };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).context("xtask lies in crates/")?;
    let metadata = MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .features(CargoOpt::AllFeatures)
        .other_options(["--locked".to_owned(), "--filter-platform".to_owned(), target.to_owned()])
        .exec()
        .context("asking cargo for the dependencies")?;
    print!("{}", texts(&metadata, &linked(&metadata)?)?);
    Ok(())
}

/// What is linked into `quorate`: what `quorate-cli` needs when it runs, and no package of this workspace.
fn linked(metadata: &Metadata) -> anyhow::Result<BTreeSet<PackageId>> {
    let resolve = metadata.resolve.as_ref().context("cargo gave no dependencies")?;
    let nodes: BTreeMap<&PackageId, _> = resolve.nodes.iter().map(|node| (&node.id, node)).collect();
    let start = metadata.packages.iter().find(|package| package.name.as_str() == "quorate-cli");
    let mut found = BTreeSet::new();
    let mut open = vec![start.context("the workspace has no package quorate-cli")?.id.clone()];
    while let Some(id) = open.pop() {
        let Some(node) = nodes.get(&id).filter(|_| found.insert(id.clone())) else { continue };
        let needed = node
            .deps
            .iter()
            .filter(|dep| dep.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal));
        open.extend(needed.map(|dep| dep.pkg.clone()));
    }
    found.retain(|id| !metadata.workspace_members.contains(id));
    Ok(found)
}

fn texts(metadata: &Metadata, linked: &BTreeSet<PackageId>) -> anyhow::Result<String> {
    let mut owners: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut all = String::from("Quorate contains these packages, under these licences.\n\n");
    let mut packages: Vec<_> =
        metadata.packages.iter().filter(|package| linked.contains(&package.id)).collect();
    packages.sort_by(|one, other| (&one.name, &one.version).cmp(&(&other.name, &other.version)));
    for package in packages {
        let name = format!("{} {}", package.name, package.version);
        let licence = package.license.as_deref().unwrap_or("see its text");
        all.push_str(&format!("{name}: {licence}\n"));
        let folder = package.manifest_path.parent().context("a manifest lies in a folder")?;
        for entry in std::fs::read_dir(folder).with_context(|| format!("reading {folder}"))? {
            let path = entry?.path();
            let stem = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
            if path.is_file() && NAMES.iter().any(|begin| stem.starts_with(begin)) {
                let text = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
                let text = String::from_utf8_lossy(&text).replace("\r\n", "\n").trim().to_owned();
                owners.entry(text).or_default().insert(name.clone());
            }
        }
    }
    for (text, names) in owners {
        let names: Vec<String> = names.into_iter().collect();
        all.push_str(&format!("\n{}\n{}\n\n{text}\n", "-".repeat(80), names.join(", ")));
    }
    Ok(all)
}
