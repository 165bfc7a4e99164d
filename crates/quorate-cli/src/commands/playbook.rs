//! `quorate playbook`: `playbook/look.rs` has the verbs that change nothing, `playbook/person.rs` asks a person.

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

/// What a command that was refused exits with: nothing has become active, or been taken.
const REFUSED: Exit = Exit::verdict(2);

/// Let agents get better: propose playbooks, try them in shadow, and promote what proves itself
///
/// A playbook is a fragment of a prompt in playbooks/. It begins in shadow, is woven once it has passed a gate, and every
/// version of it is kept.
///
/// Exits with 0 when it was done, with 2 when a proposal or a promotion was refused, with 4 when what was named is not
/// there, and with 5 when something cannot be used.
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
    /// List all of them
    List(AllArguments),
    /// Show one: what it says, whom it is for, where it stands
    Show(SlugArguments),
    /// Show what was done to one, version by version
    History(SlugArguments),
    /// Show what the ledger has about all of them, or about one
    Log(LogArguments),
    /// Have somebody read recent runs and propose what an operator should learn from them
    Reflect(Reflect),
    /// Propose a playbook: a file with frontmatter, or deltas as JSON
    Propose(Propose),
    /// Propose what an advisory run has advised
    Emit(Emit),
    /// Make one active, if it passes a gate
    Promote(Promote),
    /// Take one that is active back into shadow
    Shadow(SlugArguments),
    /// Take one out of use
    Archive(Archive),
    /// Make one what it was at an earlier version
    Rollback(Rollback),
    /// Archive those whose time is over
    Sweep(AllArguments),
    /// Finish what was begun, take changes by hand into the histories, and make the index true
    Repair(AllArguments),
}

#[derive(Debug, Args)]
struct AllArguments {
    #[command(flatten)]
    common: CommonArguments,
}

#[derive(Debug, Clone, Args)]
struct CommonArguments {
    /// How it is printed
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
    /// Only what is about this one
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
    /// Only these runs, by id; without it the newest that are about what the operator has made
    #[arg(long, value_name = "RUN", value_delimiter = ',')]
    from: Vec<String>,
    /// Who reflects; without it `reflector` of quorate.toml, else the rubric
    #[arg(long, value_name = "NAME")]
    executor: Option<String>,
    /// Print what is proposed as JSON, and propose nothing
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
    /// Whom a delta is for that does not say it
    #[arg(long, value_name = "OPERATOR")]
    operator: Option<String>,
    /// Let it touch this locked trait, if a person at this terminal agrees; may be given several times
    #[arg(long, value_name = "TRAIT", requires = "reason")]
    except_trait: Vec<String>,
    /// Why that does the trait no harm
    #[arg(long, value_name = "TEXT", requires = "except_trait")]
    reason: Option<String>,
    #[command(flatten)]
    common: CommonArguments,
}

#[derive(Debug, Args)]
struct Emit {
    /// The run's id, the beginning of it, or `latest`
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
    /// What it has to pass
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
    /// The scorer of quorate.toml says so
    Scorer,
    /// A person at this terminal says so
    Human,
    /// The assembly that quorate.toml names votes for it
    Governance,
}

