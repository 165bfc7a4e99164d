//! The rubric executor: a deterministic reviewer of prose that works offline and asks no model.
//!
//! It reads the typed parts of an invocation, never the prompt, through the lens that the member's id or role names,
//! and answers from counted findings; as a member of an assembly, by the lists of its persona; in a conversation, with a
//! few sentences; reflecting, with what was found again and again. `docs/rubric.md` says what is looked for, and the rules.
//! This file owns the port and its settings; `rubric/document.rs` parses texts, `rubric/scope.rs` refuses those that no rule
//! can judge, `rubric/checks.toml` and `rubric/checks.rs` have the checks, `rubric/review.rs` scores their findings,
//! `rubric/member.rs` serves assemblies, and `rubric/reflection.rs` reflects. `rubric/corpus/` has the texts that test
//! all of it.

mod adjudication;
mod checks;
mod criteria;
mod document;
mod finding;
mod member;
mod phrases;
mod reflection;
mod review;
mod scope;
#[cfg(test)]
mod tests;
mod turn;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use quorate_diagnostics::invisible::escape_invisible;
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::executor::{
    About, ConfigError, Executor, Failure, Invocation, Reply, Settings, SideEffect,
};
use quorate_protocol::answers::Schema;
use quorate_protocol::answers::advice::Turn;
use quorate_protocol::{Json, Part, PartKind};
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

use checks::{Criteria, Severities};
use criteria::{BannedPhrases, Goals};
use document::Document;
use finding::{Lens, Severity};
use member::Question;
use quorate_kernel::files;

use crate::block::Block;

/// The version of the rules. It changes when some text would be answered otherwise, so that a sweep judges again.
const RULES_VERSION: u32 = 6;

/// The kind, as settings name it.
pub const KIND: &str = crate::optional_kinds::RUBRIC;

/// Why it answers no question about a text's meaning.
const NO_MEANING: &str = "the rubric cannot say what a text means; name another executor";

/// Builds a rubric executor.
///
/// Its block may hold `banned` (strings: phrases, or `/regular expressions/`), `banned_defaults` (true), `goals`
/// (the path of a goals document, relative to the settings' directory) and `severity` (by the id of a check).
///
/// # Errors
/// Any other key, a value of the wrong kind, a pattern that does not compile, a goals document that cannot be read, a
/// check that does not exist.
pub fn new(settings: &Settings) -> Result<Arc<dyn Executor>, ConfigError> {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Ok(Arc::new(RubricExecutor {
        rubric: Arc::new(read_settings(settings)?),
        processors: Semaphore::new(processors),
    }))
}

/// The rubric as an executor: no more readings at once than there are processors, since each holds its text several
/// times over.
struct RubricExecutor {
    rubric: Arc<Rubric>,
    processors: Semaphore,
}

#[async_trait]
impl Executor for RubricExecutor {
    fn about(&self) -> About {
        About { kind: KIND, asks_a_model: false, model: None }
    }

    fn fingerprint(&self) -> Json {
        json!({"rules": RULES_VERSION, "reads": self.rubric.file_hashes})
    }

    fn refuses(&self, answer: Schema) -> Option<String> {
        (answer == Schema::Predicate).then(|| NO_MEANING.to_owned())
    }

    /// Answers quote the goals, so that a document from outside ends up in the ledger and in reports.
    fn side_effects(&self) -> Vec<SideEffect> {
        let side_effect = |path: &PathBuf| SideEffect::new(format!("quote goals from {}", path.display()));
        self.rubric.outside_path.iter().map(side_effect).collect()
    }

    async fn invoke(&self, invocation: Invocation) -> Result<Reply, Failure> {
        let _processor = self.processors.acquire().await;
        let (rubric, notes) = (self.rubric.clone(), invocation.notes.clone());
        // Reading keeps a processor busy, for seconds when the text is long; deadlines and interruptions go on.
        let read = tokio::task::spawn_blocking(move || rubric.answer_to(&invocation)).await;
        let text = read.map_err(|error| Failure::failed(format!("the reading broke off: {error}")))?;
        // The rubric depends on no service.
        let text = text.map_err(|failure| notes.without_stand_in(failure))?;
        Ok(Reply { text, ..Reply::default() })
    }
}

impl Rubric {
    /// The answer to an invocation, a JSON object.
    fn answer_to(&self, invocation: &Invocation) -> Result<String, Failure> {
        let Invocation { member, step, role, persona, answer_schema: form, parts, .. } = invocation;
        match form {
            Schema::PlainText => return self.conversation_turn(invocation),
            Schema::Turn => {
                return Ok(Turn::plain_text_answer(&self.conversation_turn(invocation)?).to_string());
            }
            Schema::Selection => {
                return Err(Failure::failed(
                    "the rubric reads prose by rule and cannot choose who speaks; name another executor",
                ));
            }
            Schema::Tier => {
                return Err(Failure::never(
                    "the rubric cannot say the tier of a text; name another executor",
                ));
            }
            Schema::Predicate => {
                return Err(Failure::never(NO_MEANING));
            }
            Schema::Deltas => return Ok(escape_answer(&reflection::deltas(parts))),
            Schema::Judgement => return Ok(reflection::judgement().to_string()),
            Schema::FirstAnswer | Schema::SecondAnswer | Schema::Adjudication => {
                return self.council_answer(member, step, role, parts);
            }
            Schema::Advice | Schema::Ballot | Schema::Message => {}
        }
        let question = Question { step, role, persona: persona.as_deref(), parts };
        let goals = self.goals.clone().unwrap_or_default();
        Ok(escape_answer(&member::answer(*form, &question, &self.criteria(&goals, &[]))?))
    }

