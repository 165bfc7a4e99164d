//! The form of an answer in the dialect of a service, derived from the host's JSON Schema, which stays authoritative.
//!
//! Services take parts of JSON Schema only. A [`Form`] is closed and has no conditions, and an answer that fits it fits the
//! host's form once [`Form::restore`] has translated it back, but for what [`Dialect::unheld`] names: that stands in
//! descriptions, for the model to read. The host's check stays the only judge.
//!
//! | the host's form | on the wire | translated back |
//! |---|---|---|
//! | optional property | nullable and required (OpenAI, local servers), else optional | a null is left out |
//! | open object whose values have a form | list of `{name, value}` | object |
//! | open object | JSON text | object |
//! | list or text | list | |
//! | words in any case (a pattern) | `enum` in lower case | |
//! | number with limits | integer (local servers) | |
//! | `anyOf` of required keys at the root | the first of them | |
//! | `if` a property is a constant | `anyOf` of two objects | |
//!
//! Properties that the host's form leaves open are closed: a model that is held to a form cannot add one.
//!
//! Lists and texts are bounded on the wire, so that a small model ends its answer: `MAX_FINDINGS` and the constants beside
//! it have the numbers. The host's form has wider bounds, and accepts longer answers.

use std::sync::LazyLock;

use quorate_kernel::answer::rewrite_answer;
use quorate_kernel::canonical;
use quorate_protocol::Json;
use quorate_protocol::answers::Schema;
use serde_json::{Map, json};

/// The parts of JSON Schema that a family of services takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Strict: every property is required.
    OpenAi,
    /// As [`Dialect::OpenAi`] for servers on local machines, which hold the length of texts too.
    Local,
    /// Without `type` beside `enum`; bounds stand in descriptions.
    Anthropic,
    /// Optional properties stay optional.
    Gemini,
    /// The keywords that every server takes: optional properties stay optional, a type is one word, and bounds stand in
    /// descriptions.
    Plain,
}

/// How many findings or scores an answer has at most.
const MAX_FINDINGS: u64 = 12;
/// How many entries another list has at most.
const MAX_ENTRIES: u64 = 6;
/// How many entries a list of names has at most: of members and of traits.
const MAX_NAMES: u64 = 24;
/// The length of a quotation or a name, in characters.
const MAX_QUOTE: u64 = 300;
/// The length of another text, in characters.
const MAX_TEXT: u64 = 600;
/// The length of a text that others act on, in characters: the adjudicator's reasons, a brief, and a message to peers. The
/// grammars of llama.cpp refuse 2,000 repetitions.
const MAX_BRIEF: u64 = 1_500;
/// The texts that are the work itself. Only `max_tokens` bounds them.
const UNBOUNDED: [&str; 2] = ["content", "body"];

impl Dialect {
    pub const ALL: [Dialect; 5] =
        [Dialect::OpenAi, Dialect::Local, Dialect::Anthropic, Dialect::Gemini, Dialect::Plain];

    /// The keywords that stand in descriptions only. A list of one or more alone is held everywhere.
    pub fn unheld(self) -> &'static [&'static str] {
        const EVERYWHERE: [&str; 7] =
            ["pattern", "minLength", "minProperties", "maxLength", "maxItems", "minimum", "maximum"];
        match self {
            Dialect::Anthropic | Dialect::Plain => &EVERYWHERE,
            Dialect::OpenAi | Dialect::Gemini => &EVERYWHERE[..4],
            Dialect::Local => &EVERYWHERE[..3],
        }
    }

    /// Whether a property that may be absent is required, and null where it is absent.
    pub fn has_nulls(self) -> bool {
        matches!(self, Dialect::OpenAi | Dialect::Local)
    }
}

/// An answer's form on the wire.
#[derive(Debug)]
pub struct Form {
    /// The form's name in the request.
    pub name: &'static str,
    /// The JSON Schema to send.
    pub schema: Json,
    host: Json,
}

