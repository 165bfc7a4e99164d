//! Quorate: councils of agents whose decisions you can audit.
//!
//! [`Quorate`] is a workspace: a directory with its manifests, a ledger, and the executors, rules, substrates and other
//! extensions that the embedding program registers. Everything else starts from it. A program with a member of its own:
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! # let dir = tempfile::tempdir()?;
//! use async_trait::async_trait;
//! use quorate::ports::executor::{About, Executor, Failure, Invocation, Reply};
//! use quorate::{Event, Quorate, Verdict};
//!
//! /// Answers for every member; a real one would read the prompt.
//! struct HouseStyle;
//!
//! #[async_trait]
//! impl Executor for HouseStyle {
//!     fn about(&self) -> About {
//!         About { kind: "house-style", asks_a_model: false, model: None }
//!     }
//!
//!     async fn invoke(&self, _: Invocation) -> Result<Reply, Failure> {
//!         let text = r#"{"would_block": false, "irreducible": false, "verdict": "ship", "reasoning": "It is plain."}"#;
//!         Ok(Reply { text: text.to_owned(), ..Reply::default() })
//!     }
//! }
//!
//! let builder = Quorate::builder().workspace(dir.path()).ledger_in_memory();
//! let quorate = builder.executor("house-style", HouseStyle).build()?;
//! let draft = "The meeting moved to Tuesday at ten, because the room is taken on Monday.\n";
//! let review = quorate.review_text("draft.md", draft).executor("house-style").max_money("5 USD".parse()?);
//! let mut run = review.start();
//! while let Some(event) = run.next().await {
//!     if let Event::Answered { member, step, .. } = event {
//!         println!("{member} has answered ({step})");
//!     }
//! }
//! let review = run.finish().await?;
//! assert_eq!(review.verdict, Some(Verdict::Ship), "{}", review.because);
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The library reads neither the process's environment nor its working directory and never writes to a terminal: the
//! builder supplies all of it. Commands that workspace files name run only if the builder trusts them ([`Trust`]). A
//! program whose members are CLIs should use [`process`], which kills them when the program exits.
//!
//! The features `agent-cli`, `llm`, `rubric` (the executors of these kinds), `provision` and `cluster` are on by default;
//! without one, its code is left out, and a manifest that names its kind is refused.

#![warn(missing_docs)]

pub mod audit;
mod builder;
#[cfg(feature = "cluster")]
pub mod cluster;
pub mod convene;
pub mod conversation;
pub mod doctor;
mod error;
pub mod eval;
mod events;
pub mod github;
pub mod hook;
pub mod http;
pub mod init;
/// Values as people write them, and as requests contain them.
pub mod input {
    pub use crate::service::artifact::MAX_BYTES as MAX_DRAFT_BYTES;
    pub use crate::service::time_text::{SinceError, Whole, parse_since};
    pub use quorate_manifest::duration::{DurationError, parse as parse_duration};
}
pub mod jobs;
pub mod keys;
pub mod ledger;
pub mod locks;
pub mod manifests;
#[doc(hidden)]
pub mod measured {
    //! Inner parts that the benchmarks and tests of this workspace use by themselves.

    #[cfg(feature = "nats")]
    pub use super::service::commit_events::CommitEvents;
    pub use super::service::compose::Sources;
    pub use super::service::environment::Environment;
    pub use super::service::live::Watcher;
    pub use super::service::manifests::Manifests;
    pub use super::service::runs::open as open_ledger;
    pub use super::service::runtime::conversation::say;
    pub use super::service::runtime::{OpenRuntime, RuntimeRequest, open as open_runtime};
    pub use super::service::workspace::PathOverrides;
    pub use crate::playbook::library::{Catalogue, Library};
}
pub mod playbook;
pub mod ports;
pub mod process {
    //! The process that runs Quorate: its signals, and the processes of members whose executors are CLIs. A program whose
    //! members are CLIs calls [`take_over`] first, and [`wait_for_members`] last.

    pub use quorate_adapters::install_tls_provider;
    #[cfg(unix)]
    pub use quorate_adapters::process::ignores_hangups;
    pub use quorate_adapters::process::{terminate_members, wait_for_members};

    /// Denies other processes access to this one's memory, and restores signals that its parent changed.
    ///
    /// Call it at the beginning of `main`.
    pub fn take_over() {
        quorate_adapters::process::deny_inspection();
        quorate_adapters::process::restore_signals();
    }
}
#[cfg(feature = "provision")]
pub mod provision;
pub mod reader;
pub mod reports;
pub mod review;
pub mod runs;
pub mod schemas;
mod service;
mod session;
pub mod sweep;
pub mod trust;
pub mod view;
mod worker_thread;

pub use builder::{Builder, Choices, Quorate, Trust};
pub use convene::{AssemblyVerdict, Convening, Decision};
pub use conversation::{Conversation, Turn};
pub use error::{Error, ErrorKind};
pub use events::{Event, Observer, Run, Status};
pub use quorate_diagnostics::Report;
pub use quorate_kernel::budget::Caps;
pub use quorate_manifest::assembly::{ResolvedAssembly, Trigger};
pub use quorate_manifest::council::VerdictPolicy;
pub use quorate_manifest::council::tiers::Tier;
/// ```
/// use quorate::Money;
///
/// let cap: Money = "0.50 USD".parse()?;
/// assert_eq!(cap.saturating_sub(Money::from_nanos(250_000_000)).to_string(), "0.25 USD");
/// assert_eq!("5 EUR".parse::<Money>().unwrap_err().to_string(), "`EUR` is not USD, and Quorate converts no currencies");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub use quorate_manifest::money::Money;
pub use quorate_manifest::money::ParseMoneyError;
pub use quorate_protocol::Name;
pub use quorate_protocol::policy::Verdict;
pub use review::{Draft, Finding, Review, ReviewRequest, Reviewing};
pub use service::environment::NatsServers;
pub use service::error::error_chain;
pub use service::run_spec::{Producer, RunOptions};
pub use service::trust::requests::{Consent, ConsentAnswer};
pub use session::{Outcome, Session};

/// An async function that other crates call is boxed: otherwise each crate that awaits it compiles it again, with every
/// async function that it calls.
pub(crate) use async_recursion::async_recursion as boxed;
