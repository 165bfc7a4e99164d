//! Responses as services send them, read in any pieces, and responses that are damaged.

use std::path::PathBuf;

use proptest::prelude::{ProptestConfig, Strategy, any, prop, proptest};
use quorate_adapters::executor::llm::fault::FaultKind;
use quorate_adapters::executor::llm::wire::MAX_EVENT_BYTES;
use quorate_adapters::executor::llm::wire::{Event, MAX_RESPONSE_BYTES, Response, Stream, Wire};
use quorate_kernel::ports::executor::{Retry, Usage};
use quorate_manifest::money::Money;
use quorate_protocol::answers;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Expected {
    name: String,
    wire: String,
    text: Option<String>,
    kind: Option<String>,
    category: Option<String>,
    said: Option<String>,
    retry: Option<String>,
    status: Option<u16>,
    model: Option<String>,
    usage: Value,
}

fn file(name: &str) -> String {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/llm/streams");
    std::fs::read_to_string(dir.join(name)).unwrap()
}

/// All events of a response that arrives in these pieces, that of its end included.
fn events<'b>(wire: Wire, pieces: impl IntoIterator<Item = &'b [u8]>) -> Vec<Event> {
    let mut stream = Stream::new(wire);
    let mut events: Vec<Event> = pieces.into_iter().flat_map(|piece| stream.feed(piece)).collect();
    events.extend(stream.finish());
    assert!(stream.finish().is_empty(), "it ends once");
    assert!(stream.feed(b"data: [DONE]\n\n").is_empty(), "after its end there is nothing");
    events
}

fn response(wire: Wire, body: &[u8]) -> Response {
    let mut events = events(wire, [body]);
    let Some(Event::Ended(response)) = events.pop() else { panic!("the last event is the end") };
    assert!(!events.iter().any(|event| matches!(event, Event::Ended(_))));
    let said: String = events
        .iter()
        .filter_map(|event| if let Event::Text(text) = event { Some(&**text) } else { None })
        .collect();
    if let Ok(text) = &response.text {
        assert_eq!(*text, said, "the deltas are the answer");
    }
    *response
}

fn fault_kind(wire: Wire, body: &[u8]) -> FaultKind {
    response(wire, body).text.expect_err("a fault").kind
}

fn usage_json(usage: &Usage) -> Value {
    let mut all = json!({
        "tokens_in": usage.tokens_in, "tokens_cached": usage.tokens_cached, "tokens_written": usage.tokens_written,
        "tokens_written_long": usage.tokens_written_long, "tokens_out": usage.tokens_out,
        "tokens_reasoning": usage.tokens_reasoning, "usd_nanos": usage.money.map(Money::nanos),
    });
    all.as_object_mut().unwrap().retain(|_, count| !count.is_null());
    all
}

fn retry_words(retry: Retry) -> String {
    match retry {
        Retry::Soon => "soon".to_owned(),
        Retry::Never => "never".to_owned(),
        Retry::After(wait) => format!("after {}s", wait.as_secs_f64()),
    }
}

#[test]
fn responses_are_read_as_documented() {
    let all: Vec<Expected> = serde_json::from_str(&file("expected.json")).unwrap();
    for expected in all {
        let name = &expected.name;
        let read = response(Wire::parse(&expected.wire).unwrap(), file(&format!("{name}.txt")).as_bytes());
        assert_eq!(read.model, expected.model, "{name}");
        assert_eq!(usage_json(&read.usage), expected.usage, "{name}");
        match read.text {
            Ok(text) => assert_eq!(Some(text), expected.text, "{name}"),
            Err(fault) => {
                let kind = format!("{:?}", fault.kind);
                assert_eq!(kind.split(' ').next(), expected.kind.as_deref(), "{name}: {fault}");
                let category = match &fault.kind {
                    FaultKind::Refused { category } | FaultKind::ContentFilter { category } => {
                        category.clone()
                    }
                    _ => None,
                };
                assert_eq!((category, fault.status), (expected.category, expected.status), "{name}");
                assert_eq!(Some(&fault.said), expected.said.as_ref(), "{name}");
                assert_eq!(Some(retry_words(fault.retry())), expected.retry, "{name}");
            }
        }
    }
}

/// The names and wires of all responses.
fn recorded() -> Vec<(Wire, String)> {
    let all: Vec<Expected> = serde_json::from_str(&file("expected.json")).unwrap();
    all.iter().map(|one| (Wire::parse(&one.wire).unwrap(), file(&format!("{}.txt", one.name)))).collect()
}

#[test]
fn splits_in_two_and_single_bytes_give_the_same_events() {
    for (wire, body) in recorded() {
        let whole = events(wire, [body.as_bytes()]);
        assert_eq!(events(wire, body.as_bytes().chunks(1)), whole);
        for at in (0..body.len()).step_by(7) {
            let (first, rest) = body.as_bytes().split_at(at);
            assert_eq!(events(wire, [first, rest]), whole, "{at}");
        }
    }
}

