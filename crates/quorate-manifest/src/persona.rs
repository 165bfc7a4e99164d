//! `persona/v1`, PERSONA.md (AIP-25): the manifest as written.

pub mod backstory;
pub mod boundaries;
pub mod load;
pub mod lookup;
pub mod merge;
pub mod relationships;
pub mod voice;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::pattern;

/// The identity of an operator or member: its character, voice and limits. The body is its prompt.
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
    /// The display name.
    #[schemars(length(min = 1, max = 120))]
    pub title: String,
    /// One paragraph: the purpose, the audience, the character.
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
    /// The avatar image: an address, a data URI or a ws:// ref.
    #[schemars(length(min = 1))]
    pub avatar: Option<String>,
    /// The persona's history.
    pub backstory: Option<backstory::Backstory>,
    /// How the persona speaks.
    pub voice: Option<voice::Voice>,
    /// The persona's limits.
    pub boundaries: Option<boundaries::Boundaries>,
    /// The language that the persona speaks, as a BCP 47 tag.
    #[schemars(
        regex(pattern = pattern::LANGUAGE),
        extend("examples" = ["en", "fr-FR"])
    )]
    pub default_locale: Option<String>,
    /// Fallback languages. Lists are joined along the chain.
    #[schemars(inner(
        regex(pattern = pattern::LANGUAGE)
    ), extend("uniqueItems" = true, "maxItems" = 32))]
    pub multilingual: Option<Vec<String>>,
    /// Relationships to other personas. Merged by persona along the chain.
    pub relationships: Option<Vec<relationships::Relationship>>,
    /// The identity behind the persona.
    #[schemars(
        regex(pattern = pattern::ANY_IDENTITY)
    )]
    pub identity: Option<String>,
    /// The consumers that the persona is for. Not inherited.
    #[schemars(inner(
        regex(pattern = pattern::PERSONA_CONSUMER)
    ), extend("uniqueItems" = true))]
    pub applies_to: Option<Vec<String>>,
    /// Search words. Lists are joined along the chain.
    #[schemars(inner(
        regex(pattern = pattern::WORD)
    ), extend("uniqueItems" = true, "maxItems" = 16))]
    pub tags: Option<Vec<String>>,
    /// Data of other tools, each below its own key. It never changes the meaning of other fields.
    pub metadata: Option<Map<String, Value>>,
}
