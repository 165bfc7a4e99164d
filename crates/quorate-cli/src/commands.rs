//! The command line: the commands by topic, each with its arguments and its help. The logic is in the library.
//!
//! `--version --verbose` adds the details of this build.

mod audit;
mod convene;
mod conversation;
mod eval;
mod github;
mod help;
mod hook;
mod init;
mod keys;
mod ledger;
mod locks;
mod manifests;
mod mcp;
mod playbook;
mod queue;
mod report;
mod review;
mod run;
mod runs;
mod serve;
#[cfg(test)]
mod suggested;
mod sweep;
mod trust;
mod weave;
mod worker;
mod workspace;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use quorate::{Error, Quorate, Trust, process};
use quorate_diagnostics::render::Colour;
use quorate_diagnostics::text::shell_quoted;
use quorate_diagnostics::{Body, codes};

use crate::exit::{self, Ended, Exit};
use crate::logging::Logging;
use crate::render::Format;
use crate::terminal::Terminal;
use crate::{environment, terminal};

/// How long the members of dropped calls may take to end.
const MEMBER_SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(2_500);

/// How long tasks may take to be dropped; only one that reads standard input needs it.
const TASK_SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(100);

/// The most blocking threads: 16 jobs with 64 reviews each, and as many reads.
const MAX_BLOCKING_THREADS: usize = 2_048;

