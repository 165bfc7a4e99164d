//! `quorate playbook`: its subcommands, and the questions that it asks a person at the terminal.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use quorate::service::artifact::{self, Subject};
use quorate::service::environment::Environment;
use quorate::service::error::ServiceError;
use quorate::service::playbook::consultant::Judge;
use quorate::service::playbook::library::Library;
use quorate::service::playbook::promote::{promote, unknown_playbook};
use quorate::service::playbook::propose::{Proposal, ProposalOutcome, Proposer};
use quorate::service::playbook::traits::ExceptionRequest;
use quorate::service::playbook::writer::LibraryWriter;
use quorate::service::playbook::{Answer, Approver, GateClosed};
use quorate::service::playbook::{inspect, propose, reflect, repair, rollback};
use quorate::service::registries::Registries;
use quorate_manifest::playbook::Gate;

use crate::arguments::{HumanOrJson, PathArguments};
use crate::exit::{Exit, exit_with_error};
use crate::exit::{print_error, print_warnings};
use crate::render;
use crate::terminal::{Terminal, status_text};

/// The exit code of a refusal: no playbook was accepted or became active.
const REFUSED: Exit = Exit::verdict(2);

/// Improve agents' prompts: propose playbooks, try them in shadow, and promote those that prove themselves
///
/// A playbook is a fragment of a prompt in playbooks/. It starts in shadow, is woven once it has passed a gate, and every
/// version of it is kept.
///
/// Exits with 0 when done, with 2 when a proposal or a promotion was refused, with 4 when a named thing does not exist,
/// and with 5 when something is unusable.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate playbook list\n  quorate playbook reflect --operator alice\n  quorate playbook propose delta.json\n  quorate playbook promote cite-sources --gate human\n  quorate playbook rollback cite-sources --to 1"
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List all playbooks
    List(AllArguments),
    /// Show a playbook: its text, its operator, its status
    Show(SlugArguments),
    /// Show the history of a playbook, version by version
    History(SlugArguments),
    /// Show the ledger's records of all playbooks, or of one
    Log(LogArguments),
    /// Read recent runs and propose what an operator should learn from them
    Reflect(Reflect),
    /// Propose a playbook: a file with frontmatter, or deltas as JSON
    Propose(Propose),
    /// Propose the advice of an advisory run
    Emit(Emit),
    /// Activate a playbook, if it passes a gate
    Promote(Promote),
    /// Put an active playbook back into shadow
    Shadow(SlugArguments),
    /// Archive a playbook
    Archive(Archive),
    /// Restore an earlier version of a playbook
    Rollback(Rollback),
    /// Archive expired playbooks
    Sweep(AllArguments),
    /// Finish interrupted changes, record manual edits in the histories, and rebuild the index
    Repair(AllArguments),
}

#[derive(Debug, Args)]
struct AllArguments {
    #[command(flatten)]
    common: CommonArguments,
}

#[derive(Debug, Clone, Args)]
struct CommonArguments {
    /// Output format
    #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
    format: HumanOrJson,
    /// The workspace, or the tenant's folder in it
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    #[command(flatten)]
    places: PathArguments,
}

#[derive(Debug, Args)]
struct SlugArguments {
    /// The playbook's slug
    #[arg(value_name = "SLUG")]
    slug: String,
    #[command(flatten)]
    common: CommonArguments,
}

#[derive(Debug, Args)]
struct LogArguments {
    /// Only records of this playbook
    #[arg(value_name = "SLUG")]
    slug: Option<String>,
    #[command(flatten)]
    common: CommonArguments,
}

#[derive(Debug, Args)]
struct Reflect {
    /// The operator: its folder's name in operators/
    #[arg(long, value_name = "OPERATOR")]
    operator: String,
    /// Only these runs, by id; by default the newest ones on the operator's work
    #[arg(long, value_name = "RUN", value_delimiter = ',')]
    from: Vec<String>,
    /// The executor that reflects; by default `reflector` of quorate.toml, else the rubric
    #[arg(long, value_name = "NAME")]
    executor: Option<String>,
    /// Print the proposals as JSON, without submitting them
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    common: CommonArguments,
}

