//! Servers that are not what they should be, over real sockets: each call fails within its deadline after one request,
//! and what was reported of its cost is kept.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quorate_adapters::executor::llm;
use quorate_kernel::ports::executor::{Executor, Failure, Settings};
use quorate_kernel::single_call;
use serde_json::{Value, json};

use super::server::{Server, Step, chat, chat_delta, chat_end, ok, status, tls_file};

const ANSWER: &str = r#"{"would_block": false}"#;
const OTHER: &str = r#"{"would_block": true, "reason": "for somebody else"}"#;

fn executor(server: &Server, more: Value) -> Arc<dyn Executor> {
    let mut block = json!({"wire": "chat", "base_url": server.url, "model": "asked", "pool": server.url});
    block.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    llm::new(&Settings {
        name: "model".into(),
        timeout: Duration::from_secs(10),
        retries: 0,
        dir: "/".into(),
        block: block.as_object().cloned().unwrap(),
        servers: Default::default(),
        prices: None,
    })
    .unwrap()
}

async fn failure_of(executor: &dyn Executor) -> String {
    executor.invoke(single_call::probe_question(Duration::from_secs(10))).await.unwrap_err().to_string()
}

#[tokio::test]
async fn a_certificate_of_an_unknown_authority_is_refused_and_the_message_names_ca() {
    let server = Server::start_tls(|_| chat(ANSWER)).await;
    let said = failure_of(&*executor(&server, json!({}))).await;
    assert!(said.contains("cannot reach") && said.contains("`ca` names a file"), "{said}");
    assert_eq!(server.received().len(), 0, "nothing is sent to a server that is not known");
    let ca = tls_file("authority.pem");
    let trusting = executor(&server, json!({"ca": ca}));
    let reply = trusting.invoke(single_call::probe_question(Duration::from_secs(10))).await.unwrap();
    assert_eq!(reply.text, ANSWER);
    for (file, says) in [("server.key", "it has none in PEM form"), ("none.pem", "cannot read certificates")]
    {
        let said = failure_of(&*executor(&server, json!({"ca": tls_file(file)}))).await;
        assert!(said.contains(says), "{said}");
    }
}

/// A name may resolve to another address: the certificate, not the address, decides which server gets the key.
#[tokio::test]
async fn a_key_is_not_sent_to_a_machine_that_a_name_leads_to_by_now() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    std::fs::write(&path, "sk-canary-0ddba11").unwrap();
    let ask = async |server: &Server| {
        let by_name = server.url.replace("127.0.0.1", "localhost");
        let more = json!({"base_url": by_name, "ca": tls_file("authority.pem"), "key": {"file": path}});
        executor(server, more).invoke(single_call::probe_question(Duration::from_secs(10))).await
    };
    let own = Server::start_tls(|_| chat(ANSWER)).await;
    assert_eq!(ask(&own).await.unwrap().text, ANSWER);
    assert!(own.received()[0].head.contains("Bearer sk-canary-0ddba11"));
    // Its certificate is valid, for another name.
    let other = Server::start_tls_as("elsewhere.pem", |_| chat(ANSWER)).await;
    let said = ask(&other).await.unwrap_err().to_string();
    assert!(said.contains("cannot reach") && said.contains("certificate"), "{said}");
    assert!(!said.contains("canary"), "{said}");
    assert_eq!(other.received().len(), 0, "nothing is sent");
}

#[tokio::test]
async fn a_key_is_not_sent_where_a_redirect_leads() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    std::fs::write(&path, "sk-canary-1c0ffee2").unwrap();
    let target = Server::start(|_| chat(ANSWER)).await;
    for code in
        ["301 Moved", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect"]
    {
        let location = format!("location: {}/chat/completions\r\n", target.url);
        let server = Server::start(move |_| status(code, &location, "")).await;
        let said = failure_of(&*executor(&server, json!({"key": {"file": path}}))).await;
        assert!(said.contains("redirects to") && !said.contains("canary"), "{said}");
        assert_eq!((server.received().len(), target.received().len()), (1, 0), "{code}");
    }
}

