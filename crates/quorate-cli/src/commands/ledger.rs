//! `quorate ledger`: its subcommands with their help.

use std::io::BufWriter;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use quorate::ledger::{
    AcceptKeyRequest, AcceptedKeys, AcceptedRollback, CheckRequest, CheckedProof, Erasure, ExportCheck,
    ExportFormat, ExportRequest, ExportSummary, HoldChange, Holds, Import, ImportRequest, LedgerStats,
    Verification, VerifyRequest,
};
use quorate::view::Doc;
use quorate::{Error, Outcome, Quorate};
use serde::Serialize;

use crate::arguments::{HumanOrJson, OutputArguments, PathArguments, one_of};
use crate::commands::report;
use crate::exit::{Ended, Exit, exit_with_error, print_outcome, show, warn};
use crate::render::{Format, json_text};
use crate::terminal;
use crate::terminal::Terminal;

/// Seal, verify, prove and export the ledger, and erase answers past their retention
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate ledger verify --witness checkpoints.txt\n  quorate ledger prove RUN > proof.json\n  quorate ledger export > ledger.jsonl\n  quorate ledger gc --dry-run"
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Sign the current number of records and the root of their tree
    ///
    /// Each run is sealed this way when it ends. The command verifies the whole ledger first, and does not sign it if a record
    /// was changed. Without new records it shows the last checkpoint.
    #[command(
        after_help = "Examples:\n  quorate ledger checkpoint\n  quorate ledger checkpoint > checkpoint.txt"
    )]
    Checkpoint {
        /// Sign the ledger's own records that an older version wrote unsigned; look at them first
        #[arg(long)]
        accept_unsigned: bool,
        #[command(flatten)]
        shape: OutputArguments,
    },
    /// Show the ledger's size, growth, last checkpoint and unsealed records
    #[command(after_help = "Examples:\n  quorate ledger stats\n  quorate ledger stats --format json")]
    Stats {
        #[command(flatten)]
        shape: OutputArguments,
    },
    /// Check the ledger against its hashes, signatures, checkpoints, witness and log
    ///
    /// Writes nothing. Exits with 0 if the ledger is intact, with 1 if it was changed, with 4 if the ledger or the checkpoint
    /// does not exist, and with 5 if the ledger cannot be read.
    #[command(
        after_help = "Examples:\n  quorate ledger verify\n  quorate ledger verify --witness ledger-witness.txt --key ledger.pub\n  quorate ledger verify --since checkpoint.txt --format json"
    )]
    Verify {
        /// Trust this checkpoint, and check only later records: its number of records, `ledger/<n>`, or a file with its
        /// signed note
        #[arg(long, value_name = "CHECKPOINT")]
        since: Option<String>,
        /// A file of checkpoints kept in another place; by default the one in quorate.toml
        #[arg(long, value_name = "FILE")]
        witness: Option<String>,
        /// A key that must have signed a checkpoint, as received from the ledger's owner: a verifier's line, a public key, or a
        /// file of these
        #[arg(long = "key", value_name = "KEY|FILE")]
        keys: Vec<String>,
        /// Exit with 1 if this machine keeps no checkpoint of the ledger, since it cannot detect a rollback, or if records are
        /// neither signed nor under a signed checkpoint (after a crash, until `quorate ledger checkpoint`)
        #[arg(long)]
        strict: bool,
        #[command(flatten)]
        shape: OutputArguments,
    },
    /// Erase members' answers past their retention, permanently; hashes and outcomes stay
    ///
    /// `audit.consultations.retention` of an assembly sets how long they are kept, and `retention` under `[ledger]` in
    /// quorate.toml for reviews and runtimes. Runs on hold, and those that have not ended, are left alone.
    /// council_log.jsonl keeps its lines.
    #[command(
        after_help = "Examples:\n  quorate ledger gc --dry-run\n  quorate ledger gc\n  quorate ledger gc --format json"
    )]
    Gc {
        /// Show what would be erased, and change nothing
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        shape: OutputArguments,
    },
    /// Put a run on legal hold, which protects it from erasure
    #[command(
        after_help = "Examples:\n  quorate ledger hold r7k2 --reason \"claim 2026-14\"\n  quorate ledger hold --list"
    )]
    Hold {
        /// The run's id, the beginning of it, or `latest`; a conversation's stream by its whole name
        #[arg(value_name = "RUN", required_unless_present = "list")]
        run: Option<String>,
        /// The reason
        #[arg(long, value_name = "TEXT", requires = "run")]
        reason: Option<String>,
        /// List the runs on hold
        #[arg(long, conflicts_with_all = ["run", "reason"])]
        list: bool,
        #[command(flatten)]
        shape: OutputArguments,
    },
    /// Release a run from legal hold: past its retention it may be erased
    #[command(after_help = "Example:\n  quorate ledger release r7k2")]
    Release {
        /// The run's id, the beginning of it, or `latest`; a conversation's stream by its whole name
        #[arg(value_name = "RUN")]
        run: String,
        #[command(flatten)]
        shape: OutputArguments,
    },
    /// Check a proof or a report offline: no ledger, no workspace
    ///
    /// Draws a report again from its proof and texts; both must be identical, byte for byte. Exits with 0 if everything
    /// verifies with a key that you give, with 1 if something fails or the key is not trusted, and with 5 if the file is not a
    /// proof.
    #[command(
        after_help = "Examples:\n  quorate ledger check-proof proof.json --key ledger.pub\n  quorate ledger check-proof report.html --key ledger.pub\n  quorate ledger check-proof proof.json --key ledger.pub --signer quorate:ed25519:public:…"
    )]
    CheckProof {
        /// The proof or the report, or - for standard input
        #[arg(value_name = "FILE")]
        file: String,
        /// The ledger's key, as received from its owner: a verifier's line, a public key, or a file of these
        #[arg(long = "key", value_name = "KEY|FILE")]
        keys: Vec<String>,
        /// A key that may sign records; one of these keys must have signed each record: a public key, or a file of these
        #[arg(long = "signer", value_name = "KEY|FILE")]
        signers: Vec<String>,
        /// Output format
        #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
        format: HumanOrJson,
    },
    /// Check an export offline: no ledger, no workspace
    ///
    /// Exits with 0 if everything verifies with a key that you give, with 1 if something fails or the key is not trusted, and
    /// with 5 if the file is not an export.
    #[command(
        after_help = "Examples:\n  quorate ledger check-export ledger.jsonl --key ledger.pub\n  quorate ledger check-export ledger.jsonl --key ledger.pub --signer quorate:ed25519:public:…"
    )]
    CheckExport {
        /// The export as JSON Lines, or - for standard input
        #[arg(value_name = "FILE")]
        file: String,
        /// The ledger's key, as received from its owner: a verifier's line, a public key, or a file of these
        #[arg(long = "key", value_name = "KEY|FILE")]
        keys: Vec<String>,
        /// A key that may sign records; one of these keys must have signed each signed record: a public key, or a file of these
        #[arg(long = "signer", value_name = "KEY|FILE")]
        signers: Vec<String>,
        /// Output format
        #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
        format: HumanOrJson,
    },
    /// Continue with a ledger that was restored from a backup, or that replaces another ledger
    ///
    /// Quorate does not sign a ledger that lacks records of the last checkpoint that its key signed on this machine. This
    /// command records in the ledger who accepts the loss and why, moves the kept checkpoint to `aside/`, and signs a new one.
    /// A witness that has seen the lost records still contradicts the ledger afterwards.
    #[command(
        after_help = "Example:\n  quorate ledger accept-rollback --reason \"restored Monday's backup after the disk failed\""
    )]
    AcceptRollback {
        /// The reason, which the ledger records and `quorate ledger verify` shows
        #[arg(long, value_name = "TEXT")]
        reason: String,
        #[command(flatten)]
        shape: OutputArguments,
    },
    /// Continue with a ledger whose key is lost, with a new key that no earlier key vouches for
    ///
    /// The new key is the one beside the ledger, or in QUORATE_LEDGER_KEY. Keys already in the ledger that no earlier key
    /// vouches for are accepted if this machine has them, or if you give them with `--key`. The command verifies the ledger
    /// first. A checkpoint records who accepts the keys and why, and this machine remembers them; every other machine that uses
    /// the ledger must accept them itself.
    #[command(
        after_help = "Example:\n  quorate keys init\n  quorate ledger accept-key --reason \"the disk with the old key failed\""
    )]
    AcceptKey {
        /// The reason, which the ledger records and `quorate ledger verify` shows
        #[arg(long, value_name = "TEXT")]
        reason: String,
        /// Another key of the ledger to accept, as received from its owner: a verifier's line, a public key, or a file of these
        #[arg(long = "key", value_name = "KEY|FILE")]
        keys: Vec<String>,
        #[command(flatten)]
        shape: OutputArguments,
    },
    /// Export the ledger's sealed records for other programs
    ///
    /// Seals new records first. The same ledger gives the same bytes. The JSON Lines format contains all proofs, which
    /// `quorate ledger import` and `scripts/verify_ledger.py` check.
    #[command(
        after_help = "Examples:\n  quorate ledger export > ledger.jsonl\n  quorate ledger export --run r7k2 --out run.jsonl\n  quorate ledger export --since 30d --format csv > records.csv"
    )]
    Export {
        /// Only this run: its id, a prefix of it, or `latest`; repeatable
        #[arg(long = "run", value_name = "RUN")]
        runs: Vec<String>,
        /// Only records after a checkpoint (its size, `ledger/<n>`, a note's file) or since a time (7d, 2026-05-18)
        #[arg(long, value_name = "CHECKPOINT|TIME")]
        since: Option<String>,
        /// Output format
        #[arg(long, value_parser = one_of(EXPORT_FORMATS), default_value = "jsonl")]
        format: ExportFormat,
        /// The output file, replaced once the export is complete; by default standard output. It must be a regular file, and not
        /// the ledger, its keys, its log or the configuration
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        #[command(flatten)]
        places: PathArguments,
    },
    /// Verify the export of another ledger and import its runs
    ///
    /// Merges records byte for byte, and only if the whole file verifies. Existing runs stay; the file is refused if a run
    /// contradicts this ledger, or adds to a run that this ledger recorded itself. Overlays, playbooks and conversations are
    /// not merged.
    #[command(
        after_help = "Examples:\n  quorate ledger import theirs.jsonl --key their-ledger.pub --dry-run\n  quorate ledger import theirs.jsonl --key their-ledger.pub"
    )]
    Import {
        /// What `quorate ledger export` wrote
        #[arg(value_name = "FILE")]
        file: String,
        /// The other ledger's key, as received from its owner: a verifier's line, a public key, or a file of these. This
        /// ledger's own keys need not be given
        #[arg(long = "key", value_name = "KEY|FILE")]
        keys: Vec<String>,
        /// A key that may sign records; one of these keys must have signed each signed record: a public key, or a file of these
        #[arg(long = "signer", value_name = "KEY|FILE")]
        signers: Vec<String>,
        /// Show what would be merged, and write nothing
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        shape: OutputArguments,
    },
    /// Prove to a third party that a record, or a run, is in the ledger
    ///
    /// Writes a file that `quorate ledger check-proof` checks offline: the records with their bodies, the last checkpoint, and
    /// the hashes that connect them.
    #[command(
        after_help = "Examples:\n  quorate ledger prove r7k2 > proof.json\n  quorate ledger prove r7k2m9q4xa1bc/5 > proof.json"
    )]
    Prove {
        /// A record (`<run>/<n>`), or a run: its id, the beginning of it, or `latest`
        #[arg(value_name = "RECORD|RUN")]
        what: String,
        #[command(flatten)]
        places: PathArguments,
    },
}

