//! Provisioning with a crash between any two steps, with several profiles, and file by file.

#![expect(clippy::disallowed_methods, reason = "tests look at files")]

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use quorate_kernel::ports::provisioning::{Destination, FileMode, Package, PackageFile, Strategy};
use tempfile::TempDir;

use super::change::FileAction;
use super::install::{self, Goal};
use super::target::{Step, Target};
use super::{Error, ProvisionOutcome, ProvisionRequest, codes};
use crate::provision::change::Drift;
use crate::provision::status;

const REAL: ProvisionRequest = ProvisionRequest { into: None, dry_run: false, force: false };
const FORCED: ProvisionRequest = ProvisionRequest { into: None, dry_run: false, force: true };
const DRY: ProvisionRequest = ProvisionRequest { into: None, dry_run: true, force: false };

/// Every file and folder below a folder, with bytes and permissions.
type Tree = BTreeMap<String, Option<(Vec<u8>, u32)>>;

fn tree(root: &Path) -> Tree {
    fn below(root: &Path, dir: &Path, tree: &mut Tree) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                tree.insert(name, None);
                below(root, &path, tree);
            } else {
                let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
                tree.insert(name, Some((std::fs::read(&path).unwrap(), mode)));
            }
        }
    }
    let mut tree = Tree::new();
    below(root, root, &mut tree);
    tree
}

/// [`tree`] without the program's own folder.
fn theirs(root: &Path) -> Tree {
    tree(root).into_iter().filter(|(path, _)| path != ".quorate" && !path.starts_with(".quorate/")).collect()
}

fn piece(dest: &str, strategy: Strategy, bytes: &str) -> PackageFile {
    let mode = if dest.ends_with(".sh") { FileMode::Executable } else { FileMode::Plain };
    let bytes = bytes.as_bytes().into();
    PackageFile {
        dest: Destination::parse(dest).unwrap(),
        strategy,
        mode,
        bytes,
        source: format!("p/{dest}"),
    }
}

fn package(version: &str, pieces: Vec<PackageFile>) -> Package {
    Package::new("runtime-profile/standard", version, pieces).unwrap()
}

fn first() -> Package {
    package(
        "0.1.0",
        vec![
            piece(".claude/agents/reviewer.md", Strategy::Overwrite, "Review.\n"),
            piece("README.md", Strategy::Overwrite, "# From the profile\n"),
            piece(".claude/hooks/check.sh", Strategy::Preserve, "exit 0\n"),
            piece("notes.md", Strategy::Preserve, "Never seen.\n"),
            piece(
                ".claude/settings.json",
                Strategy::MergeJsonDeep,
                "{\"allow\": [\"ls\"], \"mode\": \"auto\"}\n",
            ),
            piece(".mcp.json", Strategy::MergeJsonDeep, "{\"servers\": {\"a\": 1}}\n"),
            piece(".gitignore", Strategy::Append, "target/\n"),
            piece("CLAUDE.md", Strategy::Append, "Be kind.\n"),
            piece("gone/later.md", Strategy::Overwrite, "only in the first\n"),
        ],
    )
}

fn second() -> Package {
    package(
        "0.2.0",
        vec![
            piece(".claude/agents/reviewer.md", Strategy::Overwrite, "Review well.\n"),
            piece("README.md", Strategy::Overwrite, "# From the profile, again\n"),
            piece(".claude/hooks/check.sh", Strategy::Overwrite, "exit 1\n"),
            piece("notes.md", Strategy::Preserve, "Never seen.\n"),
            piece(".claude/settings.json", Strategy::MergeJsonDeep, "{\"allow\": [\"cat\"], \"new\": {}}\n"),
            piece(".mcp.json", Strategy::Overwrite, "{}\n"),
            piece(".gitignore", Strategy::Append, "target/\nout/\n"),
            piece("CLAUDE.md", Strategy::Append, "Be kind and short.\n"),
            piece("docs/new.md", Strategy::Overwrite, "new\n"),
        ],
    )
}

