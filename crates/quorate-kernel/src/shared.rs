//! Answers that runs share: a question that another run has put to the same executor in the same words is not asked again.
//!
//! The words are the whole prompt. Runs share an answer only if they have the same seed, from which the prompt's nonce follows.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use quorate_protocol::Json;

use crate::ports::executor::{Invocation, Reply, Usage};

/// The name of an executor, and the hash of a prompt.
pub(crate) type Question = (String, String);

/// Answers by question.
#[derive(Debug, Default)]
pub struct SharedAnswers(Mutex<BTreeMap<Question, (Json, Option<String>)>>);

impl SharedAnswers {
    pub(crate) fn keep(&self, question: Question, answer: &Json, model: Option<String>) {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        answers.entry(question).or_insert_with(|| (answer.clone(), model));
    }

    /// The reply to a question that was answered, noted as recorded and without a price.
    pub(crate) fn reply(&self, question: &Question, invocation: &Invocation) -> Option<Reply> {
        let (answer, model) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(question)?.clone();
        invocation.notes.note(|noted| {
            noted.recorded = true;
            noted.usage = Some(Usage::default());
        });
        Some(Reply { text: answer.to_string(), model, ..Reply::default() })
    }
}
