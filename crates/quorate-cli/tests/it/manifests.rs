//! `check`, `resolve`, `schema`, `fmt` and `init` of manifests through the real binary.

use std::path::Path;

use crate::support;
use serde_json::Value;
use support::TestDir;

const ASSEMBLY: &str = "\
---
schema: assembly.workspace/v1
name: board
title: Board
description: Decides.
version: 1.0.0
mode: voting
members:
  - id: ciso
    persona: ws://personas/ciso
    role: Security
    weight: 1.5
synthesis:
  rules:
    - { id: quorum, kind: quorum, params: { threshold: 0.66 } }
lockedTraits: [warmth]
---
";

const PERSONA: &str = "\
---
schema: persona/v1
name: ciso
title: CISO
description: Looks for holes.
version: 1.0.0
---
You look for holes.
";

/// A workspace with a board, its persona, and a view of it.
fn workspace() -> TestDir {
    let place = TestDir::with("ASSEMBLY.md", ASSEMBLY);
    place.write("quorate.toml", "strict_chain = true\n");
    place.write("personas/ciso/PERSONA.md", PERSONA);
    place.write("operators/lead/OPERATOR.md", "---\nid: lead\nname: Lead\n---\n");
    place.write(
        "operators/lead/ASSEMBLY.md",
        "---\nschema: assembly.workspace/v1\nname: lead-board\ntitle: Lead's board\ndescription: For the lead.\nversion: 1.1.0\nextends: ../../ASSEMBLY.md\nappliesTo: [ws://operators/lead]\nmembers:\n  - { id: ciso, persona: ws://personas/ciso, role: Security, weight: 2 }\n---\n",
    );
    place
}

#[test]
fn check_says_everything_at_once_and_exits_by_it() {
    let place = workspace();
    let clean = place.run(&["check", ".", "--format", "json"]).assert_code(0).json();
    assert_eq!((&clean["files"], &clean["refusals"], &clean["warnings"]), (&5.into(), &0.into(), &0.into()));

    place.write(
        "ASSEMBLY.md",
        ASSEMBLY.replace("mode: voting", "mode: votig").replace("role: Security", "rol: 1"),
    );
    let ran = place.run(&["check", "ASSEMBLY.md", "--format", "json"]).assert_code(1);
    let report = ran.json();
    let said: Vec<(&str, u64, &str)> = report["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            (one["code"].as_str().unwrap(), one["line"].as_u64().unwrap(), one["path"].as_str().unwrap())
        })
        .collect();
    let code = "assembly_workspace_invalid";
    assert_eq!(said, [(code, 7, "mode"), (code, 9, "members[0].role"), (code, 11, "members[0].rol")]);
    assert!(report["diagnostics"][0]["help"].as_str().unwrap().contains("voting"), "{report}");
    // The view is refused for its parent's sake, which is said once.
    let all = place.run(&["check", ".", "--format", "json"]).assert_code(1).json();
    assert_eq!(all["refusals"], 3);
}

#[test]
fn check_takes_files_directories_globs_and_standard_input() {
    let place = workspace();
    place
        .run(&["check", "personas", "operators/**/ASSEMBLY.md", "quorate.toml"])
        .assert_code(0)
        .assert_stderr_contains("3 files checked");
    place.run(&["check", "nowhere/ASSEMBLY.md"]).assert_code(4).assert_stderr_contains("nowhere/ASSEMBLY.md");
    place.run(&["check", "nowhere/*.md"]).assert_code(4);
    place.run(&["check"]).assert_code(64);
    place.run(&["check", "--bogus", "."]).assert_code(64);
    std::os::unix::net::UnixListener::bind(place.path("socket.md")).unwrap();
    let odd = place.run(&["check", "socket.md", "quorate.toml", "--format", "json"]).assert_code(5).json();
    assert_eq!(
        (&odd["files"], &odd["diagnostics"][0]["code"]),
        (&1.into(), &"quorate:file_unreadable".into())
    );
    place.write("notes.md", "# Notes\n");
    place.run(&["check", "."]).assert_code(0).assert_stderr_contains("1 passed over");
    assert!(place.run(&["check", "notes.md"]).assert_code(1).stdout.contains("quorate:syntax"));
    let text = PERSONA.replace("version: 1.0.0", "version: one");
    let read = place.run_with_stdin(&["check", "-", "--format", "concise"], text.as_bytes()).assert_code(1);
    assert!(read.stdout.starts_with("-:6:10: refusal[persona_invalid]"), "{}", read.stdout);
}