/// A folder that has files already.
fn place() -> (TempDir, Target) {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str, mode: u32| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    write("README.md", "# Mine\n", 0o640);
    write("notes.md", "mine", 0o600);
    write(".claude/settings.json", "{\n\t\"mode\": \"ask\",\n\t\"allow\": []\n}", 0o600);
    write(".gitignore", "*.log", 0o644);
    let files = Target::open(dir.path()).unwrap();
    (dir, files)
}

const AT: &str = "2026-01-01T00:00:00.000Z";

fn install_goal(package: &Package) -> Goal<'_> {
    Goal::Install { package, from: "p", at: AT }
}

const UNINSTALL: Goal<'_> = Goal::Uninstall { slug: "runtime-profile/standard" };

fn put(files: &Target, package: &Package, how: &ProvisionRequest) -> Result<ProvisionOutcome, Error> {
    install::run(files, ".", install_goal(package), how)
}

fn out(files: &Target, how: &ProvisionRequest) -> Result<ProvisionOutcome, Error> {
    install::run(files, ".", UNINSTALL, how)
}

/// Performs some of the steps, and leaves half of the next write behind. Returns whether these were all steps.
fn crash(dir: &TempDir, files: &Target, goal: Goal<'_>, after: usize) -> bool {
    let (_, steps) = install::plan(files, ".", goal, &REAL).unwrap_or_else(|error| panic!("{error}"));
    for step in steps.iter().take(after) {
        files.perform(step).unwrap_or_else(|error| panic!("{step:?}: {error}"));
    }
    if let Some(Step::Write(path, bytes, _)) = steps.get(after) {
        let part = dir.path().join(path).with_file_name(".quorate-part");
        std::fs::write(part, &bytes[..bytes.len() / 2]).unwrap();
    }
    after >= steps.len()
}

#[track_caller]
fn done(outcome: Result<ProvisionOutcome, Error>) -> ProvisionOutcome {
    let outcome = outcome.unwrap_or_else(|error| panic!("{:?}", error.report));
    assert!(!outcome.report.has_refusals(), "{:?}", outcome.report);
    outcome
}

fn codes_of(outcome: &ProvisionOutcome) -> Vec<&'static str> {
    outcome.report.refusals.iter().map(|refusal| refusal.code.as_str()).collect()
}

fn action(outcome: &ProvisionOutcome, dest: &str) -> FileAction {
    outcome
        .files
        .iter()
        .find(|outcome_file| outcome_file.dest == dest)
        .map(|outcome_file| outcome_file.action)
        .expect(dest)
}

/// The content of the folder after an installation without a crash.
fn expected(packages: &[Package]) -> Tree {
    let (dir, files) = place();
    for package in packages {
        done(put(&files, package, &REAL));
    }
    theirs(dir.path())
}

#[test]
fn installing_and_uninstalling_leave_no_trace() {
    let (dir, files) = place();
    let before = tree(dir.path());
    done(put(&files, &first(), &DRY));
    assert_eq!(tree(dir.path()), before, "a dry run changes nothing");
    done(put(&files, &first(), &REAL));
    let installed = tree(dir.path());
    assert_eq!(
        installed[".claude/settings.json"],
        Some((b"{\n\t\"mode\": \"auto\",\n\t\"allow\": [\"ls\"]\n}".to_vec(), 0o600))
    );
    assert_eq!(installed[".gitignore"], Some((b"*.log\ntarget/\n".to_vec(), 0o644)));
    assert_eq!(installed["README.md"], Some((b"# From the profile\n".to_vec(), 0o640)));
    assert_eq!(installed["notes.md"], before["notes.md"]);
    assert_eq!(installed[".claude/hooks/check.sh"].as_ref().map(|file| file.1 & 0o111), Some(0o111));
    assert!(done(put(&files, &first(), &REAL)).idle);
    assert_eq!(tree(dir.path()), installed, "a second time changes nothing, not even what is remembered");
    done(out(&files, &DRY));
    assert_eq!(tree(dir.path()), installed);
    done(out(&files, &REAL));
    assert_eq!(tree(dir.path()), before);
}

