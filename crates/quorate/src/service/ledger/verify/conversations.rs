//! Compares the workspace's conversations with the ledger (D15).

use std::path::Path;

use quorate_kernel::ports::ledger::Ledger as _;
use quorate_ledger::Store;
use quorate_ledger::verify::{Divergence, DivergenceKind, LedgerPart};

use crate::service::environment::Environment;
use crate::service::error::ServiceError;
use crate::service::host::Host;
use crate::service::paths::display_path;
use crate::service::root::Root;
use crate::service::runtime;
use crate::service::talks;
use crate::service::trust::Trust;
use crate::service::workspace::PathOverrides;

/// The altered turns of the conversations that a manifest below the root names and of which the ledger has a stream. A
/// conversation on a server is compared when it is read.
///
/// # Errors
/// If the root, a conversation or the ledger cannot be read.
#[crate::boxed]
pub(super) async fn divergences(
    environment: &Environment,
    root: &Path,
    store: &Store,
) -> Result<Vec<Divergence>, ServiceError> {
    let streams = store.streams("turns/").await?;
    if streams.is_empty() {
        return Ok(Vec::new());
    }
    // No member is called and no server contacted, so no trust is needed.
    let environment = &Environment { trust: Trust::default().trusting_all(), ..environment.clone() };
    let host: &Host = &environment.host;
    let mut divergences = Vec::new();
    for talk in talks::list(environment, &Root::open(root.to_owned())?, host)? {
        let request = runtime::Request {
            path: talk.path.clone(),
            root: Some(root.to_owned()),
            ..runtime::Request::default()
        };
        // `check` reports manifests that cannot be opened.
        let Ok(opened) = runtime::open(environment, &PathOverrides::default(), &request, host) else {
            continue;
        };
        let stream = opened.stream();
        if !opened.is_readable_locally() || !streams.contains(&stream) {
            continue;
        }
        let divergence = |what: String| Divergence {
            kind: DivergenceKind::Changed,
            part: LedgerPart::Conversation,
            run: Some(stream.clone()),
            n: None,
            seq: None,
            last_seq: None,
            what,
        };
        let records = store.records(&stream).await?;
        let found = match opened.alterations(&records).await {
            Ok(found) => found,
            Err(error) => {
                divergences.push(divergence(format!("cannot read it: {}", error.first_message())));
                continue;
            }
        };
        divergences.extend(found.into_iter().map(|alteration| {
            let line = opened.substrate.locate(&alteration.turn);
            let place = line.map(|(file, line)| format!("{}:{line}: ", display_path(environment, &file)));
            divergence(place.unwrap_or_default() + &alteration.what)
        }));
    }
    Ok(divergences)
}