/// Councils of agents whose decisions you can audit.
#[derive(Debug, Parser)]
#[command(
    name = "quorate",
    version,
    about,
    propagate_version = true,
    help_template = help::template(&Command::augment_subcommands(clap::Command::new(""))),
    after_help = "Start here:\n  quorate review --example\n  quorate init council\n\nEvery diagnostic has a page: quorate explain CODE"
)]
struct Arguments {
    /// Trust, for this command, what workspace files would run or send; see `quorate trust`
    #[arg(long, global = true)]
    trust: bool,
    /// Print only results, warnings and errors, without progress and hints
    #[arg(long, short, global = true)]
    quiet: bool,
    /// Log what is done on standard error: runs and members; -vv also attempts and appends
    #[arg(long, short, global = true, action = ArgAction::Count, conflicts_with = "quiet")]
    verbose: u8,
    /// When to use colours: `auto` means on terminals, unless `NO_COLOR` is set
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    color: Color,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Color {
    Auto,
    Always,
    Never,
}

impl Color {
    /// Sets the colours of the whole process, before anything is printed.
    fn apply(self) {
        match self {
            Color::Auto => anstream::ColorChoice::Auto,
            Color::Always => anstream::ColorChoice::Always,
            Color::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }

    /// Reads the option before clap parses the command line, so that help and parse errors use the right colours.
    fn from_command_line(words: impl Iterator<Item = OsString>) -> Color {
        let mut words = words.take_while(|word| word != "--").map(|word| word.to_string_lossy().into_owned());
        let mut colour = Color::Auto;
        while let Some(word) = words.next() {
            let value = match word.strip_prefix("--color") {
                Some("") => words.next(),
                Some(rest) => rest.strip_prefix('=').map(str::to_owned),
                None => None,
            };
            colour = value.and_then(|value| Color::from_str(&value, false).ok()).unwrap_or(colour);
        }
        colour
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    Review(review::Arguments),
    Convene(convene::Arguments),
    Sweep(sweep::Arguments),
    Eval(eval::Arguments),
    Queue(queue::Arguments),
    Worker(worker::Arguments),
    Run(run::Arguments),
    Say(conversation::SayArguments),
    Log(conversation::LogArguments),
    State(conversation::StateArguments),
    Serve(serve::Arguments),
    Mcp(mcp::Arguments),
    Audit(audit::Arguments),
    Ledger(ledger::Arguments),
    Runs(runs::RunsArguments),
    Watch(runs::WatchArguments),
    Show(runs::ShowArguments),
    Report(report::ReportArguments),
    Compare(runs::CompareArguments),
    Resume(runs::ResumeArguments),
    Replay(runs::ReplayArguments),
    Override(runs::OverrideArguments),
    Attest(report::AttestArguments),
    Overlays(weave::OverlaysArguments),
    Weave(weave::WeaveArguments),
    Playbook(playbook::Arguments),
    Provision(workspace::ProvisionArguments),
    Init(init::Arguments),
    Hook(hook::Arguments),
    Github(github::Arguments),
    Check(manifests::CheckArguments),
    Resolve(manifests::ResolveArguments),
    Keys(keys::Arguments),
    Locks(locks::Arguments),
    Trust(trust::Arguments),
    Schema(manifests::SchemaArguments),
    Fmt(manifests::FmtArguments),
    Doctor(workspace::DoctorArguments),
    Models(workspace::ModelsArguments),
    Explain(manifests::ExplainArguments),
    Completions(help::CompletionsArguments),
    Man(help::ManArguments),
}

/// Runs the command of this process's arguments.
pub(crate) fn run() -> ExitCode {
    Color::from_command_line(std::env::args_os()).apply();
    let parsed = Arguments::command().try_get_matches().and_then(|matches| {
        let format = named_format(&matches);
        Ok((Arguments::from_arg_matches(&matches)?, format))
    });
    let (arguments, format) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return exit::usage(&with_guess(with_details(error))),
    };
    arguments.color.apply();
    // Only a sweep, a worker and a server compute several things at once; for other commands a second thread costs more than it
    // saves.
    let mut builder = match arguments.command {
        Command::Sweep(_) | Command::Eval(_) | Command::Worker(_) | Command::Mcp(_) | Command::Serve(_) => {
            tokio::runtime::Builder::new_multi_thread()
        }
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    // Each review of a sweep or a worker blocks a thread of its own while it waits for others: one more must always be available.
    builder.max_blocking_threads(MAX_BLOCKING_THREADS);
    let runtime = match builder.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return exit::bug(&error).into(),
    };
    let exit = runtime.block_on(dispatch(arguments, format));
    // Pending work is dropped, which ends its members; they get their two seconds.
    runtime.shutdown_timeout(TASK_SHUTDOWN_TIMEOUT);
    process::wait_for_members(MEMBER_SHUTDOWN_TIMEOUT);
    exit.into()
}

/// The `--format` of a command line; that of people if the command has none, or one that errors and outcomes do not have.
fn named_format(matches: &ArgMatches) -> Format {
    match matches.subcommand() {
        Some((_, matches)) => named_format(matches),
        None => {
            let word = matches.try_get_raw("format").ok().flatten().and_then(Iterator::last);
            word.and_then(|word| Format::from_str(word.to_str()?, false).ok()).unwrap_or(Format::Human)
        }
    }
}

/// Adds details to `--version` with `--verbose`.
fn with_details(error: clap::Error) -> clap::Error {
    if error.kind() != ErrorKind::DisplayVersion || !is_verbose_version(std::env::args_os()) {
        return error;
    }
    Arguments::command().version(version_details()).try_get_matches().err().unwrap_or(error)
}

/// Flags of other tools, and what to write in place of them.
const OTHER_FLAGS: [(&str, &str); 5] = [
    ("--json", "write `--format json`"),
    ("--output", "write `> FILE` at the end"),
    ("--model", "write it after the command: `quorate review FILE --executor openai --model MODEL`"),
    ("--provider", "name the service in the executor: `--executor openai:MODEL`"),
    ("--api-key", "export the key of the service; `quorate models` names its variable"),
];

/// Adds the correct form to the error of a common guess.
fn with_guess(mut error: clap::Error) -> clap::Error {
    let word = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => word.clone(),
        _ => String::new(),
    };
    let (flag, command) = (word(ContextKind::InvalidArg), word(ContextKind::InvalidSubcommand));
    let tip = match OTHER_FLAGS.iter().find(|(name, _)| *name == flag) {
        Some((_, tip)) => (*tip).to_owned(),
        None if command.contains(['.', '/']) => {
            format!("to review a file, run `quorate review {}`", shell_quoted(&command))
        }
        None => return error,
    };
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    error
}

async fn dispatch(arguments: Arguments, format: Format) -> Exit {
    let Arguments { trust, quiet, verbose, command, .. } = arguments;
    let builder = match (trust, &command) {
        (true, _) => environment::from_process().trust(Trust::Workspace),
        // A client of a server, a queued task or another tool must not cause a question at this terminal.
        (
            false,
            Command::Mcp(_) | Command::Serve(_) | Command::Worker(_) | Command::Hook(_) | Command::Github(_),
        ) => environment::from_process(),
        (false, _) => terminal::asking(environment::from_process()),
    };
    let quorate = match builder.build_unvalidated() {
        Ok(quorate) => quorate,
        Err(error) => return exit::bug(&error),
    };
    // The files of a pull request must not weaken the redaction of what is printed.
    let (shown, format) = match &command {
        Command::Github(_) => (quorate.with_built_in_redaction(), github::format()),
        _ => (quorate.clone(), format),
    };
    let terminal = Terminal::from_process(shown.clone(), format, quiet, verbose);
    // A swarm prints its own steps before it needs a log.
    let verbosity = verbose - u8::from(verbose > 0 && matches!(command, Command::Run(_)));
    let colours = terminal.stderr.colour == Colour::On;
    let logging = match Logging::start(verbosity, colours, shown) {
        Ok(logging) => logging,
        Err(why) => {
            let error = Error::new(quorate::ErrorKind::InvalidRequest, codes::USAGE, Body::new(why));
            return exit::exit_with_error(&error, Format::Human, &terminal);
        }
    };
    let ended = Box::pin(run_command(command, &quorate, &terminal)).await;
    let exit = ended.unwrap_or_else(|error| exit::exit_with_error(&error, format, &terminal));
    if let Some(why) = logging.close() {
        terminal.status(&why);
    }
    // If the verdict could not be printed, its exit code must not stand for it.
    if terminal.failed.get() { Exit::UNUSABLE } else { exit }
}

async fn run_command(command: Command, quorate: &Quorate, terminal: &Terminal) -> Ended {
    match command {
        Command::Review(arguments) => review::run(arguments, quorate, terminal).await,
        Command::Convene(arguments) => Box::pin(convene::run(arguments, quorate, terminal)).await,
        Command::Sweep(arguments) => sweep::run(arguments, quorate, terminal).await,
        Command::Eval(arguments) => Box::pin(eval::run(arguments, quorate, terminal)).await,
        Command::Queue(arguments) => Box::pin(queue::run(arguments, quorate, terminal)).await,
        Command::Worker(arguments) => Box::pin(worker::run(arguments, quorate, terminal)).await,
        Command::Run(arguments) => run::run(arguments, quorate, terminal).await,
        Command::Say(arguments) => conversation::run_say(arguments, quorate, terminal).await,
        Command::Log(arguments) => conversation::run_log(arguments, quorate, terminal).await,
        Command::State(arguments) => conversation::run_state(arguments, quorate, terminal).await,
        #[cfg(feature = "serve")]
        Command::Serve(arguments) => serve::run(arguments, quorate, terminal).await,
        #[cfg(not(feature = "serve"))]
        Command::Serve(_) => Err(exit::feature_missing("serve")),
        #[cfg(feature = "mcp")]
        Command::Mcp(arguments) => Box::pin(mcp::run(arguments, quorate, terminal)).await,
        #[cfg(not(feature = "mcp"))]
        Command::Mcp(_) => Err(exit::feature_missing("mcp")),
        Command::Ledger(arguments) => Box::pin(ledger::run(arguments, quorate, terminal)).await,
        Command::Audit(arguments) => audit::run(arguments, quorate, terminal).await,
        Command::Watch(arguments) => runs::run_watch(arguments, quorate, terminal).await,
        Command::Runs(arguments) => runs::run_runs(arguments, quorate, terminal).await,
        Command::Show(arguments) => runs::run_show(arguments, quorate, terminal).await,
        Command::Report(arguments) => report::run_report(arguments, quorate, terminal).await,
        Command::Compare(arguments) => runs::run_compare(arguments, quorate, terminal).await,
        Command::Resume(arguments) => Box::pin(runs::run_resume(arguments, quorate, terminal)).await,
        Command::Replay(arguments) => runs::run_replay(arguments, quorate, terminal).await,
        Command::Override(arguments) => Box::pin(runs::run_override(arguments, quorate, terminal)).await,
        Command::Attest(arguments) => Box::pin(report::run_attest(arguments, quorate, terminal)).await,
        Command::Overlays(arguments) => weave::run_overlays(arguments, quorate, terminal).await,
        Command::Weave(arguments) => weave::run_weave(arguments, quorate, terminal).await,
        Command::Playbook(arguments) => Box::pin(playbook::run(arguments, quorate, terminal)).await,
        Command::Provision(arguments) => workspace::run_provision(arguments, quorate, terminal).await,
        Command::Init(arguments) => init::run(arguments, quorate, terminal),
        Command::Hook(arguments) => Box::pin(hook::run(arguments, quorate, terminal)).await,
        Command::Github(arguments) => Box::pin(github::run(arguments, quorate, terminal)).await,
        Command::Fmt(arguments) => manifests::run_fmt(arguments, quorate, terminal),
        Command::Schema(arguments) => manifests::run_schema(&arguments, terminal),
        Command::Resolve(arguments) => manifests::run_resolve(arguments, quorate, terminal),
        Command::Check(arguments) => manifests::run_check(arguments, quorate, terminal),
        Command::Keys(arguments) => keys::run(arguments, quorate, terminal).await,
        Command::Locks(arguments) => locks::run(arguments, quorate, terminal).await,
        Command::Trust(arguments) => trust::run(&arguments, quorate, terminal),
        Command::Doctor(arguments) => workspace::run_doctor(arguments, quorate, terminal).await,
        Command::Models(arguments) => workspace::run_models(arguments, quorate, terminal).await,
        Command::Explain(arguments) => manifests::run_explain(&arguments, terminal),
        Command::Completions(arguments) => help::run_completions(&arguments, terminal),
        Command::Man(arguments) => help::run_man(&arguments, quorate, terminal),
    }
}

/// The features that a build can have or lack, and whether this one has them.
const FEATURES: [(&str, bool); 11] = [
    ("agent-cli", cfg!(feature = "agent-cli")),
    ("cluster", cfg!(feature = "cluster")),
    ("http-witness", cfg!(feature = "http-witness")),
    ("llm", cfg!(feature = "llm")),
    ("mcp", cfg!(feature = "mcp")),
    ("metrics", cfg!(feature = "metrics")),
    ("nats", cfg!(feature = "nats")),
    ("otel", cfg!(feature = "otel")),
    ("postgres", cfg!(feature = "postgres")),
    ("rubric", cfg!(feature = "rubric")),
    ("serve", cfg!(feature = "serve")),
];

/// Whether a command line that asks for the version also asks for its details.
pub(crate) fn is_verbose_version(words: impl Iterator<Item = OsString>) -> bool {
    words.skip(1).take_while(|word| word != "--").any(|word| {
        let word = word.to_string_lossy();
        let is_short = word.strip_prefix('-').is_some_and(|letters| {
            !letters.is_empty() && letters.chars().all(|letter| matches!(letter, 'v' | 'V'))
        });
        word == "--verbose" || (is_short && word.contains('v'))
    })
}

/// The version and one line for each detail, `<name>: <value>`.
pub(crate) fn version_details() -> String {
    let features: Vec<&str> = FEATURES.iter().filter(|(_, has)| *has).map(|(name, _)| *name).collect();
    let features = if features.is_empty() { "none".to_owned() } else { features.join(", ") };
    let commit = Some(env!("QUORATE_COMMIT")).filter(|commit| !commit.is_empty()).unwrap_or("unknown");
    let build = if cfg!(debug_assertions) { "development" } else { "optimised" };
    format!(
        "{}\ncommit: {commit}\ntarget: {}\nfeatures: {features}\nbuild: {build}",
        env!("CARGO_PKG_VERSION"),
        env!("QUORATE_TARGET"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_are_asked_for_in_any_place_and_form() {
        let asked = |line: &str| is_verbose_version(line.split_whitespace().map(OsString::from));
        for line in [
            "quorate --version --verbose",
            "quorate --verbose --version",
            "quorate -V -v",
            "quorate -vV",
            "quorate -Vvv",
            "quorate review --version -v",
        ] {
            assert!(asked(line), "{line}");
        }
        for line in
            ["quorate --version", "quorate -V", "quorate --version -- -v", "-v --version", "quorate -V -"]
        {
            assert!(!asked(line), "{line}");
        }
    }
}