#[derive(Debug, Args)]
struct Propose {
    /// The file; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The operator for deltas that name none
    #[arg(long, value_name = "OPERATOR")]
    operator: Option<String>,
    /// Permit it to touch this locked trait, if a person at this terminal agrees; repeatable
    #[arg(long, value_name = "TRAIT", requires = "reason")]
    except_trait: Vec<String>,
    /// The reason why it does not harm the trait
    #[arg(long, value_name = "TEXT", requires = "except_trait")]
    reason: Option<String>,
    #[command(flatten)]
    common: CommonArguments,
}

#[derive(Debug, Args)]
struct Emit {
    /// The run's id, a prefix of it, or `latest`
    #[arg(value_name = "RUN")]
    run: String,
    #[command(flatten)]
    common: CommonArguments,
}

#[derive(Debug, Args)]
struct Promote {
    /// The playbook's slug
    #[arg(value_name = "SLUG")]
    slug: String,
    /// The gate that it must pass
    #[arg(long, value_enum)]
    gate: GateArgument,
    #[command(flatten)]
    common: CommonArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum GateArgument {
    /// Outcomes in the ledger are better with it than without
    #[value(name = "a-b")]
    AB,
    /// The scorer of quorate.toml approves
    Scorer,
    /// A person at this terminal approves
    Human,
    /// The assembly that quorate.toml names votes for it
    Governance,
}

#[derive(Debug, Args)]
struct Archive {
    /// The playbook's slug
    #[arg(value_name = "SLUG")]
    slug: String,
    /// The reason
    #[arg(long, value_name = "TEXT", default_value = "archived by hand")]
    reason: String,
    #[command(flatten)]
    common: CommonArguments,
}

#[derive(Debug, Args)]
struct Rollback {
    /// The playbook's slug
    #[arg(value_name = "SLUG")]
    slug: String,
    /// The version; `quorate playbook history SLUG` shows them
    #[arg(long, value_name = "N")]
    to: u32,
    #[command(flatten)]
    common: CommonArguments,
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let common = arguments.verb.common().clone();
    if let Some(exit) = inspect(&arguments.verb, &common, environment, terminal).await {
        return exit;
    }
    let (registries, format) = (&*environment.registries, common.format);
    let (places, root) = (common.places.path_overrides(), common.root.as_deref());
    let opened = match &arguments.verb {
        Verb::Repair(_) => LibraryWriter::open_with_pending(environment, &places, root, registries).await,
        _ => LibraryWriter::open(environment, &places, root, registries).await,
    };
    let mut keeping = match opened {
        Ok(keeping) => keeping,
        Err(error) => return exit_with_error(&error, format.into(), terminal),
    };
    let changed = Box::pin(change(arguments.verb, &mut keeping, registries, format, terminal)).await;
    let exit = match changed {
        Ok((text, exit)) => {
            print_warnings(&keeping.session, terminal);
            terminal.data(&text);
            exit
        }
        Err(error) => print_error(&error, &keeping.session, format.into(), terminal),
    };
    keeping.session.close().await;
    exit
}

/// Runs a subcommand that changes something; returns its output and exit code.
async fn change(
    verb: Verb,
    keeping: &mut LibraryWriter,
    registries: &Registries,
    format: HumanOrJson,
    terminal: &Terminal,
) -> Result<(String, Exit), ServiceError> {
    let user = keeping.session.environment.user.clone();
    let proposer_for = |operator: Option<String>| Proposer { by: user.clone(), operator };
    Ok(match verb {
        Verb::Propose(arguments) => {
            let subject = match arguments.file.to_str() {
                Some("-") => Subject::Stdin,
                _ => Subject::File(arguments.file.clone()),
            };
            let read = artifact::read(&subject, &keeping.session.environment.directory)?;
            let name = if read.display_name == "-" { "standard input" } else { &*read.display_name };
            let proposals = propose::parse(&read.text, name)?;
            let reason = arguments.reason.unwrap_or_default();
            let reason = keeping.session.workspace.redaction.redactor.redact(&reason).0;
            let mut person = TerminalApprover { name: user.clone(), question: Question::Except };
            let excepting =
                ExceptionRequest { traits: &arguments.except_trait, reason: &reason, person: &mut person };
            let excepting = Some(excepting).filter(|request| !request.traits.is_empty());
            submit(
                keeping,
                &proposals,
                &proposer_for(arguments.operator),
                excepting,
                registries,
                format,
                terminal,
            )
            .await?
        }
        Verb::Reflect(arguments) => {
            let reflected = reflect::reflect(
                keeping,
                &arguments.operator,
                &arguments.from,
                arguments.executor.as_deref(),
            )
            .await?;
            terminal.status(&render::playbook::reflected(&reflected));
            if arguments.dry_run {
                for unusable in reflected.proposals.iter().filter_map(render::playbook::unusable) {
                    terminal.status(&unusable);
                }
                return Ok((render::playbook::proposals(&reflected.proposals), Exit::DONE));
            }
            let proposer = Proposer { by: reflected.by.clone(), operator: Some(arguments.operator) };
            submit(keeping, &reflected.proposals, &proposer, None, registries, format, terminal).await?
        }
        Verb::Emit(arguments) => {
            let proposals = propose::proposals_of_run(keeping, &arguments.run).await?;
            submit(keeping, &proposals, &proposer_for(None), None, registries, format, terminal).await?
        }
        Verb::Promote(arguments) => {
            let gate = match arguments.gate {
                GateArgument::AB => Gate::AB,
                GateArgument::Scorer => Gate::Scorer,
                GateArgument::Human => Gate::Human,
                GateArgument::Governance => Gate::Governance,
            };
            let mut person = TerminalApprover { name: user.clone(), question: Question::Weave };
            let promoted = promote(keeping, &arguments.slug, gate, &mut person, &user, registries);
            let outcome = Box::pin(promoted).await?;
            let exit = if outcome.promoted.is_some() { Exit::DONE } else { REFUSED };
            if format != HumanOrJson::Json {
                terminal.status(&render::diagnostics(&outcome.report, format.into(), terminal.stderr));
            }
            (render::playbook::promoted(&outcome, format), exit)
        }
        Verb::Shadow(arguments) => {
            let version = rollback::move_to_shadow(keeping, &arguments.slug, &user, registries).await?;
            (render::playbook::status_changed(&arguments.slug, version, "in shadow", format), Exit::DONE)
        }
        Verb::Archive(arguments) => {
            let version =
                rollback::archive(keeping, &arguments.slug, &arguments.reason, &user, registries).await?;
            (render::playbook::status_changed(&arguments.slug, version, "archived", format), Exit::DONE)
        }
        Verb::Rollback(arguments) => {
            let rolled =
                rollback::rollback(keeping, &arguments.slug, arguments.to, &user, registries).await?;
            (render::playbook::rolled_back(&arguments.slug, arguments.to, &rolled, format), Exit::DONE)
        }
        Verb::Sweep(_) => {
            let swept = rollback::archive_expired(keeping, &user, registries).await?;
            (render::playbook::swept(&swept, format), Exit::DONE)
        }
        Verb::Repair(_) => {
            let repaired = repair::repair(keeping, &user, registries).await?;
            (render::playbook::repaired(&repaired, format), Exit::DONE)
        }
        Verb::List(_) | Verb::Show(_) | Verb::History(_) | Verb::Log(_) => (String::new(), Exit::DONE),
    })
}

/// Submits proposals.
async fn submit(
    keeping: &mut LibraryWriter,
    proposals: &[Proposal],
    proposer: &Proposer,
    excepting: Option<ExceptionRequest<'_>>,
    registries: &Registries,
    format: HumanOrJson,
    terminal: &Terminal,
) -> Result<(String, Exit), ServiceError> {
    let judge = Judge::of(keeping)?;
    let outcomes: Vec<ProposalOutcome> =
        propose::propose(keeping, proposals, proposer, judge.as_ref(), excepting, registries).await?;
    if format != HumanOrJson::Json {
        for outcome in &outcomes {
            terminal.status(&render::diagnostics(&outcome.report, format.into(), terminal.stderr));
        }
    }
    let refused = outcomes.iter().any(|outcome| outcome.accepted.is_none());
    let text = render::playbook::proposed(&outcomes, &keeping.session.environment, format);
    Ok((text, if refused { REFUSED } else { Exit::DONE }))
}

impl Verb {
    fn common(&self) -> &CommonArguments {
        match self {
            Verb::List(arguments) | Verb::Sweep(arguments) | Verb::Repair(arguments) => &arguments.common,
            Verb::Show(arguments) | Verb::History(arguments) | Verb::Shadow(arguments) => &arguments.common,
            Verb::Log(arguments) => &arguments.common,
            Verb::Reflect(arguments) => &arguments.common,
            Verb::Propose(arguments) => &arguments.common,
            Verb::Emit(arguments) => &arguments.common,
            Verb::Promote(arguments) => &arguments.common,
            Verb::Archive(arguments) => &arguments.common,
            Verb::Rollback(arguments) => &arguments.common,
        }
    }
}

struct TerminalApprover {
    /// Recorded as the approver.
    name: String,
    question: Question,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    /// Whether a playbook may be woven.
    Weave,
    /// Whether it may touch a locked trait; the reason was given before.
    Except,
}

impl Question {
    fn text(self) -> &'static str {
        match self {
            Question::Weave => "Weave it from now on? [y/N] ",
            Question::Except => "Let this text touch it? [y/N] ",
        }
    }

