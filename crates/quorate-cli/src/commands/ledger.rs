//! `quorate ledger`: its subcommands with their help.

use std::io::BufWriter;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use quorate::service::environment::Environment;
use quorate::service::error::ServiceError;
use quorate::service::ledger::export::{self, ExportRequest, StagedFile};
use quorate::service::ledger::prove::{self, CheckProofRequest};
use quorate::service::ledger::{self, export as exporting, gc, prove as proving, verify};
use quorate::service::session::LedgerSession;
use quorate::service::{open_session, report_file, runs, workspace};
use quorate_ledger::export::{ExportFormat, ExportSummary};
use quorate_ledger::import::ImportSummary;

use crate::arguments::{HumanOrJson, OutputArguments, PathArguments};
use crate::commands::report;
use crate::exit::{Exit, exit_with_error};
use crate::exit::{print_result, print_warnings, with_session};
use crate::render::{self, Format};
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
        #[arg(long, value_enum, default_value_t = ExportFormatArgument::Jsonl)]
        format: ExportFormatArgument,
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

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    use HumanOrJson::{Human, Json};
    let at = At { environment, terminal };
    match arguments.verb {
        Verb::Checkpoint { accept_unsigned, shape } => {
            let OutputArguments { format, places } = shape;
            let opened = runs::open(environment, &places.path_overrides()).await;
            at.print(opened, format, async |session| {
                if accept_unsigned {
                    let accepted = ledger::accept_unsigned(session).await?;
                    terminal.status(&render::ledger::accepted_unsigned(&accepted));
                }
                let sealed = ledger::checkpoint_verified(session).await?;
                session.absorb(sealed.report);
                Ok(match format {
                    Human => render::ledger::checkpoint(&sealed.sealed),
                    Json => render::ledger::checkpoint_json(&sealed.sealed),
                })
            })
            .await
        }
        Verb::Stats { shape } => {
            at.read(&shape, async |session| {
                let counted = ledger::stats(session).await?;
                Ok(match shape.format {
                    Human => render::ledger::stats(&counted, terminal.stdout),
                    Json => render::ledger::stats_json(&counted),
                })
            })
            .await
        }
        Verb::Gc { dry_run, shape } => {
            let opened = runs::open_read_only(environment, &shape.places.path_overrides()).await;
            with_session(opened, shape.format.into(), terminal, async |session| {
                let collected = gc::gc(session, dry_run).await?;
                let text = match shape.format {
                    Human => render::ledger::collected(&collected, terminal.stdout),
                    Json => render::ledger::collected_json(&collected),
                };
                let exit = print_result(&text, session, terminal);
                let unfinished = gc::unfinished_error(&collected);
                Ok(unfinished.map_or(exit, |error| exit_with_error(&error, Format::Human, terminal)))
            })
            .await
        }
        Verb::Hold { run, reason, list: _, shape } => {
            at.read(&shape, async |session| {
                Ok(match (&run, shape.format) {
                    (Some(run), format) => {
                        render_change(&gc::hold(session, run, reason.as_deref()).await?, format)
                    }
                    (None, Human) => render::ledger::holds(&gc::holds(session).await?, terminal.stdout),
                    (None, Json) => render::ledger::holds_json(&gc::holds(session).await?),
                })
            })
            .await
        }
        Verb::Release { run, shape } => {
            at.read(&shape, async |session| {
                Ok(render_change(&gc::release(session, &run).await?, shape.format))
            })
            .await
        }
        Verb::AcceptRollback { reason, shape } => {
            at.read(&shape, async |session| {
                let accepted = ledger::accept_rollback(session, &reason).await?;
                Ok(match shape.format {
                    Human => render::ledger::accepted(&accepted),
                    Json => render::ledger::accepted_json(&accepted),
                })
            })
            .await
        }
        Verb::AcceptKey { reason, keys, shape } => {
            let request = ledger::AcceptKeyRequest { reason, keys };
            at.read(&shape, async |session| {
                let accepted = ledger::accept_key(session, &request).await?;
                Ok(match shape.format {
                    Human => render::ledger::accepted_keys(&accepted),
                    Json => render::ledger::accepted_keys_json(&accepted),
                })
            })
            .await
        }
        Verb::Verify { since, witness, keys, strict, shape: OutputArguments { format, places } } => {
            let request =
                verify::VerifyRequest { since, witness, keys, strict, places: places.path_overrides() };
            verify_ledger(&request, format, environment, terminal).await
        }
        Verb::CheckProof { file, keys, signers, format } => {
            check_proof_file(&prove::CheckProofRequest { file, keys, signers }, format, environment, terminal)
        }
        Verb::CheckExport { file, keys, signers, format } => check_export_file(
            &prove::CheckProofRequest { file, keys, signers },
            format,
            environment,
            terminal,
        ),
        Verb::Export { runs, since, format, out, places } => {
            let request = export_request(runs, since, format);
            run_export(&request, out.as_deref(), &places, environment, terminal).await
        }
        Verb::Import { file, keys, signers, dry_run, shape } => {
            let request = export::ImportRequest { file, keys, signers, dry_run };
            Box::pin(run_import(&request, &shape, environment, terminal)).await
        }
        Verb::Prove { what, places } => run_prove(&what, &places, environment, terminal).await,
    }
}

