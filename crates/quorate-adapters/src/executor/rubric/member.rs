//! The rubric as a member of an assembly: advice, votes and messages in the character of a persona, by counting words.
//!
//! Who the member is stands in `member/character.rs`, what it is shown in `member/subject.rs`, what it makes of that,
//! with the rule, in `member/assessment.rs`; how it says it in `member/advice.rs`, `ballot.rs` and `message.rs`. Text
//! of the material is never followed, only counted.

mod advice;
mod assessment;
mod ballot;
mod character;
mod children;
mod message;
mod related;
mod sign;
mod stems;
mod subject;
mod text;
mod topic;

#[cfg(test)]
mod tests;

use quorate_kernel::ports::executor::Failure;
use quorate_protocol::answers::Schema;
use quorate_protocol::{Json, Part, PartKind};

use super::checks::Criteria;
use assessment::Assessment;
use character::Character;
use subject::Subject;
use topic::Stance;

/// What a member of an assembly is asked.
pub(super) struct Question<'a> {
    pub(super) member: &'a str,
    /// The step; of a peer's message `round<k>`.
    pub(super) step: &'a str,
    pub(super) role: &'a str,
    /// Its persona, where it has one.
    pub(super) persona: Option<&'a Json>,
    /// What it is shown.
    pub(super) parts: &'a [Part],
}

/// Which of the three answers is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// An adviser's, or a node's.
    Advice,
    Ballot,
    Message,
}

impl Wanted {
    /// What a form wants; `None` where it is not for a member of an assembly.
    pub(super) fn of(form: Schema) -> Option<Wanted> {
        match form {
            Schema::Advice => Some(Wanted::Advice),
            Schema::Ballot => Some(Wanted::Ballot),
            Schema::Message => Some(Wanted::Message),
            Schema::FirstAnswer | Schema::SecondAnswer | Schema::Adjudication => None,
            Schema::PlainText | Schema::Turn | Schema::Selection => None,
            Schema::Deltas | Schema::Judgement => None,
        }
    }
}

/// The answer to a question, a JSON object.
///
/// # Errors
/// There is nothing to judge among the parts.
pub(super) fn answer(
    wanted: Wanted,
    question: &Question<'_>,
    criteria: &Criteria<'_>,
) -> Result<Json, Failure> {
    let (turns, name) =
        subject::turns(question.parts).ok_or_else(|| Failure::failed("there is nothing to judge"))?;
    let subject = Subject::read(&turns, name);
    let character = Character::read(question.member, question.role, question.persona);
    let assessment = assessment::assess(&character, &subject, criteria);
    Ok(match wanted {
        Wanted::Advice => {
            let child = children::gravest(children::read(question.parts));
            advice::answer(&assessment, &subject, child)
        }
        Wanted::Ballot => ballot::answer(&character, &assessment, &subject),
        Wanted::Message => {
            let round = question.step.strip_prefix("round").and_then(|round| round.parse().ok());
            let heard = question.parts.iter().find(|part| part.kind == PartKind::Transcript);
            let heard = heard.map_or("", |part| &*part.text);
            message::answer(question.member, round.unwrap_or(1).max(1), heard, &character, &assessment)
        }
    })
}

/// The questions that a persona asks and that what was assessed says nothing about.
fn unanswered<'c>(character: &'c Character, assessment: &Assessment<'_>) -> Vec<&'c str> {
    let topics = character.topics.all.iter().enumerate();
    let open = topics.filter(|(at, topic)| {
        topic.stance == Stance::Asks && !assessment.touches.iter().any(|(_, touch)| touch.topic == *at)
    });
    open.map(|(_, topic)| topic.phrase.as_str()).collect()
}

/// `a, b and c`.
fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
