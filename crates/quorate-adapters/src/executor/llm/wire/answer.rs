//! What the wires share in reading a response: the answer so far, and the caps.

use quorate_kernel::ports::executor::Usage;
use quorate_protocol::answers;
use serde::de::DeserializeOwned;

use crate::executor::llm::fault::{Fault, Kind, quoted};

/// The answer as far as it was read.
#[derive(Debug, Default)]
pub(super) struct Answer {
    text: String,
    /// How much of the text was handed out, in bytes.
    handed_out: usize,
    refusal: String,
    pub(super) model: Option<String>,
    pub(super) usage: Usage,
}

/// What an event of a response leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    More,
    /// It was the last event, and the answer is complete.
    Done,
}

impl Answer {
    /// Adds to the text.
    ///
    /// # Errors
    /// When the text is longer than an answer may be.
    pub(super) fn add_text(&mut self, text: &str) -> Result<Step, Fault> {
        if self.text.len() + text.len() > answers::MAX_BYTES {
            let said = format!("the answer is longer than {} bytes", answers::MAX_BYTES);
            return Err(Fault::new(Kind::TooLarge, said));
        }
        self.text.push_str(text);
        Ok(Step::More)
    }

    /// What was added to the text since the last time.
    pub(super) fn take_delta(&mut self) -> Option<String> {
        let delta = &self.text[self.handed_out..];
        self.handed_out = self.text.len();
        (!delta.is_empty()).then(|| delta.to_owned())
    }

    /// Adds to the words in which the model refuses. Only their beginning is kept.
    pub(super) fn add_refusal(&mut self, text: &str) {
        if self.refusal.len() < 4_096 {
            self.refusal.push_str(text);
        }
    }

    /// Takes the model's name, where the event gives one.
    pub(super) fn name_model(&mut self, name: Option<String>) {
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            self.model = Some(quoted(&name));
        }
    }

    /// The text of a complete answer.
    ///
    /// # Errors
    /// When the model refused, or said nothing.
    pub(super) fn take_text(&mut self) -> Result<String, Fault> {
        if !self.refusal.is_empty() {
            return Err(Fault::new(Kind::Refused { category: None }, &self.refusal));
        }
        if self.text.trim().is_empty() {
            return Err(Fault::new(Kind::Empty, ""));
        }
        Ok(std::mem::take(&mut self.text))
    }
}

/// Reads the JSON of one event. Keys that the type does not name are passed over.
///
/// # Errors
/// When it is not JSON, names one of these keys twice, or a value has another type than documented.
pub(super) fn read<T: DeserializeOwned>(data: &str) -> Result<T, Fault> {
    serde_json::from_str(data).map_err(|error| Fault::new(Kind::Malformed, error.to_string()))
}

/// Why an answer ended, once another event says so. A reason that is no end of an answer stays.
pub(super) fn later_reason(
    old: Option<String>,
    new: Option<String>,
    is_end: impl Fn(&str) -> bool,
) -> Option<String> {
    match old {
        Some(old) if !is_end(&old) => Some(old),
        old => new.or(old),
    }
}

/// The fault of an answer that ended for a reason that is no end of an answer.
pub(super) fn stopped_for(reason: Option<&str>) -> Fault {
    let said = match reason {
        Some(reason) => format!("the model stopped for `{reason}`"),
        None => "the stream does not say why the model stopped".to_owned(),
    };
    Fault::new(Kind::Malformed, said)
}
