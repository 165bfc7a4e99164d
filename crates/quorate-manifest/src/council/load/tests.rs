//! The councils of whole files. `spec/council` tests refusals.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::tiers::{Classification, Tier};
use super::super::{CrossRead, OnFailure, Policy, Rounds, VerdictPolicy, built_in_council};
use super::*;
use crate::workspace::SourceError;

struct Files(BTreeMap<PathBuf, &'static str>);

impl Source for Files {
    fn read(&self, path: &Path) -> Result<Vec<u8>, SourceError> {
        self.0.get(path).map(|text| text.as_bytes().to_vec()).ok_or(SourceError::Missing)
    }
}

fn council(text: &'static str) -> Council {
    let files = [
        ("work/council.yaml", text),
        ("work/prompts/skeptic.md", "# Skeptic\n"),
        ("work/goals.md", "# Goals\n"),
    ];
    let files = Files(files.into_iter().map(|(path, text)| (PathBuf::from(path), text)).collect());
    let loaded = load(Path::new("work/council.yaml"), "council.yaml", &files);
    assert!(!loaded.report.has_refusals(), "{:?}", loaded.report.refusals);
    loaded.value.expect("nothing was refused")
}

const SHORTEST: &str = "\
deliberators:
  - {id: skeptic, prompt: prompts/skeptic.md, context_refs: [goals.md]}
  - {id: evidence, prompt: builtin:evidence, weight: 2, context_refs: [goals.md]}
  - {id: strategy, prompt: builtin:strategy}
adjudicator: {prompt: builtin:adjudicator}
";

#[test]
fn the_shortest_file_has_all_defaults() {
    let council = council(SHORTEST);
    assert_eq!(council.dir, Path::new("work"));
    assert_eq!(council.protocol, built_in_council().protocol);
    assert_eq!(council.tiers, built_in_council().tiers);
    assert_eq!((&council.logging, &council.watch), (&built_in_council().logging, &built_in_council().watch));
    assert_eq!((council.runtime, council.policy), (None, None));
    assert_eq!(council.adjudicator, built_in_council().adjudicator);
}

#[test]
fn prompts_and_documents_are_read_and_hashed_once() {
    let council = council(SHORTEST);
    let [skeptic, evidence, _] = &council.deliberators[..] else { panic!("three deliberators") };
    assert_eq!(skeptic.prompt.path.as_deref(), Some("prompts/skeptic.md"));
    assert_eq!(skeptic.prompt.text.as_ref(), "# Skeptic\n");
    assert_eq!(evidence.prompt.path, None);
    assert_eq!(evidence.weight, 2.0);
    assert_eq!(skeptic.context, evidence.context);
    let names: Vec<_> = council.files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "council.yaml",
            "prompts/skeptic.md",
            "goals.md",
            "builtin:evidence",
            "builtin:strategy",
            "builtin:adjudicator"
        ]
    );
    // printf '# Goals\n' | sha256sum
    assert_eq!(council.files[2].1, "1f22e832b042b46bcfaaf26b8d1f7abf696443eb1272afa4a8fe5e949b60808b");
}

#[test]
fn every_key_arrives() {
    let council = council(
        "\
runtime: {type: claude_cli, model: m, timeout_seconds: 1.5, retries: 2, flags: [--print]}
deliberators:
  - {id: a, prompt: builtin:skeptic, executor: claude, model: opus}
  - {id: b, prompt: builtin:evidence}
  - {id: c, prompt: builtin:strategy}
adjudicator: {prompt: builtin:adjudicator, verdict_policy: strict, executor: openai}
protocol: {rounds: 1, cross_read: findings, fail_fast_on_runtime_error: true, min_deliberators_for_verdict: 2}
tier_classifier: {default_tier: 3}
tier_rules:
  tier_1: [\"*_post_*.md\"]
  tier_2: {infra: [infra/*]}
watch: {paths: [drafts/], tier_overrides: {\"infra/x*\": 1}}
logging: {log_path: log.jsonl, redact_patterns: ['sk-\\w+']}
",
    );
    let runtime = council.runtime.clone().expect("a runtime");
    let (kind, place) = runtime.kind.clone().expect("a type");
    assert_eq!((kind.as_str(), place.path.as_str()), ("claude_cli", "runtime.type"));
    assert_eq!((runtime.timeout, runtime.retries), (Some(Duration::from_millis(1_500)), Some(2)));
    assert_eq!(
        serde_json::Value::from(runtime.block.json.clone()),
        serde_json::json!({"model": "m", "flags": ["--print"]})
    );
    assert_eq!(&runtime.block.source[runtime.block.place_of(Some("model")).span], "model");
    assert_eq!(&runtime.block.source[runtime.block.place_of(None).span], "runtime");
    let text = |named: &Option<(String, Place)>| named.clone().map(|(name, _)| name).unwrap_or_default();
    let named = council.settings().map(|own| format!("{} {}", text(&own.executor), text(&own.model)));
    assert_eq!(named.collect::<Vec<_>>(), ["claude opus", " ", " ", "openai "]);
    assert_eq!(council.policy, Some(Policy::Named(VerdictPolicy::Strict)));
    assert_eq!((council.protocol.rounds, council.protocol.cross_read), (Rounds::One, CrossRead::Findings));
    assert_eq!((council.protocol.fail_fast, council.protocol.min_deliberators), (OnFailure::End, 2));
    let classified = |path| council.tiers.classify(path);
    let tier = |tier, artifact_type: &str| Classification {
        tier,
        artifact_type: artifact_type.to_owned(),
        asks_model: false,
    };
    assert_eq!(classified("d/a_post_b.md"), tier(Tier::One, "post_*"));
    assert_eq!(classified("infra/y.md"), tier(Tier::Two, "infra"));
    assert_eq!(classified("infra/x.md"), tier(Tier::One, "infra"));
    assert_eq!(classified("else.md"), tier(Tier::Three, "unclassified"));
    assert_eq!(council.watch.paths, ["drafts/"]);
    assert_eq!(council.logging.log_path.as_deref(), Some(Path::new("log.jsonl")));
    assert_eq!(council.logging.redact_patterns, [r"sk-\w+"]);
}

#[test]
fn the_public_tools_words_for_cross_reading() {
    for (word, expected) in
        [("true", CrossRead::Verdicts), ("false", CrossRead::None), ("none", CrossRead::None)]
    {
        let text: &'static str =
            Box::leak(format!("protocol: {{cross_read: {word}}}\n{SHORTEST}").into_boxed_str());
        assert_eq!(council(text).protocol.cross_read, expected);
    }
}
