//! `quorate report`: a run as one file to send, and the same document for `quorate show --format html`. `quorate attest`:
//! Sigstore bundles of a decision.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use quorate::reports::{LaterVerdict, ReportFormat, ReportRequest, ReportScope};
use quorate::{Error, ErrorKind, Quorate};
use quorate_diagnostics::{Body, codes};

use crate::arguments::PathArguments;
use crate::exit::{Ended, Exit, warn};
use crate::render::layout::one_line;
use crate::terminal::Terminal;

/// How reports are drawn and read; `None` in a build that cannot.
#[cfg(feature = "serve")]
pub(super) const FORMAT: Option<ReportFormat> = Some(quorate_web::report::FORMAT);
#[cfg(not(feature = "serve"))]
pub(super) const FORMAT: Option<ReportFormat> = None;

/// Write a run as one HTML file that proves what it shows
///
/// The file is for readers who have neither Quorate nor the ledger: the decision, the text with its findings, every
/// position, the cost and the proof. A browser verifies it, and so does `quorate ledger check-proof`. New records are sealed
/// first.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate report latest -o report.html\n  quorate report r7k2 --outcome-only -o report.html\n  quorate ledger check-proof report.html --key ledger.pub"
)]
pub(super) struct ReportArguments {
    /// The run's id, a prefix of it, `latest`, or a file for the newest run about it
    #[arg(value_name = "RUN|FILE")]
    run: String,
    /// The file, or - for standard output, which is the default unless it is a terminal. It must be a regular file, and not
    /// the ledger, its keys, its log or the configuration
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Leave out the text, and the data of all records but outcomes and people's decisions
    #[arg(long)]
    outcome_only: bool,
    #[command(flatten)]
    places: PathArguments,
}

pub(super) async fn run_report(arguments: ReportArguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    let out = arguments.out.filter(|out| out.as_os_str() != "-");
    if FORMAT.is_some() && out.is_none() && std::io::stdout().is_terminal() {
        let body = Body::new("a report is a file for a browser, and standard output is a terminal")
            .help("name a file with `-o report.html`");
        return Err(Error::new(ErrorKind::InvalidRequest, codes::USAGE, body));
    }
    let scope = if arguments.outcome_only { ReportScope::OutcomeOnly } else { ReportScope::Everything };
    let request = ReportRequest { run: arguments.run, scope, out };
    write(request, &arguments.places.apply(quorate), terminal).await
}

/// Prints the report of a run.
pub(super) async fn show(run: String, quorate: &Quorate, terminal: &Terminal) -> Ended {
    write(ReportRequest { run, ..ReportRequest::default() }, quorate, terminal).await
}

async fn write(request: ReportRequest, quorate: &Quorate, terminal: &Terminal) -> Ended {
    let Some(format) = FORMAT else {
        #[cfg(not(feature = "serve"))]
        return Err(crate::exit::feature_missing("serve"));
        #[cfg(feature = "serve")]
        unreachable!("this build draws reports");
    };
    let page = quorate.report(&request, &format).await?;
    warn(&page.warnings, terminal);
    match &request.out {
        Some(path) => terminal.hint(&format!("{}: {} bytes", path.display(), page.len())),
        None => terminal.exact(&page)?,
    }
    Ok(Exit::DONE)
}

/// Attest the decision of a run on a text, for a gate that deploys or publishes it
///
/// Writes Sigstore bundles, signed with the key that signs records. RUN.decision.sigstore.json states the decision.
/// RUN.svr.sigstore.json is a simple verification result; it requires a SHIP or a passed vote on exactly these bytes, an
/// answer from every member, no override by a person, and no later verdict of the same council on the text. The command
/// verifies the run's records first.
///
/// Exits with 0 if it wrote both, and with 1 if it wrote only the decision.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate attest latest\n  quorate attest r7k2 --out dist\n  quorate attest r7k2 --predicate-only result > predicate.json\n  quorate keys export --format pem > quorate.pub"
)]
pub(super) struct AttestArguments {
    /// The run's id, a prefix of it, `latest`, or a file for the newest run about it
    #[arg(value_name = "RUN|FILE")]
    run: String,
    /// The directory to write into
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Print a predicate without signing it, for a tool that signs
    #[arg(long, value_enum, value_name = "WHICH", conflicts_with = "out")]
    predicate_only: Option<Predicate>,
    #[command(flatten)]
    places: PathArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Predicate {
    /// The predicate type urn:quorate:attestation:decision:v1
    Decision,
    /// The predicate type <https://in-toto.io/attestation/svr/v0.2>; exits with 1 if the run does not qualify
    Result,
}

pub(super) async fn run_attest(arguments: AttestArguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    let directory = arguments.predicate_only.is_none().then_some(&*arguments.out);
    let attestation = arguments.places.apply(quorate).attest(&arguments.run, directory).await?;
    for later in &attestation.later {
        let LaterVerdict { run, verdict, executor, at } = later;
        let line = format!("later verdict on this text: {verdict} by {executor} (run {run}, {at})");
        terminal.status(&one_line(&line));
    }
    for file in &attestation.files {
        terminal.data(&format!("{file}\n"));
    }
    let result = match arguments.predicate_only {
        Some(Predicate::Decision) => Ok(Some(&attestation.decision)),
        Some(Predicate::Result) => attestation.result.as_ref().map(Some),
        None => attestation.result.as_ref().map(|_| None),
    };
    let exit = match result {
        Ok(predicate) => {
            predicate.into_iter().for_each(|predicate| terminal.verbatim(&format!("{predicate:#}\n")));
            Exit::DONE
        }
        Err(why) => {
            terminal.status(&format!("no simple verification result: {why}"));
            Exit::CHECK_FAILED
        }
    };
    warn(&attestation.warnings, terminal);
    Ok(exit)
}
