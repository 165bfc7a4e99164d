//! Requests that a server refuses in part: what is sent in their place, and what is remembered.

use std::sync::Arc;
use std::time::Duration;

use quorate_adapters::executor::llm;
use quorate_kernel::ports::executor::{
    AttemptInfo, ConfigError, Executor, Failure, Invocation, Reply, Settings,
};
use quorate_kernel::single_call;
use quorate_protocol::answers::Schema;
use serde_json::{Value, json};

use super::server::{Server, Step, chat, chat_delta, ok, status};

const ANSWER: &str = r#"{"would_block": false}"#;

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

fn executor(server: &Server, more: &Value) -> Arc<dyn Executor> {
    let mut block = json!({"wire": "chat", "base_url": server.url, "model": "asked", "pool": server.url});
    block.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    build(block).unwrap()
}

fn question() -> Invocation {
    Invocation { answer_schema: Schema::SecondAnswer, ..single_call::probe_question(Duration::from_secs(10)) }
}

/// The prompt of [`question`], with the marker that a request has: each question draws its own.
fn prompt_like(request: &str) -> String {
    let marker = |text: &str| {
        let (_, after) = text.split_once("MARKER is `").expect("a prompt names its marker");
        after.split('`').next().unwrap_or_default().to_owned()
    };
    let prompt = question().prompt;
    prompt.replace(&marker(&prompt), &marker(request))
}

async fn ask(server: &Server, more: &Value) -> (Result<Reply, Failure>, AttemptInfo) {
    let invocation = question();
    let notes = invocation.notes.clone();
    (executor(server, more).invoke(invocation).await, notes.read())
}

fn bodies(server: &Server) -> Vec<Value> {
    server.received().iter().map(|one| serde_json::from_slice(&one.body).unwrap()).collect()
}

/// A server that refuses the first requests with these bodies, and then answers.
async fn refusing(code: &'static str, refusals: Vec<String>) -> Server {
    Server::start(move |n| match refusals.get(n) {
        Some(body) => status(code, "", body),
        None => chat(ANSWER),
    })
    .await
}

fn openai(message: &str, param: Value) -> String {
    json!({"error": {"message": message, "type": "invalid_request_error", "param": param, "code": "unsupported_parameter"}})
        .to_string()
}

/// What a server said, as its own error body.
fn plain(message: &str) -> String {
    json!({"error": {"message": message, "type": "invalid_request_error", "param": null, "code": null}})
        .to_string()
}

fn has_type_list(value: &Value) -> bool {
    match value {
        Value::Object(fields) => {
            fields.get("type").is_some_and(Value::is_array) || fields.values().any(has_type_list)
        }
        Value::Array(items) => items.iter().any(has_type_list),
        _ => false,
    }
}

/// The server, its status and body, and whether a request has what it asks for.
type Case = (&'static str, &'static str, String, fn(&Value) -> bool);

