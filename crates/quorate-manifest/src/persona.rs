//! `persona/v1`, PERSONA.md (AIP-25): the manifest as written.

pub mod load;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::pattern;

pub use load::{ResolvedPersona, load_persona};

/// The identity of an operator or member: its character, voice and limits. The body is its prompt.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(title = "PERSONA.md")]
pub struct Persona {
    /// The doctype, persona/v1.
    #[schemars(extend("const" = "persona/v1"))]
    pub schema: String,
    /// The persona's id, in kebab case.
    #[schemars(length(min = 2, max = 64), regex(pattern = pattern::KEBAB), extend("examples" = ["exec-ciso"]))]
    pub name: String,
    /// The display name.
    #[schemars(length(min = 1, max = 120))]
    pub title: String,
    /// One paragraph: the purpose, the audience, the character.
    #[schemars(length(min = 1, max = 2000))]
    pub description: String,
    /// The version of this manifest, as in semantic versioning.
    #[schemars(regex(pattern = pattern::PERSONA_VERSION), extend("examples" = ["1.0.0"]))]
    pub version: String,
    /// The path of the parent PERSONA.md, relative to this file.
    #[schemars(regex(pattern = pattern::PERSONA_PATH), extend("examples" = ["../marcus/PERSONA.md"]))]
    pub extends: Option<String>,
    /// The avatar image: an address, a data URI or a ws:// ref.
    #[schemars(length(min = 1))]
    pub avatar: Option<String>,
    /// The persona's history.
    pub backstory: Option<Backstory>,
    /// How the persona speaks.
    pub voice: Option<Voice>,
    /// The persona's limits.
    pub boundaries: Option<Boundaries>,
    /// The language that the persona speaks, as a BCP 47 tag.
    #[schemars(regex(pattern = pattern::LANGUAGE), extend("examples" = ["en", "fr-FR"]))]
    pub default_locale: Option<String>,
    /// Fallback languages. Lists are joined along the chain.
    #[schemars(inner(regex(pattern = pattern::LANGUAGE)), extend("uniqueItems" = true, "maxItems" = 32))]
    pub multilingual: Option<Vec<String>>,
    /// Relationships to other personas. Merged by persona along the chain.
    pub relationships: Option<Vec<Relationship>>,
    /// The identity behind the persona.
    #[schemars(regex(pattern = pattern::ANY_IDENTITY))]
    pub identity: Option<String>,
    /// The consumers that the persona is for. Not inherited.
    #[schemars(inner(regex(pattern = pattern::PERSONA_CONSUMER)), extend("uniqueItems" = true))]
    pub applies_to: Option<Vec<String>>,
    /// Search words. Lists are joined along the chain.
    #[schemars(inner(regex(pattern = pattern::WORD)), extend("uniqueItems" = true, "maxItems" = 16))]
    pub tags: Option<Vec<String>>,
    /// Data of other tools, each below its own key. It never changes the meaning of other fields.
    pub metadata: Option<Map<String, Value>>,
}

/// A persona's history.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub struct Backstory {
    /// The persona in one sentence.
    #[schemars(length(min = 1, max = 280))]
    pub one_line_hook: Option<String>,
    /// Its history, as Markdown.
    #[schemars(length(min = 1))]
    pub background: Option<String>,
    /// The kinds of character. Lists are joined along the chain.
    #[schemars(inner(
        regex(pattern = pattern::KEBAB)
    ), extend("uniqueItems" = true, "maxItems" = 12, "examples" = [["mentor", "craftsman"]]))]
    pub archetypes: Option<Vec<String>>,
    /// The time in which the persona lives.
    #[schemars(length(min = 1, max = 80), extend("examples" = ["contemporary"]))]
    pub era: Option<String>,
    /// The world in which the persona lives.
    #[schemars(length(min = 1, max = 120), extend("examples" = ["real-world"]))]
    pub setting: Option<String>,
}

/// A persona's limits.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Boundaries {
    /// Requests that the persona refuses. Lists are joined along the chain.
    #[schemars(inner(length(min = 1, max = 200)), extend("uniqueItems" = true))]
    pub refuses: Option<Vec<String>>,
    /// Topics that the persona leaves to specialists. Lists are joined along the chain.
    #[schemars(inner(length(min = 1, max = 200)), extend("uniqueItems" = true))]
    pub defers: Option<Vec<String>>,
    /// Where the persona redirects people. Merged by topic along the chain.
    pub redirects: Option<Vec<Redirect>>,
}

/// The target to which a persona redirects people with a topic.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Redirect {
    /// The topic.
    #[schemars(length(min = 1, max = 200))]
    pub topic: String,
    /// The target: a ws:// ref to a persona, operator or skill, or a relative path.
    #[schemars(regex(pattern = pattern::REDIRECT))]
    pub to: String,
    /// The reason.
    #[schemars(length(min = 1, max = 500))]
    pub notes: Option<String>,
}

/// A persona's relationship to another persona.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Relationship {
    /// The other persona.
    #[schemars(regex(pattern = pattern::ANY_PERSONA))]
    pub persona: String,
    /// The kind of relationship, from this persona to the other.
    #[schemars(length(min = 1, max = 60), extend("examples" = ["mentor-of", "peer-of"]))]
    pub kind: String,
    /// Further notes.
    #[schemars(length(min = 1, max = 1000))]
    pub notes: Option<String>,
}

/// How a persona speaks.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub struct Voice {
    /// The register.
    #[schemars(length(min = 1, max = 80), extend("examples" = ["warm-direct", "playful", "terse", "academic"]))]
    pub register: Option<String>,
    /// Typical phrases. Lists are joined along the chain.
    #[schemars(inner(length(min = 1, max = 200)), extend("uniqueItems" = true, "maxItems" = 24))]
    pub signature_phrases: Option<Vec<String>>,
    /// Words for the tone. Lists are joined along the chain.
    #[schemars(inner(length(min = 1, max = 60)), extend("uniqueItems" = true, "maxItems" = 16, "examples" = [["rigorous", "dry"]]))]
    pub tonality: Option<Vec<String>>,
    /// Formality, from 0 (informal) to 10.
    #[schemars(range(min = 0, max = 10))]
    pub formality: Option<u8>,
    /// How often the persona uses emoji.
    pub emoji_usage: Option<EmojiUsage>,
    /// The closing words of a message.
    #[schemars(length(min = 1, max = 200))]
    pub sign_off: Option<String>,
}

/// How often a persona uses emoji.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum EmojiUsage {
    /// Never.
    Never,
    /// Rarely.
    Sparing,
    /// Regularly.
    Frequent,
}
