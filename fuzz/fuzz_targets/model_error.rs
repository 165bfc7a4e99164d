#![no_main]

use quorate_adapters::executor::llm::decide::api::{Api, Question, read_usage};
use quorate_adapters::executor::llm::fault;
use quorate_adapters::executor::llm::schema::{Dialect, form};
use quorate_protocol::Json;
use quorate_protocol::answers::Schema;

// The first two bytes are the status; the rest is a header's value and the body, the text of an answer, and the
// response of a decision model.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let [high, low, body @ ..] = bytes else { return };
    let text = std::str::from_utf8(body).unwrap_or_default();
    let fault = fault::from_response(u16::from_be_bytes([*high, *low]), |_| Some(text), body);
    assert!(!fault.to_string().contains(['\n', '\r']));
    let _ = fault.retry();
    for answer in Schema::ALL {
        let Some(form) = form(answer, Dialect::OpenAi) else { continue };
        let restored = form.restore(text);
        assert_eq!(form.restore(&restored), restored);
    }
    let Ok(response) = text.parse::<Json>() else { return };
    let _ = read_usage(&response);
    let option = |name: &str| (name.to_owned(), String::new());
    for options in [Vec::new(), vec![option("a"), option("b")]] {
        let question = Question { state: "".into(), instructions: String::new(), options };
        for api in Api::ALL {
            let _ = api.decode(&response, &question);
        }
    }
});
