//! `runtime`: the executor of a council's members, or of one member. The keys of its kind are passed on verbatim.

use std::time::Duration;

use quorate_diagnostics::{Body, codes};

use crate::config::ExecutorTable;
use crate::config::executor::{block, retries};
use crate::duration::MAX_DURATION;
use crate::tree::{Field, Fields};

/// Reads `runtime`.
pub(super) fn read(field: &Field<'_>) -> Option<ExecutorTable> {
    let mut fields = field.fields()?;
    let kind = fields
        .required("type", "how members are asked, for example `claude_cli`")
        .and_then(|field| Some((field.non_blank_text()?.to_owned(), field.place())));
    let timeout = timeout(&mut fields);
    let retries = retries(&mut fields);
    Some(ExecutorTable { kind: Some(kind?), timeout, retries, block: block(field, &fields) })
}

/// Reads `timeout_seconds`, a number, as in the public tool; or `timeout`, a duration.
fn timeout(fields: &mut Fields<'_>) -> Option<Duration> {
    let seconds = fields.optional("timeout_seconds");
    let duration = fields.optional("timeout");
    if let (Some(seconds), Some(duration)) = (&seconds, &duration) {
        let body = Body::new("`timeout` and `timeout_seconds` exclude each other").at(seconds.key_place());
        let body = body.related(duration.key_place(), "here too").help("keep one of the two");
        fields.source_file().refuse(codes::COUNCIL_INVALID, body);
        return None;
    }
    if let Some(field) = duration {
        return field.duration();
    }
    let field = seconds?;
    let number = field.number()?;
    match Duration::try_from_secs_f64(number) {
        Ok(duration) if !duration.is_zero() && duration <= MAX_DURATION => Some(duration),
        _ => {
            let body = Body::new(format!("{number:?} seconds is not a usable timeout"));
            field.refuse(codes::DURATION, body.help("write a number of seconds above 0"));
            None
        }
    }
}
