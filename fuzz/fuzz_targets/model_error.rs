#![no_main]

use quorate_adapters::executor::llm::fault;
use quorate_adapters::executor::llm::schema::{Dialect, form};
use quorate_protocol::answers::Schema;

// The first two bytes are the status; the rest is a header's value and the body, and the text of an answer.
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
});
