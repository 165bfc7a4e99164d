//! `quorate playbook`: its subcommands, and the questions that it asks a person at the terminal.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use quorate::playbook::{
    Approval, Approver, ArchivedPlaybooks, ExceptionRequest, Gate, GateClosed, PlaybookDetails,
    PlaybookHistory, PlaybookList, PlaybookLog, Promotion, ProposeRequest, Proposed, ReflectRequest,
    Reflection, Repairs, Rollback, StatusChange,
};
use quorate::view::Doc;
use quorate::{Outcome, Quorate};
use quorate_diagnostics::Report;
use serde::Serialize;

use crate::arguments::{HumanOrJson, PathArguments};
use crate::exit::{Ended, Exit, print_outcome, show, warn};
use crate::render::{Format, json_text};
use crate::terminal::{Terminal, status_text};

/// The exit code of a refusal: no playbook was accepted or became active.
const REFUSED: Exit = Exit(2);

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
    List(CommonArguments),
    /// Show a playbook: its text, its operator, its status
    Show(SlugArguments),
    /// Show the history of a playbook, version by version
    History(SlugArguments),
    /// Show the ledger's records of all playbooks, or of one
    Log {
        /// Only records of this playbook
        #[arg(value_name = "SLUG")]
        slug: Option<String>,
        #[command(flatten)]
        common: CommonArguments,
    },
    /// Read recent runs and propose what an operator should learn from them
    Reflect {
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
    },
    /// Propose a playbook: a file with frontmatter, or deltas as JSON
    Propose {
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
    },
    /// Propose the advice of an advisory run
    Emit {
        /// The run's id, a prefix of it, or `latest`
        #[arg(value_name = "RUN")]
        run: String,
        #[command(flatten)]
        common: CommonArguments,
    },
    /// Activate a playbook, if it passes a gate
    Promote {
        /// The playbook's slug
        #[arg(value_name = "SLUG")]
        slug: String,
        /// The gate that it must pass
        #[arg(long, value_name = "GATE", value_parser = gate_parser())]
        gate: Gate,
        #[command(flatten)]
        common: CommonArguments,
    },
    /// Put an active playbook back into shadow
    Shadow(SlugArguments),
    /// Archive a playbook
    Archive {
        /// The playbook's slug
        #[arg(value_name = "SLUG")]
        slug: String,
        /// The reason
        #[arg(long, value_name = "TEXT", default_value = "archived by hand")]
        reason: String,
        #[command(flatten)]
        common: CommonArguments,
    },
    /// Restore an earlier version of a playbook
    Rollback {
        /// The playbook's slug
        #[arg(value_name = "SLUG")]
        slug: String,
        /// The version; `quorate playbook history SLUG` shows them
        #[arg(long, value_name = "N")]
        to: u32,
        #[command(flatten)]
        common: CommonArguments,
    },
    /// Archive expired playbooks
    Sweep(CommonArguments),
    /// Finish interrupted changes, record manual edits in the histories, and rebuild the index
    Repair(CommonArguments),
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

fn gate_parser() -> impl TypedValueParser<Value = Gate> {
    let help = |gate| match gate {
        Gate::AB => "Outcomes in the ledger are better with it than without",
        Gate::Scorer => "The scorer of quorate.toml approves",
        Gate::Human => "A person at this terminal approves",
        Gate::Governance => "The assembly that quorate.toml names votes for it",
    };
    let gates = Gate::ALL.map(|gate| PossibleValue::new(gate.as_str()).help(help(gate)));
    PossibleValuesParser::new(gates).try_map(|word| Gate::parse(&word).ok_or("no such gate"))
}

impl Verb {
    fn common(&self) -> &CommonArguments {
        match self {
            Verb::List(common) | Verb::Sweep(common) | Verb::Repair(common) => common,
            Verb::Show(SlugArguments { common, .. })
            | Verb::History(SlugArguments { common, .. })
            | Verb::Shadow(SlugArguments { common, .. })
            | Verb::Log { common, .. }
            | Verb::Reflect { common, .. }
            | Verb::Propose { common, .. }
            | Verb::Emit { common, .. }
            | Verb::Promote { common, .. }
            | Verb::Archive { common, .. }
            | Verb::Rollback { common, .. } => common,
        }
    }
}

