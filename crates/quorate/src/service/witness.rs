//! The witness keeps the ledger's checkpoints elsewhere: appended to a file, or signed by a service over HTTP
//! (c2sp.org/tlog-witness).

#[cfg(feature = "http-witness")]
mod http;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quorate_diagnostics::{Body, Report, codes};
use quorate_ledger::local_checkpoints::CheckpointFiles;
use quorate_ledger::note::Cosigner;
use quorate_ledger::store::CheckpointRecord;
use quorate_ledger::{Store, witness};
use quorate_manifest::config::Configuration;

use super::disk::display_path;
use super::environment::Environment;
use super::error::{Error, error_chain};

#[derive(Debug, Clone)]
pub enum Witness {
    /// A file that checkpoints are appended to.
    File(PathBuf),
    /// A service that signs checkpoints.
    Service(Box<WitnessService>),
}

impl Witness {
    /// The witness of a configuration.
    ///
    /// # Errors
    /// If its key is missing or invalid, or this build has no HTTP client.
    pub fn of(config: &Configuration) -> Result<Option<Witness>, Error> {
        let key = config.ledger.witness_key.as_ref().map(|(key, _)| key.as_str());
        let Some((written, _)) = &config.ledger.witness else {
            return match key {
                None => Ok(None),
                Some(_) => Err(unusable(
                    "`ledger.witness_key` is the key of a witness with a URL, but `ledger.witness` is not set",
                )),
            };
        };
        let is_url = written.starts_with("http://") || written.starts_with("https://");
        match (is_url, key) {
            (false, None) => Ok(Some(Witness::File(config.dir.join(written)))),
            (false, Some(_)) => Err(unusable(
                "`ledger.witness` is a file, but `ledger.witness_key` is for a witness with a URL",
            )),
            (true, None) => Err(unusable(&format!(
                "cannot verify the witness {written}: `ledger.witness_key` is missing"
            ))),
            (true, Some(key)) => {
                let key = Cosigner::from_text(key)
                    .map_err(|error| unusable(&format!("cannot read `ledger.witness_key`: {error}")))?;
                ensure_http_supported(written)?;
                let url = written.trim_end_matches('/').to_owned();
                let service = WitnessService::new(url, key);
                Ok(Some(Witness::Service(Box::new(service))))
            }
        }
    }

    /// The file; `None` for a service.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Witness::File(path) => Some(path),
            Witness::Service(_) => None,
        }
    }

    /// Refuses an existing file that is not a witness.
    ///
    /// # Errors
    /// [`codes::WITNESS_UNREADABLE`].
    pub fn ensure_file(&self, environment: &Environment) -> Result<(), Error> {
        match self.file().map(|path| (path, witness::ensure_witness_at(path))) {
            Some((path, Err(error @ witness::WitnessError::NotAWitness))) => {
                let body =
                    Body::new(format!("{} is not a witness file: {error}", display_path(environment, path)));
                let help = "choose another file in `[ledger] witness`; the first checkpoint creates it";
                Err(Error::configuration(codes::WITNESS_UNREADABLE, body.help(help)))
            }
            _ => Ok(()),
        }
    }

    /// Sends it a signed checkpoint. Failures become warnings, since no record depends on the witness.
    #[crate::boxed]
    pub async fn submit(&self, context: &SubmitContext<'_>, sealed: &CheckpointRecord, report: &mut Report) {
        let Some(note) = &sealed.note else { return };
        let (name, submitted) = match self {
            Witness::File(path) => (
                display_path(context.environment, path),
                witness::append_to_witness(path, note).map_err(|error| error_chain(&error)),
            ),
            Witness::Service(service) => (service.url.clone(), cosign(service, context, sealed, note).await),
        };
        if let Err(why) = submitted {
            let body = Body::new(format!("the witness {name} did not accept the checkpoint: {why}"));
            let help = "the checkpoint is in the ledger; the next one is submitted to the witness again";
            report.warn(codes::WITNESS_BEHIND, body.help(help));
        }
    }
}

/// Requests the witness's signature and stores it, unless it has signed this checkpoint or failed to answer before.
async fn cosign(
    service: &WitnessService,
    context: &SubmitContext<'_>,
    sealed: &CheckpointRecord,
    note: &str,
) -> Result<(), String> {
    if service.is_unresponsive() {
        return Ok(());
    }
    #[cfg(feature = "http-witness")]
    return http::cosign(service, context, sealed, note).await;
    #[cfg(not(feature = "http-witness"))]
    {
        let _ = (context, sealed, note);
        Err("this program was built without the feature `http-witness`".to_owned())
    }
}

fn unusable(why: &str) -> Error {
    let help = "set a file, or a URL with `witness_key = \"<name>+<id>+<key>\"` from the witness's operator";
    Error::configuration(codes::WITNESS_UNREADABLE, Body::new(why).help(help))
}

fn ensure_http_supported(url: &str) -> Result<(), Error> {
    if cfg!(feature = "http-witness") {
        return Ok(());
    }
    let body = Body::new(format!(
        "cannot ask the witness {url}: this program was built without the feature `http-witness`"
    ));
    let help =
        "build it with `cargo install --path crates/quorate-cli --features http-witness`, or name a file";
    Err(Error::configuration(codes::FEATURE_MISSING, body.help(help)))
}

/// A witness over HTTP.
#[derive(Debug, Clone)]
pub struct WitnessService {
    /// Its URL, to which the client appends `/add-checkpoint`.
    pub url: String,
    pub key: Cosigner,
    unresponsive: Arc<AtomicBool>,
}

impl WitnessService {
    pub fn new(url: String, key: Cosigner) -> Self {
        WitnessService { url, key, unresponsive: Arc::default() }
    }

    /// Whether it left a request of this process unanswered, so that it is not asked again.
    fn is_unresponsive(&self) -> bool {
        self.unresponsive.load(Ordering::Relaxed)
    }

    #[cfg(feature = "http-witness")]
    fn mark_unresponsive(&self) {
        self.unresponsive.store(true, Ordering::Relaxed);
    }
}

pub struct SubmitContext<'a> {
    pub environment: &'a Environment,
    pub store: &'a Store,
    /// The store of cosigned checkpoints.
    pub copies: &'a CheckpointFiles,
}