#[test]
fn an_upgrade_leads_to_what_the_new_version_brings_and_back() {
    let (dir, files) = place();
    let before = tree(dir.path());
    done(put(&files, &first(), &REAL));
    let outcome = done(put(&files, &second(), &REAL));
    assert_eq!(outcome.previous.as_deref(), Some("0.1.0"));
    assert_eq!(theirs(dir.path()), expected(&[second()]), "as if there had been no other version");
    assert!(done(put(&files, &second(), &REAL)).idle);
    done(out(&files, &REAL));
    assert_eq!(tree(dir.path()), before);
}

#[test]
fn after_a_crash_the_next_command_completes_an_install() {
    let fresh = expected(&[first()]);
    let upgraded = expected(&[first(), second()]);
    // The state before the crash: nothing installed, or the first version.
    for (earlier, package, after) in [(None, first(), &fresh), (Some(first()), second(), &upgraded)] {
        for steps in 0.. {
            let crashed = || {
                let (dir, files) = place();
                let before = theirs(dir.path());
                if let Some(earlier) = &earlier {
                    done(put(&files, earlier, &REAL));
                }
                let whole = crash(&dir, &files, install_goal(&package), steps);
                (dir, files, before, whole)
            };
            let (dir, files, _, whole) = crashed();
            done(put(&files, &package, &REAL));
            assert_eq!(&theirs(dir.path()), after, "install after {steps} steps");
            assert!(done(put(&files, &package, &REAL)).idle);
            let (dir, files, before, _) = crashed();
            // Before the setup is written, there is nothing to uninstall.
            let _ = out(&files, &REAL);
            assert_eq!(theirs(dir.path()), before, "uninstall after {steps} steps");
            if whole {
                break;
            }
        }
    }
}

#[test]
fn after_a_crash_the_next_command_completes_an_uninstall() {
    let installed = expected(&[first()]);
    for steps in 0.. {
        let mut whole = false;
        for again in [true, false] {
            let (dir, files) = place();
            let before = theirs(dir.path());
            done(put(&files, &first(), &REAL));
            whole = crash(&dir, &files, UNINSTALL, steps);
            if again {
                let _ = out(&files, &REAL);
                assert_eq!(theirs(dir.path()), before, "uninstall after {steps} steps");
            } else {
                done(put(&files, &first(), &REAL));
                assert_eq!(theirs(dir.path()), installed, "install after {steps} steps");
            }
        }
        if whole {
            break;
        }
    }
}

#[test]
fn an_edit_after_a_crash_is_drift() {
    let (dir, files) = place();
    done(put(&files, &first(), &REAL));
    let (_, steps) = install::plan(&files, ".", install_goal(&second()), &REAL).unwrap();
    let begun = steps
        .iter()
        .position(|step| matches!(step, Step::Write(path, ..) if path.ends_with(".json")))
        .expect("a setup")
        + 1;
    crash(&dir, &files, install_goal(&second()), begun);
    std::fs::write(dir.path().join("README.md"), "# Edited\n").unwrap();
    let standing = status::status(&files, ".", None).unwrap();
    assert!(!standing.profiles[0].holds);
    assert!(standing.report.refusals[0].body.message.contains("was interrupted"));
    let outcome = put(&files, &second(), &REAL).unwrap();
    assert_eq!(codes_of(&outcome), ["quorate:profile_drift"]);
}