/// The form of an answer; `None` where it is plain text. Both rounds of a council have one: it is part of what prompt
/// caches key on.
pub fn form(answer: Schema, dialect: Dialect) -> Option<&'static Form> {
    static ALL: LazyLock<Vec<(Schema, Dialect, Form)>> = LazyLock::new(|| {
        let forms = Schema::ALL.into_iter().filter(|answer| answer.is_structured());
        forms
            .flat_map(|answer| Dialect::ALL.map(|dialect| (answer, dialect, build(answer, dialect))))
            .collect()
    });
    let answer = if answer == Schema::FirstAnswer { Schema::SecondAnswer } else { answer };
    ALL.iter()
        .find(|(known, in_dialect, _)| (*known, *in_dialect) == (answer, dialect))
        .map(|(.., form)| form)
}

fn build(answer: Schema, dialect: Dialect) -> Form {
    let host = answer.json_schema();
    Form { name: name(answer), schema: convert("", &host, dialect), host }
}

fn name(answer: Schema) -> &'static str {
    match answer {
        Schema::FirstAnswer | Schema::SecondAnswer => "review",
        Schema::Adjudication => "adjudication",
        Schema::Advice => "advice",
        Schema::Ballot => "ballot",
        Schema::Message => "message",
        Schema::PlainText | Schema::Turn => "turn",
        Schema::Selection => "selection",
        Schema::Deltas => "deltas",
        Schema::Judgement => "judgement",
        Schema::Tier => "tier",
        Schema::Predicate => "predicate",
    }
}

impl Form {
    /// Translates an answer to the host's form. Text around the object and values that do not fit stay unchanged.
    pub fn restore(&self, text: &str) -> String {
        rewrite_answer(text, |object| {
            let answer = canonical::parse(object).ok()?;
            let restored = restore(answer.clone(), &self.host);
            (restored != answer).then(|| restored.to_string())
        })
    }
}

/// Translates a value back. A value that does not fit stays unchanged, and the host's check refuses it.
fn restore(value: Json, host: &Json) -> Json {
    match value {
        Json::Object(entries) => restore_object(entries, host).into(),
        Json::Array(items) if is_open_object(host) => {
            named_values(&items).map_or(Json::Array(items), Json::Object)
        }
        Json::Array(items) => match host.get("items") {
            Some(form) => items.into_iter().map(|item| restore(item, form)).collect(),
            None => Json::Array(items),
        },
        Json::String(text) if is_open_object(host) => match canonical::parse(&text) {
            Ok(object @ Json::Object(_)) => object,
            _ => Json::String(text),
        },
        plain => plain,
    }
}

fn restore_object(entries: Map<String, Json>, host: &Json) -> Map<String, Json> {
    let is_required = |key: &str| {
        let required = host.get("required").and_then(Json::as_array);
        required.is_some_and(|required| required.iter().any(|name| name == key))
    };
    let form = |key: &str| {
        let places =
            [host.get("properties"), host.pointer("/then/properties"), host.pointer("/else/properties")];
        places.into_iter().flatten().find_map(|properties| properties.get(key))
    };
    let kept = entries
        .into_iter()
        .filter(|(key, restore)| !restore.is_null() || is_required(key) || form(key).is_none());
    kept.map(|(key, entry)| match form(&key) {
        Some(form) => (key, restore(entry, form)),
        None => (key, entry),
    })
    .collect()
}

/// An object whose keys no form names, which is written as a list or as a text.
fn is_open_object(host: &Json) -> bool {
    let is_object = match host.get("type") {
        Some(Json::Array(types)) => types.iter().any(|name| name == "object"),
        Some(one) => one == "object",
        None => false,
    };
    is_object && host.get("properties").is_none()
}

/// A list of `{name, value}` as an object; `None` where it is none, or names a key twice.
fn named_values(items: &[Json]) -> Option<Map<String, Json>> {
    let mut entries = Map::new();
    for item in items {
        let name = item.get("name")?.as_str()?;
        if entries.insert(name.to_owned(), item.get("value")?.clone()).is_some() {
            return None;
        }
    }
    Some(entries)
}

