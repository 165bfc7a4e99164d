//! The subcommands of `quorate playbook` that change nothing.

use super::{CommonArguments, Verb};
use crate::arguments::HumanOrJson;
use crate::exit::{Exit, exit_with_error};
use crate::render;
use crate::terminal::Terminal;
use quorate::service::environment::Environment;
use quorate::service::error::ServiceError;
use quorate::service::playbook::inspect;
use quorate::service::playbook::library::Library;
use quorate::service::playbook::promote::unknown_playbook;

/// Runs a subcommand; `None` if it changes something.
pub(super) async fn run(
    verb: &Verb,
    common: &CommonArguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Option<Exit> {
    if !matches!(verb, Verb::List(_) | Verb::Show(_) | Verb::History(_) | Verb::Log(_)) {
        return None;
    }
    Some(match text(verb, common, environment, terminal).await {
        Ok(text) => {
            terminal.data(&text);
            Exit::DONE
        }
        Err(error) => exit_with_error(&error, common.format.into(), terminal),
    })
}

async fn text(
    verb: &Verb,
    common: &CommonArguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<String, ServiceError> {
    let (places, format, options) = (common.places.path_overrides(), common.format, terminal.stdout);
    let library = Library::open(environment, &places, common.root.as_deref(), &environment.host)?;
    if format != HumanOrJson::Json {
        let slug = match verb {
            Verb::Show(arguments) | Verb::History(arguments) => Some(&*arguments.slug),
            _ => None,
        };
        let report = library.integrity_report(slug);
        terminal.status(&render::diagnostics(&report, format.into(), terminal.stderr));
    }
    let record = |slug: &str| {
        let playbook = library.book(slug).ok_or_else(|| unknown_playbook(slug))?;
        Ok::<_, ServiceError>((playbook, library.record(playbook)?))
    };
    match verb {
        Verb::Show(arguments) => {
            let (playbook, record) = record(&arguments.slug)?;
            Ok(render::playbook::show(
                &library,
                playbook,
                &record,
                environment.clock.now_ms(),
                format,
                options,
            ))
        }
        Verb::History(arguments) => {
            let (playbook, record) = record(&arguments.slug)?;
            Ok(render::playbook::history(&library, playbook, &record, format, options))
        }
        Verb::Log(arguments) => {
            let records = inspect::log(environment, &places, &library, arguments.slug.as_deref()).await?;
            Ok(render::playbook::log(&records, format, options))
        }
        _ => Ok(render::playbook::list(&library, environment.clock.now_ms(), format, options)),
    }
}