#[tokio::test]
async fn a_request_is_sent_again_without_the_field_that_a_server_names() {
    let tokens: fn(&Value) -> bool =
        |body| body["max_completion_tokens"] == 4000 && body.get("max_tokens").is_none();
    let usage: fn(&Value) -> bool = |body| body.get("stream_options").is_none() && body["stream"] == true;
    let system: fn(&Value) -> bool = |body| body["messages"].as_array().map(Vec::len) == Some(1);
    let schema: fn(&Value) -> bool =
        |body| body["response_format"]["type"] == "json_schema" && !has_type_list(&body["response_format"]);
    let cases: Vec<Case> = vec![
        ("o-series", "400 Bad Request", openai("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", json!("max_tokens")), tokens),
        ("azure", "400 Bad Request", plain("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."), tokens),
        ("litellm, python", "400 Bad Request", plain("litellm.BadRequestError: OpenAIException - Error code: 400 - {'error': {'message': \"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.\"}}"), tokens),
        ("openrouter, raw", "400 Bad Request", json!({"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": "{\"error\":{\"message\":\"Unsupported parameter: 'max_tokens' is not supported with this model.\"}}", "provider_name": "OpenAI"}}}).to_string(), tokens),
        ("pydantic, tokens", "422 Unprocessable", json!({"detail": [{"type": "extra_forbidden", "loc": ["body", "max_tokens"], "msg": "Extra inputs are not permitted", "input": 4000}]}).to_string(), tokens),
        ("text", "400 Bad Request", "unknown field `max_tokens`, expected `max_completion_tokens`".into(), tokens),
        ("in a 200", "200 OK", plain("Unsupported parameter: 'max_tokens' is not supported with this model."), tokens),
        ("mistral", "422 Unprocessable", json!({"object": "error", "message": {"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted", "input": {"include_usage": true}}]}, "type": "invalid_request_message_error", "param": null, "code": null}).to_string(), usage),
        ("azure, old", "400 Bad Request", openai("Unrecognized request argument supplied: stream_options", Value::Null), usage),
        ("fastapi", "422 Unprocessable", json!({"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]}).to_string(), usage),
        ("go", "400 Bad Request", json!({"error": "json: unknown field \"stream_options\""}).to_string(), usage),
        ("databricks", "400 Bad Request", json!({"error_code": "BAD_REQUEST", "message": "Parameter 'stream_options' is not supported for this endpoint"}).to_string(), usage),
        ("include_usage", "400 Bad Request", plain("stream_options.include_usage is not allowed"), usage),
        ("not found", "404 Not Found", plain("unsupported option: stream_options"), usage),
        ("not implemented", "501 Not Implemented", plain("stream_options is not implemented"), usage),
        ("gemma", "400 Bad Request", plain("System role not supported"), system),
        ("gemma, llama.cpp", "500 Internal Server Error", json!({"error": {"code": 500, "message": "Value is not callable: null at row 1: raise_exception('System role not supported')", "type": "server_error"}}).to_string(), system),
        ("alternate", "400 Bad Request", json!({"object": "error", "message": "Conversation roles must alternate user/assistant/user/assistant/...", "type": "BadRequestError", "code": 400}).to_string(), system),
        ("mistral template", "400 Bad Request", plain("Only user and assistant roles are supported!"), system),
        ("o1-mini", "400 Bad Request", openai("Unsupported value: 'messages[0].role' does not support 'system' with this model.", json!("messages[0].role")), system),
        ("tgi", "422 Unprocessable", json!({"error": "Template error: invalid operation: System role not supported (in <string>:1)", "error_type": "template_error"}).to_string(), system),
        ("bedrock", "400 Bad Request", json!({"message": "This model doesn't support system messages. Try again without a system message or use a model that supports system messages: not supported"}).to_string(), system),
        ("in an event", "200 OK", "data: {\"error\": {\"message\": \"System role not supported\", \"code\": 400}}\n\n".into(), system),
        ("old ollama", "400 Bad Request", json!({"error": "json: cannot unmarshal object into Go struct field ChatRequest.format of type string"}).to_string(), schema),
        ("openrouter, routing", "404 Not Found", openai("No endpoints found that can handle the requested parameters. To learn more about provider routing, visit: https://openrouter.ai/docs/provider-routing", Value::Null), schema),
        ("lm studio", "400 Bad Request", json!({"error": "'response_format.type' must be 'json_schema' or 'text'"}).to_string(), schema),
        ("deepseek", "400 Bad Request", plain("This response_format type is unavailable now"), schema),
        ("groq", "400 Bad Request", openai("This model does not support response format `json_schema`.", json!("response_format")), schema),
        ("vllm", "400 Bad Request", json!({"object": "error", "message": "Failed to compile grammar: unsupported type ['string', 'null'] in json schema", "code": 400}).to_string(), schema),
        ("llama.cpp", "400 Bad Request", json!({"error": {"code": 400, "message": "failed to parse grammar", "type": "invalid_request_error"}}).to_string(), schema),
        ("together", "400 Bad Request", openai("Invalid schema for response_format 'review': list of types is not supported", json!("response_format")), schema),
        ("litellm, params", "400 Bad Request", plain("litellm.UnsupportedParamsError: groq does not support parameters: ['response_format'], for model=m. To drop these, set `litellm.drop_params=True`"), schema),
        ("fireworks", "400 Bad Request", plain("Error in JSON schema: anyOf with type lists is not supported"), schema),
    ];
    for (name, code, refusal, is_mended) in cases {
        let server = refusing(code, vec![refusal]).await;
        let (reply, noted) = ask(&server, &json!({})).await;
        assert!(reply.is_ok(), "{name}: {reply:?}");
        let sent = bodies(&server);
        assert_eq!(sent.len(), 2, "{name}");
        assert!(!is_mended(&sent[0]) && is_mended(&sent[1]), "{name}: {}", sent[1]);
        assert_eq!((noted.requests, noted.changed.len()), (Some(2), 1), "{name}: {noted:?}");
        // Nothing else changes.
        let all = |body: &Value| -> String {
            body["messages"].as_array().unwrap().iter().map(|one| one["content"].as_str().unwrap()).collect()
        };
        assert_eq!(all(&sent[0]), all(&sent[1]), "{name}: the prompt has the same bytes");
        assert_eq!(all(&sent[1]), prompt_like(&all(&sent[1])), "{name}");
    }
}

#[tokio::test]
async fn a_schema_gives_way_step_by_step_and_several_fields_one_after_the_other() {
    let refused = plain("This response_format type is unavailable now");
    let server = refusing("400 Bad Request", vec![refused.clone(), refused.clone(), refused]).await;
    let (reply, noted) = ask(&server, &json!({})).await;
    assert_eq!(reply.unwrap().text, ANSWER);
    let forms: Vec<Value> =
        bodies(&server).iter().map(|body| body["response_format"]["type"].clone()).collect();
    assert_eq!(forms, [json!("json_schema"), json!("json_schema"), json!("json_object"), Value::Null]);
    assert!(
        noted.changed.last().unwrap().contains("`schema = \"prompt\"` in [executors.model]"),
        "{noted:?}"
    );

    let several = vec![
        openai(
            "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.",
            json!("max_tokens"),
        ),
        plain("Unrecognized request argument supplied: stream_options"),
        plain("System role not supported"),
    ];
    let server = refusing("400 Bad Request", several).await;
    let (reply, noted) = ask(&server, &json!({})).await;
    assert!(reply.is_ok() && noted.requests == Some(4) && noted.changed.len() == 1, "{noted:?}");
    let sent = bodies(&server);
    assert_eq!(sent[3]["messages"].as_array().unwrap().len(), 1);
    assert!(sent[3].get("stream_options").is_none() && sent[3].get("max_tokens").is_none());
}

#[tokio::test]
async fn the_changes_for_a_server_are_remembered_and_reported_once() {
    let refused = openai(
        "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.",
        json!("max_tokens"),
    );
    let server = refusing("400 Bad Request", vec![refused]).await;
    let (_, noted) = ask(&server, &json!({})).await;
    assert_eq!(noted.changed, noted.newly_changed);
    let [line] = &noted.changed[..] else { panic!("{noted:?}") };
    assert!(
        line.ends_with("set `tokens_field = \"max_completion_tokens\"` in [executors.model] of quorate.toml"),
        "{line}"
    );
    // Another executor of the same server and model.
    let (_, later) = ask(&server, &json!({"max_tokens": 900})).await;
    assert_eq!((later.requests, &later.changed, later.newly_changed.len()), (None, &noted.changed, 0));
    let sent = bodies(&server);
    assert_eq!((sent.len(), &sent[2]["max_completion_tokens"]), (3, &json!(900)));
    // Another model of it.
    let (reply, _) = ask(&server, &json!({"model": "other"})).await;
    assert!(reply.is_ok() && bodies(&server)[3]["max_tokens"] == 4000);
}

#[tokio::test]
async fn an_error_that_no_change_avoids_takes_one_request_and_names_the_key() {
    for (name, code, body, says) in [
        ("key", "401 Unauthorized", plain("stream_options is not allowed"), ""),
        ("limit", "429 Too Many Requests", plain("max_tokens is not supported"), ""),
        ("no field", "400 Bad Request", plain("the request is malformed"), ""),
        ("a longer name", "400 Bad Request", plain("unknown field my_stream_options_2"), ""),
        ("echo", "422 Unprocessable", json!({"detail": [{"loc": ["body", "user"], "msg": "Field required", "input": {"max_tokens": "not supported"}}]}).to_string(), ""),
        ("context", "400 Bad Request", plain("This model's maximum context length is 8192 tokens: max_tokens is too large"), "a smaller `max_tokens`"),
        ("tgi, context", "422 Unprocessable", plain("`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 4000"), ""),
        ("value", "400 Bad Request", plain("Invalid value for max_tokens"), "`max_tokens` and `tokens_field`"),
        ("unknown model", "404 Not Found", plain("The model `asked` does not exist"), ""),
    ] {
        let server = refusing(code, vec![body; 9]).await;
        let (reply, _) = ask(&server, &json!({})).await;
        let said = reply.unwrap_err().to_string();
        assert_eq!(server.received().len(), 1, "{name}: {said}");
        assert!(said.contains(says), "{name}: {said}");
    }
    // A server that refuses every form.
    for (body, most, says) in [
        (plain("stream_options is not supported"), 2, "`stream_options`"),
        (plain("response_format is not supported"), 4, "response_format"),
        (openai("Unsupported parameter", json!("max_tokens")), 2, "`tokens_field`"),
    ] {
        let server = refusing("400 Bad Request", vec![body; 20]).await;
        let (reply, _) = ask(&server, &json!({})).await;
        let said = reply.unwrap_err().to_string();
        assert!(server.received().len() <= most, "{said}");
        assert!(said.contains(says.trim_matches('`')), "{said}");
    }
    // A field of the user's own.
    let server = refusing("400 Bad Request", vec![plain("Unsupported parameter: 'top_k'"); 9]).await;
    let (reply, _) = ask(&server, &json!({"extra": {"temperature": 1, "top_k": 4}})).await;
    let said = reply.unwrap_err().to_string();
    assert!(said.ends_with("remove `top_k` from `extra` in [executors.model] of quorate.toml"), "{said}");
    assert_eq!(server.received().len(), 1);
    // A service that has begun to answer has accepted the request.
    let begun = Server::start(|_| {
        let error = b"data: {\"error\":{\"message\":\"stream_options is not supported\"}}\n\n".to_vec();
        vec![ok(), Step::Send(chat_delta("{")), Step::Send(error)]
    })
    .await;
    assert!(ask(&begun, &json!({})).await.0.is_err());
    assert_eq!(begun.received().len(), 1);
}

#[tokio::test]
async fn the_number_that_a_server_names_is_taken_if_it_is_smaller() {
    for (said, most) in [
        (
            "max_tokens is too large: 16000. This model supports at most 4096 completion tokens, whereas you provided 16000.",
            4096,
        ),
        (
            "max_tokens: 16000 > 8192, which is the maximum allowed number of output tokens for claude-3-5-haiku-20241022",
            8192,
        ),
        (
            "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model",
            8192,
        ),
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 8192),
        ("max_tokens (16000) exceeds the limit of 2048", 2048),
    ] {
        let server = refusing("400 Bad Request", vec![plain(said)]).await;
        let (reply, noted) = ask(&server, &json!({"max_tokens": 16000})).await;
        assert!(reply.is_ok(), "{said}: {reply:?}");
        assert_eq!(bodies(&server)[1]["max_tokens"], most, "{said}");
        assert!(noted.changed[0].contains(&format!("`max_tokens = {most}`")), "{noted:?}");
    }
}