pub(super) async fn run(arguments: Arguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    match arguments.verb {
        Verb::Checkpoint { accept_unsigned, shape } => {
            let sealed = shape.apply(quorate).seal(accept_unsigned).await?;
            if sealed.signed.is_some() {
                terminal.status(&sealed.doc().text(terminal.stderr));
            }
            let text = match terminal.format {
                Format::Json => json_text(&sealed.value),
                _ => sealed.note(),
            };
            print_outcome(&sealed, &text, terminal)
        }
        Verb::Stats { shape } => show(shape.apply(quorate).ledger_stats().await, LedgerStats::doc, terminal),
        Verb::Gc { dry_run, shape } => {
            let erased = shape.apply(quorate).erase_expired(dry_run).await?;
            show_then(erased.unfinished(), erased, Erasure::doc, terminal)
        }
        Verb::Hold { run: Some(run), reason, shape, .. } => {
            let held = shape.apply(quorate).hold_run(&run, reason.as_deref()).await;
            show(held, HoldChange::doc, terminal)
        }
        Verb::Hold { run: None, shape, .. } => {
            show(shape.apply(quorate).held_runs().await, Holds::doc, terminal)
        }
        Verb::Release { run, shape } => {
            show(shape.apply(quorate).release_run(&run).await, HoldChange::doc, terminal)
        }
        Verb::AcceptRollback { reason, shape } => {
            show(shape.apply(quorate).accept_rollback(&reason).await, AcceptedRollback::doc, terminal)
        }
        Verb::AcceptKey { reason, keys, shape } => {
            let accepted = shape.apply(quorate).accept_keys(AcceptKeyRequest { reason, keys }).await;
            show(accepted, AcceptedKeys::doc, terminal)
        }
        Verb::Verify { since, witness, keys, strict, shape } => {
            let request = VerifyRequest { since, witness, keys, strict };
            let verified = shape.apply(quorate).verify(request).await?;
            show_then(verified.divergence(), verified, Verification::doc, terminal)
        }
        Verb::CheckProof { file, keys, signers, .. } => {
            let request = CheckRequest { file, keys, signers };
            let checked = quorate.check_proof(&request, report::FORMAT.as_ref())?;
            show_then(checked.distrust(), checked.into(), CheckedProof::doc, terminal)
        }
        Verb::CheckExport { file, keys, signers, .. } => {
            let checked = quorate.check_export(&CheckRequest { file, keys, signers })?;
            show_then(checked.distrust(), checked.into(), ExportCheck::doc, terminal)
        }
        Verb::Export { runs, since, format, out, places } => {
            let request = ExportRequest { runs, since, format };
            run_export(&request, out.as_deref(), &places.apply(quorate), terminal).await
        }
        Verb::Import { file, keys, signers, dry_run, shape } => {
            let request = ImportRequest { file, keys, signers, dry_run };
            show(shape.apply(quorate).import(request).await, Import::doc, terminal)
        }
        Verb::Prove { what, places } => {
            let proof = places.apply(quorate).prove(&what).await?;
            let text = proof.text().expect("a proof is JSON");
            warn(&proof.warnings, terminal);
            terminal.exact(&text)?;
            Ok(Exit::DONE)
        }
    }
}

