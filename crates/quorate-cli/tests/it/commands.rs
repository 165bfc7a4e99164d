//! `init`, `doctor`, `explain`, `completions`, `man` and `check --modularity` through the real binary.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::support;
use serde_json::Value;
use support::TestDir;
use support::council::all_ship;

#[test]
fn init_writes_into_a_new_directory_beside_this_one() {
    let place = TestDir::new();
    std::fs::create_dir(place.path("here")).expect("a directory");
    place.run_in("here", &["init", "council", "../there"]).assert_code(0);
    assert!(place.path("there/council.yaml").is_file());
    place.run_in("here", &["init", "persona", "--name", "ciso", "../third"]).assert_code(0);
    assert!(place.path("third/personas/ciso/PERSONA.md").is_file());
}

#[test]
fn a_verdict_that_no_run_can_have_is_a_slip() {
    let place = TestDir::with("draft.md", "The meeting moved to Tuesday at ten.\n");
    place.review(&["draft.md"]);
    place.run(&["runs", "--verdict", "revize"]).assert_code(64).assert_stderr_contains("revise");
    for word in ["Hold", "open", "pass", "refused", "INCOMPLETE"] {
        place.run(&["runs", "--verdict", word]).assert_code(0);
    }
}

#[test]
fn a_run_whose_calls_are_spent_says_how_it_goes_on() {
    let place = TestDir::with("draft.md", support::REVISED);
    place.write("quorate.toml", "[budget]\ncalls = 5\n");
    let said = place.run(&["review", "draft.md"]).assert_code(3);
    let run = place.only_run();
    let hint = format!("quorate resume {run} --max-calls 10");
    assert!(said.stdout.split_whitespace().collect::<Vec<_>>().join(" ").contains(&hint), "{}", said.stdout);
    let again = place.run(&["resume", &run, "--max-calls", "10"]);
    assert!(again.code < 3, "{}{}", again.stdout, again.stderr);
}

#[test]
fn init_writes_a_council_that_reviews_and_overwrites_nothing() {
    let place = TestDir::new();
    let ran = place.run(&["init", "council", "editorial"]).assert_code(0);
    let written: Vec<&str> = ran.stdout.lines().collect();
    assert!(written.contains(&"editorial/council.yaml"), "{written:?}");
    assert!(written.iter().all(|file| place.path(file).is_file()) && written.len() == 8, "{written:?}");
    ran.assert_stderr_contains("quorate review editorial/drafts/");
    let draft = *written.iter().find(|file| file.contains("drafts/")).unwrap();
    let reviewed = place.run(&["review", draft, "--format", "json"]);
    assert!((0..=2).contains(&reviewed.code) && reviewed.stderr.is_empty(), "{}", reviewed.stderr);
    assert_eq!(reviewed.json()["tier"], 1, "the example draft is one that is swept");
    let swept = place.run_in("editorial", &["sweep", "--dry-run", "--format", "json"]).assert_code(0).json();
    assert_eq!(swept["files"].as_array().map(Vec::len), Some(1));

    place.write("editorial/council.yaml", "# ours\n");
    let before: Vec<String> = written.iter().map(|file| place.read(file)).collect();
    place.run(&["init", "council", "editorial"]).assert_code(5).assert_stderr_contains("quorate:file_exists");
    assert_eq!(written.iter().map(|file| place.read(file)).collect::<Vec<_>>(), before);
    std::fs::remove_file(place.path("editorial/council.yaml")).unwrap();
    place.run(&["init", "council", "editorial"]).assert_code(5);
    assert!(!place.path("editorial/council.yaml").exists(), "all or nothing");
}

