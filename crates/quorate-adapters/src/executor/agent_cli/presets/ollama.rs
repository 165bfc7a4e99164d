//! The preset `ollama`: `ollama run MODEL --format json`, prompt on stdin, the answer itself on stdout. The CLI can ask
//! for JSON but not for a schema; the prompt asks for the shape. It has no tools.

use std::ffi::OsString;

use super::{Arguments, Ask, Preset, TakesServers, as_it_is};
use crate::executor::agent_cli::output::Output;

pub(super) const PRESET: Preset = Preset {
    name: "ollama",
    command: "ollama",
    install: "see https://ollama.com/download",
    output: Output::Text,
    needs_model: true,
    wants_files: false,
    own_flags: &["--format", "--model", "-m"],
    implied: &["run", "--nowordwrap", "--hidethinking"],
    tool_flags: &[],
    servers: TakesServers::Not,
    schema: as_it_is,
    no_attachments: None,
    judge: None,
    arguments,
};

fn arguments(ask: &Ask<'_>) -> Vec<OsString> {
    let mut first = vec!["run"];
    first.extend(ask.model);
    if ask.schema.is_some() {
        first.extend(["--format", "json"]);
    }
    first.extend(["--nowordwrap", "--hidethinking"]);
    Arguments::of(&first).extra(ask.extra).list
}

#[cfg(test)]
mod tests {
    use super::arguments;
    use crate::executor::agent_cli::granted::Granted;
    use crate::executor::agent_cli::presets::{Ask, words};
    use serde_json::json;

    #[test]
    fn the_model_comes_first() {
        let extra = ["--keepalive".to_owned(), "5m".to_owned()];
        let (schema, granted) = (json!({}), Granted::default());
        let ask = Ask::structured(Some("llama3.2"), &extra, &schema, &granted);
        let expected =
            ["run", "llama3.2", "--format", "json", "--nowordwrap", "--hidethinking", "--keepalive", "5m"];
        assert_eq!(words(&arguments(&ask)), expected);
        let ask = Ask { schema: None, extra: &[], ..ask };
        assert_eq!(words(&arguments(&ask)), ["run", "llama3.2", "--nowordwrap", "--hidethinking"]);
    }
}
