//! The embedder over real sockets: what is sent, what is asked twice, and that what cannot be compared is a failure.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quorate_adapters::executor::llm::embed;
use quorate_kernel::ports::executor::{ConfigError, Settings};
use quorate_kernel::ports::extension::{Embedder, Meter};
use quorate_manifest::money::Money;
use serde_json::{Value, json};

use super::server::{Server, Step, status};

const CANARY: &str = "sk-canary-3f9a7c21d5";

fn build(block: Value, timeout: Duration) -> Result<Arc<dyn Embedder>, ConfigError> {
    embed::new(&Settings {
        name: "embedder".into(),
        timeout,
        retries: 0,
        dir: "/".into(),
        block: block.as_object().cloned().unwrap_or_default(),
        servers: Default::default(),
        prices: None,
    })
}

fn embedder(server: &Server, more: Value) -> Arc<dyn Embedder> {
    let mut block = json!({"wire": "chat", "base_url": server.url, "model": "m", "threshold": 0.6});
    block.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    build(block, Duration::from_secs(10)).unwrap()
}

fn vectors(vectors: &[&[f32]]) -> Vec<Step> {
    let data: Vec<Value> =
        vectors.iter().enumerate().map(|(at, one)| json!({"index": at, "embedding": one})).collect();
    status("200 OK", "", &json!({"object": "list", "data": data}).to_string())
}

fn sent(server: &Server) -> Vec<Value> {
    let bodies = server.received();
    bodies.iter().map(|one| serde_json::from_slice::<Value>(&one.body).unwrap()["input"].clone()).collect()
}

#[tokio::test]
async fn a_text_is_sent_once_and_its_vector_is_kept() {
    let server = Server::start(|n| match n {
        0 => vectors(&[&[1.0, 0.0], &[0.0, 1.0]]),
        _ => vectors(&[&[0.5, 0.5]]),
    })
    .await;
    let embedder = embedder(&server, json!({}));
    let (one, two, three) = (vec![1.0, 0.0], vec![0.0, 1.0], vec![0.5, 0.5]);
    let found = embedder.embed(&["one", "two", "one"], &Meter::unlimited()).await.unwrap();
    assert_eq!(found, [one.clone(), two.clone(), one.clone()]);
    assert_eq!(
        embedder.embed(&["two", "three", "one"], &Meter::unlimited()).await.unwrap(),
        [two, three, one]
    );
    assert_eq!(embedder.embed(&[], &Meter::unlimited()).await.unwrap(), Vec::<Vec<f32>>::new());
    assert_eq!(sent(&server), [json!(["one", "two"]), json!(["three"])]);
    assert!(server.received()[0].head.starts_with("POST /embeddings HTTP/1.1\r\n"));
}

