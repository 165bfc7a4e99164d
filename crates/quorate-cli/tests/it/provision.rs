//! `quorate provision` through the real binary.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use crate::support;
use serde_json::{Value, json};
use support::{CommandOutput, TestDir};

/// A profile of the public form, in `profile/`, whose files are below `files/`.
fn profile(place: &TestDir, version: &str, reviewer: &str) {
    let file = |src: &str, strategy: &str| json!({"src": src, "dest": src, "strategy": strategy});
    let mut hook = file(".claude/hooks/check.sh", "preserve");
    hook["executable"] = true.into();
    let manifest = json!({
        "schema": "agentproto/runtime-profile/v1",
        "slug": "runtime-profile/standard",
        "version": version,
        "name": "Standard",
        "license": "MIT",
        "files": [
            file(".claude/agents/reviewer.md", "overwrite"),
            file(".claude/settings.json", "merge-json-deep"),
            file(".gitignore", "append"),
            hook,
        ],
    });
    place.write("profile/profile.json", manifest.to_string());
    place.write("profile/files/.claude/agents/reviewer.md", reviewer);
    place.write("profile/files/.claude/settings.json", "{\"permissions\": {\"allow\": [\"Read\"]}}\n");
    place.write("profile/files/.gitignore", "target/\n");
    place.write("profile/files/.claude/hooks/check.sh", "#!/bin/sh\n");
}

/// A place with a profile, and a target `into/` that has files of its own.
fn place() -> TestDir {
    let place = TestDir::new();
    profile(&place, "0.1.0", "Review.\n");
    place.write(
        "into/.claude/settings.json",
        "{\n    \"permissions\": {\n        \"allow\": [\"Bash\"]\n    }\n}\n",
    );
    place.write("into/.claude/agents/reviewer.md", "Mine.");
    place.write("into/.gitignore", "*.log");
    std::fs::set_permissions(place.path("into/.gitignore"), std::fs::Permissions::from_mode(0o600)).unwrap();
    place
}

fn provision(place: &TestDir, arguments: &[&str]) -> CommandOutput {
    place.run(&[&["provision"], arguments, &["--into", "into"]].concat())
}

fn install(place: &TestDir) -> CommandOutput {
    provision(place, &["install", "profile"])
}

/// Everything beneath `into/`, with bytes and permissions.
fn tree(place: &TestDir) -> BTreeMap<String, (Vec<u8>, u32)> {
    fn below(root: &Path, dir: &Path, tree: &mut BTreeMap<String, (Vec<u8>, u32)>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            let mode = std::fs::symlink_metadata(&path).unwrap().permissions().mode();
            let bytes = if path.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
            tree.insert(name, (bytes, mode));
            if path.is_dir() {
                below(root, &path, tree);
            }
        }
    }
    let mut tree = BTreeMap::new();
    below(&place.path("into"), &place.path("into"), &mut tree);
    tree
}

fn actions(outcome: &Value) -> Vec<(String, String)> {
    let files = outcome["files"].as_array().unwrap().iter();
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    files.map(|file| (word(&file["dest"]), word(&file["action"]))).collect()
}

#[test]
fn it_installs_once_and_uninstalls_to_what_was_there() {
    let place = place();
    let before = tree(&place);
    let dry = provision(&place, &["install", "profile", "--dry-run"]).assert_code(0);
    for shown in ["-Mine.", "+Review.", "+        \"allow\": [\"Bash\", \"Read\"]", "This is a dry run"] {
        assert!(dry.stdout.contains(shown), "{shown}: {}", dry.stdout);
    }
    assert_eq!(tree(&place), before);
    install(&place).assert_code(0);
    assert_eq!(place.read("into/.claude/agents/reviewer.md"), "Review.\n");
    assert_eq!(
        place.read("into/.claude/settings.json"),
        "{\n    \"permissions\": {\n        \"allow\": [\"Bash\", \"Read\"]\n    }\n}\n"
    );
    assert_eq!(place.read("into/.gitignore"), "*.log\ntarget/\n");
    let installed = tree(&place);
    assert_eq!(installed[".gitignore"].1 & 0o777, 0o600);
    assert_ne!(installed[".claude/hooks/check.sh"].1 & 0o100, 0);
    assert_eq!(installed[".quorate"].1 & 0o777, 0o700);
    assert_eq!(place.read("into/.quorate/.gitignore"), "*\n");
    assert!(install(&place).assert_code(0).stdout.contains("nothing to do"));
    assert_eq!(tree(&place), installed);
    provision(&place, &["status"]).assert_code(0);
    provision(&place, &["uninstall", "runtime-profile/standard"]).assert_code(0);
    assert_eq!(tree(&place), before);
    provision(&place, &["uninstall", "runtime-profile/standard"])
        .assert_code(4)
        .assert_stderr_contains("quorate:profile_unknown");
}