#[test]
fn edits_are_found_and_stay_unless_forced() {
    let (dir, files) = place();
    let before = theirs(dir.path());
    done(put(&files, &first(), &REAL));
    let installed = tree(dir.path());
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("README.md", "# Edited\n");
    write(".claude/settings.json", "{\"mode\": \"plan\", \"allow\": [\"ls\"]}");
    write("CLAUDE.md", "Be rude.\n");
    std::fs::remove_file(dir.path().join(".claude/agents/reviewer.md")).unwrap();
    let edited = tree(dir.path());
    let outcome = put(&files, &first(), &REAL).unwrap();
    assert_eq!(codes_of(&outcome), ["quorate:profile_drift"; 3]);
    assert_eq!(tree(dir.path()), edited, "nothing is written");
    let outcome_file = outcome.files.iter().find(|outcome_file| outcome_file.dest == "README.md").unwrap();
    assert!(outcome_file.diff.contains("-# From the profile\n+# Edited\n"), "{}", outcome_file.diff);
    assert_eq!(action(&outcome, ".claude/agents/reviewer.md"), FileAction::PutBack);
    assert_eq!(codes_of(&put(&files, &second(), &REAL).unwrap()).len(), 3);

    done(put(&files, &first(), &FORCED));
    let forced = tree(dir.path());
    for name in ["README.md", ".claude/agents/reviewer.md"] {
        assert_eq!(forced[name], installed[name]);
    }
    assert_eq!(forced["CLAUDE.md"].as_ref().unwrap().0, b"Be rude.\nBe kind.\n");
    let aside: Vec<&Vec<u8>> = forced
        .iter()
        .filter(|(path, _)| path.starts_with(".quorate/aside/"))
        .filter_map(|(_, file)| file.as_ref().map(|file| &file.0))
        .collect();
    assert!(aside.contains(&&b"# Edited\n".to_vec()) && aside.len() >= 2, "{aside:?}");
    done(put(&files, &first(), &REAL));
    done(out(&files, &REAL));
    let after = theirs(dir.path());
    assert_eq!(after["README.md"], before["README.md"]);
    assert_eq!(after["CLAUDE.md"].as_ref().unwrap().0, b"Be rude.\n");
}

#[test]
fn uninstalling_keeps_what_others_have_put_into_shared_files() {
    let (dir, files) = place();
    done(put(&files, &first(), &REAL));
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write(
        ".claude/settings.json",
        "{\n\t\"mode\": \"auto\",\n\t\"allow\": [\"ls\", \"rm\"],\n\t\"mine\": 1\n}",
    );
    write(".gitignore", "*.log\ntarget/\n*.tmp\n");
    write(".mcp.json", "{\"servers\": {\"a\": 2}}");
    write(".claude/hooks/check.sh", "exit 7\n");
    assert!(
        done(put(&files, &first(), &FORCED))
            .files
            .iter()
            .any(|outcome_file| outcome_file.action == FileAction::Change)
    );
    write(".mcp.json", "{\"servers\": {\"a\": 3, \"b\": 1}}");
    let outcome = done(out(&files, &REAL));
    let after = theirs(dir.path());
    let text = |name: &str| String::from_utf8(after[name].as_ref().unwrap().0.clone()).unwrap();
    assert_eq!(
        text(".claude/settings.json"),
        "{\n\t\"mode\": \"ask\",\n\t\"allow\": [ \"rm\"],\n\t\"mine\": 1\n}"
    );
    assert_eq!(text(".gitignore"), "*.log\n*.tmp\n");
    assert_eq!(text(".claude/hooks/check.sh"), "exit 7\n");
    assert_eq!(text(".mcp.json"), "{\"servers\": {\"a\": 3, \"b\": 1}}");
    let notes: Vec<&String> = outcome.files.iter().flat_map(|outcome_file| &outcome_file.notes).collect();
    assert!(notes.iter().any(|note| note.contains("`servers.a` was changed since and stays")), "{notes:?}");
}