    /// The text of a turn in a conversation.
    fn conversation_turn(&self, invocation: &Invocation) -> Result<String, Failure> {
        let Invocation { member, role, parts, conversation: speaking, .. } = invocation;
        let goals = self.goals.clone().unwrap_or_default();
        turn::reply(Lens::of(member, role), speaking.as_deref(), parts, &self.criteria(&goals, &[]))
    }

    fn criteria<'a>(&'a self, goals: &'a Goals, context: &'a [Document<'a>]) -> Criteria<'a> {
        Criteria { banned: &self.banned, goals, context, severities: &self.severities }
    }

    /// The answer to one member of a council, a JSON object. In the second round a member repeats its first answer.
    fn council_answer(
        &self,
        member: &str,
        step: &str,
        role: &str,
        parts: &[Part],
    ) -> Result<String, Failure> {
        let part = |kind: PartKind| parts.iter().find(|part| part.kind == kind);
        let artifact =
            part(PartKind::Artifact).ok_or_else(|| Failure::failed("the invocation has no artifact"))?;
        if step == "adjudicate" {
            let text = |kind| part(kind).map(|part| &*part.text);
            let first = text(PartKind::CrossRead).unwrap_or_default();
            let last = text(PartKind::SecondAnswers).unwrap_or(first);
            let priors = text(PartKind::PriorVerdicts).unwrap_or_default();
            return Ok(adjudication::adjudicate(&artifact.name, last, first, priors).to_string());
        }
        let document = Document::parse(&artifact.name, &artifact.text);
        if let Some(why) = scope::obstacle(&artifact.name, &document) {
            return Err(Failure::never(format!(
                "the rubric cannot judge this text: {why}; choose another `--executor`"
            )));
        }
        let lens = Lens::of(member, role);
        let context: Vec<&Part> = parts.iter().filter(|part| part.kind == PartKind::Context).collect();
        let given: Vec<Document<'_>> =
            context.iter().map(|part| Document::parse(&part.name, &part.text)).collect();
        let goals = self.goals_for(lens, &context);
        Ok(review::answer(lens, &document, &self.criteria(&goals, &given)).to_string())
    }

    /// The goals of the settings, and for a member that reads for strategy those that it was given.
    fn goals_for(&self, lens: Lens, context: &[&Part]) -> Goals {
        let mut goals = self.goals.clone().unwrap_or_default();
        if lens == Lens::Strategy {
            context.iter().for_each(|part| goals.extend(Goals::read(&part.text)));
        }
        goals
    }
}

/// An answer that is passed on to agents: invisible characters in its quotations are made visible.
fn escape_answer(answer: &Json) -> String {
    escape_invisible(&answer.to_string()).into_owned()
}

/// The longest goals document that is read, in bytes.
const GOALS_CAP: u64 = 1024 * 1024;

/// The criteria from the settings.
#[derive(Debug)]
struct Rubric {
    banned: BannedPhrases,
    severities: Severities,
    goals: Option<Goals>,
    /// Path and hash of every file that the settings name.
    file_hashes: Vec<(String, String)>,
    /// The goals document, if it is outside of the settings' directory.
    outside_path: Option<PathBuf>,
}

/// Reads the settings of an executor.
///
/// # Errors
/// As [`new`].
fn read_settings(settings: &Settings) -> Result<Rubric, ConfigError> {
    let block = Block::parse(&settings.block, &["banned", "banned_defaults", "goals", "severity"])?;
    let defaults = !block.has("banned_defaults") || block.flag("banned_defaults")?;
    let banned = BannedPhrases::new(defaults, &block.texts("banned")?).map_err(|why| {
        ConfigError::for_key("banned", why)
            .with_help("write a literal phrase, or a regular expression between slashes")
    })?;
    let severities = block.table("severity")?.map_or(Ok(Severities::new()), severities)?;
    let (mut file_hashes, mut outside_path, mut goals) = (Vec::new(), None, None);
    if let Some(path) = block.text("goals")? {
        let text = read_goals_text(&settings.dir, path)?;
        file_hashes.push((path.to_owned(), sha256_hex(text.as_bytes())));
        outside_path = files::path_outside(&settings.dir, &settings.dir.join(path));
        goals = Some(Goals::read(&text));
    }
    Ok(Rubric { banned, severities, goals, file_hashes, outside_path })
}

/// The severities that a table sets by the ids of checks: `minor`, `major`, `critical`, or `off`.
fn severities(table: &Map<String, Value>) -> Result<Severities, ConfigError> {
    let refusal = |message: String| {
        let ids: Vec<String> = checks::ALL.iter().map(|check| check.name.replace(' ', "-")).collect();
        ConfigError::for_key("severity", message).with_help(format!("the checks are {}", ids.join(", ")))
    };
    let one = |(id, word): (&String, &Value)| {
        let check = checks::named(id).ok_or_else(|| refusal(format!("the rubric has no check `{id}`")))?;
        let severity = match word.as_str() {
            Some("off") => None,
            word => Some(word.and_then(Severity::parse).ok_or_else(|| {
                refusal(format!("the severity of `{id}` must be `minor`, `major`, `critical` or `off`"))
            })?),
        };
        Ok((check.name.as_str(), severity))
    };
    table.iter().map(one).collect()
}

fn read_goals_text(dir: &Path, path: &str) -> Result<String, ConfigError> {
    files::read_text(&dir.join(path), GOALS_CAP).map_err(|error| {
        let reason = match error.kind() {
            std::io::ErrorKind::FileTooLarge => "it is over 1 MiB".to_owned(),
            _ => error.to_string(),
        };
        ConfigError::for_key("goals", format!("the goals document `{path}` cannot be read: {reason}"))
    })
}