#[test]
fn a_second_run_names_what_was_edited_and_clobbers_nothing() {
    let place = place();
    let before = tree(&place);
    install(&place).assert_code(0);
    place.write("into/.claude/agents/reviewer.md", "Edited.\n");
    std::fs::remove_file(place.path("into/.claude/hooks/check.sh")).unwrap();
    place.write("into/.gitignore", "*.log\ntarget/\nmine/\n");
    let edited = tree(&place);
    let ran = install(&place).assert_code(1);
    assert!(ran.stdout.contains("-Review.\n  +Edited."), "{}", ran.stdout);
    ran.assert_stderr_contains("quorate:profile_drift")
        .assert_stderr_contains(".claude/agents/reviewer.md was edited");
    assert_eq!(tree(&place), edited);
    let status = provision(&place, &["status", "--format", "json"]).assert_code(1).json();
    let stands: Vec<&str> = status["profiles"][0]["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["stands"].as_str().unwrap())
        .collect();
    assert_eq!(stands, ["edited", "missing", "in place", "extended"]);
    assert_eq!(status["diagnostics"].as_array().unwrap().len(), 2);
    let forced =
        provision(&place, &["install", "profile", "--force", "--format", "json"]).assert_code(0).json();
    let expected = [
        (".claude/agents/reviewer.md", "change"),
        (".claude/settings.json", "keep"),
        (".gitignore", "keep"),
        (".claude/hooks/check.sh", "put back"),
    ];
    assert_eq!(actions(&forced), expected.map(|(dest, action)| (dest.to_owned(), action.to_owned())));
    let note = forced["files"][0]["notes"][0].as_str().unwrap();
    let aside = note.strip_prefix("the earlier content is kept as ").unwrap();
    assert_eq!(place.read(&format!("into/{aside}")), "Edited.\n");
    provision(&place, &["uninstall", "runtime-profile/standard"]).assert_code(0);
    assert_eq!(place.read("into/.gitignore"), "*.log\nmine/\n");
    assert_eq!(tree(&place)[".claude/agents/reviewer.md"], before[".claude/agents/reviewer.md"]);
}

#[test]
fn uninstalling_with_force_restores_whole_files_and_leaves_edits_of_shared_ones() {
    let place = place();
    let before = tree(&place);
    install(&place).assert_code(0);
    place.write("into/.claude/agents/reviewer.md", "Edited.\n");
    place.write("into/.claude/settings.json", "{\"permissions\": {\"allow\": \"all\"}, \"mine\": 1}\n");
    place.write("into/.gitignore", "*.log\ntarget/debug/\nmine/\n");
    place.write("into/.claude/hooks/check.sh", "exit 7\n");
    let uninstall = ["uninstall", "runtime-profile/standard"];
    provision(&place, &uninstall)
        .assert_code(1)
        .assert_stderr_contains(".claude/agents/reviewer.md was edited");
    let ran = provision(&place, &[&uninstall[..], &["--force"]].concat()).assert_code(0);
    for shown in
        ["`permissions.allow` was changed since and stays", "the appended text was edited since and stays"]
    {
        assert!(ran.stdout.contains(shown), "{shown}: {}", ran.stdout);
    }
    assert_eq!(tree(&place)[".claude/agents/reviewer.md"], before[".claude/agents/reviewer.md"]);
    let settings: Value = serde_json::from_str(&place.read("into/.claude/settings.json")).unwrap();
    assert_eq!(settings, json!({"permissions": {"allow": "all"}, "mine": 1}));
    assert_eq!(place.read("into/.gitignore"), "*.log\ntarget/debug/\nmine/\n");
    assert_eq!(place.read("into/.claude/hooks/check.sh"), "exit 7\n");
    let kept = tree(&place).into_iter().filter(|(path, _)| path.starts_with(".quorate/aside/"));
    let kept: Vec<String> = kept.map(|(_, (bytes, _))| String::from_utf8(bytes).unwrap()).collect();
    assert_eq!(kept, ["Edited.\n"]);
}

#[test]
fn the_next_version_takes_the_place_of_the_last() {
    let place = place();
    let before = tree(&place);
    install(&place).assert_code(0);
    profile(&place, "0.2.0", "Review well.\n");
    place.write("profile/files/.gitignore", "target/\nout/\n");
    place.write("profile/files/.claude/settings.json", "{\"permissions\": {\"allow\": [\"Edit\"]}}\n");
    let ran = install(&place).assert_code(0);
    assert!(ran.stdout.contains("0.2.0 is installed in into, after 0.1.0."), "{}", ran.stdout);
    assert_eq!(place.read("into/.claude/agents/reviewer.md"), "Review well.\n");
    assert_eq!(place.read("into/.gitignore"), "*.log\ntarget/\nout/\n");
    assert!(place.read("into/.claude/settings.json").contains("[\"Bash\", \"Edit\"]"));
    provision(&place, &["uninstall", "runtime-profile/standard"]).assert_code(0);
    assert_eq!(tree(&place), before);
}

#[test]
fn it_goes_to_the_root_of_the_workspace() {
    let place = place();
    place.write("quorate.toml", "strict_chain = true\n");
    place.write("deep/er/x", "");
    place.run_in("deep/er", &["provision", "install", "../../profile"]).assert_code(0);
    assert_eq!(place.read(".claude/agents/reviewer.md"), "Review.\n");
    let listed = place.run(&["provision", "list", "--format", "json"]).assert_code(0).json();
    assert_eq!(listed["profiles"][0]["slug"], "runtime-profile/standard");
    let list = place.run(&["provision", "list"]).assert_code(0);
    assert!(
        list.stdout.starts_with("runtime-profile/standard 0.1.0  4 files, in place, from "),
        "{}",
        list.stdout
    );
}

#[test]
fn bad_input_is_refused_with_its_code_and_changes_nothing() {
    let place = place();
    let manifest = place.read("profile/profile.json");
    let before = tree(&place);
    let refused = |text: String, code: i32, says: &[&str]| {
        place.write("profile/profile.json", text);
        let ran = install(&place).assert_code(code);
        for part in says {
            ran.assert_stderr_contains(part);
        }
        assert_eq!(tree(&place), before);
    };
    let dest = |to: &str| {
        manifest.replacen("\"dest\":\".claude/agents/reviewer.md\"", &format!("\"dest\":\"{to}\""), 1)
    };
    for to in ["../x", "/tmp/x", ".quorate/x", ".gitignore", "./.gitignore", ".claude"] {
        refused(dest(to), 5, &["quorate:profile_invalid", "profile/profile.json:1:"]);
    }
    refused(manifest.replace("append", "prepend"), 5, &["unknown strategy `prepend`", "`merge-json-deep`"]);
    refused(
        manifest.replace("runtime-profile/standard", "../../../evil"),
        5,
        &["quorate:profile_invalid", "a slug is names joined with `/`", "profile/profile.json:1:"],
    );
    let head = manifest.split("\"files\"").next().unwrap();
    refused(
        format!(
            "{head}\"files\":[],\"slug\":\"s\",\"version\":\"1\",\"schema\":\"agentproto/runtime-profile/v1\"}}"
        ),
        5,
        &["quorate:profile_invalid", "`files` is empty", "profile/profile.json:1:"],
    );
    refused("{\"schema\": }".to_owned(), 5, &["this is not JSON", "profile/profile.json:1:12"]);
    place.write("profile/profile.json", &manifest);
    std::fs::remove_file(place.path("profile/files/.gitignore")).unwrap();
    refused(manifest.clone(), 5, &["files/.gitignore is not in the profile"]);
    symlink("/etc/passwd", place.path("profile/files/.gitignore")).unwrap();
    refused(manifest, 5, &["files/.gitignore leads out of the profile"]);
    provision(&place, &["install", "nowhere"]).assert_refused(4, "quorate:profile_unknown");
    provision(&place, &["install", "into"]).assert_refused(5, "quorate:profile_invalid");
    place
        .run(&["provision", "install", "profile", "--into", "nowhere"])
        .assert_code(4)
        .assert_stderr_contains("quorate:profile_target");
    place.run(&["provision", "install"]).assert_code(64);
    let ran = provision(&place, &["install", "nowhere", "--format", "json"]).assert_code(4);
    assert_eq!(ran.json()["diagnostics"][0]["code"], "quorate:profile_unknown");
}

#[test]
fn nothing_is_written_through_links_or_over_what_cannot_be_read() {
    let place = place();
    place.write("elsewhere/keep.md", "keep");
    std::fs::remove_dir_all(place.path("into/.claude")).unwrap();
    symlink(place.path("elsewhere"), place.path("into/.claude")).unwrap();
    std::fs::write(place.path("into/.gitignore"), b"\xff").unwrap();
    let before = tree(&place);
    let ran = provision(&place, &["install", "profile", "--force"]).assert_code(1);
    ran.assert_stderr_contains(".claude/agents/reviewer.md is reached through a symlink")
        .assert_stderr_contains(".gitignore is not UTF-8");
    assert_eq!(tree(&place), before);
    assert_eq!(std::fs::read_dir(place.path("elsewhere")).unwrap().count(), 1);
    std::fs::remove_file(place.path("into/.claude")).unwrap();
    place.write("into/.gitignore", "x");
    place.write("into/.claude/settings.json", "{\n  \"a\": 1\n  b\n}");
    install(&place)
        .assert_code(1)
        .assert_stderr_contains(".claude/settings.json is not JSON: Expected comma")
        .assert_stderr_contains(".claude/settings.json:2:");
    // The program's own folder, led elsewhere.
    place.write("into/.claude/settings.json", "{}");
    symlink(place.path("elsewhere"), place.path("into/.quorate")).unwrap();
    install(&place).assert_code(1).assert_stderr_contains("quorate:profile_target");
    assert_eq!(std::fs::read_dir(place.path("elsewhere")).unwrap().count(), 1);
}

#[test]
fn two_at_once_wait_for_each_other() {
    let place = place();
    let arguments = ["provision", "install", "profile", "--into", "into"];
    let started: Vec<_> = (0..8).map(|_| place.start(&arguments)).collect();
    started.into_iter().for_each(|child| drop(support::finish(child).assert_code(0)));
    assert!(install(&place).assert_code(0).stdout.contains("nothing to do"));
    assert_eq!(place.read("into/.gitignore"), "*.log\ntarget/\n");
}

#[test]
fn a_file_of_two_profiles_is_uninstalled_from_the_last_to_the_first() {
    let place = place();
    let before = tree(&place);
    install(&place).assert_code(0);
    let other = json!({
        "schema": "agentproto/runtime-profile/v1", "slug": "other", "version": "1",
        "files": [{"src": "more", "dest": ".gitignore", "strategy": "append"}],
    });
    place.write("other/profile.json", other.to_string());
    place.write("other/more", "node_modules/\n");
    provision(&place, &["install", "other"]).assert_code(0);
    provision(&place, &["uninstall", "runtime-profile/standard", "--force"])
        .assert_code(1)
        .assert_stderr_contains("`other` has changed .gitignore after this profile")
        .assert_stderr_contains("quorate provision uninstall other");
    provision(&place, &["uninstall", "other"]).assert_code(0);
    provision(&place, &["uninstall", "runtime-profile/standard"]).assert_code(0);
    assert_eq!(tree(&place), before);
}
