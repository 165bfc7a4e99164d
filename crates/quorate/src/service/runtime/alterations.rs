//! Compares whole conversations with the ledger (D15), for `log`, `check` and `ledger verify`. A runner compares only what
//! it reads (`kernel/turn/evidence.rs`).

use std::path::Path;

use quorate_adapters::substrate;
use quorate_diagnostics::{Body, Place, Report, codes};
use quorate_kernel::conversation::Turn;
use quorate_kernel::ports::ledger::{Ledger as _, Record};
use quorate_kernel::ports::substrate::{Keeps, Substrate};
use quorate_kernel::turn::evidence::{Alteration, Evidence, Scope};
use quorate_ledger::Store;
use quorate_ledger::verify::{Divergence, Kind, Part};

use super::conversation::ConversationReader;
use super::{OpenRuntime, Request, Runtime, open};
use crate::service::disk::{self, Text};
use crate::service::environment::Environment;
use crate::service::error::{ExitClass, ServiceError};
use crate::service::host::Host;
use crate::service::paths::display_path;
use crate::service::root::Root;
use crate::service::talks;
use crate::service::trust::Trust;
use crate::service::workspace::PathOverrides;

/// What to do about an altered conversation.
pub const HELP: &str = "restore the text (`quorate log MANIFEST --records` names the turns that the ledger has), or continue \
                        in a conversation at another place, or accept this one with `quorate run --from-now`: then no \
                        participant sees a turn that is there now";

/// The refusal of an altered turn.
pub(super) fn refusal(alteration: &Alteration) -> ServiceError {
    let body = Body::new(format!("the conversation was altered: {}", alteration.what));
    ServiceError::new(ExitClass::Refused, codes::CONVERSATION_ALTERED, body.help(HELP))
}

impl Runtime {
    /// Whether reading the conversation creates no file and connects to no other system.
    fn is_readable_locally(&self) -> bool {
        let kind = self.substrate.about().kind;
        [substrate::file::KIND, substrate::sqlite::KIND].contains(&kind) && self.missing_databases.is_empty()
    }

    /// Refuses turns whose ids disprove them, before another system is given them as their authors' words.
    ///
    /// # Errors
    /// `quorate:conversation_altered`.
    pub fn ensure_proven(&self, turns: &[Turn]) -> Result<(), ServiceError> {
        let proof = |turn: &Turn| self.substrate.id_proof(turn);
        let found = Evidence::default().compare_each(&self.id, turns, proof);
        found.first().map_or(Ok(()), |altered| Err(refusal(altered)))
    }

    /// Refuses each turn of the conversation that is not what the ledger has.
    ///
    /// # Errors
    /// If conversation or ledger cannot be read.
    #[crate::boxed]
    pub async fn find_alterations(&self) -> Result<Report, ServiceError> {
        let records = self.records().await?;
        let found = alterations(self, &records).await?;
        let mut report = Report::new();
        for alteration in found {
            let mut body = Body::new(format!("the conversation was altered: {}", alteration.what));
            if let Some((file, line)) = self.substrate.locate(&alteration.turn) {
                let shown = display_path(&self.environment, &file);
                let span = line_offset(&file, line, &shown, &mut report);
                body = body.at(Place { file: shown.into(), span: span..span, path: String::new() });
            }
            report.refuse(codes::CONVERSATION_ALTERED, body.help(HELP));
        }
        Ok(report)
    }

    /// The same, for a command that is not asynchronous and connects to no other system: others are compared when they are
    /// read.
    pub(super) fn find_local_alterations(&self) -> Report {
        if !self.is_readable_locally() || self.ledger.file().is_none() {
            return Report::new();
        }
        // The caller may be in an asynchronous runtime, which does not wait within itself.
        let compare = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
            Some(runtime.block_on(self.find_alterations()))
        };
        let found = std::thread::scope(|scope| scope.spawn(compare).join());
        match found.ok().flatten() {
            Some(Ok(report)) => report,
            Some(Err(error)) => *error.report,
            None => Report::new(),
        }
    }
}

