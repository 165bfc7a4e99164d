//! The messages between the asking process and the one that serves a participant, as JSON.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::executor::{AttemptInfo, Failure, Invocation, Notes, Reply, Retry, Usage};
use quorate_protocol::answers::Schema;
use quorate_protocol::{Name, PartKind};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::turn_answer;

/// The version of both forms; a question of another version is refused.
pub(super) const VERSION: u32 = 1;

/// A question.
#[derive(Serialize, Deserialize)]
pub(super) struct Question {
    pub(super) v: u32,
    pub(super) run: Name,
    pub(super) id: Name,
    pub(super) step: Name,
    pub(super) attempt: u32,
    /// A name of the asking process: it counts once, however often it sends the question.
    pub(super) asker: String,
    pub(super) prompt: Arc<str>,
    pub(super) cuts: Vec<usize>,
    /// `text` or `json`.
    pub(super) answer: String,
    pub(super) nonce: Arc<str>,
    /// How long the answer is waited for.
    pub(super) wait_ms: u64,
    /// The last turns of the conversation, and what the participant remembers, as the prompt has them.
    turns: Option<Text>,
    state: Option<Text>,
    role: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) external_id: Option<String>,
}

/// A text that is often a part of the prompt, and then not sent twice.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Text {
    InPrompt(Range<usize>),
    Own(String),
}

impl Text {
    fn of(text: &str, prompt: &str) -> Text {
        match prompt.find(text) {
            Some(at) => Text::InPrompt(at..at + text.len()),
            None => Text::Own(text.to_owned()),
        }
    }

    fn read<'t>(&'t self, prompt: &'t str) -> Option<&'t str> {
        match self {
            Text::InPrompt(range) => prompt.get(range.clone()),
            Text::Own(text) => Some(text),
        }
    }
}

impl Question {
    pub(super) fn of(invocation: &Invocation, asker: &str) -> Question {
        let prompt = &invocation.prompt;
        let part = |kind: PartKind| {
            let part = invocation.parts.iter().find(|part| part.kind == kind)?;
            Some(Text::of(&part.text, prompt))
        };
        let left = invocation.deadline.saturating_duration_since(Instant::now());
        Question {
            v: VERSION,
            run: invocation.run.clone(),
            id: invocation.id.clone(),
            step: invocation.step.clone(),
            attempt: invocation.attempt,
            asker: asker.to_owned(),
            prompt: prompt.clone(),
            cuts: invocation.cuts.to_vec(),
            answer: turn_answer::name(invocation.answer_schema).to_owned(),
            nonce: invocation.nonce.clone(),
            wait_ms: u64::try_from(left.as_millis()).unwrap_or(u64::MAX),
            turns: part(PartKind::Turns),
            state: part(PartKind::State),
            role: Text::of(&invocation.role, prompt),
            external_id: invocation.conversation.as_ref().and_then(|context| context.external_id.clone()),
        }
    }

    pub(super) fn write(&self) -> Vec<u8> {
        // Its keys are texts and its numbers finite, so that writing cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub(super) fn schema(&self) -> Option<Schema> {
        turn_answer::parse(Some(&self.answer)).ok()
    }

    pub(super) fn turns(&self) -> &str {
        self.turns.as_ref().and_then(|text| text.read(&self.prompt)).unwrap_or("[]")
    }

    pub(super) fn state(&self) -> &str {
        self.state.as_ref().and_then(|text| text.read(&self.prompt)).unwrap_or("{}")
    }

    /// Whether the nonce is one that Quorate makes: 16 hexadecimal digits, which say nothing to a model.
    pub(super) fn has_valid_nonce(&self) -> bool {
        self.nonce.len() == 16 && self.nonce.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    }

    /// The SHA-256 of all that is asked, without the nonce, which a restart of the asking side changes. An answer is given
    /// again for the same content alone, so that no other client can have it prepared by a question of its own.
    pub(super) fn content_sha256(&self) -> String {
        let parts = [&*self.prompt, self.role(), self.turns(), self.state(), &*self.answer];
        sha256_hex(parts.map(|part| part.replace(&*self.nonce, "")).join("\0").as_bytes())
    }

    pub(super) fn role(&self) -> &str {
        self.role.read(&self.prompt).unwrap_or_default()
    }
}

/// What comes back.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Message {
    /// It works on it: so many bytes of the answer came in since the last message. The asker's name to `withdraw` says that it waits no more.
    AtWork {
        bytes: usize,
        withdraw: String,
    },
    Answered(Box<Answer>),
}

impl Message {
    pub(super) fn parse(payload: &[u8]) -> Option<Message> {
        serde_json::from_slice(payload).ok()
    }

    pub(super) fn write(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// How it ended.
#[derive(Serialize, Deserialize)]
pub(super) struct Answer {
    result: Outcome,
    /// What is known of the call, however it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_words: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Text {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        #[serde(default)]
        usage: Usage,
    },
    TimedOut,
    Failed {
        message: String,
        /// `soon`, `never`, or after how many milliseconds.
        retry: WireRetry,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WireRetry {
    Soon,
    After(u64),
    Never,
}

impl Answer {
    /// The result of a call, with what was noted meanwhile.
    pub(super) fn of(result: Result<Reply, Failure>, info: AttemptInfo) -> Answer {
        let result = match result {
            Ok(Reply { text, model, usage, posted: _ }) => Outcome::Text { text, model, usage },
            Err(Failure::TimedOut) => Outcome::TimedOut,
            Err(Failure::Failed { message, retry }) => Outcome::Failed {
                message,
                retry: match retry {
                    Retry::Soon => WireRetry::Soon,
                    Retry::After(pause) => {
                        WireRetry::After(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX))
                    }
                    Retry::Never => WireRetry::Never,
                },
            },
        };
        let AttemptInfo { usage, model, version, recorded: _, last_words, http_status: _ } = info;
        Answer { result, model, version, last_words, usage }
    }

    /// Why there is no answer.
    pub(super) fn failure(&self) -> Option<String> {
        match &self.result {
            Outcome::Text { .. } => None,
            Outcome::TimedOut => Some(Failure::TimedOut.to_string()),
            Outcome::Failed { message, .. } => Some(message.clone()),
        }
    }

    /// The result, with what is known of the call noted.
    pub(super) fn note(self, notes: &Notes) -> Result<Reply, Failure> {
        notes.note(|info| {
            info.usage = self.usage.or(info.usage);
            info.model = self.model.or(info.model.take());
            info.version = self.version.or(info.version.take());
            info.last_words = self.last_words.or(info.last_words.take());
        });
        match self.result {
            Outcome::Text { text, model, usage } => Ok(Reply { text, model, usage, posted: None }),
            Outcome::TimedOut => Err(Failure::TimedOut),
            Outcome::Failed { message, retry } => Err(Failure::Failed {
                message,
                retry: match retry {
                    WireRetry::Soon => Retry::Soon,
                    WireRetry::After(ms) => Retry::After(Duration::from_millis(ms)),
                    WireRetry::Never => Retry::Never,
                },
            }),
        }
    }
}
