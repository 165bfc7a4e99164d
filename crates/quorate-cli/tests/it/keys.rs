//! Keys through the real binary: made, listed, replaced and revoked; where the key that signs comes from; and runs that
//! are signed, or refused for want of a key (D3, D9).
mod later;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;

use crate::support;
use crate::support::records;
use quorate_ledger::merkle;
use quorate_ledger::note::Verifier;
use quorate_ledger::signing::{PublicKey, SecretKey, Signature, SigningContext, Voucher};
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Row as _};
use support::{CommandOutput, TestDir, assembly, council, finish};

const SIGNING: &str = ".quorate/keys/signing.ed25519";
const LEDGER: &str = ".quorate/ledger.db";

fn init(place: &TestDir) -> Value {
    place.run(&["keys", "init", "--format", "json"]).assert_code(0).json()
}

fn keys(place: &TestDir) -> Vec<Value> {
    let listed = place.run(&["keys", "list", "--format", "json"]).assert_code(0).json();
    listed["keys"].as_array().expect("a list").clone()
}

/// The states of the keys that sign records or did, by their names.
fn states(place: &TestDir) -> BTreeMap<String, String> {
    let all = keys(place);
    let records = all.iter().filter(|key| key["signs"] != json!("checkpoints"));
    records.map(|key| (records::text(&key["id"]), records::text(&key["state"]))).collect()
}

fn mode(place: &TestDir, name: &str) -> u32 {
    std::fs::metadata(place.path(name)).expect("it is there").permissions().mode() & 0o777
}

/// A voting board whose chair votes yes.
fn board(place: &TestDir, more: &str) {
    assembly::write(place, "voting", &[("chair", "")], more);
    assembly::answers(place, &json!({"chair": assembly::vote_answer("yes")}));
}

fn convene(place: &TestDir) -> CommandOutput {
    assembly::convene(place, "--proposal", &[])
}

/// Checks what a command refused against a code and a part of what it said, wherever it was said.
#[track_caller]
fn refused(ran: &CommandOutput, code: &str, says: &str) {
    assert_eq!(ran.code, 5, "{ran:?}");
    let all = format!("{}{}", ran.stdout, ran.stderr);
    assert!(all.contains(code) && all.contains(says), "{code}, {says}: {ran:?}");
}

fn convene_with(place: &TestDir, variable: &str, value: &str) -> CommandOutput {
    place.write("subject.md", "# A new region\n\nResolution: open it.\n");
    let arguments = ["convene", "ASSEMBLY.md", "--proposal", "subject.md", "--format", "json"];
    finish(place.command(&arguments).env(variable, value).spawn().expect("the binary runs"))
}

/// The signing policy in the first record of a run.
fn audit(place: &TestDir, run: &str) -> Value {
    let records = records::records(&place.path(LEDGER), run);
    records::of_kind(&records, "run.opened")[0]["audit"].clone()
}

/// How many records a run has, and the names of the keys whose signatures hold over each.
fn signatures(place: &TestDir, run: &str) -> (usize, Vec<String>) {
    let known: BTreeMap<String, PublicKey> = keys(place)
        .iter()
        .map(|key| PublicKey::from_text(&records::text(&key["public"])).expect("a key"))
        .map(|key| (key.id().to_string(), key))
        .collect();
    records::block_on(async {
        let options = SqliteConnectOptions::new().filename(place.path(LEDGER)).read_only(true);
        let mut ledger = options.connect().await.expect("it opens");
        let count: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM record WHERE run = ?")
            .bind(run)
            .fetch_one(&mut ledger)
            .await
            .expect("it answers");
        let joined = "SELECT r.head, s.key, s.signature FROM record r JOIN signature s ON s.run = r.run AND s.n = r.n \
                      WHERE r.run = ? ORDER BY r.n";
        let rows = sqlx::query(joined).bind(run).fetch_all(&mut ledger).await.expect("it answers");
        let signer = |row: &sqlx::sqlite::SqliteRow| {
            let (head, key, signature): (String, String, String) = (row.get(0), row.get(1), row.get(2));
            let signature = Signature::from_text(&signature).expect("a signature");
            let leaf = merkle::leaf(head.as_bytes());
            known[&key].verify(SigningContext::RECORD, &leaf, &signature).expect("it holds");
            key
        };
        (usize::try_from(count).expect("a few"), rows.iter().map(signer).collect())
    })
}