/// The ledger and the output of a subcommand.
struct At<'a> {
    environment: &'a Environment,
    terminal: &'a Terminal,
}

impl At<'_> {
    /// Prints what a use case gives at a ledger that is opened without a lock.
    async fn read(
        &self,
        shape: &OutputArguments,
        text: impl AsyncFnOnce(&LedgerSession) -> Result<String, ServiceError>,
    ) -> Exit {
        let opened = runs::open_read_only(self.environment, &shape.places.path_overrides()).await;
        self.print(opened, shape.format, text).await
    }

    async fn print(
        &self,
        opened: Result<LedgerSession, ServiceError>,
        format: HumanOrJson,
        text: impl AsyncFnOnce(&LedgerSession) -> Result<String, ServiceError>,
    ) -> Exit {
        let printed = with_session(opened, format.into(), self.terminal, async |session| {
            Ok(print_result(&text(session).await?, session, self.terminal))
        });
        Box::pin(printed).await
    }
}

fn render_change(changed: &gc::HoldChange, format: HumanOrJson) -> String {
    match format {
        HumanOrJson::Human => render::ledger::hold_changed(changed),
        HumanOrJson::Json => render::ledger::hold_changed_json(changed),
    }
}

async fn verify_ledger(
    request: &verify::VerifyRequest,
    format: HumanOrJson,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let verified = match verify::verify(environment, request).await {
        Ok(verified) => verified,
        Err(error) => return exit_with_error(&error, format.into(), terminal),
    };
    if !verified.warnings.is_empty() {
        terminal.status(&render::diagnostics(&verified.warnings, Format::Human, terminal.stderr));
    }
    terminal.data(&match format {
        HumanOrJson::Human => render::ledger::verification(&verified, terminal.stdout),
        HumanOrJson::Json => format!("{:#}\n", verify::json(&verified)),
    });
    match verified.report.is_clean() {
        true => Exit::DONE,
        false => exit_with_error(&verify::divergence_error(&verified), Format::Human, terminal),
    }
}

fn check_proof_file(
    request: &CheckProofRequest,
    format: HumanOrJson,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let report_file::CheckedProof { proven, is_report } =
        match report_file::check_proof(environment, request, report::FORMAT.as_ref()) {
            Ok(checked) => checked,
            Err(error) => return exit_with_error(&error, format.into(), terminal),
        };
    terminal.data(&match format {
        HumanOrJson::Human => render::ledger::proven(&proven, is_report, terminal.stdout),
        HumanOrJson::Json => render::ledger::proven_json(&proven, is_report),
    });
    match proven.trusted_key {
        Some(_) => Exit::DONE,
        None => exit_with_error(&report_file::unvouched_proof(request, &proven), Format::Human, terminal),
    }
}

