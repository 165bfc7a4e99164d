//! The conversations of a workspace, for front ends that have no manifest at hand: every runtime manifest below the root has
//! one, under an id that follows from the manifest's path.
//!
//! A front end lists and opens conversations, and reads the state of one: its outcomes, what participants remember, and who
//! answers next.

use std::path::PathBuf;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::conversation::Turn;
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::ledger::Record;
use quorate_kernel::record;
use quorate_kernel::turn::Forecast;
use quorate_manifest::doctype::Doctype;
use quorate_manifest::loader::{OpenResult, Refs};
use quorate_protocol::{Json, Name};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Map;

use super::confined::Root;
use super::disk;
use super::environment::Environment;
use super::error::Error;
use super::manifests::{Manifests, workspace_location};
use super::runtime::Runtime;
use super::runtime::conversation::{self, Activity, Doing, Turns};

/// How many hexadecimal digits of the hash an id has.
const ID_DIGITS: usize = 12;

/// A conversation of the workspace
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Talk {
    /// Follows from the manifest's path: the same as long as the file is there
    pub id: String,
    /// The runtime's id; null if the manifest has none
    pub runtime: Option<String>,
    /// The manifest, from the workspace's root
    pub manifest: String,
    /// The manifest
    #[serde(skip)]
    #[schemars(skip)]
    pub path: PathBuf,
}

/// The conversations of a workspace, by the paths of their manifests.
///
/// # Errors
/// When the root cannot be read.
pub(crate) fn list(environment: &Environment, root: &Root) -> Result<Vec<Talk>, Error> {
    let manifests = Manifests::open(environment, root.dir(), Refs::ShapeOnly)?;
    let loader = manifests.loader(&*environment.registries);
    let found = disk::walk(root.dir()).map_err(|error| {
        let body = Body::new(format!("cannot read the workspace {}: {error}", root.dir().display()));
        Error::configuration(codes::FILE_UNREADABLE, body)
    })?;
    let is_candidate = |path: &PathBuf| {
        let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
        ["yaml", "yml"].contains(&end)
    };
    // Walks skip hidden directories.
    let hidden = Some(root.dir().join(".runtime/multi-agent.yaml")).filter(|path| path.is_file());
    let mut talks = Vec::new();
    for path in found.into_iter().map(|entry| entry.path).chain(hidden).filter(is_candidate) {
        let Ok(location) = workspace_location(root.dir(), &path) else { continue };
        // The loader does not open a link that leads out of the root.
        let OpenResult::Document(document) = loader.open(&location) else { continue };
        if document.doctype != Doctype::Runtime {
            continue;
        }
        let manifest = location.workspace_relative();
        let id = format!("t{}", &sha256_hex(manifest.as_bytes())[..ID_DIGITS]);
        let runtime = document.root.key("id").and_then(|id| id.as_str()).map(str::to_owned);
        talks.push(Talk { id, runtime, manifest, path });
    }
    talks.sort_by(|a, b| a.manifest.cmp(&b.manifest));
    Ok(talks)
}

/// The conversation with an id, or of the only runtime with that id.
///
/// # Errors
/// `quorate:conversation_unknown` if no conversation matches.
pub(crate) fn find(environment: &Environment, root: &Root, id: &str) -> Result<Talk, Error> {
    let talks = list(environment, root)?;
    let mut of_runtime = talks.iter().filter(|talk| talk.runtime.as_deref() == Some(id));
    let by_runtime = of_runtime.next().filter(|_| of_runtime.next().is_none());
    let found = talks.iter().find(|talk| talk.id == id).or(by_runtime).cloned();
    found.ok_or_else(|| {
        let body = Body::new(format!("the workspace has no conversation `{id}`"));
        let known: Vec<&str> = talks.iter().map(|talk| &*talk.id).collect();
        let help = match known.is_empty() {
            true => "run `quorate init runtime` to create a runtime manifest".to_owned(),
            false => format!("the conversations are {}", known.join(", ")),
        };
        Error::not_found(codes::CONVERSATION_UNKNOWN, body.help(help))
    })
}

/// How many turns after the last settled turn are read to find open turns.
const OPEN_TURNS: usize = 200;
/// How many of the conversation's last records are read from the ledger.
const RECORDS: u32 = 512;

