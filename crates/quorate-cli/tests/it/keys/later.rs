//! Keys that came later than a run: after a rotation, of a colleague, and keys that end while a run continues. What is written
//! verifies, and what would not is refused before it is written (D10).

use super::*;
use support::council::{all_ship, all_ship_except};

/// A place whose reviews are signed.
fn signed(answers: &Value) -> TestDir {
    let place = TestDir::scripted(answers);
    place.write("quorate.toml", format!("{}[keys]\nsign = \"required\"\n", place.read("quorate.toml")));
    init(&place);
    place
}

/// What two people share: the second one has a key of their own, in the same keyring.
fn colleague(place: &TestDir) -> SecretKey {
    let theirs = SecretKey::generate();
    let entry = format!("\n[[keys]]\npublic = \"{}\"\nlabel = \"ben\"\n", theirs.public());
    place.write("keyring.toml", place.read("keyring.toml") + &entry);
    theirs
}

fn overrides(run: &str) -> [&str; 8] {
    ["override", run, "--by", "ada", "--verdict", "hold", "--reason", "Not yet."]
}

fn run_as(place: &TestDir, key: &SecretKey, arguments: &[&str]) -> CommandOutput {
    let mut command = place.command(arguments);
    command.env("QUORATE_SIGNING_KEY", key.to_text().as_str());
    finish(command.spawn().expect("the binary runs"))
}

/// How many records a run has, and how many of them add keys.
fn count(place: &TestDir, run: &str) -> (usize, usize) {
    let records = records::records(&place.path(LEDGER), run);
    (records.len(), records.iter().filter(|one| one.kind == "keyring").count())
}

#[track_caller]
fn verifies(place: &TestDir) {
    place.run(&["ledger", "verify"]).assert_code(0);
}

#[test]
fn an_override_after_a_rotation_verifies_here_and_elsewhere() {
    // D10
    let place = signed(&all_ship());
    let run = records::text(&place.review(&["draft.md"])["run"]);
    let spent = || place.run(&["show", &run, "--format", "json"]).assert_code(0).json()["spent"].clone();
    let before = spent();
    place.run(&["keys", "rotate"]).assert_code(0);
    place.run(&overrides(&run)).assert_code(0);
    assert_eq!(count(&place, &run).1, 1);
    assert_eq!(spent(), before, "a later key adds no record to the run");
    verifies(&place);
    // And after another one: the first key vouches for the second, and that for the third.
    place.run(&["keys", "rotate"]).assert_code(0);
    place.run(&["keys", "rotate"]).assert_code(0);
    place.run(&overrides(&run)).assert_code(0);
    place.run(&overrides(&run)).assert_code(0);
    assert_eq!(count(&place, &run).1, 2, "once for each key that signs");
    verifies(&place);
    place.run(&["show", &run]).assert_code(0);
    place.run(&["replay", &run]).assert_code(0);
    // An export has everything that a verifier needs.
    place.write("ledger.pub", place.run(&["keys", "export", "ledger"]).assert_code(0).stdout);
    for (file, arguments) in [("all.jsonl", &[][..]), ("run.jsonl", &["--run", &run])] {
        place.run(&[&["ledger", "export", "--out", file], arguments].concat()).assert_code(0);
        let elsewhere = TestDir::with(file, place.read(file));
        elsewhere.write("ledger.pub", place.read("ledger.pub"));
        elsewhere.run(&["ledger", "import", file, "--key", "ledger.pub"]).assert_code(0);
        verifies(&elsewhere);
    }
    let proof = place.run(&["ledger", "prove", &run]).assert_code(0).stdout;
    place.write("proof.json", proof);
    place.run(&["ledger", "check-proof", "proof.json", "--key", "ledger.pub"]).assert_code(0);
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/verify_ledger.py");
    for arguments in [&["all.jsonl"][..], &["run.jsonl"], &["--proof", "proof.json"]] {
        let mut command = std::process::Command::new("python3");
        let ran =
            command.arg(&script).args(arguments).args(["--key", "ledger.pub"]).current_dir(place.root());
        let Ok(ran) = ran.output().map(CommandOutput::from_output) else {
            eprintln!("SKIPPED: there is no `python3`");
            return;
        };
        match ran.stderr.contains("needs the package") {
            true => eprintln!("SKIPPED: no python3 with cryptography"),
            false => drop(ran.assert_code(0)),
        }
    }
}

#[test]
fn a_run_that_is_resumed_after_a_rotation_verifies() {
    // D10
    let place = signed(&all_ship_except(
        json!({"r1": {"fails": true}, "r1/skeptic": "no JSON", "r2/skeptic": "no JSON"}),
    ));
    place.run(&["review", "draft.md"]);
    let run = place.only_run();
    place.answers(&all_ship());
    place.run(&["keys", "rotate"]).assert_code(0);
    place.run(&["resume", &run]).assert_code(0);
    assert_eq!(count(&place, &run).1, 1);
    verifies(&place);
    // The same for an assembly.
    let place = TestDir::new();
    board(&place, "audit: {signing: required}\n");
    init(&place);
    assembly::answers(&place, &json!({"chair": {"fails": true}}));
    let run = records::text(&convene(&place).json()["run"]);
    board(&place, "audit: {signing: required}\n");
    place.run(&["keys", "rotate"]).assert_code(0);
    place.run(&["resume", &run]).assert_code(0);
    assert_eq!(count(&place, &run).1, 1);
    verifies(&place);
}

