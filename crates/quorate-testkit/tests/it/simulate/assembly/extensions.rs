//! The rules and the extensions of a simulated assembly.
//!
//! Rules are of any kinds of its mode, in any order, on any members. The extensions are a rule, a gather strategy and an
//! embedder. Each works, fails, returns invalid data or hangs, as a function of the seed and its input, so that it repeats
//! itself after a crash.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use quorate_kernel::extensions::Extensions;
use quorate_kernel::meaning::Meaning;
use quorate_kernel::ports::extension;
use quorate_kernel::ports::extension::{Embedder, ExtensionError, Gather, GatherRequest, Meter};
use quorate_manifest::assembly::Mode;
use quorate_protocol::assembly::Rule;
use quorate_protocol::rules::custom::{RuleAnswer, RuleRequest};
use quorate_protocol::{Json, Name};
use serde_json::json;

use super::{CLASS, pick};
use crate::simulate::number;
use quorate_testkit::scripted::Rng;

/// The kind of the extension's rule.
pub(super) const RULE: &str = "custom:own";
/// The name of the extension's strategy.
pub(super) const GATHER: &str = "custom:found";
/// A word that the embedder finds near every trait.
pub(super) const NEAR: &str = "chilly";

pub(super) fn random_rules(rng: &mut Rng, mode: Mode, members: &[Name]) -> Vec<Rule> {
    let many = pick(rng, 5);
    (0..many)
        .map(|at| {
            let (kind, params) = match mode {
                Mode::Advisory => advisory(rng),
                Mode::Voting => voting(rng, members),
                Mode::Peer => peer(rng, members),
                Mode::Hierarchy => hierarchy(rng),
            };
            let some: Vec<Name> = members.iter().filter(|_| rng.percent(60)).cloned().collect();
            Rule {
                id: format!("r{at}").into(),
                kind: kind.into(),
                applies_to: rng.percent(40).then_some(some),
                params: params.as_object().cloned().unwrap_or_default(),
            }
        })
        .collect()
}

fn advisory(rng: &mut Rng) -> (&'static str, Json) {
    match rng.below(5) {
        0 => ("terminal", json!({"triggerSeverity": 6 + rng.below(5)})),
        1 => ("priority", json!({"triggerKind": "sycophancy", "terminal": rng.percent(20)})),
        2 => ("aggregate", json!({"minSeverity": rng.below(8), "topN": 1 + rng.below(3)})),
        3 => ("aggregate", json!({"maxSeverity": 3 + rng.below(8), "ttlMs": rng.below(90 * 86_400_000) + 1})),
        _ => (RULE, json!({})),
    }
}

fn voting(rng: &mut Rng, members: &[Name]) -> (&'static str, Json) {
    let denominator = ["total", "cast"][pick(rng, 2)];
    match rng.below(6) {
        0 => {
            let trigger = ["yes", "no"][pick(rng, 2)];
            ("terminal", json!({"triggerVote": trigger}))
        }
        1 => {
            let scope = [CLASS, "another"][pick(rng, 2)];
            ("terminal", json!({"triggerVote": "no", "scope": scope}))
        }
        2 => {
            let threshold = ["0.3", "0.5", "0.66", "1"][pick(rng, 4)];
            ("quorum", json!({"threshold": threshold, "denominator": denominator}))
        }
        3 => {
            let chair = &*members[pick(rng, members.len())];
            let tie = ["chair-vote", "reject", "random"][pick(rng, 3)];
            ("majority", json!({"tieBreaker": tie, "chair": chair, "denominator": denominator}))
        }
        4 => ("unanimity", json!({})),
        _ => (RULE, json!({})),
    }
}

fn peer(rng: &mut Rng, members: &[Name]) -> (&'static str, Json) {
    if rng.percent(25) {
        return (RULE, json!({}));
    }
    let mut params = json!({"maxRounds": 1 + rng.below(3)});
    match rng.below(4) {
        0 => params["terminationRule"] = json!("no-new-objections"),
        1 => params["terminationRule"] = json!("all-pass"),
        2 => params["terminationRule"] = json!(RULE),
        _ => {}
    }
    match rng.below(4) {
        0 => params["topology"] = json!("ring"),
        1 => {
            params["topology"] = json!("star");
            params["hub"] = json!(&*members[pick(rng, members.len())]);
        }
        2 => params["peers"] = json!({&*members[0]: members.iter().skip(1).collect::<Vec<_>>()}),
        _ => {}
    }
    ("aggregate", params)
}