#[test]
fn warnings_count_only_when_they_are_asked_to() {
    let place = workspace();
    place.write("board.md", ASSEMBLY);
    place.run(&["check", "board.md"]).assert_code(0).assert_stderr_contains("1 warning");
    place.run(&["check", "--strict", "board.md"]).assert_code(1);
}

#[test]
fn refs_are_followed_unless_said_otherwise() {
    let place = workspace();
    std::fs::remove_dir_all(place.path("personas")).unwrap();
    let ran = place.run(&["check", "ASSEMBLY.md", "--format", "json"]).assert_code(1).json();
    assert_eq!(ran["diagnostics"][0]["code"], "assembly_member_persona_unresolvable");
    place.run(&["check", "--no-refs", "ASSEMBLY.md"]).assert_code(0);
}

#[test]
fn what_a_parent_violates_is_shown_where_the_parent_says_it() {
    let place = workspace();
    let view = place.read("operators/lead/ASSEMBLY.md").replace("members:", "lockedTraits: []\nmembers:");
    place.write("operators/lead/ASSEMBLY.md", view);
    let ran = place.run(&["check", "operators/lead/ASSEMBLY.md"]).assert_code(1);
    for part in ["assembly_locked_trait_removed", "::: ASSEMBLY.md:16", "locked here"] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    place
        .run(&["resolve", "operators/lead"])
        .assert_code(1)
        .assert_stderr_contains("assembly_locked_trait_removed");
}

#[test]
fn resolve_tells_of_every_field_where_it_comes_from() {
    let place = workspace();
    let view = place.run(&["resolve", "operators/lead", "--format", "json"]).assert_code(0).json();
    assert_eq!((&view["assembly"], &view["mode"]), (&"lead-board".into(), &"voting".into()));
    let chain: Vec<&Value> = view["chain"].as_array().unwrap().iter().map(|link| &link["version"]).collect();
    assert_eq!(chain, ["1.0.0", "1.1.0"]);
    assert!(Path::new(view["chain"][0]["path"].as_str().unwrap()).is_absolute());
    assert_eq!(view["members"][0]["weight"], "2");
    assert_eq!(view["members"][0]["persona"]["title"], "CISO");
    assert_eq!(view["origins"]["members[ciso].weight"], "operators/lead/ASSEMBLY.md:10");
    assert_eq!(view["origins"]["mode"], "ASSEMBLY.md:7");
    let why = place.run(&["resolve", "operators/lead", "--explain", "members[0].weight"]).assert_code(0);
    assert_eq!(
        why.stdout,
        "members[ciso].weight = 2\n  from operators/lead/ASSEMBLY.md:10\n  over 1.5  ASSEMBLY.md:12\n"
    );
    place
        .run(&["resolve", "operators/lead", "--explain", "sinthesis"])
        .assert_code(4)
        .assert_stderr_contains("did you mean `synthesis`?");
    place.run(&["resolve", "nowhere"]).assert_code(4);
}