#[tokio::test]
async fn many_texts_are_several_requests_in_their_order() {
    let server = Server::start(|n| {
        let count = if n == 0 { 96 } else { 4 };
        let data: Vec<Value> =
            (0..count).map(|at| json!({"index": at, "embedding": [n * 96 + at + 1]})).collect();
        status("200 OK", "", &json!({"data": data}).to_string())
    })
    .await;
    let texts: Vec<String> = (0..100).map(|at| format!("text {at}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let found = embedder(&server, json!({})).embed(&texts, &Meter::unlimited()).await.unwrap();
    let found: Vec<f32> = found.into_iter().flatten().collect();
    assert!(found.iter().zip(1_u16..).all(|(number, at)| *number == f32::from(at)), "{found:?}");
    assert_eq!(server.received().len(), 2);
}

#[tokio::test]
async fn what_cannot_be_compared_is_a_failure_and_asked_for_once() {
    for (body, says) in [
        (r#"{"data": []}"#, "0 vectors for 2 texts"),
        (r#"{"data": [{"embedding": [1]}, {"embedding": [1, 2]}]}"#, "of 1 and of 2 numbers"),
        (r#"{"data": [{"embedding": [1]}, {"embedding": [0]}]}"#, "no direction"),
        (r#"{"data": [{"embedding": [1]}, {"embedding": [NaN]}]}"#, "not in the format"),
        (r#"{"data": [{"embedding": [1]}, {"embedding": ["1"]}]}"#, "not a list of numbers"),
        (r#"{"data": [], "data": []}"#, "not in the format"),
        (r#"{"error": {"message": "no such model", "code": "model_not_found"}}"#, "no such model"),
        ("<html>", "not in the format"),
    ] {
        let server = Server::start(move |_| status("200 OK", "", body)).await;
        let why = embedder(&server, json!({}))
            .embed(&["a", "b"], &Meter::unlimited())
            .await
            .unwrap_err()
            .to_string();
        assert!(why.contains(says), "{says}: {why}");
        assert_eq!(server.received().len(), 1, "{why}");
    }
    for (steps, says) in [
        (status("200 OK", "content-encoding: gzip\r\n", "x"), "encoded as"),
        (status("401 No", "", "{}"), "did not accept the key"),
        (status("302 Found", "location: http://127.0.0.1:9/x\r\n", ""), "redirects"),
        (status("200 OK", "", &" ".repeat(17 << 20)), "too large"),
    ] {
        let server = Server::start(move |_| steps.clone()).await;
        let why =
            embedder(&server, json!({})).embed(&["a"], &Meter::unlimited()).await.unwrap_err().to_string();
        assert!(why.contains(says), "{says}: {why}");
        assert_eq!(server.received().len(), 1, "{why}");
    }
    // Vectors of another length than those that were kept.
    let server = Server::start(|n| if n == 0 { vectors(&[&[1.0]]) } else { vectors(&[&[1.0, 0.0]]) }).await;
    let embedder = embedder(&server, json!({}));
    embedder.embed(&["a"], &Meter::unlimited()).await.unwrap();
    let why = embedder.embed(&["a", "b"], &Meter::unlimited()).await.unwrap_err().to_string();
    assert!(why.contains("vectors of"), "{why}");
}

#[tokio::test]
async fn a_failure_that_may_pass_is_tried_again_within_the_timeout() {
    let busy = |after: &str| status("429 Slow down", &format!("retry-after: {after}\r\n"), "{}");
    let server = Server::start(move |n| if n < 2 { busy("0") } else { vectors(&[&[1.0]]) }).await;
    assert_eq!(embedder(&server, json!({})).embed(&["a"], &Meter::unlimited()).await.unwrap(), [[1.0]]);
    assert_eq!(server.received().len(), 3);
    // Longer than the timeout, and a service that never answers.
    let start = Instant::now();
    let server = Server::start(move |_| busy("60")).await;
    let why = embedder(&server, json!({})).embed(&["a"], &Meter::unlimited()).await.unwrap_err().to_string();
    assert!(why.contains("limits the rate"), "{why}");
    assert_eq!(server.received().len(), 1);
    let silent = Server::start(|_| vec![Step::Hold]).await;
    let block = json!({"wire": "ollama", "base_url": silent.url, "model": "m", "threshold": 0.6});
    let why = build(block, Duration::from_millis(300))
        .unwrap()
        .embed(&["a"], &Meter::unlimited())
        .await
        .unwrap_err()
        .to_string();
    assert!(why.contains("timed out"), "{why}");
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn the_key_goes_to_its_header_and_is_told_to_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    std::fs::write(&path, CANARY).unwrap();
    let echo = format!(r#"{{"error":{{"message":"bad key {CANARY}"}}}}"#);
    let server = Server::start(move |_| status("401 Unauthorized", "", &echo)).await;
    for (wire, header) in [
        ("chat", format!("authorization: bearer {CANARY}")),
        ("ollama", format!("authorization: bearer {CANARY}")),
        ("gemini", format!("x-goog-api-key: {CANARY}")),
    ] {
        let more = json!({"wire": wire, "key": {"file": path}, "headers": {"x-team": "legal"}});
        let why = embedder(&server, more).embed(&["a"], &Meter::unlimited()).await.unwrap_err().to_string();
        let head = server.received().last().unwrap().head.to_ascii_lowercase();
        assert!(head.contains(&header) && head.contains("x-team: legal"), "{head}");
        assert!(!why.contains(CANARY) && why.contains("[key]"), "{why}");
    }
}

#[tokio::test]
async fn what_requests_took_is_metered_and_unknown_usage_counts_in_full() {
    let counted = |tokens: Value| {
        let body = json!({"data": [{"embedding": [1]}], "usage": {"prompt_tokens": tokens}});
        status("200 OK", "", &body.to_string())
    };
    let busy = || status("429 Slow down", "retry-after: 0\r\n", "{}");
    let oops = || status("500 Oops", "", "{}");
    for (answers, requests, tokens_in, nanos) in [
        (vec![counted(json!(40))], 1, Some(40), Some(800)),
        (vec![busy(), counted(json!(40))], 2, Some(40), Some(800)),
        // It is not known what the first took.
        (vec![oops(), counted(json!(40))], 2, Some(40), Some(800)),
        (vec![counted(Value::Null)], 1, None, None),
    ] {
        let server = Server::start(move |at| answers[at].clone()).await;
        let (meter, more) = (Meter::unlimited(), json!({"price": {"input": 0.02}}));
        embedder(&server, more).embed(&["a text"], &meter).await.unwrap();
        let took = meter.took();
        assert_eq!(
            (took.requests, took.usage.tokens_in, took.usage.money.map(Money::nanos)),
            (requests, tokens_in, nanos)
        );
    }
    let server = Server::start(|_| vectors(&[&[1.0]])).await;
    let limit = |more: Value| embedder(&server, more).call_limit(&["a text"]).unwrap();
    // Seven tokens with the marks around them, up to three times.
    assert_eq!(limit(json!({"price": {"input": 1000}})).money, Some(Money::from_nanos(21_000_000)));
    assert_eq!(limit(json!({})).money, Some(Money::ZERO), "this machine is free");
    let far = json!({"wire": "chat", "model": "nobody-knows", "threshold": 0.6});
    let far = build(far, Duration::from_secs(1)).unwrap();
    assert!(far.is_metered() && far.call_limit(&["a"]).unwrap().money.is_none());
    let known = json!({"wire": "chat", "model": "text-embedding-3-small", "threshold": 0.6});
    let known = build(known, Duration::from_secs(1)).unwrap();
    assert!(known.call_limit(&["a"]).unwrap().money.is_some_and(|most| most > Money::ZERO));
}

#[test]
fn unusable_settings_are_refused_by_key() {
    let base = json!({"wire": "chat", "model": "m", "threshold": 0.6});
    for (more, key, says) in [
        (json!({"wire": "messages"}), Some("wire"), "cannot be `messages`"),
        (json!({"wire": null}), None, "which API"),
        (json!({"model": null}), None, "no model"),
        (json!({"threshold": null}), None, "depends on the model"),
        (json!({"threshold": "0.6"}), Some("threshold"), "must be a number"),
        (json!({"threshold": 0}), Some("threshold"), "above 0"),
        (json!({"threshold": 1}), Some("threshold"), "below 1"),
        (json!({"base_url": "https://me:pw@h/v1"}), Some("base_url"), "name or a password"),
        (json!({"base_url": "http://far.example/v1", "key": {"env": "K"}}), Some("base_url"), "unencrypted"),
        (json!({"key": "sk-secret-value"}), Some("key"), "does not hold it"),
        (
            json!({"headers": {"x-api-key": "sk-secret-value"}}),
            Some("headers.x-api-key"),
            "set by the program",
        ),
        (json!({"treshold": 0.5}), Some("treshold"), "unknown key"),
        (json!({"price": {"output": 1}}), Some("price"), "input"),
    ] {
        let mut block = base.clone();
        block.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        let error = build(block, Duration::from_secs(1)).err().unwrap_or_else(|| panic!("{more} is refused"));
        assert_eq!(error.key.as_deref(), key, "{error:?}");
        assert!(error.message.contains(says), "{error:?}");
        assert!(!format!("{error:?}").contains("secret-value"), "{error:?}");
    }
    let acts = build(base, Duration::from_secs(1)).unwrap().side_effects();
    assert_eq!(acts[0].what, "send texts to https://api.openai.com/v1");
}