async fn alterations(runtime: &Runtime, records: &[Record]) -> Result<Vec<Alteration>, ServiceError> {
    let evidence = Evidence::from_records(records);
    let mut turns = ConversationReader::new(runtime).last(None).await?;
    let substrate = &*runtime.substrate;
    if substrate.about().keeps == Keeps::Turns {
        evidence.name_authors(&mut turns);
    }
    let proof = |turn: &Turn| substrate.id_proof(turn);
    Ok(evidence.compare(&runtime.id, &turns, proof, Scope::Whole))
}

/// The offset of a line, whose file is added to the texts that renderers quote.
fn line_offset(file: &Path, line: usize, shown: &str, report: &mut Report) -> usize {
    if !report.sources.contains_key(shown)
        && let Ok(Text::Present(text)) = disk::read_text(file)
    {
        report.add_source(shown, text);
    }
    let text = report.sources.get(shown);
    text.map_or(0, |text| text.split_inclusive('\n').take(line - 1).map(str::len).sum())
}

/// How many of the last records a window is compared with.
const WINDOW_RECORDS: u32 = 1_024;

impl OpenRuntime {
    /// Refuses a window with a turn that was altered, and names the authors of its turns.
    ///
    /// # Errors
    /// `quorate:conversation_altered`, and if the ledger cannot be read.
    #[crate::boxed]
    pub async fn check_window(
        &self,
        substrate: &dyn Substrate,
        window: &mut Vec<Turn>,
    ) -> Result<(), ServiceError> {
        let records = self.store.tail(&self.runtime.stream(), WINDOW_RECORDS).await?;
        let evidence = Evidence::from_records(&records);
        evidence.remove_accepted(window);
        if substrate.about().keeps == Keeps::Turns {
            evidence.name_authors(window);
        }
        let found = evidence.compare_each(&self.runtime.id, window, |turn| substrate.id_proof(turn));
        found.first().map_or(Ok(()), |altered| Err(refusal(altered)))
    }
}

/// The altered turns of the conversations that the ledger has a stream of and a manifest below the root names. A
/// conversation on a server is compared when it is read.
///
/// # Errors
/// If the root, a conversation or the ledger cannot be read.
#[crate::boxed]
pub(in crate::service) async fn divergences(
    environment: &Environment,
    root: &Path,
    store: &Store,
) -> Result<Vec<Divergence>, ServiceError> {
    let streams = store.streams("turns/").await?;
    if streams.is_empty() {
        return Ok(Vec::new());
    }
    // Nothing is called or connected, so no trust is needed.
    let environment = &Environment { trust: Trust::default().trusting_all(), ..environment.clone() };
    let host: &Host = &environment.host;
    let mut divergences = Vec::new();
    for talk in talks::list(environment, &Root::open(root.to_owned())?, host)? {
        let request = Request { path: talk.path.clone(), root: Some(root.to_owned()), ..Request::default() };
        // `check` reports manifests that cannot be opened.
        let Ok(runtime) = open(environment, &PathOverrides::default(), &request, host) else { continue };
        let stream = runtime.stream();
        if !runtime.is_readable_locally() || !streams.contains(&stream) {
            continue;
        }
        let divergence = |what: String| Divergence {
            kind: Kind::Changed,
            part: Part::Conversation,
            run: Some(stream.clone()),
            n: None,
            seq: None,
            last_seq: None,
            what,
        };
        let records = store.records(&stream).await?;
        let found = match alterations(&runtime, &records).await {
            Ok(found) => found,
            Err(error) => {
                divergences.push(divergence(format!("cannot read it: {}", error.first_message())));
                continue;
            }
        };
        divergences.extend(found.into_iter().map(|alteration| {
            let line = runtime.substrate.locate(&alteration.turn);
            let place = line.map(|(file, line)| format!("{}:{line}: ", display_path(environment, &file)));
            divergence(place.unwrap_or_default() + &alteration.what)
        }));
    }
    Ok(divergences)
}