#[test]
fn an_edited_file_of_the_profile_is_not_taken_out_unless_forced() {
    let (dir, files) = place();
    let before = theirs(dir.path());
    done(put(&files, &first(), &REAL));
    std::fs::write(dir.path().join("README.md"), "# Edited\n").unwrap();
    let outcome = out(&files, &REAL).unwrap();
    assert_eq!(codes_of(&outcome), ["quorate:profile_drift"]);
    assert!(!done(put(&files, &first(), &FORCED)).idle);
    std::fs::write(dir.path().join("README.md"), "# Edited again\n").unwrap();
    std::fs::write(dir.path().join(".gitignore"), "*.log\ntarget/\nmine/\n").unwrap();
    done(out(&files, &FORCED));
    let mut after = theirs(dir.path());
    let ignore = after.insert(".gitignore".to_owned(), before[".gitignore"].clone());
    assert_eq!(ignore.unwrap().unwrap().0, b"*.log\nmine/\n", "what is not in the way stays even then");
    assert_eq!(after, before);
    let aside = tree(dir.path()).into_iter().filter(|(path, _)| path.starts_with(".quorate/aside/"));
    assert_eq!(aside.count(), 2, "both edits are kept");
}

#[test]
fn unusable_files_are_reported_at_once_and_nothing_is_written() {
    let (dir, files) = place();
    let path = |name: &str| dir.path().join(name);
    std::fs::write(path(".claude/settings.json"), "{\n  mine\n}").unwrap();
    std::fs::write(path(".gitignore"), b"\xff\xfe").unwrap();
    std::fs::create_dir(path("README.md.d")).unwrap();
    std::fs::create_dir(path("CLAUDE.md")).unwrap();
    std::os::unix::fs::symlink("notes.md", path("gone")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", path(".mcp.json")).unwrap();
    let before = tree(dir.path());
    let outcome = put(&files, &first(), &FORCED).unwrap();
    assert_eq!(codes_of(&outcome), ["quorate:profile_target"; 5]);
    let messages: Vec<&str> =
        outcome.report.refusals.iter().map(|refusal| refusal.body.message.as_str()).collect();
    for says in [
        "not JSON",
        "not UTF-8",
        "CLAUDE.md is a folder",
        "gone/later.md is reached through a symlink",
        ".mcp.json is a symlink",
    ] {
        assert!(messages.iter().any(|message| message.contains(says)), "{says}: {messages:?}");
    }
    let place = outcome.report.refusals.iter().find_map(|refusal| refusal.body.place.as_ref()).unwrap();
    assert_eq!((&*place.file, place.span.start), (".claude/settings.json", 4));
    assert_eq!(tree(dir.path()), before);
}

#[test]
fn a_setup_that_was_tampered_with_is_refused() {
    let (dir, files) = place();
    done(put(&files, &first(), &REAL));
    let ledger = dir.path().join(".quorate/provisioned/runtime-profile%2Fstandard.json");
    let text = std::fs::read_to_string(&ledger).unwrap();
    for (from, to) in [
        ("\"README.md\"", "\"../README.md\""),
        ("\"v\": 1", "\"v\": 2"),
        ("{", "["),
        ("/standard\"", "/other\""),
    ] {
        std::fs::write(&ledger, text.replacen(from, to, 1)).unwrap();
        let error = out(&files, &REAL).expect_err(to);
        assert_eq!(error.report.refusals[0].code, codes::SETUP_CORRUPT, "{to}");
    }
    std::fs::write(ledger, text).unwrap();
    let before = dir.path().join(".quorate/provisioned/runtime-profile%2Fstandard/before");
    for stored in before.read_dir().unwrap() {
        std::fs::write(stored.unwrap().path(), "other").unwrap();
    }
    let error = out(&files, &REAL).expect_err("kept contents are not what they were");
    assert_eq!(error.report.refusals[0].code, codes::SETUP_CORRUPT);
}

#[test]
fn a_file_that_can_be_run_is_made_so_again() {
    let (dir, files) = place();
    done(put(&files, &first(), &REAL));
    let hook = ".claude/hooks/check.sh";
    let path = dir.path().join(hook);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(action(&done(put(&files, &first(), &REAL)), hook), FileAction::Permit);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o750);
}

const SETTINGS: &str = ".claude/settings.json";

/// A profile that merges a text into the settings, and the time of its installation.
fn profile(slug: &str, text: &str) -> Package {
    Package::new(slug, "1", vec![piece(SETTINGS, Strategy::MergeJsonDeep, text)]).unwrap()
}