/// Holds that every record of a run is signed by one key.
#[track_caller]
fn all_signed_by(place: &TestDir, run: &str, key: &Value) {
    let (count, signers) = signatures(place, run);
    assert!(count > 3);
    assert_eq!(signers, vec![records::text(key); count]);
}

#[test]
fn keys_are_made_once_for_their_owner_alone_and_listed() {
    // D3
    let place = TestDir::new();
    let made = init(&place);
    assert_eq!(
        (&made["ledger"]["new"], &made["signing"]["new"], &made["added"]),
        (&json!(true), &json!(true), &json!(true))
    );
    assert_eq!(
        (mode(&place, ".quorate"), mode(&place, ".quorate/keys"), mode(&place, SIGNING)),
        (0o700, 0o700, 0o600)
    );
    assert_eq!(mode(&place, ".quorate/keys/ledger.ed25519"), 0o600);
    assert_eq!(place.read(".quorate/.gitignore"), "*\n");
    let (secret, ring) = (place.read(SIGNING), place.read("keyring.toml"));

    let again = init(&place);
    assert_eq!((&again["signing"]["new"], &again["added"]), (&json!(false), &json!(false)));
    assert_eq!(again["signing"]["id"], made["signing"]["id"]);
    assert_eq!((place.read(SIGNING), place.read("keyring.toml")), (secret.clone(), ring));

    let listed = keys(&place);
    assert_eq!(listed.len(), 2);
    assert_eq!(listed[1]["state"], "usable");
    assert_eq!(listed[1]["label"], "ada");
    let public = SecretKey::from_text(&secret).expect("a key").public();
    assert_eq!(place.run(&["keys", "export"]).assert_code(0).stdout, format!("{public}\n"));
    let id = records::text(&listed[1]["id"]);
    assert_eq!(place.run(&["keys", "export", &id[..6]]).assert_code(0).stdout, format!("{public}\n"));
    place
        .run(&["keys", "export", "ledger", "--format", "note"])
        .assert_code(4)
        .assert_stderr_contains("quorate:key_unknown");
    place
        .run(&["keys", "export", "--format", "note"])
        .assert_code(64)
        .assert_stderr_contains("only the ledger's key");
}

#[test]
fn a_rotation_ends_the_old_key_and_keeps_what_people_wrote() {
    // D3
    let place = TestDir::new();
    let first = records::text(&init(&place)["signing"]["id"]);
    let old_secret = place.read(SIGNING);
    let commented = format!("# Mine.\n{}# The end.\n", place.read("keyring.toml"));
    place.write("keyring.toml", &commented);
    let done = place.run(&["keys", "rotate", "--format", "json"]).assert_code(0).json();
    assert_eq!(done["old"], json!(first));
    let after = place.read("keyring.toml");
    assert!(after.starts_with("# Mine.\n") && after.contains("# The end.\n"), "{after}");
    // The old one ends in the millisecond in which the new one begins.
    std::thread::sleep(std::time::Duration::from_millis(2));
    let expected = [(first, "expired".to_owned()), (records::text(&done["new"]), "usable".to_owned())];
    assert_eq!(states(&place), BTreeMap::from(expected));
    let ledger = place.run(&["keys", "rotate", "ledger", "--format", "json"]).assert_code(0).json();
    let retired = keys(&place).into_iter().find(|key| key["id"] == ledger["old"]).expect("it is listed");
    assert_eq!(retired["state"], "retired");
    let seed = old_secret.trim();
    for file in [SIGNING, "keyring.toml", ".quorate/keys/ledger.ed25519"] {
        assert!(!place.read(file).contains(seed), "{file}");
    }
}

