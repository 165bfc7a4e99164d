//! The part of an answer that has arrived, on any wire: its text, its usage and the reason for its end.

use std::collections::BTreeSet;

use quorate_kernel::canonical::MAX_EXACT_INTEGER;
use quorate_kernel::ports::executor::Usage;
use quorate_protocol::{Json, answers};

use crate::executor::llm::fault::{Fault, FaultKind, any_of, quoted};

/// A number of tokens; `None` if it is unreadable.
pub(super) fn count(value: Option<&Json>) -> Option<u64> {
    let whole = |number: f64| (0.0..1e16).contains(&number).then(|| format!("{number:.0}"))?.parse().ok();
    let number: Option<u64> = match value? {
        Json::Number(number) => number.as_u64().or_else(|| whole(number.as_f64()?)),
        Json::String(text) => whole(text.trim().parse().ok()?),
        _ => None,
    };
    number.filter(|number| *number <= MAX_EXACT_INTEGER)
}

/// The entries of a list that belong to the first answer; a request asks for one.
///
/// # Errors
/// When the value is not a list.
pub(super) fn first_answers(list: Option<&Json>) -> Result<impl Iterator<Item = &Json>, Fault> {
    let all: &[Json] = match list {
        None | Some(Json::Null) => &[],
        Some(Json::Array(all)) => all,
        Some(_) => return Err(Fault::new(FaultKind::Malformed, "the answers are not a list")),
    };
    // An entry without a number has the number of its place.
    let number =
        |(place, one): (usize, &Json)| count(one.get("index")).map_or(place == 0, |number| number == 0);
    Ok(all.iter().enumerate().filter(move |answer| number(*answer)).map(|(_, one)| one))
}

/// The part of the answer that has arrived.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) text: String,
    /// How much of the text was handed out, in bytes.
    handed_out: usize,
    pub(super) refusal: String,
    pub(super) model: Option<String>,
    pub(super) usage: Usage,
    /// The service's reason for the end.
    pub(super) finish: Option<String>,
    /// Whether text followed a reason, which did not end the answer.
    pub(super) has_resumed: bool,
    /// The service's explanation of the reason.
    pub(super) finish_said: String,
    /// The category of a refusal.
    pub(super) category: Option<String>,
    /// Whether the model called a tool, although the request offers none.
    has_call: bool,
    /// The counts of tokens that the wire `messages` has spread over several events.
    pub(super) counts: [Option<u64>; 7],
    /// The output items of the wire `responses` that are talk on the way to the answer.
    pub(super) commentary: BTreeSet<u64>,
    /// The output item of it whose text came in pieces last.
    pub(super) in_pieces: Option<u64>,
}

/// What an event of a response leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerStep {
    More,
    /// A complete response that is not part of a stream.
    Document,
    /// It was the last event, and the answer is complete.
    Done,
}

impl Answer {
    /// Adds the text of content.
    ///
    /// # Errors
    /// As [`Answer::collect`] and [`Answer::add_text`].
    pub(super) fn add_content(&mut self, content: Option<&Json>) -> Result<AnswerStep, Fault> {
        let mut text = String::new();
        self.collect(content.unwrap_or(&Json::Null), &mut text)?;
        self.add_text(&text)
    }

    /// Adds the text of content to `text`. Content is a text, a part, or a list of them. Reasoning, references and other kinds
    /// of parts are not the answer.
    ///
    /// # Errors
    /// When a text is a number, true or false.
    pub(super) fn collect(&mut self, content: &Json, text: &mut String) -> Result<(), Fault> {
        match content {
            Json::Null => Ok(()),
            Json::String(said) => {
                text.push_str(said);
                Ok(())
            }
            Json::Array(parts) => parts.iter().try_for_each(|part| self.collect(part, text)),
            Json::Object(part) => self.collect_part(part, text),
            other => Err(Fault::new(FaultKind::Malformed, format!("the text of the answer is `{other}`"))),
        }
    }

    fn collect_part(&mut self, part: &serde_json::Map<String, Json>, text: &mut String) -> Result<(), Fault> {
        let kind = part.get("type").and_then(Json::as_str).unwrap_or_default();
        let calls = ["tool_calls", "function_call", "functionCall"].iter().filter_map(|key| part.get(*key));
        self.has_call |= calls.into_iter().any(|call| match call {
            Json::Array(all) => !all.is_empty(),
            call => call.is_object(),
        });
        self.has_call |= matches!(kind, "tool_use" | "tool_call" | "function_call");
        self.add_refusal(part.get("refusal").and_then(Json::as_str).unwrap_or_default());
        let is_thought = !matches!(part.get("thought"), None | Some(Json::Null | Json::Bool(false)));
        if is_thought || !matches!(kind, "" | "text" | "output_text" | "text_delta" | "message") {
            return Ok(());
        }
        let inner = ["text", "parts", "content", "value"].iter().filter_map(|key| part.get(*key));
        let inner = inner.into_iter().find(|inner| !inner.is_null() && *inner != "");
        inner.map_or(Ok(()), |inner| self.collect(inner, text))
    }

