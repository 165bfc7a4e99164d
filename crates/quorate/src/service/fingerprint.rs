//! The fingerprint of a run (X7): what it was set up with, so that nobody resumes it as something else, and so that
//! a sweep knows what this very council has judged.

use quorate_kernel::entropy::sha256_hex;
use quorate_manifest::council::Council;
use quorate_protocol::Json;
use quorate_protocol::modes::council::{Setup, VERSION};
use serde_json::json;

use super::executor::Chosen;

/// Hashes by component. `council` is over all the others but the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    /// The prompts of all members and the documents they judge by.
    pub prompts: String,
    /// Roster, rounds, cross-read, minimum, policy.
    pub setup: String,
    /// Who answers, with what settings.
    pub executor: String,
    /// What is redacted.
    pub redaction: String,
    /// The mode and its version.
    pub mode: String,
    /// The artifact's bytes.
    pub input: String,
}

impl Fingerprint {
    /// Takes it.
    pub fn of(council: &Council, setup: &Setup, executor: &Chosen, artifact_sha256: &str) -> Self {
        let member = |one: &quorate_manifest::council::Deliberator| {
            let context: Vec<_> = one.context.iter().map(|file| (&file.path, &*file.text)).collect();
            json!({"id": &*one.id, "prompt": &*one.prompt.text, "weight": one.weight, "context": context})
        };
        let prompts = json!({
            "deliberators": council.deliberators.iter().map(member).collect::<Vec<_>>(),
            "adjudicator": &*council.adjudicator.text,
        });
        Fingerprint {
            prompts: hash(&prompts),
            setup: hash(&json!(setup)),
            executor: hash(&executor.settings),
            redaction: hash(&json!(council.logging.redact_patterns)),
            mode: VERSION.to_owned(),
            input: artifact_sha256.to_owned(),
        }
    }

    fn components(&self) -> [(&'static str, &str); 6] {
        [
            ("prompts", &self.prompts),
            ("setup", &self.setup),
            ("executor", &self.executor),
            ("redaction", &self.redaction),
            ("mode", &self.mode),
            ("input", &self.input),
        ]
    }

    /// The hash over everything but the input.
    pub fn council(&self) -> String {
        let parts: Vec<_> = self.components().into_iter().filter(|(name, _)| *name != "input").collect();
        hash(&json!(parts))
    }

    /// As it stands in `run.opened`.
    pub fn json(&self) -> Json {
        let mut all = serde_json::Map::new();
        for (name, value) in self.components() {
            all.insert(name.to_owned(), json!(value));
        }
        all.insert("council".to_owned(), json!(self.council()));
        Json::Object(all)
    }

    /// The components that differ from a recorded fingerprint.
    pub fn differs_from(&self, recorded: &Json) -> Vec<&'static str> {
        let differs =
            |(name, value): &(&'static str, &str)| recorded.get(name).and_then(Json::as_str) != Some(value);
        self.components().into_iter().filter(differs).map(|(name, _)| name).collect()
    }
}

fn hash(value: &Json) -> String {
    let text = quorate_kernel::replay::canonical(&quorate_kernel::consultation::object(json!({"of": value})));
    sha256_hex(text.as_bytes())
}