#[test]
fn line_ends_of_any_sort_give_the_same_events() {
    for (wire, body) in recorded() {
        let unix = body.replace("\r\n", "\n");
        let whole = events(wire, [unix.as_bytes()]);
        for end in ["\r\n", "\r"] {
            assert_eq!(events(wire, [unix.replace('\n', end).as_bytes()]), whole);
        }
        let with_mark = format!("\u{feff}{unix}");
        assert_eq!(events(wire, [with_mark.as_bytes()]), whole);
    }
}

#[test]
fn the_terminal_event_ends_the_call_though_more_follows() {
    for (wire, body) in recorded() {
        let whole = events(wire, [body.as_bytes()]);
        let Some(Event::Ended(end)) = whole.last() else { panic!() };
        // A response that is sent whole ends with its body.
        let is_stream =
            Stream::new(wire).feed(body.as_bytes()).iter().any(|event| matches!(event, Event::Ended(_)));
        if end.text.is_ok() && is_stream && body.ends_with('\n') {
            let mut stream = Stream::new(wire);
            let fed = stream.feed(format!("{body}data: {{\"error\": 1}}\n\n{body}").as_bytes());
            assert_eq!(fed, whole);
        }
    }
}

#[test]
fn a_response_without_its_last_events_never_passes() {
    for (wire, body) in recorded() {
        if response(wire, body.as_bytes()).text.is_err() {
            continue;
        }
        let unix = body.replace("\r\n", "\n");
        let separator = if wire == Wire::Ollama { "\n" } else { "\n\n" };
        let parts: Vec<&str> = unix.trim_end().split(separator).collect();
        for kept in 0..parts.len() {
            let cut = parts[..kept].join(separator);
            // Only the mark after `stop` may be missing.
            if wire == Wire::Chat && cut.contains("\"finish_reason\":\"stop\"") {
                assert_eq!(response(wire, cut.as_bytes()).text, response(wire, body.as_bytes()).text);
            } else {
                assert_eq!(fault_kind(wire, cut.as_bytes()), FaultKind::EndedEarly, "{wire:?} {kept}");
            }
        }
    }
}

/// The first event of a wire, with a field of its own.
fn first_event(wire: Wire, event: &str) -> Vec<u8> {
    if wire == Wire::Ollama { format!("{event}\n").into() } else { format!("data: {event}\n\n").into() }
}

