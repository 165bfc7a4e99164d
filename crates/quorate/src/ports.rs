//! The ports that a program implements to extend Quorate. The documentation of each trait is its contract; the module
//! `conformance` of `quorate-testkit` checks most of it.

pub use quorate_kernel::registry::BuildContext;
pub use quorate_manifest::assembly::Mode;
pub use quorate_manifest::capabilities::RuleKind;

/// The request to a member, and the executor that answers it: a model, a program, or code.
pub mod executor {
    pub use quorate_kernel::ports::executor::{
        About, Admission, AttemptInfo, CallLimit, ConfigError, Executor, Failure, Inspection, Invocation,
        Notes, Progress, Reply, Retry, Servers, Settings, SideEffect, Table, Usage,
    };
    pub use quorate_protocol::answers::Schema as AnswerSchema;
}

/// What decides on answers or selects material in place of the built-in rules and strategies.
pub mod extension {
    pub use quorate_kernel::ports::extension::{
        Embedder, ExtensionError, Gather, GatherRequest, Meter, Reservation, Rule,
    };
    pub use quorate_protocol::answers::advice::{Advice, Vote};
    pub use quorate_protocol::assembly::Rule as RuleEntry;
    pub use quorate_protocol::rules::advice::Child;
    pub use quorate_protocol::rules::custom::{
        MemberOutput, MemberVote, RoundAnswer, RuleAnswer, RuleDecision, RuleFragment, RuleRequest,
        SentMessage,
    };
    pub use quorate_protocol::{Part, PartKind};
}

/// The turns of a conversation and its participants.
pub mod conversation {
    pub use quorate_kernel::conversation::{
        Capabilities, Capability, ConversationContext, NewTurn, Origin, Participant, Stamp, Tools, Turn,
    };
}

/// Who speaks next in a conversation.
pub mod dispatcher {
    pub use quorate_kernel::ports::dispatcher::{
        Ask, DispatchError, Dispatcher, Input, Question, Unanswered,
    };
}

/// What a participant remembers between its turns.
pub mod state {
    pub use quorate_kernel::ports::state::{State, StateError};
}

/// Where the turns of a conversation are stored.
pub mod substrate {
    pub use quorate_kernel::ports::substrate::{
        About, Appended, IdProof, Keeps, Lifetime, Page, Substrate, SubstrateError,
    };
}

/// What is told of a conversation as it happens.
pub mod telemetry {
    pub use quorate_kernel::ports::telemetry::{Event, EventKind, HookError, Lifecycle, Telemetry};
}
