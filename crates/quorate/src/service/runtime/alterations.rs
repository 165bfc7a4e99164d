//! Compares whole conversations with the ledger (D15), for `log`, `check` and `ledger verify`. A runner compares only the
//! turns that it reads (`kernel/turn/evidence.rs`).

use std::path::Path;

use quorate_adapters::substrate;
use quorate_diagnostics::{Body, Place, Report, codes};
use quorate_kernel::conversation::Turn;
use quorate_kernel::ports::ledger::{Ledger as _, Record};
use quorate_kernel::ports::substrate::{Keeps, Substrate};
use quorate_kernel::turn::evidence::{Alteration, Evidence, Scope};
use quorate_ledger::Store;

use super::conversation::ConversationReader;
use super::{OpenRuntime, Runtime};
use crate::service::disk::{self, Text};
use crate::service::error::{ExitClass, ServiceError};
use crate::service::paths::display_path;

/// What to do about an altered conversation.
pub const HELP: &str = "restore the text (`quorate log MANIFEST --records` lists the recorded turns), or continue in a \
                        conversation at another place, or accept this one with `quorate run --from-now`: then no \
                        participant sees the existing turns";

/// The refusal of an altered turn.
pub(super) fn refusal(alteration: &Alteration) -> ServiceError {
    let body = Body::new(format!("the conversation was altered: {}", alteration.what));
    ServiceError::new(ExitClass::Refused, codes::CONVERSATION_ALTERED, body.help(HELP))
}

impl Runtime {
    /// Whether reading the conversation creates no file and connects to no other system.
    pub(in crate::service) fn is_readable_locally(&self) -> bool {
        let kind = self.substrate.about().kind;
        [substrate::file::KIND, substrate::sqlite::KIND].contains(&kind) && self.missing_databases.is_empty()
    }

    /// Refuses turns that do not match their ids, before another system gets them as their authors' words.
    ///
    /// # Errors
    /// `quorate:conversation_altered`.
    pub fn ensure_proven(&self, turns: &[Turn]) -> Result<(), ServiceError> {
        let proof = |turn: &Turn| self.substrate.id_proof(turn);
        let found = Evidence::default().compare_each(&self.id, turns, proof);
        found.first().map_or(Ok(()), |altered| Err(refusal(altered)))
    }

    /// Refuses each turn of the conversation that differs from the ledger.
    ///
    /// # Errors
    /// If conversation or ledger cannot be read.
    #[crate::boxed]
    pub async fn find_alterations(&self) -> Result<Report, ServiceError> {
        if !self.ledger.may_exist() {
            return self.report_alterations(&[]).await;
        }
        let store = Store::open_read_only(&self.ledger).await?;
        let records = store.records(&self.stream()).await;
        store.close().await;
        self.report_alterations(&records?).await
    }

    /// As [`Runtime::find_alterations`], for `check`, which is synchronous and connects to no other system: it does not
    /// compare a conversation on a server, and with a ledger on a server it compares only the ids.
    pub(super) fn find_local_alterations(&self) -> Report {
        if !self.is_readable_locally() {
            return Report::new();
        }
        let compare = async {
            match self.ledger.file() {
                Some(_) => self.find_alterations().await,
                None => self.report_alterations(&[]).await,
            }
        };
        // On its own thread, since the caller may be inside of an asynchronous runtime.
        let wait = || match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime.block_on(compare),
            Err(error) => {
                let body = Body::new(format!("cannot read the conversation: {error}"));
                Err(ServiceError::configuration(codes::SUBSTRATE_UNAVAILABLE, body))
            }
        };
        let found = std::thread::scope(|scope| scope.spawn(wait).join());
        match found.unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
            Ok(report) => report,
            Err(error) => *error.report,
        }
    }

    #[crate::boxed]
    async fn report_alterations(&self, records: &[Record]) -> Result<Report, ServiceError> {
        let mut report = Report::new();
        for alteration in self.alterations(records).await? {
            let mut body = Body::new(format!("the conversation was altered: {}", alteration.what));
            if let Some((file, line)) = self.substrate.locate(&alteration.turn) {
                let shown = display_path(&self.environment, &file);
                let at = line_offset(&file, line, &shown, &mut report);
                body = body.at(Place { file: shown.into(), span: at..at, path: String::new() });
            }
            report.refuse(codes::CONVERSATION_ALTERED, body.help(HELP));
        }
        Ok(report)
    }

    /// The turns of the conversation that differ from these records.
    ///
    /// # Errors
    /// If the conversation cannot be read.
    #[crate::boxed]
    pub(in crate::service) async fn alterations(
        &self,
        records: &[Record],
    ) -> Result<Vec<Alteration>, ServiceError> {
        let evidence = Evidence::from_records(records);
        let mut turns = ConversationReader::new(self).last(None).await?;
        let substrate = &*self.substrate;
        if substrate.about().keeps == Keeps::Turns {
            evidence.name_authors(&mut turns);
        }
        let proof = |turn: &Turn| substrate.id_proof(turn);
        Ok(evidence.compare(&self.id, &turns, proof, Scope::Whole))
    }
}

/// The offset of a line. Adds its file to the report's sources.
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
    /// Refuses a window with an altered turn, and names the authors of its turns.
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
