//! Finds the field of a request that a server refused in the server's message, and changes the request.
//!
//! Servers that are compatible with an API accept different parts of it. If one names a field that a request can do
//! without, the call is sent again without that field, and the process remembers this for the server and the model.
//!
//! A server can use this to make Quorate leave out the schema. That is safe: the host checks every answer against its own
//! schema, whatever the server was sent, so a refused field never makes an answer count that would not count otherwise.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use quorate_protocol::Json;
use serde_json::Map;

use super::config::TOKENS_FIELDS;
use super::fault::{Fault, FaultKind, any_of};
use super::service::{Field, KNOWN};
use super::wire::{HttpRequest, Wire};

/// The smallest cap that is taken from a server's message: a smaller one has no room for an answer.
const LEAST_TOKENS: u32 = 256;

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
    /// What Quorate did, and the setting that does the same from the first request on, if there is one.
    fn told(self) -> (String, Option<String>) {
        let (what, setting) = match self {
            Change::TokensField(name) => {
                let what = format!("sent the cap on tokens as `{name}`");
                return (what, Some(format!("tokens_field = \"{name}\"")));
            }
            Change::MaxTokens(most) => {
                return (format!("asked for at most {most} tokens"), Some(format!("max_tokens = {most}")));
            }
            Change::NoUsage => ("left `stream_options` out", Some("usage = false")),
            Change::NoSystem => ("sent the instruction in the user message", Some("system = false")),
            Change::PlainSchema => ("sent the schema without lists of types and bounds", None),
            Change::JsonObject => {
                ("asked for any JSON object in place of the schema", Some("schema = \"json\""))
            }
            Change::NoSchema => ("sent the schema in the prompt alone", Some("schema = \"prompt\"")),
            Change::NoEffort => ("left `effort` out", None),
            Change::NoCache => ("left `cache` out", None),
            Change::NoStore => ("left `store` out", None),
        };
        (what.to_owned(), setting.map(str::to_owned))
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
    let is_last =
        |(next, change): &(usize, &Change)| !changes[*next..].iter().any(|later| change.gives_way_to(*later));
    let last = (1..).zip(changes).filter(is_last).map(|(_, change)| change.told());
    let (what, settings): (Vec<String>, Vec<Option<String>>) = last.unzip();
    let settings: Vec<String> = settings.iter().flatten().map(|setting| format!("`{setting}`")).collect();
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

/// The keys that change a field, for the message of a call that failed.
pub(super) fn keys(field: Field) -> &'static str {
    match field {
        Field::Tokens => "`max_tokens` and `tokens_field` change",
        Field::Usage => "`usage = false` leaves out",
        Field::System => "`system = false` moves",
        Field::Schema => "`schema = \"json\"` or `schema = \"prompt\"` changes",
        Field::Effort => "`effort` sets",
        Field::Cache => "`cache` sets",
        Field::Store => "`extra` can set",
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

/// The field that a fault names, if it is one of those that were sent.
pub(super) fn refused_field(fault: &Fault, sent: &[Field]) -> Option<Field> {
    let is_about_request = match (&fault.kind, fault.status) {
        (FaultKind::BadRequest, None | Some(400 | 422)) => true,
        // Gateways and chat templates answer with other statuses to a request that they cannot take.
        (FaultKind::UnknownModel, Some(404)) | (FaultKind::Server, None | Some(500 | 501)) => true,
        _ => false,
    };
    let (text, words) = (&*fault.details, &KNOWN.words);
    let says = |words: &str| any_of(words, |word| text.contains(word));
    if !is_about_request || says(&words.too_long) {
        return None;
    }
    // The field that is named first: the message may go on to name fields that the server accepts.
    let named = sent.iter().filter_map(|field| Some((place(fault, *field)?, *field)));
    let (_, field) = named.min_by_key(|(place, _)| *place)?;
    let refuses = says(&words.refuses_field)
        || says(&words.refuses_value)
        || (field == Field::Tokens && says(&words.too_large));
    refuses.then_some(field)
}

/// Where a fault names a field.
fn place(fault: &Fault, field: Field) -> Option<usize> {
    let names = KNOWN.fields[&field].split('|');
    names.filter_map(|name| position(&fault.details, name)).min()
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
    fault.kind == FaultKind::ContextOverflow && place(fault, Field::Tokens).is_some()
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
    if any_of(&KNOWN.words.refuses_field, |word| text.contains(word)) {
        let named = TOKENS_FIELDS.into_iter().find(|name| *name != sent && position(text, name).is_some());
        let other = if sent == "max_tokens" { "max_completion_tokens" } else { "max_tokens" };
        return Some(Change::TokensField(named.unwrap_or(other)));
    }
    if !any_of(&KNOWN.words.too_large, |word| text.contains(word)) {
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
