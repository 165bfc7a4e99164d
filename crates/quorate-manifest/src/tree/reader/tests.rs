//! Reading a tree says everything at once, each with its path.

use quorate_diagnostics::codes::COUNCIL_INVALID;

use super::*;
use crate::tree::yaml;

/// Reads a mapping and gives each refusal as `path: message (help)`.
fn refusals(text: &str, read: impl FnOnce(&mut Fields<'_>)) -> Vec<String> {
    let document = SourceFile::new("council.yaml", text.into(), COUNCIL_INVALID);
    let root = yaml::parse(text).0.expect("a tree");
    let Kind::Map(entries) = &root.kind else { panic!("a mapping") };
    let mut fields = document.root(entries);
    read(&mut fields);
    fields.finish();
    let say = |refusal: quorate_diagnostics::Refusal| {
        let body = refusal.body;
        let path = body.place.map(|place| place.path).unwrap_or_default();
        format!("{path}: {} ({})", body.message, body.help.unwrap_or_default())
    };
    document.into_report().refusals.into_iter().map(say).collect()
}

#[test]
fn everything_is_said_at_once() {
    let text = "title: 0\nlive: \"true\"\ncount: 9\nwait: 10\nitems: x\n";
    let said = refusals(text, |fields| {
        assert_eq!(fields.optional("title").and_then(|f| f.text().map(str::to_owned)), None);
        assert_eq!(fields.optional("live").and_then(|f| f.boolean()), None);
        assert_eq!(fields.optional("count").and_then(|f| f.integer(1, 2)), None);
        assert_eq!(fields.optional("wait").and_then(|f| f.duration()), None);
        assert!(fields.optional("items").and_then(|f| f.list()).is_none());
    });
    assert_eq!(
        said,
        [
            "title: `title` has to be text, not a whole number (put it in quotes: \"0\")",
            "live: `live` has to be true or false, not text (write true, without quotes)",
            "count: `count` is 9; it has to be 1 or 2 ()",
            "wait: `wait`: a duration needs a unit (write \"10s\" for seconds)",
            "items: `items` has to be a list, not text ()",
        ]
    );
}

#[test]
fn an_unknown_key_is_refused_with_a_suggestion() {
    let said = refusals("roundz: 1\n\"a b\": 2\n", |fields| assert!(fields.optional("rounds").is_none()));
    assert_eq!(
        said,
        [
            "roundz: `roundz` is not a key here (did you mean `rounds`?)",
            "[\"a b\"]: `a b` is not a key here (the keys are: rounds)",
        ]
    );
}

#[test]
fn thousands_of_refusals_are_counted_and_not_kept() {
    let text: String = (0..5_000).map(|n| format!("k{n}: 1\n")).collect();
    let said = refusals(&text, |_| {});
    assert_eq!(said.len(), MAX_DIAGNOSTICS + 1);
    assert_eq!(said[MAX_DIAGNOSTICS], ": 4800 more refusals of council.yaml are not shown ()");
}

// M3
#[test]
fn a_key_without_a_value_is_absent() {
    let said = refusals("id:\nnote: ~\n", |fields| {
        assert!(fields.optional("note").is_none());
        assert!(fields.required("id", "a name").is_none());
    });
    assert_eq!(said, [": `id` is missing (add `id`: a name)"]);
}
