//! `[redact]`: what is a secret, and so neither recorded nor shown (X10).

use super::Redaction;
use crate::council::logging::pattern;
use crate::tree::Field;

/// Reads `[redact]`.
pub(super) fn read(field: &Field<'_>) -> Redaction {
    let mut redaction = Redaction::default();
    let Some(mut fields) = field.fields() else { return redaction };
    let mut whether = |key| fields.optional(key).and_then(|field| field.boolean());
    redaction.builtin = whether("builtin").unwrap_or(redaction.builtin);
    redaction.environment = whether("environment").unwrap_or(redaction.environment);
    let patterns = fields.optional("patterns").and_then(|field| field.list()).unwrap_or_default();
    redaction.patterns = patterns.iter().filter_map(pattern).collect();
    fields.finish();
    redaction
}
