//! `--dry-run`: estimates the cost of reviews. Asks no member, and neither needs nor creates a ledger.

use quorate_diagnostics::{Body, codes};
use serde_json::json;

use super::ReviewSettings;
use crate::exit::{Exit, exit_with_error};
use crate::render::{self, Format};
use crate::terminal::Terminal;
use quorate::service::artifact::Artifact;
use quorate::service::environment::Environment;
use quorate::service::error::{ExitClass, ServiceError};
use quorate::service::estimate::{self, Estimate};
use quorate::service::review;

pub(super) fn run(
    artifacts: &[Artifact],
    settings: &ReviewSettings,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let format = settings.format;
    if !matches!(format, Format::Human | Format::Json) {
        let body = Body::new("`--dry-run` prints no verdict").help("use `--format human` or `--format json`");
        return exit_with_error(&ServiceError::new(ExitClass::Usage, codes::USAGE, body), format, terminal);
    }
    let mut total = Estimate::default();
    let mut texts = Vec::new();
    for artifact in artifacts {
        match review::estimate(environment, &settings.places, artifact, &settings.request) {
            Ok(estimate) => {
                total.add(estimate.clone());
                texts.push((&artifact.display_name, estimate));
            }
            Err(error) => return exit_with_error(&error, format, terminal),
        }
    }
    if format == Format::Json {
        let texts = texts.iter().map(|(name, estimate)| {
            let mut text = estimate.json();
            text["artifact"] = json!(name);
            text
        });
        let texts: Vec<_> = texts.collect();
        let all = json!({"schema": estimate::SCHEMA, "texts": texts, "total": total.json()});
        terminal.data(&format!("{all:#}\n"));
        return Exit::DONE;
    }
    for (name, estimate) in &texts {
        terminal.data(&render::estimate::human(name, estimate, terminal.stdout));
    }
    if texts.len() > 1 {
        terminal.data(&render::estimate::human("All of them", &total, terminal.stdout));
    }
    terminal.status(render::estimate::NOTE);
    Exit::DONE
}