#[test]
fn doctor_calls_every_executor_once() {
    let place = TestDir::scripted(&all_ship());
    let toml = place.read("quorate.toml");
    let fine = place.run(&["doctor", "--format", "json"]).assert_code(0).json();
    let state = |report: &Value, name: &str| {
        let checks = report["checks"].as_array().unwrap();
        checks
            .iter()
            .find(|check| check["name"] == name)
            .map(|check| check["state"].as_str().unwrap().to_owned())
    };
    for name in ["executor scripted", "ledger", "log"] {
        assert_eq!(state(&fine, name).as_deref(), Some("good"), "{name}: {fine}");
    }
    place.write("script.sh", "touch called-$$\necho '{\"would_block\": false}'\n");
    place.write("quorate.toml", format!("{toml}[executors.shell]\nkind = \"agent-cli\"\ncommand = \"sh\"\nargs = [\"script.sh\"]\n[executors.gone]\nkind = \"agent-cli\"\ncommand = \"./nowhere\"\n"));
    let sick = place.run(&["doctor", "--format", "json"]).assert_code(5).json();
    assert_eq!(state(&sick, "executor shell").as_deref(), Some("good"), "{sick}");
    assert_eq!(state(&sick, "executor gone").as_deref(), Some("bad"), "{sick}");
    let called = std::fs::read_dir(place.root())
        .unwrap()
        .flatten()
        .filter(|one| one.file_name().to_string_lossy().starts_with("called-"));
    assert_eq!(called.count(), 1, "really, and once");
    assert!(place.run(&["doctor"]).assert_code(5).stdout.contains("gone"));
    assert!(place.log().is_empty() && place.runs().is_empty());
}

#[test]
fn every_code_has_a_page() {
    let place = TestDir::new();
    let all = place.run(&["explain"]).assert_code(0).stdout;
    let diagnostics = all.lines().filter(|line| line.split_whitespace().nth(1) != Some("outcome"));
    let codes: Vec<&str> = diagnostics.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(codes.len() > 30, "{all}");
    for code in &codes {
        let page = place.run(&["explain", code]).assert_code(0).stdout;
        assert!(page.starts_with(&format!("# {code}")) && page.lines().count() > 5, "{code}: {page}");
    }
    assert_eq!(
        place.run(&["explain", "prompt_missing"]).assert_code(0).stdout,
        place.run(&["explain", "quorate:prompt_missing"]).stdout
    );
    place
        .run(&["explain", "quorate:promt_missing"])
        .assert_code(4)
        .assert_stderr_contains("quorate:prompt_missing");
}

#[test]
fn completions_and_man_pages_are_whole() {
    let place = TestDir::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = place.run(&["completions", shell]).assert_code(0).stdout;
        assert!(text.contains("review") && text.contains("max-calls"), "{shell}");
    }
    place.run(&["completions", "tcsh"]).assert_code(64);
    assert!(place.run(&["man"]).assert_code(0).stdout.starts_with(".ie"));
    place.run(&["man", "--out", "man"]).assert_code(0);
    for page in ["quorate.1", "quorate-review.1", "quorate-ledger-verify.1"] {
        assert!(place.read(&format!("man/{page}")).contains("quorate"), "{page}");
    }
    place.run(&["man", "--out", "man"]).assert_code(5);
}

