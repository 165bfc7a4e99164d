//! `voice`: how a persona speaks.

use schemars::JsonSchema;
use serde::Deserialize;

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
