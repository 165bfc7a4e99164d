//! Finds the field of a request that a server refused in the server's message, and changes the request.
//!
//! Servers that are compatible with an API accept different parts of it. If one names a field that a request can do
//! without, the call is sent again without that field, and the process remembers this for the server and the model.
//!
//! A server can use this to make Quorate leave out the schema. That is safe: the host checks every answer against its own
//! schema, whatever the server was sent, so a refused field never makes an answer count that would not count otherwise.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use quorate_kernel::ports::executor::ConfigError;
use quorate_protocol::Json;
use serde_json::Map;

use super::fault::{Fault, FaultKind};
use super::wire::{HttpRequest, Wire};

/// The names that servers have for the cap on output tokens.
pub(super) const TOKENS_FIELDS: [&str; 4] =
    ["max_completion_tokens", "max_tokens", "max_output_tokens", "max_new_tokens"];

/// The smallest cap that is taken from a server's message: a smaller one has no room for an answer.
const LEAST_TOKENS: u32 = 256;

/// A part of a request that a server may refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Tokens,
    Usage,
    System,
    Schema,
    Effort,
    Cache,
    Store,
}

/// How a request differs from what the settings ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    TokensField(&'static str),
    MaxTokens(u32),
    NoUsage,
    NoSystem,
    /// The schema without lists of types and without bounds.
    PlainSchema,
    JsonObject,
    NoSchema,
    NoEffort,
    NoCache,
    NoStore,
}

impl Change {
    /// What Quorate did.
    fn what(self) -> String {
        match self {
            Change::TokensField(name) => format!("sent the cap on tokens as `{name}`"),
            Change::MaxTokens(most) => format!("asked for at most {most} tokens"),
            Change::NoUsage => "left `stream_options` out".to_owned(),
            Change::NoSystem => "sent the instruction in the user message".to_owned(),
            Change::PlainSchema => "sent the schema without lists of types and bounds".to_owned(),
            Change::JsonObject => "asked for any JSON object in place of the schema".to_owned(),
            Change::NoSchema => "sent the schema in the prompt alone".to_owned(),
            Change::NoEffort => "left `effort` out".to_owned(),
            Change::NoCache => "left `cache` out".to_owned(),
            Change::NoStore => "left `store` out".to_owned(),
        }
    }

    /// The setting that does the same from the first request on; `None` where no setting does.
    fn setting(self) -> Option<String> {
        Some(match self {
            Change::TokensField(name) => format!("tokens_field = \"{name}\""),
            Change::MaxTokens(most) => format!("max_tokens = {most}"),
            Change::NoUsage => "usage = false".to_owned(),
            Change::NoSystem => "system = false".to_owned(),
            Change::JsonObject => "schema = \"json\"".to_owned(),
            Change::NoSchema => "schema = \"prompt\"".to_owned(),
            Change::PlainSchema | Change::NoEffort | Change::NoCache | Change::NoStore => return None,
        })
    }

    /// Whether a later change takes its place.
    fn gives_way_to(self, later: Change) -> bool {
        matches!(
            (self, later),
            (Change::PlainSchema, Change::JsonObject | Change::NoSchema)
                | (Change::JsonObject, Change::NoSchema)
                | (Change::TokensField(_), Change::TokensField(_))
        )
    }
}

/// Changes in one line for the report of a run. `name` is that of the executor.
pub(super) fn note(changes: &[Change], host: &str, name: &str) -> String {
    let last = (1..)
        .zip(changes)
        .filter(|(next, change)| !changes[*next..].iter().any(|later| change.gives_way_to(*later)));
    let last: Vec<Change> = last.map(|(_, change)| *change).collect();
    let what: Vec<String> = last.iter().map(|change| change.what()).collect();
    let settings = last.iter().filter_map(|change| change.setting());
    let settings: Vec<String> = settings.map(|setting| format!("`{setting}`")).collect();
    let set = match settings.is_empty() {
        true => String::new(),
        false => format!("; set {} in {}", settings.join(", "), table(name)),
    };
    format!("{host} refused a part of the request: Quorate {}{set}", what.join(", "))
}

/// The table of quorate.toml that can hold the settings of an executor of this name, or of this address or preset and model.
pub(super) fn table(name: &str) -> String {
    if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')) {
        return format!("[executors.{name}] of quorate.toml");
    }
    let (key, separator) = match name.contains("://") {
        true => ("kind = \"llm\"`, `base_url", '#'),
        false => ("preset", ':'),
    };
    let (service, model) = name.split_once(separator).unwrap_or((name, "MODEL"));
    format!(
        "[executors.NAME] of quorate.toml, with `{key} = \"{service}\"` and `model = \"{model}\"`, and name it with `--executor NAME`"
    )
}

