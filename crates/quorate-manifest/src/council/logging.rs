//! `logging`: the log of verdicts, and the patterns to redact before anything is recorded.

use std::path::PathBuf;

use quorate_diagnostics::{Body, codes};
use regex::RegexBuilder;

use super::Logging;
use crate::tree::Field;

/// The largest compiled pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// Reads `logging`.
pub(super) fn read(field: Option<Field<'_>>) -> Logging {
    let mut logging = Logging::default();
    let Some(mut fields) = field.and_then(|field| field.fields()) else { return logging };
    logging.log_path =
        fields.optional("log_path").and_then(|field| field.non_blank_text()).map(PathBuf::from);
    if let Some(field) = fields.optional("archive_dir") {
        let body = Body::new("`archive_dir` has no effect: the ledger keeps every run");
        field
            .warn(codes::FIELD_WITHOUT_EFFECT, body.help("remove `archive_dir`; `quorate show` shows a run"));
    }
    if let Some(field) = fields.optional("log_format") {
        check_format(&field);
    }
    let patterns = fields.optional("redact_patterns").and_then(|field| field.list()).unwrap_or_default();
    logging.redact_patterns = patterns.iter().filter_map(pattern).collect();
    fields.finish();
    logging
}

fn check_format(field: &Field<'_>) {
    match field.text() {
        None | Some("rule_35_v2") => {}
        Some(other) => {
            let message = format!("unknown log format `{other}`");
            field.invalid_with(message, "write rule_35_v2, or remove `log_format`");
        }
    }
}

/// Reads a regular expression that matches secrets.
pub(crate) fn pattern(field: &Field<'_>) -> Option<String> {
    let pattern = field.text()?;
    let refuse = |body: Body| {
        field.refuse(codes::PATTERN_INVALID, body);
        None
    };
    match RegexBuilder::new(pattern).size_limit(MAX_PATTERN_BYTES).build() {
        Ok(regex) if regex.is_match("") => {
            let body = Body::new("this pattern matches the empty text, and so matches everywhere");
            refuse(body.help("let it match at least one character"))
        }
        Ok(_) => Some(pattern.to_owned()),
        Err(regex::Error::CompiledTooBig(_)) => {
            refuse(Body::new("this pattern is too large").help("shorten its repetitions"))
        }
        Err(error) => {
            let reason = error.to_string();
            let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            let body = Body::new(format!("this is not a regular expression: {reason}"));
            refuse(body.help("look-around and back-references are not supported"))
        }
    }
}
