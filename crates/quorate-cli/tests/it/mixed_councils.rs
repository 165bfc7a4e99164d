//! Councils whose members are asked through different executors: who names them, what is refused, and what a resume, trust
//! and doctor make of it (C11).

use serde_json::{Value, json};

use crate::support;
use support::assembly;
use support::council::{COUNCIL, ROSTER, all_ship, all_ship_except};
use support::{TestDir, records};

/// Long enough for the rubric.
const DRAFT: &str = "The meeting moved to Tuesday at ten. The agenda stays the same, and the notes of the last meeting are in the \
    shared folder.\n";

/// Tables `one` to `four`, each a script of its own.
fn place() -> TestDir {
    let place = TestDir::with("draft.md", DRAFT);
    place.answers(&all_ship());
    place.write("council.yaml", COUNCIL);
    configure(&place, "");
    place
}

fn configure(place: &TestDir, more: &str) {
    let tables = ["one", "two", "three", "four"]
        .map(|name| format!("[executors.{name}]\nkind = \"script\"\npath = \"answers.json\"\n"))
        .concat();
    place.write("quorate.toml", format!("{tables}{more}"));
}

/// The executors of a run's consultations, each once, as `member=executor`.
fn asked(place: &TestDir, run: &str) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = records::records(&place.path(".quorate/ledger.db"), run);
    let data =
        all.iter().filter(|record| record.kind == "consultation").filter_map(|record| record.data.clone());
    let mut named: Vec<String> =
        data.map(|data| format!("{}={}", text(&data["member"]), text(&data["executor"]))).collect();
    named.sort();
    named.dedup();
    named
}

fn recorded(place: &TestDir) -> usize {
    records::runs(&place.path(".quorate/ledger.db")).len()
}

fn reviewed(place: &TestDir, more: &[&str]) -> Vec<String> {
    let report = place.review(&[&["draft.md"], more].concat());
    assert_eq!(report["verdict"], "SHIP", "{report}");
    asked(place, report["run"].as_str().unwrap())
}

/// The council with more keys for these members.
fn council_with(members: &[(&str, &str)]) -> String {
    let add = |council: String, (member, more): &(&str, &str)| {
        council.replace(&format!("builtin:{member}}}"), &format!("builtin:{member}, {more}}}"))
    };
    members.iter().fold(COUNCIL.to_owned(), add)
}

/// The council with `runtime` blocks for the skeptic and the adjudicator, and one for all.
fn with_runtimes() -> String {
    let own = "runtime: {type: script, path: answers.json}";
    format!("{}runtime: {{type: rubric}}\n", council_with(&[("skeptic", own), ("adjudicator", own)]))
}

#[test]
fn each_member_has_the_executor_that_is_nearest_to_it() {
    // C11
    let place = place();
    configure(&place, "[defaults]\nexecutor = \"one\"\n[council.members.evidence]\nexecutor = \"two\"\n");
    assert_eq!(
        reviewed(&place, &[]),
        ["adjudicator=one", "evidence=two", "skeptic=one", "strategy=one", "voice_identity=one"]
    );
    place.write("council.yaml", with_runtimes());
    let report = place.review(&["draft.md"]);
    assert_eq!(
        asked(&place, report["run"].as_str().unwrap()),
        ["adjudicator=script", "evidence=two", "skeptic=script", "strategy=rubric", "voice_identity=rubric"]
    );
    configure(
        &place,
        "[defaults]\nexecutor = \"one\"\n[council.members.skeptic]\nexecutor = \"two\"\n[council.members.adjudicator]\nexecutor = \"three\"\n",
    );
    let report = place.review(&["draft.md"]);
    assert_eq!(
        asked(&place, report["run"].as_str().unwrap()),
        ["adjudicator=three", "evidence=rubric", "skeptic=two", "strategy=rubric", "voice_identity=rubric"]
    );
    // A person's choice is for all.
    assert_eq!(
        reviewed(&place, &["--executor", "four"]),
        ["adjudicator=four", "evidence=four", "skeptic=four", "strategy=four", "voice_identity=four"]
    );
}