impl Field {
    /// The keys that change it, for the message of a call that failed.
    pub(super) fn keys(self) -> &'static str {
        match self {
            Field::Tokens => "`max_tokens` and `tokens_field` change",
            Field::Usage => "`usage = false` leaves out",
            Field::System => "`system = false` moves",
            Field::Schema => "`schema = \"json\"` or `schema = \"prompt\"` changes",
            Field::Effort => "`effort` sets",
            Field::Cache => "`cache` sets",
            Field::Store => "`extra` can set",
        }
    }
}

/// The changes that the process has learned for a server and a model.
pub(super) type Learned = Arc<Mutex<Vec<Change>>>;

/// The changes that a model of a server needs, shared by all executors that ask it.
pub(super) fn learned(service: &str, model: &str, wire: Wire) -> Learned {
    static ALL: Mutex<BTreeMap<(String, String, &str), Learned>> = Mutex::new(BTreeMap::new());
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(all.entry((service.to_owned(), model.to_owned(), wire.as_str())).or_default())
}

/// The words with which a server refuses a field itself, separated by `|` like all lists here.
const REFUSES_FIELD: &str = "unsupported|not support|unrecognized|unrecognised|not recogni|unknown|unexpected|not permitted|\
    forbidden|extra fields|extra inputs|additional propert|not allowed|unavailable|not available|\
    not enabled|not implemented|no such|instead|deprecated|cannot be used|can't be used|must alternate|\
    only user|incompatible|n't support|does not exist|removed|no endpoints found";

/// Those that refuse the value of a field, as well.
const REFUSES_VALUE: &str = "invalid|not valid|must be|should be|must have|is not one of|expected|failed to|cannot|can't|\
    could not|only support|error in|requires|not of type|too complex|too many|not a |wrong|not compile";

/// Those of a number that is too large.
const TOO_LARGE: &str = "too large|too high|too big|exceed|at most|less than|maximum|max value|greater than|out of range|\
    range|<=|>|above_max|up to|limit|between";

/// The names of a field in the words of servers, in lower case.
fn names(field: Field) -> &'static str {
    match field {
        Field::Tokens => {
            "max_completion_tokens|max_tokens|max_output_tokens|max_new_tokens|maxoutputtokens|num_predict"
        }
        Field::Usage => "stream_options|include_usage|streamoptions",
        Field::System => {
            "system role|role system|role: system|role 'system'|role \"system\"|role `system`|'system'|\
            `system`|\"system\"|system message|system messages|system prompt|system prompts|\
            system instruction|system instructions|system_instruction|systeminstruction|role: developer|\
            developer role|role 'developer'|developer message|developer messages|developer instruction|\
            'developer'|`developer`|\"developer\"|roles must alternate|only user and assistant|\
            user and assistant roles|messages[0].role|messages.0.role|body.messages.0.role|body.system|\
            'instructions'|`instructions`|\"instructions\"|body.instructions"
        }
        Field::Schema => {
            "response_format|response_schema|responseschema|responsejsonschema|response_json_schema|\
            responsemimetype|response_mime_type|json_schema|json_object|jsonschema|guided_json|\
            json schema|json mode|structured output|structured outputs|structured_outputs|text.format|\
            output_config|output_config.format|output_format|chatrequest.format|requested parameters|\
            'format'|`format`|\"format\"|in format|body.format|grammar|schema|anyof|additionalproperties|list of types|type must be|\
            'type' must be|unsupported type|union type|nullable|constrained decoding|guided decoding"
        }
        Field::Effort => {
            "reasoning_effort|reasoning.effort|reasoning effort|reasoning|thinking|thinking_config|\
            thinkingconfig|thinking_level|thinking_budget|thinkinglevel|thinkingbudget|\
            output_config.effort|effort|think"
        }
        Field::Cache => "prompt_cache_options|prompt_cache_breakpoint|cache_control|prompt caching",
        Field::Store => "store",
    }
}

/// The field that a fault names, if it is one of those that were sent.
pub(super) fn refused_field(fault: &Fault, sent: &[Field]) -> Option<Field> {
    let is_about_request = match (&fault.kind, fault.status) {
        (FaultKind::BadRequest, None | Some(400 | 422)) => true,
        // Gateways and chat templates answer with other statuses to a request that they cannot take.
        (FaultKind::UnknownModel, Some(404)) | (FaultKind::Server, None | Some(500 | 501)) => true,
        _ => false,
    };
    let text = &*fault.details;
    if !is_about_request || is_too_long_a_prompt(text) {
        return None;
    }
    let says = |words: &str| words.split('|').any(|word| text.contains(word));
    let refuses = |field: Field| match field {
        Field::Tokens => says(REFUSES_FIELD) || says(TOO_LARGE) || says(REFUSES_VALUE),
        _ => says(REFUSES_FIELD) || says(REFUSES_VALUE),
    };
    // The field that is named first: the message may go on to name fields that the server accepts.
    let place = |field: Field| names(field).split('|').filter_map(|name| position(text, name)).min();
    let named = sent.iter().filter_map(|field| Some((place(*field)?, *field)));
    named.min_by_key(|(place, _)| *place).map(|(_, field)| field).filter(|field| refuses(*field))
}

