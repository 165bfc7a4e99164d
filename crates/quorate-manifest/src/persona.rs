//! `persona/v1`, PERSONA.md (AIP-25): the manifest as written.

pub mod backstory;
pub mod boundaries;
pub mod load;
pub mod merge;
pub mod relationships;
pub mod voice;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::pattern;

/// Who an agent is: its character, its voice and its limits. The body is its prompt.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(title = "PERSONA.md")]
pub struct Persona {
    /// The doctype, persona/v1.
    #[schemars(extend("const" = "persona/v1"))]
    pub schema: String,
    /// The persona's id, in kebab case.
    #[schemars(
        length(min = 2, max = 64),
        regex(pattern = pattern::KEBAB),
        extend("examples" = ["exec-ciso"])
    )]
    pub name: String,
    /// What people call it.
    #[schemars(length(min = 1, max = 120))]
    pub title: String,
    /// One paragraph: what it is for, for whom, and what it is like.
    #[schemars(length(min = 1, max = 2000))]
    pub description: String,
    /// The version of this manifest, as in semantic versioning.
    #[schemars(
        regex(pattern = pattern::PERSONA_VERSION),
        extend("examples" = ["1.0.0"])
    )]
    pub version: String,
    /// The path of the parent PERSONA.md, relative to this file.
    #[schemars(
        regex(pattern = pattern::PERSONA_PATH),
        extend("examples" = ["../marcus/PERSONA.md"])
    )]
    pub extends: Option<String>,
    /// Its face: an address, a data URI or a ws:// ref.
    #[schemars(length(min = 1))]
    pub avatar: Option<String>,
    /// Where it comes from.
    pub backstory: Option<backstory::Backstory>,
    /// How it speaks.
    pub voice: Option<voice::Voice>,
    /// What it does not do.
    pub boundaries: Option<boundaries::Boundaries>,
    /// The language that it speaks, as a BCP 47 tag.
    #[schemars(
        regex(pattern = pattern::LANGUAGE),
        extend("examples" = ["en", "fr-FR"])
    )]
    pub default_locale: Option<String>,
    /// The languages that it can fall back to. Added up along the chain.
    #[schemars(inner(
        regex(pattern = pattern::LANGUAGE)
    ), extend("uniqueItems" = true, "maxItems" = 32))]
    pub multilingual: Option<Vec<String>>,
    /// What it is to other personas. Merged by persona along the chain.
    pub relationships: Option<Vec<relationships::Relationship>>,
    /// The identity that is behind it.
    #[schemars(
        regex(pattern = pattern::ANY_IDENTITY)
    )]
    pub identity: Option<String>,
    /// Which consumers it is meant for. Not inherited.
    #[schemars(inner(
        regex(pattern = pattern::PERSONA_CONSUMER)
    ), extend("uniqueItems" = true))]
    pub applies_to: Option<Vec<String>>,
    /// Words that it is found by. Added up along the chain.
    #[schemars(inner(
        regex(pattern = pattern::WORD)
    ), extend("uniqueItems" = true, "maxItems" = 16))]
    pub tags: Option<Vec<String>>,
    /// What others need, below a name of theirs. It never changes what a field of the format means.
    pub metadata: Option<Map<String, Value>>,
}
