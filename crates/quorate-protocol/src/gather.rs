//! Gather strategies: how a member's input is cut from what the run is about (X13).

/// Those that are built in. Whatever else begins with [`CUSTOM`] is the host's.
pub const BUILT_IN: [&str; 5] =
    ["working-memory", "recent-messages", "digest", "last-message-only", "custom:children-outputs"];

/// What a strategy of the host's own begins with.
pub const CUSTOM: &str = "custom:";
