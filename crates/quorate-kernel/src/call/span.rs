//! The spans of questions and calls. They have ids, names and numbers, never texts.

use std::fmt::Display;

use quorate_protocol::Invoke;
use tracing::Span;
use tracing::field::{Empty, display};

use crate::member_config::MemberConfig;
use crate::ports::executor::Usage;

/// That of a question to a member, with all its attempts.
pub(super) fn of_member(invoke: &Invoke, member: &MemberConfig) -> Span {
    tracing::info_span!(
        "member",
        invocation = %invoke.id,
        member = %invoke.member,
        step = %invoke.step,
        executor = %member.executor_name,
        model = Empty,
        status = Empty,
        tokens_in = Empty,
        tokens_out = Empty,
    )
}

/// That of one attempt.
pub(super) fn of_attempt(number: u32, why: &str, member: &MemberConfig) -> Span {
    tracing::debug_span!(
        "attempt",
        attempt = number,
        why,
        executor = %member.executor_name,
        requested_model = member.executor.about().model,
        model = Empty,
        status = Empty,
        tokens_in = Empty,
        tokens_out = Empty,
    )
}

/// Notes how it ended: the model that answered, where known, and the tokens that were counted.
pub(super) fn record_end(span: &Span, status: &dyn Display, model: Option<&str>, usage: &Usage) {
    span.record("status", display(status))
        .record("model", model)
        .record("tokens_in", usage.tokens_in)
        .record("tokens_out", usage.tokens_out);
}
