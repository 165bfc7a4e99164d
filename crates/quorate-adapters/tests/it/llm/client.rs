//! Calls over real sockets: what is sent, how a call ends, and that nothing leaks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quorate_adapters::executor::llm;
use quorate_kernel::ports::executor::{
    ConfigError, Executor, Failure, Invocation, Reply, Retry, Settings, Usage,
};
use quorate_kernel::single_call;
use quorate_manifest::money::Money;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use super::server::{Server, Step, chat, chat_delta, chat_end, ok, status};

const ANSWER: &str = r#"{"would_block": false}"#;
const CANARY: &str = "sk-canary-3f9a7c21d5";

fn build(block: Value) -> Result<Arc<dyn Executor>, ConfigError> {
    llm::new(&Settings {
        name: "model".into(),
        timeout: Duration::from_secs(10),
        retries: 0,
        dir: "/".into(),
        block: block.as_object().cloned().unwrap_or_default(),
        servers: Default::default(),
        prices: None,
    })
}

/// An executor for a server, in a pool of its own. `more` adds settings.
fn executor(server: &Server, more: Value) -> Arc<dyn Executor> {
    let mut block = json!({"wire": "chat", "base_url": server.url, "model": "asked", "pool": server.url});
    block.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    build(block).unwrap()
}

fn question() -> Invocation {
    single_call::probe_question(Duration::from_secs(10))
}

async fn ask(server: &Server, more: Value) -> Result<Reply, Failure> {
    executor(server, more).invoke(question()).await
}

#[tokio::test]
async fn an_answer_is_read_with_what_it_cost() {
    let server = Server::start(|_| chat(ANSWER)).await;
    let invocation = question();
    let (notes, prompt) = (invocation.notes.clone(), invocation.prompt.clone());
    let price = json!({"input": 3.0, "output": 15.0, "cache_read": 0.3});
    let reply = executor(&server, json!({"price": price})).invoke(invocation).await.unwrap();
    assert_eq!((&*reply.text, reply.model.as_deref()), (ANSWER, Some("served")));
    let noted = notes.read();
    let usage = noted.usage.unwrap();
    assert_eq!((usage.tokens_in, usage.tokens_cached, usage.tokens_out), (Some(1000), Some(600), Some(20)));
    // 400 x 3 + 600 x 0.3 + 20 x 15 dollars for a million
    assert_eq!((usage.money, noted.model.as_deref()), (Some(Money::from_nanos(1_680_000)), Some("served")));
    let [request] = &server.received()[..] else { panic!("one request") };
    assert!(request.head.starts_with("POST /chat/completions HTTP/1.1\r\n"), "{}", request.head);
    assert!(!request.head.to_ascii_lowercase().contains("authorization"), "no key, no header");
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    let said: String =
        body["messages"].as_array().unwrap().iter().map(|one| one["content"].as_str().unwrap()).collect();
    assert_eq!(said, *prompt, "the same bytes, in two parts");
    assert_eq!(body["messages"].as_array().unwrap().len(), 2);
    assert_eq!((&body["model"], &body["stream"]), (&json!("asked"), &json!(true)));
}