/// How a conversation stands
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TalkState {
    /// The conversation
    pub id: String,
    /// The runtime's id
    pub runtime: String,
    /// The manifest, from the workspace's root
    pub manifest: String,
    /// The kind of the dispatcher, which selects the next speakers
    pub dispatcher: String,
    /// In the manifest's order
    pub participants: Vec<ParticipantState>,
    /// Who answers next
    pub next: Next,
    /// The outcomes of turns, from the last records of the ledger
    pub outcomes: Vec<TurnOutcome>,
    /// Whether a job of this server answers open turns
    #[serde(rename = "answering")]
    pub is_answering: bool,
}

/// A participant of the runtime
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ParticipantState {
    /// Its id
    pub id: String,
    /// What it is called and mentioned by
    pub name: String,
    /// The kind of its executor
    pub executor: String,
    /// What it does in the run of this server; null if it was not asked
    pub doing: Option<Doing>,
    /// Why it has not answered
    pub why: Option<String>,
    /// What it remembers
    pub state: Map<String, Json>,
    /// Why its state cannot be read
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_error: Option<String>,
}

/// Who answers next
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Next {
    /// The oldest turn that is not settled; null if there is none
    pub turn: Option<String>,
    /// How many turns are not settled
    pub open: usize,
    /// Who answers it, in this order
    pub participants: Vec<String>,
    /// Why
    pub why: String,
}

/// The outcome of a turn
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TurnOutcome {
    /// The turn
    pub turn: String,
    /// Who was selected to answer it
    pub selected: Vec<String>,
    /// Who was selected and has not answered, each with the reason
    pub failed: Vec<FailedAnswer>,
    /// Why no participant was selected
    pub why: Option<String>,
}

/// A participant that has not answered
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FailedAnswer {
    /// The participant
    pub participant: String,
    /// The reason
    pub why: String,
}

/// Reads the state of a conversation.
///
/// # Errors
/// If the substrate or the ledger fails, or if only the process that runs the conversation can read it.
pub(crate) async fn load_state(
    talk: &Talk,
    runtime: &Runtime,
    turns: &Turns,
    activity: Activity,
) -> Result<TalkState, Error> {
    conversation::check_shared(runtime, conversation::READ_RECORDS)?;
    let redact = |text: &str| runtime.shown(text);
    let records = runtime.records(Some(RECORDS)).await?;
    let settled = records.iter().filter_map(|record| record.read::<record::Turn>().ok().flatten());
    let settled: Vec<record::Turn> = settled.collect();
    let cursor = settled.iter().rev().find_map(|settled| settled.cursor.clone());
    let mut next = next_speakers(runtime, turns, cursor.as_ref(), &records).await?;
    next.why = redact(&next.why);
    let mut participants = Vec::new();
    for participant in &runtime.participants {
        let (doing, why) = activity.participants.get(&participant.id).cloned().unzip();
        let read = conversation::state(runtime, &participant.id).await;
        participants.push(ParticipantState {
            id: participant.id.to_string(),
            name: participant.display_name.clone(),
            executor: participant.executor.clone(),
            doing,
            why: why.flatten().as_deref().map(redact),
            state_error: read.as_ref().err().map(Error::first_message),
            state: read.unwrap_or_default(),
        });
    }
    let mut outcomes = outcomes(settled);
    for failed in outcomes.iter_mut().flat_map(|outcome| &mut outcome.failed) {
        failed.why = redact(&failed.why);
    }
    Ok(TalkState {
        id: talk.id.clone(),
        runtime: runtime.id.clone(),
        manifest: talk.manifest.clone(),
        dispatcher: runtime.dispatcher().to_owned(),
        participants,
        next,
        outcomes,
        is_answering: activity.is_answering,
    })
}

/// The last outcome of each turn, in the order of the records.
fn outcomes(records: Vec<record::Turn>) -> Vec<TurnOutcome> {
    let mut all: Vec<TurnOutcome> = Vec::new();
    for record in records {
        let Some(turn) = record.trigger.map(|trigger| trigger.to_string()) else { continue };
        let failed = record.failed.unwrap_or_default().into_iter();
        let failed = failed
            .map(|failed| FailedAnswer { participant: failed.participant.to_string(), why: failed.why });
        all.retain(|known| known.turn != turn);
        all.push(TurnOutcome {
            turn,
            selected: record.selected.unwrap_or_default().iter().map(ToString::to_string).collect(),
            failed: failed.collect(),
            why: record.why.flatten(),
        });
    }
    all
}

