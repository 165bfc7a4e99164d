//! Requests compared with those that the vendors' own SDKs make. `record.py` beside the golden files makes them.

use std::path::PathBuf;

use quorate_adapters::executor::llm::decide::api::{Api as DecisionApi, Question};
use quorate_adapters::executor::llm::embed;
use quorate_adapters::executor::llm::wire::{Auth, Cache, Format, Request, Server, Wire};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Given {
    texts: Texts,
    cases: Vec<Case>,
    embeddings: Vec<Embedding>,
    decisions: Vec<Decision>,
}

#[derive(Deserialize)]
struct Decision {
    name: String,
    wire: String,
    model: String,
    state: Value,
    #[serde(default)]
    options: serde_json::Map<String, Value>,
}

#[derive(Deserialize)]
struct Embedding {
    name: String,
    wire: String,
    model: String,
}

#[derive(Deserialize)]
struct Texts {
    system: String,
    prompt: Vec<String>,
    schema: Value,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    wire: String,
    model: String,
    effort: Option<String>,
    cache: String,
    format: String,
    context: Option<u32>,
    #[serde(default)]
    compatible: bool,
    #[serde(default)]
    plain: bool,
}

#[derive(Deserialize)]
struct Golden {
    method: String,
    path: String,
    headers: Value,
    body: Value,
}

fn read<T: for<'de> Deserialize<'de>>(name: &str) -> T {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/llm");
    serde_json::from_str(&std::fs::read_to_string(dir.join(name)).unwrap()).unwrap()
}

#[test]
fn requests_are_those_of_the_vendors_sdks() {
    let Given { texts, cases, .. } = read("cases.json");
    let prompt = texts.prompt.concat();
    let cuts = [texts.prompt[0].len(), texts.prompt[0].len() + texts.prompt[1].len()];
    for case in &cases {
        let wire = Wire::parse(&case.wire).unwrap();
        let request = Request {
            model: &case.model,
            system: (!case.plain).then_some(&texts.system),
            prompt: &prompt,
            cuts: &cuts,
            format: match case.format.as_str() {
                "schema" => Format::Schema { name: "answer", schema: &texts.schema },
                "json" => Format::JsonObject,
                _ => Format::Text,
            },
            max_tokens: 800,
            effort: case.effort.as_deref(),
            cache: match case.cache.as_str() {
                "off" => Cache::Off,
                "auto" => Cache::Auto,
                "5m" => Cache::Minutes,
                _ => Cache::Hour,
            },
            context_tokens: case.context,
            server: if case.compatible { Server::Compatible } else { Server::Vendor },
        };
        let golden: Golden = read(&format!("{}.json", case.name));
        let made = wire.encode(&request);
        assert_eq!(golden.method, "POST");
        // A base URL is `/v1` on the recording server where the vendor's has a path.
        let vendor = url::Url::parse(wire.default_base_url()).unwrap();
        let path = format!("{}{}", vendor.path().trim_end_matches('/'), made.path);
        assert_eq!(path, golden.path, "{}", case.name);
        let auth = if wire == Wire::Ollama { Auth::Bearer } else { wire.default_auth() };
        let mut headers = json!({});
        for (name, value) in made.headers.into_iter().chain(auth.header("KEY")) {
            headers[name] = value.into();
        }
        let mut expected = golden.headers;
        // Any form is accepted there, and JSON is one.
        if wire == Wire::Gemini {
            assert_eq!(expected["accept"], "*/*");
            expected["accept"] = "application/json".into();
        }
        assert_eq!(headers, expected, "{}", case.name);
        let mut expected = golden.body;
        // An empty list of tools says nothing.
        if wire == Wire::Ollama {
            let tools = expected.as_object_mut().unwrap().remove("tools");
            assert_eq!(tools, Some(json!([])));
        }
        let body: Value = serde_json::from_slice(&made.body).unwrap();
        assert_eq!(body, expected, "{}", case.name);
    }
    for wire in Wire::ALL {
        assert!(cases.iter().any(|case| case.wire == wire.as_str()), "{wire:?}");
    }
}

#[test]
fn requests_for_vectors_are_those_of_the_vendors_sdks() {
    let Given { texts, embeddings, .. } = read("cases.json");
    let prompts: Vec<&str> = texts.prompt.iter().map(String::as_str).collect();
    for case in &embeddings {
        let wire = Wire::parse(&case.wire).unwrap();
        let golden: Golden = read(&format!("{}.json", case.name));
        let made = embed::encode(wire, &case.model, &prompts);
        assert_eq!(golden.method, "POST");
        let vendor = url::Url::parse(wire.default_base_url()).unwrap();
        let path = format!("{}{}", vendor.path().trim_end_matches('/'), made.path);
        assert_eq!(path, golden.path, "{}", case.name);
        let mut headers = json!({});
        // A gateway before Ollama takes a bearer's key.
        let auth = if wire == Wire::Ollama { Auth::Bearer } else { wire.default_auth() };
        for (name, value) in made.headers.into_iter().chain(auth.header("KEY")) {
            headers[name] = value.into();
        }
        let mut expected = golden.headers;
        // Any form is accepted there, and JSON is one.
        if wire == Wire::Gemini {
            assert_eq!(expected["accept"], "*/*");
            expected["accept"] = "application/json".into();
        }
        assert_eq!(headers, expected, "{}", case.name);
        assert_eq!(serde_json::from_slice::<Value>(&made.body).unwrap(), golden.body, "{}", case.name);
    }
    assert_eq!(embeddings.len(), embed::WIRES.len());
    let path = embed::encode(Wire::Gemini, "../x?key=1", &["a"]).path;
    assert_eq!(path, "/models/..%2Fx%3Fkey%3D1:batchEmbedContents");
}

