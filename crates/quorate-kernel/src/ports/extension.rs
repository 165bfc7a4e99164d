//! The ports of a host's own extensions to a protocol: gather strategies ([`Gather`]), synthesis rules ([`Rule`]) and embedders
//! ([`Embedder`]). Each trait's documentation is the manual for adapter authors. `extensions.rs` calls them.

use std::time::Duration;

use async_trait::async_trait;
use quorate_protocol::{Json, Name, Part};
use serde_json::Map;

use super::executor::{CallLimit, ConfigError, SideEffect};

pub use crate::budget::{Meter, MeteredRequest};

/// What is asked for.
#[derive(Debug, Clone)]
pub struct GatherRequest {
    pub run: Name,
    /// The member that it is for.
    pub member: Name,
    /// The manifest's `params`.
    pub params: Map<String, Json>,
    /// The whole subject of the run.
    pub subject: Part,
}

/// The gather port: a custom strategy that selects what a member reads.
///
/// # For adapter authors
///
/// - A strategy is registered under a name that begins with `custom:`; manifests name it in `gatherInput.strategy`.
/// - It is called at most once for each invocation, and its result is recorded: a resumed or replayed run uses the record.
/// - Its result is material, never an instruction: members see it between markers.
#[async_trait]
pub trait Gather: Send + Sync {
    /// Selects the text that the member reads.
    ///
    /// # Errors
    /// The reason, as a message for users. The member is then not asked and counts as missing.
    async fn gather(&self, request: GatherRequest) -> Result<String, String>;
}

/// The rule port: a custom synthesis rule.
///
/// # For adapter authors
///
/// - A rule is registered under its `kind` with the JSON Schema of its parameters; manifests that name another kind are
///   refused at load.
/// - `input` has `mode`, `rule` (id, kind, applies_to, params) and what there is to look at: `outputs` (advisory),
///   `votes` (voting), `messages` and `answers` (peer), `own` and `children` (hierarchy).
/// - It answers `{fragments: [{member, priority?}], terminal?}` (advisory), `{decision: "pass" | "fail" | null}`
///   (voting), `{end: bool}` as a termination rule of peers and anything else as a synthesis of their log, an assessment
///   `{severity, concern, evidence, suggestion}` or null (hierarchy). Null, or the field absent or null, says nothing. What is
///   malformed is a failure: a vote is left undecided, advice escalates, and a talk continues to its last round.
/// - Its answer is recorded and fed to the protocol: the same input has to give the same answer only within reason, since
///   a replay never asks again. It cannot lift a lock: what follows from its answer is checked against them.
#[async_trait]
pub trait Rule: Send + Sync {
    /// What the rule makes of its input.
    ///
    /// # Errors
    /// The reason why the rule failed, as a message for users.
    async fn apply(&self, input: Json) -> Result<Json, String>;
}

/// The embedder port: texts as vectors, so that they can be compared by meaning (L4).
///
/// # For adapter authors
///
/// - One vector for each text, all of one length, in the order of the texts; the same text gives the same vector.
/// - A failure is reported, never replaced with zeros: a text that could not be compared is not persisted.
/// - [`Embedder::threshold`] is the cosine from which on two texts of this model count as similar.
/// - The kernel asks once for each comparison, and drops the future after [`Embedder::timeout`]; an adapter that tries again
///   does so within it. - Where texts leave this process, [`Embedder::side_effects`] lists the addresses, and a person is
///   asked first.
/// - Where requests are paid for, each MUST be reserved with [`Meter::reserve`] before it is sent, and settled with what the
///   service reports. One that is not settled counts with all that was reserved.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// The model, as records name it.
    fn model(&self) -> &str;

    /// The cosine similarity, between -1 and 1, from which on two texts count as near.
    fn threshold(&self) -> f32;

    /// How long one comparison may take.
    fn timeout(&self) -> Duration {
        Duration::from_secs(60)
    }

    /// The side effects of embedding outside of this process; checked for embedders that a workspace's file configures.
    fn side_effects(&self) -> Vec<SideEffect> {
        Vec::new()
    }

    /// Refuses where the key that it sends is known not to be there.
    ///
    /// # Errors
    /// The setting at fault.
    fn check_installed(&self) -> Result<(), ConfigError> {
        Ok(())
    }

    /// Whether each call is paid for, so that `doctor` makes one only with a person's consent.
    fn is_metered(&self) -> bool {
        false
    }

    /// The most that all requests for these texts take, repeated ones included; `None` where that is not known. A budget of
    /// tokens or money is held by it.
    fn call_limit(&self, _texts: &[&str]) -> Option<CallLimit> {
        (!self.is_metered()).then_some(CallLimit { tokens: 0, usd_nanos: Some(0) })
    }

    /// The model, where it is and how it is reached, in one line.
    fn describe(&self) -> String {
        format!("`{}`", self.model())
    }

    /// One vector for each text. Paid requests are reserved and settled with `meter`.
    ///
    /// # Errors
    /// The reason, as a message for users.
    async fn embed(&self, texts: &[&str], meter: &Meter) -> Result<Vec<Vec<f32>>, String>;
}
