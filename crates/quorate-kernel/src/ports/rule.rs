//! The rule port: a custom synthesis rule.
//!
//! # For adapter authors
//!
//! - A rule is registered under its `kind` with the JSON Schema of its parameters; manifests that name another kind are
//!   refused at load.
//! - `input` has `mode`, `rule` (id, kind, applies_to, params) and what there is to look at: `outputs` (advisory),
//!   `votes` (voting), `messages` and `answers` (peer), `own` and `children` (hierarchy).
//! - It answers `{fragments: [{member, priority?}], terminal?}` (advisory), `{decision: "pass" | "fail" | null}`
//!   (voting), `{end: bool}` as a termination rule of peers and anything else as a synthesis of their log, an assessment
//!   `{severity, concern, evidence, suggestion}` or null (hierarchy). Null, or the field absent or null, says nothing. What is
//!   malformed is a failure: a vote is left undecided, advice escalates, and a talk continues to its last round.
//! - Its answer is recorded and fed to the protocol: the same input has to give the same answer only within reason, since
//!   a replay never asks again. It cannot lift a lock: what follows from its answer is checked against them.

use async_trait::async_trait;
use quorate_protocol::Json;

#[async_trait]
pub trait Rule: Send + Sync {
    /// What the rule makes of its input.
    ///
    /// # Errors
    /// The reason why the rule failed, as a message for users.
    async fn apply(&self, input: Json) -> Result<Json, String>;
}