#[test]
fn what_was_signed_before_a_rotation_counts_after_it_and_runs_go_on() {
    // D3
    let place = TestDir::new();
    board(&place, "audit: {signing: required}\n");
    let first = init(&place)["signing"]["id"].clone();
    let before = records::text(&convene(&place).assert_code(0).json()["run"]);
    all_signed_by(&place, &before, &first);
    let second = place.run(&["keys", "rotate", "--format", "json"]).assert_code(0).json()["new"].clone();
    let after = records::text(&convene(&place).assert_code(0).json()["run"]);
    all_signed_by(&place, &after, &second);
    all_signed_by(&place, &before, &first);
    assert_eq!(audit(&place, &after)["signer"], second);
    assert_eq!(audit(&place, &after)["keyring"].as_array().map(Vec::len), Some(2));
    place.run(&["replay", &after]).assert_code(0);
}

#[test]
fn required_without_a_usable_key_asks_no_member_and_records_nothing() {
    // D3
    let place = TestDir::new();
    board(&place, "audit: {signing: required}\n");
    refused(&convene(&place), "quorate:signing_key_missing", "does not exist");
    init(&place);
    let ring = place.read("keyring.toml");
    let with = |line: &str| ring.replace("\nnot_before", &format!("\n{line}\n# not_before"));
    for (text, says) in [
        (String::new(), "is not in the keyring"),
        (with("not_after = 2020-01-01"), "may not sign after"),
        (with("not_before = 2999-01-01"), "may not sign before"),
        (with("revoked_at = 2020-01-01"), "is revoked since"),
    ] {
        place.write("keyring.toml", text);
        refused(&convene(&place), "quorate:signing_key_missing", says);
    }
    assert!(place.runs().is_empty());
    place.write("keyring.toml", ring);
    convene(&place).assert_code(0);
}

#[test]
fn optional_signs_where_a_key_is_at_hand_and_none_never() {
    // D3
    let place = TestDir::new();
    board(&place, "audit: {signing: optional, consultations: {retention: \"days:7\"}}\n");
    let run = records::text(&convene(&place).assert_code(0).json()["run"]);
    assert!(signatures(&place, &run).1.is_empty());
    let said = audit(&place, &run);
    assert_eq!(
        (&said["signing"], &said["signer"], &said["keyring"]),
        (&json!("optional"), &Value::Null, &json!([]))
    );
    assert_eq!((&said["retention_days"], &said["keep_consultations"]), (&json!(7), &json!(true)));
    let key = init(&place)["signing"]["id"].clone();
    let run = records::text(&convene(&place).assert_code(0).json()["run"]);
    all_signed_by(&place, &run, &key);
    board(&place, "audit: {signing: none, consultations: {enabled: false}}\n");
    let run = records::text(&convene(&place).assert_code(0).json()["run"]);
    assert!(signatures(&place, &run).1.is_empty());
    assert_eq!(audit(&place, &run)["keep_consultations"], json!(false));
}

#[test]
fn the_key_comes_from_a_variable_a_command_or_a_file_and_is_said_nowhere() {
    // D3, X10
    let place = TestDir::new();
    board(&place, "audit: {signing: required}\n");
    let key = init(&place)["signing"]["id"].clone();
    let secret = place.read(SIGNING);
    std::fs::rename(place.path(SIGNING), place.path("elsewhere")).expect("it moves");
    let mut all = String::new();
    let mut keep = |ran: CommandOutput| {
        all.push_str(&ran.stdout);
        all.push_str(&ran.stderr);
        ran
    };
    refused(&keep(convene(&place)), "quorate:signing_key_missing", "");
    let run = records::text(
        &keep(convene_with(&place, "QUORATE_SIGNING_KEY", &secret)).assert_code(0).json()["run"],
    );
    all_signed_by(&place, &run, &key);
    refused(&keep(convene_with(&place, "QUORATE_SIGNING_KEY", &secret[..40])), "quorate:key_unusable", "");
    let host = place.read("quorate.toml");
    for (source, variable) in [
        ("{file = \"elsewhere\"}", "X"),
        ("{env = \"MY_KEY\"}", "MY_KEY"),
        ("{command = [\"cat\", \"elsewhere\"]}", "X"),
    ] {
        place.write("quorate.toml", format!("{host}[keys]\nsigning = {source}\n"));
        let run = records::text(&keep(convene_with(&place, variable, &secret)).assert_code(0).json()["run"]);
        all_signed_by(&place, &run, &key);
    }
    // A command that prints the key and fails.
    place.write("quorate.toml", format!("{host}[keys]\nsigning = {{command = [\"sh\", \"-c\", \"cat elsewhere; cat elsewhere >&2; exit 1\"]}}\n"));
    refused(&keep(convene(&place)), "", "failed; try it by hand");
    place.write("quorate.toml", format!("{host}[keys]\nsigning = {{file = \"{}\"}}\n", secret.trim()));
    refused(&keep(convene(&place)), "", "is a secret key");
    place.write("quorate.toml", format!("{host}[keys]\nsigning = \"{}\"\n", secret.trim()));
    refused(&keep(convene(&place)), "", "has to be a table");
    let half = &secret.trim()[30..60];
    assert!(!all.contains(half), "{all}");
    for file in [LEDGER, ".quorate/ledger.db-wal", ".quorate/council_log.jsonl"] {
        let bytes = std::fs::read(place.path(file)).unwrap_or_default();
        assert!(!bytes.windows(half.len()).any(|window| window == half.as_bytes()), "{file}");
    }
}

