//! `quorate playbook`: `playbook/inspect.rs` has the subcommands that change nothing, `playbook/approver.rs` asks a person.

mod approver;
mod inspect;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use quorate_manifest::playbook::history::Gate;

use crate::arguments::{HumanOrJson, PathArguments};
use crate::exit::{Exit, exit_with_error};
use crate::render;
use crate::session::{print_error, print_warnings};
use crate::terminal::Terminal;
use quorate::service::artifact::{self, Subject};
use quorate::service::environment::Environment;
use quorate::service::error::ServiceError;
use quorate::service::host::Host;
use quorate::service::playbook::exceptions::ExceptionRequest;
use quorate::service::playbook::judge::Judge;
use quorate::service::playbook::promote::promote;
use quorate::service::playbook::propose::{self, Outcome, Proposal, Proposer, propose};
use quorate::service::playbook::writer::LibraryWriter;
use quorate::service::playbook::{archive, emit, reflect, repair, rollback};

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
    if let Some(exit) = inspect::run(&arguments.verb, &common, environment, terminal).await {
        return exit;
    }
    let (host, format) = (&*environment.host, common.format);
    let (places, root) = (common.places.path_overrides(), common.root.as_deref());
    let opened = match &arguments.verb {
        Verb::Repair(_) => LibraryWriter::open_with_pending(environment, &places, root, host).await,
        _ => LibraryWriter::open(environment, &places, root, host).await,
    };
    let mut keeping = match opened {
        Ok(keeping) => keeping,
        Err(error) => return exit_with_error(&error, format.into(), terminal),
    };
    let changed = Box::pin(change(arguments.verb, &mut keeping, host, format, terminal)).await;
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
    host: &Host,
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
            let mut person =
                approver::TerminalApprover { name: user.clone(), question: approver::Question::Except };
            let excepting =
                ExceptionRequest { traits: &arguments.except_trait, reason: &reason, person: &mut person };
            let excepting = Some(excepting).filter(|request| !request.traits.is_empty());
            submit(keeping, &proposals, &proposer_for(arguments.operator), excepting, host, format, terminal)
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
            submit(keeping, &reflected.proposals, &proposer, None, host, format, terminal).await?
        }
        Verb::Emit(arguments) => {
            let proposals = emit::proposals_of_run(keeping, &arguments.run).await?;
            submit(keeping, &proposals, &proposer_for(None), None, host, format, terminal).await?
        }
        Verb::Promote(arguments) => {
            let gate = match arguments.gate {
                GateArgument::AB => Gate::AB,
                GateArgument::Scorer => Gate::Scorer,
                GateArgument::Human => Gate::Human,
                GateArgument::Governance => Gate::Governance,
            };
            let mut person =
                approver::TerminalApprover { name: user.clone(), question: approver::Question::Weave };
            let promoted = promote(keeping, &arguments.slug, gate, &mut person, &user, host);
            let outcome = Box::pin(promoted).await?;
            let exit = if outcome.promoted.is_some() { Exit::DONE } else { REFUSED };
            if format != HumanOrJson::Json {
                terminal.status(&render::diagnostics(&outcome.report, format.into(), terminal.stderr));
            }
            (render::playbook::promoted(&outcome, format), exit)
        }
        Verb::Shadow(arguments) => {
            let version = archive::shadow(keeping, &arguments.slug, &user, host).await?;
            (render::playbook::status_changed(&arguments.slug, version, "in shadow", format), Exit::DONE)
        }
        Verb::Archive(arguments) => {
            let version = archive::archive(keeping, &arguments.slug, &arguments.reason, &user, host).await?;
            (render::playbook::status_changed(&arguments.slug, version, "archived", format), Exit::DONE)
        }
        Verb::Rollback(arguments) => {
            let rolled = rollback::rollback(keeping, &arguments.slug, arguments.to, &user, host).await?;
            (render::playbook::rolled_back(&arguments.slug, arguments.to, &rolled, format), Exit::DONE)
        }
        Verb::Sweep(_) => {
            let swept = archive::sweep(keeping, &user, host).await?;
            (render::playbook::swept(&swept, format), Exit::DONE)
        }
        Verb::Repair(_) => {
            let repaired = repair::repair(keeping, &user, host).await?;
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
    host: &Host,
    format: HumanOrJson,
    terminal: &Terminal,
) -> Result<(String, Exit), ServiceError> {
    let judge = Judge::of(keeping)?;
    let outcomes: Vec<Outcome> =
        propose(keeping, proposals, proposer, judge.as_ref(), excepting, host).await?;
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
