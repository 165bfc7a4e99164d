//! `protocol`: the number of rounds, the input of round 2, and the answers that a verdict needs.

use super::{CrossRead, FailFast, Protocol, Rounds};
use crate::tree::{Field, Kind};

/// Reads `protocol`. `members` is the number of deliberators.
pub(super) fn read(field: Option<Field<'_>>, members: usize) -> Option<Protocol> {
    let mut protocol = Protocol::default();
    let Some(field) = field else { return Some(protocol) };
    let mut fields = field.fields()?;
    match fields.optional("rounds").and_then(|field| field.integer(1, 2)) {
        Some(1) => protocol.rounds = Rounds::One,
        _ => protocol.rounds = Rounds::Two,
    }
    if let Some(seen) = fields.optional("cross_read").and_then(|field| cross_read(&field)) {
        protocol.cross_read = seen;
    }
    if fields.optional("fail_fast_on_runtime_error").and_then(|field| field.boolean()) == Some(true) {
        protocol.fail_fast = FailFast::Yes;
    }
    if let Some(field) = fields.optional("min_deliberators_for_verdict") {
        let max = i64::try_from(members.max(1)).unwrap_or(i64::MAX);
        let min = field.integer(1, max).and_then(|number| usize::try_from(number).ok());
        protocol.min_deliberators = min.unwrap_or(protocol.min_deliberators);
    }
    fields.finish();
    Some(protocol)
}

/// `cross_read`: the public tool's `true` and `false` are `verdicts` and `none`.
fn cross_read(field: &Field<'_>) -> Option<CrossRead> {
    match field.kind() {
        Kind::Bool(true) => Some(CrossRead::Verdicts),
        Kind::Bool(false) => Some(CrossRead::None),
        Kind::Str(word) => match word.as_str() {
            "verdicts" => Some(CrossRead::Verdicts),
            "findings" => Some(CrossRead::Findings),
            "none" => Some(CrossRead::None),
            other => {
                let message = format!("unknown value `{other}`");
                field.invalid_with(message, "write true, false, verdicts, findings or none");
                None
            }
        },
        other => {
            let message = format!("`{}` is {}", field.path(), other.name());
            field.invalid_with(message, "write true, false, verdicts, findings or none");
            None
        }
    }
}
