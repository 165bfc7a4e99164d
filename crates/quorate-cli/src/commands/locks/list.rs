//! `quorate locks list`.

use std::path::PathBuf;

use clap::Args;

use crate::arguments::{HumanOrJson, PathArguments};
use crate::exit::{Exit, exit_with_error};
use crate::render;
use crate::terminal::Terminal;
use quorate::service::environment::Environment;
use quorate::service::locks;

/// List the locked traits of an operator: a playbook that violates one is neither accepted nor woven
///
/// These are the built-in ones, those of quorate.toml, and those of the operator and its persona, each with its meaning and
/// its number of words and phrases; --format json has the words.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  quorate locks list alice\n  quorate locks list alice --format json")]
pub(super) struct Arguments {
    /// The operator: its folder's name in operators/, or a ws:// ref
    #[arg(value_name = "OPERATOR")]
    operator: String,
    /// The workspace, or the tenant's folder in it
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
    format: HumanOrJson,
    #[command(flatten)]
    places: PathArguments,
}

pub(super) fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let (places, root) = (arguments.places.path_overrides(), arguments.root.as_deref());
    match locks::operator_traits(environment, &places, root, &arguments.operator, &*environment.host) {
        Ok(traits) => {
            terminal.data(&render::locks::list(
                &arguments.operator,
                &traits,
                arguments.format,
                terminal.stdout,
            ));
            Exit::DONE
        }
        Err(error) => exit_with_error(&error, arguments.format.into(), terminal),
    }
}
