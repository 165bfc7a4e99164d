//! The public example runtimes, run: they lie as data where `QUORATE_CONFORMANCE_DIR` says; where it says nothing,
//! nothing is tested, and that is said.

use crate::support::public;
use public::{MANIFEST, copied_example, quorate};

#[test]
fn the_local_swarm_runs_with_its_role_files_and_a_cli() {
    let Some(place) = copied_example("01-local-dev-swarm.yaml") else { return };
    quorate(&place, &["check", MANIFEST]).assert_code(0);
    let ran =
        quorate(&place, &["run", MANIFEST, "--say", "@Reviewer and @MigrationWriter, please"]).assert_code(0);
    for said in
        ["Here is the reviewer of this repository.", "Here is the migration-writer of this repository."]
    {
        assert!(ran.stdout.contains(said), "{}", ran.stdout);
    }
    let journal = place.read("repo/.runtime/swarm/conversation.md");
    assert_eq!(journal.matches("=== TURN id=t_").count(), 3, "{journal}");
    // Without them it says which are missing.
    std::fs::remove_dir_all(place.path("repo/.claude")).expect("they are there");
    quorate(&place, &["check", MANIFEST]).assert_code(1);
}

#[test]
fn the_capability_routed_swarm_runs() {
    let Some(place) = copied_example("04-capability-routed.yaml") else { return };
    quorate(&place, &["check", MANIFEST]).assert_code(0);
    let ran =
        quorate(&place, &["run", MANIFEST, "--once", "--say", "The database schema needs a new column"])
            .assert_code(0);
    assert!(ran.stdout.contains("migration-writer  "), "{}", ran.stdout);
    assert!(!ran.stdout.contains("\nreviewer  "), "{}", ran.stdout);
}

#[test]
fn an_executor_of_another_workspace_is_unknown() {
    let Some(place) = copied_example("05-guilde-autonomous.yaml") else { return };
    let said = quorate(&place, &["check", MANIFEST, "--format", "concise"]).assert_code(1).stdout;
    assert!(said.contains("quorate:kind_unknown") && said.contains("in-process-mastra"), "{said}");
    assert!(
        said.contains("the kinds are agent-cli, cassette, db-operator, inline, llm, remote, rubric, script"),
        "{said}"
    );
}

#[test]
fn what_needs_a_server_says_so() {
    for example in ["02-guilde-bridge.yaml", "03-guilde-mixed.yaml"] {
        let Some(place) = copied_example(example) else { return };
        let said = quorate(&place, &["run", MANIFEST]).assert_code(5).stderr;
        match cfg!(feature = "mcp") {
            // The server's address is not configured.
            true => assert!(said.contains("[mcp.guilde]"), "{said}"),
            false => assert!(said.contains("--features mcp"), "{said}"),
        }
    }
}