#[tokio::test]
async fn usage_of_nothing_is_unknown_and_what_was_turned_down_took_nothing() {
    let usage = |server: Server| async move {
        let invocation = question();
        let notes = invocation.notes.clone();
        let price = json!({"price": {"input": 3.0, "output": 15.0}});
        let replied = executor(&server, price).invoke(invocation).await;
        (replied.is_ok(), notes.read().usage)
    };
    // A gateway that does not count.
    let end = String::from_utf8(chat_end()).unwrap();
    let end = end.replace("\"prompt_tokens\":1000", "\"prompt_tokens\":0").into_bytes();
    let uncounted =
        Server::start(move |_| vec![ok(), Step::Send(chat_delta(ANSWER)), Step::Send(end.clone())]);
    assert_eq!(usage(uncounted.await).await, (true, Some(Usage::default())));
    let limited = Server::start(|_| status("429 Too Many Requests", "", "{}"));
    let nothing =
        Usage { tokens_in: Some(0), tokens_out: Some(0), money: Some(Money::ZERO), ..Usage::default() };
    assert_eq!(usage(limited.await).await, (false, Some(nothing)));
    // A limit within a response that began: what it has reported is paid for.
    let late = br#"data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}

data: {"error":{"code":429,"message":"slow down"}}

"#;
    let late = Server::start(|_| vec![ok(), Step::Send(late.to_vec())]);
    let (is_ok, reported) = usage(late.await).await;
    assert_eq!((is_ok, reported.unwrap().tokens_in), (false, Some(7)));
    // Nothing listens there.
    let gone = build(json!({"base_url": "http://127.0.0.1:9", "model": "m", "pool": "gone-by-now"})).unwrap();
    let invocation = question();
    let notes = invocation.notes.clone();
    let said = gone.invoke(invocation).await.unwrap_err().to_string();
    assert_eq!(
        (said.starts_with("cannot reach 127.0.0.1:9"), notes.read().usage),
        (true, Some(nothing)),
        "{said}"
    );
    // Whether a model had begun is not known.
    let broken = Server::start(|_| status("500 Internal Server Error", "", "{}"));
    assert_eq!(usage(broken.await).await, (false, None));
}

