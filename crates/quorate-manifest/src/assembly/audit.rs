//! `audit`: which records of a run are kept, for how long, and whether they are signed.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::duration::IsoDuration;
use crate::pattern;

/// The lifetime of an overlay.
const DEFAULT_TTL_DAYS: u32 = 14;
/// The limits of an overlay's lifetime, in days; a run clamps other values (A5).
pub const OVERLAY_TTL_DAYS: std::ops::RangeInclusive<i64> = 1..=30;

/// Which records of a run are kept.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Audit {
    /// Retention of the members' answers.
    pub consultations: Option<Consultations>,
    /// Retention of outcomes.
    pub overlays: Option<Overlays>,
    /// Whether records are signed; the default is optional. A view cannot lower required.
    pub signing: Option<Signing>,
}

/// Retention of the members' answers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Consultations {
    /// Whether answers are kept; the default is true. A view cannot switch it off.
    pub enabled: Option<bool>,
    /// How long answers are kept: forever (the default) or `days:<n>`.
    #[schemars(
        regex(pattern = pattern::RETENTION),
        extend("examples" = ["forever", "days:90"])
    )]
    pub retention: Option<String>,
}

/// Retention of outcomes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub struct Overlays {
    /// Whether outcomes are kept; the default is true. A view cannot switch it off.
    pub enabled: Option<bool>,
    /// The maximum number of active overlays; the default is 10.
    #[schemars(range(min = 1, max = 100))]
    pub max_active: Option<u8>,
    /// The lifetime of overlays without their own; the default is P14D.
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
    /// The strictest first.
    pub const ALL: [Signing; 3] = [Signing::Required, Signing::Optional, Signing::None];

    /// The word in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Signing::Required => "required",
            Signing::Optional => "optional",
            Signing::None => "none",
        }
    }
}

/// The retention of answers in days; `None` is forever.
pub(crate) fn retention_days(audit: Option<&Audit>) -> Option<u32> {
    let retention = audit?.consultations.as_ref()?.retention.as_deref()?;
    Some(retention.strip_prefix("days:")?.parse().unwrap_or(u32::MAX))
}

/// The lifetime of overlays without their own.
pub(crate) fn default_ttl(audit: Option<&Audit>) -> IsoDuration {
    let written = audit.and_then(|audit| audit.overlays.as_ref()?.default_ttl.as_deref()?.parse().ok());
    written.unwrap_or(IsoDuration { days: DEFAULT_TTL_DAYS, ..IsoDuration::default() })
}
