//! Whole trees: the order in which files are listed and checked changes nothing that is said, and no byte of what comes
//! of them (M12).

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::select;
use quorate_diagnostics::{Body, Report};
use quorate_manifest::check::{self, Checked, Named, Once};
use quorate_manifest::round::{Opened, Options, Round};
use quorate_manifest::tree::emit;
use quorate_manifest::workspace::{Error, Listed, Memory, Spot};
use quorate_manifest::{Workspace, assembly};
use serde_json::json;

use crate::config;
use crate::everything::Everything;
use crate::written::bytes;

/// A workspace that lists its folders backwards.
struct Backwards(Memory);

impl Workspace for Backwards {
    fn read(&self, spot: &Spot) -> Result<Vec<u8>, Error> {
        self.0.read(spot)
    }

    fn list(&self, spot: &Spot) -> Result<Vec<Listed>, Error> {
        let mut listed = self.0.list(spot)?;
        listed.reverse();
        Ok(listed)
    }
}

/// Files that refer to each other, to what is not there, and in circles.
fn trees() -> impl Strategy<Value = BTreeMap<String, Vec<u8>>> {
    let scope = select(&["", "", "tenants/t1/", "tenants/t2/"][..]);
    let slug = select(&["ada", "bea", "cea"][..]);
    let up = select(
        &["../ada/", "../bea/", "../cea/", "../../../../assemblies/ada/", "../../../t1/assemblies/ada/"][..],
    );
    let assembly = (
        scope.clone(),
        slug.clone(),
        prop::option::of(up.clone()),
        slug.clone(),
        select(&["peer", "voting"][..]),
    )
        .prop_map(|(scope, slug, up, persona, mode)| {
            let mut layer = json!({
                "mode": mode,
                "lockedTraits": [slug],
                "members": [{"id": persona, "persona": format!("ws://personas/{persona}"), "role": "r"}],
                "executor": format!("ws://operators/{persona}"),
            });
            let extends = up.map(|up| format!("{up}ASSEMBLY.md"));
            if extends.is_some() {
                layer["appliesTo"] = json!([format!("ws://operators/{slug}")]);
            }
            (format!("{scope}assemblies/{slug}/ASSEMBLY.md"), bytes(&layer, 0, extends.as_deref()))
        });
    let persona = (scope.clone(), slug.clone(), prop::option::of(up), slug.clone()).prop_map(|(scope, slug, up, other)| {
        let extends = up.map(|up| format!("extends: {}PERSONA.md\n", up.replace("assemblies", "personas")));
        let text = format!(
            "---\nschema: persona/v1\nname: {slug}\ntitle: T\ndescription: D\nversion: 1.0.0\n{}relationships: [{{persona: ws://personas/{other}, kind: k}}]\n---\n",
            extends.unwrap_or_default()
        );
        (format!("{scope}personas/{slug}/PERSONA.md"), text.into_bytes())
    });
    let place = select(&["operators", "operators", "drafts"][..]);
    let operator =
        (scope.clone(), place, slug.clone(), slug.clone()).prop_map(|(scope, place, slug, persona)| {
            let text = format!("---\nid: {slug}\nname: N\npersona: {persona}\n---\n");
            (format!("{scope}{place}/{slug}/OPERATOR.md"), text.into_bytes())
        });
    let playbook = (scope, slug.clone(), slug).prop_map(|(scope, slug, target)| {
        let text = format!(
            "---\nschema: playbooks/v1\nslug: {slug}\ntitle: T\ntargets: [{{kind: operator, ref: {target}}}]\nkind: overlay\nlock_check: []\nevidence: [{{kind: human, ref: r}}]\nstatus: shadow\n---\n"
        );
        (format!("{scope}playbooks/{slug}.md"), text.into_bytes())
    });
    let file = prop_oneof![3 => assembly, 2 => persona, 2 => operator, 1 => playbook];
    prop::collection::btree_map("[a-z]{4}", file, 1..14).prop_map(|files| files.into_values().collect())
}

/// Everything that is said, sorted, and the bytes of everything that is resolved.
fn outcome(workspace: &dyn Workspace, paths: &[String]) -> (Vec<String>, BTreeMap<String, String>) {
    let round = Round::new(workspace, &Everything, Options::default());
    let spots: Vec<Spot> =
        paths.iter().map(|path| Spot::new(path).expect("a path in the workspace")).collect();
    check::plan(&round, &spots);
    let (mut once, mut report) = (Once::default(), Report::new());
    for spot in &spots {
        match check::check(&round, spot, Named::ByDirectory) {
            Checked::Said(_, said) => once.keep(said, &mut report),
            other => panic!("{spot}: {other:?}"),
        }
    }
    let mut bytes = BTreeMap::new();
    for spot in spots.iter().filter(|spot| spot.name() == "ASSEMBLY.md") {
        if let Opened::Layer(layer) = round.open(spot)
            && let Some(resolved) = assembly::load(&round, &layer).value
        {
            bytes.insert(spot.in_workspace(), emit(&resolved.chain.merged));
        }
    }
    let line = |severity: &str, code: &str, body: &Body| format!("{severity} {code} {body:?}");
    let refusals = report.refusals.iter().map(|one| line("refusal", one.code.as_str(), &one.body));
    let warnings = report.warnings.iter().map(|one| line("warning", one.code.as_str(), &one.body));
    let mut said: Vec<String> = refusals.chain(warnings).collect();
    said.sort();
    (said, bytes)
}

proptest! {
    #![proptest_config(config(300))]

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
        prop_assert_eq!(&sorted, &outcome(&Backwards(memory), &shuffled));
    }
}
