//! `check` on runtimes whose conversation, operators and tools are on MCP servers, and which commands report it.
#![cfg(feature = "mcp")]

use crate::support;
use support::TestDir;

/// A conversation on a server that is not running.
fn bridge(participant: &str) -> TestDir {
    let place = TestDir::with("quorate.toml", "[mcp.guilde]\nurl = \"http://127.0.0.1:1/mcp\"\n");
    place.write("answers.json", "{}");
    place.write(
        "swarm.yaml",
        format!(
            "schema: agentruntimes/v1
kind: MultiAgentRuntime
id: bridge
participants:
  - {participant}
substrate: {{kind: guilde-mcp, conversationId: c1}}
dispatcher: {{kind: mention}}
"
        ),
    );
    place
}

/// The concise lines that `check` prints.
fn check(place: &TestDir, code: i32) -> String {
    place.run(&["check", "swarm.yaml", "--format", "concise"]).assert_code(code).stdout
}

#[test]
fn an_operator_needs_a_name_on_its_server() {
    let said = check(&bridge("{id: growth, executor: db-operator}"), 1);
    assert!(said.starts_with("swarm.yaml:5:5: refusal[quorate:executor_invalid]"), "{said}");
    assert!(said.contains("`growth` has no `meta.operatorId`"), "{said}");
    let place = bridge("{id: growth, executor: db-operator, meta: {operatorId: op_g}}");
    place.write("swarm.yaml", place.read("swarm.yaml").replace("guilde-mcp, conversationId: c1", "memory"));
    assert!(check(&place, 1).contains("has no name for the conversation"), "{}", check(&place, 1));
}

#[test]
fn only_a_posting_operator_is_warned_about() {
    let operator = |more: &str| {
        bridge(&format!("{{id: growth, executor: db-operator, meta: {{operatorId: op_g}}{more}}}"))
    };
    for quiet in ["", ", config: {postReply: false}"] {
        assert_eq!(check(&operator(quiet), 0), "");
    }
    let posts = operator(", config: {postReply: true}");
    assert!(check(&posts, 0).contains("orchestrator_coexists"));
    let scripted = "executor: script, config: {path: answers.json}";
    let own = bridge(&format!("{{id: growth, {scripted}, meta: {{operatorId: op_g}}}}"));
    assert!(check(&own, 0).starts_with("swarm.yaml:5:"), "{}", check(&own, 0));
    assert!(check(&own, 0).contains("orchestrator_coexists"));
    // K17: `check` does not advise removing the operator: participants would then share one.
    let help = own.run(&["check", "swarm.yaml", "--format", "json"]).assert_code(0).stdout;
    assert!(help.contains("turn off routing of mentions to it") && !help.contains("asOperatorId"), "{help}");
    assert_eq!(check(&bridge(&format!("{{id: growth, {scripted}}}")), 0), "");
    // Only the commands that run it report it.
    for (arguments, reports) in [
        (&["run", "swarm.yaml"][..], true),
        (&["log", "swarm.yaml"], false),
        (&["say", "swarm.yaml", "hello"], false),
    ] {
        let said = own.run(arguments).assert_code(5).stderr;
        assert_eq!(said.contains("orchestrator_coexists"), reports, "{arguments:?}: {said}");
    }
    let said = own.run(&["state", "swarm.yaml", "growth"]).assert_code(0).stderr;
    assert_eq!(said, "");
}

#[test]
fn servers_that_no_executor_passes_on_are_named() {
    for executor in [
        "executor: agent-cli, config: {command: /bin/cat}",
        "executor: script, config: {path: answers.json}",
        "executor: rubric",
        "executor: claude",
    ] {
        let place = bridge(&format!("{{id: growth, {executor}}}"));
        let effectors = |server: &str| {
            let swarm = place.read("swarm.yaml");
            let swarm = swarm.split("effectors:").next().expect("a part").to_owned();
            let line =
                format!("effectors:\n  - {{participantId: growth, tools: [], mcpServers: [{server}]}}\n");
            place.write("swarm.yaml", swarm + &line);
            check(&place, 0)
        };
        let said = effectors("zip");
        assert!(said.starts_with("swarm.yaml:9:53: warning[quorate:effector_unknown_server]"), "{said}");
        let said = effectors("guilde");
        let passes = executor.ends_with("claude");
        assert_eq!(said.contains("field_without_effect"), !passes, "{executor}: {said}");
        assert!(passes || said.contains("swarm.yaml:9:53"), "{said}");
    }
}

#[test]
fn an_ambiguous_name_is_reported_by_run() {
    let place = TestDir::with("answers.json", "{}");
    let swarm = "schema: agentruntimes/v1
kind: MultiAgentRuntime
id: talk
participants:
  - {id: rev, executor: rubric, displayName: Rev}
  - {id: reviewer, executor: rubric, displayName: Reviewer}
substrate: {kind: sqlite, path: talk.db}
dispatcher: {kind: mention}
";
    place.write("swarm.yaml", swarm);
    assert!(check(&place, 0).contains("dispatch_ambiguous"));
    place.run(&["run", "swarm.yaml"]).assert_code(0).assert_stderr_contains("dispatch_ambiguous");
    for arguments in
        [&["log", "swarm.yaml"][..], &["say", "swarm.yaml", "hello"], &["state", "swarm.yaml", "rev"]]
    {
        assert_eq!(place.run(arguments).assert_code(0).stderr, "", "{arguments:?}");
    }
}