fn all() -> [Package; 3] {
    [
        profile("a", r#"{"model": "a", "allow": ["Read", "Bash"], "env": {"X": "1", "Y": "1"}}"#),
        profile("b", r#"{"model": "b", "allow": ["Read", "Edit"], "env": {"X": "2"}, "mode": "auto"}"#),
        profile("c", r#"{"model": "a", "allow": ["Bash", "Edit"], "env": {"Z": "3"}, "mode": "auto"}"#),
    ]
}

fn install_one(files: &Target, package: &Package) {
    done(put(files, package, &REAL));
}

fn uninstall_one(files: &Target, slug: &str) -> ProvisionOutcome {
    install::run(files, ".", Goal::Uninstall { slug }, &REAL).unwrap_or_else(|error| panic!("{error}"))
}

fn settings(dir: &TempDir) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(dir.path().join(SETTINGS)).unwrap()).unwrap()
}

#[test]
fn two_profiles_never_block_each_other() {
    let (dir, files) = place();
    let other = ".claude/other.json";
    let merged = |slug: &str, version: &str, dests: &[&str]| {
        let text = format!("{{\"{slug}\": 1}}");
        let pieces = dests.iter().map(|dest| piece(dest, Strategy::MergeJsonDeep, &text)).collect();
        Package::new(slug, version, pieces).unwrap()
    };
    let before = theirs(dir.path());
    install_one(&files, &merged("a", "1", &[SETTINGS]));
    install_one(&files, &merged("b", "1", &[SETTINGS, other]));
    // `b` is later in the settings, so `a` must not become later in the other file.
    let refused = put(&files, &merged("a", "2", &[SETTINGS, other]), &REAL).unwrap();
    assert_eq!(codes_of(&refused), ["quorate:profile_target"]);
    assert!(
        refused.report.refusals[0].body.help.clone().unwrap().contains("uninstall b"),
        "{:?}",
        refused.report
    );
    for slug in ["b", "a"] {
        assert!(!uninstall_one(&files, slug).report.has_refusals());
    }
    assert_eq!(theirs(dir.path()), before);
}

const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

#[test]
fn profiles_of_one_file_are_uninstalled_from_the_last_to_the_first() {
    for order in ORDERS {
        let (dir, files) = place();
        let mut states = vec![theirs(dir.path())];
        for which in order {
            install_one(&files, &all()[which]);
            states.push(theirs(dir.path()));
            assert!(status::status(&files, ".", None).unwrap().profiles.iter().all(|profile| profile.holds));
        }
        for (at, which) in order.iter().enumerate().rev() {
            for earlier in &order[..at] {
                let refused = uninstall_one(&files, &all()[*earlier].slug);
                assert_eq!(codes_of(&refused), ["quorate:profile_target"], "{order:?}");
                let help = refused.report.refusals[0].body.help.clone().unwrap();
                assert!(help.contains(&format!("uninstall {}", all()[*which].slug)), "{help}");
            }
            assert_eq!(theirs(dir.path()), states[at + 1], "a refusal changes nothing");
            assert!(!uninstall_one(&files, &all()[*which].slug).report.has_refusals());
            assert_eq!(theirs(dir.path()), states[at], "{order:?}");
        }
    }
}

#[test]
fn a_file_that_a_later_profile_changed_is_upgraded_after_it() {
    let (dir, files) = place();
    install_one(&files, &all()[0]);
    install_one(&files, &all()[1]);
    let before = tree(dir.path());
    assert!(done(put(&files, &all()[0], &REAL)).idle);
    let next = profile("a", r#"{"model": "next"}"#);
    for how in [&REAL, &FORCED] {
        assert_eq!(codes_of(&put(&files, &next, how).unwrap()), ["quorate:profile_target"]);
    }
    assert_eq!(tree(dir.path()), before);
    uninstall_one(&files, "b");
    install_one(&files, &next);
    install_one(&files, &all()[1]);
    assert_eq!(settings(&dir)["model"], "b");
    uninstall_one(&files, "b");
    assert_eq!(settings(&dir)["model"], "next");
}

#[test]
fn an_edit_in_between_stays() {
    let (dir, files) = place();
    (0..3).for_each(|at| install_one(&files, &all()[at]));
    let mut edited = settings(&dir);
    edited["mine"] = 1.into();
    edited["allow"].as_array_mut().unwrap().push("Mine".into());
    std::fs::write(dir.path().join(SETTINGS), edited.to_string()).unwrap();
    for slug in ["c", "b", "a"] {
        assert!(!uninstall_one(&files, slug).report.has_refusals());
    }
    let expected = serde_json::json!({"mode": "ask", "allow": ["Mine"], "mine": 1});
    assert_eq!(settings(&dir), expected);
}

#[test]
fn what_another_profile_has_set_is_no_edit_and_it_is_named() {
    let (dir, files) = place();
    (0..2).for_each(|at| install_one(&files, &all()[at]));
    let standings = status::status(&files, ".", Some("a")).unwrap().profiles;
    let file = &standings[0].files[0];
    assert_eq!((file.stands, &*file.shared), (Drift::EditedAround, &["b".to_owned()][..]));
    assert!(standings[0].holds);
    let mut edited = settings(&dir);
    edited["env"]["Y"] = "mine".into();
    std::fs::write(dir.path().join(SETTINGS), edited.to_string()).unwrap();
    let of = |slug| status::status(&files, ".", Some(slug)).unwrap().profiles[0].files[0].stands;
    assert_eq!((of("a"), of("b")), (Drift::Edited, Drift::EditedAround));
}

#[test]
fn two_profiles_share_a_merged_file_and_not_a_whole_one() {
    let other = |pieces| Package::new("other", "1", pieces).unwrap();
    let (dir, files) = place();
    let before = theirs(dir.path());
    done(put(&files, &first(), &REAL));
    let whole = put(&files, &other(vec![piece("README.md", Strategy::Overwrite, "x")]), &REAL).unwrap();
    assert_eq!(codes_of(&whole), ["quorate:profile_target"]);
    let shared = other(vec![
        piece(".claude/settings.json", Strategy::MergeJsonDeep, "{\"allow\": [\"cat\"], \"other\": 1}"),
        piece(".gitignore", Strategy::Append, "node_modules/\n"),
    ]);
    done(put(&files, &shared, &REAL));
    assert!(done(put(&files, &first(), &REAL)).idle);
    assert_eq!(codes_of(&out(&files, &FORCED).unwrap()), ["quorate:profile_target"; 2]);
    uninstall_one(&files, "other");
    done(out(&files, &REAL));
    assert_eq!(theirs(dir.path()), before);
}

/// A setup of an earlier version of the program, with its contents.
#[test]
fn a_setup_without_layers_is_read() {
    let (dir, files) = place();
    let before = tree(dir.path());
    done(put(&files, &first(), &REAL));
    let path = dir.path().join(".quorate/provisioned/runtime-profile%2Fstandard.json");
    let mut setup: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    for entry in setup["files"].as_object_mut().unwrap().values_mut() {
        let record = entry["installed"].as_object_mut().unwrap();
        record.remove("layer");
        record.insert("mode".to_owned(), "plain".into());
        record.insert("added".to_owned(), "0".repeat(64).into());
    }
    std::fs::write(&path, setup.to_string()).unwrap();
    assert!(done(put(&files, &first(), &REAL)).idle);
    // A change that an earlier version of the program began is not guessed.
    let entry = setup["files"]["README.md"].as_object_mut().unwrap();
    entry.insert("intent".to_owned(), serde_json::json!({"out": {"leaves": null}}));
    let interrupted = setup.to_string();
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, interrupted).unwrap();
    assert_eq!(out(&files, &REAL).unwrap_err().report.refusals[0].code, codes::SETUP_CORRUPT);
    std::fs::write(&path, whole).unwrap();
    done(out(&files, &REAL));
    assert_eq!(tree(dir.path()), before);
}