#[test]
fn requests_for_decisions_are_those_of_the_vendors_sdks() {
    let Given { texts, decisions, .. } = read("cases.json");
    for case in &decisions {
        let api = DecisionApi::parse(&case.wire).unwrap();
        let options =
            case.options.iter().map(|(option, about)| (option.clone(), about.as_str().unwrap().into()));
        let question = Question {
            state: case.state.clone(),
            instructions: texts.system.clone(),
            options: options.collect(),
        };
        let golden: Golden = read(&format!("{}.json", case.name));
        let made = api.encode(&case.model, &question);
        assert_eq!(golden.method, "POST");
        assert_eq!(format!("/v1{}", made.path), golden.path, "{}", case.name);
        let mut headers = json!({});
        for (name, value) in made.headers.into_iter().chain(Auth::Bearer.header("KEY")) {
            headers[name] = value.into();
        }
        assert_eq!(headers, golden.headers, "{}", case.name);
        // The order of options means nothing.
        let sorted = |mut body: Value| {
            if let Some(Value::Array(choices)) = body.pointer_mut("/questions/0/choices") {
                choices.sort_by_key(Value::to_string);
            }
            body
        };
        let body: Value = serde_json::from_slice(&made.body).unwrap();
        assert_eq!(sorted(body), sorted(golden.body), "{}", case.name);
    }
    for api in DecisionApi::ALL {
        assert_eq!(decisions.iter().filter(|case| case.wire == api.as_str()).count(), 2, "{api:?}");
    }
}

/// A request for a few words.
fn plain(prompt: &str) -> Request<'_> {
    Request {
        model: "m",
        system: None,
        prompt,
        cuts: &[],
        format: Format::Text,
        max_tokens: 10,
        effort: None,
        cache: Cache::Minutes,
        context_tokens: None,
        server: Server::Vendor,
    }
}

fn body(wire: Wire, request: &Request) -> Value {
    serde_json::from_slice(&wire.encode(request).body).unwrap()
}

#[test]
fn marks_stand_at_the_last_four_cuts_that_are_between_characters() {
    let prompt = "äbcdefgh";
    let texts = |cuts: &[usize]| {
        let body = body(Wire::Messages, &Request { cuts, ..plain(prompt) });
        let blocks = body["messages"][0]["content"].as_array().unwrap().clone();
        let text = |block: &Value| {
            let mark = if block.get("cache_control").is_some() { "|" } else { "" };
            format!("{}{mark}", block["text"].as_str().unwrap())
        };
        blocks.iter().map(text).collect::<Vec<_>>()
    };
    assert_eq!(texts(&[]), ["äbcdefgh"]);
    assert_eq!(texts(&[2, 3, 4, 5, 6]), ["äb|", "c|", "d|", "e|", "fgh"]);
    assert_eq!(texts(&[0, 1, 2, 2, 1, 99]), ["ä|", "bcdefgh"]);
    assert_eq!(texts(&[9]), ["äbcdefgh|"]);
}

#[test]
fn the_same_text_is_sent_on_every_wire() {
    let prompt = "one\n\ntwo \u{2028} \"three\"";
    for wire in Wire::ALL {
        let body = body(wire, &Request { cuts: &[5, 9], ..plain(prompt) });
        fn texts(value: &Value, found: &mut String) {
            match value {
                Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
                Value::Object(entries) => {
                    let text =
                        entries.get("text").or_else(|| entries.get("content").filter(|it| it.is_string()));
                    found.push_str(text.and_then(Value::as_str).unwrap_or_default());
                    entries.values().for_each(|entry| texts(entry, found));
                }
                _ => {}
            }
        }
        let mut found = String::new();
        texts(&body, &mut found);
        assert_eq!(found, prompt, "{wire:?}");
    }
}

#[test]
fn a_models_name_cannot_lead_elsewhere() {
    let path = |model| Wire::Gemini.encode(&Request { model, ..plain("p") }).path;
    assert_eq!(path("models/gemini-3-pro"), "/models/gemini-3-pro:streamGenerateContent?alt=sse");
    assert_eq!(path("../x?key=1#é"), "/models/..%2Fx%3Fkey%3D1%23%C3%A9:streamGenerateContent?alt=sse");
}

#[test]
fn words_of_settings_are_read_back() {
    for wire in Wire::ALL {
        assert_eq!(Wire::parse(wire.as_str()), Some(wire));
    }
    for auth in Auth::ALL {
        assert_eq!(Auth::parse(auth.as_str()), Some(auth));
        assert!(auth.header("k").is_none_or(|(_, value)| value.ends_with('k')));
    }
    assert_eq!((Wire::parse("Chat"), Auth::parse("key")), (None, None));
}

#[test]
fn a_setting_changes_the_request_where_the_wire_takes_it() {
    for wire in Wire::ALL {
        for server in [Server::Vendor, Server::Compatible] {
            let auto = Request { cache: Cache::Auto, cuts: &[2], server, ..plain("prompt") };
            let differs = |request: Request| wire.encode(&request) != wire.encode(&auto);
            assert_eq!(differs(Request { context_tokens: Some(3), ..auto }), wire == Wire::Ollama);
            assert_eq!(differs(Request { format: Format::JsonObject, ..auto }), wire.has_json_mode());
            for cache in [Cache::Off, Cache::Minutes, Cache::Hour] {
                assert_eq!(differs(Request { cache, ..auto }), wire.has_cache_control(server), "{wire:?}");
            }
        }
    }
}
