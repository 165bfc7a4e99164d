//! `[redact]`: secrets, which are neither recorded nor shown (X10).

use super::Redaction;
use crate::council::logging::pattern;
use crate::tree::Field;

/// Reads `[redact]`.
pub(super) fn read(field: &Field<'_>) -> Redaction {
    let mut redaction = Redaction::default();
    let Some(mut fields) = field.fields() else { return redaction };
    let mut flag = |key| fields.optional(key).and_then(|field| field.boolean());
    redaction.builtin = flag("builtin").unwrap_or(redaction.builtin);
    redaction.environment = flag("environment").unwrap_or(redaction.environment);
    let patterns = fields.optional("patterns").and_then(|field| field.list()).unwrap_or_default();
    redaction.patterns = patterns.iter().filter_map(pattern).collect();
    fields.finish();
    redaction
}
