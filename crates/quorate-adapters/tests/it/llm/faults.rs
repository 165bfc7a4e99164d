//! Error responses: which fault they are, and when the request may be sent again.

use std::time::Duration;

use quorate_adapters::executor::llm::fault::{Fault, FaultKind, from_event, from_response};
use quorate_kernel::ports::executor::Retry;
use serde_json::{Value, json};

fn fault(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Fault {
    from_response(
        status,
        |name| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value),
        body,
    )
}

fn of_body(status: u16, body: Value) -> Fault {
    fault(status, &[], body.to_string().as_bytes())
}

#[test]
fn documented_errors_have_their_kind() {
    let anthropic = |kind: &str, message: &str| json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"});
    let openai = |kind: &str, code: Value| json!({"error": {"message": "m", "type": kind, "param": null, "code": code}});
    let gemini = |code: u16, status: &str, details: Value| json!({"error": {"code": code, "message": "m", "status": status, "details": details}});
    let spent = json!({"type": "error", "error": {"type": "rate_limit_error", "message": "m",
        "details": {"error_code": "enforced_spend_limit_reached"}}});
    let per_day = json!([
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [
            {"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier", "quotaValue": "50"}]},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "12s"}
    ]);
    let refused = |category: &str| FaultKind::Refused { category: Some(category.to_owned()) };
    for (status, body, kind, retry) in [
        (401, anthropic("authentication_error", "invalid x-api-key"), FaultKind::Auth, Retry::Never),
        (403, anthropic("permission_error", "m"), FaultKind::Auth, Retry::Never),
        (404, anthropic("not_found_error", "model: claude-9"), FaultKind::UnknownModel, Retry::Never),
        (413, anthropic("request_too_large", "m"), FaultKind::ContextOverflow, Retry::Never),
        (
            400,
            anthropic("invalid_request_error", "prompt is too long: 9 > 8"),
            FaultKind::ContextOverflow,
            Retry::Never,
        ),
        (400, anthropic("invalid_request_error", "max_tokens: bad"), FaultKind::BadRequest, Retry::Never),
        (
            400,
            anthropic("invalid_request_error", "Your credit balance is too low"),
            FaultKind::SpendLimit,
            Retry::Never,
        ),
        (402, anthropic("billing_error", "m"), FaultKind::SpendLimit, Retry::Never),
        (429, anthropic("rate_limit_error", "m"), FaultKind::RateLimited, Retry::Soon),
        (429, spent, FaultKind::SpendLimit, Retry::Never),
        (500, anthropic("api_error", "m"), FaultKind::Server, Retry::Soon),
        (529, anthropic("overloaded_error", "m"), FaultKind::Overloaded, Retry::Soon),
        (401, openai("invalid_request_error", json!("invalid_api_key")), FaultKind::Auth, Retry::Never),
        (
            404,
            openai("invalid_request_error", json!("model_not_found")),
            FaultKind::UnknownModel,
            Retry::Never,
        ),
        (
            400,
            openai("invalid_request_error", json!("context_length_exceeded")),
            FaultKind::ContextOverflow,
            Retry::Never,
        ),
        (400, openai("invalid_request_error", Value::Null), FaultKind::BadRequest, Retry::Never),
        (
            400,
            openai("invalid_request_error", json!("content_filter")),
            FaultKind::ContentFilter { category: None },
            Retry::Never,
        ),
        (400, openai("invalid_request_error", json!("bio_policy")), refused("bio_policy"), Retry::Never),
        (429, openai("insufficient_quota", json!("insufficient_quota")), FaultKind::SpendLimit, Retry::Never),
        (429, openai("tokens", json!("rate_limit_exceeded")), FaultKind::RateLimited, Retry::Soon),
        (503, openai("server_error", Value::Null), FaultKind::Overloaded, Retry::Soon),
        (400, json!({"error": "Model is loading, please wait"}), FaultKind::Overloaded, Retry::Soon),
        (424, json!({"error": "upstream"}), FaultKind::Overloaded, Retry::Soon),
        (425, json!({"error": "too early"}), FaultKind::Overloaded, Retry::Soon),
        (400, openai("invalid_request_error", json!("json_validate_failed")), FaultKind::Empty, Retry::Soon),
        (
            400,
            json!({"__type": "ThrottlingException", "message": "Too many tokens, please wait."}),
            FaultKind::RateLimited,
            Retry::Soon,
        ),
        (
            400,
            gemini(400, "INVALID_ARGUMENT", json!([{"reason": "API_KEY_INVALID"}])),
            FaultKind::BadRequest,
            Retry::Never,
        ),
        (
            400,
            json!({"error": {"code": 400, "message": "API key not valid. Please pass a valid API key.", "status": "INVALID_ARGUMENT"}}),
            FaultKind::Auth,
            Retry::Never,
        ),
        (403, gemini(403, "PERMISSION_DENIED", Value::Null), FaultKind::Auth, Retry::Never),
        (404, gemini(404, "NOT_FOUND", Value::Null), FaultKind::UnknownModel, Retry::Never),
        (429, gemini(429, "RESOURCE_EXHAUSTED", per_day), FaultKind::SpendLimit, Retry::Never),
        (
            429,
            json!([gemini(429, "RESOURCE_EXHAUSTED", json!([{"retryDelay": "45.8s"}]))]),
            FaultKind::RateLimited,
            Retry::After(Duration::from_millis(45_800)),
        ),
        (503, gemini(503, "UNAVAILABLE", Value::Null), FaultKind::Overloaded, Retry::Soon),
        (404, json!({"error": "model 'qwen' not found"}), FaultKind::UnknownModel, Retry::Never),
        (
            400,
            json!({"error": {"code": 400, "message": "m", "type": "exceed_context_size_error"}}),
            FaultKind::ContextOverflow,
            Retry::Never,
        ),
        (408, json!({}), FaultKind::Server, Retry::Soon),
        (409, json!({"detail": "locked"}), FaultKind::Server, Retry::Soon),
        (307, json!(null), FaultKind::BadRequest, Retry::Never),
    ] {
        let fault = of_body(status, body.clone());
        assert_eq!((&fault.kind, fault.retry(), fault.status), (&kind, retry, Some(status)), "{body}");
    }
}

