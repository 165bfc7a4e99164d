//! `quorate weave` and `quorate overlays`: the prompts of operators, and the advice in them.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};
use quorate::Quorate;
use quorate::playbook::{
    EvictedOverlays, ExpiredOverlay, ListedOverlay, OverlayFilter, OverlayList, WeaveRequest, WeaveTarget,
};

use crate::arguments::{OutputArguments, PathArguments};
use crate::exit::{Ended, Exit, show, warn};
use crate::render;
use crate::terminal::Terminal;

/// Print the prompt of an operator with its active playbooks and overlays woven in
///
/// Standard error lists what was woven, and what was not and why; with --explain this replaces the prompt. With
/// --persona it prints the prompt of a persona, with the overlays of every operator of this persona.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate weave alice\n  quorate weave alice --skill research --explain\n  quorate weave alice --format diff\n  quorate weave --persona support-agent --assembly council-of-mentors"
)]
pub(super) struct WeaveArguments {
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

pub(super) async fn run_weave(arguments: WeaveArguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    let form = arguments.format;
    let target = match (arguments.operator, arguments.persona) {
        (Some(operator), _) => WeaveTarget::Operator(operator),
        (None, persona) => WeaveTarget::Persona(persona.unwrap_or_default()),
    };
    let WeaveArguments { assembly, skill, runtime, trying, root, .. } = arguments;
    let request = WeaveRequest { target, assembly, skill, runtime, trying, root };
    let woven = arguments.places.apply(quorate).weave(request).await?;
    warn(&woven.warnings, terminal);
    match form {
        PromptFormat::Text if arguments.explain => terminal.data(&woven.doc().text(terminal.stdout)),
        PromptFormat::Text => {
            terminal.hint(&woven.summary().text(terminal.stderr));
            let end = if woven.prompt.ends_with('\n') { "" } else { "\n" };
            terminal.raw_data(&format!("{}{end}", woven.prompt));
        }
        PromptFormat::Json => terminal.data(&render::json_text(&woven.value)),
        PromptFormat::Diff => terminal.data(&woven.diff()),
    }
    Ok(Exit::DONE)
}

/// List and remove the advice of advisory runs in agents' prompts
///
/// In a tenant's folder it covers only that tenant's assemblies.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate overlays list\n  quorate overlays show o7k2\n  quorate overlays expire o7k2\n  quorate overlays sweep"
)]
pub(super) struct OverlaysArguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List active overlays, the heaviest first, and expired ones that were not swept
    List(ListArguments),
    /// Show an overlay: its text, its origin, its expiry
    Show(OverlayArguments),
    /// Expire an overlay early
    Expire(OverlayArguments),
    /// Remove expired overlays
    Sweep(ListArguments),
}

#[derive(Debug, Args)]
struct ListArguments {
    /// Only those of this assembly
    #[arg(long, value_name = "NAME")]
    assembly: Option<String>,
    #[command(flatten)]
    shape: OutputArguments,
}

#[derive(Debug, Args)]
struct OverlayArguments {
    /// The overlay's id, or a prefix of it
    #[arg(value_name = "OVERLAY")]
    overlay: String,
    #[command(flatten)]
    shape: OutputArguments,
}

pub(super) async fn run_overlays(
    arguments: OverlaysArguments,
    quorate: &Quorate,
    terminal: &Terminal,
) -> Ended {
    match arguments.verb {
        Verb::List(ListArguments { assembly, shape }) => {
            let listed = shape.apply(quorate).overlays(OverlayFilter { assembly }).await;
            show(listed, OverlayList::doc, terminal)
        }
        Verb::Show(OverlayArguments { overlay, shape }) => {
            show(shape.apply(quorate).overlay(&overlay).await, ListedOverlay::doc, terminal)
        }
        Verb::Expire(OverlayArguments { overlay, shape }) => {
            show(shape.apply(quorate).expire_overlay(&overlay).await, ExpiredOverlay::doc, terminal)
        }
        Verb::Sweep(ListArguments { assembly, shape }) => {
            let swept = shape.apply(quorate).sweep_overlays(OverlayFilter { assembly }).await;
            show(swept, EvictedOverlays::doc, terminal)
        }
    }
}
