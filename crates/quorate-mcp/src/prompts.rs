//! Prompts: what a person asks of an assistant that has these tools, as clients offer it in a menu.

use std::sync::Arc;

use quorate_diagnostics::invisible::escape_invisible;
use rmcp::ErrorData;
use rmcp::model::{GetPromptRequestParams, GetPromptResult, Prompt, PromptArgument, PromptMessage, Role};

use serde_json::json;

use super::ServerState;
use super::failure::Failure;
use super::resources;

/// A prompt.
struct Entry {
    name: &'static str,
    about: &'static str,
    /// The name and description of its argument.
    argument: Option<(&'static str, &'static str)>,
    /// The person's request, with the argument in it; a path is a JSON string.
    text: fn(&str) -> String,
    /// Whether the argument is the path of a text of the workspace.
    takes_path: bool,
    /// Whether the run that the argument names is enclosed.
    encloses_run: bool,
    /// Whether it has the assistant change something.
    writes: bool,
}

const ALL: [Entry; 3] = [
    Entry {
        name: "council-review",
        about: "Have the council review a text",
        argument: Some(("path", "The text, relative to the workspace")),
        text: |path| {
            format!(
                "Have the file {path} reviewed with the tool council_review, and show me its verdict and brief as they are. Do not \
                 change the text unless I ask for it, and do not override the verdict."
            )
        },
        takes_path: true,
        encloses_run: false,
        writes: true,
    },
    Entry {
        name: "council-audit",
        about: "Say what the council decided lately",
        argument: None,
        text: |_| {
            "Show me what the council decided lately with the tool council_audit: verdicts, how far its members agree, \
             overrides, cost. Check with ledger_verify that the record holds, and say so."
                .to_owned()
        },
        takes_path: false,
        encloses_run: false,
        writes: false,
    },
    Entry {
        name: "explain-run",
        about: "Explain why a run was decided as it was",
        argument: Some(("run", "The run's id, the beginning of it, or `latest`")),
        text: |_| {
            "Explain in plain words why this was decided as it was: who objected to what, which rule decided, and what \
             would have to change. Quote only what is in it."
                .to_owned()
        },
        takes_path: false,
        encloses_run: true,
        writes: false,
    },
];

/// The prompts whose tools this server offers.
pub(super) fn list(state: &ServerState) -> Vec<Prompt> {
    offered(state)
        .map(|entry| {
            let arguments = entry.argument.map(|(name, about)| {
                vec![PromptArgument::new(name).with_description(about).with_required(true)]
            });
            Prompt::new(entry.name, Some(entry.about), arguments)
        })
        .collect()
}

fn offered(state: &ServerState) -> impl Iterator<Item = &'static Entry> {
    let read_only = state.read_only;
    ALL.iter().filter(move |entry| !(read_only && entry.writes))
}

/// One prompt, with its argument in it.
pub(super) async fn get(
    state: &Arc<ServerState>,
    request: GetPromptRequestParams,
) -> Result<GetPromptResult, ErrorData> {
    let Some(entry) = offered(state).find(|entry| entry.name == request.name) else {
        let names: Vec<&str> = offered(state).map(|entry| entry.name).collect();
        let what = format!("unknown prompt `{}`; the prompts are {}", request.name, names.join(", "));
        return Err(ErrorData::invalid_params(what, None));
    };
    let arguments = request.arguments.unwrap_or_default();
    let value = match entry.argument {
        None => String::new(),
        Some((name, about)) => arguments
            .get(name)
            .and_then(|value| value.as_str())
            .filter(|value| !value.trim().is_empty())
            .map(str::to_owned)
            .ok_or_else(|| {
                ErrorData::invalid_params(format!("`{}` takes `{name}`: {about}", entry.name), None)
            })?,
    };
    let value = match entry.takes_path {
        // An existing text below the root, on one line and in quotation marks: what a client sends as a path may be
        // instructions.
        true => {
            let draft = state.quorate.review(&*value).load();
            let draft = draft.map_err(|error| Failure::from(error).error(&state.quorate))?;
            json!(escape_invisible(&draft.name())).to_string()
        }
        false => value,
    };
    let known = entry.argument.map_or("", |(name, _)| name);
    if let Some(other) = arguments.keys().find(|key| *key != known) {
        return Err(ErrorData::invalid_params(format!("`{}` takes no `{other}`", entry.name), None));
    }
    let mut messages = vec![PromptMessage::new_text(Role::User, (entry.text)(&value))];
    if entry.encloses_run {
        let contents = resources::read(state, &resources::run_uri(&value)).await?;
        messages.push(PromptMessage::new(Role::User, rmcp::model::ContentBlock::resource(contents)));
    }
    Ok(GetPromptResult::new(messages).with_description(entry.about))
}
