//! Wrong guesses of an executor: the refusal has the form that works, and that form works.

use crate::models::Model;
use crate::support::TestDir;

/// The text that a refusal suggests.
fn suggestion(stderr: &str) -> String {
    let (_, rest) = stderr.split_once("write `").unwrap_or_else(|| panic!("{stderr}"));
    rest.split('`').next().unwrap().replace(['\n', ' '], "")
}

#[test]
fn a_wrong_address_is_refused_with_one_that_works() {
    let model = Model::start(8);
    let place = TestDir::with("draft.md", "The meeting moved to Tuesday at ten.\n");
    let address = &model.address;
    let bare = address.trim_start_matches("http://");
    for wrong in [
        format!("{address}:small"),
        format!("{address}/chat/completions#small"),
        format!("{address}/chat/completions:small"),
        format!("{address}/models#small"),
        format!("{bare}#small"),
        format!("{}#small", bare.trim_end_matches("/v1")),
        format!("{}:small", address.trim_end_matches("/v1")),
    ] {
        let refused = place.run(&["review", "draft.md", "--executor", &wrong]).assert_code(5);
        let right = suggestion(&refused.stderr);
        assert_eq!(right, format!("{address}#small"), "{wrong}: {}", refused.stderr);
        let refused = place.run(&["models", &wrong]).assert_code(5);
        assert_eq!(suggestion(&refused.stderr), right, "{wrong}");
    }
    place.run(&["review", "draft.md", "--executor", &format!("{address}#small")]).assert_code(0);
    // Without a model: the suggestion, with a name of the list.
    let refused = place.run(&["review", "draft.md", "--executor", address]).assert_code(5);
    assert_eq!(suggestion(&refused.stderr), format!("{address}#MODEL"), "{}", refused.stderr);
    let refused = place.run(&["review", "draft.md", "--executor", address.trim_end_matches("/v1")]);
    assert_eq!(suggestion(&refused.stderr), format!("{address}#MODEL"), "{}", refused.stderr);
    let listed = place.run(&["models", address]).assert_code(0);
    assert_eq!(listed.stdout, "large\nsmall\n");
    assert!(listed.stderr.contains(&format!("--executor '{address}#large'")), "{}", listed.stderr);
}

#[test]
fn a_table_of_another_tool_is_refused_with_keys_that_work() {
    let place = TestDir::with("draft.md", "The meeting moved to Tuesday at ten.\n");
    for (table, says) in [
        ("kind = \"openai\"\nmodel = \"m\"", "preset = \"openai\""),
        ("kind = \"ollama\"\nmodel = \"m\"", "preset = \"ollama\""),
        ("kind = \"lm-studio\"\nmodel = \"m\"", "preset = \"lmstudio\""),
        ("kind = \"claude-code\"", "preset = \"claude\""),
        ("kind = \"vllm\"\nmodel = \"m\"", "base_url = \"http://localhost:8000/v1\""),
        ("provider = \"openai\"\nmodel = \"m\"", "preset = \"openai\""),
        ("provider = \"ollama\"\nmodel = \"m\"", "preset = \"ollama\""),
        ("preset = \"opnai\"\nmodel = \"m\"", "write `preset = \"openai\"`"),
        ("preset = \"zzz\"\nmodel = \"m\"", "unknown preset `zzz`"),
        ("preset = \"ollama\"\nmodel = \"m\"\nsamples = 3", "[council.members.<id>]"),
        ("model = \"m\"", "preset = \"NAME\""),
        ("url = \"http://localhost:8080/v1\"\nmodel = \"m\"", "kind = \"llm\""),
        ("preset = \"openai\"\napi_key = \"sk-canary-1234567890\"", "key = { env = \"OPENAI_API_KEY\" }"),
        ("kind = \"llm\"\nendpoint = \"http://localhost:8080/v1\"\nmodel = \"m\"", "base_url ="),
        ("kind = \"llm\"\nmodel = \"openai:gpt-5.5\"", "preset = \"openai\""),
        (
            "kind = \"llm\"\nbase_url = \"http://localhost:1234/v1:qwen3\"\nmodel = \"m\"",
            "write `base_url = \"http://localhost:1234/v1\"` and `model = \"qwen3\"`",
        ),
        (
            "kind = \"llm\"\nbase_url = \"http://localhost:1234/v1#qwen3\"",
            "write `base_url = \"http://localhost:1234/v1\"` and `model = \"qwen3\"`",
        ),
    ] {
        place.write("quorate.toml", format!("[executors.own]\n{table}\n"));
        let refused = place.run(&["review", "draft.md", "--executor", "own", "--trust"]).assert_code(5);
        let said = refused.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(says), "{table}: {}", refused.stderr);
        // The line of the file is shown, without the key.
        assert!(!said.contains("write `key = { env = \"sk-"), "{said}");
    }
}

