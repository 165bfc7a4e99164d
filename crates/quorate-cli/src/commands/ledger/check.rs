//! `quorate ledger verify`, `check-proof` and `check-export`, which write nothing.

use crate::arguments::HumanOrJson;
use crate::commands::report;
use crate::exit::{Exit, exit_with_error};
use crate::render::{self, Format, evidence};
use crate::terminal::Terminal;
use quorate::service::environment::Environment;
use quorate::service::ledger::check_proof::Request;
use quorate::service::ledger::{check_export, check_proof, verify};

pub(super) async fn ledger(
    request: &verify::Request,
    format: HumanOrJson,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let verified = match verify::verify(environment, request).await {
        Ok(verified) => verified,
        Err(error) => return exit_with_error(&error, format.into(), terminal),
    };
    if !verified.warnings.is_empty() {
        terminal.status(&render::diagnostics(&verified.warnings, Format::Human, terminal.stderr));
    }
    terminal.data(&match format {
        HumanOrJson::Human => render::verification::human(&verified, terminal.stdout),
        HumanOrJson::Json => verify::json::json(&verified),
    });
    match verified.report.is_clean() {
        true => Exit::DONE,
        false => exit_with_error(&verify::divergence_error(&verified), Format::Human, terminal),
    }
}

pub(super) fn proof(
    request: &Request,
    format: HumanOrJson,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let check_proof::Checked { proven, is_report } =
        match check_proof::check(environment, request, report::FORMAT.as_ref()) {
            Ok(checked) => checked,
            Err(error) => return exit_with_error(&error, format.into(), terminal),
        };
    terminal.data(&match format {
        HumanOrJson::Human => evidence::proven(&proven, is_report, terminal.stdout),
        HumanOrJson::Json => evidence::proven_json(&proven, is_report),
    });
    match proven.trusted_key {
        Some(_) => Exit::DONE,
        None => exit_with_error(&check_proof::unvouched(request, &proven), Format::Human, terminal),
    }
}

pub(super) fn export(
    request: &Request,
    format: HumanOrJson,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let checked = match check_export::check(environment, request) {
        Ok(checked) => checked,
        Err(error) => return exit_with_error(&error, format.into(), terminal),
    };
    terminal.data(&match format {
        HumanOrJson::Human => evidence::checked(&checked),
        HumanOrJson::Json => evidence::checked_json(&checked),
    });
    match checked.vouched {
        Some(_) => Exit::DONE,
        None => exit_with_error(&check_export::unvouched(request, &checked), Format::Human, terminal),
    }
}
