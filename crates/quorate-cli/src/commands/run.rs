//! `quorate run`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use quorate::conversation::{
    ConversationRequest, DEFAULT_SPEAKER, RunRequest, SayRequest, SwarmEvent, SwarmReport, Until,
};
use quorate::{Conversation, Outcome, Quorate, Run};
use quorate_diagnostics::text::shell_quoted;

use super::conversation::{author_rule, text_argument};
use crate::arguments::{ExecutorArguments, HumanOrJson, PathArguments};
use crate::exit::{Ended, Exit, warn};
use crate::interrupt::until_interrupted;
use crate::progress::swarm::SwarmProgress;
use crate::render::{conversation, json_text};
use crate::terminal::Terminal;

/// Run a swarm from its manifest: participants answer the turns of people and of each other
///
/// The manifest (AIP-48) names the participants, the substrate of the conversation, the dispatcher that selects the next
/// speaker, and the store of participants' state. The command prints each turn when it is appended. A restart continues
/// after the last run: every mention is answered exactly once.
///
/// The exit code is 0 when every participant that was asked has answered, 3 when one has not or `maxAgentTurns` stopped a
/// chain of answers, 4 not found, 5 unusable configuration or input, 64 wrong command line.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate run swarm.yaml --say '@Reviewer please look at the draft'\n  quorate run .runtime/multi-agent.yaml --watch\n  quorate run swarm.yaml --once --executor rubric --events events.jsonl\n  quorate run swarm.yaml --serve reviewer --executor claude"
)]
pub(super) struct Arguments {
    /// The manifest, a directory with a multi-agent.yaml in it, or the name of a file in runtimes/
    #[arg(value_name = "MANIFEST")]
    manifest: PathBuf,
    /// Stop once a participant was asked
    #[arg(long, group = "until")]
    once: bool,
    /// Stop when no turn is left to answer (the default)
    #[arg(long, group = "until")]
    until_idle: bool,
    /// Wait for new turns until interrupted
    #[arg(long, group = "until")]
    watch: bool,
    /// Answer for this participant, whose executor is `remote` where the manifest is run; until interrupted
    #[arg(long, value_name = "PARTICIPANT", conflicts_with_all = ["until", "say", "from_now", "events", "format"])]
    serve: Option<String>,
    /// Append this turn first; - reads it from standard input
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    say: Option<String>,
    /// The author of that turn
    #[arg(long = "as", value_name = "NAME", default_value = DEFAULT_SPEAKER, requires = "say")]
    by: String,
    /// Write that turn also in the name of a participant; prompts and the log show that a person wrote it
    #[arg(long, requires = "say")]
    yes: bool,
    /// On the first run: begin after the existing turns, not with the first
    #[arg(long)]
    from_now: bool,
    /// Append every event to this file, as lines of JSON
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// The workspace of roles, personas and operators
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Output format: turns as they come, or one JSON object at the end
    #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
    format: HumanOrJson,
    #[command(flatten)]
    answers: ExecutorArguments,
    #[command(flatten)]
    places: PathArguments,
}

impl Arguments {
    fn until(&self) -> Until {
        match (self.once, self.watch) {
            (true, _) => Until::Once,
            (_, true) => Until::Watch,
            _ => Until::Idle,
        }
    }
}

