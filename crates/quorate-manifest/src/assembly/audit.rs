//! `audit`: what is kept of a convening, for how long, and how it is signed.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::pattern;

/// What is kept of a convening.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Audit {
    /// What is kept of each member's answer.
    pub consultations: Option<Consultations>,
    /// What is kept of what came of it.
    pub overlays: Option<Overlays>,
    /// Whether records are signed; optional unless said. Once required, no view may ask for less.
    pub signing: Option<Signing>,
}

/// What is kept of each member's answer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Consultations {
    /// Whether answers are kept; they are unless said. Once they are, no view may switch it off.
    pub enabled: Option<bool>,
    /// How long: forever (unless said) or `days:<n>`.
    #[schemars(
        regex(pattern = pattern::RETENTION),
        extend("examples" = ["forever", "days:90"])
    )]
    pub retention: Option<String>,
}

/// What is kept of what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub struct Overlays {
    /// Whether outcomes are kept; they are unless said. Once they are, no view may switch it off.
    pub enabled: Option<bool>,
    /// How many overlays are active at once; 10 unless said.
    #[schemars(range(min = 1, max = 100))]
    pub max_active: Option<u8>,
    /// How long an overlay holds that does not say so itself; P14D unless said.
    #[schemars(
        length(min = 2),
        regex(pattern = pattern::OVERLAY_TTL),
        extend("examples" = ["P14D", "PT12H"])
    )]
    pub default_ttl: Option<String>,
}

/// Whether records are signed, the strictest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Signing {
    /// Every record is signed.
    Required,
    /// Records may be signed.
    Optional,
    /// No record is signed.
    None,
}

impl Signing {
    /// All of them, the strictest first.
    pub const ALL: [Signing; 3] = [Signing::Required, Signing::Optional, Signing::None];

    /// Its word in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Signing::Required => "required",
            Signing::Optional => "optional",
            Signing::None => "none",
        }
    }
}
