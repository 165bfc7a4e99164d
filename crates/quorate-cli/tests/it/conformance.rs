//! The public examples, checked against their READMEs. `QUORATE_CONFORMANCE_DIR` names their directory; without it the tests
//! print SKIPPED.

use std::path::{Path, PathBuf};

use crate::support;
use support::TestDir;

fn examples() -> Option<PathBuf> {
    let Some(dir) = std::env::var_os("QUORATE_CONFORMANCE_DIR") else {
        eprintln!("SKIPPED: QUORATE_CONFORMANCE_DIR is not set; the public examples are not tried");
        return None;
    };
    let examples = Path::new(&dir).join("examples");
    assert!(examples.is_dir(), "{} is not a directory", examples.display());
    Some(examples)
}

/// A copy, so that nothing above the examples is taken for their workspace.
fn copy(from: &Path, place: &TestDir, to: &str) {
    for entry in std::fs::read_dir(from).expect("a directory").flatten() {
        let name = format!("{to}{}", entry.file_name().to_string_lossy());
        if entry.file_type().expect("a type").is_dir() {
            copy(&entry.path(), place, &format!("{name}/"));
        } else {
            place.write(&name, std::fs::read(entry.path()).expect("a file"));
        }
    }
}

#[test]
fn every_public_example_is_accepted() {
    let Some(examples) = examples() else { return };
    let place = TestDir::new();
    copy(&examples, &place, "");
    let (mut tried, mut dead_rules) = (0, 0);
    for folder in ["aip-12", "aip-24", "aip-25", "aip-47", "aip-48"] {
        for entry in
            std::fs::read_dir(place.path(folder)).unwrap().flatten().filter(|entry| entry.path().is_file())
        {
            let file = format!("{folder}/{}", entry.file_name().to_string_lossy());
            let report = place.run(&["check", "--no-refs", &file, "--format", "json"]).assert_code(0).json();
            assert_eq!(report["files"], 1, "{file}");
            for said in report["diagnostics"].as_array().unwrap() {
                // Each stands alone, under a name of its own.
                let code = said["code"].as_str().unwrap();
                let known = ["quorate:filename", "persona_extends_missing"];
                // V4: its majority comes after a quorum, which always decides.
                let dead =
                    code == "quorate:rule_without_effect" && file.ends_with("/02-exec-voting-board.md");
                assert!(known.contains(&code) || dead, "{file}: {said}");
                dead_rules += usize::from(dead);
            }
            tried += 1;
        }
    }
    assert_eq!((tried, dead_rules), (26, 1), "some examples were not found");
}

#[test]
fn the_public_playbooks_are_woven_for_whom_they_are() {
    // B2, B3, B4: nothing that is locked in everybody keeps one of them out. B13: one has a priority that governance gives.
    let Some(examples) = examples() else { return };
    let place = TestDir::with("quorate.toml", "");
    copy(&examples.join("aip-12"), &place, "playbooks/");
    for (slug, role, skills) in [
        ("alice", "clerk", ""),
        ("ada", "companion", ""),
        ("dan", "clerk", "skills: [research/auth-debugging]\n"),
        ("eve", "engineer", ""),
        ("rob", "researcher", ""),
        ("mia", "marketing-assistant", ""),
    ] {
        let head = format!("---\nid: {slug}\nname: {slug}\nrole: role/{role}\n{skills}---\n");
        let body = "You help people, every day, and answer in whole sentences.\n";
        place.write(&format!("operators/{slug}/OPERATOR.md"), head + body);
    }
    for (operator, expected) in [
        ("ada", &["acknowledge-before-redirecting", "quote-evidence-inline"][..]),
        ("alice", &["alice-prefers-bullet-summaries"]),
        // A skill that an operator lists needs no file.
        ("dan", &["check-token-expiry-first"]),
        ("eve", &["check-token-expiry-first"]),
        ("rob", &["cite-source-when-naming-frameworks"]),
        // One is archived, and the time of the other is over.
        ("mia", &[]),
    ] {
        let json = place.run(&["weave", operator, "--format", "json"]).assert_code(0).json();
        let woven = json["woven"].as_array().unwrap().iter();
        let woven: Vec<&str> = woven.map(|one| one["playbook"].as_str().unwrap()).collect();
        assert_eq!(woven, expected, "{operator}: {json}");
    }
    let checked = place.run(&["check", ".", "--format", "json"]).assert_code(1).json();
    assert_eq!(checked["refusals"], 1, "{checked}");
    place.run(&["check", "."]).assert_stdout_contains("`slow-pace-on-crisis` is active at priority 85");
}

#[test]
fn the_chain_of_acme_resolves_and_its_fourth_member_is_refused() {
    let Some(examples) = examples() else { return };
    let place = TestDir::new();
    copy(&examples.join("aip-24/acme"), &place, "");
    let team = "companies/acme/teams/research";
    let lead = format!("{team}/operators/lead-researcher/ASSEMBLY.md");
    let view = place.run(&["resolve", "--no-refs", &lead, "--format", "json"]).assert_code(0).json();
    let names: Vec<&str> =
        view["chain"].as_array().unwrap().iter().map(|link| link["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["acme-council-root", "acme-research-council", "lead-researcher-council"]);
    assert_eq!(view["effective"]["lockedTraits"], serde_json::json!(["warmth", "honesty", "refuse harm"]));
    assert_eq!(view["mode"], "advisory");
    assert_eq!(view["warnings"], serde_json::json!([]));

    let report = place.run(&["check", "--no-refs", ".", "--format", "json"]).assert_code(1).json();
    assert_eq!((&report["files"], &report["refusals"]), (&4.into(), &1.into()));
    let refused = &report["diagnostics"][0];
    assert_eq!(refused["code"], "assembly_locked_trait_removed");
    assert!(refused["file"].as_str().unwrap().ends_with("operators/junior/ASSEMBLY.md"), "{refused}");
}