/// Converts the JSON Schema of an answer, or of the property `key` of one.
fn convert(key: &str, host: &Json, dialect: Dialect) -> Json {
    let host = bounded(key, first_alternative(host));
    match split_condition(&host) {
        Some(variants) => json!({"anyOf": variants.map(|variant| convert(key, &variant, dialect))}),
        None => convert_plain(key, &host, dialect),
    }
}

/// A form whose list or text has a bound.
fn bounded(key: &str, mut host: Json) -> Json {
    let is_list = match main_type(&host) {
        "array" => true,
        "object" => host.get("properties").is_none() && host.get("additionalProperties").is_some(),
        _ => false,
    };
    let (keyword, most) = match key {
        "findings" | "scores" if is_list => ("maxItems", MAX_FINDINGS),
        "addressedTo" | "next" | "traits" if is_list => ("maxItems", MAX_NAMES),
        _ if is_list => ("maxItems", MAX_ENTRIES),
        _ if main_type(&host) != "string" || UNBOUNDED.contains(&key) || words(&host).is_some() => {
            return host;
        }
        "quote" | "name" => ("maxLength", MAX_QUOTE),
        "reasoning" | "revision_brief" | "message" => ("maxLength", MAX_BRIEF),
        _ => ("maxLength", MAX_TEXT),
    };
    let own = host.get(keyword).and_then(Json::as_u64);
    host[keyword] = own.map_or(most, |own| own.min(most)).into();
    host
}

/// The words that a text is one of.
fn words(host: &Json) -> Option<Json> {
    let pattern = host.get("pattern").and_then(Json::as_str);
    pattern.and_then(words_in_any_case).map(Json::from).or_else(|| host.get("enum").cloned())
}

/// A form without conditions.
fn convert_plain(key: &str, host: &Json, dialect: Dialect) -> Json {
    let mut notes = Vec::new();
    let mut wire = Map::new();
    match main_type(host) {
        "object" if host.get("properties").is_some() => wire = convert_object(host, dialect),
        "object" => match host.get("additionalProperties") {
            Some(value) => {
                let entry = json!({
                    "type": "object",
                    "required": ["name", "value"],
                    "properties": {"name": {"type": "string"}, "value": value}
                });
                wire.insert("type".into(), "array".into());
                wire.insert("items".into(), convert(key, &entry, dialect));
            }
            None => {
                wire.insert("type".into(), "string".into());
                notes.push("a JSON object, as JSON text".to_owned());
            }
        },
        "array" => {
            let items = host.get("items").cloned().unwrap_or_else(|| json!({"type": "string"}));
            wire.insert("type".into(), "array".into());
            wire.insert("items".into(), convert(key, &items, dialect));
        }
        plain => {
            // The grammars of llama.cpp hold the limits of whole numbers only.
            let is_whole = dialect == Dialect::Local && plain == "number" && host.get("maximum").is_some();
            wire.insert("type".into(), if is_whole { "integer" } else { plain }.into());
        }
    }
    let words = words(host);
    if let Some(words) = &words {
        wire.insert("enum".into(), words.clone());
        if dialect == Dialect::Anthropic {
            wire.remove("type");
        }
    }
    for keyword in
        ["minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength", "minProperties", "pattern"]
    {
        match host.get(keyword) {
            Some(_) if keyword == "pattern" && words.is_some() => {}
            Some(limit) if dialect.unheld().contains(&keyword) => notes.push(format!("{keyword}: {limit}")),
            Some(limit) => {
                wire.insert(keyword.into(), limit.clone());
            }
            None => {}
        }
    }
    let description = host.get("description").and_then(Json::as_str).unwrap_or_default();
    let noted = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
    let description = format!("{description}{noted}");
    if !description.is_empty() {
        wire.insert("description".into(), description.trim_start().into());
    }
    wire.into()
}

