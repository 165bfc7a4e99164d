//! The course of a run: who is about to be asked, keys that came later, its end, and what a person decided.
//! Also how a run was started, and what the host did for it.

use quorate_manifest::money::Money;
use quorate_protocol::{Json, Name, SemanticHit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Map;

use super::{RecordData, Spent, lenient, readable_items};
use crate::budget::Amount;
use crate::ports::ledger::Kind;

record_data! {
    /// Calls are about to be made; each that has no consultation later counts as spent.
    #[derive(Eq)]
    pub struct RunIntent: RunIntent {
        pub invocations: Vec<Name> = "readable_items",
        /// The amount reserved for the next call of an invocation, if the run's tokens or money are capped.
        pub reserved[]: Reserved,
        /// How many samples are about to be asked, of each invocation that has several.
        pub samples[]: SampledInvocation,
        /// The comparisons by meaning that begin now: those that ask questions, and others if tokens or money are capped.
        pub compares[]: Compares,
        /// Whether a process begins with it that continues with the run.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        pub resumes: bool,
        /// Invocations superseded by a later event.
        pub supersedes[]: Name,
    }
}

/// The most that one call may take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reserved {
    pub invocation: Name,
    /// The number of the sample, where the member is asked for several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<u32>,
    #[serde(flatten)]
    pub most: Amount,
}

/// An invocation with several samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampledInvocation {
    pub invocation: Name,
    pub samples: u32,
}

/// The most that one comparison takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compares {
    pub candidate: Name,
    /// How many questions it asks, retries included; requests of an embedder are not calls.
    #[serde(default, skip_serializing_if = "is_none")]
    pub calls: u64,
    /// The amount, if the run's tokens or money are capped.
    #[serde(flatten)]
    pub most: Amount,
}

fn is_none(calls: &u64) -> bool {
    *calls == 0
}

record_data! {
    /// Everything that follows from the outcome is done.
    #[derive(Eq)]
    pub struct RunEnded: RunEnded {
        /// Whether its lines are in a log.
        pub logged: bool,
        /// The log, where it is another one than its first record names.
        pub log_path?: String,
        /// Its first record with file names in place of absolute paths: reports leave that record out.
        pub opened?: Map<String, Json>,
    }

    /// A person decided otherwise.
    #[derive(Eq, JsonSchema)]
    #[schemars(inline, deny_unknown_fields)]
    pub struct Override: Override {
        /// The person's verdict: `SHIP`, `REVISE` or `HOLD`.
        pub verdict: String,
        /// The reason, in the person's words.
        pub reason: String,
        /// The person's name.
        pub by: String,
        /// What the council had decided.
        #[schemars(skip)]
        pub council_verdict: Option<String>,
        /// `Some(false)` where its line was still to be logged when it was recorded.
        #[schemars(skip)]
        pub logged?: bool,
    }
}

impl Override {
    /// Whether its line was still to be logged when it was recorded; then the run ends once more when it is.
    pub fn is_unlogged(&self) -> bool {
        self.logged == Some(false)
    }
}