    /// Adds to the text.
    ///
    /// # Errors
    /// When the text is longer than an answer may be.
    pub(super) fn add_text(&mut self, text: &str) -> Result<AnswerStep, Fault> {
        if self.text.len() + text.len() > answers::MAX_BYTES {
            let said = format!("the answer is longer than {} bytes", answers::MAX_BYTES);
            return Err(Fault::new(FaultKind::TooLarge, said));
        }
        // A reason before more text does not end the answer.
        if self.finish.is_some() && !text.trim().is_empty() && self.finish_fault().is_none() {
            self.finish = None;
            self.has_resumed = true;
        }
        self.text.push_str(text);
        Ok(AnswerStep::More)
    }

    /// The rest of a text that repeats the answer from its start; `None` if it does not repeat it.
    pub(super) fn rest_of<'t>(&self, whole: &'t str) -> Option<&'t str> {
        /// A shorter repetition may be a coincidence.
        const LEAST: usize = 16;
        let can_tell = self.text.is_empty() || self.text.len() >= LEAST;
        whole.strip_prefix(&*self.text).filter(|_| can_tell)
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
            self.refusal.push_str(&text[..text.floor_char_boundary(4_096)]);
        }
    }

    /// Takes the model's name from an event that has one.
    pub(super) fn name_model(&mut self, name: Option<&Json>) {
        if let Some(name) = name.and_then(Json::as_str).filter(|name| !name.is_empty()) {
            self.model = Some(quoted(name));
        }
    }

    /// Takes the usage, unless all its counts are unreadable.
    pub(super) fn note_usage(&mut self, usage: Usage) {
        if usage.counts().next().is_some() {
            self.usage = usage;
        }
    }

    /// Takes the reason for the end. It keeps an abnormal reason and ignores an empty one.
    ///
    /// # Errors
    /// When the reason is not a text.
    pub(super) fn note_finish(&mut self, reason: Option<&Json>) -> Result<(), Fault> {
        let word = match reason {
            None | Some(Json::Null | Json::Bool(false)) => return Ok(()),
            Some(Json::Object(reason)) => reason.get("type").and_then(Json::as_str),
            Some(reason) => reason.as_str(),
        };
        let word = word.map(str::trim).ok_or_else(|| {
            Fault::new(FaultKind::Malformed, "the reason why the answer ended is not a text")
        })?;
        let lower = word.to_ascii_lowercase();
        let is_none = matches!(&*lower, "" | "null" | "none") || lower.contains("unspecified");
        if !is_none && self.finish_fault().is_none() {
            self.finish = Some(quoted(word));
        }
        Ok(())
    }

    /// The last event has arrived.
    ///
    /// # Errors
    /// When the answer ended for an abnormal reason.
    pub(super) fn end(&self) -> Result<AnswerStep, Fault> {
        self.finish_fault().map_or(Ok(AnswerStep::Done), Err)
    }

    /// The fault of the reason why the answer ended, in the words of any API; `None` where the answer may be whole.
    pub(super) fn finish_fault(&self) -> Option<Fault> {
        const FILTERED: &str = "filter|safe|block|recitation|prohibited|spii|language|armor|sensitive|toxic|moderat|\
            guardrail|policy|harm|violat";
        const FAILED: &str = "error|fail|abort|timeout|timed|connect|overload|unavailable|resource|network|crash|\
            interrupt|exception";
        const ABNORMAL: &str = "incomplete|malformed|unexpected|cancel|other|pause|queue|progress|running|partial|\
            exceed|preempt|reject|invalid|kill|load|pending";
        let reason = self.finish.as_deref()?;
        let word = reason.to_ascii_lowercase();
        let has = |parts: &str| any_of(parts, |part| word.contains(part));
        let said = &self.finish_said;
        let is_empty = self.text.trim().is_empty();
        let stopped = stopped_for(Some(reason));
        Some(if has("refus") {
            Fault::new(FaultKind::Refused { category: self.category.clone() }, said)
        } else if has("context") {
            Fault::new(FaultKind::ContextOverflow, said)
        } else if has(FILTERED) {
            let category = (!has("filter")).then(|| reason.to_owned());
            Fault::new(FaultKind::ContentFilter { category }, said)
        } else if has("length|max|limit|trunc|budget") {
            Fault::new(FaultKind::CutOff, said)
        } else if has(FAILED) {
            Fault { kind: FaultKind::Server, ..stopped }
        } else if is_empty && matches!(&*word, "load" | "unload") {
            Fault { kind: FaultKind::Empty, ..stopped }
        } else if has(ABNORMAL) || (has("tool|function") && (self.has_call || is_empty)) {
            stopped
        } else {
            return None;
        })
    }

    /// The text of a complete answer.
    ///
    /// # Errors
    /// When the model refused, or said nothing.
    pub(super) fn take_text(&mut self) -> Result<String, Fault> {
        if !self.refusal.is_empty() {
            return Err(Fault::new(FaultKind::Refused { category: None }, &self.refusal));
        }
        if self.text.trim().is_empty() {
            return Err(Fault::new(FaultKind::Empty, ""));
        }
        Ok(std::mem::take(&mut self.text))
    }
}

/// The fault of an answer that ended for an abnormal reason.
pub(super) fn stopped_for(reason: Option<&str>) -> Fault {
    let said = match reason {
        Some(reason) => format!("the model stopped for `{reason}`"),
        None => "the stream does not say why the model stopped".to_owned(),
    };
    Fault::new(FaultKind::Malformed, said)
}