#[tokio::test]
async fn settings_change_a_request_on_every_wire_where_they_have_a_meaning() {
    let server = Server::start(|_| status("401 No", "", "")).await;
    let send = async |more: Value| {
        let _ = ask(&server, &more).await;
        bodies(&server).pop().unwrap()
    };
    let body = send(json!({"tokens_field": "max_completion_tokens", "usage": false, "system": false, "extra": {"temperature": 0.2, "chat_template_kwargs": {"enable_thinking": false}}})).await;
    assert_eq!((&body["max_completion_tokens"], &body["temperature"]), (&json!(4000), &json!(0.2)));
    assert!(body.get("max_tokens").is_none() && body.get("stream_options").is_none());
    let sent = body["messages"][0]["content"].as_str().unwrap();
    assert_eq!(body["messages"], json!([{"role": "user", "content": prompt_like(sent)}]));
    assert_eq!(body["chat_template_kwargs"]["enable_thinking"], false);
    let body = send(json!({"tokens_field": "max_len"})).await;
    assert_eq!(body["max_len"], 4000);
    let body = send(json!({"wire": "responses", "system": false, "tokens_field": "max_tokens", "extra": {"text": {"verbosity": "low"}}})).await;
    assert!(
        body.get("instructions").is_none()
            && body["max_tokens"] == 4000
            && body.get("max_output_tokens").is_none()
    );
    assert_eq!(
        (&body["text"]["verbosity"], &body["text"]["format"]["type"]),
        (&json!("low"), &json!("json_schema"))
    );
    let sent = body["input"][0]["content"].as_str().unwrap();
    assert_eq!(sent, prompt_like(sent));
    let body = send(json!({"wire": "gemini", "system": false, "extra": {"generationConfig": {"temperature": 0.1, "thinkingConfig": {"includeThoughts": false}}}})).await;
    assert!(body.get("systemInstruction").is_none());
    let sent = body["contents"][0]["parts"][0]["text"].as_str().unwrap();
    assert_eq!(sent, prompt_like(sent));
    assert_eq!(
        (&body["generationConfig"]["temperature"], &body["generationConfig"]["maxOutputTokens"]),
        (&json!(0.1), &json!(4000))
    );
    let body =
        send(json!({"wire": "messages", "system": false, "extra": {"metadata": {"user_id": "u"}}})).await;
    assert!(body.get("system").is_none() && body["metadata"]["user_id"] == "u");
    let body = send(json!({"wire": "ollama", "system": false, "extra": {"keep_alive": "30m", "options": {"num_thread": 2}}})).await;
    assert_eq!(body["messages"].as_array().unwrap().len(), 1);
    assert_eq!((&body["options"]["num_thread"], &body["options"]["num_predict"]), (&json!(2), &json!(4000)));
}