#[tokio::test]
async fn a_reply_without_end_is_cut_off() {
    let delta = chat_delta(&"y".repeat(64 << 10));
    // 100 MB of answer, of reasoning without an answer, of one line, and of an error.
    for (step, says) in [
        (Step::Repeat(delta, 1_600, Duration::ZERO), "too large"),
        (Step::Repeat(vec![b'x'; 64 << 10], 1_600, Duration::ZERO), "too large"),
        (Step::Repeat([b": ", &*vec![b'x'; 64 << 10], b"\n\n"].concat(), 1_600, Duration::ZERO), "too large"),
    ] {
        let start = Instant::now();
        let server = Server::start(move |_| vec![ok(), step.clone()]).await;
        let said = failure_of(&*executor(&server, json!({}))).await;
        assert!(said.contains(says), "{said}");
        assert_eq!(server.received().len(), 1);
        while server.closed_by_client() == 0 {
            assert!(start.elapsed() < Duration::from_secs(10), "the connection is still open");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    let head = b"HTTP/1.1 500 Oops\r\n\r\n".to_vec();
    let error = Server::start(move |_| {
        vec![Step::Send(head.clone()), Step::Repeat(vec![b'x'; 64 << 10], 800, Duration::ZERO)]
    })
    .await;
    let said = failure_of(&*executor(&error, json!({}))).await;
    assert!(said.len() < 1_000 && said.contains("HTTP 500"), "{said}");
}

#[tokio::test]
async fn headers_that_drip_in_are_not_waited_for() {
    let drip = |bytes: &[u8]| Step::Repeat(bytes.to_vec(), 1_000, Duration::from_millis(20));
    for steps in
        [vec![drip(b"H")], vec![Step::Send(b"HTTP/1.1 200 OK\r\n".to_vec()), drip(b"x-filler: 1\r\n")]]
    {
        let server = Server::start(move |_| steps.clone()).await;
        let start = Instant::now();
        let said = failure_of(&*executor(&server, json!({"idle": "400ms"}))).await;
        assert!(!said.is_empty() && start.elapsed() < Duration::from_secs(3), "{said}");
        assert_eq!(server.received().len(), 1);
    }
    let endless = Server::start(|_| {
        let filler = format!("x-filler: {}\r\n", "x".repeat(8_000)).into_bytes();
        vec![Step::Send(b"HTTP/1.1 200 OK\r\n".to_vec()), Step::Repeat(filler, 2_000, Duration::ZERO)]
    })
    .await;
    let said = failure_of(&*executor(&endless, json!({"idle": "5s"}))).await;
    assert!(said.contains("cannot reach"), "{said}");
}

#[tokio::test]
async fn what_is_not_as_documented_is_a_failure_with_its_cost_kept() {
    // Four bytes that unpack to a billion, declared and not.
    let bomb = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xed\xc1\x01\x0d\x00".repeat(100);
    let usage = |tokens: &str| {
        let usage = format!("data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":{tokens}}}}}\n\n");
        Step::Send(usage.into_bytes())
    };
    let stop = Step::Send(
        b"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n".to_vec(),
    );
    let text = |bytes: &[u8]| Step::Send(bytes.to_vec());
    for (steps, tokens) in [
        (vec![Step::Send(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n".to_vec()), text(&bomb)], None),
        (vec![ok(), text(&bomb)], None),
        (vec![ok(), Step::Send(chat_delta(ANSWER)), usage("7"), text(b"data: \"\xff\xfe\"\n\n")], Some(7)),
        (vec![ok(), usage("7"), text(b"data: {\"model\": \"a\", \"model\": \"b\"}\n\n")], Some(7)),
        (vec![ok(), Step::Send(chat_delta(ANSWER)), usage("\"7\""), text(b"data: {\n\n")], Some(7)),
        (vec![ok(), usage("7"), text(b"data: {\"choices\": [{\"index\": \"0\"}]}\n\n")], Some(7)),
        (vec![ok(), usage("7"), text(b"data: {\"choices\": [{\"delta\": {\"content\": 7}}]}\n\n")], Some(7)),
        (vec![ok(), usage("-7"), stop.clone()], None),
    ] {
        let server = Server::start(move |_| steps.clone()).await;
        let invocation = single_call::probe_question(Duration::from_secs(10));
        let notes = invocation.notes.clone();
        let failure = executor(&server, json!({})).invoke(invocation).await.unwrap_err();
        assert!(matches!(&failure, Failure::Failed { message, .. } if !message.is_empty()), "{failure:?}");
        assert_eq!(server.received().len(), 1, "{failure}");
        let noted = notes.read().usage.and_then(|usage| usage.tokens_in);
        assert_eq!(noted, tokens, "{failure}");
    }
}

#[tokio::test]
async fn bytes_that_were_not_asked_for_answer_no_later_question() {
    let whole = |answer: &str| -> String {
        let body = [chat_delta(answer), chat_end()].concat();
        let body = String::from_utf8(body).unwrap();
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    for pause in [Duration::ZERO, Duration::from_millis(50)] {
        let (first, planted) = (whole(ANSWER), whole(OTHER));
        let server = Server::start(move |_| {
            let planted = Step::Repeat(planted.clone().into_bytes(), 1, Duration::ZERO);
            let wait = Step::Repeat(Vec::new(), 1, pause);
            vec![Step::Send(first.clone().into_bytes()), wait, planted, Step::Hold]
        })
        .await;
        let executor = executor(&server, json!({}));
        for asked in 1..=3 {
            let reply = executor.invoke(single_call::probe_question(Duration::from_secs(10))).await.unwrap();
            assert_eq!(reply.text, ANSWER);
            assert_eq!(server.received().len(), asked, "each answer is to its own request");
            tokio::time::sleep(pause * 2).await;
        }
    }
}

/// A response that reports a failure or a cut is not an answer, wherever it reports it.
#[tokio::test]
async fn no_response_that_says_that_it_failed_is_an_answer() {
    let block = json!([{"type": "text", "text": ANSWER}]);
    let item = |status: &str| json!([{"type": "message", "status": status, "content": [{"type": "output_text", "text": ANSWER}]}]);
    let error = json!({"type": "overloaded_error", "message": "Overloaded"});
    let whole = [
        ("messages", json!({"type": "error", "error": error, "content": block, "stop_reason": "end_turn"})),
        ("messages", json!({"type": "message", "error": error, "content": block, "stop_reason": "end_turn"})),
        ("messages", json!({"type": "error", "content": block, "stop_reason": "end_turn"})),
        (
            "chat",
            json!({"error": error, "choices": [{"message": {"content": ANSWER}, "finish_reason": "stop"}]}),
        ),
        ("responses", json!({"status": "completed", "error": error, "output": item("completed")})),
        ("responses", json!({"status": "completed", "output": item("incomplete")})),
        (
            "responses",
            json!({"status": "completed", "incomplete_details": {"reason": "max_output_tokens"}, "output": item("completed")}),
        ),
        (
            "gemini",
            json!({"error": error, "candidates": [{"content": {"parts": [{"text": ANSWER}]}, "finishReason": "STOP"}]}),
        ),
        (
            "gemini",
            json!({"candidates": [{"index": 1, "content": {"parts": [{"text": ANSWER}]}, "finishReason": "STOP"}]}),
        ),
    ];
    let whole = whole.map(|(wire, body)| (wire, body.to_string()));
    let event = |event: Value| format!("data: {event}\n\n");
    let finish =
        |reason: &str| event(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}));
    let said = event(json!({"choices": [{"index": 0, "delta": {"content": ANSWER}}]}));
    let stop = |reason: &str| event(json!({"type": "message_delta", "delta": {"stop_reason": reason}}));
    let start =
        event(json!({"type": "content_block_start", "content_block": {"type": "text", "text": ANSWER}}));
    let written = event(json!({"type": "response.output_text.delta", "output_index": 0, "delta": ANSWER}));
    let completed = |more: Value| event(json!({"type": "response.completed", "response": more}));
    let streamed = [
        ("chat", format!("{said}{}{}data: [DONE]\n\n", finish("length"), finish("stop"))),
        (
            "messages",
            format!(
                "{start}{}{}{}",
                stop("max_tokens"),
                stop("end_turn"),
                event(json!({"type": "message_stop"}))
            ),
        ),
        (
            "responses",
            format!("{written}{}", completed(json!({"status": "failed", "error": {"message": "boom"}}))),
        ),
        ("responses", format!("{written}{}", completed(json!({"status": "incomplete"})))),
        (
            "responses",
            format!(
                "{written}{}",
                completed(
                    json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}})
                )
            ),
        ),
    ];
    for (kind, (wire, body)) in whole
        .into_iter()
        .map(|case| ("application/json", case))
        .chain(streamed.into_iter().map(|case| ("text/event-stream", case)))
    {
        let (header, sent) = (format!("content-type: {kind}\r\n"), body.clone());
        let server = Server::start(move |_| status("200 OK", &header, &sent)).await;
        let asked = executor(&server, json!({"wire": wire}))
            .invoke(single_call::probe_question(Duration::from_secs(10)))
            .await;
        assert!(asked.is_err(), "{wire}: {body}");
        assert_eq!(server.received().len(), 1);
    }
    let (header, sent) = (
        "content-type: application/json\r\n",
        json!({"type": "message", "error": null, "content": block, "stop_reason": "end_turn"}).to_string(),
    );
    let server = Server::start(move |_| status("200 OK", header, &sent)).await;
    let asked = executor(&server, json!({"wire": "messages"}))
        .invoke(single_call::probe_question(Duration::from_secs(10)))
        .await;
    assert_eq!(asked.unwrap().text, ANSWER, "without the error it is one");
}

/// A command that prints the key and fails does not have it quoted, and a list of models is shown without it.
#[tokio::test]
async fn a_key_is_in_no_message_of_its_command_and_in_no_list() {
    let server = Server::start(|_| {
        status("200 OK", "", &json!({"data": [{"id": "a\u{1b}[31mred\nb sk-canary-0ddba12"}]}).to_string())
    })
    .await;
    let command = json!({"key": {"command": ["sh", "-c", "echo sk-canary-0ddba12; exit 3"]}});
    let said = failure_of(&*executor(&server, command)).await;
    assert!(said.contains("exit code 3") && !said.contains("canary"), "{said}");
    assert_eq!(server.received().len(), 0);
    let printed = json!({"key": {"command": ["echo", "sk-canary-0ddba12"]}});
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    let models = executor(&server, printed).models(deadline).await.unwrap().unwrap();
    assert_eq!(models, ["a [31mred b [key]"]);
}