#[test]
fn a_colleague_goes_on_once_the_runs_key_vouches_for_theirs() {
    // D10
    let place = signed(&all_ship());
    let run = records::text(&place.review(&["draft.md"])["run"]);
    let theirs = colleague(&place);
    let before = count(&place, &run);
    let refused = run_as(&place, &theirs, &overrides(&run)).assert_code(5);
    refused
        .assert_stderr_contains("quorate:signing_key_missing")
        .assert_stderr_contains("quorate keys vouch");
    assert_eq!(count(&place, &run), before, "nothing was written");
    verifies(&place);
    let id = theirs.public().id().to_string();
    // A key cannot vouch for itself, for a missing key, or without the right to sign.
    run_as(&place, &theirs, &["keys", "vouch", &id]).assert_code(5);
    run_as(&place, &SecretKey::generate(), &["keys", "vouch", &id]).assert_code(5);
    place.run(&["keys", "vouch", "zzz"]).assert_code(4);
    let vouched = place.run(&["keys", "vouch", &id, "--format", "json"]).assert_code(0).json();
    assert_eq!(vouched["key"], json!(id));
    run_as(&place, &theirs, &overrides(&run)).assert_code(0);
    assert_eq!(count(&place, &run), (before.0 + 3, 1));
    verifies(&place);
    // An entry by a person without one of the keyring's keys vouches for nothing.
    let stranger = SecretKey::generate();
    let forged = Voucher::sign(SigningContext::VOUCHER, &stranger, &stranger.public(), 1_795_000_000_000);
    let forged = Voucher { by: records::text(&keys(&place)[1]["id"]), ..forged };
    let entry =
        format!("\n[[keys]]\npublic = \"{}\"\nvouched = [\"{}\"]\n", stranger.public(), forged.to_text());
    place.write("keyring.toml", place.read("keyring.toml") + &entry);
    run_as(&place, &stranger, &overrides(&run))
        .assert_code(5)
        .assert_stderr_contains("quorate:signing_key_missing");
    verifies(&place);
}

#[test]
fn a_key_that_ends_while_a_run_goes_on_signs_no_more_of_it() {
    // D10
    let place = TestDir::scripted_slowly(&all_ship(), "delay = \"400ms\"");
    place.write("quorate.toml", format!("{}[keys]\nsign = \"required\"\n", place.read("quorate.toml")));
    let id = records::text(&init(&place)["signing"]["id"]);
    let ring = place.read("keyring.toml");
    for end in [
        "revoked_at = \"2020-01-01T00:00:00Z\"",
        "not_before = \"2999-01-01T00:00:00Z\"",
        "not_after = 2020-01-01",
    ] {
        place.write("keyring.toml", &ring);
        let there = || records::runs(&place.path(LEDGER)).len();
        let before = there();
        let child = place.start(&["review", "draft.md"]);
        support::wait_until(std::time::Duration::from_secs(30), "the run is open", || there() > before);
        let begun = "not_before";
        let changed = match end.starts_with(begun) {
            true => ring.replacen(begun, &format!("{end} #"), 1),
            false => ring.replacen(begun, &format!("{end}\n{begun}"), 1).replacen(
                "\nnot_before",
                "\n# not_before",
                1,
            ),
        };
        place.write("keyring.toml", changed);
        let ran = finish(child).assert_code(5);
        ran.assert_stderr_contains("quorate:signing_key_missing").assert_stderr_contains(&id);
        place.write("keyring.toml", &ring);
        verifies(&place);
    }
}

#[test]
fn a_revoked_key_vouches_for_no_key() {
    // D10
    let place = signed(&all_ship());
    let run = records::text(&place.review(&["draft.md"])["run"]);
    let first = records::text(&keys(&place)[1]["id"]);
    place.run(&["keys", "rotate"]).assert_code(0);
    place.run(&["keys", "revoke", &first, "--at", "2099-01-01"]).assert_code(0);
    verifies(&place);
    // Revoked from the rotation on, the key no longer vouches for its successor.
    let ring = place.read("keyring.toml");
    let vouched = ring.lines().find(|line| line.starts_with("vouched")).expect("it is vouched for");
    let at = vouched.split(' ').nth(3).expect("a time");
    place.run(&["keys", "revoke", &first, "--at", at]).assert_code(0);
    let before = count(&place, &run);
    place.run(&overrides(&run)).assert_code(5).assert_stderr_contains("quorate:signing_key_missing");
    assert_eq!(count(&place, &run), before);
    verifies(&place);
}

#[test]
fn a_rotation_says_what_counts_of_a_revoked_key() {
    let place = signed(&all_ship());
    let keyring = place.read("keyring.toml");
    let line = keyring.lines().find_map(|line| line.strip_prefix("public = ")).expect("a key");
    let text = line.trim_matches('"').to_owned();
    assert!(text.starts_with("quorate:ed25519:public:"), "{text}");
    place.run(&["keys", "revoke", &text, "--at", "10m"]).assert_code(0);
    let rotated = place.run(&["keys", "rotate"]).assert_code(0).stdout;
    assert!(!rotated.contains("stay valid") && rotated.contains("on are invalid"), "{rotated}");
    let again = place.run(&["keys", "rotate"]).assert_code(0).stdout;
    assert!(again.contains("Signatures of the old key stay valid."), "{again}");
}

#[test]
fn a_key_is_vouched_for_by_its_text() {
    let place = signed(&all_ship());
    let theirs = colleague(&place);
    place.run(&["keys", "vouch", &theirs.public().to_string()]).assert_code(0);
    place
        .run(&["keys", "vouch", "quorate:ed25519:public:AAAA"])
        .assert_code(4)
        .assert_stderr_contains("quorate:key_unknown"); // As of a variable that is not set.
    place.run(&["keys", "revoke", ""]).assert_code(4).assert_stderr_contains("quorate:key_unknown");
}
