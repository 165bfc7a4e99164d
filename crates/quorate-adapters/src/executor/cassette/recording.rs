//! One recording: a request without what is drawn anew for each run, and its reply. Texts are lists of lines, so that a
//! difference between two versions of a file is the difference between two texts.

use std::collections::BTreeMap;
use std::time::Duration;

use quorate_kernel::attempts::millis;
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::executor::{Invocation, Usage};
use quorate_kernel::record::Spent;
use quorate_kernel::redact::Redactor;
use quorate_protocol::Json;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The version of the form.
const VERSION: u32 = 1;
/// What stands in a prompt for the run's nonce, for the run's id and for the role, which has a field of its own.
const NONCE: &str = "{marker}";
const RUN: &str = "{run}";
const ROLE: &str = "{role}";
/// The longest part of a file's name that an id makes, in characters.
const MAX_NAME: usize = 40;
/// How much of the request's hash is in the file's name.
const NAME_HASH: usize = 12;
/// How much of a line is quoted, in characters.
const MAX_QUOTE: usize = 80;

/// A file of a cassette.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Recording {
    version: u32,
    pub(super) request: Request,
    pub(super) reply: RecordedReply,
}

/// What was asked. Two requests are the same if all fields but `attempt` are: a question that is repeated after a failure
/// is the same question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    member: String,
    step: String,
    attempt: u32,
    /// The number of the sample, for those after the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sample: Option<u32>,
    schema: String,
    /// The SHA-256 of the part of the prompt that all runs share: the host's instruction and the answer's schema.
    instruction_sha256: String,
    role: Vec<String>,
    /// The rest of the prompt.
    prompt: Vec<String>,
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordedReply {
    /// The model that answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    /// The text, if it is an object of JSON in its shortest form.
    #[serde(skip_serializing_if = "Option::is_none")]
    json: Option<Json>,
    /// Any other text, by its lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Vec<String>>,
    /// The probability of each option, where a decision model answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) probabilities: Option<BTreeMap<String, f64>>,
    /// What the answer took when it was recorded.
    #[serde(default)]
    pub(super) spent: Spent,
}

impl Recording {
    /// A recording of a reply, without secrets.
    pub(super) fn new(
        request: Request,
        text: &str,
        model: Option<String>,
        usage: Usage,
        took: Duration,
        redactor: &Redactor,
    ) -> Self {
        let (text, _) = redactor.redact_output(text);
        let spent = Spent {
            tokens_written: None,
            tokens_written_long: None,
            money: None,
            ms: Some(millis(took)),
            ..Spent::from(&usage)
        };
        let model = model.map(|model| redactor.redact(&model).0);
        let value = serde_json::from_str::<Json>(&text).ok();
        let is_shortest = |value: &Json| serde_json::to_string(value).is_ok_and(|shortest| shortest == text);
        let json = value.filter(|value| value.is_object() && is_shortest(value));
        let text = json.is_none().then(|| lines(&text));
        let reply = RecordedReply { model, json, text, probabilities: None, spent };
        Recording { version: VERSION, request, reply }
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// What is wrong with it, with the place.
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        let recording: Recording = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        if recording.version != VERSION {
            return Err(format!("its version is {}; this program reads {VERSION}", recording.version));
        }
        match recording.reply.json.is_some() == recording.reply.text.is_some() {
            true => Err("its reply has not exactly one of `json` and `text`".to_owned()),
            false => Ok(recording),
        }
    }

    pub(super) fn text(&self) -> String {
        format!("{:#}\n", json!(self))
    }
}

impl RecordedReply {
    pub(super) fn text(&self) -> String {
        let lines = || self.text.as_ref().map(|lines| lines.join("\n")).unwrap_or_default();
        self.json.as_ref().map_or_else(lines, Json::to_string)
    }
}