    fn no_terminal_help(self) -> &'static str {
        match self {
            Question::Weave => {
                "run it in a terminal; what cannot be asked for there can be voted on with `--gate governance`"
            }
            Question::Except => "run it in a terminal, with the proposal in a file",
        }
    }
}

impl Approver for TerminalApprover {
    fn ask(&mut self, text: &str) -> Result<Answer, GateClosed> {
        if !std::io::stdin().is_terminal() {
            let help = self.question.no_terminal_help();
            return Err(GateClosed::new("cannot ask for approval: standard input is not a terminal", help));
        }
        anstream::eprintln!("{}", status_text(text));
        let yes = prompt_line(self.question.text())?;
        let yes = matches!(yes.trim().to_ascii_lowercase().as_str(), "y" | "yes");
        let reason = match self.question {
            Question::Weave => prompt_line("Why? (a line, or nothing) ")?,
            Question::Except => String::new(),
        };
        Ok(Answer { yes, why: reason.trim().to_owned(), by: self.name.clone() })
    }
}

fn prompt_line(question: &str) -> Result<String, GateClosed> {
    anstream::eprint!("{question}");
    let mut answer = String::new();
    let read = std::io::stderr().flush().and_then(|()| std::io::stdin().lock().read_line(&mut answer));
    match read {
        Ok(_) => Ok(answer),
        Err(error) => Err(GateClosed::new(format!("the answer cannot be read: {error}"), "try again")),
    }
}

