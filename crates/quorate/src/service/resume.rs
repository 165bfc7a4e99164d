//! Resume continues a run that was stopped by a crash, an interruption or a missing answer. Replay derives a run's
//! verdict from the ledger again, without calling a member (X11).

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::history::{Difference, History, replay as derive};
use quorate_kernel::observer::Observer;
use quorate_kernel::ports::ledger::Kind;
use quorate_kernel::record;
use quorate_ledger::council_log::line::SUPERSEDED;
use quorate_manifest::council::VerdictPolicy;
use quorate_protocol::modes::council::Setup;
use quorate_protocol::{Json, Name, Protocol};
use serde::{Deserialize as _, Serialize};
use serde_json::Map;

use super::artifact::{self, Draft};
use super::error::{Error, ErrorKind};
use super::ledger::gc;
use super::report::FailOn;
use super::run_opened::{self, is_assembly};
use super::run_spec::{self, ProtocolSetup as _, RunOptions, RunSpec};
use super::runs::{self, Recorded};
use super::session::LedgerSession;
use super::signer::KeySource;
use super::{convene, review};
use crate::view::layout::{one_line, truncate};
use crate::view::wording::amount;
use crate::view::{Doc, Entry};

/// A run to continue.
#[derive(Debug, Clone, Default)]
pub struct ResumeRequest {
    /// The run: its id, a prefix of it, or `latest`.
    pub run: String,
    /// Options that replace those the run was started with.
    pub options: RunOptions,
    /// The policy that replaces the review's.
    pub policy: Option<VerdictPolicy>,
    /// The exit codes of the review's verdicts.
    pub fail_on: Option<FailOn>,
}

impl From<&str> for ResumeRequest {
    fn from(run: &str) -> Self {
        ResumeRequest { run: run.to_owned(), ..ResumeRequest::default() }
    }
}

/// Resumes a run and returns its report. Refuses a run with a verdict, unless only its log line was missing, which
/// opening the session has written.
///
/// # Errors
/// If the run has a verdict, was altered, or the ledger fails; or if a policy is given for an assembly's run.
#[crate::boxed]
pub(crate) async fn resume(
    session: &LedgerSession,
    run: &Name,
    request: &ResumeRequest,
    observer: Arc<dyn Observer>,
) -> Result<Recorded, Error> {
    let ResumeRequest { options, policy, fail_on, .. } = request;
    let guard = session.acquire_run(run).await?;
    let history = session.partial_history(run).await?;
    for (flag, is_given) in [("--policy", policy.is_some()), ("--fail-on", fail_on.is_some())] {
        if is_given && is_assembly(&history) {
            let body = Body::new(format!("{run} is an assembly's run, and {flag} is for reviews"));
            return Err(Error::usage(body));
        }
    }
    let decided = history.outcome().filter(|outcome| !outcome.is_incomplete());
    if let Some(verdict) = decided.and_then(|outcome| outcome.verdict) {
        let body = Body::new(format!("run {run} already has the verdict {verdict}"))
            .help(format!("`quorate show {run}` shows it"));
        return Err(Error::new(ErrorKind::Conflict, codes::RUN_DECIDED, body));
    }
    history.ensure_not_erased()?;
    if history.opened.queued.is_some() {
        let body = Body::new(format!("run {run} is a task of the queue, which its workers continue"));
        let help = format!(
            "`quorate queue list` shows it; run `quorate queue retry {run}` to try a dead task again"
        );
        return Err(Error::configuration(codes::RUN_QUEUED, body.help(help)));
    }
    let history = if is_assembly(&history) {
        let (spec, keys) = convene::resumed_spec(session, &history, options)?;
        let permit = spec.admit(&session.environment)?;
        spec.resume(session, history, keys, permit, observer).await?
    } else {
        let spec = resumed_review(session, &history, options, *policy)?;
        let permit = spec.admit(&session.environment)?;
        ensure_same_input(session, &history, &spec)?;
        spec.resume(session, history, KeySource::Recorded, permit, observer).await?
    };
    drop(guard);
    let mut report = runs::report_of(session, &history).await;
    // The report has the answers even if the run erases them at its end.
    gc::after_run(session, history).await?;
    if let Ok(Recorded::Review(review)) = &mut report {
        review.set_fail_on(*fail_on);
    }
    report
}

fn resumed_review(
    session: &LedgerSession,
    history: &History,
    options: &RunOptions,
    policy: Option<VerdictPolicy>,
) -> Result<RunSpec<Setup>, Error> {
    let recorded = history.opened.setup.get("policy").and_then(Json::as_str).and_then(VerdictPolicy::parse);
    let options = options.resumed(&session.workspace, &history.opened);
    review::build(&session.environment, &session.workspace, &options, policy.or(recorded))
}

fn ensure_same_input(session: &LedgerSession, history: &History, spec: &RunSpec<Setup>) -> Result<(), Error> {
    let input_sha256 = match &history.opened.artifact_path {
        Some(path) => {
            artifact::read(&Draft::File(PathBuf::from(path)), &session.environment.directory)?.sha256
        }
        // Standard input is consumed and a redacted path was not stored; only the ledger has the text.
        None => run_opened::input_sha256(history),
    };
    run_spec::ensure_unchanged(history, &spec.fingerprint(&input_sha256))
}

