//! `quorate weave`.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};

use crate::arguments::PathArguments;
use crate::exit::{Exit, exit_with_error};
use crate::render::{self, Format};
use crate::terminal::Terminal;
use quorate::service::environment::Environment;
use quorate::service::weave::{self, Request, Target};

/// Print the prompt of an operator with its active playbooks and overlays woven in
///
/// Standard error lists what was woven, and what was not and why; with --explain this replaces the prompt. With
/// --persona it prints the prompt of a persona, with the overlays of every operator of this persona.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate weave alice\n  quorate weave alice --skill research --explain\n  quorate weave alice --format diff\n  quorate weave --persona support-agent --assembly council-of-mentors"
)]
pub(super) struct Arguments {
    /// The operator: its folder's name in operators/, or a ws:// ref
    #[arg(value_name = "OPERATOR", value_parser = NonEmptyStringValueParser::new(), required_unless_present = "persona")]
    operator: Option<String>,
    /// A persona instead: its folder's name in personas/, or a ws:// ref
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new(), conflicts_with = "operator")]
    persona: Option<String>,
    /// The skill in use; by default playbooks for every skill of the operator are woven
    #[arg(long, value_name = "SKILL", value_parser = NonEmptyStringValueParser::new(), requires = "operator")]
    skill: Option<String>,
    /// The runtime in use; by default the operator's
    #[arg(long, value_name = "RUNTIME", value_parser = NonEmptyStringValueParser::new(), requires = "operator")]
    runtime: Option<String>,
    /// Weave every overlay of this assembly, for any operator
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    assembly: Option<String>,
    /// Print the prompt with this shadow playbook, to try it
    #[arg(long, value_name = "SLUG", value_parser = NonEmptyStringValueParser::new(), requires = "operator")]
    trying: Option<String>,
    /// Explain what was woven, what was not and why, the length of the prompt, and its hash
    #[arg(long, conflicts_with = "format")]
    explain: bool,
    /// The workspace in which refs resolve
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = PromptFormat::Text)]
    format: PromptFormat,
    #[command(flatten)]
    places: PathArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PromptFormat {
    /// The prompt
    #[value(alias = "human")]
    Text,
    /// One JSON object
    Json,
    /// A unified diff of what weaving has changed
    Diff,
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let form = arguments.format;
    let target = match (arguments.operator, arguments.persona) {
        (Some(operator), _) => Target::Operator(operator),
        (None, persona) => Target::Persona(persona.unwrap_or_default()),
    };
    let Arguments { assembly, skill, runtime, trying, root, .. } = arguments;
    let request = Request { target, assembly, skill, runtime, trying, root };
    let format = if form == PromptFormat::Json { Format::Json } else { Format::Human };
    match weave::weave(environment, &arguments.places.path_overrides(), &request, &environment.host).await {
        Ok(woven) => {
            terminal.status(&render::diagnostics(&woven.report, Format::Human, terminal.stderr));
            if form == PromptFormat::Text && !arguments.explain {
                terminal.hint(&render::weave::summary(&woven));
            }
            match form {
                PromptFormat::Text if arguments.explain => terminal.data(&render::weave::explanation(&woven)),
                PromptFormat::Text => terminal.raw_data(&render::weave::prompt(&woven)),
                PromptFormat::Json => terminal.data(&render::weave::json(&woven)),
                PromptFormat::Diff => terminal.data(&render::weave::diff(&woven)),
            }
            Exit::DONE
        }
        Err(error) => exit_with_error(&error, format, terminal),
    }
}