#[test]
fn a_key_that_others_can_read_signs_nothing() {
    let place = TestDir::new();
    board(&place, "audit: {signing: optional}\n");
    init(&place);
    std::fs::set_permissions(place.path(SIGNING), std::fs::Permissions::from_mode(0o640))
        .expect("it changes");
    refused(&convene(&place), "quorate:key_exposed", "chmod go-rwx");
    assert!(place.runs().is_empty());
}

#[test]
fn a_revoked_key_signs_no_more() {
    // D3
    let place = TestDir::new();
    board(&place, "audit: {signing: required}\n");
    let id = records::text(&init(&place)["signing"]["id"]);
    place
        .run(&["keys", "revoke", &id[..8], "--at", "5s"])
        .assert_code(64)
        .assert_stderr_contains("write 30m, 24h, 7d, 2w");
    let help = place.run(&["keys", "revoke", "--help"]).assert_code(0).stdout;
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("minutes (30m), hours (24h), days (7d) or weeks (2w)"), "{help}");
    place
        .run(&["keys", "revoke", &id[..8], "--at", "99999w"])
        .assert_code(64)
        .assert_stderr_contains("earlier than any key");
    let revoked = place.run(&["keys", "revoke", &id[..8], "--at", "2026-01-01"]).assert_code(0);
    revoked.assert_stderr_contains("no longer count").assert_stderr_contains("exits with 1 from now on");
    assert_eq!(states(&place), BTreeMap::from([(id.clone(), "revoked".to_owned())]));
    refused(&convene(&place), "", "is revoked since 2026-01-01T00:00:00.000Z");
    place.run(&["keys", "revoke", "zzz"]).assert_code(4).assert_stderr_contains("quorate:key_unknown");
    place.run(&["keys", "revoke", &id, "--at", "soon"]).assert_code(64);
}

#[test]
fn reviews_are_signed_as_quorate_toml_says_and_so_is_what_comes_after() {
    // D3
    let place = TestDir::scripted(&council::all_ship());
    let host = place.read("quorate.toml");
    place.write("quorate.toml", format!("{host}[keys]\nsign = \"required\"\n"));
    place.run(&["review", "draft.md"]).assert_code(5).assert_stderr_contains("quorate:signing_key_missing");
    assert!(place.runs().is_empty());
    let key = init(&place)["signing"]["id"].clone();
    let run = records::text(&place.review(&["draft.md"])["run"]);
    all_signed_by(&place, &run, &key);
    // An override needs the key as well, whatever quorate.toml says by then.
    place.write("quorate.toml", &host);
    std::fs::rename(place.path(SIGNING), place.path("elsewhere")).expect("it moves");
    let over = ["override", &run, "--by", "ada", "--verdict", "ship", "--reason", "Because."];
    place.run(&over).assert_code(5).assert_stderr_contains("quorate:signing_key_missing");
    std::fs::rename(place.path("elsewhere"), place.path(SIGNING)).expect("it moves");
    place.run(&over).assert_code(0);
    all_signed_by(&place, &run, &key);
    let unsigned = records::text(&place.review(&["draft.md"])["run"]);
    assert!(signatures(&place, &unsigned).1.is_empty());
}