fn convert_object(host: &Json, dialect: Dialect) -> Map<String, Json> {
    let required = strings(host.get("required"));
    let mut properties = Map::new();
    for (key, form) in host["properties"].as_object().into_iter().flatten() {
        let mut form = convert(key, form, dialect);
        if dialect.has_nulls() && !required.contains(&key.as_str()) {
            make_nullable(&mut form);
        }
        properties.insert(key.clone(), form);
    }
    let required: Vec<&str> = match dialect.has_nulls() {
        true => properties.keys().map(String::as_str).collect(),
        false => required,
    };
    let wire = json!({"type": "object", "additionalProperties": false, "required": required, "properties": properties});
    wire.as_object().cloned().unwrap_or_default()
}

fn make_nullable(form: &mut Json) {
    if let Some(words) = form.get_mut("enum").and_then(Json::as_array_mut) {
        words.push(Json::Null);
    }
    form["type"] = json!([form["type"], "null"]);
}

/// The type that is not null; a list before all others, since a list has room for one text.
fn main_type(host: &Json) -> &str {
    let types = match host.get("type") {
        Some(Json::Array(_)) => strings(host.get("type")),
        Some(Json::String(one)) => vec![one.as_str()],
        _ => vec!["string"],
    };
    let list = types.iter().find(|name| **name == "array");
    list.or_else(|| types.iter().find(|name| **name != "null")).copied().unwrap_or("string")
}

/// An object that has to have one of several keys, as one that has to have the first. The other keys are left out.
fn first_alternative(host: &Json) -> Json {
    let mut host = host.clone();
    let Some(alternatives) = host.as_object_mut().and_then(|host| host.remove("anyOf")) else { return host };
    for (at, alternative) in alternatives.as_array().into_iter().flatten().enumerate() {
        for key in strings(alternative.get("required")) {
            if at > 0 {
                host["properties"].as_object_mut().and_then(|all| all.remove(key));
            } else if let Some(required) = host["required"].as_array_mut() {
                required.push(key.into());
            }
        }
    }
    host
}

/// The two forms of an object with `if`, which asks for one word of a property's.
fn split_condition(host: &Json) -> Option<[Json; 2]> {
    let (key, asked) = host.pointer("/if/properties")?.as_object()?.iter().next()?;
    let word = asked.get("const")?;
    let variant = |branch: &str, has: &dyn Fn(&Json) -> bool| {
        let mut variant = host.clone();
        let fields = variant.as_object_mut()?;
        for condition in ["if", "then", "else"] {
            fields.remove(condition);
        }
        let words: Vec<Json> =
            variant["properties"][key]["enum"].as_array()?.iter().filter(|word| has(word)).cloned().collect();
        variant["properties"][key]["enum"] = words.into();
        for (name, form) in host[branch]["properties"].as_object()? {
            variant["properties"][name] = form.clone();
        }
        let more = host[branch]["required"].as_array()?.clone();
        variant["required"].as_array_mut()?.extend(more);
        Some(variant)
    };
    Some([variant("then", &|other| other == word)?, variant("else", &|other| other != word)?])
}

/// The words of a pattern such as `^([Aa][Bb]|[Cc])$`, in lower case.
fn words_in_any_case(pattern: &str) -> Option<Vec<String>> {
    let words = pattern.strip_prefix("^(")?.strip_suffix(")$")?.split('|');
    let letter = |class: &str| match class.as_bytes() {
        [upper, lower] if upper.to_ascii_lowercase() == *lower => Some(char::from(*lower)),
        _ => None,
    };
    let word = |word: &str| {
        word.strip_prefix('[')?.strip_suffix(']')?.split("][").map(letter).collect::<Option<String>>()
    };
    words.map(word).collect()
}

fn strings(list: Option<&Json>) -> Vec<&str> {
    list.and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str).collect()
}
