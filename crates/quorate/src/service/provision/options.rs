//! How a profile is installed or uninstalled.

/// Whether anything is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    Apply,
    /// It is only said.
    DryRun,
}

/// Whether what was edited since may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    Yes,
    No,
}

/// How a use case is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Whether anything is written.
    pub run: WriteMode,
    /// Whether what was edited since may be replaced.
    pub force: Force,
}