/// The entry of `extra` that a refusal of the request names.
pub(super) fn refused_extra<'e>(fault: &Fault, extra: &'e Map<String, Json>) -> Option<&'e str> {
    let names = extra.keys().filter(|_| fault.kind == FaultKind::BadRequest);
    names.map(String::as_str).find(|key| position(&fault.details, &key.to_lowercase()).is_some())
}

/// Whether the server seems to have no API at the address.
pub(super) fn lacks_api(fault: &Fault) -> bool {
    let is_unknown = fault.status == Some(404) && fault.kind == FaultKind::UnknownModel;
    is_unknown || fault.status == Some(405) || fault.details.contains("unexpected endpoint")
}

/// Whether the service says that a smaller cap on output tokens would leave room for the prompt.
pub(super) fn blames_cap(fault: &Fault) -> bool {
    fault.kind == FaultKind::ContextOverflow
        && names(Field::Tokens).split('|').any(|name| position(&fault.details, name).is_some())
}

/// Whether the prompt and its answer are too long together, which no other form of the request mends.
fn is_too_long_a_prompt(text: &str) -> bool {
    let parts = [
        "context length",
        "context size",
        "input tokens +",
        "tokens + `max_new_tokens`",
        "inputs tokens + max_new_tokens",
        "prompt is too long",
    ];
    parts.iter().any(|part| text.contains(part))
}

/// The place where a name occurs as a whole word.
fn position(text: &str, name: &str) -> Option<usize> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.match_indices(name).map(|(at, _)| at).find(|at| {
        let (before, after) = (&text[..*at], &text[at + name.len()..]);
        !before.ends_with(is_part) && !after.starts_with(is_part)
    })
}

/// The change that a refusal of the token cap asks for: another name, or the number that the server names. `sent` is the name
/// that was sent, `most` the number.
pub(super) fn change_tokens(fault: &Fault, sent: &str, most: u32) -> Option<Change> {
    let text = &*fault.details;
    if REFUSES_FIELD.split('|').any(|word| text.contains(word)) {
        let named = TOKENS_FIELDS.into_iter().find(|name| *name != sent && position(text, name).is_some());
        let other = if sent == "max_tokens" { "max_completion_tokens" } else { "max_tokens" };
        return Some(Change::TokensField(named.unwrap_or(other)));
    }
    if !TOO_LARGE.split('|').any(|word| text.contains(word)) {
        return None;
    }
    let numbers = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let numbers = numbers.filter_map(|word| word.parse::<u32>().ok());
    numbers.filter(|number| (LEAST_TOKENS..most).contains(number)).max().map(Change::MaxTokens)
}

/// Changes the JSON of a request.
pub(super) fn edit(request: &mut HttpRequest, change: impl FnOnce(&mut Map<String, Json>)) {
    // The body was written by this program, and is an object.
    if let Ok(mut body) = serde_json::from_slice::<Map<String, Json>>(&request.body) {
        change(&mut body);
        request.body = serde_json::to_vec(&body).unwrap_or_default();
    }
}

