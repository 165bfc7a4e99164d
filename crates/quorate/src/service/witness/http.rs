//! Requests to a witness over HTTP, with a deadline and a size limit, and without redirects.

use std::sync::Once;
use std::time::Duration;

use quorate_ledger::note::Note;
use quorate_ledger::store::CheckpointRecord;
use quorate_ledger::witness::{self, MAX_ANSWER_BYTES, WitnessAnswer};
use reqwest::redirect::Policy;
use reqwest::{Client, Url};

use super::super::error::error_chain;
use super::{SubmitContext, WitnessService};

/// The deadline of a witness's answer, retries included.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Requests a witness's signature on a checkpoint, and stores it.
///
/// # Errors
/// The reason why it is not signed, in words.
pub(super) async fn cosign(
    service: &WitnessService,
    telling: &SubmitContext<'_>,
    sealed: &CheckpointRecord,
    note: &str,
) -> Result<(), String> {
    let size = sealed.tree.size;
    let before = last_cosigned_size(service, telling, sealed);
    if before == Some(size) {
        return Ok(());
    }
    let mut old = before.filter(|before| *before <= size).unwrap_or(0);
    // The witness answers a wrong size with its own size, and is then asked once more.
    for again in [true, false] {
        match ask(service, telling, sealed, note, old).await? {
            WitnessAnswer::Cosigned(signed) => {
                return telling
                    .copies
                    .save_cosigned(&signed, &service.key)
                    .map_err(|error| error_chain(&error));
            }
            WitnessAnswer::Seen(seen) if seen > size => {
                return Err(format!(
                    "it has seen {seen} records, and this ledger has {size}: it was rolled back"
                ));
            }
            WitnessAnswer::Seen(seen) if again && seen != old => old = seen,
            WitnessAnswer::Seen(seen) => {
                return Err(format!("it has seen another tree of {seen} records than this ledger has"));
            }
        }
    }
    Ok(())
}

/// The size of the last valid checkpoint that the witness signed, if one is kept.
fn last_cosigned_size(
    service: &WitnessService,
    telling: &SubmitContext<'_>,
    sealed: &CheckpointRecord,
) -> Option<u64> {
    let copy = telling.copies.read_cosigned(&sealed.origin, &service.key)?;
    let note = Note::parse(copy.note.ok()?.as_bytes()).ok()?;
    service.key.find_signature(&note).ok()?;
    Some(quorate_ledger::note::Checkpoint::parse(note.text()).ok()?.tree().size)
}

async fn ask(
    service: &WitnessService,
    telling: &SubmitContext<'_>,
    sealed: &CheckpointRecord,
    note: &str,
    old: u64,
) -> Result<WitnessAnswer, String> {
    let path = match old {
        0 => Vec::new(),
        old => telling.store.consistency(old, &sealed.tree).await.map_err(|error| error_chain(&error))?,
    };
    let body = witness::witness_request(old, &path, note);
    let answered = tokio::time::timeout(REQUEST_TIMEOUT, send(&service.url, body)).await;
    let answered = answered
        .unwrap_or_else(|_| Err(format!("it does not answer within {} s", REQUEST_TIMEOUT.as_secs())));
    let (status, answer) = answered.inspect_err(|_| service.mark_unresponsive())?;
    witness::read_witness_answer(status, &answer, note, &service.key)
}

async fn send(url: &str, body: String) -> Result<(u16, Vec<u8>), String> {
    let url = Url::parse(&format!("{url}/add-checkpoint"))
        .map_err(|error| format!("its URL is invalid: {error}"))?;
    let client = client(&url).map_err(|error| error_chain(&error))?;
    let sent = client.post(url).body(body).send().await;
    let mut response = sent.map_err(|error| error_chain(&error.without_url()))?;
    let status = response.status().as_u16();
    let mut answer = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| error_chain(&error.without_url()))? {
        answer.extend_from_slice(&chunk);
        if answer.len() > MAX_ANSWER_BYTES {
            return Err(format!("its answer is longer than {MAX_ANSWER_BYTES} bytes"));
        }
    }
    Ok((status, answer))
}

/// A client that uses TLS with ring, and no proxy for our own machine.
fn client(url: &Url) -> Result<Client, reqwest::Error> {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // A provider that was installed before works as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let builder = Client::builder().connect_timeout(CONNECT_TIMEOUT).redirect(Policy::none());
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let loopback =
        host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    if loopback { builder.no_proxy().build() } else { builder.build() }
}
