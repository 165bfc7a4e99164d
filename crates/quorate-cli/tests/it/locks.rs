//! `quorate locks test` through the real binary.

use crate::support;
use serde_json::Value;
use support::TestDir;

const ROOT: &str = "\
---
schema: assembly.workspace/v1
name: board
title: Board
description: Decides.
version: 1.0.0
mode: voting
members:
  - { id: ciso, persona: ws://personas/ciso, role: Security }
lockedTraits:
  - warmth
  - voice register
---
";

/// A board with a floor, and a view that adds a pattern to it.
fn workspace() -> TestDir {
    let place = TestDir::with("ASSEMBLY.md", ROOT);
    place.write("quorate.toml", "strict_chain = true\n");
    place.write(
        "operators/lead/ASSEMBLY.md",
        "---\nschema: assembly.workspace/v1\nname: lead-board\ntitle: Lead's board\ndescription: For the lead.\nversion: 1.1.0\nextends: ../../ASSEMBLY.md\nlockedTraits: [warmth, voice register, 'less (kind|gentle)']\nmatchMode: regex\n---\n",
    );
    place
}

/// Trait, layer, line and column of every hit.
fn hits(tested: &Value) -> Vec<(String, String, u64, u64)> {
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    let traits = tested["traits"].as_array().unwrap().iter();
    traits
        .flat_map(|one| one["hits"].as_array().unwrap().iter().map(move |hit| (one, hit)))
        .map(|(one, hit)| {
            let place = (hit["line"].as_u64().unwrap(), hit["column"].as_u64().unwrap());
            (word(&one["trait"]), word(&hit["layer"]), place.0, place.1)
        })
        .collect()
}

// L2
#[test]
fn it_says_which_layer_hits_what_where_and_who_declared_it() {
    let place = workspace();
    let text = "Drop the Warmth.\nDrop the w**arm**th, and the voice\u{a0} register.\nDrop the wаrmth.\n";
    let tested = place.run(&["locks", "test", ".", "--text", text, "--format", "json"]).assert_code(0).json();
    let expected = [
        ("warmth", "as-given", 1, 10),
        ("warmth", "unmarked", 2, 10),
        ("warmth", "skeleton", 3, 10),
        ("voice register", "folded", 2, 30),
    ];
    let expected =
        expected.map(|(one, document, line, column)| (one.to_owned(), document.to_owned(), line, column));
    assert_eq!(hits(&tested), expected);
    let first = &tested["traits"][0];
    assert_eq!((&first["file"], &first["line"]), (&"ASSEMBLY.md".into(), &11.into()));
    let (start, end) =
        (first["hits"][0]["start"].as_u64().unwrap(), first["hits"][0]["end"].as_u64().unwrap());
    assert_eq!((start, end), (9, 15));

    let shown = place.run(&["locks", "test", ".", "--text", text]).assert_code(0).stdout;
    for part in
        ["2 of 2 locked traits hit.", "text:2:10  unmarked", "«w**arm**th»", "(substring, ASSEMBLY.md:11)"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

// M9, L3
#[test]
fn a_pattern_of_a_view_is_added_to_the_floor() {
    let place = workspace();
    let ran = place.run_with_stdin(
        &["locks", "test", "operators/lead", "--file", "-", "--format", "json"],
        "Be l\u{200b}ess kind, and less gentle.".as_bytes(),
    );
    let tested = ran.assert_code(0).json();
    let pattern = "less (kind|gentle)".to_owned();
    let expected = [(pattern.clone(), "regex-folded".to_owned(), 1, 4), (pattern, "regex".to_owned(), 1, 20)];
    assert_eq!(hits(&tested), expected);
    let declared: Vec<&str> =
        tested["traits"].as_array().unwrap().iter().map(|one| one["file"].as_str().unwrap()).collect();
    assert_eq!(declared, ["ASSEMBLY.md", "ASSEMBLY.md", "operators/lead/ASSEMBLY.md"]);
    let shown = place.run(&["locks", "test", "operators/lead", "--text", "Less kind."]).assert_code(0).stdout;
    assert!(shown.contains("Not hit\n  - warmth") && shown.contains("regex: "), "{shown}");
}

#[test]
fn it_exits_by_whether_it_could_look() {
    let place = workspace();
    place.write("draft.md", "Nothing of it.\n");
    let ran = place.run(&["locks", "test", "ASSEMBLY.md", "--file", "draft.md"]).assert_code(0);
    assert!(ran.stdout.starts_with("None of 2 locked traits hits.\n"), "{}", ran.stdout);
    place.run(&["locks", "test", "nowhere", "--text", "x"]).assert_code(4);
    place
        .run(&["locks", "test", "ASSEMBLY.md", "--file", "nowhere.md"])
        .assert_code(4)
        .assert_stderr_contains("nowhere.md");
    place.write("binary", b"\xff\0");
    place.run(&["locks", "test", "ASSEMBLY.md", "--file", "binary"]).assert_code(5);
    place.run(&["locks", "test", "ASSEMBLY.md"]).assert_code(64);
    place.run(&["locks", "test", "ASSEMBLY.md", "--text", "x", "--file", "y"]).assert_code(64);
    place.write(
        "bad/ASSEMBLY.md",
        ROOT.replace("version: 1.0.0", "version: 1.0.0\nmatchMode: regex").replace("- warmth", "- '(warmth'"),
    );
    place
        .run(&["locks", "test", "bad", "--text", "x"])
        .assert_code(5)
        .assert_stderr_contains("quorate:pattern_invalid");
    place.write("none/ASSEMBLY.md", ROOT.split("lockedTraits").next().unwrap().to_owned() + "---\n");
    let none = place.run(&["locks", "test", "none", "--text", "x"]).assert_code(0);
    assert_eq!(none.stdout, "board has no locked traits.\n");
}

// L4
#[test]
fn without_an_embedder_it_says_that_meaning_was_not_compared() {
    let place = workspace();
    place.write("ASSEMBLY.md", ROOT.replace("lockedTraits:", "matchMode: semantic\nlockedTraits:"));
    let ran = place.run(&["locks", "test", "ASSEMBLY.md", "--text", "Drop the warmth."]).assert_code(0);
    assert!(ran.stdout.contains("Meaning was not compared"), "{}", ran.stdout);
    ran.assert_stderr_contains("assembly_locked_trait_match_mode_unsupported");
    let tested = place
        .run(&["locks", "test", "ASSEMBLY.md", "--text", "Warmth", "--format", "json"])
        .assert_code(0)
        .json();
    assert_eq!(
        (&tested["meaning_compared"], &tested["traits"][0]["hits"][0]["layer"]),
        (&false.into(), &"as-given".into())
    );
}
