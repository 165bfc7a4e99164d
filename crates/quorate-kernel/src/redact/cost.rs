//! What redaction costs: time in proportion to the length of a text, for texts that are made to cost more.

use std::time::{Duration, Instant};

use super::*;

/// The length of a long adversarial draft.
const LENGTH: usize = 400_000;
/// A text of this length takes milliseconds, and took minutes where a kind was looked for again from each beginning. The
/// limit leaves room for a busy machine.
const MAX_DURATION: Duration = Duration::from_secs(20);

#[expect(clippy::disallowed_methods, reason = "it is about time")]
fn takes(redactor: &Redactor, text: &str) -> Duration {
    let started = Instant::now();
    let (clean, _) = redactor.redact(text);
    assert!(!clean.is_empty());
    started.elapsed()
}

fn full_of(unit: &str) -> String {
    unit.repeat(LENGTH / unit.len())
}

#[track_caller]
fn is_cheap(units: impl Iterator<Item = String>) {
    let redactor = Redactor::from_secrets(&Secrets { builtin: true, ..Secrets::default() })
        .expect("no pattern to compile");
    for unit in units {
        let took = takes(&redactor, &full_of(&unit));
        assert!(took < MAX_DURATION, "{unit:?} takes {took:?}");
    }
}

#[test]
fn a_text_full_of_beginnings_is_cheap_for_every_kind() {
    // X10
    assert!(anchors().count() > 150);
    is_cheap(anchors().map(|anchor| format!("-{anchor}")));
}

#[test]
fn a_text_full_of_assignments_is_cheap() {
    let names = || assignment::ANCHORS.iter();
    is_cheap(names().flat_map(|name| [format!("={name}"), format!("{name}: "), format!("a_{name}=\"")]));
    is_cheap(names().map(|name| format!("<{name}>a1B2c3D4")));
}

#[test]
fn what_was_slow_is_cheap() {
    let texts = [
        "-AIza",
        "authorization=",
        "password='",
        "Authorization: Bearer ",
        "://a:",
        "-----BEGIN RSA PRIVATE KEY-----\n",
    ];
    is_cheap(texts.into_iter().map(str::to_owned));
    let texts = [
        "-----END RSA PRIVATE KEY-----",
        "MIIa1B2c3D4e5F6g7H8\n",
        "eyJ",
        "-eyJ",
        ".eyJ",
        "a.eyJ-",
        " -u a:",
        "cookie: a=b; ",
    ];
    is_cheap(texts.into_iter().map(str::to_owned));
}

#[test]
fn what_stands_beside_and_below_a_name_is_cheap() {
    let texts = [
        "passwords:\n  - a1B2c3D4\n",
        "api_keys: [\"",
        "password:\n  ",
        "{\"name\": \"password\", \"value\": \"",
        "variable \"password\" { ",
        " -b a=b; curl",
        "mysql -pa1 ",
        ":5432:a:b:",
        "cookies={\"a\":",
        "jdbc:oracle:thin:a/",
        "password: \"aaa bbb ccc",
    ];
    is_cheap(texts.into_iter().map(str::to_owned));
}

#[test]
fn a_mixture_of_beginnings_is_cheap() {
    let all: Vec<&str> = anchors().collect();
    is_cheap(["", "-", "=", "\n", " a1B2"].into_iter().map(|between| all.join(between)));
    // One long run of what continues in every kind.
    is_cheap(["a1B2c3D4", "0a1b", "aB", "="].into_iter().map(str::to_owned));
}

#[test]
fn a_document_full_of_secret_keys_is_cheap() {
    let redactor =
        Redactor::from_secrets(&Secrets { patterns: vec!["sk-[0-9]+".into()], ..Secrets::default() })
            .expect("a pattern");
    let document: Map<String, Json> = (0..20_000).map(|at| (format!("sk-{at}"), json!(at))).collect();
    let started = tokio::time::Instant::now();
    let (clean, count) = redactor.redact_json(Json::Object(document));
    assert_eq!((clean.as_object().map(Map::len), count), (Some(20_000), 20_000));
    assert!(started.elapsed() < MAX_DURATION);
}

#[test]
fn what_takes_long_leaves_the_thread_to_others() {
    // A pattern that reads to the end from everywhere.
    let redactor = Redactor::new(&["a*b|a".to_owned()]).expect("a pattern");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let text = "a".repeat(BLOCKING_BYTES);
    let heard = runtime.block_on(async {
        let work = redactor.run_blocking_if_large(text.len(), move |redactor| redactor.redact(&text).1);
        tokio::select! {
            biased;
            count = work => Err(count),
            () = std::future::ready(()) => Ok(()),
        }
    });
    assert_eq!(heard, Ok(()), "it is not done where it is waited for");
    runtime.shutdown_background();
}