fn check_export_file(
    request: &CheckProofRequest,
    format: HumanOrJson,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let checked = match prove::check_export(environment, request) {
        Ok(checked) => checked,
        Err(error) => return exit_with_error(&error, format.into(), terminal),
    };
    terminal.data(&match format {
        HumanOrJson::Human => render::ledger::export_checked(&checked),
        HumanOrJson::Json => render::ledger::export_checked_json(&checked),
    });
    match checked.vouched {
        Some(_) => Exit::DONE,
        None => exit_with_error(&prove::unvouched_export(request, &checked), Format::Human, terminal),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ExportFormatArgument {
    /// JSON Lines with proofs
    Jsonl,
    /// OpenTelemetry traces: one OTLP/JSON document, without texts
    Otel,
    /// One line for each record, without texts
    Csv,
}

fn export_request(runs: Vec<String>, since: Option<String>, format: ExportFormatArgument) -> ExportRequest {
    let form = match format {
        ExportFormatArgument::Jsonl => ExportFormat::Jsonl,
        ExportFormatArgument::Otel => ExportFormat::Otel,
        ExportFormatArgument::Csv => ExportFormat::Csv,
    };
    ExportRequest { runs, since, form }
}

async fn run_export(
    request: &ExportRequest,
    out: Option<&Path>,
    places: &PathArguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let opened = runs::open_read_only(environment, &places.path_overrides()).await;
    with_session(opened, Format::Human, terminal, async |session| {
        let written = write_export(session, request, out, terminal).await?;
        print_warnings(session, terminal);
        if let (Some(written), Some(out)) = (written, out) {
            terminal.hint(&render::ledger::export_written(&written, &out.display().to_string()));
        }
        Ok(Exit::DONE)
    })
    .await
}

async fn write_export(
    session: &LedgerSession,
    request: &ExportRequest,
    out: Option<&Path>,
    terminal: &Terminal,
) -> Result<Option<ExportSummary>, ServiceError> {
    let Some(path) = out else {
        if terminal::is_read_by_runner() {
            let mut text = Vec::new();
            let written = exporting::export(session, request, &mut text).await?;
            terminal.exact(&String::from_utf8_lossy(&text))?;
            return Ok(written);
        }
        return exporting::export(session, request, &mut BufWriter::new(std::io::stdout())).await;
    };
    let mut staged = BufWriter::new(StagedFile::create(session, path)?);
    let written = exporting::export(session, request, &mut staged).await?;
    match staged.into_inner() {
        Ok(staged) => staged.persist()?,
        Err(error) => return Err(exporting::unwritable(path, error.error())),
    }
    Ok(written)
}

async fn run_import(
    request: &export::ImportRequest,
    shape: &OutputArguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let OutputArguments { format, places } = shape;
    let shown = |imported: &ImportSummary| match format {
        HumanOrJson::Human => render::ledger::imported(imported, request.dry_run),
        HumanOrJson::Json => render::ledger::imported_json(imported, request.dry_run),
    };
    let workspace = match workspace::load(environment, &places.path_overrides(), &environment.directory) {
        Ok(workspace) => workspace,
        Err(error) => return exit_with_error(&error, (*format).into(), terminal),
    };
    if !workspace.ledger.may_exist() {
        match export::preview(environment, &workspace, request).await {
            Err(error) => return exit_with_error(&error, (*format).into(), terminal),
            Ok(imported) if request.dry_run || imported.runs.is_empty() => {
                terminal.data(&shown(&imported));
                return Exit::DONE;
            }
            Ok(_) => {}
        }
    }
    let opened = open_session::open(environment.clone(), workspace).await;
    with_session(opened, (*format).into(), terminal, async |session| {
        let imported = export::import(session, request).await?;
        Ok(print_result(&shown(&imported), session, terminal))
    })
    .await
}

async fn run_prove(
    what: &str,
    places: &PathArguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let opened = runs::open_read_only(environment, &places.path_overrides()).await;
    with_session(opened, Format::Human, terminal, async |session| {
        let proof = proving::prove(session, what).await?;
        let text = proof.text().map_err(|error| ServiceError::bug(error.to_string()))?;
        print_warnings(session, terminal);
        terminal.exact(&text)?;
        Ok(Exit::DONE)
    })
    .await
}
