//! The ports of a host's own extensions to a protocol: gather strategies ([`Gather`]), synthesis rules ([`Rule`]) and embedders
//! ([`Embedder`]). Each trait's documentation is the manual for adapter authors. `extensions.rs` calls them.

use std::time::Duration;

use async_trait::async_trait;
use quorate_manifest::assembly::Mode;
use quorate_manifest::capabilities::RuleKind;
use quorate_manifest::money::Money;
use quorate_protocol::rules::custom::{RuleAnswer, RuleRequest};
use quorate_protocol::{Json, Name, Part};
use serde_json::{Map, json};

use super::executor::{CallLimit, ConfigError, SideEffect};

pub use crate::budget::{Meter, Reservation};

/// The request to a gather strategy.
#[derive(Debug, Clone)]
pub struct GatherRequest {
    /// The id of the run.
    pub run: Name,
    /// The id of the member that reads the text.
    pub member: Name,
    /// `gatherInput.params` of the manifest.
    pub params: Map<String, Json>,
    /// The subject of the run: all that a member without a strategy reads.
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
    /// If the strategy finds nothing. The member is then not asked and counts as missing.
    async fn gather(&self, request: GatherRequest) -> Result<String, ExtensionError>;
}

/// The rule port: a custom synthesis rule.
///
/// # For adapter authors
///
/// - A rule is registered under a kind that manifests name in `synthesis.rules`. Parameters that do not fit its schema are
///   refused when the manifest is loaded.
/// - The request has a variant for each mode. The answer must be of the same mode: another one counts as a failure or says
///   nothing. A failure leaves a vote undecided and escalates advice; a discussion continues to its last round.
/// - The answer is recorded and fed to the protocol, and a replay uses the record. It cannot lift a lock: all that follows
///   from it is checked against the locks.
#[async_trait]
pub trait Rule: Send + Sync {
    /// The modes that the rule applies to, and the JSON Schema of its parameters. Default: all modes, any parameters.
    fn describe(&self) -> RuleKind {
        RuleKind { modes: Mode::ALL.into(), params: json!({"type": "object"}), ..RuleKind::default() }
    }

    /// Applies the rule.
    ///
    /// # Errors
    /// If the rule cannot be applied.
    async fn apply(&self, request: RuleRequest) -> Result<RuleAnswer, ExtensionError>;
}

/// Why an extension failed: a message for users, which is recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ExtensionError(String);

impl ExtensionError {
    /// A failure with this reason.
    pub fn new(reason: impl Into<String>) -> Self {
        ExtensionError(reason.into())
    }
}

/// The embedder port: texts as vectors, so that they can be compared by meaning (L4).
///
/// # For adapter authors
///
/// - One vector for each text, all of one length, in the order of the texts; the same text gives the same vector.
/// - A failure is reported, never replaced with zeros: a text that could not be compared is not persisted.
/// - [`Embedder::threshold`] is the lowest cosine at which two texts of this model count as similar.
/// - The kernel asks once for each comparison, and drops the future after [`Embedder::timeout`]; an adapter that tries again
///   does so within it. - Where texts leave this process, [`Embedder::side_effects`] lists the addresses, and a person is
///   asked first.
/// - Where requests are paid for, each MUST be reserved with [`Meter::reserve`] before it is sent, and settled with what the
///   service reports. One that is not settled counts with all that was reserved.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// The model, as records name it.
    fn model(&self) -> &str;

    /// The cosine similarity, between -1 and 1, at or above which two texts count as near.
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
        (!self.is_metered()).then_some(CallLimit { tokens: 0, money: Some(Money::ZERO) })
    }

    /// The model, where it is and how it is reached, in one line.
    fn describe(&self) -> String {
        format!("`{}`", self.model())
    }

    /// One vector for each text. Paid requests are reserved and settled with `meter`.
    ///
    /// # Errors
    /// If a text cannot be embedded.
    async fn embed(&self, texts: &[&str], meter: &Meter) -> Result<Vec<Vec<f32>>, ExtensionError>;
}