/// Forecasts who answers the oldest turn after the cursor.
async fn next_speakers(
    runtime: &Runtime,
    turns: &Turns,
    cursor: Option<&Name>,
    records: &[Record],
) -> Result<Next, Error> {
    let page = turns.after(cursor, OPEN_TURNS).await?;
    let nothing = |why: &str| Next { turn: None, open: 0, participants: Vec::new(), why: why.to_owned() };
    let Some(trigger) = page.turns.first() else { return Ok(nothing("every turn is settled")) };
    if !page.known {
        return Ok(nothing("the last settled turn is not in the conversation any more"));
    }
    let window = match cursor {
        Some(_) => runtime.substrate.window(&trigger.id, runtime.window()).await?,
        None => vec![trigger.clone()],
    };
    let (participants, why) = forecast(runtime, trigger, &window, records).await;
    Ok(Next { turn: Some(trigger.id.to_string()), open: page.turns.len(), participants, why })
}

async fn forecast(
    runtime: &Runtime,
    trigger: &Turn,
    window: &[Turn],
    records: &[Record],
) -> (Vec<String>, String) {
    let dispatcher = runtime.dispatcher();
    match runtime.forecast(window, records).await {
        Forecast::Speakers(named) if named.is_empty() => {
            let misses = runtime.probable_addressees(&trigger.content).join(" ");
            let why = format!("the dispatcher `{dispatcher}` selects no participant for it. {misses}");
            (Vec::new(), why.trim_end().to_owned())
        }
        Forecast::Speakers(named) => {
            let why =
                format!("the dispatcher `{dispatcher}` selects for the turn of {}", trigger.participant);
            (named.iter().map(ToString::to_string).collect(), why)
        }
        Forecast::GuardHit { turns } => {
            let why = format!("the last {turns} turns are of participants: a person has to speak first");
            (Vec::new(), why)
        }
        Forecast::NeedsExecutor => {
            (Vec::new(), format!("the dispatcher `{dispatcher}` asks an executor to select the speakers"))
        }
        Forecast::Undecided(why) => (Vec::new(), format!("the dispatcher `{dispatcher}` fails: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "a test's own files")]
    fn workspace(manifests: &[(&str, &str)]) -> (tempfile::TempDir, Environment, Root) {
        let dir = tempfile::tempdir().unwrap();
        for (path, id) in manifests {
            let path = dir.path().join("root").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let text = format!("schema: agentruntimes/v1\nkind: MultiAgentRuntime\nid: {id}\n");
            std::fs::write(path, text).unwrap();
        }
        std::fs::write(dir.path().join("outside.yaml"), "schema: agentruntimes/v1\nid: outside\n").unwrap();
        let root = Root::open(dir.path().join("root")).unwrap();
        (dir, Environment::new(root.dir()), root)
    }

    #[test]
    fn every_runtime_below_the_root_has_a_conversation_with_a_stable_id() {
        let paths = [
            ("a.yaml", "one"),
            ("deep/b.yml", "two"),
            ("deep/c.yaml", "two"),
            (".runtime/multi-agent.yaml", "four"),
        ];
        let (_dir, environment, root) = workspace(&paths);
        let talks = list(&environment, &root).unwrap();
        let shown: Vec<_> =
            talks.iter().map(|talk| (&*talk.manifest, talk.runtime.as_deref().unwrap())).collect();
        assert_eq!(
            shown,
            [
                (".runtime/multi-agent.yaml", "four"),
                ("a.yaml", "one"),
                ("deep/b.yml", "two"),
                ("deep/c.yaml", "two")
            ]
        );
        assert_eq!(talks[1].id, "t".to_owned() + &sha256_hex(b"a.yaml")[..ID_DIGITS]);
        let find = |id: &str| find(&environment, &root, id).map(|talk| talk.manifest);
        assert_eq!(
            (find(&talks[2].id).unwrap(), find("one").unwrap()),
            ("deep/b.yml".into(), "a.yaml".into())
        );
        for unknown in ["two", "../outside.yaml", "a.yaml", "", "/etc/passwd"] {
            let error = find(unknown).unwrap_err();
            assert_eq!(error.report.refusals[0].code, codes::CONVERSATION_UNKNOWN, "{unknown}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_out_of_the_root_does_not_count_as_a_conversation() {
        let (dir, environment, root) = workspace(&[("a.yaml", "one")]);
        let link = root.dir().join("link.yaml");
        std::os::unix::fs::symlink(dir.path().join("outside.yaml"), link).unwrap();
        let talks = list(&environment, &root).unwrap();
        assert_eq!(talks.len(), 1, "{talks:?}");
    }
}
