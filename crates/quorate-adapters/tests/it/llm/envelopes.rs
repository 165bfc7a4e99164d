//! Responses of servers that do not follow the API to the letter: the envelope is read liberally, an incomplete answer is
//! none.

use quorate_adapters::executor::llm::fault::{Fault, FaultKind};
use quorate_adapters::executor::llm::wire::{Event, MAX_EVENT_BYTES, Response, Stream, Wire};
use quorate_kernel::ports::executor::Retry;
use serde_json::{Value, json};

const ANSWER: &str = r#"{"would_block": true}"#;

fn read(wire: Wire, body: &str) -> Response {
    let mut stream = Stream::new(wire);
    let mut events = stream.feed(body.as_bytes());
    events.extend(stream.finish());
    let Some(Event::Ended(response)) = events.pop() else { panic!("no end: {body}") };
    *response
}

fn text(wire: Wire, body: &str) -> Result<String, Fault> {
    read(wire, body).text
}

#[track_caller]
fn is_answer(wire: Wire, body: &str) {
    assert_eq!(text(wire, body).as_deref().map_err(ToString::to_string), Ok(ANSWER), "{wire:?} {body}");
}

#[track_caller]
fn is_fault(wire: Wire, body: &str, kind: &FaultKind) {
    match text(wire, body) {
        Ok(answer) => panic!("{wire:?} answers {answer}: {body}"),
        Err(fault) => assert_eq!(&fault.kind, kind, "{wire:?} {fault}: {body}"),
    }
}

/// The answer in three pieces.
fn pieces() -> [&'static str; 3] {
    [&ANSWER[..4], &ANSWER[4..9], &ANSWER[9..]]
}

fn sse(events: &[Value]) -> String {
    let line = |event: &Value| match event.as_str() {
        Some(plain) => format!("data: {plain}\n\n"),
        None => format!("data: {event}\n\n"),
    };
    events.iter().map(line).collect()
}

fn lines(events: &[Value]) -> String {
    events.iter().map(|event| format!("{event}\n")).collect()
}