/// Shows an outcome. The command fails with `error`, if there is one; JSON contains it, so it is printed for people.
fn show_then<T: Serialize>(
    error: Option<Error>,
    outcome: Outcome<T>,
    doc: fn(&T) -> Doc,
    terminal: &Terminal,
) -> Ended {
    let exit = show(Ok(outcome), doc, terminal)?;
    Ok(error.map_or(exit, |error| exit_with_error(&error, Format::Human, terminal)))
}

/// The formats of `--format`, with their help.
const EXPORT_FORMATS: [(&str, ExportFormat, &str); 3] = [
    ("jsonl", ExportFormat::Jsonl, "JSON Lines with proofs"),
    ("otel", ExportFormat::Otel, "OpenTelemetry traces: one OTLP/JSON document, without texts"),
    ("csv", ExportFormat::Csv, "One line for each record, without texts"),
];

async fn run_export(
    request: &ExportRequest,
    out: Option<&Path>,
    quorate: &Quorate,
    terminal: &Terminal,
) -> Ended {
    let exported = match out {
        Some(path) => quorate.export_to(request, path).await?,
        None if terminal::is_read_by_runner() => {
            let mut text = Vec::new();
            let exported = quorate.export(request, &mut text).await?;
            terminal.exact(&String::from_utf8_lossy(&text))?;
            exported
        }
        None => quorate.export(request, &mut BufWriter::new(std::io::stdout())).await?,
    };
    warn(&exported.warnings, terminal);
    if let (Some(ExportSummary { records, bodies, signatures, .. }), Some(out)) = (&exported.value, out) {
        let file = out.display();
        terminal.hint(&format!("{file}: {records} records, {bodies} texts, {signatures} signatures"));
    }
    Ok(Exit::DONE)
}
