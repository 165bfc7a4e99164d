//! The fingerprint of a run (X7): a hash of its configuration. A resume compares it, and a sweep uses it to find artifacts
//! that this council has already judged.

use std::borrow::Cow;

use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::record::RunOpened;
use quorate_protocol::Json;
use quorate_protocol::modes::council::{Setup, VERSION};
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

use super::workspace::Workspace;

/// The component that the combined hash leaves out.
const INPUT: &str = "input";
/// The component of the executors' settings.
const EXECUTORS: &str = "executors";
/// The component of the protocol's setup.
const SETUP: &str = "setup";
/// The component of the protocol's version.
const MODE: &str = "mode";

/// Hashes by component, and the combined hash of all but the input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The combined hash's key: `council` or `assembly`.
    whole: Cow<'static, str>,
    components: Vec<(Cow<'static, str>, String)>,
}

impl Fingerprint {
    /// The fingerprint of a council, without an input; `executors` has each member's settings.
    pub fn of_council(workspace: &Workspace, setup: &Setup, executors: &Json) -> Self {
        let council = &workspace.council;
        let member = |deliberator: &quorate_manifest::council::Deliberator| {
            let context: Vec<_> = deliberator.context.iter().map(|file| (&file.path, &*file.text)).collect();
            json!({"id": &*deliberator.id, "prompt": &*deliberator.prompt.text, "weight": deliberator.weight, "context": context})
        };
        let prompts = json!({
            "deliberators": council.deliberators.iter().map(member).collect::<Vec<_>>(),
            "adjudicator": &*council.adjudicator.text,
        });
        let components = vec![
            ("prompts", hash(&prompts)),
            (SETUP, hash(&json!(setup))),
            (EXECUTORS, hash(executors)),
            ("redaction", hash(workspace.redaction.settings())),
            (MODE, VERSION.to_owned()),
        ];
        Fingerprint::new("council", components)
    }

    /// The fingerprint of an assembly, without an input.
    pub fn of_assembly(parts: AssemblyParts<'_>) -> Self {
        let executors = match parts.embedder {
            Some(embedder) => json!([&parts.executors, embedder]),
            None => parts.executors,
        };
        let components = vec![
            ("manifest", hash(&parts.manifest)),
            ("prompts", hash(&parts.prompts)),
            (SETUP, hash(&parts.setup)),
            (EXECUTORS, hash(&executors)),
            ("redaction", hash(parts.redaction)),
            (MODE, parts.mode.to_owned()),
        ];
        Fingerprint::new("assembly", components)
    }

    fn new(whole: &'static str, components: Vec<(&'static str, String)>) -> Self {
        let owned = components.into_iter().map(|(name, value)| (Cow::Borrowed(name), value));
        Fingerprint { whole: Cow::Borrowed(whole), components: owned.collect() }
    }

    /// Leaves out the executors' settings, which another machine decides.
    #[must_use]
    pub fn without_executors(mut self) -> Self {
        self.set_executors(String::new());
        self
    }

    /// Sets the executors' settings.
    #[must_use]
    pub fn with_executors(mut self, settings: &Json) -> Self {
        self.set_executors(hash(settings));
        self
    }

    fn set_executors(&mut self, value: String) {
        self.components
            .iter_mut()
            .filter(|(name, _)| name == EXECUTORS)
            .for_each(|(_, old)| old.clone_from(&value));
    }

    /// Adds the input, by the SHA-256 of its bytes.
    #[must_use]
    pub fn with_input(mut self, sha256: &str) -> Self {
        self.components.push((Cow::Borrowed(INPUT), sha256.to_owned()));
        self
    }

    /// The combined hash.
    pub fn combined(&self) -> String {
        let parts: Vec<_> = self.components.iter().filter(|(name, _)| name != INPUT).collect();
        hash(&json!(parts))
    }

    /// The form of `run.opened`.
    pub fn recorded(&self) -> Map<String, Json> {
        let named = self.components.iter().map(|(name, value)| (name.to_string(), json!(value)));
        let whole = (self.whole.to_string(), json!(self.combined()));
        named.chain([whole]).collect()
    }

    /// The components, of setup and protocol version, that differ from the given ones.
    pub fn changed_rules(&self, setup: &Json, version: &str) -> Vec<&'static str> {
        let now = [(SETUP, hash(setup)), (MODE, version.to_owned())];
        let is_named = |(name, value): &(&str, String)| {
            self.components.iter().any(|(component, recorded)| component == name && recorded == value)
        };
        now.into_iter().filter(|now| !is_named(now)).map(|(name, _)| name).collect()
    }

    /// The components that differ from those of the opened run.
    pub fn changed_components(&self, opened: &RunOpened) -> Vec<&str> {
        let differs =
            |(name, value): &&(Cow<'static, str>, String)| opened.fingerprint_of(name) != Some(value);
        self.components.iter().filter(differs).map(|(name, _)| &**name).collect()
    }
}

/// The parts of an assembly's fingerprint.
pub struct AssemblyParts<'a> {
    /// The texts of the chain's files, root first.
    pub manifest: Json,
    pub prompts: Json,
    pub setup: Json,
    /// Each member's executor and its settings.
    pub executors: Json,
    /// The configured embedder's settings, if meanings are compared.
    pub embedder: Option<&'a Json>,
    /// The redaction rules.
    pub redaction: &'a Json,
    pub mode: &'a str,
}

fn hash(value: &Json) -> String {
    let text = quorate_kernel::canonical::object(&quorate_kernel::consultation::object(json!({"of": value})));
    sha256_hex(text.as_bytes())
}
