//! Merging and removing, byte for byte.

use super::*;

#[track_caller]
fn merged(target: &str, profile: &str, expected: &str) {
    let done = merge(target, profile).expect("JSON");
    assert_eq!(done, expected);
    assert_eq!(merge(&done, profile).expect("JSON"), done, "a second time changes nothing");
    let taken = take_out(&done, Some(target), &done, Force::No).expect("JSON");
    assert_eq!(
        canonical_text(&json::parse(&taken.text.expect("a text")).expect("JSON")),
        canonical_text(&json::parse(target).expect("JSON"))
    );
    assert_eq!(taken.left, Vec::<String>::new());
}

#[test]
fn objects_are_merged_in_the_way_of_the_target() {
    merged(
        "{\n    \"b\": 1,\n    \"a\": {\"x\": [1, 2]}\n}\n",
        "{\"a\": {\"x\": [2, 3, 3], \"y\": true}, \"c\": {\n \"d\": [\n1]}, \"b\": 1.0}",
        "{\n    \"b\": 1.0,\n    \"a\": {\"x\": [1, 2, 3], \"y\": true},\n    \"c\": {\n        \"d\": [\n            1\n        ]\n    }\n}\n",
    );
    merged("{}", "{\"a\": 1}", "{\n  \"a\": 1\n}");
    merged("{\"a\": {}}", "{\"a\": {\"b\": 1}, \"c\": [\n]}", "{\"a\": {\"b\": 1}, \"c\": [\n]}");
    merged("{\r\n\t\"a\": []\r\n}\r\n", "{\"a\": [1]}", "{\r\n\t\"a\": [\r\n\t\t1\r\n\t]\r\n}\r\n");
}

#[test]
fn the_profile_wins_on_everything_else() {
    merged(
        "{\"a\": {\"b\": 1}, \"c\": null}",
        "{\"a\": [1], \"c\": {\"d\": 1}}",
        "{\"a\": [1], \"c\": {\"d\": 1}}",
    );
    merged("[1]", "[\"1\"]", "[1, \"1\"]");
    merged("{\"a\": \"x\"}", "{\"a\": null}", "{\"a\": null}");
    merged("{\"\\u0061\": 1}", "{\"a\": 1}", "{\"\\u0061\": 1}");
}

#[test]
fn invalid_json_is_reported_by_its_side() {
    assert!(matches!(merge("{", "{}"), Err(InvalidJson::Target(_))));
    assert!(matches!(merge("{}", "{"), Err(InvalidJson::Profile(_))));
    assert!(matches!(take_out("{", None, "{}", Force::No), Err(InvalidJson::Target(_))));
}

#[test]
fn edits_of_others_stay_when_it_is_taken_out() {
    let base = "{\n  \"env\": {\"A\": \"1\"},\n  \"allow\": [\"x\"],\n  \"mode\": \"ask\"\n}\n";
    let profile = "{\"env\": {\"B\": \"2\"}, \"allow\": [\"y\", \"z\"], \"mode\": \"auto\", \"hooks\": {\"p\": {\"q\": 1}}}";
    let installed = merge(base, profile).expect("JSON");
    let edited = installed
        .replace("\"z\"]", "\"z\", \"mine\"]")
        .replace("{\"A\": \"1\", ", "{\"A\": \"9\", \"M\": \"m\", ");
    let taken = take_out(&edited, Some(base), &installed, Force::No).expect("JSON");
    assert_eq!(
        taken.text.as_deref(),
        Some(
            "{\n  \"env\": {\"A\": \"9\", \"M\": \"m\"},\n  \"allow\": [\"x\", \"mine\"],\n  \"mode\": \"ask\"\n}\n"
        )
    );
    assert_eq!(taken.left, Vec::<String>::new());
    assert_eq!(
        take_out(&installed, Some(base), &installed, Force::No).expect("JSON").text.as_deref(),
        Some(base)
    );
}

#[test]
fn later_changes_stay_and_are_reported() {
    let installed = merge("{\"a\": 1}", "{\"a\": 2, \"b\": 3, \"c\": [1, 2], \"d\": {\"e\": 1, \"f\": 2}}")
        .expect("JSON");
    let edited = "{\"a\": 5, \"b\": 4, \"c\": [1, 7], \"d\": {\"e\": 1, \"f\": 3}}";
    let taken = take_out(edited, Some("{\"a\": 1}"), &installed, Force::No).expect("JSON");
    assert_eq!(taken.text.as_deref(), Some("{\"a\": 5, \"b\": 4, \"c\": [7], \"d\": {\"f\": 3}}"));
    assert_eq!(taken.left.len(), 4, "{:?}", taken.left);
    let again = take_out("{\"a\": 1}", Some("{\"a\": 1}"), &installed, Force::No).expect("JSON");
    assert_eq!(again, Removal { text: Some("{\"a\": 1}".to_owned()), left: Vec::new(), lost: Vec::new() });
}