#[test]
fn governance_says_whose_signatures_count() {
    // D9
    let place = TestDir::new();
    board(&place, "audit: {signing: required}\ngovernance: policy.yaml\n");
    place.write("policy.yaml", "owner: legal\n");
    let key = init(&place)["signing"]["id"].clone();
    // Another workspace's policy binds nothing: this workspace's keyring counts.
    let run = records::text(&convene(&place).assert_code(0).json()["run"]);
    all_signed_by(&place, &run, &key);
    assert_eq!(audit(&place, &run)["governed"], json!(false));
    let other = SecretKey::generate();
    place.write("policy.yaml", format!("keys: [\"{}\"]\n", other.public()));
    refused(&convene(&place), "quorate:signing_key_missing", "in the governance file");
    let mine = place.run(&["keys", "export"]).assert_code(0).stdout;
    place.write("policy.yaml", format!("keys: [\"{}\", \"{}\"]\n", other.public(), mine.trim()));
    let run = records::text(&convene(&place).assert_code(0).json()["run"]);
    all_signed_by(&place, &run, &key);
    assert_eq!(audit(&place, &run)["governed"], json!(true));
    assert_eq!(audit(&place, &run)["keyring"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_workspace_governs_assemblies_that_bind_nothing() {
    // D9
    let place = TestDir::new();
    board(&place, "audit: {consultations: {retention: \"days:7\"}}\n");
    let host = place.read("quorate.toml");
    place.write("GOVERNANCE.md", "---\nretention: {floor: \"days:30\"}\n---\n\n# Ours\n");
    place.write("quorate.toml", format!("governance = \"GOVERNANCE.md\"\n{host}"));
    place.run(&["check", "ASSEMBLY.md"]).assert_code(1);
    refused(&convene(&place), "quorate:governance_exceeded", "GOVERNANCE.md requires at least 30 days");
    let text = place.read("ASSEMBLY.md").replace("days:7", "days:30");
    place.write("ASSEMBLY.md", text);
    convene(&place).assert_code(0);
    for (path, says) in [("missing.md", "cannot be read"), ("../out.md", "outside of the workspace")] {
        place.write("quorate.toml", format!("governance = \"{path}\"\n{host}"));
        refused(&convene(&place), "", says);
    }
}

#[test]
fn advice_is_signed_with_the_run_that_it_comes_from() {
    // D3
    let place = TestDir::new();
    let more = "audit: {signing: required}\nexecutor: ws://operators/bot\nsynthesis: {rules: [{id: all, kind: aggregate}]}\n";
    assembly::write(&place, "advisory", &[("mentor", "phase: session")], more);
    place.write(
        "operators/bot/OPERATOR.md",
        "---\nname: bot\ntitle: Bot\ndescription: Answers.\nversion: 1.0.0\n---\n\nYou are bot.\n",
    );
    assembly::answers(&place, &json!({"mentor": assembly::advice(9, "Slow down.")}));
    let key = init(&place)["signing"]["id"].clone();
    let run = assembly::convene(&place, "--conversation", &[]).assert_code(0).json();
    all_signed_by(&place, &records::text(&run["run"]), &key);
    assert!(!run["fragments"].as_array().expect("a list").is_empty(), "{run}");
    let (count, signers) = signatures(&place, "overlays/board");
    assert!(count > 0);
    assert_eq!(signers.len(), count);
}

#[test]
fn the_ledgers_key_has_the_name_of_its_checkpoints() {
    let place = TestDir::scripted(&council::all_ship());
    place.review(&["draft.md"]);
    place.run(&["ledger", "checkpoint"]).assert_code(0);
    let line = place.run(&["keys", "export", "ledger", "--format", "note"]).assert_code(0).stdout;
    let verifier = Verifier::from_text(line.trim()).expect("a verifier");
    let public = place.run(&["keys", "export", "ledger"]).assert_code(0).stdout;
    assert_eq!(verifier.key().to_string(), public.trim());
}