fn hierarchy(rng: &mut Rng) -> (&'static str, Json) {
    match rng.below(4) {
        0 => ("escalate-on-severity", json!({})),
        1 => ("aggregate", json!({"topN": 1 + rng.below(3), "minSeverity": rng.below(4)})),
        2 => ("terminal", json!({"triggerSeverity": 5 + rng.below(6)})),
        _ => (RULE, json!({})),
    }
}

/// The extensions of a seed.
pub(super) fn flaky_extensions(seed: u64, embeds: bool) -> Extensions {
    let rule: Arc<dyn extension::Rule> = Arc::new(FlakyRule(seed));
    let gather: Arc<dyn Gather> = Arc::new(FlakyGather(seed));
    let embedder: Arc<dyn Embedder> = Arc::new(FlakyEmbedder(seed));
    Extensions {
        rules: BTreeMap::from([(RULE.to_owned(), rule)]),
        gathers: BTreeMap::from([(GATHER.to_owned(), gather)]),
        meaning: embeds.then_some(Meaning::Embedder(embedder)),
    }
}

async fn random_delay(rng: &mut Rng) {
    tokio::time::sleep(std::time::Duration::from_millis(rng.below(300))).await;
}

struct FlakyRule(u64);

#[async_trait]
impl extension::Rule for FlakyRule {
    /// A synthesis is recorded as it is, so that it stands for every answer, valid or not.
    async fn apply(&self, request: RuleRequest) -> Result<RuleAnswer, ExtensionError> {
        let input = json!(request);
        let mut rng = Rng::from_seed_and_name(self.0, &input.to_string());
        random_delay(&mut rng).await;
        match rng.below(20) {
            0..=2 => return Err(ExtensionError::new("the rule broke")),
            3 => std::future::pending().await,
            4 => return Ok(RuleAnswer::Synthesis(json!(["nonsense", 7]))),
            5 => return Ok(RuleAnswer::Nothing),
            _ => {}
        }
        let says = if rng.percent(15) { "change the voice\n register" } else { "as they say" };
        Ok(RuleAnswer::Synthesis(match input["mode"].as_str().unwrap_or_default() {
            "advisory" => {
                let members = input["outputs"].as_array().into_iter().flatten();
                let fragments: Vec<Json> = members
                    .map(|advice| json!({"member": advice["member"], "priority": number(&mut rng, 120)}))
                    .collect();
                json!({"fragments": fragments, "terminal": rng.percent(20)})
            }
            "voting" => match rng.below(3) {
                0 => json!({"decision": "pass"}),
                1 => json!({"decision": "fail"}),
                _ => json!({"decision": null}),
            },
            "peer" if input.get("rule").is_none() => json!({"end": rng.percent(40)}),
            "peer" => json!({"summary": says, "points": [{says: number(&mut rng, 4)}, 0.1, 1e17, -0.0]}),
            _ => {
                json!({"severity": number(&mut rng, 10), "concern": says, "evidence": [says], "suggestion": ""})
            }
        }))
    }
}

struct FlakyGather(u64);

#[async_trait]
impl Gather for FlakyGather {
    async fn gather(&self, request: GatherRequest) -> Result<String, ExtensionError> {
        let mut rng = Rng::from_seed_and_name(self.0, &format!("gather {}", request.member));
        random_delay(&mut rng).await;
        match rng.below(10) {
            0 => Err(ExtensionError::new("nothing was found")),
            1 => std::future::pending().await,
            _ => Ok(format!("found for {}", request.member)),
        }
    }
}

struct FlakyEmbedder(u64);

#[async_trait]
impl Embedder for FlakyEmbedder {
    fn model(&self) -> &str {
        "simulated"
    }

    fn threshold(&self) -> f32 {
        0.5
    }

    async fn embed(&self, texts: &[&str], _: &Meter) -> Result<Vec<Vec<f32>>, ExtensionError> {
        let mut rng = Rng::from_seed_and_name(self.0, &texts.join("\n"));
        random_delay(&mut rng).await;
        if rng.percent(10) {
            return Err(ExtensionError::new("the embedder broke"));
        }
        // The traits come first; only texts with this word are near them.
        let near = |(at, text): (usize, &&str)| at < super::LOCKED.len() || text.contains(NEAR);
        Ok(texts
            .iter()
            .enumerate()
            .map(|text| if near(text) { vec![1.0, 0.0] } else { vec![0.0, 1.0] })
            .collect())
    }
}