#[test]
fn the_models_command_ends_with_one_that_works() {
    let model = Model::start(8);
    let place = TestDir::with(
        "quorate.toml",
        format!("[executors.own]\nkind = \"llm\"\nbase_url = \"{}\"\nmodel = \"small\"\n", model.address),
    );
    let listed = place.run(&["models"]).assert_code(0);
    for name in ["own", "ollama", "openai", "anthropic"] {
        assert!(listed.stdout.contains(name), "{}", listed.stdout);
    }
    assert!(listed.stdout.contains("`quorate models own` lists its models"), "{}", listed.stdout);
    assert!(listed.stdout.contains("connects to no service"), "{}", listed.stdout);
    place.run(&["models", "own"]).assert_code(0);
    let listed = place.run(&["models", "--format", "json"]).assert_code(0).json();
    assert!(listed["executors"].as_array().unwrap().iter().any(|one| one["name"] == "own"), "{listed}");
    // A stand-in lists no models for it.
    let own = place.read("quorate.toml");
    let keyless = "kind = \"llm\"\nbase_url = \"https://models.example.com/v1\"\nmodel = \"m\"\nkey = { env = \"NO_SUCH_KEY\" }\n";
    place.write("quorate.toml", format!("{own}[executors.keyless]\n{keyless}fallback = [\"rubric\"]\n"));
    let listed = place.run(&["models", "--format", "json"]).assert_code(0).json();
    let keyless = listed["executors"].as_array().unwrap().iter().find(|one| one["name"] == "keyless");
    assert!(keyless.unwrap()["problem"].to_string().contains("NO_SUCH_KEY"), "{listed}");
    let gone = "http://127.0.0.1:9/v1";
    let refused = place.run(&["models", gone]).assert_code(5);
    let said = refused.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("cannot reach 127.0.0.1:9") && said.contains(&format!("quorate models {gone}")),
        "{said}"
    );
    let refused = place.run(&["models", "ollama/qwen3"]).assert_code(5);
    let said = refused.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("write `ollama:qwen3`; `quorate models ollama` lists the models"), "{said}");
}

#[test]
fn a_model_in_the_wrong_place_is_refused_with_the_right_one() {
    let place = TestDir::with("draft.md", "The meeting moved to Tuesday at ten.\n");
    for (arguments, says) in [
        ("review draft.md --model gpt-5", "write `--executor openai:gpt-5` in place of `--model`"),
        ("review draft.md --model my-own", "name an executor that asks one"),
        ("--model gpt-5 review draft.md", "`quorate review FILE --executor openai --model MODEL`"),
        ("review draft.md --provider openai", "`--executor openai:MODEL`"),
        ("review draft.md --api-key sk-1", "`quorate models` names its variable"),
        ("review draft.md --json", "`--format json`"),
        ("review draft.md --output verdict.txt", "`> FILE`"),
    ] {
        let refused = place.run(&arguments.split(' ').collect::<Vec<_>>()).assert_code(64);
        assert!(refused.stderr.contains(says) && !refused.stderr.contains("-- --"), "{}", refused.stderr);
    }
    for toml in
        ["model = \"gpt-5\"\n", "[defaults]\nmodel = \"gpt-5\"\n", "[council]\nexecutor = \"openai\"\n"]
    {
        place.write("quorate.toml", toml);
        let refused = place.run(&["review", "draft.md"]).assert_code(5);
        refused.assert_stderr_contains("write `executor = \"SERVICE:MODEL\"` in `[defaults]`");
    }
}
