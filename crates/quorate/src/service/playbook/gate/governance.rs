//! `governance`: a voting assembly decides, and its decision record is the evidence.

use std::sync::Arc;

use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::observe::Nobody;
use quorate_manifest::playbook::shelf::Book;

use super::super::change::Keeping;
use super::human::shown;
use super::{Passed, Shut};
use crate::service::artifact::{Artifact, Subject};
use crate::service::convene::asked::Asked;
use crate::service::convene::sitting::Sitting;
use crate::service::convene::{self, Options, Request};
use crate::service::host::Host;
use crate::service::stop::Stop;
use crate::service::workspace::absolute;

/// Convenes.
///
/// # Errors
/// When the assembly is refused or the ledger fails.
pub async fn open(keeping: &Keeping, book: &Book, host: &Host) -> Result<Result<Passed, Shut>, Stop> {
    let configuration = &keeping.library.workspace.host;
    let Some((written, _)) = &configuration.playbooks.governance else {
        let help = "name one in quorate.toml: [playbooks] governance = \"assemblies/prompt-board\"";
        return Ok(Err(Shut::new("no assembly decides on promotions here", help)));
    };
    let request = Request {
        path: absolute(&configuration.dir, written.as_ref()),
        root: None,
        asked: Asked { proposal: Some("-".into()), ..Asked::default() },
        options: Options::default(),
    };
    let text = shown(keeping, book);
    let name = format!("{}.md", book.playbook.slug);
    let (desk, environment) = (&keeping.desk, &keeping.desk.environment);
    let proposal = |_: &Subject| {
        Ok(Artifact {
            shown: name.clone(),
            path: None,
            sha256: sha256_hex(text.as_bytes()),
            text: text.as_str().into(),
        })
    };
    let (called, workspace) = convene::call_on(environment, keeping.places(), &request, host, proposal)?;
    let sitting = Sitting::new(environment, &workspace, &called, &request.options, host)?;
    let report = convene::convene(desk, &called, &sitting, Arc::new(Nobody)).await?;
    let result = report.decision.as_ref().map_or("incomplete", |decision| &decision.result);
    let exact =
        report.decision.as_ref().map_or(String::new(), |one| format!(", {} of {}", one.exact.0, one.exact.1));
    let note = format!("{} decides {result}{exact}", report.assembly);
    if result != "pass" {
        return Ok(Err(Shut::new(note, format!("`quorate show {}` shows who said what", report.run))));
    }
    Ok(Ok(Passed { kind: "run", reference: format!("runs/{}", report.run), note }))
}