pub(super) async fn run(arguments: Arguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    let CommonArguments { root, places, .. } = arguments.verb.common().clone();
    let quorate = places.apply(quorate);
    let here = quorate.playbooks();
    let playbooks = root.map_or_else(|| Ok(here.clone()), |root| here.in_folder(root))?;
    let person = |question| Box::new(TerminalApprover { name: quorate.user().to_owned(), question });
    match arguments.verb {
        Verb::List(_) => inspect(playbooks.list()?, PlaybookList::doc, terminal),
        Verb::Show(SlugArguments { slug, .. }) => {
            inspect(playbooks.show(&slug)?, PlaybookDetails::doc, terminal)
        }
        Verb::History(SlugArguments { slug, .. }) => {
            inspect(playbooks.history(&slug)?, PlaybookHistory::doc, terminal)
        }
        Verb::Log { slug, .. } => inspect(playbooks.log(slug.as_deref()).await?, PlaybookLog::doc, terminal),
        Verb::Reflect { operator, from, executor, dry_run: is_dry_run, .. } => {
            let request = ReflectRequest { operator, from, executor, is_dry_run };
            print_reflection(playbooks.reflect(request).await?, terminal)
        }
        Verb::Propose { file, operator, except_trait: traits, reason, .. } => {
            let (reason, person) = (reason.unwrap_or_default(), person(Question::Except));
            let exception = ExceptionRequest { traits, reason, person };
            let exception = Some(exception).filter(|request| !request.traits.is_empty());
            let request = ProposeRequest { source: file.into(), operator, exception };
            print_proposed(playbooks.propose(request).await?, terminal)
        }
        Verb::Emit { run, .. } => print_proposed(playbooks.propose_advice(&run).await?, terminal),
        Verb::Promote { slug, gate, .. } => {
            let promoted = playbooks.promote(&slug, gate, person(Question::Weave)).await?;
            let (is_promoted, report) = (promoted.promoted, promoted.report.clone());
            show_decision(promoted, is_promoted, &[report], Promotion::doc, terminal)
        }
        Verb::Shadow(SlugArguments { slug, .. }) => {
            show(playbooks.shadow(&slug).await, StatusChange::doc, terminal)
        }
        Verb::Archive { slug, reason, .. } => {
            show(playbooks.archive(&slug, &reason).await, StatusChange::doc, terminal)
        }
        Verb::Rollback { slug, to, .. } => show(playbooks.rollback(&slug, to).await, Rollback::doc, terminal),
        Verb::Sweep(_) => show(playbooks.sweep().await, ArchivedPlaybooks::doc, terminal),
        Verb::Repair(_) => show(playbooks.repair().await, Repairs::doc, terminal),
    }
}

/// Prints what was read. Its warnings are about files, and JSON has no place for them.
fn inspect<T: Serialize>(mut outcome: Outcome<T>, doc: impl FnOnce(&T) -> Doc, terminal: &Terminal) -> Ended {
    if terminal.format == Format::Json {
        outcome.warnings = Report::new();
    }
    show(Ok(outcome), doc, terminal)
}

/// Prints a result, and in words why something was refused; a refusal has its own exit code.
fn show_decision<T: Serialize>(
    outcome: Outcome<T>,
    is_accepted: bool,
    reports: &[Report],
    doc: impl FnOnce(&T) -> Doc,
    terminal: &Terminal,
) -> Ended {
    if terminal.format == Format::Human {
        reports.iter().for_each(|report| warn(report, terminal));
    }
    let exit = show(Ok(outcome), doc, terminal)?;
    Ok(if is_accepted { exit } else { REFUSED })
}

fn print_proposed(proposed: Outcome<Proposed>, terminal: &Terminal) -> Ended {
    let reports: Vec<Report> = proposed.proposals.iter().map(|one| one.report.clone()).collect();
    let is_accepted = proposed.is_accepted();
    show_decision(proposed, is_accepted, &reports, Proposed::doc, terminal)
}

fn print_reflection(reflected: Outcome<Reflection>, terminal: &Terminal) -> Ended {
    terminal.status(&reflected.doc().text(terminal.stderr));
    let Outcome { value, warnings } = reflected;
    let deltas = json_text(&value.deltas());
    match value.proposed {
        Some(value) => print_proposed(Outcome { value, warnings }, terminal),
        None => print_outcome(&Outcome { value: (), warnings }, &deltas, terminal),
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

impl Approver for TerminalApprover {
    fn ask(&mut self, text: &str) -> Result<Approval, GateClosed> {
        let (question, no_terminal_help) = match self.question {
            Question::Weave => (
                "Weave it from now on? [y/N] ",
                "run it in a terminal; what cannot be asked for there can be voted on with `--gate governance`",
            ),
            Question::Except => {
                ("Let this text touch it? [y/N] ", "run it in a terminal, with the proposal in a file")
            }
        };
        if !std::io::stdin().is_terminal() {
            let message = "cannot ask for approval: standard input is not a terminal";
            return Err(GateClosed::new(message, no_terminal_help));
        }
        anstream::eprintln!("{}", status_text(text));
        let yes = prompt_line(question)?;
        let yes = matches!(yes.trim().to_ascii_lowercase().as_str(), "y" | "yes");
        let reason = match self.question {
            Question::Weave => prompt_line("Why? (a line, or nothing) ")?,
            Question::Except => String::new(),
        };
        Ok(Approval { yes, why: reason.trim().to_owned(), by: self.name.clone() })
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