impl Request {
    /// The request of an invocation, the same in every run that asks the same.
    pub(super) fn of(invocation: &Invocation) -> Self {
        let prompt = &*invocation.prompt;
        let shared = invocation.cuts.first().copied().filter(|cut| prompt.is_char_boundary(*cut));
        let (instruction, rest) = prompt.split_at(shared.unwrap_or(0));
        let role = invocation.role.trim();
        let normal = |text: &str| {
            let mut text = text.to_owned();
            for (drawn, placeholder) in [(&*invocation.nonce, NONCE), (&*invocation.run, RUN)] {
                if !drawn.is_empty() {
                    text = text.replace(drawn, placeholder);
                }
            }
            text
        };
        // The role is the last long part of a prompt; the same words elsewhere stay.
        let rest = match rest.rfind(role).filter(|_| !role.is_empty()) {
            Some(at) => normal(&rest[..at]) + ROLE + &normal(&rest[at + role.len()..]),
            None => normal(rest),
        };
        // The kernel has taken all secrets out; what is written does not rest on that.
        let clean = |text: &str| invocation.redactor.redact(text).0;
        Request {
            member: invocation.member.to_string(),
            step: normal(&invocation.step),
            attempt: invocation.attempt,
            sample: Some(invocation.sample).filter(|sample| *sample > 1),
            schema: format!("{:?}", invocation.answer_schema),
            instruction_sha256: sha256_hex(instruction.as_bytes()),
            role: lines(&clean(&normal(role))),
            prompt: lines(&clean(&rest)),
        }
    }

    pub(super) fn is_same(&self, other: &Request) -> bool {
        Request { attempt: 0, ..self.clone() } == Request { attempt: 0, ..other.clone() }
    }

    /// The name of the file that a recording of this request is in.
    pub(super) fn file_name(&self) -> String {
        let whole = json!(Request { attempt: 0, ..self.clone() }).to_string();
        let hash = &sha256_hex(whole.as_bytes())[..NAME_HASH];
        format!("{}.{}-{hash}.json", plain(&self.member), plain(&self.step))
    }

    /// What differs from a recorded request, the most telling first.
    pub(super) fn difference(&self, recorded: &Request) -> Difference {
        let forms = [self, recorded].map(|request| (&request.schema, &request.instruction_sha256));
        let fields = [
            ("member", self.member == recorded.member),
            ("step", self.step == recorded.step),
            ("attempt", self.attempt == recorded.attempt),
            ("sample", self.sample == recorded.sample),
            ("schema", forms[0] == forms[1]),
            ("role", self.role == recorded.role),
            ("prompt", self.prompt == recorded.prompt),
        ];
        let fields = fields.into_iter().filter(|(_, same)| !same).map(|(name, _)| name).collect();
        let texts = [("role", &self.role, &recorded.role), ("prompt", &self.prompt, &recorded.prompt)];
        let lines = texts.iter().map(|(_, now, then)| different_lines(now, then)).sum();
        let first = texts.into_iter().find_map(|(name, now, then)| first_difference(name, now, then));
        Difference { fields, lines, first }
    }
}

/// How two requests differ.
pub(super) struct Difference {
    fields: Vec<&'static str>,
    /// How many lines differ.
    lines: usize,
    /// The first line that differs, for people.
    first: Option<String>,
}

impl Difference {
    /// How far apart they are: a request of the same member in the same step is nearer than any other.
    pub(super) fn distance(&self) -> (bool, bool, usize, usize) {
        (self.fields.contains(&"member"), self.fields.contains(&"step"), self.lines, self.fields.len())
    }
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<String> = self.fields.iter().map(|name| format!("`{name}`")).collect();
        write!(f, "{}", names.join(", "))?;
        self.first.iter().try_for_each(|first| write!(f, "; {first}"))
    }
}

fn different_lines(now: &[String], then: &[String]) -> usize {
    now.iter().zip(then).filter(|(now, then)| now != then).count() + now.len().abs_diff(then.len())
}

fn first_difference(name: &str, now: &[String], then: &[String]) -> Option<String> {
    let at = (0..now.len().max(then.len())).find(|at| now.get(*at) != then.get(*at))?;
    let quoted = |line: Option<&String>| match line {
        None => "nothing".to_owned(),
        Some(line) => json!(line.chars().take(MAX_QUOTE).collect::<String>()).to_string(),
    };
    Some(format!("line {} of the {name} was {}, is {}", at + 1, quoted(then.get(at)), quoted(now.get(at))))
}

fn lines(text: &str) -> Vec<String> {
    text.split('\n').map(str::to_owned).collect()
}

/// An id as a part of a file's name.
fn plain(id: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    id.chars().take(MAX_NAME).map(plain).collect()
}