#[test]
fn settings_without_a_meaning_or_that_others_set_are_refused() {
    let base = json!({"wire": "chat", "base_url": "https://h/v1", "model": "m"});
    for (more, says) in [
        (
            json!({"wire": "messages", "tokens_field": "max_tokens"}),
            "`tokens_field` is for `chat` and `responses`",
        ),
        (json!({"wire": "gemini", "tokens_field": "x_tokens"}), "`tokens_field` is for"),
        (json!({"wire": "ollama", "usage": false}), "`usage` is for `chat`"),
        (json!({"wire": "responses", "usage": false}), "`usage` is for `chat`"),
        (json!({"tokens_field": "messages"}), "cannot be `messages`"),
        (json!({"tokens_field": "max tokens"}), "cannot be"),
        (json!({"usage": "no"}), "true or false"),
        (json!({"extra": "x"}), "a table"),
        (json!({"extra": {"messages": []}}), "the prompt is Quorate's own"),
        (json!({"wire": "responses", "extra": {"input": "x"}}), "the prompt is Quorate's own"),
        (json!({"wire": "gemini", "extra": {"contents": []}}), "the prompt is Quorate's own"),
        (json!({"extra": {"prompt": "x"}}), "the prompt is Quorate's own"),
        (json!({"extra": {"model": "x"}}), "the key `model`"),
        (json!({"extra": {"stream": false}}), "as a stream"),
        (json!({"extra": {"stream_options": {}}}), "the key `usage`"),
        (json!({"extra": {"response_format": {}}}), "the key `schema`"),
        (json!({"wire": "ollama", "extra": {"format": "json"}}), "the key `schema`"),
        (
            json!({"wire": "gemini", "extra": {"generationConfig": {"responseMimeType": "text/plain"}}}),
            "the key `schema`",
        ),
        (
            json!({"wire": "gemini", "extra": {"generationConfig": {"maxOutputTokens": 9}}}),
            "the key `max_tokens`",
        ),
        (json!({"wire": "gemini", "extra": {"generationConfig": 1}}), "`extra.generationConfig`"),
        (json!({"wire": "responses", "extra": {"text": {"format": {"type": "text"}}}}), "the key `schema`"),
        (json!({"extra": {"max_tokens": 9}}), "the key `max_tokens`"),
        (json!({"tokens_field": "max_len", "extra": {"max_len": 9}}), "the key `max_tokens`"),
        (json!({"wire": "ollama", "extra": {"options": {"num_ctx": 2048}}}), "the key `context`"),
        (json!({"extra": {"n": 3}}), "`samples`"),
        (json!({"extra": {"tools": []}}), "answers in text"),
        (json!({"extra": {"api_key": "sk-secret-value"}}), "the key `key`"),
        (json!({"base_url": "https://h/v1/chat/completions"}), "path of the API"),
        (json!({"wire": "messages", "base_url": "https://h/v1/messages"}), "path of the API"),
    ] {
        let mut block = base.clone();
        block.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        let error = build(block).err().unwrap_or_else(|| panic!("{more} is refused"));
        assert!(error.message.contains(says), "{more}: {error:?}");
        assert!(!format!("{error:?}").contains("secret-value"), "{error:?}");
    }
}