#[test]
fn an_executor_in_the_council_comes_after_the_members_table_and_before_every_runtime() {
    // C11
    let place = place();
    let named =
        [("skeptic", "executor: one"), ("evidence", "executor: two"), ("adjudicator", "executor: three")];
    place.write("council.yaml", format!("{}runtime: {{type: rubric}}\n", council_with(&named)));
    configure(&place, "[defaults]\nexecutor = \"four\"\n[council.members.evidence]\nexecutor = \"four\"\n");
    let mixed =
        ["adjudicator=three", "evidence=four", "skeptic=one", "strategy=rubric", "voice_identity=rubric"];
    place.run(&["check", "council.yaml"]).assert_code(0);
    let run = place.review(&["draft.md"])["run"].as_str().unwrap().to_owned();
    assert_eq!(asked(&place, &run), mixed);
    place.run(&["replay", &run]).assert_code(0);
    let estimate = place.run(&["review", "draft.md", "--dry-run", "--format", "json"]).assert_code(0).json();
    let calls = estimate["total"]["executors"].as_array().unwrap().iter();
    let calls: Vec<_> = calls.map(|one| (one["executor"].as_str().unwrap(), one["calls"].clone())).collect();
    assert_eq!(calls, [("one", json!(2)), ("rubric", json!(4)), ("four", json!(2)), ("three", json!(1))]);
    let doctor = place.run(&["doctor"]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(doctor.contains("skeptic through `one`"), "{doctor}");
    assert_eq!(
        reviewed(&place, &["--executor", "four"]),
        ROSTER_AND_ADJUDICATOR.map(|member| format!("{member}=four"))
    );
    // A resumed run asks the executors that it was opened with.
    let stopped = place.review(&["draft.md", "--max-calls", "5"])["run"].as_str().unwrap().to_owned();
    let council = place.read("council.yaml");
    place.write("council.yaml", council.replace("executor: one", "executor: two"));
    let refused = place.run(&["resume", &stopped, "--max-calls", "99"]).assert_code(5);
    refused.assert_stderr_contains("fingerprint_changed");
    place.write("council.yaml", council);
    place.run(&["resume", &stopped, "--max-calls", "99"]);
    assert_eq!(asked(&place, &stopped), mixed);
}

#[test]
fn a_model_in_the_council_counts_unless_a_name_that_comes_before_it_does() {
    let place = place();
    let service = |name: &str, model: &str| {
        format!(
            "[executors.{name}]\nkind = \"llm\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"{model}\"\nretries = 0\n"
        )
    };
    let services = service("local", "m") + &service("other", "k");
    let table = |keys: &str| format!("[council.members.evidence]\n{keys}\n");
    let other = table("executor = \"other\"");
    for (council, table, more, models) in [
        ("model: n", String::new(), &[][..], &["m", "n"][..]),
        ("executor: local, model: n", String::new(), &[], &["m", "n"]),
        ("executor: other, model: n", String::new(), &[], &["m", "n"]),
        ("model: n", table("model = \"o\""), &[], &["m", "o"]),
        ("executor: other", table("model = \"o\""), &[], &["m", "o"]),
        ("model: n", other.clone(), &[], &["m", "k"]),
        ("executor: local, model: n", other, &[], &["m", "k"]),
        ("executor: other, model: n", String::new(), &["--executor", "local"], &["m"]),
        ("model: n", String::new(), &["--model", "large"], &["large"]),
    ] {
        place.write("council.yaml", council_with(&[("evidence", council)]));
        configure(&place, &format!("{services}[defaults]\nexecutor = \"local\"\n{table}"));
        let report = place.review(&[&["draft.md", "--timeout", "5s"], more].concat());
        let all = records::records(&place.path(".quorate/ledger.db"), report["run"].as_str().unwrap());
        let opened = all[0].data.clone().expect("its data");
        let asked = opened["executors"].as_array().unwrap().iter().map(|one| one["model"].clone());
        assert_eq!(asked.collect::<Vec<_>>(), models, "{council} {table} {more:?}");
    }
}

#[test]
fn a_name_that_is_not_there_is_refused_with_its_place_before_anything_is_recorded() {
    let place = place();
    for (table, code, at, said) in [
        (
            "[council.members.skeptik]\nexecutor = \"one\"\n",
            "host_invalid",
            "quorate.toml:13",
            "did you mean `skeptic`",
        ),
        ("[council.members.evidence]\nexecutor = \"nine\"\n", "kind_unknown", "quorate.toml:14", "`nine`"),
        ("[council.members.evidence]\nexecuter = \"one\"\n", "host_invalid", "quorate.toml:14", "`executor`"),
        ("[council]\nmembres = {}\n", "host_invalid", "quorate.toml:14", "`members`"),
        (
            "[council.members.evidence]\nexecutor = \"one\"\nmodel = \"large\"\n",
            "host_invalid",
            "quorate.toml:15",
            "`one` asks no model",
        ),
    ] {
        configure(&place, table);
        let refused = place.run(&["review", "draft.md"]).assert_code(5);
        refused.assert_stderr_contains(code).assert_stderr_contains(at).assert_stderr_contains(said);
        assert_eq!(recorded(&place), 0, "{table}");
    }
    // `check` also refuses an error that only the council shows.
    configure(&place, "[council.members.skeptik]\nexecutor = \"one\"\n");
    place.run(&["check", "quorate.toml"]).assert_code(1).assert_stdout_contains("no member `skeptik`");
    place.run(&["review", "draft.md", "--executor", "one"]).assert_code(5);
    configure(&place, "[defaults]\nexecutor = \"one\"\n");
    for (own, code) in [
        ("runtime: {type: nothing}", "kind_unknown"),
        ("runtime: {path: answers.json}", "council_invalid"),
        ("runtime: {type: script, pth: answers.json}", "executor_invalid"),
        ("runtime: {type: rubric}, executor: one", "council_invalid"),
        ("executor: nine", "kind_unknown"),
        ("executor: one, model: large", "council_invalid"),
        ("model: large", "council_invalid"),
    ] {
        place.write("council.yaml", council_with(&[("evidence", own)]));
        let refused = place.run(&["review", "draft.md"]).assert_code(5);
        refused.assert_stderr_contains(code).assert_stderr_contains("council.yaml:4");
        place.run(&["check", "council.yaml"]).assert_code(1).assert_stdout_contains(code);
    }
    assert_eq!(recorded(&place), 0);
}

#[test]
fn a_model_for_all_needs_one_executor_for_all() {
    let place = place();
    configure(
        &place,
        "[executors.local]\nkind = \"llm\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"\n\
         [defaults]\nexecutor = \"local\"\n[council.members.evidence]\nexecutor = \"ollama:n\"\n",
    );
    let refused = place.run(&["review", "draft.md", "--model", "large"]).assert_code(64);
    refused.assert_stderr_contains("different executors, `local`, `ollama:n`");
    refused.assert_stderr_contains("--executor NAME");
    assert_eq!(recorded(&place), 0);
    // Members that differ in their models alone get the one that is named.
    configure(
        &place,
        "[executors.local]\nkind = \"llm\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"\nretries = 0\n\
         [defaults]\nexecutor = \"local\"\n[council.members.evidence]\nmodel = \"n\"\n",
    );
    let models = |more: &[&str]| {
        let report = place.review(&[&["draft.md", "--timeout", "5s"], more].concat());
        let all = records::records(&place.path(".quorate/ledger.db"), report["run"].as_str().unwrap());
        let opened = all[0].data.clone().expect("its data");
        let models = opened["executors"].as_array().unwrap().iter().map(|one| one["model"].clone());
        models.collect::<Vec<_>>()
    };
    assert_eq!(models(&[]), [json!("m"), json!("n")]);
    assert_eq!(models(&["--model", "large"]), [json!("large")]);
}

#[test]
fn a_model_for_an_assembly_needs_one_executor_for_all() {
    let place = TestDir::with("draft.md", DRAFT);
    assembly::write(&place, "voting", &[("ana", ""), ("bob", "")], "");
    place.write(
        "quorate.toml",
        "[executors.local]\nkind = \"llm\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"\n\
         [assemblies.board]\nexecutor = \"local\"\n[assemblies.board.members.bob]\nexecutor = \"ollama:n\"\n",
    );
    place
        .run(&["convene", "ASSEMBLY.md", "--proposal", "draft.md", "--model", "large"])
        .assert_code(64)
        .assert_stderr_contains("different executors, `local`, `ollama:n`");
    assert_eq!(recorded(&place), 0);
}

#[test]
fn a_resumed_run_asks_the_same_executors() {
    let place = place();
    let mixed = "[defaults]\nexecutor = \"one\"\n[council.members.evidence]\nexecutor = \"two\"\n";
    configure(&place, mixed);
    let stop = |place: &TestDir, more: &[&str]| {
        let report = place.review(&[&["draft.md", "--max-calls", "5"], more].concat());
        assert_eq!(report["verdict"], "INCOMPLETE");
        report["run"].as_str().unwrap().to_owned()
    };
    let run = stop(&place, &[]);
    place.run(&["resume", &run, "--max-calls", "99"]).assert_code(0);
    assert_eq!(
        asked(&place, &run),
        ["adjudicator=one", "evidence=two", "skeptic=one", "strategy=one", "voice_identity=one"]
    );
    let run = stop(&place, &[]);
    configure(&place, &mixed.replace("\"two\"", "\"three\""));
    let refused = place.run(&["resume", &run, "--max-calls", "99"]).assert_code(5);
    refused.assert_stderr_contains("fingerprint_changed").assert_stderr_contains("executors");
    configure(&place, mixed);
    place.run(&["resume", &run, "--max-calls", "99", "--executor", "one"]).assert_code(5);
    // What a person chose for the run holds for its rest.
    let run = stop(&place, &["--executor", "four"]);
    place.run(&["resume", &run, "--max-calls", "99"]).assert_code(0);
    assert_eq!(asked(&place, &run), ROSTER_AND_ADJUDICATOR.map(|member| format!("{member}=four")));
}

const ROSTER_AND_ADJUDICATOR: [&str; 5] = ["adjudicator", ROSTER[2], ROSTER[0], ROSTER[3], ROSTER[1]];

#[test]
fn trust_covers_every_executor_that_a_member_names() {
    let place = TestDir::with("draft.md", DRAFT);
    let own = "builtin:evidence, runtime: {type: agent-cli, command: ./a.sh}}";
    place.write("council.yaml", COUNCIL.replace("builtin:evidence}", own));
    place.write("quorate.toml", "[council.members.skeptic]\nexecutor = \"anthropic:large\"\n");
    place.write("a.sh", "#!/bin/sh\ntouch trace\n");
    let run = |arguments: &[&str]| {
        let mut command = place.command(arguments);
        command.env_remove("QUORATE_TRUST").env("ANTHROPIC_API_KEY", "sk-ant-canary");
        support::finish(command.spawn().unwrap())
    };
    let shown = run(&["trust", "--show"]).stdout;
    assert!(shown.contains("./a.sh") && shown.contains("anthropic"), "{shown}");
    let refused = run(&["review", "draft.md"]).assert_code(5);
    refused.assert_stderr_contains("workspace_untrusted");
    assert!(!place.path("trace").exists());
}

#[test]
fn an_executor_or_a_model_in_the_council_needs_trust_as_in_an_assembly() {
    // X14
    let gate = "[executors.gate]\nkind = \"llm\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"\nretries = 0\n\
                [defaults]\nexecutor = \"gate\"\n";
    // An address and a model are the council's choice; a name of quorate.toml is trusted with that file.
    for (own, act) in [
        ("executor: gate", None),
        ("executor: 'http://127.0.0.1:9/v1#x'", Some("send texts to http://127.0.0.1:9/v1")),
        ("model: x", Some("with the model `x`")),
        ("executor: gate, model: x", Some("with the model `x`")),
    ] {
        let place = TestDir::with("draft.md", DRAFT);
        place.write("quorate.toml", gate);
        place.write("council.yaml", council_with(&[("evidence", own)]));
        let run = |arguments: &[&str]| {
            support::finish(place.command(arguments).env_remove("QUORATE_TRUST").spawn().unwrap())
        };
        let review = ["review", "draft.md", "--timeout", "5s"];
        run(&review).assert_code(5).assert_stderr_contains("quorate.toml is not trusted");
        run(&["trust", "quorate.toml"]).assert_code(0);
        let code = if act.is_some() { 5 } else { 3 };
        let ran = run(&review).assert_code(code);
        assert_eq!(ran.stderr.contains("council.yaml is not trusted"), act.is_some(), "{own} {}", ran.stderr);
        assert!(!ran.stderr.contains("quorate.toml is not trusted"), "{own} {}", ran.stderr);
        assert!(act.is_none_or(|act| ran.stderr.contains(act)), "{own} {}", ran.stderr);
        // An executor that a person names needs no trust in the council.
        run(&["review", "draft.md", "--executor", "rubric"]).assert_code(0);
        run(&["trust"]).assert_code(0);
        run(&review).assert_code(3);
    }
}

#[test]
fn doctor_says_through_what_each_member_is_asked() {
    let place = place();
    configure(&place, "[defaults]\nexecutor = \"one\"\n");
    place.run(&["doctor"]).assert_stdout_contains("all are asked through `one`");
    configure(
        &place,
        "[defaults]\nexecutor = \"one\"\n[council.members.evidence]\nexecutor = \"ollama:n\"\n",
    );
    let said = place.run(&["doctor"]).stdout;
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let line =
        "skeptic, voice_identity, strategy, adjudicator through `one`; evidence through `ollama:n` (n)";
    assert!(said.contains(line), "{said}");
}

#[test]
fn a_member_without_a_model_is_said_beside_those_with_one() {
    let place = place();
    place.write("prompts/own.md", "# Own\n\nLook for dates.\n");
    place.write("council.yaml", COUNCIL.replace("builtin:evidence", "prompts/own.md"));
    place.answers(&all_ship_except(json!({})));
    configure(&place, "[defaults]\nexecutor = \"one\"\n[council.members.evidence]\nexecutor = \"rubric\"\n");
    let notes = place.review(&["draft.md"])["notes"].to_string();
    assert!(notes.contains("rubric reads no prompts: those of evidence had"), "{notes}");
}
