//! Which council sits: council.yaml or council.yml, searched from the text upwards, and how commands report it.

use crate::support;
use serde_json::{Value, json};
use support::TestDir;
use support::council::{COUNCIL, all_ship};

const SHIPS: &str = include_str!("../../../../examples/incident-report.md");

fn three() -> String {
    COUNCIL.replace("  - {id: strategy, prompt: builtin:strategy}\n", "")
}

fn deliberator_count(report: &Value) -> usize {
    report["deliberators"].as_array().map_or(0, Vec::len)
}

fn judged_in(place: &TestDir, below: &str) -> Value {
    place.write(&format!("{below}/draft.md"), SHIPS);
    place.run_in(below, &["review", "draft.md", "--format", "json"]).assert_code(0).json()
}

#[test]
fn yml_is_a_council_as_yaml_is() {
    let place = TestDir::scripted(&all_ship());
    place.write("council.yml", three());
    let report = place.review(&["draft.md"]);
    assert_eq!((deliberator_count(&report), &report["council"]), (3, &json!("council.yml")));
    let ran = place.run(&["check", "council.yml", "--strict"]).assert_code(0);
    ran.assert_stderr_contains("1 file checked: 0 refusals, 0 warnings");
    place.write("council.yaml", COUNCIL);
    place.run(&["review", "draft.md"]).assert_refused(5, "quorate:council_invalid");
    let report = place.review(&["draft.md", "--config", "council.yaml"]);
    assert_eq!(deliberator_count(&report), 4);
    place.run(&["init", "council"]).assert_code(5);
}

#[test]
fn the_nearest_council_up_to_the_repository_sits() {
    let place = TestDir::with("council.yaml", three());
    assert_eq!(deliberator_count(&judged_in(&place, "texts/deep")), 3, "no quorate.toml is needed");
    assert!(place.path(".quorate/ledger.db").is_file(), "the ledger lies beside the council");
    std::fs::create_dir_all(place.path("repository/.git")).unwrap();
    assert_eq!(deliberator_count(&judged_in(&place, "repository/texts")), 4, "a repository ends the way");
    place.write("repository/council.yml", three());
    assert_eq!(deliberator_count(&judged_in(&place, "repository/texts")), 3, "its own root belongs to it");
    place.write("repository/texts/quorate.toml", "");
    assert_eq!(deliberator_count(&judged_in(&place, "repository/texts")), 4, "a quorate.toml ends it, too");
}

#[cfg(unix)]
#[test]
fn a_council_that_anybody_could_have_put_there_is_not_looked_for() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = TestDir::with("shared/council.yaml", three());
    let open = std::fs::Permissions::from_mode(0o1777);
    std::fs::set_permissions(place.path("shared"), open).unwrap();
    assert_eq!(deliberator_count(&judged_in(&place, "shared/mine")), 4);
    // In the directory itself it is a choice, and its writer has to be ours.
    std::fs::set_permissions(place.path("shared/council.yaml"), std::fs::Permissions::from_mode(0o666))
        .unwrap();
    place.write("shared/draft.md", "The meeting moved.\n");
    place
        .run_in("shared", &["review", "draft.md"])
        .assert_code(5)
        .assert_stderr_contains("quorate:ownership_dubious");
}

#[test]
fn init_council_makes_a_workspace() {
    let place = TestDir::new();
    let said = place.run(&["init", "council", "editorial"]).assert_code(0).stdout;
    assert!(said.contains("editorial/quorate.toml"), "{said}");
    place.run(&["check", "editorial", "--strict"]).assert_code(0);
    place.write("editorial/drafts/deep/x.md", SHIPS);
    let report = place.run_in("editorial/drafts/deep", &["review", "x.md", "--format", "json"]).json();
    assert!(report["council"].as_str().unwrap().ends_with("editorial/council.yaml"), "{report}");
    let inner = place.run(&["init", "council", "editorial/inner"]).assert_code(0).stdout;
    assert!(!inner.contains("quorate.toml"), "the outermost one holds: {inner}");
}

#[test]
fn a_review_names_its_council_and_its_ledger() {
    let place = TestDir::with("work/council.yaml", COUNCIL);
    place.write("work/draft.md", SHIPS);
    std::fs::create_dir_all(place.path("elsewhere")).unwrap();
    let shown = place.run(&["review", "work/draft.md"]).assert_code(0).stdout;
    let full = ["show", "latest", "--full", "--ledger", "work/.quorate/ledger.db"];
    let full = place.run(&full).assert_code(0).stdout;
    assert!(full.contains(" work/council.yaml; ledger work/.quorate/ledger.db"), "{full}");
    let how = shown.split('`').find(|one| one.starts_with("quorate show ")).expect("how to see more");
    let how = how.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(how.contains("--ledger work/.quorate/ledger.db"), "{how}");
    let report = place.review(&["work/draft.md"]);
    let (run, ledger) = (report["run"].as_str().unwrap(), report["ledger"].as_str().unwrap());
    place.run_in("elsewhere", &["show", run]).assert_code(4).assert_stderr_contains("--ledger");
    place.run_in("elsewhere", &["show", run, "--ledger", ledger]).assert_code(0);
    judged_in(&place, "elsewhere");
    let ran = place.run_in("elsewhere", &["show", run]).assert_code(4);
    ran.assert_stderr_contains(".quorate/ledger.db has no run").assert_stderr_contains("--ledger");
}
