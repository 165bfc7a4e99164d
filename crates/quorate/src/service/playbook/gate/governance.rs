//! `governance`: a voting assembly decides, and its decision record is the evidence.

use std::sync::Arc;

use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::observer::NoopObserver;
use quorate_manifest::playbook::PlaybookFile;

use super::super::writer::LibraryWriter;
use super::evidence::{GateClosed, GateEvidence};
use super::human::describe;
use crate::service::artifact::{Artifact, Subject};
use crate::service::convene::inputs::Inputs;
use crate::service::convene::spec;
use crate::service::convene::{self, Request};
use crate::service::error::ServiceError;
use crate::service::host::Host;
use crate::service::paths::absolute;
use crate::service::run_options::RunOptions;

/// Convenes the assembly that quorate.toml names for promotions.
///
/// # Errors
/// If the assembly is refused or the ledger fails.
#[crate::boxed]
pub async fn attempt(
    keeping: &LibraryWriter,
    book: &PlaybookFile,
    host: &Host,
) -> Result<Result<GateEvidence, GateClosed>, ServiceError> {
    let configuration = &keeping.library.workspace.host;
    let Some((written, _)) = &configuration.playbooks.governance else {
        let help = "name one in quorate.toml: [playbooks] governance = \"assemblies/prompt-board\"";
        return Ok(Err(GateClosed::new("quorate.toml names no assembly for promotions", help)));
    };
    let request = Request {
        path: absolute(&configuration.dir, written.as_ref()),
        root: None,
        inputs: Inputs { proposal: Some("-".into()), ..Inputs::default() },
        options: RunOptions::default(),
    };
    let text = describe(keeping, book);
    let name = format!("{}.md", book.playbook.slug);
    let (session, environment) = (&keeping.session, &keeping.session.environment);
    let proposal = |_: &Subject| {
        Ok(Artifact {
            display_name: name.clone(),
            path: None,
            sha256: sha256_hex(text.as_bytes()),
            text: text.as_str().into(),
        })
    };
    let (input, workspace) = convene::prepare_with(environment, keeping.places(), &request, host, proposal)?;
    let spec = spec::build(environment, &workspace, &input, &request.options)?;
    let report = convene::convene(session, &input, &spec, Arc::new(NoopObserver)).await?;
    let result = report.decision.as_ref().map_or("incomplete", |decision| &decision.result);
    let exact = report
        .decision
        .as_ref()
        .map_or(String::new(), |one| format!(", {} of {}", one.exact.yes, one.exact.total));
    let note = format!("{} decides {result}{exact}", report.assembly);
    if result != "pass" {
        let help = format!("run `quorate show {}` to see the answers", report.run);
        return Ok(Err(GateClosed::new(note, help)));
    }
    Ok(Ok(GateEvidence { kind: "run", reference: format!("runs/{}", report.run), note }))
}