#[test]
fn an_error_without_json_has_the_kind_of_its_status() {
    let fault = fault(502, &[], b"<html>\r\n<h1>502 Bad\tGateway\x07</h1> \xff\n</html>");
    assert_eq!(fault.kind, FaultKind::Server);
    assert_eq!(
        fault.to_string(),
        "the service failed (HTTP 502): <html> <h1>502 Bad Gateway </h1> \u{fffd} </html>"
    );
}

#[test]
fn the_wait_that_is_asked_for_is_obeyed() {
    let wait = |headers: &[(&str, &str)]| fault(429, headers, b"{}").retry();
    let after = |ms| Retry::After(Duration::from_millis(ms));
    assert_eq!(wait(&[("retry-after", "20")]), after(20_000));
    assert_eq!(wait(&[("retry-after", " 1.5 ")]), after(1_500));
    assert_eq!(wait(&[("retry-after", "20"), ("retry-after-ms", "250")]), after(250));
    let date = ("date", "Wed, 21 Oct 2026 07:27:30 GMT");
    assert_eq!(wait(&[("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT"), date]), after(30_000));
    // A time in the past and a wait of zero do not count as waits.
    assert_eq!(wait(&[("retry-after", "Wed, 21 Oct 2026 07:27:00 GMT"), date]), Retry::Soon);
    for none in ["", "0", "-1", "NaN", "inf", "1e300", "soon", "Wed, 21 Oct 2015 07:28:00 GMT", "-5s"] {
        assert_eq!(wait(&[("retry-after", none)]), Retry::Soon, "{none}");
    }
    assert_eq!(wait(&[("retry-after", "1000000000")]), after(1_000_000_000_000), "32 years");
    // Without a date of the response, this machine's clock counts.
    let Retry::After(long) = wait(&[("retry-after", "Fri, 01 Jan 2100 00:00:00 GMT")]) else {
        panic!("a wait")
    };
    assert!(long > Duration::from_secs(86_400), "{long:?}");
    assert_eq!(fault(400, &[("retry-after", "1")], b"{}").retry(), Retry::Never);
}

