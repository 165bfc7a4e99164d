//! The history of a playbook's file: exact, to be read, and broken by any change (B7).

use proptest::prelude::*;
use quorate_playbook::history::{Version, append, parse};

fn version(n: u32, text: &str) -> Version {
    Version {
        n,
        at: format!("2026-11-21T10:00:0{n}.000Z"),
        event: "delta".to_owned(),
        summary: format!("Change {n}."),
        by: None,
        text: text.to_owned(),
    }
}

fn history(versions: &[Version]) -> String {
    versions
        .iter()
        .fold(String::new(), |text, version| append(&text, "a-b", version).expect("it is the next"))
}

fn three() -> Vec<Version> {
    let mut versions = [
        version(1, "---\nslug: a-b\n---\n\n```\n<!-- quorate:version -->\n## v2 · x\n```\n"),
        version(2, "---\r\nslug: a-b\r\n---\r\nno end"),
        version(3, "---\nslug: a-b # ü\n---\n"),
    ];
    versions[1].by = Some("alice".to_owned());
    versions[1].summary = "One\n<!-- two --> `three`".to_owned();
    versions.into()
}

#[test]
fn a_section_is_for_people_and_machines() {
    // B7
    let mut one = version(1, "---\nslug: a-b\n---\n\n```sh\nls\n```\n");
    one.by = Some("alice".to_owned());
    let text = history(std::slice::from_ref(&one));
    let expected = "\
# History of `a-b`

Every version of the file, the oldest first. `quorate` adds versions and changes none; each is sealed with the hash of the one before it.

## v1 · 2026-11-21T10:00:01.000Z · delta

By alice: Change 1.

<!-- quorate:version ";
    assert!(text.starts_with(expected), "{text}");
    assert!(text.ends_with(" -->\n\n````markdown\n---\nslug: a-b\n---\n\n```sh\nls\n```\n````\n"), "{text}");
    assert_eq!(parse(&text), Ok(vec![one]));
    assert_eq!(parse(""), Ok(Vec::new()));
}

#[test]
fn nothing_in_a_section_ends_its_comment_or_fence() {
    // B7
    let text = history(&three());
    let data: Vec<&str> =
        text.lines().filter(|line| line.starts_with("<!-- quorate:version ") && line.len() > 40).collect();
    assert_eq!(data.len(), 3);
    assert!(
        data.iter().all(|line| line.matches(['<', '>']).count() == 2 && line.ends_with(" -->")),
        "{data:#?}"
    );
    assert!(text.contains("\nBy alice: One \\<!-- two --> `three`\n"));
    let fences = append("", "a-b", &version(1, "~~~~~\na `````` b\n")).unwrap();
    assert!(fences.contains("\n```````markdown\n~~~~~\na `````` b\n```````\n"), "{fences}");
}

#[test]
fn every_change_of_a_byte_is_found() {
    // B7
    let versions = three();
    let text = history(&versions);
    for at in 0..text.len() {
        let byte = text.as_bytes()[at];
        let others = [byte ^ 1, byte ^ 0x20, b' ', b'\n', b'`', b'0', b'9', b'\r', b'"'];
        let changed = others.into_iter().filter(|other| *other != byte).map(|other| {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = other;
            bytes
        });
        let mut without = text.clone().into_bytes();
        without.remove(at);
        let more = [b' ', b'\n', b'\r', b'`', b'1'].map(|more| {
            let mut bytes = text.clone().into_bytes();
            bytes.insert(at, more);
            bytes
        });
        for bytes in changed.chain([without]).chain(more) {
            let Ok(changed) = String::from_utf8(bytes) else { continue };
            if let Ok(read) = parse(&changed) {
                assert_eq!(read, versions, "at {at}:\n{changed}");
            }
        }
    }
}

#[test]
fn a_cut_is_found_unless_whole_versions_are_gone() {
    // B7
    let versions = three();
    let text = history(&versions);
    let whole: Vec<usize> = (0..=3).map(|count| history(&versions[..count]).len()).collect();
    let head = text.find("\n## v1").expect("there is a first version");
    for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
        match parse(&text[..at]) {
            Ok(read) => {
                assert!(whole.contains(&at) || at == head, "cut at {at}");
                assert_eq!(read, versions[..read.len()]);
            }
            Err(broken) => assert!(broken.reason.contains("cut off"), "cut at {at}: {broken}"),
        }
    }
}