/// Adds the entries of a table to another, and those of a table within it to the one of the same name.
pub(super) fn merge(into: &mut Map<String, Json>, more: &Map<String, Json>) {
    for (key, value) in more {
        match (into.get_mut(key), value) {
            (Some(Json::Object(into)), Json::Object(more)) => merge(into, more),
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}

/// The entries of `extra` for a sample: with one seed all samples would be the same, so each has a seed of its own.
pub(super) fn with_own_seed(extra: &Map<String, Json>, sample: u32) -> Map<String, Json> {
    let own = |(key, value): (&String, &Json)| {
        let value = match value {
            Json::Object(table) => Json::Object(with_own_seed(table, sample)),
            value => match value.as_i64().filter(|_| key.ends_with("seed")) {
                Some(seed) => seed.saturating_add(i64::from(sample.saturating_sub(1))).into(),
                None => value.clone(),
            },
        };
        (key.clone(), value)
    };
    extra.iter().map(own).collect()
}

/// The parts of a request that `extra` may not set, and what sets them. Names are without `_` and in lower case.
const RESERVED: &[(&str, &str)] = &[
    ("model", "the key `model` sets it"),
    ("messages|input|contents|prompt", "the prompt is Quorate's own"),
    ("system|instructions|systeminstruction", "the key `system` says where the instruction stands"),
    ("stream", "Quorate reads every answer as a stream"),
    ("streamoptions", "the key `usage` sets it"),
    (
        "maxtokens|maxcompletiontokens|maxoutputtokens|maxnewtokens|maxtokenstosample|numpredict|\
         npredict|options.numpredict|generationconfig.maxoutputtokens",
        "the key `max_tokens` sets it, under the name that `tokens_field` gives",
    ),
    (
        "responseformat|format|text.format|outputconfig.format|outputformat|responseschema|jsonschema|\
         grammar|guidedjson|guidedgrammar|guidedregex|guidedchoice|structuredoutputs|\
         generationconfig.responsemimetype|generationconfig.responseschema|\
         generationconfig.responsejsonschema",
        "the key `schema` sets it",
    ),
    (
        "reasoningeffort|reasoning.effort|outputconfig.effort|think|\
         generationconfig.thinkingconfig.thinkingbudget|generationconfig.thinkingconfig.thinkinglevel",
        "the key `effort` sets it",
    ),
    ("numctx|options.numctx", "the key `context` sets it"),
    ("cachecontrol|promptcacheoptions", "the key `cache` sets it"),
    (
        "n|bestof|candidatecount|generationconfig.candidatecount",
        "an answer is one choice; a member's key `samples` asks several times",
    ),
    (
        "tools|toolchoice|toolconfig|functions|functioncall|modalities|audio|responsemodalities|\
         generationconfig.responsemodalities",
        "a member answers in text",
    ),
    ("background|conversation|previousresponseid|cachedcontent", "each call stands alone"),
    ("key|apikey|authorization", "the key `key` says where the key is"),
];

/// Refuses entries of `extra` that other keys set, or with which an answer could not be read.
///
/// # Errors
/// Names the entry, and the key that sets it.
pub(super) fn check_extra(extra: &Map<String, Json>) -> Result<(), ConfigError> {
    check_entries(extra, "", "extra")
}

fn check_entries(entries: &Map<String, Json>, above: &str, shown: &str) -> Result<(), ConfigError> {
    for (key, value) in entries {
        let (path, shown) =
            (format!("{above}{}", key.replace('_', "").to_lowercase()), format!("{shown}.{key}"));
        let all = RESERVED.iter().flat_map(|(paths, why)| paths.split('|').map(move |path| (path, *why)));
        let inside = format!("{path}.");
        for (reserved, why) in all {
            // Another value would replace the whole table.
            if reserved == path || (reserved.starts_with(&inside) && !value.is_object()) {
                return Err(ConfigError::for_key("extra", format!("`{shown}` cannot be set: {why}")));
            }
        }
        if let Json::Object(entries) = value {
            check_entries(entries, &inside, &shown)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_address_or_a_preset_has_a_table_to_write() {
        for (name, says) in [
            ("own", "[executors.own] of quorate.toml"),
            ("http://127.0.0.1:1/v1#m", "`base_url = \"http://127.0.0.1:1/v1\"` and `model = \"m\"`"),
            ("https://x.example/v1", "`base_url = \"https://x.example/v1\"` and `model = \"MODEL\"`"),
            ("http://127.0.0.1:1/v1#org/m:tag", "and `model = \"org/m:tag\"`"),
            ("ollama:qwen3:8b", "`preset = \"ollama\"` and `model = \"qwen3:8b\"`"),
            ("openrouter:openai/gpt", "`preset = \"openrouter\"` and `model = \"openai/gpt\"`"),
        ] {
            assert!(table(name).contains(says), "{name}: {}", table(name));
        }
    }

    #[test]
    fn each_sample_has_a_seed_of_its_own() {
        for (extra, sample, expected) in [
            (json!({"seed": 7}), 1, json!({"seed": 7})),
            (json!({"seed": 7}), 2, json!({"seed": 8})),
            (json!({"random_seed": 7, "top_k": 4}), 3, json!({"random_seed": 9, "top_k": 4})),
            (json!({"options": {"seed": 1, "num_gpu": 1}}), 9, json!({"options": {"seed": 9, "num_gpu": 1}})),
            (json!({"seed": i64::MAX}), 2, json!({"seed": i64::MAX})),
            (json!({"seed": null, "seeds": [1]}), 2, json!({"seed": null, "seeds": [1]})),
            (json!({}), 2, json!({})),
        ] {
            let extra = extra.as_object().unwrap();
            assert_eq!(json!(with_own_seed(extra, sample)), expected, "{extra:?} {sample}");
        }
    }
}