/// The result of a replay.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Replay {
    /// The run's id.
    pub run: Name,
    /// Whether every derived record equals the recorded one.
    pub identical: bool,
    /// The recorded verdict; `None` while the run is undecided.
    pub recorded: Option<String>,
    /// The derived verdict.
    pub replayed: Option<String>,
    /// The records that differ.
    pub differences: Vec<Difference>,
}

/// The longest value of a difference that a document shows, in characters.
const VALUE: usize = 160;

impl Replay {
    /// Whether it is identical, and each difference.
    pub fn doc(&self) -> Doc {
        let mut doc = Doc::new();
        let verdict = |word: &Option<String>| word.clone().unwrap_or_else(|| "no verdict".to_owned());
        let (run, recorded, replayed) = (&self.run, verdict(&self.recorded), verdict(&self.replayed));
        doc.line(match self.identical {
            true => format!("identical: replaying run {run} gives {replayed} again; no member was asked"),
            false => format!(
                "different: run {run} recorded {recorded}, and {replayed} follows now ({})",
                amount(self.differences.len() as u64, "difference")
            ),
        });
        doc.items(self.differences.iter().flat_map(difference_entries));
        doc
    }
}

/// The fields that differ; the whole record if one side has none.
fn difference_entries(difference: &Difference) -> Vec<Entry> {
    let kind = &difference.kind;
    let (Some(Json::Object(recorded)), Some(Json::Object(replayed))) =
        (&difference.recorded, &difference.replayed)
    else {
        let which = match difference.recorded {
            None => "not recorded, but follows now",
            Some(_) => "recorded, but does not follow",
        };
        return vec![format!("{kind}: {which}").into()];
    };
    let value = |value: Option<&Json>| {
        value.map_or_else(|| "nothing".to_owned(), |value| truncate(&one_line(&value.to_string()), VALUE))
    };
    let keys: BTreeSet<&String> = recorded.keys().chain(replayed.keys()).collect();
    let entry = |key: &String| {
        let mut entry = Entry::from(format!("{kind}.{key}"));
        entry.body.line(format!("recorded: {}", value(recorded.get(key))));
        entry.body.line(format!("replayed: {}", value(replayed.get(key))));
        entry
    };
    keys.into_iter().filter(|key| recorded.get(*key) != replayed.get(*key)).map(entry).collect()
}

/// Replays a run.
///
/// # Errors
/// If the run's records or texts are incomplete, or another version of the mode wrote it.
#[crate::boxed]
pub(crate) async fn replay(session: &LedgerSession, run: &Name) -> Result<Replay, Error> {
    let mut history = session.history(run).await?;
    // No protocol derives the verdict of a run that was closed because its draft changed.
    history.facts.retain(|(kind, data)| word(kind, data).as_deref() != Some(SUPERSEDED));
    let inputs = session.load_inputs(&history).await?;
    let result = derive(&history, inputs, &mut *protocol(&history)?);
    let verdict =
        |facts: &[(String, Map<String, Json>)]| facts.iter().rev().find_map(|(kind, data)| word(kind, data));
    Ok(Replay {
        run: run.clone(),
        identical: result.differences.is_empty(),
        recorded: verdict(&history.facts),
        replayed: verdict(&result.facts),
        differences: result.differences,
    })
}

/// A new instance of the run's protocol.
fn protocol(history: &History) -> Result<Box<dyn Protocol>, Error> {
    let fresh = match run_opened::is_assembly(history) {
        true => run_opened::assembly_setup(history).map(|setup| setup.protocol()),
        false => Setup::deserialize(&history.opened.setup).ok().map(|setup| setup.protocol()),
    };
    fresh
        .transpose()?
        .filter(|protocol| protocol.version() == history.opened.protocol)
        .ok_or_else(|| run_opened::unknown_version(history))
}

/// The word for an outcome: its verdict.
fn word(kind: &str, data: &Map<String, Json>) -> Option<String> {
    record::verdict(data).filter(|_| kind == Kind::Outcome.as_str())
}

#[cfg(test)]
mod tests {
    use quorate_diagnostics::render::TextOptions;
    use serde_json::json;

    use super::*;

    fn text(differences: Vec<Difference>) -> String {
        let verdict = Some("REVISE".to_owned());
        let identical = differences.is_empty();
        let run = "r7k2m9q4xa1bc".into();
        let replay = Replay { run, identical, recorded: verdict.clone(), replayed: verdict, differences };
        replay.doc().text(TextOptions::default())
    }

    #[test]
    fn identical_or_where_it_differs() {
        assert_eq!(
            text(Vec::new()),
            "identical: replaying run r7k2m9q4xa1bc gives REVISE again; no member was asked\n"
        );
        let differences = vec![
            Difference {
                kind: "rule".to_owned(),
                recorded: Some(json!({"blocks": 1, "policy": "seed/2"})),
                replayed: Some(json!({"blocks": 2, "policy": "seed/2"})),
            },
            Difference { kind: "outcome".to_owned(), recorded: None, replayed: Some(json!({})) },
        ];
        insta::assert_snapshot!(text(differences), @"
        different: run r7k2m9q4xa1bc recorded REVISE, and REVISE follows now (2 differences)
        - rule.blocks
          recorded: 1
          replayed: 2
        - outcome: not recorded, but follows now
        ");
    }
}
