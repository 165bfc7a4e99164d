//! `quorate ledger`: its verbs with their help, and those that work at the ledger's session.

mod check;
mod exchange;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::arguments::{HumanOrJson, OutputArguments, PathArguments};
use crate::exit::{Exit, exit_with_error};
use crate::render::{self, Format};
use crate::session::{print_result, with_session};
use crate::terminal::Terminal;
use quorate::service::environment::Environment;
use quorate::service::error::ServiceError;
use quorate::service::ledger::{
    accept_key, check_proof, checkpoint, gc, hold, import, rollback, stats, verify,
};
use quorate::service::runs;
use quorate::service::session::LedgerSession;

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
    /// Sign what the ledger holds now: how many records, and the root of their tree
    ///
    /// Each run is sealed so when it ends. The whole ledger is verified first; one that differs from what was recorded is not
    /// signed. Where nothing came since the last checkpoint, that one is shown.
    #[command(
        after_help = "Examples:\n  quorate ledger checkpoint\n  quorate ledger checkpoint > checkpoint.txt"
    )]
    Checkpoint {
        /// Sign records of the ledger's own that are not signed, since an older version wrote them: look at them first
        #[arg(long)]
        accept_unsigned: bool,
        #[command(flatten)]
        shape: OutputArguments,
    },
    /// Say what the ledger holds: size, growth, last checkpoint, what is not sealed yet
    #[command(after_help = "Examples:\n  quorate ledger stats\n  quorate ledger stats --format json")]
    Stats {
        #[command(flatten)]
        shape: OutputArguments,
    },
    /// Check the ledger against its hashes, signatures, checkpoints, witness and log
    ///
    /// Nothing is written. Exits with 0 where all is as it was written, 1 where something is not, 4 where there is no ledger or no
    /// such checkpoint, 5 where it cannot be read.
    #[command(
        after_help = "Examples:\n  quorate ledger verify\n  quorate ledger verify --witness ledger-witness.txt --key ledger.pub\n  quorate ledger verify --since checkpoint.txt --format json"
    )]
    Verify {
        /// Trust this checkpoint, and look only at what is after it: how many records it is over, `ledger/<n>`, or a file
        /// with its signed note
        #[arg(long, value_name = "CHECKPOINT")]
        since: Option<String>,
        /// A file of checkpoints that was kept elsewhere; else the one of quorate.toml
        #[arg(long, value_name = "FILE")]
        witness: Option<String>,
        /// A key that has to have signed a checkpoint, as you have it from the ledger's owner: a verifier's line, a public key,
        /// or a file of these
        #[arg(long = "key", value_name = "KEY|FILE")]
        keys: Vec<String>,
        /// Exit with 1 where no checkpoint of this ledger is kept on this machine, so that a rollback would go undetected, and where
        /// records are neither signed nor under a signed checkpoint, as a crash leaves them until `quorate ledger checkpoint`
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
        /// Say what would be erased, and change nothing
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        shape: OutputArguments,
    },
    /// Put a run on legal hold: nothing of it is erased, whatever its age
    #[command(
        after_help = "Examples:\n  quorate ledger hold r7k2 --reason \"claim 2026-14\"\n  quorate ledger hold --list"
    )]
    Hold {
        /// The run's id, the beginning of it, or `latest`; a conversation's stream by its whole name
        #[arg(value_name = "RUN", required_unless_present = "list")]
        run: Option<String>,
        /// Why
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
    /// A report is drawn again from the proof and the texts in it, and has to be the same, byte for byte. Exits with 0 where all holds against a key that you give, 1 where something does not or the key is not trusted, 5
    /// where the file is no proof.
    #[command(
        after_help = "Examples:\n  quorate ledger check-proof proof.json --key ledger.pub\n  quorate ledger check-proof report.html --key ledger.pub\n  quorate ledger check-proof proof.json --key ledger.pub --signer quorate:ed25519:public:…"
    )]
    CheckProof {
        /// The proof or the report, or - for standard input
        #[arg(value_name = "FILE")]
        file: String,
        /// The ledger's key, as you have it from its owner: a verifier's line, a public key, or a file of these
        #[arg(long = "key", value_name = "KEY|FILE")]
        keys: Vec<String>,
        /// A key of which one has to have signed each record: a public key, or a file of these
        #[arg(long = "signer", value_name = "KEY|FILE")]
        signers: Vec<String>,
        /// How it is printed
        #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
        format: HumanOrJson,
    },
    /// Check an export offline: no ledger, no workspace
    ///
    /// Exits with 0 where all holds against a key that you give, 1 where something does not or the key is not trusted, 5
    /// where the file is no export.
    #[command(
        after_help = "Examples:\n  quorate ledger check-export ledger.jsonl --key ledger.pub\n  quorate ledger check-export ledger.jsonl --key ledger.pub --signer quorate:ed25519:public:…"
    )]
    CheckExport {
        /// The export as JSON Lines, or - for standard input
        #[arg(value_name = "FILE")]
        file: String,
        /// The ledger's key, as you have it from its owner: a verifier's line, a public key, or a file of these
        #[arg(long = "key", value_name = "KEY|FILE")]
        keys: Vec<String>,
        /// A key of which one has to have signed each record that is signed: a public key, or a file of these
        #[arg(long = "signer", value_name = "KEY|FILE")]
        signers: Vec<String>,
        /// How it is printed
        #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
        format: HumanOrJson,
    },
    /// Go on with a ledger that was restored from a backup, or begun again in another one's place
    ///
    /// A ledger that does not lead to the last checkpoint that its key signed on this machine is no longer signed. This
    /// command records in the ledger who accepts that and why, moves the kept checkpoint to `aside/`, and signs a new one. A
    /// witness that has seen the lost records still contradicts the ledger afterwards.
    #[command(
        after_help = "Example:\n  quorate ledger accept-rollback --reason \"restored Monday's backup after the disk failed\""
    )]
    AcceptRollback {
        /// What happened: it is recorded in the ledger, and `quorate ledger verify` shows it
        #[arg(long, value_name = "TEXT")]
        reason: String,
        #[command(flatten)]
        shape: OutputArguments,
    },
    /// Go on with a ledger whose key is lost, with another key that no earlier one vouches for
    ///
    /// The key is the one beside the ledger, or in QUORATE_LEDGER_KEY. Keys that the ledger has already, and that no earlier one
    /// vouches for, are accepted where they are here, or given with `--key`. The ledger is verified first. A checkpoint records
    /// who accepts them and why, and this machine keeps them; every other machine that uses the ledger accepts for itself.
    #[command(
        after_help = "Example:\n  quorate keys init\n  quorate ledger accept-key --reason \"the disk with the old key failed\""
    )]
    AcceptKey {
        /// What happened: it is recorded in the ledger, and `quorate ledger verify` shows it
        #[arg(long, value_name = "TEXT")]
        reason: String,
        /// Another key of the ledger that you accept, as you have it from its owner: a verifier's line, a public key, or a file
        /// of these
        #[arg(long = "key", value_name = "KEY|FILE")]
        keys: Vec<String>,
        #[command(flatten)]
        shape: OutputArguments,
    },
    /// Write what the ledger has sealed, for other programs
    ///
    /// What is not sealed yet is sealed first. The same ledger gives the same bytes. As JSON Lines it has everything that proves
    /// it, and `quorate ledger import` or `scripts/verify_ledger.py` check that.
    #[command(
        after_help = "Examples:\n  quorate ledger export > ledger.jsonl\n  quorate ledger export --run r7k2 --out run.jsonl\n  quorate ledger export --since 30d --format csv > records.csv"
    )]
    Export {
        /// This run alone: its id, the beginning of it, or `latest`; may be given several times
        #[arg(long = "run", value_name = "RUN")]
        runs: Vec<String>,
        /// What came after a checkpoint (its size, `ledger/<n>`, a note's file) or since a time (7d, 2026-05-18)
        #[arg(long, value_name = "CHECKPOINT|TIME")]
        since: Option<String>,
        /// How it is written
        #[arg(long, value_enum, default_value_t = exchange::FormatArgument::Jsonl)]
        format: exchange::FormatArgument,
        /// Write it to this file, which takes its place once it is whole; without it to standard output. Never over the ledger,
        /// its keys, its log or the configuration, nor to what is no regular file
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        #[command(flatten)]
        places: PathArguments,
    },
    /// Take in the runs of another ledger from its export, verified first
    ///
    /// Records are merged byte for byte as they were, and only if all of the file holds. Runs that are here already stay; a run
    /// that contradicts what is here, or adds to one that this ledger recorded itself, refuses the file. Overlays, playbooks and conversations are not merged.
    #[command(
        after_help = "Examples:\n  quorate ledger import theirs.jsonl --key their-ledger.pub --dry-run\n  quorate ledger import theirs.jsonl --key their-ledger.pub"
    )]
    Import {
        /// What `quorate ledger export` wrote
        #[arg(value_name = "FILE")]
        file: String,
        /// The other ledger's key, as you have it from its owner: a verifier's line, a public key, or a file of these. This
        /// ledger's own keys need not be given
        #[arg(long = "key", value_name = "KEY|FILE")]
        keys: Vec<String>,
        /// A key of which one has to have signed each record that is signed: a public key, or a file of these
        #[arg(long = "signer", value_name = "KEY|FILE")]
        signers: Vec<String>,
        /// Say what would be merged, and write nothing
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        shape: OutputArguments,
    },
    /// Prove to a third party that a record, or a run, is in the ledger
    ///
    /// Writes a file that `quorate ledger check-proof` checks offline: the records with their bodies, the last checkpoint, and
    /// what leads from one to the other.
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
    use render::{ledger, retention};
    let at = At { environment, terminal };
    match arguments.verb {
        Verb::Checkpoint { accept_unsigned, shape } => {
            let OutputArguments { format, places } = shape;
            let opened = runs::open(environment, &places.path_overrides()).await;
            at.print(opened, format, async |session| {
                if accept_unsigned {
                    let accepted = checkpoint::accept_unsigned(session).await?;
                    terminal.status(&ledger::accepted_unsigned(&accepted));
                }
                let sealed = checkpoint::checkpoint_verified(session).await?;
                session.absorb(sealed.report);
                Ok(match format {
                    Human => ledger::checkpoint(&sealed.sealed),
                    Json => ledger::checkpoint_json(&sealed.sealed),
                })
            })
            .await
        }
        Verb::Stats { shape } => {
            at.read(&shape, async |session| {
                let counted = stats::stats(session).await?;
                Ok(match shape.format {
                    Human => ledger::stats(&counted, terminal.stdout),
                    Json => ledger::stats_json(&counted),
                })
            })
            .await
        }
        Verb::Gc { dry_run, shape } => {
            let opened = runs::open_read_only(environment, &shape.places.path_overrides()).await;
            with_session(opened, shape.format.into(), terminal, async |session| {
                let collected = gc::gc(session, dry_run).await?;
                let text = match shape.format {
                    Human => retention::collected(&collected, terminal.stdout),
                    Json => retention::collected_json(&collected),
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
                        render_change(&hold::hold(session, run, reason.as_deref()).await?, format)
                    }
                    (None, Human) => retention::holds(&hold::holds(session).await?, terminal.stdout),
                    (None, Json) => retention::holds_json(&hold::holds(session).await?),
                })
            })
            .await
        }
        Verb::Release { run, shape } => {
            at.read(&shape, async |session| {
                Ok(render_change(&hold::release(session, &run).await?, shape.format))
            })
            .await
        }
        Verb::AcceptRollback { reason, shape } => {
            at.read(&shape, async |session| {
                let accepted = rollback::accept(session, &reason).await?;
                Ok(match shape.format {
                    Human => ledger::accepted(&accepted),
                    Json => ledger::accepted_json(&accepted),
                })
            })
            .await
        }
        Verb::AcceptKey { reason, keys, shape } => {
            let request = accept_key::Request { reason, keys };
            at.read(&shape, async |session| {
                let accepted = accept_key::accept(session, &request).await?;
                Ok(match shape.format {
                    Human => ledger::accepted_keys(&accepted),
                    Json => ledger::accepted_keys_json(&accepted),
                })
            })
            .await
        }
        Verb::Verify { since, witness, keys, strict, shape: OutputArguments { format, places } } => {
            let request = verify::Request { since, witness, keys, strict, places: places.path_overrides() };
            check::ledger(&request, format, environment, terminal).await
        }
        Verb::CheckProof { file, keys, signers, format } => {
            check::proof(&check_proof::Request { file, keys, signers }, format, environment, terminal)
        }
        Verb::CheckExport { file, keys, signers, format } => {
            check::export(&check_proof::Request { file, keys, signers }, format, environment, terminal)
        }
        Verb::Export { runs, since, format, out, places } => {
            let request = exchange::request(runs, since, format);
            exchange::export(&request, out.as_deref(), &places, environment, terminal).await
        }
        Verb::Import { file, keys, signers, dry_run, shape } => {
            let request = import::Request { file, keys, signers, dry_run };
            Box::pin(exchange::import(&request, &shape, environment, terminal)).await
        }
        Verb::Prove { what, places } => exchange::prove(&what, &places, environment, terminal).await,
    }
}

/// Where a verb runs.
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

fn render_change(changed: &hold::HoldChange, format: HumanOrJson) -> String {
    match format {
        HumanOrJson::Human => render::retention::changed(changed),
        HumanOrJson::Json => render::retention::changed_json(changed),
    }
}