#[test]
fn the_reset_of_a_limit_is_read_in_every_form() {
    let date = ("date", "Wed, 21 Oct 2026 07:28:00 GMT");
    let wait = |headers: &[(&str, &str)]| fault(429, &[headers, &[date]].concat(), b"{}").retry();
    let after = |ms| Retry::After(Duration::from_millis(ms));
    for (text, expected) in [
        ("20", after(20_000)),
        ("0.5", after(500)),
        ("6m0s", after(360_000)),
        ("1m12.5s", after(72_500)),
        ("250ms", after(250)),
        ("7.66s", after(7_660)),
        ("1h", after(3_600_000)),
        ("1792567685", after(5_000)),
        ("1792567685000", after(5_000)),
        ("2026-10-21T07:28:30Z", after(30_000)),
        ("2026-10-21T09:28:30+02:00", after(30_000)),
        ("1792567680", Retry::Soon),
        ("2026-10-21T07:27:59Z", Retry::Soon),
        ("0", Retry::Soon),
        ("-3", Retry::Soon),
        ("tomorrow", Retry::Soon),
        ("", Retry::Soon),
    ] {
        for name in ["x-ratelimit-reset", "ratelimit-reset", "x-ratelimit-reset-requests"] {
            assert_eq!(wait(&[(name, text)]), expected, "{name}: {text}");
        }
        let body = json!({"error": {"code": 429, "message": "m", "metadata": {"headers": {
            "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": text}}}});
        let in_body = fault(429, &[date], body.to_string().as_bytes()).retry();
        assert_eq!(in_body, wait(&[("x-ratelimit-reset", text)]), "{text}");
    }
    // What is asked for in as many words comes first, and a limit with something left is not the one.
    assert_eq!(wait(&[("retry-after", "3"), ("x-ratelimit-reset", "20")]), after(3_000));
    assert_eq!(wait(&[("x-ratelimit-reset", "20"), ("x-ratelimit-remaining", "7")]), Retry::Soon);
    let both = [
        ("x-ratelimit-reset-requests", "20"),
        ("x-ratelimit-remaining-requests", "0"),
        ("x-ratelimit-reset-tokens", "6m0s"),
        ("x-ratelimit-remaining-tokens", "149984"),
    ];
    assert_eq!(wait(&both), after(20_000));
    // Only a response that limits the rate is about a limit.
    assert_eq!(fault(503, &[("x-ratelimit-reset", "20")], b"{}").retry(), Retry::Soon);
    assert_eq!(fault(503, &[("retry-after", "20")], b"{}").retry(), after(20_000));
}

#[test]
fn a_wait_in_words_is_read() {
    let after = |ms| Retry::After(Duration::from_millis(ms));
    for (message, expected) in [
        ("Rate limit reached for m. Please try again in 7.66s. Visit https://x.example.", after(7_660)),
        ("Please try again in 6ms.", after(6)),
        ("Please try again in 1m12s.", after(72_000)),
        ("Please retry after 20 seconds.", after(20_000)),
        ("You exceeded your quota. Please retry in 45.8s.", after(45_800)),
        ("Try again in 2 minutes, please", after(120_000)),
        ("slow down", Retry::Soon),
        ("try again in a while", Retry::Soon),
        ("try again in ", Retry::Soon),
    ] {
        let body = json!({"error": {"message": message, "code": 429}});
        assert_eq!(of_body(429, body.clone()).retry(), expected, "{message}");
        assert_eq!(fault(429, &[], message.as_bytes()).retry(), expected, "{message}");
        assert_eq!(fault(400, &[], message.as_bytes()).retry(), Retry::Never, "{message}");
        // The same within a response that began as a success.
        let event = from_event(&body);
        assert_eq!((event.retry(), event.status), (expected, Some(429)), "{message}");
    }
}

#[test]
fn what_the_service_says_of_retries_counts_but_never_for_what_would_repeat() {
    let told = |status, answer, body: Value| {
        fault(status, &[("x-should-retry", answer)], body.to_string().as_bytes()).retry()
    };
    assert_eq!(told(500, "false", json!({})), Retry::Never);
    assert_eq!(told(429, "false", json!({})), Retry::Never);
    assert_eq!(told(400, "true", json!({})), Retry::Soon);
    assert_eq!(told(429, "true", json!({"error": {"code": "insufficient_quota"}})), Retry::Never);
    assert_eq!(told(413, "true", json!({})), Retry::Never);
    assert_eq!(told(429, "maybe", json!({})), Retry::Soon);
}

#[test]
fn a_fault_says_in_plain_words_what_happened() {
    let refused = Fault::new(FaultKind::Refused { category: Some("cyber".to_owned()) }, "No.\n\nNot this.");
    assert_eq!(refused.to_string(), "the model refused to answer (cyber): No. Not this.");
    let long = Fault::new(FaultKind::Server, "ä".repeat(10_000));
    assert_eq!(long.said.chars().count(), 401);
    let unknown = of_body(401, json!({"error": {"type": "authentication_error"}}));
    let message = "the service did not accept the key (HTTP 401): authentication_error";
    assert_eq!((unknown.to_string().as_str(), unknown.retry()), (message, Retry::Never));
}