record_data! {
    /// Keys that may sign for the run from here on.
    pub struct Keyring: Keyring {
        /// Each is vouched for by a key that could sign before; the ledger reads and checks them.
        pub vouched: Vec<Json>,
    }

    /// The first record of a run.
    pub struct RunOpened: RunOpened {
        /// The protocol with its version: `council/1`, `voting/1`, …
        pub protocol: String,
        /// The program that opened it.
        pub program: String,
        /// The protocol's setup.
        pub setup: Json = plain,
        /// Hashes by component.
        pub fingerprint: Map<String, Json>,
        /// Hexadecimal.
        pub seed: String,
        /// The subject: a path, or `-`.
        pub subject: Option<String>,
        /// `None` for standard input, and where the path had a secret in it.
        pub artifact_path: Option<String>,
        pub artifact_sha256: Option<String>,
        pub inputs: Vec<Input> = "readable_items",
        /// How many secrets were redacted.
        pub redactions: u64,
        /// The invisible text of the draft, if it has any.
        pub hidden?: HiddenText,
        /// The executors of all members, each once.
        pub executors: Vec<ExecutorUsed> = "readable_items",
        /// The executors that may stand in for these, each once.
        pub stand_ins[]: ExecutorUsed,
        /// The executor that the user named for all members; inside, `None` if the user named none.
        pub executor?: Option<String>,
        /// The model that the user named.
        pub model: Option<String>,
        /// The cap on calls, which applies until a later record changes it (X8).
        pub max_calls: Option<u32> = "saturating",
        /// The cap on tokens, likewise.
        pub max_tokens?: u64,
        /// The cap on money, likewise.
        pub max_money?: Money,
        /// The council's file; `None` for the built-in one.
        pub config: Option<String>,
        /// `quorate.toml`; `None` where there was none.
        pub host: Option<String>,
        pub producer: Option<Producer>,
        /// Where it was queued, if it was.
        pub queued?: Queued,
        /// The artifact's type of a review, the name of an assembly.
        pub artifact_type: Option<String>,
        /// Who signs, and how long answers are kept; `None` where the workspace's settings hold.
        pub audit?: RunAudit,
        /// The files that it was set up from: of a review with their hashes, of an assembly from the root to the view.
        #[serde(skip_serializing_if = "Json::is_null")]
        pub files: Json = plain,
        // The following fields are of reviews alone.
        pub tier?: u64,
        /// Who said the tier, where a model did or should have.
        pub tier_source?: TierSource,
        /// Earlier verdicts on texts of the same type, newest first.
        pub priors?: Vec<Json>,
        pub log_path?: String,
        /// How long the log was; the run's lines are behind that.
        pub log_bytes?: u64,
        // The following fields are of assemblies alone.
        pub title?: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub grouping: Option<Json> = plain,
        /// How many messages the conversation had.
        pub messages?: u64,
        /// The texts of the overlays that were active, the weightiest first.
        pub overlays?: Vec<Json>,
        pub manifest?: String,
        pub root?: String,
    }
}

impl RunOpened {
    /// The record's data with file names in place of absolute paths, as the run's end restates it. The setup and overlays
    /// have members' texts, not paths. A reader may run another system than the one that recorded a path.
    pub fn without_directories(&self) -> Map<String, Json> {
        fn shorten(value: &mut Json) {
            match value {
                Json::String(text) => {
                    let path = text.trim_end_matches('/');
                    let name = match text.starts_with('/') {
                        true => path.rsplit('/').next(),
                        false if text.starts_with('\\') || text.get(1..3) == Some(":\\") => {
                            path.rsplit(['/', '\\']).next()
                        }
                        false => None,
                    };
                    if let Some(name) = name.map(str::to_owned) {
                        *text = name;
                    }
                }
                Json::Array(items) => items.iter_mut().for_each(shorten),
                Json::Object(fields) => fields.values_mut().for_each(shorten),
                _ => {}
            }
        }
        let mut data = super::to_data(self);
        let fields = data.iter_mut().filter(|(name, _)| !["setup", "overlays"].contains(&name.as_str()));
        fields.for_each(|(_, value)| shorten(value));
        data
    }

    /// Whether a model is asked.
    pub fn asks_a_model(&self) -> bool {
        self.executors.iter().any(|executor| executor.asks_a_model)
    }

    /// The names of the executors, each once, for people: one may be asked for several models.
    pub fn executor_names(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        for executor in &self.executors {
            if !names.contains(&&*executor.name) {
                names.push(&executor.name);
            }
        }
        names.join(", ")
    }

    /// Why its input is not its artifact, if so (D14): the members were shown another text, although nothing was redacted.
    pub fn input_mismatch(&self) -> Option<String> {
        let artifact = self.artifact_sha256.as_ref().filter(|_| self.redactions == 0)?;
        let expected = HiddenText::visible_sha256(self.hidden.as_ref(), artifact);
        let input = self.inputs.iter().find(|input| input.sha256 != expected)?;
        let shown = &input.sha256;
        Some(format!("its input {shown} is not its artifact {artifact}, although nothing was redacted"))
    }

    /// A component of the fingerprint.
    pub fn fingerprint_of(&self, component: &str) -> Option<&str> {
        self.fingerprint.get(component)?.as_str()
    }
}

impl HiddenText {
    /// The hash of the text that members see of an artifact with this hidden text, before redaction.
    pub fn visible_sha256<'a>(hidden: Option<&'a HiddenText>, artifact_sha256: &'a str) -> &'a str {
        hidden.and_then(|hidden| hidden.visible_sha256.as_deref()).unwrap_or(artifact_sha256)
    }
}