/// A chunk of the wire `chat`.
fn chunk(delta: Value, reason: Value) -> Value {
    json!({"id": "x", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
}

fn chat(content: impl Fn(&str) -> Value, reason: &Value) -> Vec<Value> {
    let said = pieces().map(|piece| chunk(json!({"content": content(piece)}), Value::Null));
    said.into_iter().chain([chunk(json!({}), reason.clone())]).collect()
}

/// Content as text.
fn plain(piece: &str) -> Value {
    json!(piece)
}

fn plain_chat(reason: &str) -> Vec<Value> {
    chat(plain, &json!(reason))
}

fn gemini(parts: impl Fn(&str) -> Value, reason: &Value) -> Vec<Value> {
    let candidate = |piece: &str, reason: &Value| json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": parts(piece)}, "finishReason": reason}]});
    let [first, second, last] = pieces();
    vec![candidate(first, &Value::Null), candidate(second, &Value::Null), candidate(last, reason)]
}

fn gemini_parts(piece: &str) -> Value {
    json!([{"text": piece}])
}

fn messages(delta: impl Fn(&str) -> Value, reason: &Value) -> Vec<Value> {
    let start = json!({"type": "message_start", "message": {"role": "assistant", "content": []}});
    let said =
        pieces().map(|piece| json!({"type": "content_block_delta", "index": 0, "delta": delta(piece)}));
    let stop = json!({"type": "message_delta", "delta": {"stop_reason": reason}});
    [start].into_iter().chain(said).chain([stop, json!({"type": "message_stop"})]).collect()
}

fn messages_delta(piece: &str) -> Value {
    json!({"type": "text_delta", "text": piece})
}

fn ollama(content: impl Fn(&str) -> Value, last: &Value) -> Vec<Value> {
    let said = pieces().map(|piece| json!({"model": "m", "message": {"role": "assistant", "content": content(piece)}, "done": false}));
    said.into_iter().chain([last.clone()]).collect()
}

/// A reasoning part, in several APIs.
fn thoughts() -> [Value; 4] {
    [
        json!({"type": "thinking", "thinking": [{"type": "text", "text": "{\"would_block\": false}"}]}),
        json!({"type": "reasoning", "text": "{\"would_block\": false}"}),
        json!({"type": "reference", "reference_ids": [1], "text": "no"}),
        json!({"type": "image_url", "image_url": {"url": "x"}, "text": "no"}),
    ]
}

#[test]
fn content_is_text_a_part_or_a_list_of_parts() {
    let contents: [&dyn Fn(&str) -> Value; 8] = [
        &|piece: &str| json!([{"type": "text", "text": piece}]),
        &|piece: &str| json!({"type": "text", "text": piece}),
        &|piece: &str| json!([{"type": "output_text", "text": piece, "annotations": []}]),
        &|piece: &str| json!([piece]),
        &|piece: &str| json!([[{"type": "text", "text": piece}]]),
        &|piece: &str| json!([{"type": "text", "text": {"value": piece}}]),
        &|piece: &str| json!([null, {"text": piece}]),
        &|piece: &str| {
            Value::Array(thoughts().into_iter().chain([json!({"type": "text", "text": piece})]).collect())
        },
    ];
    let done = json!("[DONE]");
    for content in contents {
        let mut body = chat(content, &json!("stop"));
        body.push(done.clone());
        is_answer(Wire::Chat, &sse(&body));
        is_answer(Wire::Ollama, &lines(&ollama(content, &json!({"done": true}))));
        is_answer(Wire::Gemini, &sse(&gemini(content, &json!("STOP"))));
        let whole = content(ANSWER);
        let message =
            json!({"choices": [{"index": 0, "message": {"content": whole}, "finish_reason": "stop"}]});
        is_answer(Wire::Chat, &message.to_string());
        is_answer(
            Wire::Messages,
            &json!({"type": "message", "content": whole, "stop_reason": "end_turn"}).to_string(),
        );
        let item = json!({"type": "message", "status": "completed", "content": whole});
        is_answer(Wire::Responses, &json!({"status": "completed", "output": [item]}).to_string());
        is_answer(Wire::Ollama, &json!({"message": {"content": whole}, "done": true}).to_string());
    }
    // Reasoning beside the content, which is null until it begins.
    for key in ["reasoning_content", "reasoning", "thinking"] {
        let thought = chunk(json!({"content": null, key: "{\"would_block\": false}"}), Value::Null);
        let body: Vec<Value> = [thought].into_iter().chain(plain_chat("stop")).collect();
        is_answer(Wire::Chat, &sse(&body));
        let only = [chunk(json!({"content": null, key: ANSWER}), json!("stop")), done.clone()];
        is_fault(Wire::Chat, &sse(&only), &FaultKind::Empty);
    }
    for thought in thoughts() {
        let only = [chunk(json!({"content": [thought]}), json!("stop")), done.clone()];
        is_fault(Wire::Chat, &sse(&only), &FaultKind::Empty);
        is_fault(
            Wire::Gemini,
            &sse(&gemini(|_| json!([{"text": ANSWER, "thought": true}]), &json!("STOP"))),
            &FaultKind::Empty,
        );
    }
    let refused = [chunk(json!({"content": [{"type": "refusal", "refusal": "No."}]}), json!("stop")), done];
    is_fault(Wire::Chat, &sse(&refused), &FaultKind::Refused { category: None });
}

#[test]
fn an_unknown_reason_with_the_final_event_is_an_answer() {
    let words = [
        "end_turn",
        "eos",
        "EOS",
        "STOP",
        "COMPLETE",
        "",
        "stop_sequence",
        "eos_token",
        "tool_calls",
        "complete",
        "null",
        "finished",
        "end-of-text",
        "FINISH_REASON_UNSPECIFIED",
    ];
    for reason in words.map(Value::from).into_iter().chain([Value::Null, json!({"type": "stop"})]) {
        let mut body = chat(plain, &reason);
        let is_own = reason.get("type").is_some();
        let word = reason.as_str().unwrap_or_default();
        let is_none = !is_own && ["", "null", "FINISH_REASON_UNSPECIFIED"].contains(&word);
        let cut = sse(&body);
        if is_own || word == "STOP" {
            is_answer(Wire::Chat, &cut);
        } else {
            is_fault(Wire::Chat, &cut, &FaultKind::EndedEarly);
        }
        body.push(json!("[DONE]"));
        is_answer(Wire::Chat, &sse(&body));
        let whole = json!({"choices": [{"message": {"content": ANSWER}, "finish_reason": reason}]});
        is_answer(Wire::Chat, &whole.to_string());
        let mut body = messages(messages_delta, &reason);
        is_answer(Wire::Messages, &sse(&body));
        body.pop();
        is_fault(Wire::Messages, &sse(&body), &FaultKind::EndedEarly);
        if !is_none {
            is_answer(Wire::Messages, &format!("{}data: [DONE]\n\n", sse(&body)));
        }
        let whole =
            json!({"type": "message", "content": [{"type": "text", "text": ANSWER}], "stop_reason": reason});
        is_answer(Wire::Messages, &whole.to_string());
        let last = json!({"message": {"content": ""}, "done": true, "done_reason": reason});
        let mut body = ollama(plain, &last);
        is_answer(Wire::Ollama, &lines(&body));
        body.pop();
        is_fault(Wire::Ollama, &lines(&body), &FaultKind::EndedEarly);
        // The end of the body is the last event of Gemini, if a reason came before.
        let body = sse(&gemini(gemini_parts, &reason));
        if is_none {
            is_fault(Wire::Gemini, &body, &FaultKind::EndedEarly);
        } else {
            is_answer(Wire::Gemini, &body);
        }
    }
}

#[test]
fn an_abnormal_reason_is_a_failure_in_any_case_of_letters() {
    let filter = |category: Option<&str>| FaultKind::ContentFilter { category: category.map(str::to_owned) };
    for (word, kind) in [
        ("length", FaultKind::CutOff),
        ("LENGTH", FaultKind::CutOff),
        ("max_tokens", FaultKind::CutOff),
        ("MAX_TOKENS", FaultKind::CutOff),
        ("model_length", FaultKind::CutOff),
        ("max_output_tokens", FaultKind::CutOff),
        ("token_limit", FaultKind::CutOff),
        ("content_filter", filter(None)),
        ("Content-Filter", filter(None)),
        ("SAFETY", filter(Some("SAFETY"))),
        ("RECITATION", filter(Some("RECITATION"))),
        ("PROHIBITED_CONTENT", filter(Some("PROHIBITED_CONTENT"))),
        ("IMAGE_SAFETY", filter(Some("IMAGE_SAFETY"))),
        ("guardrail_intervened", filter(Some("guardrail_intervened"))),
        ("refusal", FaultKind::Refused { category: None }),
        ("model_context_window_exceeded", FaultKind::ContextOverflow),
        ("error", FaultKind::Server),
        ("ERROR", FaultKind::Server),
        ("network_error", FaultKind::Server),
        ("abort", FaultKind::Server),
        ("insufficient_system_resource", FaultKind::Server),
        ("OTHER", FaultKind::Malformed),
        ("MALFORMED_FUNCTION_CALL", FaultKind::Malformed),
        ("cancelled", FaultKind::Malformed),
        ("incomplete", FaultKind::Malformed),
        ("pause_turn", FaultKind::Malformed),
    ] {
        let reason = json!(word);
        let mut body = chat(plain, &reason);
        is_fault(Wire::Chat, &sse(&body), &kind);
        // A later word does not take it back.
        body.extend([chunk(json!({}), json!("stop")), json!("[DONE]")]);
        is_fault(Wire::Chat, &sse(&body), &kind);
        is_fault(Wire::Chat, &Value::Array(body).to_string(), &kind);
        let whole = json!({"choices": [{"message": {"content": ANSWER}, "finish_reason": reason}]});
        is_fault(Wire::Chat, &whole.to_string(), &kind);
        is_fault(Wire::Messages, &sse(&messages(messages_delta, &reason)), &kind);
        is_fault(Wire::Gemini, &sse(&gemini(gemini_parts, &reason)), &kind);
        is_fault(Wire::Gemini, &Value::Array(gemini(gemini_parts, &reason)).to_string(), &kind);
        let last = json!({"done": true, "done_reason": reason});
        is_fault(Wire::Ollama, &lines(&ollama(plain, &last)), &kind);
    }
    let called = json!({"content": ANSWER, "tool_calls": [{"id": "c", "function": {"name": "f"}}]});
    is_fault(Wire::Chat, &sse(&[chunk(called, json!("tool_calls")), json!("[DONE]")]), &FaultKind::Malformed);
}

#[test]
fn a_stream_may_be_framed_in_many_ways() {
    let all = plain_chat("stop");
    let mut streamed = all.clone();
    streamed.push(json!("[DONE]"));
    let good = sse(&streamed);
    let array = Value::Array(all.clone());
    let elements: Vec<String> = all.iter().map(Value::to_string).collect();
    let framed = [
        sse(&all),
        good.replace('\n', "\r\n"),
        good.replace("data: ", "data:"),
        good.replace("data: ", " data: "),
        good.replace("data: ", "data: data: "),
        good.replace("\n\n", "\n"),
        format!("\u{feff}{good}"),
        format!("data: : keepalive\n\n{good}"),
        good.replace("data: {", "data: ping\n\ndata: {"),
        good.replace("data: {", "data:\n\nevent: ping\n\n: OPENROUTER PROCESSING\n\ndata: {"),
        good.replace("data: {", "event: ping\ndata: {}\n\ndata: {"),
        good.replace("data: {", "data: keep-alive\ndata: {"),
        good.replace("data: {", "data: [PING]\n\nid: 3\nretry: 10\ndata: {"),
        good.replace("data: {", "data: null\n\ndata: OPENROUTER PROCESSING\n\ndata: {"),
        format!("data: {}\n\n{good}", json!({"choices": [], "prompt_filter_results": [{"prompt_index": 0}]})),
        format!("{good}{good}"),
        format!("{good}data: {{\"choices\": [{{\"delta\": {{\"content\": \"x\"}}}}]}}\n\n"),
        lines(&all),
        format!("{}[DONE]\n", lines(&all)),
        array.to_string(),
        serde_json::to_string_pretty(&array).unwrap(),
        format!("[{}\n]\n", elements.join("\n,\n")),
        format!("[\n{}\n]", elements.join(",\n")),
        Value::Array(streamed.clone()).to_string(),
        format!("data: {array}\n\ndata: [DONE]\n\n"),
        good.replace("\"delta\"", "\"message\""),
        good.replace(
            "\"choices\":[",
            "\"choices\":[{\"index\":1,\"delta\":{\"content\":\"other\"},\"finish_reason\":\"stop\"},",
        ),
    ];
    for body in framed {
        is_answer(Wire::Chat, &body);
    }
    for body in [
        serde_json::to_string_pretty(&gemini(gemini_parts, &json!("STOP"))).unwrap(),
        lines(&gemini(gemini_parts, &json!("STOP"))),
        // Some versions give the reason with each chunk.
        sse(&gemini(gemini_parts, &json!("STOP")))
            .replace("\"finishReason\":null", "\"finishReason\":\"STOP\""),
        sse(&gemini(gemini_parts, &json!("STOP"))).replace("finishReason", "finish_reason"),
        format!("{}data: [DONE]\n\n", sse(&gemini(gemini_parts, &json!("STOP")))),
    ] {
        is_answer(Wire::Gemini, &body);
    }
    let native = ollama(plain, &json!({"done": true, "done_reason": "stop"}));
    for body in
        [sse(&native), Value::Array(native.clone()).to_string(), lines(&native).replace('\n', "\r\n\r\n")]
    {
        let is_list = body.starts_with('[');
        is_answer(Wire::Ollama, &body);
        assert!(is_list || Stream::new(Wire::Ollama).feed(body.as_bytes()).len() > 3, "it streams");
    }
    let named = messages(messages_delta, &json!("end_turn"));
    let named: String = named
        .into_iter()
        .map(|mut event| {
            let kind = event.as_object_mut().unwrap().remove("type").unwrap();
            format!("event: {}\ndata: {event}\n\n", kind.as_str().unwrap())
        })
        .collect();
    is_answer(Wire::Messages, &named);
    is_answer(Wire::Messages, &lines(&messages(messages_delta, &json!("end_turn"))));
}

#[test]
fn a_stream_that_is_cut_is_not_an_answer() {
    let all = plain_chat("stop");
    let cut = &all[..3];
    for body in [
        sse(cut),
        lines(cut),
        lines(&cut[..1]),
        Value::Array(cut.to_vec()).to_string(),
        sse(&chat(plain, &json!(""))),
        sse(&chat(plain, &json!("eos"))),
        lines(&chat(plain, &json!("eos"))),
        sse(&[
            chunk(json!({"content": &ANSWER[..5]}), json!("stop")),
            chunk(json!({"content": &ANSWER[5..]}), Value::Null),
        ]),
        json!({"object": "chat.completion.chunk", "choices": [{"message": {"content": ANSWER}}]}).to_string(),
    ] {
        is_fault(Wire::Chat, &body, &FaultKind::EndedEarly);
    }
    let array = Value::Array(all).to_string();
    is_fault(Wire::Chat, &array[..array.len() - 1], &FaultKind::Malformed);
    let lost = lines(&plain_chat("stop")).replacen("{\"choices\"", "\"choices\"", 2).replacen(
        "\"choices\"",
        "{\"choices\"",
        1,
    );
    assert!(text(Wire::Chat, &lost).is_err(), "a line that cannot be read is a part of the answer: {lost}");
    // An empty reason in the middle is not the end.
    let middle: Vec<Value> = pieces().map(|piece| chunk(json!({"content": piece}), json!(""))).into();
    is_fault(Wire::Chat, &sse(&middle), &FaultKind::EndedEarly);
    let ended: Vec<Value> = middle.into_iter().chain([chunk(json!({}), json!("stop"))]).collect();
    is_answer(Wire::Chat, &sse(&ended));
    is_fault(Wire::Gemini, &sse(&gemini(gemini_parts, &Value::Null)), &FaultKind::EndedEarly);
    is_fault(
        Wire::Gemini,
        &Value::Array(gemini(gemini_parts, &Value::Null)).to_string(),
        &FaultKind::EndedEarly,
    );
    let whole = json!({"candidates": [{"content": {"parts": [{"text": ANSWER}]}}]});
    is_fault(Wire::Gemini, &whole.to_string(), &FaultKind::EndedEarly);
}

#[test]
fn a_failure_after_a_part_of_the_answer_is_not_an_answer() {
    let part = sse(&[chunk(json!({"content": ANSWER}), Value::Null)]);
    let error = json!({"code": 500, "message": "slot failed", "type": "server_error"});
    for (said, kind) in [
        (format!("error: {error}\n\n"), FaultKind::Server),
        (format!("error: {error}"), FaultKind::Server),
        (format!("{}\n\n", json!({"error": error})), FaultKind::Server),
        (format!("event: error\ndata: {error}\n\n"), FaultKind::Server),
        ("Internal Server Error\n\n".to_owned(), FaultKind::EndedEarly),
        ("error: upstream reset\n\n".to_owned(), FaultKind::EndedEarly),
        ("<html>502 Bad Gateway</html>\n".to_owned(), FaultKind::EndedEarly),
    ] {
        is_fault(Wire::Chat, &format!("{part}{said}"), &kind);
        is_fault(Wire::Chat, &format!("{part}{said}\ndata: [DONE]\n\n"), &kind);
        is_fault(
            Wire::Chat,
            &format!("{}{said}\ndata: [DONE]\n\n", part.trim_end_matches('\n').to_owned() + "\n"),
            &kind,
        );
    }
    is_answer(Wire::Chat, &format!("{part}   \ndata: [DONE]\n\n"));
}

#[test]
fn a_body_that_is_cut_within_an_event_ended_early() {
    let all = plain_chat("stop");
    for whole in [sse(&all[..3]), lines(&all[..3])] {
        for cut in 1..whole.trim_end().len() {
            // A part of the first line does not count as an event: it may belong to an HTML page.
            if whole[..cut].contains('\n') {
                is_fault(Wire::Chat, &whole[..cut], &FaultKind::EndedEarly);
            }
        }
    }
    let body =
        sse(&[chunk(json!({"content": ANSWER}), Value::Null), chunk(json!({"content": "é"}), Value::Null)]);
    let mut stream = Stream::new(Wire::Chat);
    stream.feed(&body.as_bytes()[..=body.find('é').unwrap()]);
    let Some(Event::Ended(ended)) = stream.finish().pop() else { panic!("it ends") };
    assert_eq!(ended.text.unwrap_err().kind, FaultKind::EndedEarly);
}

#[test]
fn a_complete_answer_is_known_before_its_final_event() {
    for (wire, body, is_complete) in [
        (Wire::Chat, sse(&plain_chat("stop")), true),
        (Wire::Chat, sse(&plain_chat("eos")), false),
        (Wire::Chat, sse(&plain_chat("length")), false),
        (Wire::Chat, sse(&plain_chat("stop")[..3]), false),
        (Wire::Chat, sse(&plain_chat("STOP")), true),
        // A reason with each part says nothing of the last one, and Gemini's end is that of the body.
        (Wire::Chat, sse(&pieces().map(|piece| chunk(json!({"content": piece}), json!("stop")))), false),
        (Wire::Gemini, sse(&gemini(gemini_parts, &json!("STOP"))), false),
        (Wire::Messages, sse(&messages(messages_delta, &json!("end_turn"))[..5]), false),
    ] {
        let mut stream = Stream::new(wire);
        stream.feed(body.as_bytes());
        assert_eq!(stream.is_complete(), is_complete, "{wire:?} {body}");
    }
}

#[test]
fn a_message_after_its_deltas_counts_once() {
    let whole = json!({"content": ANSWER});
    let mut all = plain_chat("stop");
    all.pop();
    let end = |delta: Value| json!({"choices": [{"index": 0, "delta": delta, "message": whole, "finish_reason": "stop"}]});
    for last in [end(Value::Null), end(json!({})), end(json!({"content": ""}))] {
        let body: Vec<Value> = all.iter().cloned().chain([last, json!("[DONE]")]).collect();
        is_answer(Wire::Chat, &sse(&body));
    }
    // Each chunk with its delta and the message until there.
    let mut said = String::new();
    let both: Vec<Value> = pieces()
        .map(|piece| {
            said.push_str(piece);
            json!({"choices": [{"delta": {"content": piece}, "message": {"content": said}}]})
        })
        .into();
    let both: Vec<Value> = both.into_iter().chain([chunk(json!({}), json!("stop"))]).collect();
    is_answer(Wire::Chat, &sse(&both));
    is_answer(Wire::Chat, &sse(&[json!({"choices": [{"text": ANSWER, "finish_reason": "stop"}]})]));
}

#[test]
fn the_text_of_responses_may_come_in_any_event_and_counts_once() {
    let kind = |name: &str, more: Value| {
        let mut event = json!({"type": format!("response.{name}"), "output_index": 0});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    };
    let part = json!({"type": "output_text", "text": ANSWER});
    let item = json!({"type": "message", "status": "completed", "content": [part]});
    let deltas = pieces().map(|piece| kind("output_text.delta", json!({"delta": piece})));
    let done = [
        kind("output_text.done", json!({"text": ANSWER})),
        kind("content_part.done", json!({"part": part})),
        kind("output_item.done", json!({"item": item})),
    ];
    let full = kind("completed", json!({"response": {"status": "completed", "output": [item]}}));
    let bare = kind("completed", json!({"response": {"status": "completed", "output": []}}));
    for end in [
        &full,
        &bare,
        &kind("completed", json!({"response": {}})),
        &kind("done", json!({"response": {"status": "completed"}})),
    ] {
        is_answer(Wire::Responses, &sse(&[&deltas[..], std::slice::from_ref(end)].concat()));
        is_answer(Wire::Responses, &sse(&[&deltas[..], &done[..], std::slice::from_ref(end)].concat()));
        is_answer(Wire::Responses, &sse(&[&done[..], std::slice::from_ref(end)].concat()));
        for only in &done {
            is_answer(Wire::Responses, &sse(&[only.clone(), end.clone()]));
        }
    }
    is_answer(Wire::Responses, &sse(std::slice::from_ref(&full)));
    is_answer(Wire::Responses, &json!({"output_text": ANSWER, "output": []}).to_string());
    let reasoning = json!({"type": "reasoning", "status": "in_progress", "content": [{"type": "reasoning_text", "text": "x"}]});
    let talk = json!({"type": "message", "phase": "commentary", "content": [{"type": "output_text", "text": "I look."}]});
    is_answer(
        Wire::Responses,
        &json!({"status": "completed", "output": [reasoning, talk, item]}).to_string(),
    );
    for (end, error) in [
        (
            json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": [item]}),
            FaultKind::CutOff,
        ),
        (
            json!({"status": "completed", "incomplete_details": {"reason": "content_filter"}}),
            FaultKind::ContentFilter { category: None },
        ),
        (json!({"status": "in_progress", "output": [item]}), FaultKind::Malformed),
        (json!({"status": "completed", "error": {"message": "no"}}), FaultKind::Server),
        (
            json!({"status": "completed", "output": [{"type": "message", "status": "incomplete", "content": [part]}]}),
            FaultKind::Malformed,
        ),
    ] {
        let body = sse(&[&deltas[..], &[kind("completed", json!({"response": end}))]].concat());
        is_fault(Wire::Responses, &body, &error);
    }
    is_fault(Wire::Responses, &format!("{}data: [DONE]\n\n", sse(&deltas)), &FaultKind::EndedEarly);
    is_fault(Wire::Responses, &sse(&done), &FaultKind::EndedEarly);
    let refused = json!({"type": "message", "content": [{"type": "refusal", "refusal": "No."}]});
    let refused = json!({"response": {"status": "completed", "output": [refused]}});
    is_fault(Wire::Responses, &sse(&[kind("completed", refused)]), &FaultKind::Refused { category: None });
}

#[test]
fn ollama_ends_with_done_and_a_model_that_was_only_loaded_is_asked_again() {
    for last in [
        json!({"done": true}),
        json!({"done": true, "done_reason": null}),
        json!({"done": true, "done_reason": ""}),
        json!({"message": {"content": null}, "done": true, "done_reason": "stop", "eval_count": null}),
        json!({"model": null, "message": null, "done": true, "total_duration": 1e22}),
    ] {
        is_answer(Wire::Ollama, &lines(&ollama(plain, &last)));
    }
    for reason in ["load", "unload", "LOAD"] {
        let last = json!({"message": {"content": ""}, "done": true, "done_reason": reason});
        let fault = text(Wire::Ollama, &lines(std::slice::from_ref(&last))).unwrap_err();
        assert_eq!((&fault.kind, fault.retry()), (&FaultKind::Empty, Retry::Soon), "{fault}");
        is_fault(Wire::Ollama, &lines(&ollama(plain, &last)), &FaultKind::Malformed);
    }
}

#[test]
fn errors_in_a_success_have_their_status_in_every_spelling() {
    let said = sse(&plain_chat("stop")[..2]);
    for (error, kind, status) in [
        (json!({"error": "boom"}), FaultKind::Server, None),
        (json!({"error": {"message": "boom", "code": 429}}), FaultKind::RateLimited, Some(429)),
        (json!({"error": {"message": "boom", "code": "503"}}), FaultKind::Overloaded, Some(503)),
        (json!({"error": [{"message": "boom", "code": 401}]}), FaultKind::Auth, Some(401)),
        (json!({"error": "boom", "code": 500}), FaultKind::Server, Some(500)),
        (json!({"error": true, "message": "boom", "status": 404}), FaultKind::UnknownModel, Some(404)),
        (json!({"errors": [{"message": "boom", "code": 1}], "success": false}), FaultKind::Server, None),
        (json!({"detail": "boom"}), FaultKind::Server, None),
        (
            json!({"detail": [{"msg": "boom", "loc": ["body"]}], "status_code": 422}),
            FaultKind::BadRequest,
            Some(422),
        ),
        (json!({"message": "boom", "code": 429}), FaultKind::RateLimited, Some(429)),
        (json!({"object": "error", "message": "boom", "code": 400}), FaultKind::BadRequest, Some(400)),
        (json!({"type": "error", "message": "boom"}), FaultKind::Server, None),
        (json!({"msg": "boom", "statusCode": "502"}), FaultKind::Server, Some(502)),
        (json!({"status": "error", "message": "boom"}), FaultKind::Server, None),
    ] {
        for wire in Wire::ALL {
            for body in [
                error.to_string(),
                serde_json::to_string_pretty(&error).unwrap(),
                json!([error]).to_string(),
                format!("data: {error}\n\n"),
                format!("event: error\ndata: {error}\n\n"),
                format!("{said}data: {error}\n\ndata: [DONE]\n\n"),
                format!("{said}{error}\n"),
            ] {
                let fault = text(wire, &body).unwrap_err();
                assert_eq!((&fault.kind, fault.status), (&kind, status), "{wire:?} {fault}: {body}");
                assert!(fault.said.contains("boom"), "{wire:?} {fault}: {body}");
            }
        }
    }
    let beside = json!({"choices": [{"index": 0, "delta": {"content": ANSWER}, "error": {"message": "boom", "code": 502}}]});
    is_fault(Wire::Chat, &sse(&[beside, json!("[DONE]")]), &FaultKind::Server);
    // These notes are not errors.
    for note in [
        json!({"status": "queued", "message": "place 3"}),
        json!({"code": 200, "message": "ok"}),
        json!({"code": 0, "msg": ""}),
    ] {
        is_answer(Wire::Chat, &format!("data: {note}\n\n{}", sse(&plain_chat("stop"))));
    }
    for empty in [json!(null), json!(false), json!("")] {
        let mut all = plain_chat("stop");
        all[1]["error"] = empty;
        is_answer(Wire::Chat, &sse(&all));
    }
    for foreign in ["{\"ok\": 1}", "\"text\"", "3", "[]", "<html>\n<title>Sign in</title>"] {
        is_fault(Wire::Chat, foreign, &FaultKind::Malformed);
    }
}

#[test]
fn unreadable_usage_is_unknown_and_not_an_error() {
    for (count, read_as) in [
        (json!(2500), Some(2500)),
        (json!(2500.0), Some(2500)),
        (json!("2500"), Some(2500)),
        (json!(" 2500.0 "), Some(2500)),
        (json!(null), None),
        (json!(-1), None),
        (json!("many"), None),
        (json!({"total": 3}), None),
        (json!([1]), None),
        (json!(true), None),
        (json!(1e30), None),
        (json!(u64::MAX), None),
        (json!("inf"), None),
    ] {
        let mut all = plain_chat("stop");
        all.push(json!({"choices": [], "usage": {"prompt_tokens": count, "completion_tokens": 60, "prompt_tokens_details": null}}));
        let mut bodies = vec![(Wire::Chat, sse(&all))];
        let mut all = messages(messages_delta, &json!("end_turn"));
        all[4]["usage"] = json!({"input_tokens": count, "output_tokens": 60, "cache_creation": null});
        bodies.push((Wire::Messages, sse(&all)));
        let mut all = gemini(gemini_parts, &json!("STOP"));
        all[2]["usageMetadata"] = json!({"promptTokenCount": count, "candidatesTokenCount": 60.0});
        bodies.push((Wire::Gemini, sse(&all)));
        let last = json!({"done": true, "prompt_eval_count": count, "eval_count": "60"});
        bodies.push((Wire::Ollama, lines(&ollama(plain, &last))));
        let usage = json!({"input_tokens": count, "output_tokens": 60, "input_tokens_details": {"cached_tokens": null}});
        bodies.push((Wire::Responses, json!({"output_text": ANSWER, "usage": usage}).to_string()));
        for (wire, body) in bodies {
            is_answer(wire, &body);
            let usage = read(wire, &body).usage;
            assert_eq!((usage.tokens_in, usage.tokens_out), (read_as, Some(60)), "{wire:?} {count}");
        }
    }
    for usage in [json!(null), json!([]), json!("none"), json!(7), json!({"prompt_tokens_details": 3})] {
        let mut all = plain_chat("stop");
        all[0]["usage"] = json!({"prompt_tokens": 9});
        all[3]["usage"] = usage;
        is_answer(Wire::Chat, &sse(&all));
        assert_eq!(read(Wire::Chat, &sse(&all)).usage.tokens_in, Some(9));
    }
}

#[test]
fn an_unneeded_field_never_fails_a_response() {
    let odd = [
        json!(null),
        json!(7),
        json!("x"),
        json!([1, {}]),
        json!({"a": null}),
        json!(1e300),
        json!(u64::MAX),
        json!(false),
    ];
    for value in odd {
        for key in
            ["model", "id", "created", "object", "system_fingerprint", "service_tier", "logprobs", "index"]
        {
            let mut all = plain_chat("stop");
            for event in &mut all {
                event[key] = value.clone();
                event["choices"][0]["logprobs"] = value.clone();
                event["choices"][0]["delta"]["role"] = value.clone();
            }
            is_answer(Wire::Chat, &sse(&all));
        }
        for key in ["modelVersion", "responseId", "createTime", "model"] {
            let mut all = gemini(gemini_parts, &json!("STOP"));
            all.iter_mut().for_each(|event| event[key] = value.clone());
            is_answer(Wire::Gemini, &sse(&all));
        }
        for key in ["model", "created_at", "total_duration", "context"] {
            let mut all = ollama(plain, &json!({"done": true}));
            all.iter_mut().for_each(|event| event[key] = value.clone());
            is_answer(Wire::Ollama, &lines(&all));
        }
        let mut all = messages(messages_delta, &json!("end_turn"));
        all[0]["message"]["model"] = value.clone();
        all.iter_mut().for_each(|event| event["index"] = value.clone());
        is_answer(Wire::Messages, &sse(&all));
        is_answer(Wire::Responses, &json!({"id": value, "model": value, "output_text": ANSWER}).to_string());
    }
    assert_eq!(read(Wire::Chat, &json!({"model": 3, "choices": []}).to_string()).model, None);
}

#[test]
fn the_first_of_several_choices_counts() {
    let choice = |index: Value, content: &str| json!({"index": index, "message": {"content": content}, "finish_reason": "stop"});
    for choices in [
        json!([choice(json!(0), ANSWER), choice(json!(1), "other")]),
        json!([choice(json!(1), "other"), choice(json!(0), ANSWER)]),
        json!([choice(Value::Null, ANSWER), choice(Value::Null, "other")]),
        json!([choice(json!("0"), ANSWER), choice(json!("1"), "other")]),
        json!([choice(json!(0.0), ANSWER)]),
    ] {
        is_answer(Wire::Chat, &json!({"choices": choices}).to_string());
    }
    let other = json!({"choices": [choice(json!(1), ANSWER)]});
    is_fault(Wire::Chat, &other.to_string(), &FaultKind::EndedEarly);
}

#[test]
fn keep_alives_are_recognized_on_every_wire() {
    for wire in Wire::ALL {
        for line in [
            ": keepalive\n",
            "data: : keepalive\n\n",
            "data: ping\n\n",
            "event: ping\n\n",
            "data:\n\n",
            "data: {}\n\n",
        ] {
            assert_eq!(Stream::new(wire).feed(line.as_bytes()), [Event::Progress], "{wire:?} {line:?}");
        }
    }
    let fault = text(Wire::Chat, "data: upstream is gone\n\n").unwrap_err();
    assert_eq!((fault.kind, &*fault.said), (FaultKind::EndedEarly, "upstream is gone"));
}

#[test]
fn a_value_of_many_parts_is_not_read() {
    let parts = |part: &str, count: usize| format!("{{\"model\": [{}]}}", vec![part; count].join(","));
    for (part, count, is_read) in [
        ("{\"\":0}", 20_000, true),
        ("{\"\":0}", 40_000, false),
        ("0", 1 << 21, false),
        ("\",[{,\"", 45_000, true),
    ] {
        let body = parts(part, count);
        assert!(body.len() < MAX_EVENT_BYTES);
        for wire in Wire::ALL {
            let kind = if is_read { FaultKind::EndedEarly } else { FaultKind::TooLarge };
            is_fault(wire, &format!("data: {body}\n\n"), &kind);
            is_fault(wire, &format!("{body}\n"), &kind);
        }
    }
}
