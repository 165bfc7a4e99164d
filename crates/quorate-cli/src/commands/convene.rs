//! `quorate convene`.

use std::path::PathBuf;

use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser, TypedValueParser as _};
use clap::{Args, ValueEnum};
use quorate::convene::{ConveneOutcome, ConveneRequest, Inputs};
use quorate::runs::Recorded;
use quorate::{Draft, Outcome, Quorate, RunOptions, Trigger};

use crate::arguments::{ExecutorArguments, PathArguments, ProducerArguments, QueueArguments};
use crate::exit::{Ended, Exit, print_outcome, print_recorded, warn};
use crate::progress::Progress;
#[cfg(feature = "postgres")]
use crate::progress::Shown;
use crate::render;
use crate::terminal::Terminal;

/// Convene an assembly: guidance, a vote, a discussion among peers, or an assessment up a hierarchy
///
/// The mode of the ASSEMBLY.md determines its subject: a conversation (advisory), a proposal (voting), a topic (peer), a
/// request (hierarchy). Members without an executor of their own are answered for by the built-in rubric, which calls no
/// model.
///
/// The exit code is the outcome: of a vote 0 pass and 1 fail, of other modes 0 done; 2 refused, 3 incomplete; 4 not
/// found, 5 unusable configuration or input, 6 not due (with --if-due), 64 wrong command line.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate convene council/ASSEMBLY.md --phase session --trigger sample --conversation talk.jsonl\n  quorate convene board/ASSEMBLY.md --proposal proposal.md --class budget\n  quorate convene critique/ASSEMBLY.md --topic design.md --rounds 3\n  quorate convene review/ASSEMBLY.md --request incident.md --format json\n  quorate convene board/ASSEMBLY.md --proposal proposal.md --dry-run\n  quorate convene board/ASSEMBLY.md --proposal proposals/ --enqueue"
)]
pub(super) struct Arguments {
    /// The ASSEMBLY.md, its directory, or the name of its directory in assemblies/
    #[arg(value_name = "ASSEMBLY.md")]
    path: PathBuf,
    /// Advisory: the conversation, as .jsonl or .md, or - for standard input
    #[arg(long, value_name = "FILE")]
    conversation: Option<PathBuf>,
    /// Advisory: which members to ask, by phase; default session
    #[arg(long, value_name = "PHASE", value_parser = NonEmptyStringValueParser::new())]
    phase: Option<String>,
    /// Advisory: the reason for asking; default manual
    #[arg(long, value_name = "TRIGGER", value_parser = trigger())]
    trigger: Option<Trigger>,
    /// Advisory: ask the sentinels first; they can end it
    #[arg(long)]
    sentinel_first: bool,
    /// Voting: the proposal, or - for standard input
    #[arg(long, value_name = "FILE")]
    proposal: Option<PathBuf>,
    /// Voting: the proposal's class; without it only members without classes vote
    #[arg(long, value_name = "CLASS", value_parser = NonEmptyStringValueParser::new())]
    class: Option<String>,
    /// Peer: the topic, or - for standard input
    #[arg(long, value_name = "FILE")]
    topic: Option<PathBuf>,
    /// Peer: the most rounds, in place of the manifest's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: Option<u32>,
    /// Hierarchy: the matter to assess, or - for standard input
    #[arg(long, value_name = "FILE")]
    request: Option<PathBuf>,
    /// Do nothing, with exit code 6, unless the assembly is due by its manifest's `defaults`
    #[arg(long, conflicts_with_all = ["dry_run", "enqueue"])]
    if_due: bool,
    /// Show the members and their prompts, and ask none
    #[arg(long, conflicts_with = "enqueue")]
    dry_run: bool,
    /// With --enqueue: convene again about what was decided before
    #[arg(long, requires = "enqueue")]
    force: bool,
    /// The workspace in which refs resolve
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = OutputFormat::Human)]
    format: OutputFormat,
    #[command(flatten)]
    queue: QueueArguments,
    #[command(flatten)]
    producer: ProducerArguments,
    #[command(flatten)]
    answers: ExecutorArguments,
    #[command(flatten)]
    places: PathArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputFormat {
    /// Text to read
    Human,
    /// One JSON object
    Json,
    /// Markdown with Mermaid diagrams
    Markdown,
}

fn trigger() -> impl clap::builder::TypedValueParser<Value = Trigger> {
    PossibleValuesParser::new(Trigger::ALL.map(Trigger::as_str)).map(|word| {
        let found = Trigger::ALL.into_iter().find(|trigger| trigger.as_str() == word);
        found.expect("only the words of triggers are let through")
    })
}

pub(super) async fn run(arguments: Arguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    let request = ConveneRequest {
        path: arguments.path,
        root: arguments.root,
        inputs: Inputs {
            conversation: arguments.conversation.map(Draft::File),
            phase: arguments.phase,
            trigger: arguments.trigger,
            sentinel_first: arguments.sentinel_first,
            proposal: arguments.proposal.map(Draft::File),
            class: arguments.class,
            topic: arguments.topic.map(Draft::File),
            rounds: arguments.rounds,
            request: arguments.request.map(Draft::File),
        },
        options: RunOptions { producer: arguments.producer.producer(), ..arguments.answers.options() },
    };
    let quorate = arguments.places.apply(quorate);
    if arguments.queue.enqueue {
        #[cfg(feature = "postgres")]
        return enqueue(request, &arguments.queue, arguments.force, &quorate, terminal).await;
        #[cfg(not(feature = "postgres"))]
        return Err(crate::exit::feature_missing("postgres"));
    }
    let convening = quorate.convening(request);
    if arguments.dry_run {
        let plan = convening.plan().await?;
        return print_outcome(&plan, &render::plan(&plan, terminal), terminal);
    }
    let progress = Progress::new(terminal.progress);
    let Outcome { value, warnings } = match arguments.if_due {
        true => progress.follow(convening.start_if_due()).await?,
        false => {
            let convened = progress.follow(convening.start()).await?;
            convened.map(|decision| ConveneOutcome::Decided(Box::new(decision)))
        }
    };
    match value {
        ConveneOutcome::Decided(decision) => {
            let recorded = Outcome { value: Recorded::Decision(decision), warnings };
            print_recorded(&recorded, terminal)
        }
        ConveneOutcome::NotDue(why) => {
            warn(&warnings, terminal);
            terminal.hint(&format!("not due: {why}"));
            Ok(Exit::SKIPPED)
        }
    }
}

/// `--enqueue`.
#[cfg(feature = "postgres")]
async fn enqueue(
    request: ConveneRequest,
    queue: &QueueArguments,
    force: bool,
    quorate: &Quorate,
    terminal: &Terminal,
) -> Ended {
    use quorate::sweep::JudgedPolicy;

    let judged = if force { JudgedPolicy::Repeat } else { JudgedPolicy::Skip };
    let queueing = quorate.queue().convene(request, queue.options(), judged, queue.wait);
    let queued = Progress::new(Shown::Nothing).follow(queueing).await?;
    if queued.is_interrupted {
        terminal.status("interrupted; what is queued stays queued");
    }
    let exit = Exit(queued.exit_code());
    crate::exit::show(Ok(queued), |queued| queued.doc(), terminal)?;
    Ok(exit)
}
