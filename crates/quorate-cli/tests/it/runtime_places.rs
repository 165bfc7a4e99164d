//! Where a runtime's manifest leads: roles that look like paths, files outside of the workspace, and which `quorate.toml`
//! holds.

use crate::support;
use support::{CommandOutput, TestDir};

/// A workspace in `ws/` with a manifest in `ws/team/`.
fn team(role: &str, substrate: &str, state: &str) -> TestDir {
    let place = TestDir::with("ws/quorate.toml", "strict_chain = true\n");
    let text = format!(
        "schema: agentruntimes/v1
kind: MultiAgentRuntime
id: talk
participants:
  - {{id: ada, executor: rubric, role: {role}}}
substrate: {substrate}
dispatcher: {{kind: mention}}
state: {state}
"
    );
    place.write("ws/team/swarm.yaml", text);
    place
}

const MEMORY: &str = "{kind: memory}";

fn check(place: &TestDir) -> CommandOutput {
    place.run_in("ws", &["check", "team/swarm.yaml", "--format", "concise"])
}

fn warned(place: &TestDir, parts: &[&str]) {
    let ran = check(place).assert_code(0);
    for part in parts {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let ran = place.run_in("ws", &["run", "team/swarm.yaml", "--once"]).assert_code(0);
    for part in parts.iter().filter(|part| !part.contains("swarm.yaml:")) {
        ran.assert_stderr_contains(part);
    }
}

fn silent(place: &TestDir) {
    let ran = check(place).assert_code(0);
    assert!(!ran.stdout.contains("warning["), "{}", ran.stdout);
    let ran = place.run_in("ws", &["run", "team/swarm.yaml", "--once"]).assert_code(0);
    assert!(!ran.stderr.contains("warning["), "{}", ran.stderr);
}

#[test]
fn a_role_that_looks_like_a_path_is_reported() {
    for (role, help) in [
        ("./roles/nofile", "a role that names a file ends in .md, .markdown, .txt"),
        ("./roles/named", "did you mean `./roles/named.md`?"),
        ("../../../etc/passwd", "a role that names a file ends in"),
    ] {
        let place = team(role, MEMORY, MEMORY);
        place.write("ws/team/roles/named.md", "Review.\n");
        warned(&place, &["quorate:role_not_a_file", "team/swarm.yaml:5:", role]);
        place.run_in("ws", &["run", "team/swarm.yaml", "--once"]).assert_code(0).assert_stderr_contains(help);
    }
    for role in ["Review and/or rewrite.", "Reviewer", "./roles/named.md"] {
        let place = team(role, MEMORY, MEMORY);
        place.write("ws/team/roles/named.md", "Review.\n");
        silent(&place);
    }
}

#[test]
fn writes_outside_of_the_workspace_are_reported() {
    let code = "quorate:outside_workspace";
    let away = std::env::temp_dir().join("quorate-runtime-places");
    let absolute = format!("{{kind: fs, dir: {}}}", away.display());
    for (substrate, state, at, path) in [
        ("{kind: file, path: ../../esc.md}", MEMORY, "team/swarm.yaml:6:", "`../../esc.md`"),
        ("{kind: sqlite, path: ../../esc.db}", MEMORY, "team/swarm.yaml:6:", "`../../esc.db`"),
        (MEMORY, "{kind: fs, dir: ../../escaped}", "team/swarm.yaml:8:", "`../../escaped`"),
        (MEMORY, "{kind: sqlite, path: ../../states.db}", "team/swarm.yaml:8:", "`../../states.db`"),
        (MEMORY, absolute.as_str(), "team/swarm.yaml:8:", "quorate-runtime-places`"),
    ] {
        warned(&team("Review.", substrate, state), &[code, at, path]);
    }
    silent(&team("Review.", "{kind: file, path: ../talk.md}", "{kind: fs, dir: ../state}"));
    let place = team("Review.", MEMORY, MEMORY);
    let inside = format!("{{kind: fs, dir: {}}}", place.path("ws/state").display());
    place.write(
        "ws/team/swarm.yaml",
        place.read("ws/team/swarm.yaml").replace("state: {kind: memory}", &format!("state: {inside}")),
    );
    silent(&place);
}

#[test]
fn a_lookup_that_fails_says_which_configuration_was_read() {
    let place = team("Review.", MEMORY, MEMORY);
    place.write("ws/quorate.toml", "[runtimes.talk]\nexecutor = \"nobody\"\n");
    let run = || place.run_in("ws/team", &["run", "swarm.yaml", "--once"]).assert_code(5);
    let ran = run();
    ran.assert_stderr_contains("unknown executor `nobody`")
        .assert_stderr_contains(&format!("Quorate reads {}", place.path("ws/quorate.toml").display()));
    assert!(!ran.stderr.contains("and not"), "{}", ran.stderr);
    place.write("ws/team/quorate.toml", "[executors.nobody]\nkind = \"rubric\"\n");
    run().assert_stderr_contains("/ws/quorate.toml, the outermost one, and not quorate.toml");
    // Other errors do not mention the configuration.
    place.write("ws/quorate.toml", "");
    place.write(
        "ws/team/swarm.yaml",
        place.read("ws/team/swarm.yaml").replace("kind: mention", "kind: mentoin"),
    );
    assert!(!run().stderr.contains("Quorate reads"), "it is no matter of quorate.toml");
}

#[cfg(feature = "mcp")]
#[test]
fn a_server_that_is_not_configured_is_missed_in_the_file_that_was_read() {
    let place = team("Review.", "{kind: guilde-mcp, conversationId: c}", MEMORY);
    place.write("ws/team/quorate.toml", "[mcp.guilde]\ncommand = \"guilde\"\n");
    for outermost in ["", "[mcp.guild]\ncommand = \"guilde\"\n", "[mcp.other]\ncommand = \"guilde\"\n"] {
        place.write("ws/quorate.toml", outermost);
        let ran = place.run_in("ws", &["check", "team/swarm.yaml"]).assert_code(1);
        for part in [
            "no MCP server `guilde` is configured",
            "Quorate reads quorate.toml, the outermost one, and not team/quorate.toml",
        ] {
            assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
        }
    }
}