record_data! {
    /// How a model came to say the tier of a text. The question is recorded in a stream of its own, `council/tiers`.
    #[derive(Eq)]
    pub struct TierSource {
        /// The question, which the hash of text and executor identifies.
        pub invocation: Name,
        /// The model's reason, or the reason for the missing answer.
        pub reason: String,
        /// Whether there was an answer; without one the tier is the strictest.
        pub answered: bool,
        /// What the question cost this run; `None` where the answer was recorded before.
        pub spent?: Spent,
    }

    /// The invisible text of a draft.
    #[derive(Eq)]
    pub struct HiddenText {
        /// The characters of its content credentials, which members do not see.
        pub credentials?: u64,
        /// The hash of the text without its content credentials.
        pub visible_sha256?: String,
        /// How many other invisible characters it has, if many; members see them.
        pub invisible?: u64,
        /// The line where the longest row of them begins.
        pub line?: u64,
        /// Where content credentials were within a line.
        pub gap?: Gap,
    }

    /// Characters of a line that are not in the text that members see.
    #[derive(Eq)]
    pub struct Gap {
        pub line: u64,
        /// The column that follows them, in the text that members see.
        pub column: u64,
        pub characters: u64,
    }

    /// A text that was deliberated on.
    #[derive(Eq)]
    pub struct Input {
        pub kind: String,
        pub name: String,
        pub sha256: String,
    }

    /// Who answered.
    #[derive(Eq)]
    pub struct ExecutorUsed {
        pub name: String,
        pub kind: String,
        pub model: Option<String>,
        pub asks_a_model: bool,
        /// The tools that it has; `None` where that is not known.
        pub tools: Option<Vec<String>>,
    }
}

/// The author of the judged text.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Producer {
    pub operator: String,
    /// The playbooks in shadow that were in its prompt then.
    pub trying: Vec<String>,
    /// A sketch of what was made.
    #[serde(default)]
    pub sketch: Json,
}

record_data! {
    /// The queue that a run comes from: a worker held it, without the files of the machine that queued it.
    #[derive(Eq)]
    pub struct Queued {
        pub tenant: String,
        /// What was queued together.
        pub batch: String,
    }

    /// Who signs the records of a run, and how long its answers are kept.
    #[derive(Eq)]
    pub struct RunAudit {
        /// `required`, `optional` or `none`.
        pub signing: String,
        /// The id of the key that was to sign.
        pub signer: Option<String>,
        /// The public keys whose signatures count.
        pub keyring: Vec<String> = "readable_items",
        /// Whether governance bound them.
        pub governed: bool,
        pub retention_days: Option<u32> = "saturating",
        /// `Some(false)` where answers are erased when the run ends.
        pub keep_consultations: Option<bool>,
    }
}

/// A count that may be greater than this version writes.
fn saturating<'de, D: serde::Deserializer<'de>>(field: D) -> Result<Option<u32>, D::Error> {
    let count: Option<u64> = lenient(field)?;
    Ok(count.map(|count| u32::try_from(count).unwrap_or(u32::MAX)))
}

record_data! {
    /// A gather strategy ended.
    #[derive(Eq)]
    pub struct Gathered: Gathered {
        /// The invocation that it was for; a record without one stands for no event.
        pub invocation: Option<Name>,
        pub member: Name,
        pub strategy: Name,
        /// What was gathered; `None` where it failed.
        pub text?: String,
        pub error?: String,
    }

    /// Texts were compared with traits by meaning.
    pub struct Match: Match {
        /// The candidate outcome; a record without one stands for no event.
        pub candidate: Option<Name>,
        /// The embedder's model, or the one that was asked.
        pub model: String,
        /// `question` where an executor was asked; absent where vectors were compared.
        pub way?: String,
        /// The executor that was asked, or one that answered in its place.
        pub executor?: String,
        /// The executor that was asked, if another one answered in its place.
        pub stand_in_for?: String,
        /// Whether a model is behind the executor, and not a recording; absent where vectors were compared.
        pub asks_a_model?: bool,
        /// The highest probability that a decision model gave for a passage.
        pub probability?: f64,
        /// What came near a trait; `None` where it failed.
        pub near?: Vec<SemanticHit>,
        pub error?: String,
        /// What the embedder's requests took, where it made any that are paid for, or the questions; `calls` are these.
        pub spent?: Spent,
        /// What they count as against the run's caps on tokens and money.
        pub charged?: Amount,
    }

    /// A custom rule was applied. The rule records of protocols have no ticket.
    pub struct HostRule: Rule {
        pub ticket: Option<Name>,
        /// The rule's kind.
        pub kind: Name,
        /// What it gave; `None` where it failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub output: Option<Json> = "present",
        pub error?: String,
    }
}

/// Null is an output.
fn present<'de, D: serde::Deserializer<'de>>(field: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(field).map(Some)
}
