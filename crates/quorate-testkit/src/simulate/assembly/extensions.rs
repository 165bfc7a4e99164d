//! The extensions of a simulated program: a rule, a gather strategy and an embedder. Each works, fails, returns invalid
//! data or hangs, as a function of the seed and its input, so that it repeats itself after a crash.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use quorate_kernel::extensions::Extensions;
use quorate_kernel::ports::embedder::{Embedder, Meter};
use quorate_kernel::ports::gather::{Gather, Request};
use quorate_kernel::ports::rule::Rule;
use quorate_protocol::Json;
use serde_json::json;

use crate::rng::Rng;
use crate::simulate::script::number;

/// The kind of the extension's rule.
pub(super) const RULE: &str = "custom:own";
/// The name of the extension's strategy.
pub(super) const GATHER: &str = "custom:found";
/// A word that the embedder finds near every trait.
pub(super) const NEAR: &str = "chilly";

/// The extensions of a seed.
pub(super) fn flaky_extensions(seed: u64, embeds: bool) -> Extensions {
    let rule: Arc<dyn Rule> = Arc::new(FlakyRule(seed));
    let gather: Arc<dyn Gather> = Arc::new(FlakyGather(seed));
    let embedder: Arc<dyn Embedder> = Arc::new(FlakyEmbedder(seed));
    Extensions {
        rules: BTreeMap::from([(RULE.to_owned(), rule)]),
        gathers: BTreeMap::from([(GATHER.to_owned(), gather)]),
        embedder: embeds.then_some(embedder),
    }
}

async fn random_delay(rng: &mut Rng) {
    tokio::time::sleep(std::time::Duration::from_millis(rng.below(300))).await;
}

struct FlakyRule(u64);

#[async_trait]
impl Rule for FlakyRule {
    async fn apply(&self, input: Json) -> Result<Json, String> {
        let mut rng = Rng::from_seed_and_name(self.0, &input.to_string());
        random_delay(&mut rng).await;
        match rng.below(20) {
            0..=2 => return Err("the rule broke".to_owned()),
            3 => std::future::pending().await,
            4 => return Ok(json!(["nonsense", 7])),
            5 => return Ok(Json::Null),
            _ => {}
        }
        let says = if rng.percent(15) { "change the voice\n register" } else { "as they say" };
        Ok(match input["mode"].as_str().unwrap_or_default() {
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
        })
    }
}

struct FlakyGather(u64);

#[async_trait]
impl Gather for FlakyGather {
    async fn gather(&self, request: Request) -> Result<String, String> {
        let mut rng = Rng::from_seed_and_name(self.0, &format!("gather {}", request.member));
        random_delay(&mut rng).await;
        match rng.below(10) {
            0 => Err("nothing was found".to_owned()),
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

    async fn embed(&self, texts: &[&str], _: &Meter) -> Result<Vec<Vec<f32>>, String> {
        let mut rng = Rng::from_seed_and_name(self.0, &texts.join("\n"));
        random_delay(&mut rng).await;
        if rng.percent(10) {
            return Err("the embedder broke".to_owned());
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
