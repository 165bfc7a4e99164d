//! `quorate init`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::exit::{Exit, stopped};
use super::render::Format;
use super::terminal::Terminal;
use crate::service::environment::Environment;
use crate::service::init;
use crate::service::workspace::shown;

/// Write files to start from
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  quorate init council editorial")]
pub(super) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// A commented council.yaml, its five prompts and an example draft; nothing that is there is touched
    Council {
        /// The directory
        #[arg(value_name = "DIR", default_value = ".")]
        dir: PathBuf,
    },
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let What::Council { dir } = arguments.what;
    let dir = environment.directory.join(dir);
    match init::council(&dir) {
        Ok(written) => {
            for path in &written {
                terminal.data(&format!("{}\n", shown(environment, path)));
            }
            let draft = written.iter().find(|path| path.extension().is_some_and(|end| end == "md"));
            if let Some(draft) = draft {
                terminal.talk(&format!("next: quorate review {}", shown(environment, draft)));
            }
            Exit::DONE
        }
        Err(stop) => stopped(&stop, Format::Human, terminal),
    }
}
