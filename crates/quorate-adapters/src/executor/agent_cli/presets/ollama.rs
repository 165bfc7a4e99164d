//! The preset `ollama`: `ollama run MODEL --format json`, prompt on stdin, the answer itself on stdout. The CLI accepts
//! no schema, only a request for JSON; the prompt asks for the shape. It has no tools.

use std::ffi::OsString;

use super::{ArgumentBuilder, ArgumentInputs, Preset, ServerPassing, unchanged_schema};
use crate::executor::agent_cli::output_format::OutputFormat;

pub(super) const PRESET: Preset = Preset {
    name: "ollama",
    executor: "ollama-cli",
    command: "ollama",
    install: "see https://ollama.com/download",
    output: OutputFormat::Text,
    needs_model: true,
    uses_files: false,
    reserved_flags: &["--format", "--model", "-m"],
    implied_flags: &["run", "--nowordwrap", "--hidethinking"],
    tool_flags: &[],
    server_passing: ServerPassing::Unsupported,
    schema: unchanged_schema,
    no_attachments: None,
    judge: None,
    arguments,
};

fn arguments(ask: &ArgumentInputs<'_>) -> Vec<OsString> {
    let mut first = vec!["run"];
    first.extend(ask.model);
    if ask.schema.is_some() {
        first.extend(["--format", "json"]);
    }
    first.extend(["--nowordwrap", "--hidethinking"]);
    ArgumentBuilder::new(&first).extra_args(ask.extra_args).list
}

#[cfg(test)]
mod tests {
    use super::arguments;
    use crate::executor::agent_cli::presets::{ArgumentInputs, words};
    use crate::executor::agent_cli::tool_grants::ToolGrants;
    use serde_json::json;

    #[test]
    fn the_model_comes_first() {
        let extra = ["--keepalive".to_owned(), "5m".to_owned()];
        let (schema, granted) = (json!({}), ToolGrants::default());
        let ask = ArgumentInputs::structured(Some("llama3.2"), &extra, &schema, &granted);
        let expected =
            ["run", "llama3.2", "--format", "json", "--nowordwrap", "--hidethinking", "--keepalive", "5m"];
        assert_eq!(words(&arguments(&ask)), expected);
        let ask = ArgumentInputs { schema: None, extra_args: &[], ..ask };
        assert_eq!(words(&arguments(&ask)), ["run", "llama3.2", "--nowordwrap", "--hidethinking"]);
    }
}
