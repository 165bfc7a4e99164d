//! The cost of reviewing a pull request, and who permits it.

use serde_json::json;

use super::api::{Api, BOT, pull};
use super::{HOLDS, base, comment, with_text};
use crate::support::council::COUNCIL;
use crate::support::has_program;

#[test]
fn a_fork_s_text_costs_only_what_a_maintainer_allows() {
    if !has_program("git") {
        return;
    }
    let (place, api, model) = (base("eve/blog"), Api::start(), Api::start());
    api.state().pulls = vec![pull(7, "eve/blog")];
    with_text(&api, "drafts/post.md", HOLDS);
    let executor = format!("http://127.0.0.1:{}/v1#judge", model.port);
    let asked = || model.state().asked.len();
    let uncapped = comment(&place, &api, &["--executor", &executor]).assert_code(5);
    uncapped.assert_stdout_contains("needs a cap");
    let capped = ["--executor", &executor, "--max-calls", "9"];
    comment(&place, &api, &capped)
        .assert_code(0)
        .assert_stderr_contains("only once it has the label `quorate`");
    assert_eq!((asked(), api.writes().len()), (0, 0));
    // A label is not spent on a review that cannot begin.
    api.state().pulls[0]["labels"] = json!([{"name": "Quorate"}]);
    let impossible = ["--executor", "anthropic", "--max-calls", "9"];
    comment(&place, &api, &impossible).assert_code(5).assert_stdout_contains("ANTHROPIC_API_KEY");
    assert_eq!(api.writes(), [""; 0]);
    api.state().pulls[0]["labels"] = json!([{"name": "quorate"}]);
    comment(&place, &api, &capped);
    assert!(asked() > 0, "the model is asked");
    assert_eq!(
        api.writes()[..2],
        ["POST /repos/ada/blog/issues/7/comments", "DELETE /repos/ada/blog/issues/7/labels/quorate"]
    );
    let before = asked();
    comment(&place, &api, &capped).assert_code(0).assert_stderr_contains("only once it has the label");
    assert_eq!(asked(), before, "a label is for one review");
    // A branch of the repository itself needs none.
    let place = base("ada/blog");
    api.state().pulls = vec![pull(7, "ada/blog")];
    comment(&place, &api, &capped);
    assert!(asked() > before, "the model is asked");
}

#[test]
fn every_text_s_council_counts_for_what_a_review_may_cost() {
    if !has_program("git") {
        return;
    }
    let (place, api) = (base("eve/blog"), Api::start());
    api.state().pulls = vec![pull(7, "eve/blog")];
    with_text(&api, "drafts/a.md", HOLDS);
    with_text(&api, "drafts/z/post.md", HOLDS);
    place.write("drafts/z/council.yaml", format!("{COUNCIL}runtime: {{type: ollama, model: judge}}\n"));
    comment(&place, &api, &[]).assert_code(5).assert_stdout_contains("needs a cap");
    place.write("quorate.toml", "[budget]\ncalls = 9\n");
    // That would be for each text.
    comment(&place, &api, &[]).assert_code(5).assert_stdout_contains("needs a cap");
    comment(&place, &api, &["--max-calls", "9"]).assert_code(0).assert_stderr_contains("has the label");
    assert_eq!(api.writes(), [""; 0]);
    assert!(!place.path(".quorate").exists(), "nothing was reviewed");
}

#[test]
fn a_label_is_not_spent_on_a_review_that_cannot_begin() {
    if !has_program("git") {
        return;
    }
    let (place, api, model) = (base("eve/blog"), Api::start(), Api::start());
    api.state().pulls = vec![pull(7, "eve/blog")];
    api.state().pulls[0]["labels"] = json!([{"name": "quorate"}]);
    with_text(&api, "drafts/post.md", HOLDS);
    let executor = format!("http://127.0.0.1:{}/v1#judge", model.port);
    let run =
        |more: &[&str]| comment(&place, &api, &[&["--executor", &executor], more].concat()).assert_code(5);
    let unspent = || {
        assert!(api.writes().iter().all(|write| !write.starts_with("DELETE")), "{:?}", api.writes());
        assert_eq!(model.state().asked.len(), 0);
    };
    // The price of a command is unknown.
    place.write("quorate.toml", "[executors.own]\nkind = \"agent-cli\"\ncommand = \"true\"\n");
    let command = ["--executor", "own", "--trust", "--max-tokens", "9000"];
    comment(&place, &api, &command).assert_code(5).assert_stdout_contains("cost_unknown");
    unspent();
    run(&["--max-calls", "0"]).assert_stdout_contains("needs a cap above 0");
    unspent();
    run(&["--max-calls", "8"]).assert_stdout_contains("a review needs 9 calls");
    unspent();
    place.write(".quorate", "no folder");
    run(&["--max-calls", "9"]);
    unspent();
    std::fs::remove_file(place.path(".quorate")).unwrap();
    // What is said afterwards could not be said.
    api.state().is_forbidden = true;
    run(&["--max-calls", "9"]).assert_stdout_contains("Resource not accessible");
    unspent();
    api.state().is_forbidden = false;
    api.state().login = "ada".to_owned();
    run(&["--max-calls", "9"]).assert_stdout_contains("--author");
    unspent();
    // Nothing that a model could be asked about.
    api.state().login = BOT.to_owned();
    api.state().links.push("drafts/post.md".to_owned());
    run(&["--max-calls", "9"]).assert_stdout_contains("drafts/post.md is a link");
    unspent();
}

#[test]
fn a_label_whose_removal_had_no_answer_is_for_this_review() {
    if !has_program("git") {
        return;
    }
    let (place, api, model) = (base("eve/blog"), Api::start(), Api::start());
    api.state().pulls = vec![pull(7, "eve/blog")];
    api.state().pulls[0]["labels"] = json!([{"name": "Quorate"}]);
    api.state().unanswered_removals = 1;
    with_text(&api, "drafts/post.md", HOLDS);
    let executor = format!("http://127.0.0.1:{}/v1#judge", model.port);
    comment(&place, &api, &["--executor", &executor, "--max-calls", "9"]);
    assert!(!model.state().asked.is_empty(), "the model is asked");
    assert_eq!(api.state().pulls[0]["labels"], json!([]));
}