#[test]
fn nothing_is_left_of_a_file_that_was_not_there() {
    let installed = "{\"a\": {\"b\": [1]}, \"c\": 2}";
    assert_eq!(take_out(installed, None, installed, Force::No).expect("JSON").text, None);
    assert_eq!(
        take_out("{\"c\": 2, \"a\": {\"b\": [1]}}", None, installed, Force::No).expect("JSON").text,
        None
    );
    let taken =
        take_out("{\"a\": {\"b\": [1], \"mine\": 1}, \"c\": 2}", None, installed, Force::No).expect("JSON");
    assert_eq!(taken.text.as_deref(), Some("{\"a\": {\"mine\": 1}}"));
}

#[test]
fn force_removes_changed_values_and_nothing_of_the_users() {
    let base = "{\"a\": 1, \"o\": {\"p\": 1}}";
    let profile = "{\"a\": 2, \"b\": 3, \"c\": [1, 2], \"d\": {\"e\": 1, \"f\": 2}, \"o\": {\"q\": 1}}";
    let installed = merge(base, profile).expect("JSON");
    let edited = "{\"a\": 5, \"mine\": 1, \"b\": {\"x\": 1}, \"c\": [1, 7], \"d\": {\"e\": 9, \"f\": 2, \"g\": 3}, \
                  \"o\": {\"p\": 4, \"q\": 1}}";
    let taken = take_out(edited, Some(base), &installed, Force::Yes).expect("JSON");
    let left = "{\"a\": 1, \"mine\": 1, \"c\": [7], \"d\": {\"g\": 3}, \"o\": {\"p\": 4}}";
    assert_eq!(taken.text.as_deref(), Some(left));
    assert_eq!(taken.left, ["`c` has lost an item that was added; one that was edited stays"]);
    assert_eq!(
        taken.lost,
        ["a", "b", "d.e"].map(|path| format!("`{path}` was changed since and is removed"))
    );
    // The whole file is the profile's: it is removed.
    let taken = take_out("{\"x\": {\"y\": 2}}", None, "{\"x\": {\"y\": 1}}", Force::Yes).expect("JSON");
    assert_eq!((taken.text, taken.lost.len()), (None, 1));
    // A value of another kind has no parts to compare.
    let taken = take_out("[1]", Some("{}"), "{\"x\": 1}", Force::Yes).expect("JSON");
    assert_eq!((taken.text.as_deref(), taken.left.len(), taken.lost.len()), (Some("[1]"), 1, 0));
}

/// Several megabytes on one line, in which every value changes: a quadratic algorithm would take minutes.
#[test]
fn large_texts_are_merged_and_taken_out_in_a_time_that_grows_with_them() {
    const KEYS: usize = 50_000;
    let text = |value: &str| {
        let entries: Vec<String> = (0..KEYS).map(|at| format!("\"key-{at:06}\": {value}")).collect();
        format!("{{{}}}", entries.join(", "))
    };
    let more = text("{\"b\": [2]}").replace("key-", "new-");
    let started = tokio::time::Instant::now();
    let replaced = merge(&text("{\"a\": 1}"), &text("[1, {}]")).expect("JSON");
    assert_eq!(replaced, text("[1, {}]"));
    let added = merge(&replaced, &more).expect("JSON");
    let taken = take_out(&added, Some(&replaced), &added, Force::No).expect("JSON");
    assert_eq!(taken.text.as_deref(), Some(&*replaced));
    // Every other member goes.
    let halves = (0..KEYS).filter(|at| at % 2 == 0).map(|at| format!("\"key-{at:06}\": [1, {{}}]"));
    let half = format!("{{{}}}", halves.collect::<Vec<_>>().join(", "));
    let taken = take_out(&replaced, Some(&half), &replaced, Force::No).expect("JSON");
    assert_eq!(
        taken.text.map(|text| canonical_text(&json::parse(&text).expect("JSON"))
            == canonical_text(&json::parse(&half).expect("JSON"))),
        Some(true)
    );
    assert!(started.elapsed() < std::time::Duration::from_secs(60), "{:?}", started.elapsed());
}

#[test]
fn what_is_put_into_a_place_takes_what_was_put_there_before() {
    let mut edits = Edits::new("abcdefgh");
    for (at, text) in
        [(1..2, "B"), (6..7, "G"), (3..3, "+"), (3..5, "DE"), (0..3, "X"), (7..7, "!"), (3..5, "de")]
    {
        edits.put(at, text.to_owned());
    }
    assert_eq!(edits.apply(), "XdefG!h");
}