/// Runs a subcommand; `None` if it changes something.
async fn inspect(
    verb: &Verb,
    common: &CommonArguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Option<Exit> {
    if !matches!(verb, Verb::List(_) | Verb::Show(_) | Verb::History(_) | Verb::Log(_)) {
        return None;
    }
    Some(match text(verb, common, environment, terminal).await {
        Ok(text) => {
            terminal.data(&text);
            Exit::DONE
        }
        Err(error) => exit_with_error(&error, common.format.into(), terminal),
    })
}

async fn text(
    verb: &Verb,
    common: &CommonArguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<String, ServiceError> {
    let (places, format, options) = (common.places.path_overrides(), common.format, terminal.stdout);
    let library = Library::open(environment, &places, common.root.as_deref(), &environment.registries)?;
    if format != HumanOrJson::Json {
        let slug = match verb {
            Verb::Show(arguments) | Verb::History(arguments) => Some(&*arguments.slug),
            _ => None,
        };
        let report = library.integrity_report(slug);
        terminal.status(&render::diagnostics(&report, format.into(), terminal.stderr));
    }
    let record = |slug: &str| {
        let playbook = library.book(slug).ok_or_else(|| unknown_playbook(slug))?;
        Ok::<_, ServiceError>((playbook, library.record(playbook)?))
    };
    match verb {
        Verb::Show(arguments) => {
            let (playbook, record) = record(&arguments.slug)?;
            Ok(render::playbook::show(
                &library,
                playbook,
                &record,
                environment.clock.now_ms(),
                format,
                options,
            ))
        }
        Verb::History(arguments) => {
            let (playbook, record) = record(&arguments.slug)?;
            Ok(render::playbook::history(&library, playbook, &record, format, options))
        }
        Verb::Log(arguments) => {
            let records = inspect::log(environment, &places, &library, arguments.slug.as_deref()).await?;
            Ok(render::playbook::log(&records, format, options))
        }
        _ => Ok(render::playbook::list(&library, environment.clock.now_ms(), format, options)),
    }
}
