//! Runs the documents of `spec/`: which manifests are refused or warned about, and what they resolve to.

mod mdtest;

use std::path::{Path, PathBuf};

use super::Registries;

fn spec() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec")
}

#[track_caller]
fn check(document: &str) {
    let failures = mdtest::run_file(&spec().join(document), &Registries::default());
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

macro_rules! documents {
    ($($name:ident = $path:literal;)*) => {
        $(
            #[test]
            fn $name() {
                check($path);
            }
        )*

        #[test]
        fn every_document_is_run() {
            let root = spec();
            let found = mdtest::documents(&root);
            let found: Vec<_> = found.iter().map(|path| path.strip_prefix(&root).expect("below the root")).collect();
            let mut listed = [$(Path::new($path)),*];
            listed.sort();
            assert_eq!(found, listed);
        }
    };
}

documents! {
    assembly_chain = "assembly/chain.md";
    assembly_fields_members = "assembly/fields-members.md";
    assembly_fields_synthesis_audit = "assembly/fields-synthesis-audit.md";
    assembly_fields = "assembly/fields.md";
    assembly_governance = "assembly/governance.md";
    assembly_hierarchy = "assembly/hierarchy.md";
    assembly_locked_traits = "assembly/locked-traits.md";
    assembly_match_mode = "assembly/match-mode.md";
    assembly_members = "assembly/members.md";
    assembly_merge_members = "assembly/merge-members.md";
    assembly_merge_rules = "assembly/merge-rules.md";
    assembly_merge = "assembly/merge.md";
    assembly_one_way_consultations = "assembly/one-way-consultations.md";
    assembly_one_way_mode = "assembly/one-way-mode.md";
    assembly_one_way_overlays = "assembly/one-way-overlays.md";
    assembly_one_way_signing = "assembly/one-way-signing.md";
    assembly_rules = "assembly/rules.md";
    assembly_strict_chain = "assembly/strict-chain.md";
    council_adjudicator = "council/adjudicator.md";
    council_deliberators = "council/deliberators.md";
    council_logging = "council/logging.md";
    council_policy = "council/policy.md";
    council_protocol = "council/protocol.md";
    council_public_tool = "council/public-tool.md";
    council_runtime = "council/runtime.md";
    council_tiers = "council/tiers.md";
    council_yaml = "council/yaml.md";
    host_quorate_toml = "host/quorate-toml.md";
    operator_operator = "operator/operator.md";
    persona_chain = "persona/chain.md";
    persona_fields = "persona/fields.md";
    persona_merge = "persona/merge.md";
    persona_refs = "persona/refs.md";
    playbook_fields = "playbook/fields.md";
    playbook_targets = "playbook/targets.md";
    playbook_times = "playbook/times.md";
    runtime_fields = "runtime/fields.md";
    runtime_participants = "runtime/participants.md";
    workspace_consumers = "workspace/consumers.md";
    workspace_doctypes = "workspace/doctypes.md";
    workspace_names = "workspace/names.md";
    workspace_refs = "workspace/refs.md";
    workspace_tenants = "workspace/tenants.md";
    workspace_texts = "workspace/texts.md";
}