#[test]
fn sections_cannot_be_moved_doubled_dropped_or_taken_from_elsewhere() {
    // B7
    let versions = three();
    let text = history(&versions);
    let starts: Vec<usize> = (0..3).map(|count| history(&versions[..count]).len()).collect();
    let head = &text[..text.find("\n## v1").expect("a first version")];
    let parts = [&text[head.len()..starts[1]], &text[starts[1]..starts[2]], &text[starts[2]..]];
    let said = |order: &[usize]| {
        let sections: String = order.iter().map(|at| parts[*at]).collect();
        parse(&format!("{head}{sections}")).map_err(|broken| broken.to_string())
    };
    assert_eq!(said(&[0, 1, 2]), Ok(versions.clone()));
    for order in [&[1, 0, 2][..], &[0, 2], &[0, 1, 1], &[1, 2], &[0, 1, 2, 2]] {
        let why = said(order).unwrap_err();
        assert!(why.ends_with("sections are missing or in another order"), "{why}");
    }
    let other = append("", "other", &versions[0]).unwrap();
    let moved = format!("{head}{}", &other[other.find("\n## v1").expect("a first version")..]);
    assert!(parse(&moved).is_err());
    assert_eq!(
        append(&other, "a-b", &versions[1]).unwrap_err().to_string(),
        "line 1: this is not the history of `a-b`"
    );
    let end = text.matches('\n').count() + 1;
    assert_eq!(
        append(&text, "a-b", &versions[1]).unwrap_err().to_string(),
        format!("line {end}: the next version is 4, not 2")
    );
    assert!(append(&text[..text.len() - 1], "a-b", &version(4, "")).is_err());
}

#[test]
fn what_people_and_tools_do_to_it_is_said() {
    // B7
    let versions = three();
    let text = history(&versions);
    let line = |part: &str| 1 + text[..text.find(part).expect(part)].matches('\n').count();
    let said = |text: &str| parse(text).unwrap_err().to_string();

    let edited = text.replacen("slug: a-b # ü", "slug: a-b # u", 1);
    assert_eq!(said(&edited), format!("line {}: the text of this version was changed", line("## v3")));
    let edited = text.replacen("Summary: Change 3.", "Summary: change 3.", 1);
    assert_eq!(said(&edited), format!("line {}: this was changed", line("Summary: Change 3.")));
    let edited = text.replace("Change 3.", "Change 9.");
    assert_eq!(said(&edited), format!("line {}: this was changed", line("Summary: Change 3.") + 2));
    assert!(said(&format!("{text}\nA remark.\n")).ends_with("no section of a history looks like this"));
    assert_eq!(said("# History of `a-b`\n"), "line 2: the history is cut off here");

    let at = text.find("## v3").expect("a third version");
    let merged =
        format!("{}<<<<<<< HEAD\n{}=======\n{}>>>>>>> theirs\n", &text[..at], &text[at..], &text[at..]);
    let why = said(&merged);
    assert!(why.starts_with(&format!("line {}: a merge", line("## v3"))), "{why}");
    // In a text such marks are text.
    let marks = "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> theirs\n";
    let text = append(&text, "a-b", &version(4, marks)).unwrap();
    assert_eq!(parse(&text).unwrap()[3].text, marks);
}

#[test]
fn line_ends_that_git_changed_are_changed_back_only_where_that_is_exact() {
    // B7
    let crlf = |versions: &[Version]| history(versions).replace("\r\n", "\n").replace('\n', "\r\n");
    let versions = three();
    let why = parse(&crlf(&versions)).unwrap_err();
    assert_eq!((why.line, why.reason.contains("CRLF")), (1, true));
    let plain = [version(1, "a\nb\n"), version(2, "a\nc")];
    assert_eq!(parse(&crlf(&plain)), Ok(plain.to_vec()));
    let next = version(3, "d\r\n");
    let text = append(&crlf(&plain), "a-b", &next).unwrap();
    assert_eq!(text, history(&[plain[0].clone(), plain[1].clone(), next]));
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z .]{0,20}",
        "([`~<>!#\\-]|\r?\n|\"|\\\\|--> ?){0,12}",
        any::<String>().prop_map(|text| text.replace('\0', "")),
    ]
}

fn text() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        words(),
        "[`~]{3,9}[a-z]{0,3}",
        Just("<!-- quorate:version 0 {} -->".to_owned()),
        Just("## v2 · x · y".to_owned()),
        Just("<<<<<<< HEAD".to_owned()),
    ];
    let end = prop::sample::select(&["\n", "\r\n", "", "\r"][..]);
    prop::collection::vec((line, end), 0..8)
        .prop_map(|lines| lines.into_iter().map(|(line, end)| line + end).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_written_comes_back(
        parts in prop::collection::vec((words(), words(), words(), prop::option::of(words()), text()), 0..5),
        slug in words(),
        change in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        // B7
        let mut versions = Vec::new();
        let mut all = String::new();
        for (n, (at, event, summary, by, text)) in (1..).zip(parts) {
            let version = Version { n, at, event, summary, by, text };
            let longer = append(&all, &slug, &version).unwrap();
            prop_assert!(longer.starts_with(&all));
            all = longer;
            versions.push(version);
            let read = parse(&all);
            prop_assert_eq!(read.as_ref(), Ok(&versions));
        }
        if !all.is_empty() {
            let mut bytes = all.into_bytes();
            let at = change.index(bytes.len());
            bytes[at] = byte;
            if let Ok(read) = String::from_utf8(bytes).map_err(|_| ()).and_then(|text| parse(&text).map_err(|_| ())) {
                prop_assert_eq!(read, versions);
            }
        }
    }
}
