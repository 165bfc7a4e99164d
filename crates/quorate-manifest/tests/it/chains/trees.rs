//! Whole trees: the order in which files are listed and checked changes no diagnostic and no byte of the result (M12).

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::select;
use quorate_diagnostics::{Body, Report};
use quorate_manifest::check::{self, Deduplicator, Discovery, FileOutcome};
use quorate_manifest::loader::{Loader, OpenResult, Options};
use quorate_manifest::tree::emit;
use quorate_manifest::workspace::{DirEntry, Memory, WorkspaceError, WorkspacePath};
use quorate_manifest::{Workspace, assembly};
use serde_json::json;

use crate::chains::capabilities::AllCapabilities;
use crate::chains::config;
use crate::chains::generated::bytes;

/// A workspace that lists its folders backwards.
struct ReversedListing(Memory);

impl Workspace for ReversedListing {
    fn read(&self, location: &WorkspacePath) -> Result<Vec<u8>, WorkspaceError> {
        self.0.read(location)
    }

    fn list(&self, location: &WorkspacePath) -> Result<Vec<DirEntry>, WorkspaceError> {
        let mut listed = self.0.list(location)?;
        listed.reverse();
        Ok(listed)
    }
}

const SCOPES: [&str; 4] = ["", "", "tenants/t1/", "tenants/t2/"];
const SLUGS: [&str; 3] = ["ada", "bea", "cea"];
/// The path from a manifest's folder to a parent: usually a neighbour, sometimes the workspace's or another tenant's.
const EXTENDS_PATHS: [&str; 6] = [
    "../ada/",
    "../ada/",
    "../bea/",
    "../cea/",
    "../../../../assemblies/ada/",
    "../../../t1/assemblies/ada/",
];

/// Files that refer to each other, to missing files, and in circles.
fn trees() -> impl Strategy<Value = BTreeMap<String, Vec<u8>>> {
    let (scope, slug) = (select(&SCOPES[..]), select(&SLUGS[..]));
    let way = prop::option::of(select(&EXTENDS_PATHS[..]));
    let some = (scope, slug.clone(), way, slug, 0..12_u8);
    let file = some.prop_map(|(scope, slug, way, other, which)| match which {
        0..=4 => assembly(scope, slug, way, other),
        5..=7 => persona(scope, slug, way, other),
        8 => operator(scope, "operators", slug, other),
        9 => operator(scope, "drafts", slug, other),
        10 => playbook(scope, slug, other),
        // A removed file.
        _ => (format!("{scope}operators/{slug}/OPERATOR.md"), Vec::new()),
    });
    prop::collection::vec(file, 1..12).prop_map(|files| {
        let usual = SCOPES.into_iter().skip(1).flat_map(|scope| {
            let of = move |slug| [persona(scope, slug, None, slug), operator(scope, "operators", slug, slug)];
            SLUGS.into_iter().flat_map(of)
        });
        let mut all: BTreeMap<String, Vec<u8>> = usual.chain(files).collect();
        all.retain(|_, bytes| !bytes.is_empty());
        all
    })
}

fn assembly(scope: &str, slug: &str, way: Option<&str>, other: &str) -> (String, Vec<u8>) {
    let mut document = json!({
        "mode": "peer",
        "lockedTraits": [other],
        "members": [{"id": other, "persona": format!("ws://personas/{other}"), "role": "r"}],
        "executor": format!("ws://operators/{other}"),
    });
    let extends = way.map(|way| format!("{way}ASSEMBLY.md"));
    if extends.is_some() {
        document["appliesTo"] = json!([format!("ws://operators/{slug}")]);
    }
    (format!("{scope}assemblies/{slug}/ASSEMBLY.md"), bytes(&document, 0, extends.as_deref()))
}

fn persona(scope: &str, slug: &str, way: Option<&str>, other: &str) -> (String, Vec<u8>) {
    let extends = way.map_or_else(String::new, |way| {
        format!("extends: {}PERSONA.md\n", way.replace("assemblies", "personas"))
    });
    let keys = format!("name: {slug}\ntitle: T\ndescription: D\nversion: 1.0.0\n{extends}");
    let relationships = format!("relationships: [{{persona: ws://personas/{other}, kind: k}}]\n");
    let text = format!("---\nschema: persona/v1\n{keys}{relationships}---\n");
    (format!("{scope}personas/{slug}/PERSONA.md"), text.into_bytes())
}

fn operator(scope: &str, place: &str, slug: &str, persona: &str) -> (String, Vec<u8>) {
    let text = format!("---\nid: {slug}\nname: N\npersona: {persona}\n---\n");
    (format!("{scope}{place}/{slug}/OPERATOR.md"), text.into_bytes())
}

fn playbook(scope: &str, slug: &str, target: &str) -> (String, Vec<u8>) {
    let keys = format!(
        "slug: {slug}\ntitle: T\ntargets: [{{kind: operator, ref: {target}}}]\nkind: overlay\nlock_check: []\n"
    );
    let text = format!(
        "---\nschema: playbooks/v1\n{keys}evidence: [{{kind: human, ref: r}}]\nstatus: shadow\n---\n"
    );
    (format!("{scope}playbooks/{slug}.md"), text.into_bytes())
}

/// All diagnostics, sorted, and the bytes of all resolved manifests.
fn outcome(workspace: &dyn Workspace, paths: &[String]) -> (Vec<String>, BTreeMap<String, String>) {
    let loader = Loader::new(workspace, &AllCapabilities, Options::default());
    let locations: Vec<WorkspacePath> =
        paths.iter().map(|path| WorkspacePath::new(path).expect("a path in the workspace")).collect();
    check::register_planned(&loader, &locations);
    let (mut once, mut report) = (Deduplicator::default(), Report::new());
    for location in &locations {
        match check::check(&loader, location, Discovery::Walked) {
            FileOutcome::Checked(_, said) | FileOutcome::Assembly(said, _) => once.add(said, &mut report),
            other => panic!("{location}: {other:?}"),
        }
    }
    let mut bytes = BTreeMap::new();
    for location in locations.iter().filter(|location| location.name() == "ASSEMBLY.md") {
        if let OpenResult::Document(document) = loader.open(location)
            && let Some(resolved) = assembly::load(&loader, &document).value
        {
            bytes.insert(location.workspace_relative(), emit(&resolved.chain.merged));
        }
    }
    let line = |severity: &str, code: &str, body: &Body| format!("{severity} {code} {body:?}");
    let refusals =
        report.refusals.iter().map(|refusal| line("refusal", refusal.code.as_str(), &refusal.body));
    let warnings =
        report.warnings.iter().map(|warning| line("warning", warning.code.as_str(), &warning.body));
    let mut lines: Vec<String> = refusals.chain(warnings).collect();
    lines.sort();
    (lines, bytes)
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn the_order_of_files_changes_nothing(
        (files, shuffled) in trees().prop_flat_map(|files| {
            let paths: Vec<String> = files.keys().cloned().collect();
            (Just(files), Just(paths).prop_shuffle())
        }),
    ) {
        let memory = files.iter().fold(Memory::new(), |memory, (path, bytes)| memory.with(path, bytes.clone()));
        let paths: Vec<String> = files.keys().cloned().collect();
        let sorted = outcome(&memory, &paths);
        prop_assert_eq!(&sorted, &outcome(&memory, &shuffled));
        prop_assert_eq!(&sorted, &outcome(&ReversedListing(memory), &shuffled));
    }
}
