//! Reads the first record of a run: whether it is an assembly's, its options, setup, seed and input.

use quorate_diagnostics::{Body, codes};
use quorate_kernel::history::History;
use quorate_kernel::record::RunOpened;
use quorate_kernel::{canonical, entropy};
use quorate_manifest::assembly::Mode;
use quorate_protocol::assembly;
use quorate_protocol::modes::assembly::version;
use quorate_protocol::modes::council::VERSION;

use super::error::{Error, ErrorKind};

/// Whether a run is an assembly's.
pub(crate) fn is_assembly(history: &History) -> bool {
    is_assembly_opening(&history.opened)
}

/// Whether this first record is that of an assembly's run.
pub(crate) fn is_assembly_opening(opened: &RunOpened) -> bool {
    Mode::ALL.into_iter().any(|mode| opened.protocol.split('/').next() == Some(mode.as_str()))
}

/// The setup of an assembly's run; `None` for other runs.
pub(crate) fn assembly_setup(history: &History) -> Option<assembly::Setup> {
    serde_json::from_value(canonical::normalize(history.opened.setup.clone())).ok()
}

/// A run's seed.
///
/// # Errors
/// If its first record has none.
pub(crate) fn seed(history: &History) -> Result<[u8; 32], Error> {
    entropy::unhex(&history.opened.seed).ok_or_else(|| {
        Error::new(
            ErrorKind::Altered,
            codes::LEDGER_CORRUPT,
            Body::new(format!("run {} has no seed", history.run)),
        )
    })
}

/// The hash of the run's input.
pub(crate) fn input_sha256(history: &History) -> String {
    history.opened.fingerprint_of("input").unwrap_or_default().to_owned()
}

/// D14: refuses a run whose members saw another text than its artifact, although nothing was redacted.
///
/// # Errors
/// [`codes::INPUT_NOT_ARTIFACT`], with the run.
pub(crate) fn ensure_shown_artifact(history: &History) -> Result<(), Error> {
    let Some(why) = history.opened.input_mismatch() else { return Ok(()) };
    let body = Body::new(format!("run {} does not count: {why}", history.run));
    let help = "review the text again; if a person has decided on this run, decide again on the new one";
    Err(Error::new(ErrorKind::Refused, codes::INPUT_NOT_ARTIFACT, body.help(help)))
}

/// The refusal for a run of another version.
pub(crate) fn unknown_version(history: &History) -> Error {
    let recorded = &history.opened.protocol;
    let known: Vec<&str> = Mode::ALL.into_iter().map(version).chain([VERSION]).collect();
    let body = Body::new(format!(
        "run {} was written by `{recorded}`; this program knows {}",
        history.run,
        known.join(", ")
    ));
    Error::configuration(codes::FINGERPRINT_CHANGED, body)
}