#[test]
fn keys_of_other_tools_are_refused_with_ours() {
    for (more, says) in [
        (json!({"api_key": "sk-secret-value"}), "`key = { env = \"OPENAI_API_KEY\" }`"),
        (json!({"apikey": "sk-secret-value"}), "`key = { env ="),
        (json!({"apiKey": "sk-secret-value"}), "`key = { env ="),
        (json!({"api-key": "sk-secret-value"}), "`key = { env ="),
        (json!({"token": "secret-value"}), "`key = { env ="),
        (json!({"url": "http://secret-value/v1"}), "`base_url = "),
        (json!({"endpoint": "x"}), "`base_url = "),
        (json!({"baseURL": "x"}), "`base_url = "),
        (json!({"api_base": "x"}), "`base_url = "),
        (json!({"provider": "openai"}), "`preset = \"openai\"`"),
        (json!({"provider": "ollama"}), "`preset = \"ollama\"`"),
        (json!({"vendor": "secret-value"}), "`preset = \"NAME\"`"),
        (json!({"name": "gpt-5.5"}), "`model = "),
        (json!({"max_completion_tokens": 1}), "`max_tokens = "),
        (json!({"temperature": 0.5}), "`extra = { temperature = "),
        (json!({"num_ctx": 8192}), "`context = "),
        (json!({"reasoning_effort": "low"}), "`effort = "),
    ] {
        let mut block = json!({"preset": "openai"});
        block.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        let error = build(block).err().unwrap_or_else(|| panic!("{more} is refused"));
        assert!(
            error.is_unknown_key && error.help.as_deref().unwrap_or_default().contains(says),
            "{error:?}"
        );
        assert!(!format!("{error:?}").contains("secret-value"), "{error:?}");
    }
    for (block, says) in [
        (json!({"model": "openai:gpt-5.5"}), "`preset = \"openai\"` and `model = \"gpt-5.5\"`"),
        (json!({"preset": "openai", "model": "openai:gpt-5.5"}), "`gpt-5.5`"),
        (json!({"preset": "openai", "model": "openai/gpt-5.5"}), "`gpt-5.5`"),
        (json!({"preset": "anthropic", "model": "openai:gpt-5.5"}), "`preset = \"openai\"`"),
        (json!({"preset": "ollama", "model": "ollama:qwen3"}), "`qwen3`"),
        (json!({"preset": "ollama", "model": "ollama/qwen3"}), "`qwen3`"),
        (json!({"base_url": "http://h:1/chat/completions"}), "`base_url = \"http://h:1/v1\"`"),
        (json!({"base_url": "http://h:1/v1/chat/completions"}), "`base_url = \"http://h:1/v1\"`"),
        (json!({"base_url": "https://h/api/models"}), "`base_url = \"https://h/api\"`"),
    ] {
        let error = build(block.clone()).err().unwrap_or_else(|| panic!("{block} is refused"));
        assert!(error.help.as_deref().unwrap_or_default().contains(says), "{error:?}");
    }
    for fine in [
        json!({"preset": "ollama", "model": "qwen3:8b"}),
        json!({"preset": "openrouter", "model": "openai/gpt-5.5"}),
        json!({"preset": "openrouter", "model": "openrouter/auto"}),
        json!({"base_url": "https://gw.example/v1", "model": "openai/gpt-5.5"}),
    ] {
        assert!(build(fine.clone()).is_ok(), "{fine}");
    }
}