#[derive(Debug, Args)]
struct Archive {
    /// The playbook's slug
    #[arg(value_name = "SLUG")]
    slug: String,
    /// Why
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
    let changed = change(arguments.verb, &mut keeping, host, format, terminal).await;
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

/// Does what a verb says; what is printed, and how the process exits.
async fn change(
    verb: Verb,
    keeping: &mut LibraryWriter,
    host: &Host,
    format: HumanOrJson,
    terminal: &Terminal,
) -> Result<(String, Exit), ServiceError> {
    let by = keeping.session.environment.user.clone();
    let by_hand = |operator: Option<String>| Proposer { by: by.clone(), operator };
    Ok(match verb {
        Verb::Propose(one) => {
            let subject = match one.file.to_str() {
                Some("-") => Subject::Stdin,
                _ => Subject::File(one.file.clone()),
            };
            let read = artifact::read(&subject, &keeping.session.environment.directory)?;
            let shown = if read.display_name == "-" { "standard input" } else { &*read.display_name };
            let proposals = propose::parse(&read.text, shown)?;
            let reason = one.reason.unwrap_or_default();
            let reason = keeping.session.workspace.redaction.redactor.redact(&reason).0;
            let mut person =
                approver::TerminalApprover { name: by.clone(), question: approver::Question::Except };
            let excepting =
                ExceptionRequest { traits: &one.except_trait, reason: &reason, person: &mut person };
            let excepting = Some(excepting).filter(|one| !one.traits.is_empty());
            submit(keeping, &proposals, &by_hand(one.operator), excepting, host, format, terminal).await?
        }
        Verb::Reflect(one) => {
            let reflected =
                reflect::reflect(keeping, &one.operator, &one.from, one.executor.as_deref()).await?;
            terminal.status(&render::playbook::reflected(&reflected));
            if one.dry_run {
                for unusable in reflected.proposals.iter().filter_map(render::playbook::unusable) {
                    terminal.status(&unusable);
                }
                return Ok((render::playbook::proposals(&reflected.proposals), Exit::DONE));
            }
            let proposer = Proposer { by: reflected.by.clone(), operator: Some(one.operator) };
            submit(keeping, &reflected.proposals, &proposer, None, host, format, terminal).await?
        }
        Verb::Emit(one) => {
            let proposals = emit::proposals_of_run(keeping, &one.run).await?;
            submit(keeping, &proposals, &by_hand(None), None, host, format, terminal).await?
        }
        Verb::Promote(one) => {
            let gate = match one.gate {
                GateArgument::AB => Gate::AB,
                GateArgument::Scorer => Gate::Scorer,
                GateArgument::Human => Gate::Human,
                GateArgument::Governance => Gate::Governance,
            };
            let mut person =
                approver::TerminalApprover { name: by.clone(), question: approver::Question::Weave };
            let outcome = promote(keeping, &one.slug, gate, &mut person, &by, host).await?;
            let exit = if outcome.promoted.is_some() { Exit::DONE } else { REFUSED };
            if format != HumanOrJson::Json {
                terminal.status(&render::diagnostics(&outcome.report, format.into(), terminal.stderr));
            }
            (render::playbook::promoted(&outcome, format), exit)
        }
        Verb::Shadow(one) => {
            let version = archive::shadow(keeping, &one.slug, &by, host).await?;
            (render::playbook::status_changed(&one.slug, version, "in shadow", format), Exit::DONE)
        }
        Verb::Archive(one) => {
            let version = archive::archive(keeping, &one.slug, &one.reason, &by, host).await?;
            (render::playbook::status_changed(&one.slug, version, "archived", format), Exit::DONE)
        }
        Verb::Rollback(one) => {
            let rolled = rollback::rollback(keeping, &one.slug, one.to, &by, host).await?;
            (render::playbook::rolled_back(&one.slug, one.to, &rolled, format), Exit::DONE)
        }
        Verb::Sweep(_) => {
            let swept = archive::sweep(keeping, &by, host).await?;
            (render::playbook::swept(&swept, format), Exit::DONE)
        }
        Verb::Repair(_) => {
            let done = repair::repair(keeping, &by, host).await?;
            (render::playbook::repaired(&done, format), Exit::DONE)
        }
        Verb::List(_) | Verb::Show(_) | Verb::History(_) | Verb::Log(_) => (String::new(), Exit::DONE),
    })
}

/// Takes proposals.
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
    let refused = outcomes.iter().any(|one| one.accepted.is_none());
    let text = render::playbook::proposed(&outcomes, &keeping.session.environment, format);
    Ok((text, if refused { REFUSED } else { Exit::DONE }))
}

impl Verb {
    fn common(&self) -> &CommonArguments {
        match self {
            Verb::List(one) | Verb::Sweep(one) | Verb::Repair(one) => &one.common,
            Verb::Show(one) | Verb::History(one) | Verb::Shadow(one) => &one.common,
            Verb::Log(one) => &one.common,
            Verb::Reflect(one) => &one.common,
            Verb::Propose(one) => &one.common,
            Verb::Emit(one) => &one.common,
            Verb::Promote(one) => &one.common,
            Verb::Archive(one) => &one.common,
            Verb::Rollback(one) => &one.common,
        }
    }
}