#[test]
fn the_version_has_details_where_they_are_asked_for() {
    let place = TestDir::new();
    let short = format!("quorate {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(place.run(&["--version"]).assert_code(0).stdout, short);
    let long = place.run(&["--version", "--verbose"]).assert_code(0).stdout;
    let lines: Vec<&str> = long.strip_prefix(&short).expect(&long).lines().collect();
    let detail = |name: &str| {
        let line = lines.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.unwrap_or_else(|| panic!("{name} in {long}"))
    };
    assert_eq!(lines.len(), 4, "{long}");
    assert!(detail("target").split('-').count() >= 3, "{long}");
    let commit = detail("commit").trim_end_matches("-modified");
    assert!(commit == "unknown" || commit.len() >= 7, "{long}");
    let features: Vec<&str> = detail("features").split(", ").collect();
    for (name, has) in [("mcp", cfg!(feature = "mcp")), ("postgres", cfg!(feature = "postgres"))] {
        assert_eq!(features.contains(&name), has, "{long}");
    }
    assert_eq!(place.run(&["-vV"]).assert_code(0).stdout, long);
}

#[test]
fn a_reference_to_the_review_is_found_where_agents_are_told_what_to_do() {
    // C7
    let place = TestDir::new();
    place.write("host/agents/writer/prompt.md", "# Writer\n\nWrite short sentences.\n");
    place.write("host/operators/editor/OPERATOR.md", "---\nid: editor\n---\nEdit.\n");
    place.write("host/README.md", "We use quorate review.\n");
    let clean = place.run(&["check", "--modularity", "host", "--format", "json"]).assert_code(0);
    assert_eq!(clean.json()["diagnostics"].as_array().map(Vec::len), Some(0));
    clean.assert_stderr_contains("2 files scanned");
    for (file, text) in [
        ("host/agents/writer/prompt.md", "# Writer\n\nThe Agent-Council will read it.\n"),
        ("host/operators/editor/OPERATOR.md", "---\nid: editor\n---\nRun `council_review` first.\n"),
        ("host/personas/ada/PERSONA.md", "from agent_council import review\n"),
        ("host/playbooks/tone/short.md", "Write for the COUNCIL-REVIEW.\n"),
    ] {
        let before = std::fs::read(place.path(file)).ok();
        place.write(file, text);
        let found = place.run(&["check", "--modularity", "host", "--format", "json"]).assert_code(1).json();
        let one = &found["diagnostics"][0];
        assert_eq!((&one["code"], &one["file"]), (&Value::from("quorate:modularity"), &Value::from(file)));
        assert_eq!(one["line"].as_u64(), Some(text.lines().count() as u64));
        match before {
            Some(before) => place.write(file, before),
            None => std::fs::remove_file(place.path(file)).unwrap(),
        }
    }
    place.run(&["check", "--modularity", "nowhere"]).assert_code(4);
}

#[test]
fn another_council_is_no_reference_to_the_council() {
    // C7: the words that the public tool looks for
    let place = TestDir::new();
    let fine = "You write for the town council of Lyon, the councils of the region, and councilman Roux.\n\
        The agents council agreed; quorate meetings are reviewed by an adjudicator.\n";
    place.write("host/agents/writer/prompt.md", fine);
    place.run(&["check", "--modularity", "host"]).assert_code(0);
    for mention in
        ["agent_council", "Agent-Council", "council_review", "COUNCIL-REVIEW", "import agent_council"]
    {
        place.write("host/agents/writer/prompt.md", format!("{fine}{mention}\n"));
        place.run(&["check", "--modularity", "host"]).assert_code(1).assert_stderr_contains("1 reference");
    }
}

#[test]
fn a_scan_without_a_file_fails() {
    // C7: it would prove nothing
    let place = TestDir::new();
    place.write("host/README.md", "We use agent_council.\n");
    place.write("host/agents/README.md", "Our agents.\n");
    for format in ["human", "json", "sarif", "github", "concise"] {
        let ran = place.run(&["check", "--modularity", "host", "--format", format]).assert_code(4);
        assert!(format!("{}{}", ran.stdout, ran.stderr).contains("instructs an agent"), "{format}: {ran:?}");
    }
    // Directories further down and single files are scanned as well.
    place.write("host/agents/writer/prompt.md", "Ask agent_council.\n");
    for dir in
        ["host", "host/agents", "host/agents/writer", "host/agents/writer/prompt.md", "./host/../host/agents"]
    {
        place.run(&["check", "--modularity", dir]).assert_code(1).assert_stderr_contains("1 file scanned");
    }
    place.write("host/playbooks/tone/short.md", "Be brief.\n");
    place.run(&["check", "--modularity", "host/playbooks/tone"]).assert_code(0);
}

#[test]
fn the_router_is_exempt_by_its_name() {
    // C7
    let place = TestDir::new();
    place.write("host/agents/emissary/prompt.md", "Send each draft to agent_council.\n");
    place.write("host/operators/emissary/OPERATOR.md", "---\nid: emissary\n---\nUse council_review.\n");
    place.write("host/agents/writer/prompt.md", "Write.\n");
    place.run(&["check", "--modularity", "host"]).assert_code(1).assert_stderr_contains("2 references");
    let exempt = |names: &[&str]| {
        let names = names.iter().flat_map(|name| ["--exempt", *name]);
        place.run(&["check", "--modularity", "host"].into_iter().chain(names).collect::<Vec<_>>())
    };
    exempt(&["emissary"]).assert_code(0).assert_stderr_contains("1 file scanned, 2 exempt, 0 references");
    exempt(&["emissary", "writer"]).assert_code(4);
    exempt(&["emissary", "emisary"]).assert_code(4).assert_stderr_contains("`emisary`");
    place.write("host/agents/writer/prompt.md", "Please agent_council.\n");
    exempt(&["emissary"]).assert_code(1);
    place.run(&["check", ".", "--exempt", "emissary"]).assert_code(64);
}

#[test]
fn nothing_of_quorate_names_an_agent_of_a_host() {
    // C7, the other way round: prompts that ship and councils that are set up know no agent that they review.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut agents: BTreeSet<String> = [
        "emissary",
        "synthesizer",
        "patent analyst",
        "industry analyst",
        "investment analyst",
        "agent prime",
    ]
    .map(str::to_owned)
    .into();
    let (mut texts, mut operators) = (Vec::new(), 0);
    let is_council = |path: &str| {
        path.ends_with("council.yaml") || path.contains("/council/") || path.contains("/prompts/")
    };
    for folder in ["crates/quorate-manifest/src", "crates/quorate/src/init", "examples"] {
        for path in walk(&root.join(folder)) {
            let name = path.to_string_lossy().replace('\\', "/");
            if name.ends_with("/OPERATOR.md") {
                operators += 1;
                let folder = path.parent().and_then(Path::file_name).expect("a folder");
                agents.insert(folder.to_string_lossy().replace('-', " "));
            } else if is_council(&name) && [".md", ".yaml", ".txt"].iter().any(|end| name.ends_with(end)) {
                texts.push((name, std::fs::read_to_string(&path).expect("a text")));
            }
        }
    }
    let place = TestDir::new();
    place.run(&["init", "council", "new"]).assert_code(0);
    for path in walk(&place.path("new")).into_iter().filter(|path| !path.to_string_lossy().contains("drafts"))
    {
        if let Ok(text) = std::fs::read_to_string(&path) {
            texts.push((path.to_string_lossy().into_owned(), text));
        }
    }
    assert!(texts.len() > 10 && operators > 2, "{} texts, {operators} operators", texts.len());
    for (name, text) in texts {
        let words = text.to_lowercase().replace(|c: char| !c.is_alphanumeric(), " ");
        let words = format!(" {} ", words.split_whitespace().collect::<Vec<_>>().join(" "));
        let named: Vec<&String> =
            agents.iter().filter(|agent| words.contains(&format!(" {agent} "))).collect();
        assert!(named.is_empty(), "{name} names {named:?}");
    }
}

/// All files below a directory.
fn walk(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn nothing_that_ships_here_as_an_agents_text_knows_of_the_council() {
    // C7: the examples, as the texts of agents that produce them
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let place = TestDir::new();
    let mut count = 0;
    for example in std::fs::read_dir(&examples)
        .unwrap()
        .flatten()
        .filter(|one| one.path().extension().is_some_and(|end| end == "md"))
    {
        count += 1;
        place.write(&format!("host/agents/{count}/prompt.md"), std::fs::read(example.path()).unwrap());
    }
    assert!(count >= 3);
    place.run(&["check", "--modularity", "host"]).assert_code(0);
    place.run(&["check", "--modularity", examples.to_str().unwrap()]).assert_code(0);
    // What `init` writes for drafts knows nothing either.
    place.run(&["init", "council", "new"]).assert_code(0);
    place.write("written/agents/writer/prompt.md", place.read("new/drafts/example_blog_post.md"));
    place.run(&["check", "--modularity", "written"]).assert_code(0);
}