#[tokio::test]
async fn a_local_server_gets_smaller_requests_one_at_a_time() {
    let most = |block: Value| {
        let executor = build(block).unwrap();
        executor.call_limit(0, Schema::PlainText).unwrap().tokens
    };
    let at = |host: &str| json!({"base_url": format!("http://{host}:8080/v1"), "model": "m", "pool": host});
    let far = most(at("model.example.com"));
    for host in [
        "localhost",
        "127.0.0.1",
        "10.1.2.3",
        "192.168.1.9",
        "[fd00::1]",
        "studio.local",
        "host.docker.internal",
        "gpu-box",
    ] {
        assert_eq!(far - most(at(host)), 12_000, "{host}");
        let executor = build(at(host)).unwrap();
        let _first = executor.admit().await;
        let second = tokio::time::timeout(Duration::from_millis(20), executor.admit()).await;
        assert!(second.is_err(), "{host} has one slot");
    }
    for preset in ["ollama", "lmstudio"] {
        assert_eq!(far - most(json!({"preset": preset, "model": "m"})), 12_000, "{preset}");
    }
    // Settings of the table take precedence.
    let mut own = at("localhost");
    own["max_tokens"] = json!(16_000);
    own["concurrency"] = json!(2);
    assert_eq!(most(own.clone()), far);
    let executor = build(own).unwrap();
    let _first = executor.admit().await;
    assert!(tokio::time::timeout(Duration::from_secs(5), executor.admit()).await.is_ok());
}