pub(super) async fn run(arguments: Arguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    let until = arguments.until();
    let options = arguments.answers.options();
    let executor = options.executor.as_deref().map(shell_quoted);
    let executor = executor.map_or_else(String::new, |executor| format!(" --executor {executor}"));
    let again = format!("quorate run {}{executor}", shell_quoted(&arguments.manifest.to_string_lossy()));
    let request = ConversationRequest {
        path: arguments.manifest,
        root: arguments.root,
        executor: options.executor,
        caps: options.caps,
        timeout: options.timeout,
    };
    let conversation = arguments.places.apply(quorate).conversation(request)?;
    if let Some(participant) = &arguments.serve {
        return serve(participant, &conversation, terminal).await;
    }
    let (rule, by) = (author_rule(arguments.yes), Some(arguments.by));
    let text = arguments.say.as_deref().map(text_argument).transpose()?;
    let say = text.map(|text| SayRequest { text, by, rule, is_shared: false });
    let request = RunRequest {
        until,
        say,
        is_shared: false,
        from_now: arguments.from_now,
        caps: None,
        events: arguments.events,
    };
    let is_human = arguments.format == HumanOrJson::Human;
    let progress = SwarmProgress::new(terminal.progress, terminal.verbose, until == Until::Watch);
    let mut shown = Shown { run: conversation.run(request), progress, is_human, terminal };
    // While the run begins and ends, a signal ends the process at once.
    shown.until(|event| matches!(event, SwarmEvent::Began)).await;
    if until_interrupted(shown.until(|event| matches!(event, SwarmEvent::Ending))).await.is_err() {
        shown.run.interrupt();
    }
    shown.until(|_| false).await;
    shown.progress.clear();
    let outcome = shown.run.finish().await?;
    match is_human {
        true => terminal.hint(&conversation::summary(&outcome, until == Until::Watch)),
        false => terminal.data(&json_text(&outcome.value)),
    }
    warn(&outcome.warnings, terminal);
    if outcome.value.interrupted.is_some() {
        terminal.status(&again);
    }
    Ok(match (outcome.is_interrupted, outcome.is_complete()) {
        (true, _) => Exit::INTERRUPTED,
        (false, true) => Exit::DONE,
        (false, false) => Exit::INCOMPLETE,
    })
}

/// A run whose events are printed.
struct Shown<'t> {
    run: Run<Outcome<SwarmReport>, SwarmEvent>,
    progress: SwarmProgress,
    is_human: bool,
    terminal: &'t Terminal,
}

impl Shown<'_> {
    /// Prints events up to the first of a kind, or to the end of the run.
    async fn until(&mut self, is_last: impl Fn(&SwarmEvent) -> bool) {
        while let Some(event) = self.run.next().await {
            self.progress.observe(&event);
            match &event {
                SwarmEvent::Said(turn) if self.is_human => {
                    self.terminal.data(&conversation::turn(turn, self.terminal.stdout));
                }
                SwarmEvent::Warned(report) => warn(report, self.terminal),
                SwarmEvent::Retrying { report, pause } => {
                    warn(report, self.terminal);
                    self.terminal.status(&format!("trying again in {} s", pause.as_secs()));
                }
                _ => {}
            }
            if is_last(&event) {
                return;
            }
        }
    }
}

/// Answers for a participant until a signal ends it.
#[cfg(feature = "nats")]
async fn serve(participant: &str, conversation: &Conversation, terminal: &Terminal) -> Ended {
    use crate::interrupt::Interrupted;
    use crate::render::layout::one_line;
    use quorate::conversation::ServeEvent;

    warn(conversation.report(), terminal);
    crate::interrupt::exit_cleanly_on_signal();
    let mut serving = conversation.serve(participant);
    let served = async {
        while let Some(event) = serving.next().await {
            // The ids are the asking side's.
            terminal.status(&one_line(&match event {
                ServeEvent::Ready { subject } => format!("answers for {participant} on {subject}"),
                ServeEvent::Asked { id } => format!("{id} asked"),
                ServeEvent::Ended { id, failure: None } => format!("{id} answered"),
                ServeEvent::Ended { id, failure: Some(why) } => format!("{id} has no answer: {why}"),
            }));
        }
        serving.finish().await
    };
    match until_interrupted(served).await {
        Ok(served) => served.map(|()| Exit::DONE),
        Err(Interrupted) => Ok(Exit::DONE),
    }
}

#[cfg(not(feature = "nats"))]
#[expect(clippy::unused_async, reason = "as with NATS")]
async fn serve(_: &str, _: &Conversation, _: &Terminal) -> Ended {
    Err(crate::exit::feature_missing("nats"))
}
