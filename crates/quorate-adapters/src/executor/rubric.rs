//! The rubric executor: a deterministic reviewer of prose that works offline and asks no model.
//!
//! It reads the typed parts of an invocation, never the prompt, through the lens that the member's id or role names,
//! and answers from counted findings; as a member of an assembly, by the lists of its persona; in a conversation, with a
//! few sentences; reflecting, with what was found again and again. `docs/rubric.md` says what is looked for, and the rules.
//! This file owns the port; `rubric/document.rs` parses texts, `rubric/substance.rs` refuses those that no rule can judge,
//! `rubric/checks/` has the checks, `rubric/scoring.rs` scores
//! their findings, `rubric/member.rs` serves assemblies, and `rubric/reflection.rs` reflects.

mod adjudication;
mod banned;
mod checks;
mod document;
mod finding;
mod goals;
mod lens;
mod lens_review;
mod lexicon;
mod member;
mod peer_answers;
mod reflection;
mod scoring;
mod second_round;
mod settings;
mod substance;
mod topics;
mod turn;
mod unread;

#[cfg(test)]
mod examples_tests;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use quorate_diagnostics::invisible::escape_invisible;
use quorate_kernel::ports::executor::{
    About, ConfigError, Executor, Failure, Invocation, Reply, Settings, SideEffect,
};
use quorate_protocol::answers::Schema;
use quorate_protocol::answers::turn::Turn;
use quorate_protocol::{Json, Part, PartKind};
use serde_json::json;
use tokio::sync::Semaphore;

use checks::Criteria;
use document::Document;
use goals::Goals;
use lens::Lens;
use lens_review::LensReview;
use member::Question;
use settings::Rubric;

/// The version of the rules. It changes when some text would be answered otherwise, so that a sweep judges again.
const RULES_VERSION: u32 = 5;

/// The kind, as settings name it.
pub const KIND: &str = "rubric";

/// Builds a rubric executor.
///
/// Its block may hold `banned` (strings: phrases, or `/regular expressions/`), `banned_defaults` (true) and `goals`
/// (the path of a goals document, relative to the settings' directory).
///
/// # Errors
/// Any other key, a value of the wrong kind, a pattern that does not compile, a goals document that cannot be read.
pub fn new(settings: &Settings) -> Result<Arc<dyn Executor>, ConfigError> {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Ok(Arc::new(RubricExecutor {
        rubric: Arc::new(settings::read(settings)?),
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

    /// Answers quote the goals, so that a document from outside ends up in the ledger and in reports.
    fn side_effects(&self) -> Vec<SideEffect> {
        let side_effect = |path: &PathBuf| SideEffect::new(format!("quote goals from {}", path.display()));
        self.rubric.outside_path.iter().map(side_effect).collect()
    }

    async fn invoke(&self, invocation: Invocation) -> Result<Reply, Failure> {
        let _processor = self.processors.acquire().await;
        let rubric = self.rubric.clone();
        // Reading keeps a processor busy, for seconds when the text is long; deadlines and interruptions go on.
        let read = tokio::task::spawn_blocking(move || rubric.answer_to(&invocation)).await;
        let text = read.map_err(|error| Failure::failed(format!("the reading broke off: {error}")))??;
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
            Schema::Deltas => return Ok(escape_answer(&reflection::deltas(parts))),
            Schema::Judgement => return Ok(reflection::judgement().to_string()),
            Schema::FirstAnswer | Schema::SecondAnswer | Schema::Adjudication => {
                return self.council_answer(member, step, role, parts);
            }
            Schema::Advice | Schema::Ballot | Schema::Message => {}
        }
        let question = Question { step, role, persona: persona.as_deref(), parts };
        let goals = self.goals.clone().unwrap_or_default();
        let criteria = Criteria { banned: &self.banned, goals: &goals, context: &[] };
        Ok(escape_answer(&member::answer(*form, &question, &criteria)?))
    }

    /// What is said in a conversation.
    fn conversation_turn(&self, invocation: &Invocation) -> Result<String, Failure> {
        let Invocation { member, role, parts, conversation: speaking, .. } = invocation;
        let goals = self.goals.clone().unwrap_or_default();
        let criteria = Criteria { banned: &self.banned, goals: &goals, context: &[] };
        turn::reply(Lens::of(member, role), speaking.as_deref(), parts, &criteria)
    }

    /// The answer to one member of a council, a JSON object.
    fn council_answer(
        &self,
        member: &str,
        step: &str,
        role: &str,
        parts: &[Part],
    ) -> Result<String, Failure> {
        let part = |kind: PartKind| parts.iter().find(|part| part.kind == kind);
        let artifact =
            part(PartKind::Artifact).ok_or_else(|| Failure::failed("there is no artifact to read"))?;
        let document = Document::parse(&artifact.name, &artifact.text);
        let others = |kind| part(kind).map(|part| peer_answers::read(&part.text, &document));
        if step == "adjudicate" {
            let first = others(PartKind::CrossRead).unwrap_or_default();
            let last = others(PartKind::SecondAnswers).unwrap_or_else(|| first.clone());
            let priors = part(PartKind::PriorVerdicts).map_or("", |part| &*part.text);
            let input = adjudication::AdjudicationInput {
                document: &document,
                last,
                first,
                priors,
                artifact: &artifact.name,
            };
            return Ok(adjudication::adjudicate(input).to_string());
        }
        if let Some(why) = substance::obstacle(&artifact.name, &document) {
            return Err(Failure::never(format!(
                "the rubric cannot judge this text: {why}; choose another `--executor`"
            )));
        }
        let lens = Lens::of(member, role);
        let context: Vec<&Part> = parts.iter().filter(|part| part.kind == PartKind::Context).collect();
        let given: Vec<Document<'_>> =
            context.iter().map(|part| Document::parse(&part.name, &part.text)).collect();
        let goals = self.goals_for(lens, &context);
        let criteria = Criteria { banned: &self.banned, goals: &goals, context: &given };
        let mut reading = LensReview::first_round(lens, &document, &criteria);
        if let Some(others) = others(PartKind::CrossRead).filter(|_| step == "r2") {
            second_round::apply_peer_answers(&mut reading, member, &others);
        }
        Ok(reading.to_answer().to_string())
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