#[tokio::test]
async fn the_terminal_event_ends_the_call_and_its_absence_is_a_failure() {
    let start = Instant::now();
    let server = Server::start(|_| [chat(ANSWER), vec![Step::Hold]].concat()).await;
    assert_eq!(ask(&server, json!({})).await.unwrap().text, ANSWER);
    for encoding in ["none", "utf-8", "identity", "UTF-8", ""] {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-encoding: {encoding}\r\n\r\n").into_bytes();
        let whole = [head, chat_delta(ANSWER), chat_end()].concat();
        let server = Server::start(move |_| vec![Step::Send(whole.clone())]).await;
        assert_eq!(ask(&server, json!({})).await.unwrap().text, ANSWER, "{encoding}");
    }
    // A connection that breaks off after the reason for the end.
    let stop = br#"data: {"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
    let broken = |more: Vec<u8>| {
        let head =
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 99999\r\n\r\n".to_vec();
        Server::start(move |_| vec![Step::Send([head.clone(), chat_delta(ANSWER), more.clone()].concat())])
    };
    assert_eq!(ask(&broken([&stop[..], b"\n\n"].concat()).await, json!({})).await.unwrap().text, ANSWER);
    assert!(ask(&broken(Vec::new()).await, json!({})).await.is_err());
    let early = Server::start(|_| vec![ok(), Step::Send(chat_delta(ANSWER))]).await;
    let failure = ask(&early, json!({})).await.unwrap_err();
    assert!(failure.to_string().contains("ended before the answer was complete"), "{failure}");
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_whole_answer_does_not_wait_long_for_its_final_event() {
    let end = String::from_utf8(chat_end()).unwrap();
    assert!(end.contains("\"stop\"") && end.ends_with("data: [DONE]\n\n"), "{end}");
    let end = end.replace("data: [DONE]\n\n", "");
    let server = Server::start(move |_| {
        let end = Step::Send(end.clone().into_bytes());
        vec![ok(), Step::Send(chat_delta(ANSWER)), end, Step::Hold]
    });
    let server = server.await;
    let question = single_call::probe_question(Duration::from_secs(2));
    assert_eq!(executor(&server, json!({})).invoke(question).await.unwrap().text, ANSWER);
    let cut = Server::start(|_| vec![ok(), Step::Send(chat_delta(ANSWER)), Step::Hold]).await;
    let question = single_call::probe_question(Duration::from_secs(2));
    let failure = executor(&cut, json!({})).invoke(question).await.unwrap_err();
    assert!(matches!(failure, Failure::TimedOut), "{failure:?}");
}

#[tokio::test]
async fn each_failure_is_one_request_and_says_whether_to_ask_again() {
    let error = r#"{"error":{"message":"no","type":"t","code":null}}"#;
    for (answer, retry, says) in [
        (status("401 Unauthorized", "", error), Retry::Never, "did not accept the key"),
        (status("404 Not Found", "", error), Retry::Never, "does not know the model"),
        (status("400 Bad Request", "", error), Retry::Never, "invalid"),
        (
            status("429 Too Many", "retry-after: 7\r\n", error),
            Retry::After(Duration::from_secs(7)),
            "limits the rate",
        ),
        (status("500 Oops", "", error), Retry::Soon, "the service failed"),
        (
            status("302 Found", "location: http://127.0.0.1:9/x\r\n", ""),
            Retry::Never,
            "redirects to http://127.0.0.1:9/x",
        ),
        (status("200 OK", "", error), Retry::Soon, "no"),
        (status("200 OK", "content-encoding: gzip\r\n", "x"), Retry::Never, "encoded as"),
        (status("200 OK", "content-encoding: identity, BR\r\n", "x"), Retry::Never, "encoded as"),
        (status("200 OK", "", "<html>"), Retry::Never, "<html>"),
        (
            vec![ok(), Step::Send(b"data: {\"error\":{\"message\":\"broke\"}}\n\n".to_vec())],
            Retry::Soon,
            "broke",
        ),
        (vec![ok(), Step::Send(b"data: \xff\xfe\n\n".to_vec())], Retry::Never, "format"),
        (
            vec![ok(), Step::Send(b"data: {\"choices\":[],\"choices\":[]}\n\n".to_vec())],
            Retry::Never,
            "format",
        ),
    ] {
        let server = Server::start(move |_| answer.clone()).await;
        let failure = ask(&server, json!({})).await.unwrap_err();
        let Failure::Failed { message, retry: allowed } = failure else { panic!("{says}: {failure:?}") };
        assert!(message.contains(says), "{says}: {message}");
        assert_eq!(allowed, retry, "{message}");
        assert_eq!(server.received().len(), 1, "{message}");
    }
    let unreached = async |url: &str| {
        let block = json!({"base_url": url, "model": "m", "pool": url});
        let failure = build(block).unwrap().invoke(question()).await.unwrap_err();
        let Failure::Failed { message, retry } = failure else { panic!("{url}: {failure:?}") };
        assert!(message.starts_with("cannot reach "), "{message}");
        retry
    };
    assert_eq!(unreached("http://127.0.0.1:9").await, Retry::Soon);
    // A server without TLS fails the same way each time.
    let plain = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", plain.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut client, _)) = plain.accept().await {
            let _ = client.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    assert_eq!(unreached(&url).await, Retry::Never);
}

#[tokio::test]
async fn a_key_goes_to_its_header_and_is_told_to_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    std::fs::write(&path, format!("{CANARY}\n")).unwrap();
    let key = json!({"file": path});
    let echo = format!(r#"{{"error":{{"message":"bad key {CANARY}"}}}}"#);
    let server = Server::start(move |_| status("401 Unauthorized", "", &echo)).await;
    for (auth, header) in [
        ("bearer", format!("authorization: bearer {CANARY}")),
        ("x-api-key", format!("x-api-key: {CANARY}")),
        ("api-key", format!("api-key: {CANARY}")),
        ("x-goog-api-key", format!("x-goog-api-key: {CANARY}")),
    ] {
        let failure = ask(&server, json!({"key": key, "auth": auth})).await.unwrap_err();
        let head = server.received().last().unwrap().head.to_ascii_lowercase();
        assert!(head.contains(&header), "{head}");
        let said = format!("{failure:?} {failure}");
        assert!(!said.contains(CANARY) && said.contains("[key]"), "{said}");
        assert!(said.contains(&*path.to_string_lossy()), "it says where the key came from: {said}");
    }
    // Where what is quoted of an answer ends in the middle of the key.
    let long = format!(r#"{{"error":{{"message":"{}{CANARY}"}}}}"#, "x".repeat(390));
    let cut = Server::start(move |_| status("500 Oops", "", &long)).await;
    let failure = ask(&cut, json!({"key": key})).await.unwrap_err().to_string();
    assert!(!failure.contains("sk-can") && failure.contains("[key]…"), "{failure}");
    let body =
        String::from_utf8([chat_delta(ANSWER), chat_end()].concat()).unwrap().replace("served", CANARY);
    let named = Server::start(move |_| vec![ok(), Step::Send(body.clone().into_bytes())]).await;
    let invocation = question();
    let notes = invocation.notes.clone();
    let reply = executor(&named, json!({"key": key})).invoke(invocation).await.unwrap();
    assert_eq!((reply.model.as_deref(), notes.read().model.as_deref()), (Some("[key]"), Some("[key]")));
    let quoted = Server::start(|_| chat(&format!("{{\"would_block\": false, \"x\": \"{CANARY}\"}}"))).await;
    let reply = ask(&quoted, json!({"key": key})).await.unwrap();
    assert!(!reply.text.contains(CANARY) && reply.text.contains("[key]"), "{}", reply.text);
}

#[tokio::test]
async fn what_a_command_prints_is_asked_for_again_after_a_refusal() {
    let dir = tempfile::tempdir().unwrap();
    let count = dir.path().join("count");
    let script = format!("echo x >> {0}; echo key-canary-$(wc -l < {0} | tr -d ' ')", count.display());
    // It says the key that it did not accept, once with an escape.
    let told = r#"{"would_block": false, "brief": "not key-canary-1, \u006bey-canary-1"}"#;
    let server = Server::start(|n| if n == 0 { status("401 No", "", "") } else { chat(told) }).await;
    let executor = executor(&server, json!({"key": {"command": ["sh", "-c", script]}}));
    let Failure::Failed { retry, .. } = executor.invoke(question()).await.unwrap_err() else {
        panic!("failed")
    };
    assert_eq!(retry, Retry::Soon, "another key may be accepted");
    for _ in 0..2 {
        let text = executor.invoke(question()).await.unwrap().text;
        assert!(text.contains("would_block") && !text.contains("canary"), "{text}");
    }
    let keys: Vec<bool> =
        server.received().iter().map(|one| one.head.contains("Bearer key-canary-2")).collect();
    assert_eq!(keys, [false, true, true]);
}

#[tokio::test]
async fn comments_are_life_and_silence_is_not() {
    let idle = json!({"idle": "300ms"});
    let beat = Duration::from_millis(100);
    let alive =
        Server::start(move |_| [vec![ok(), Step::Comments(8, beat)], chat(ANSWER)[1..].to_vec()].concat())
            .await;
    assert_eq!(ask(&alive, idle.clone()).await.unwrap().text, ANSWER);
    for steps in
        [vec![Step::Hold], vec![ok(), Step::Hold], vec![ok(), Step::Send(chat_delta("x")), Step::Hold]]
    {
        let silent = Server::start(move |_| steps.clone()).await;
        let start = Instant::now();
        let failure = ask(&silent, idle.clone()).await.unwrap_err();
        assert!(failure.to_string().contains("sent nothing"), "{failure}");
        assert!(start.elapsed() < Duration::from_secs(2));
    }
    // The deadline counts even while something comes.
    let slow = Server::start(move |_| vec![ok(), Step::Comments(1_000, Duration::from_millis(20))]).await;
    let invocation = single_call::probe_question(Duration::from_millis(400));
    assert_eq!(executor(&slow, idle).invoke(invocation).await, Err(Failure::TimedOut));
}

#[tokio::test]
async fn a_dropped_call_closes_its_connection() {
    let server = Server::start(|_| vec![ok(), Step::Send(chat_delta("x")), Step::Hold]).await;
    let call = tokio::time::timeout(Duration::from_millis(300), ask(&server, json!({}))).await;
    assert!(call.is_err(), "it is under way");
    let start = Instant::now();
    while server.closed_by_client() == 0 {
        assert!(start.elapsed() < Duration::from_secs(2), "the connection is still open");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn large_replies_are_not_read_whole() {
    let body = "x".repeat(4 << 20);
    let server = Server::start(move |_| status("500 Oops", "", &body)).await;
    let failure = ask(&server, json!({})).await.unwrap_err();
    assert!(failure.to_string().len() < 1_000);
    let delta = chat_delta(&"y".repeat(300_000));
    let long = Server::start(move |_| {
        let all = std::iter::repeat_n(Step::Send(delta.clone()), 8);
        std::iter::once(ok()).chain(all).chain([Step::Send(chat_end())]).collect()
    })
    .await;
    let failure = ask(&long, json!({})).await.unwrap_err();
    assert!(failure.to_string().contains("too large"), "{failure}");
}

#[tokio::test]
async fn a_prompt_that_a_server_cut_is_a_failure() {
    let usage = r#"data: {"choices":[{"delta":{"content":"{}"},"finish_reason":"stop"}]}

data: {"choices":[],"usage":{"prompt_tokens":300,"completion_tokens":1}}

data: [DONE]

"#;
    let server = Server::start(move |_| vec![ok(), Step::Send(usage.as_bytes().to_vec())]).await;
    let long = "word ".repeat(4_000);
    let invocation = Invocation { prompt: long.into(), cuts: Arc::new([]), ..question() };
    let failure = executor(&server, json!({})).invoke(invocation).await.unwrap_err();
    assert!(failure.to_string().contains("cut the prompt"), "{failure}");
    // With the words in the gateway's cache counted apart.
    let apart = usage.replace(
        "\"completion_tokens\":1",
        "\"completion_tokens\":1,\"prompt_tokens_details\":{\"cached_tokens\":4100}",
    );
    let server = Server::start(move |_| vec![ok(), Step::Send(apart.as_bytes().to_vec())]).await;
    let invocation = Invocation { prompt: "word ".repeat(4_000).into(), cuts: Arc::new([]), ..question() };
    let reply = executor(&server, json!({})).invoke(invocation.clone()).await.unwrap();
    assert_eq!((reply.usage.tokens_in, reply.usage.tokens_cached), (Some(4400), Some(4100)));
    let failure = executor(&server, json!({"context": 3_000})).invoke(invocation).await.unwrap_err();
    assert!(failure.to_string().contains("`context` is 3000"), "{failure}");
    assert_eq!(server.received().len(), 1, "what cannot fit is not sent");
}

#[tokio::test]
async fn the_first_call_of_a_wave_goes_alone_until_its_response_begins() {
    let prompt: Arc<str> = "shared ".repeat(1_000).into();
    let wave = async |cache: &str, bytes: usize| {
        let server = Server::start(|n| {
            let delta =
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"{}"}}"#;
            let end =
                r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}"#;
            let body = [r#"{"type":"message_start","message":{}}"#, delta, end, r#"{"type":"message_stop"}"#];
            let events: Vec<u8> =
                body.iter().flat_map(|event| format!("data: {event}\n\n").into_bytes()).collect();
            // The first response takes its time to begin.
            let wait = Duration::from_millis(if n == 0 { 300 } else { 0 });
            vec![Step::Repeat(Vec::new(), 1, wait), ok(), Step::Send(events)]
        })
        .await;
        let executor = executor(&server, json!({"wire": "messages", "cache": cache, "concurrency": 4}));
        let start = Instant::now();
        let calls = (0..4).map(|_| {
            let (executor, prompt) = (executor.clone(), prompt.clone());
            let invocation = Invocation { prompt, cuts: Arc::new([10, bytes]), ..question() };
            tokio::spawn(async move {
                executor.invoke(invocation).await.unwrap();
                start.elapsed()
            })
        });
        let mut took = Vec::new();
        for call in calls.collect::<Vec<_>>() {
            took.push(call.await.unwrap());
        }
        assert_eq!(server.received().len(), 4);
        took.into_iter().filter(|took| *took >= Duration::from_millis(300)).count()
    };
    assert_eq!(wave("auto", prompt.len()).await, 4, "all wait for the first");
    assert_eq!(wave("off", prompt.len()).await, 1, "nothing is cached");
    assert_eq!(wave("auto", 1_000).await, 1, "too short to be cached");
}

#[test]
fn unusable_settings_are_refused_by_key() {
    let base = json!({"wire": "chat", "base_url": "https://h/v1", "model": "m"});
    for (more, key, says) in [
        (json!({"wire": "smoke"}), "wire", "cannot be `smoke`"),
        (json!({"wire": "mesages"}), "wire", "`mesages`"),
        (json!({"base_url": "ftp://h"}), "base_url", "https://"),
        (json!({"base_url": "https://me:pw@h/v1"}), "base_url", "name or a password"),
        (json!({"base_url": "https://h/v1?key=secret"}), "base_url", "query"),
        (json!({"base_url": "http://far.example/v1", "key": {"env": "K"}}), "base_url", "unencrypted"),
        (json!({"key": "sk-secret-value"}), "key", "does not hold it"),
        (json!({"key": {}}), "key", "exactly one"),
        (json!({"key": {"env": "A", "file": "b"}}), "key", "exactly one"),
        (json!({"key": {"evn": "A"}}), "key.evn", "unknown key"),
        (json!({"key": {"env": "sk-secret-value"}}), "key.env", "not the name"),
        (json!({"headers": {"Authorization": "x"}}), "headers.Authorization", "set by the program"),
        (json!({"headers": {"x": "a\nb"}}), "headers.x", "cannot be sent"),
        (json!({"schema": "strict"}), "schema", "`strict`"),
        (json!({"cache": "2h"}), "cache", "`2h`"),
        (json!({"max_tokens": 0}), "max_tokens", "whole number"),
        (json!({"price": "cheap"}), "price", "`free`"),
        (json!({"price": {"input": -1, "output": 2}}), "price", "not a price"),
        (json!({"price": {"input": 1}}), "price", "output"),
        (json!({"wire": "gemini", "context": 8192}), "context", "ollama"),
        (json!({"temperature": 0.5}), "temperature", "unknown key"),
        (json!({"seed": 7}), "seed", "unknown key"),
        (json!({"cache": "1h"}), "cache", "cannot say"),
        (json!({"wire": "messages", "schema": "json"}), "schema", "no mode"),
        (json!({"model": null}), "model", "no model"),
        (json!({"preset": "opnai"}), "preset", "unknown preset"),
        (json!({"modle": "x"}), "modle", "unknown key"),
    ] {
        let mut block = base.clone();
        block.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        let error = build(block).err().unwrap_or_else(|| panic!("{more} is refused"));
        assert_eq!(error.key.as_deref(), Some(key), "{error:?}");
        assert!(error.message.contains(says), "{error:?}");
        assert!(!format!("{error:?}").contains("secret-value"), "{error:?}");
    }
}

#[test]
fn a_preset_sends_its_own_key_to_its_own_host_alone() {
    let acts = |block: Value| {
        build(block).unwrap().side_effects().into_iter().map(|act| act.what).collect::<Vec<_>>()
    };
    let [own] = &acts(json!({"preset": "anthropic"}))[..] else { panic!("one act") };
    assert_eq!(own, "send texts to https://api.anthropic.com/ with the value of ANTHROPIC_API_KEY");
    let [other] = &acts(json!({"preset": "anthropic", "base_url": "https://evil.example"}))[..] else {
        panic!("one act")
    };
    assert_eq!(other, "send texts to https://evil.example/");
    for preset in llm::presets() {
        match build(json!({"preset": preset.name, "model": "m"})) {
            Ok(executor) => assert_eq!(executor.about().model.as_deref(), Some("m"), "{}", preset.name),
            Err(error) => {
                assert!(error.message.contains("says where the service is"), "{}: {error:?}", preset.name)
            }
        }
    }
}