#[test]
fn what_is_resolved_as_yaml_checks_as_a_root_of_its_own() {
    let place = workspace();
    let yaml = place.run(&["resolve", "operators/lead", "--format", "yaml"]).assert_code(0).stdout;
    place.write("merged/ASSEMBLY.md", &yaml);
    place.run(&["check", "--strict", "merged/ASSEMBLY.md"]).assert_code(0);
    let again = place.run(&["resolve", "merged", "--format", "yaml"]).assert_code(0).stdout;
    let keys = |text: &str| {
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(keys(&again), keys(&yaml));
}

/// A chain of two layers, of which each has traits in a match mode of its own.
fn chained(above: &str, below: &str) -> TestDir {
    let place = workspace();
    let assembly = |more: &str| {
        format!(
            "---\nschema: assembly.workspace/v1\nname: styles\ntitle: Styles\ndescription: Talk about it.\nversion: 1.0.0\n{more}---\n"
        )
    };
    let members = "mode: peer\nmembers:\n  - {id: ciso, role: CISO, persona: ws://personas/ciso}\n";
    place.write("base/ASSEMBLY.md", assembly(&format!("{members}governance: ./gov.yaml\n{above}")));
    place.write("base/gov.yaml", "retention: {floor: \"days:30\"}\n");
    place.write("deep/er/ASSEMBLY.md", assembly(&format!("extends: ../../base/ASSEMBLY.md\n{below}")));
    place
}

#[test]
fn what_is_resolved_as_yaml_loads_where_its_leaf_stands() {
    // M9: text stays text, also where a pattern is added, and a path leads where it led.
    let place =
        chained("lockedTraits: [\"c++ (\"]\n", "matchMode: regex\nlockedTraits: [\"c++ (\", \"x[0-9]+\"]\n");
    let yaml = place.run(&["resolve", "deep/er", "--format", "yaml"]).assert_code(0).stdout;
    assert!(yaml.contains("# `c++ (` is text in base/ASSEMBLY.md, and a pattern here"), "{yaml}");
    assert!(yaml.contains("governance: ../../base/gov.yaml"), "{yaml}");
    place.write("deep/er/ASSEMBLY.md", &yaml);
    place.run(&["check", "--strict", "deep/er/ASSEMBLY.md"]).assert_code(0);
    let touches = |text: &str| place.run(&["locks", "test", "deep/er/ASSEMBLY.md", "--text", text]).stdout;
    for (text, hit) in [("We use c++ (17).", true), ("Take x42.", true), ("We use c.", false)] {
        assert_eq!(touches(text).contains("1 of 2"), hit, "{text}: {}", touches(text));
    }
    place.write("topic.md", "Which one?\n");
    place.run(&["convene", "deep/er", "--topic", "topic.md", "--executor", "rubric"]).assert_code(0);
    // One manifest cannot lock by pattern and by meaning at once: then there is none.
    let place = chained("matchMode: regex\nlockedTraits: [\"x[0-9]+\"]\n", "matchMode: semantic\n");
    place
        .run(&["resolve", "deep/er", "--format", "yaml"])
        .assert_code(1)
        .assert_stderr_contains("quorate:match_mode_loosened");
    place.run(&["resolve", "deep/er", "--format", "json"]).assert_code(0);
}

#[test]
fn a_broken_chain_is_refused_or_warned_about() {
    let place = workspace();
    std::fs::remove_file(place.path("ASSEMBLY.md")).unwrap();
    place.run(&["check", "operators"]).assert_code(1).assert_stderr_contains("1 refusal");
    place.write("quorate.toml", "");
    let ran = place.run(&["check", "operators", "--format", "json"]).assert_code(1).json();
    let codes: Vec<&str> =
        ran["diagnostics"].as_array().unwrap().iter().map(|one| one["code"].as_str().unwrap()).collect();
    // Without its parent the view has no mode.
    assert_eq!(codes, ["assembly_workspace_invalid", "assembly_extends_missing"]);
}

#[test]
fn fmt_orders_keys_keeps_comments_and_means_the_same() {
    let place = workspace();
    let text = "---\n# about\nname: ciso # who\nschema: persona/v1\nversion:   1.0.0\ntitle: CISO\n# why\ndescription: Looks.\n---\nBody  \n";
    place.write("personas/ciso/PERSONA.md", text);
    place.run(&["fmt", "--check", "personas"]).assert_code(1);
    assert_eq!(place.read("personas/ciso/PERSONA.md"), text, "--check writes nothing");
    let ran = place.run(&["fmt", "personas"]).assert_code(0);
    assert_eq!(ran.stdout, "personas/ciso/PERSONA.md\n");
    let after = place.read("personas/ciso/PERSONA.md");
    assert!(
        after
            .contains("name: ciso # who\ntitle: CISO\n# why\ndescription: Looks.\nversion: 1.0.0\n---\nBody"),
        "{after}"
    );
    place.run(&["fmt", "--check", "."]).assert_code(0);
    place.run(&["check", "--strict", "personas"]).assert_code(0);
    assert_eq!(place.run_with_stdin(&["fmt", "-"], text.as_bytes()).assert_code(0).stdout, after);
}

#[test]
fn fmt_refuses_what_it_cannot_read_and_formats_the_rest() {
    let place = workspace();
    let broken: [(&str, &[u8]); 5] = [
        ("assemblies/a/ASSEMBLY.md", b"---\nschema: assembly.workspace/v1\nmode: [voting\n---\n"),
        ("assemblies/b/ASSEMBLY.md", b"---\nschema: assembly.workspace/v1\nname: b\n"),
        ("assemblies/c/ASSEMBLY.md", b"---\nschema: assembly.workspace/v1\nname: c\xff\n---\n"),
        ("assemblies/d/ASSEMBLY.md", b"no frontmatter\n"),
        ("council.yaml", b"deliberators: [\n"),
    ];
    for (path, bytes) in broken {
        place.write(path, "");
        std::fs::write(place.path(path), bytes).unwrap();
    }
    place.write("notes.md", "# Notes\n");
    std::fs::write(place.path("photo.md"), b"\xff\xd8").unwrap();
    place.write("personas/ciso/PERSONA.md", PERSONA.replace("version: 1.0.0", "version:   1.0.0"));
    for arguments in [&["fmt", "--check", "."][..], &["fmt", "."]] {
        let ran = place.run(arguments).assert_code(1);
        assert!(ran.stdout.contains("personas/ciso/PERSONA.md"), "{ran:?}");
        assert_eq!(ran.stderr.matches("refusal[quorate:syntax]").count(), broken.len(), "{}", ran.stderr);
        for (path, _) in broken {
            ran.assert_stderr_contains(path);
        }
    }
    place
        .run(&["fmt", "--check", "personas", "notes.md"])
        .assert_code(1)
        .assert_stderr_contains("doctype_unknown");
    place.run(&["fmt", "--check", "personas"]).assert_code(0);
    place.run_with_stdin(&["fmt", "-"], broken[0].1).assert_code(1).assert_stderr_contains("quorate:syntax");
}

#[test]
fn invisible_characters_are_escaped_in_resolved_manifests() {
    let place = workspace();
    let (hidden, tags, filler) = ("Secu\u{200b}rity", "Asks\u{e0041}\u{e0042}.", "Hard\u{3164}ness");
    let text = ASSEMBLY.replace("role: Security", &format!("role: \"{hidden}\""));
    let text = text.replace("[warmth]", &format!("[\"{tags}\", \"{filler}\"]"));
    place.write("ASSEMBLY.md", text);
    let yaml = place.run(&["resolve", "ASSEMBLY.md", "--format", "yaml"]).assert_code(0).stdout;
    for seen in ["\"Secu\\u200Brity\"", "\\U000E0041\\U000E0042", "Hard\\u3164ness"] {
        assert!(yaml.contains(seen), "`{seen}` is not in\n{yaml}");
    }
    // It reads back as what it was.
    place.write("merged/ASSEMBLY.md", &yaml);
    let effective = |path: &str| {
        let json = place.run(&["resolve", path, "--format", "json"]).assert_code(0).json();
        (json["effective"]["lockedTraits"].clone(), json["members"][0]["role"].clone())
    };
    assert_eq!(effective("merged"), effective("ASSEMBLY.md"));
    assert_eq!(effective("merged").1, hidden);
}

#[test]
fn init_writes_what_checks_clean_and_is_formatted() {
    let place = TestDir::new();
    for name in ["con", "nul", "com1"] {
        place
            .run(&["init", "persona", "--name", name])
            .assert_code(64)
            .assert_stderr_contains("the name of a device on Windows");
    }
    for mode in ["advisory", "voting", "peer", "hierarchy"] {
        place.run(&["init", "assembly", "--mode", mode, "--name", &format!("my-{mode}")]).assert_code(0);
        place.run(&["resolve", &format!("assemblies/my-{mode}")]).assert_code(0);
    }
    for what in ["persona", "playbook", "runtime"] {
        place.run(&["init", what, "--name", "mine"]).assert_code(0);
        place
            .run(&["init", what, "--name", "mine"])
            .assert_code(5)
            .assert_stderr_contains("quorate:file_exists");
        // Without a name it is `example`.
        place.run(&["init", what]).assert_code(0).assert_stdout_contains("example");
    }
    place.run(&["check", "--strict", "."]).assert_code(0);
    place.run(&["fmt", "--check", "."]).assert_code(0);
    place.run(&["init", "persona", "--name", "Not Kebab"]).assert_code(64);
    place.run(&["init", "assembly", "--name", "x-y"]).assert_code(0);
    assert!(place.read("assemblies/x-y/ASSEMBLY.md").contains("mode: voting"));
}

#[test]
fn schemas_are_printed_for_editors() {
    let place = TestDir::new();
    let listed = place.run(&["schema"]).assert_code(0).stdout;
    assert_eq!(listed.lines().count(), 19, "{listed}");
    for line in listed.lines() {
        let word = line.split_whitespace().next().unwrap();
        if word == "answer" {
            assert!(place.run(&["schema", word]).assert_code(0).stdout.starts_with("deliberator "));
            continue;
        }
        let schema = place.run(&["schema", word]).assert_code(0).json();
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema", "{word}");
        assert!(
            schema["properties"].as_object().is_some_and(|all| all.values().all(|one| one != &Value::Null))
        );
    }
    place.run(&["schema", "asembly"]).assert_code(4).assert_stderr_contains("did you mean `assembly`?");
}

/// Bad input of any kind: a place, an exit code of 1, and no panic (M1).
#[test]
fn bad_input_is_refused_with_a_place() {
    let head = "---\nschema: assembly.workspace/v1\nname: board\ntitle: T\ndescription: D\nversion: 1.0.0\nmode: voting\n";
    let bomb: String =
        (1..9).map(|n| format!("a{n}: &a{n} [{}]\n", format!("*a{},", n - 1).repeat(9))).collect();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("not-utf8", [head.as_bytes(), b"x: \xff\n---\n"].concat()),
        ("nul", format!("{head}x: a\0b\n---\n").into_bytes()),
        ("no-frontmatter", b"# Title\n".to_vec()),
        ("empty", Vec::new()),
        ("unclosed", head.as_bytes().to_vec()),
        ("twice", format!("{head}name: other\n---\n").into_bytes()),
        ("tag", format!("{head}metadata: !!set {{a}}\n---\n").into_bytes()),
        ("anchor", format!("{head}metadata: {{a: &x 1, b: *x}}\n---\n").into_bytes()),
        ("bomb", format!("{head}a0: &a0 [x]\n{bomb}---\n").into_bytes()),
        ("brackets", format!("{head}metadata: {}\n---\n", "[".repeat(100_000)).into_bytes()),
        ("large", format!("{head}metadata: {{a: {}}}\n---\n", "x".repeat(10_000_000)).into_bytes()),
        (
            "number",
            format!(
                "{head}members: [{{id: aa, persona: ws://personas/x, role: r, timeout_ms: {}}}]\n---\n",
                "9".repeat(40)
            )
            .into_bytes(),
        ),
        ("kinds", format!("{head}members: hello\naudit: [1]\n---\n").into_bytes()),
        ("scalar", b"---\nhello\n---\n".to_vec()),
    ];
    for (name, bytes) in cases {
        let place = TestDir::with("ASSEMBLY.md", bytes);
        let ran = place.run(&["check", "--no-refs", "ASSEMBLY.md", "--format", "json"]).assert_code(1);
        let report = ran.json();
        let said = report["diagnostics"].as_array().unwrap();
        assert!(!said.is_empty() && said.iter().all(|one| one["line"].is_u64()), "{name}: {report}");
        assert!(!ran.stderr.contains("panicked"), "{name}: {}", ran.stderr);
    }
    // A byte order mark and CRLF are accepted.
    for text in [format!("\u{feff}{head}---\n"), format!("{head}---\nbody").replace('\n', "\r\n")] {
        TestDir::with("ASSEMBLY.md", text)
            .run(&["check", "--strict", "--no-refs", "ASSEMBLY.md"])
            .assert_code(0);
    }
}