#[test]
fn what_is_not_as_documented_is_a_fault() {
    for (wire, events) in [
        (
            Wire::Messages,
            &[
                r#"{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": 3}}"#,
                r#"{"type": "message_stop", "type": "message_stop"}"#,
                r#"{"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a", "text": "a"}}"#,
                r#"{"type": "message_delta", "delta": {"stop_reason": 3}}"#,
            ][..],
        ),
        (
            Wire::Chat,
            &[
                r#"{"choices": [{"index": 0, "delta": {"content": true}}]}"#,
                r#"{"choices": [{"index": 0, "delta": {"content": [{"type": "text", "text": 1}]}}]}"#,
                r#"{"choices": {}}"#,
                r#"{"choices": [{"finish_reason": 2}]}"#,
                r#"{"model": "a", "model": "b"}"#,
                r#"{"choices": [{"delta": {"content": "a", "content": "a"}}]}"#,
                "3",
                "{",
                "\"x\"",
                "choices\":[{\"delta\":{\"content\":\"a\"}}]}",
            ],
        ),
        (
            Wire::Responses,
            &[
                r#"{"type": "response.output_text.delta", "delta": 7}"#,
                r#"{"type": "response.incomplete", "response": {"incomplete_details": {"reason": "steered"}}}"#,
            ],
        ),
        (
            Wire::Gemini,
            &[
                r#"{"candidates": [{"content": {"parts": [{"text": true}]}}]}"#,
                r#"{"candidates": [{"finishReason": "MALFORMED_RESPONSE"}]}"#,
                r#"{"candidates": [{"finishReason": 1}]}"#,
            ],
        ),
        (
            Wire::Ollama,
            &[
                r#"{"message": {"content": 1}}"#,
                r#"{"message": {"content": "a"}, "done": "true"}"#,
                r#"{"message": {"content": "a"}, "done": true, "done_reason": "unload"}"#,
                "null",
                "{\"message\": {\"content\": \"a\"",
            ],
        ),
    ] {
        for event in events {
            assert_eq!(fault_kind(wire, &first_event(wire, event)), FaultKind::Malformed, "{wire:?} {event}");
        }
    }
    // The answer is missing, and the envelope is well.
    for (wire, event, kind) in [
        (
            Wire::Messages,
            r#"{"type": "message_start", "message": {"usage": {"input_tokens": "12"}}}"#,
            FaultKind::EndedEarly,
        ),
        (Wire::Messages, r#"{"type": "message_start"}"#, FaultKind::EndedEarly),
        (Wire::Messages, r#"{"type": 3}"#, FaultKind::EndedEarly),
        (Wire::Messages, r#"{"type": "message_stop"}"#, FaultKind::Empty),
        (Wire::Chat, r#"{"usage": {"prompt_tokens": -3}}"#, FaultKind::EndedEarly),
        (Wire::Chat, r#"{"usage": {"prompt_tokens": 9007199254740993}}"#, FaultKind::EndedEarly),
        (Wire::Chat, "[]", FaultKind::EndedEarly),
        (Wire::Chat, "", FaultKind::EndedEarly),
        (Wire::Chat, "[DONE]", FaultKind::Empty),
        (Wire::Responses, r#"{"type": "response.output_text.delta", "delta": null}"#, FaultKind::EndedEarly),
        (Wire::Responses, r#"{"type": "response.completed"}"#, FaultKind::Empty),
        (Wire::Gemini, r#"{"usageMetadata": {"promptTokenCount": "1"}}"#, FaultKind::EndedEarly),
        (Wire::Ollama, "data: {}", FaultKind::EndedEarly),
    ] {
        assert_eq!(fault_kind(wire, &first_event(wire, event)), kind, "{wire:?} {event}");
    }
    for wire in Wire::ALL {
        assert_eq!(fault_kind(wire, b"data: \xff\xfe\n\n"), FaultKind::Malformed, "{wire:?}");
        assert_eq!(fault_kind(wire, b""), FaultKind::EndedEarly, "{wire:?}");
    }
}

#[test]
fn an_error_event_in_plain_text_is_the_services() {
    let body = b"event: error\ndata: upstream closed\n\n";
    let fault = response(Wire::Messages, body).text.expect_err("a fault");
    assert_eq!((fault.kind, &*fault.said), (FaultKind::Server, "upstream closed"));
}

#[test]
fn everything_has_a_cap() {
    // One of each framing.
    for wire in [Wire::Chat, Wire::Ollama] {
        let mut stream = Stream::new(wire);
        let piece = vec![b'a'; 1 << 20];
        let fed: Vec<Event> = (0..=MAX_EVENT_BYTES >> 20).flat_map(|_| stream.feed(&piece)).collect();
        assert!(is_too_large(&fed), "{wire:?}");
        // Many lines that are signs of life.
        let line = match wire {
            Wire::Ollama => format!("{{\"model\": \"{}\"}}\n", "m".repeat(1 << 20)),
            _ => format!(":{}\n", " ".repeat(1 << 20)),
        };
        let mut stream = Stream::new(wire);
        let lines = MAX_RESPONSE_BYTES >> 20;
        let fed: Vec<Event> = (0..lines).flat_map(|_| stream.feed(line.as_bytes())).collect();
        assert_eq!(fed.len(), lines, "{wire:?}");
        assert!(is_too_large(&fed), "{wire:?}");
    }
    // The data of an event in many lines.
    let line = format!("data: {}\n", "a".repeat(1 << 20));
    let mut stream = Stream::new(Wire::Chat);
    let fed: Vec<Event> = (0..=MAX_EVENT_BYTES >> 20).flat_map(|_| stream.feed(line.as_bytes())).collect();
    assert!(is_too_large(&fed));
    // The answer.
    let chunk =
        format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n", "a".repeat(1 << 16));
    let mut stream = Stream::new(Wire::Chat);
    let fed: Vec<Event> =
        (0..=answers::MAX_BYTES >> 16).flat_map(|_| stream.feed(chunk.as_bytes())).collect();
    assert_eq!(fed.iter().filter(|event| matches!(event, Event::Text(_))).count(), 16);
    assert!(is_too_large(&fed));
}

fn is_too_large(events: &[Event]) -> bool {
    matches!(events.last(), Some(Event::Ended(response))
        if response.text.as_ref().is_err_and(|fault| fault.kind == FaultKind::TooLarge))
}

/// A recorded response with some bytes replaced, taken out or doubled.
fn damaged() -> impl Strategy<Value = (Wire, Vec<u8>)> {
    let edits = prop::collection::vec((any::<prop::sample::Index>(), 0..4_u8, any::<u8>()), 1..6);
    (prop::sample::select(recorded()), edits).prop_map(|((wire, body), edits)| {
        let mut bytes = body.into_bytes();
        for (at, how, byte) in edits {
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 if bytes.len() > 1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, bytes[at]),
                _ => bytes.truncate(at.max(1)),
            }
        }
        (wire, bytes)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1_000, ..ProptestConfig::default() })]
    #[test]
    fn damaged_responses_end_once_and_alike_in_any_pieces(
        (wire, body) in damaged(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len())).chain([0, body.len()]).collect();
        cuts.sort_unstable();
        let whole = events(wire, [&*body]);
        assert_eq!(events(wire, cuts.windows(2).map(|cut| &body[cut[0]..cut[1]])), whole);
        assert!(matches!(whole.last(), Some(Event::Ended(_))));
    }
}
