//! The data of records (D2): scenarios run through the binary, and the data of each record is compared with `golden/`. A record
//! that changes breaks every ledger's readers, so a difference here is deliberate or a defect.
//!
//! `QUORATE_WRITE_GOLDEN=1` rewrites the files.

pub(crate) mod normalize;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support;
use async_trait::async_trait;
use quorate::Quorate;
use quorate::ports::extension::{
    Embedder, ExtensionError, Meter, RuleAnswer, RuleDecision, RuleRequest, Vote,
};
use quorate::ports::{Mode, RuleKind, extension};
use quorate_kernel::ports::ledger::Kind;
use serde_json::{Value, json};
use sqlx::{ConnectOptions as _, Row as _};
use support::assembly::{self, answers, message, vote_answer};
use support::council::{COUNCIL, all_ship, all_ship_except};
use support::playbooks::workspace;
use support::records::block_on;
use support::{TestDir, wait_until};

const LEDGER: &str = ".quorate/ledger.db";

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden")
}

/// Kinds that members and rules write concurrently, in varying order.
const CONCURRENT: [Kind; 7] = [
    Kind::RunIntent,
    Kind::Attempt,
    Kind::Consultation,
    Kind::Gathered,
    Kind::Match,
    Kind::LockCheck,
    Kind::Violation,
];

/// All records of a place, one on each line, stream by stream. Concurrent records are sorted.
fn dump(place: &TestDir) -> String {
    let rows = block_on(async {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(place.path(LEDGER)).read_only(true);
        let mut ledger = options.connect().await.expect("it opens");
        let query = "SELECT run, kind, data FROM record ORDER BY (SELECT MIN(seq) FROM record r WHERE r.run = record.run), n";
        sqlx::query(query).fetch_all(&mut ledger).await.expect("it answers")
    });
    let mut lines: Vec<((usize, usize), String)> = Vec::new();
    let (mut stream, mut block) = (String::new(), 0);
    for (at, row) in rows.into_iter().enumerate() {
        let (run, kind, data): (String, String, Option<String>) = (row.get(0), row.get(1), row.get(2));
        let data = data.map_or(Value::Null, |data| serde_json::from_str(&data).expect("JSON"));
        if run != stream {
            lines.push(((at, 0), format!("# {}", normalize::text(&run, place.root()))));
            stream = run;
        }
        if !CONCURRENT.iter().any(|one| one.as_str() == kind) {
            block = at;
            lines.push(((at, 1), normalize::line(&kind, data, place.root())));
        } else {
            lines.push(((block, 2), normalize::line(&kind, data, place.root())));
        }
    }
    lines.sort();
    lines.into_iter().map(|(_, line)| line + "\n").collect()
}

/// Compares the records of a place with a golden file, or writes it.
#[track_caller]
fn same(name: &str, place: &TestDir) {
    let (now, path) = (dump(place), golden().join(format!("{name}.txt")));
    if std::env::var_os("QUORATE_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, &now).expect("written");
        return;
    }
    let then = std::fs::read_to_string(&path).unwrap_or_default();
    for (number, (now, then)) in now.lines().zip(then.lines()).enumerate() {
        assert_eq!(now, then, "{name}, line {}", number + 1);
    }
    assert_eq!(now.lines().count(), then.lines().count(), "{name}: so many lines\n{now}");
    assert_export_verifies(place);
}

/// Exports the ledger and verifies the export with `scripts/verify_ledger.py`, so that the script reads every kind of record.
#[track_caller]
fn assert_export_verifies(place: &TestDir) {
    let key = place.run(&["keys", "export", "ledger", "--format", "note"]).assert_code(0).stdout;
    place.write("verified.pub", key);
    place.run(&["ledger", "checkpoint"]).assert_code(0);
    place.run(&["ledger", "export", "--out", "verified.jsonl"]).assert_code(0);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/verify_ledger.py");
    let arguments = ["verified.jsonl", "--key", "verified.pub"];
    let ran = std::process::Command::new("python3")
        .arg(script)
        .args(arguments)
        .current_dir(place.root())
        .output()
        .map(support::CommandOutput::from_output);
    match ran {
        Ok(ran) if !ran.stderr.contains("needs the package") => drop(ran.assert_code(0)),
        _ => eprintln!("SKIPPED: no python3 with cryptography, so scripts/verify_ledger.py was not asked"),
    }
    for file in ["verified.pub", "verified.jsonl"] {
        std::fs::remove_file(place.path(file)).expect("removed");
    }
}

#[test]
fn every_kind_is_seen() {
    let mut seen = BTreeSet::new();
    let files = std::fs::read_dir(golden()).expect("it is there").flatten();
    for file in files.filter(|file| file.path().extension().is_some_and(|extension| extension == "txt")) {
        let text = std::fs::read_to_string(file.path()).expect("readable");
        seen.extend(text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned));
    }
    let missing: Vec<&str> = Kind::all().map(Kind::as_str).filter(|kind| !seen.contains(*kind)).collect();
    assert_eq!(missing, [""; 0]);
}

/// An example, copied.
fn example(name: &str) -> TestDir {
    let place = TestDir::new();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    let copied = std::process::Command::new("cp").arg("-r").arg(from.join(".")).arg(place.root()).status();
    assert!(copied.expect("cp").success());
    place
}

#[test]
fn reviews() {
    let place = TestDir::scripted(&all_ship());
    place.review(&["draft.md", "--type", "memo", "--tier", "2"]);
    // A block, findings, a second attempt at an answer, and one that stays none.
    place.answers(&all_ship_except(json!({
        "r1/skeptic": {"would_block": true, "score": 2, "verdict": "revise",
            "findings": [{"quote": "Tuesday", "issue": "Which one?", "fix": "Give the date."}], "notes": "More."},
        "r2/evidence": "SHIP it, all good",
        "r2/strategy": {"would_block": "no", "irreducible": false},
        "r1/voice_identity": {"$fail": "gone"},
        "adjudicate": {"verdict": "REVISE", "reasoning": "One.", "revision_brief": "Name it.", "dissent_summary": "None."},
    })));
    place.review(&["draft.md", "--type", "memo", "--made-by", "ada", "--trying", "cite"]);
    place.answers(&all_ship_except(json!({"r2/skeptic": {"$fail": "gone"}})));
    place.write("secret.md", format!("The key is AKIA{}, and it moved.\n", "2OGYBAH6STMMNXNN"));
    place.review(&["secret.md", "--policy", "strict", "--model", "m1"]);
    same("reviews", &place);
}

#[test]
fn reviews_of_the_rubric() {
    let place = TestDir::new();
    let text = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/pricing-promise.md"));
    place.write("pricing.md", text.expect("an example"));
    place.write("council.yaml", format!("{COUNCIL}protocol: {{rounds: 1, cross_read: findings}}\n"));
    place.review(&["pricing.md"]);
    same("rubric", &place);
}

#[test]
fn reviews_that_are_interrupted_resumed_and_overridden() {
    let place = TestDir::scripted(&all_ship_except(json!({"adjudicate": {"$fail": "down"}})));
    place.review(&["draft.md"]);
    let run = place.only_run();
    place.run(&["resume", &run]).assert_code(3);
    place.answers(&all_ship());
    place.run(&["resume", &run]).assert_code(0);
    for (verdict, reason) in [("hold", "legal says no"), ("ship", "legal says yes")] {
        place
            .run(&["override", &run, "--by", "ada", "--verdict", verdict, "--reason", reason])
            .assert_code(0);
    }
    // A cap that is spent, and a larger one.
    place.write("other.md", "The meeting moved to Friday.\n");
    let run = place.review(&["other.md", "--max-calls", "2"])["run"].as_str().expect("an id").to_owned();
    place.run(&["resume", &run, "--max-calls", "20"]).assert_code(0);
    same("resumed", &place);
}

#[test]
fn attempts_of_a_program() {
    let body = "case \"$step/$member\" in r1/skeptic) test -e again || { touch again; echo gone >&2; exit 3; };; \
                r1/evidence) sleep 30;; esac; answer";
    let place = TestDir::shell(body, "retries = 1\ntimeout = \"2s\"");
    place.review(&["draft.md"]);
    same("program", &place);
}

#[test]
fn runs_that_are_killed() {
    let place = TestDir::scripted_slowly(&all_ship(), "delay = \"60s\"");
    let mut child = place.start(&["review", "draft.md"]);
    wait_until(Duration::from_secs(60), "the run is recorded", || {
        place.path(LEDGER).exists() && !place.runs().is_empty()
    });
    child.kill().expect("it is ours");
    child.wait().expect("it ends");
    // It cannot be resumed: its text has changed.
    place.write("draft.md", "The meeting moved to Friday at ten.\n");
    place.write("quorate.toml", place.read("quorate.toml").replace("delay = \"60s\"", ""));
    place.review(&["draft.md"]);
    same("killed", &place);
}

#[test]
fn assemblies_of_the_examples() {
    let place = example("council-of-mentors");
    let mentors = |more: &[&str]| place.run(&[&["convene", "operators/support-agent"], more].concat());
    mentors(&["--trigger", "sample", "--conversation", "conversations/flattery.jsonl"]).assert_code(0);
    mentors(&["--sentinel-first", "--conversation", "conversations/distress.md"]).assert_code(0);
    let listed = place.run(&["overlays", "list", "--format", "json"]).assert_code(0).json();
    let first = listed["overlays"][0]["overlay"].as_str().expect("an id").to_owned();
    place.run(&["overlays", "expire", &first]).assert_code(0);
    place.run(&["weave", "--persona", "support-agent"]).assert_code(0);
    same("mentors", &place);

    let place = example("release-board");
    for (proposal, class) in
        [("calendar-feed", "release"), ("partner-access", "release"), ("launch-event", "budget")]
    {
        let proposal = format!("proposals/{proposal}.md");
        place.run(&["convene", "assemblies/release-board", "--proposal", &proposal, "--class", class]);
    }
    same("board", &place);

    let place = example("design-critique");
    place.run(&["convene", "assemblies/design-critique", "--topic", "topics/lending-page.md"]);
    same("critique", &place);
}

#[test]
fn guidance() {
    let place = TestDir::new();
    let more = "lockedTraits: [warmth]\naudit: {overlays: {maxActive: 3}}\nsynthesis: {rules: [{id: all, kind: aggregate}]}\n";
    let members = [("ana", "phase: session"), ("bob", "phase: session"), ("cyd", "phase: session")];
    assembly::write(&place, "advisory", &members, more);
    let convene = || assembly::convene(&place, "--conversation", &["--trigger", "sample"]);
    answers(
        &place,
        &json!({
            "ana": assembly::advice(7, "Ask before you assume."), "bob": assembly::advice(4, "Shorter sentences."),
            "cyd": assembly::advice(9, "Drop the warmth."),
        }),
    );
    convene();
    answers(
        &place,
        &json!({
            "ana": assembly::advice(8, "Ask who else is affected."), "bob": assembly::advice(6, "Name the date."),
            "cyd": {"$fail": "gone"},
        }),
    );
    convene();
    same("advice", &place);
}

#[test]
fn votes() {
    let place = TestDir::new();
    let more = "lockedTraits: [warmth]\nsynthesis:\n  rules:\n    \
                - {id: veto, kind: terminal, appliesTo: [bea], params: {triggerVote: 'no', scope: security}}\n    \
                - {id: enough, kind: quorum, params: {threshold: 0.5}}\n    - {id: most, kind: majority}\n";
    let members = [("ana", "weight: 0.3"), ("bea", ""), ("cyd", "voteClass: [security]")];
    assembly::write(&place, "voting", &members, more);
    let convene = |more: &[&str]| assembly::convene(&place, "--proposal", more);
    for bea in [vote_answer("yes"), vote_answer("no"), vote_answer("abstain"), json!({"$fail": "gone"})] {
        answers(&place, &json!({"ana": vote_answer("yes"), "bea": bea, "cyd": vote_answer("no")}));
        convene(&["--class", "security"]);
        convene(&[]);
    }
    place.write("quorate.toml", format!("early_decision = true\n{}", place.read("quorate.toml")));
    assembly::write(
        &place,
        "voting",
        &[("ana", ""), ("bea", ""), ("cyd", "")],
        "audit: {consultations: {enabled: false}}\nsynthesis: {rules: [{id: most, kind: majority}]}\n",
    );
    place.write("quorate.toml", format!("early_decision = true\n{}", place.read("quorate.toml")));
    let slow = json!({"$delay_ms": 5000, "answer": vote_answer("no")});
    answers(&place, &json!({"ana": vote_answer("yes"), "bea": vote_answer("yes"), "cyd": slow}));
    convene(&[]);
    convene(&["--max-calls", "1"]);
    same("votes", &place);
}

#[test]
fn peers_and_trees() {
    let place = TestDir::new();
    let rounds =
        "lockedTraits: [warmth]\nsynthesis: {rules: [{id: talk, kind: aggregate, params: {maxRounds: 2}}]}\n";
    assembly::write(&place, "peer", &[("ana", ""), ("bob", ""), ("cyd", "")], rounds);
    let said = json!({
        "ana": message("So be it."), "bob": message("Drop the warmth."),
        "cyd": {"message": "Why?", "to": "ana"},
    });
    answers(&place, &said);
    assembly::convene(&place, "--topic", &[]);
    same("peers", &place);

    let place = TestDir::new();
    let rules = "lockedTraits: [warmth]\n";
    let members = [("top", ""), ("left", "parent: top"), ("right", "parent: top"), ("leaf", "parent: left")];
    assembly::write(&place, "hierarchy", &members, rules);
    answers(&place, &json!({"_": assembly::advice(5, "Do it."), "right": {"$fail": "gone"}}));
    assembly::convene(&place, "--request", &[]);
    answers(&place, &json!({"_": assembly::advice(5, "Drop the warmth.")}));
    assembly::convene(&place, "--request", &[]);
    same("trees", &place);
}

/// Knows two meanings: cold things, and everything else.
struct Temperature(bool);

#[async_trait]
impl Embedder for Temperature {
    fn model(&self) -> &str {
        "temperature"
    }

    fn threshold(&self) -> f32 {
        0.9
    }

    async fn embed(&self, texts: &[&str], _: &Meter) -> Result<Vec<Vec<f32>>, ExtensionError> {
        if self.0 {
            return Err(ExtensionError::new("the model is not there"));
        }
        let cold = |text: &&str| ["warmth", "icy"].iter().any(|word| text.contains(word));
        Ok(texts.iter().map(|text| if cold(text) { vec![1.0, 0.0] } else { vec![0.0, 1.0] }).collect())
    }
}

struct NobodyObjects;

#[async_trait]
impl extension::Rule for NobodyObjects {
    fn describe(&self) -> RuleKind {
        RuleKind { modes: vec![Mode::Voting], params: json!({"type": "object"}), ..RuleKind::default() }
    }

    async fn apply(&self, request: RuleRequest) -> Result<RuleAnswer, ExtensionError> {
        let RuleRequest::Voting { votes, .. } = request else {
            return Err(ExtensionError::new("there are no votes"));
        };
        let objects = votes.iter().any(|ballot| ballot.vote == Some(Vote::No));
        Ok(RuleAnswer::Vote { decision: if objects { RuleDecision::Fail } else { RuleDecision::Pass } })
    }
}

struct WithLastYear;

#[async_trait]
impl extension::Gather for WithLastYear {
    async fn gather(&self, request: extension::GatherRequest) -> Result<String, ExtensionError> {
        match &*request.subject.text {
            text if text.contains("region") => Ok(format!("{text}\n\nLast year this cost 31 000.\n")),
            _ => Err(ExtensionError::new("nothing is known")),
        }
    }
}

#[test]
fn what_a_host_brings() {
    let place = TestDir::new();
    let more = "lockedTraits: [warmth]\nmatchMode: semantic\nsynthesis: {rules: [{id: consent, kind: nobody-objects}]}\n";
    let members = [("ana", "gatherInput: {strategy: 'custom:last-year'}"), ("bob", "")];
    assembly::write(&place, "voting", &members, more);
    answers(&place, &json!({"_": {"vote": "yes", "rationale": "Be icy with them."}}));
    place.write("proposal.md", "# A second region\n\nResolution: open it.\n");
    place.write("other.md", "# A bus\n\nResolution: buy it.\n");
    for (broken, proposal) in [(false, "proposal.md"), (false, "other.md"), (true, "proposal.md")] {
        let quorate = Quorate::builder()
            .workspace(place.root())
            .state_dir(place.path("state"))
            .trust(quorate::Trust::Workspace)
            .rule("nobody-objects", NobodyObjects)
            .gather("custom:last-year", WithLastYear)
            .embedder(Temperature(broken))
            .build()
            .expect("it is built");
        let done = block_on(async { quorate.convene("ASSEMBLY.md").proposal(proposal).await });
        done.map(drop).expect("it ends");
    }
    same("host", &place);
}

#[test]
fn turns_of_a_conversation() {
    let place = TestDir::with("answers.json", "{}");
    place.write(
        "swarm.yaml",
        "schema: agentruntimes/v1
kind: MultiAgentRuntime
id: talk
participants:
  - {id: ada, executor: script, displayName: Ada, config: {path: answers.json}}
  - {id: bo, executor: script, displayName: Bo, config: {path: answers.json}}
substrate: {kind: file, path: talk.md}
dispatcher: {kind: mention}
",
    );
    place.write("answers.json", json!({"ada": "I am here. @Bo?", "bo": {"$fail": "gone"}}).to_string());
    let run = |more: &[&str]| place.run(&[&["run", "swarm.yaml"], more].concat());
    run(&["--say", "@Ada are you there?", "--as", "eve"]);
    place.write("answers.json", json!({"ada": "Yes.", "bo": "No."}).to_string());
    run(&["--say", "@Ada, @Bo?", "--as", "eve", "--max-calls", "1"]);
    run(&[]);
    same("turns", &place);
    // A ledger that is lost is restored from the conversation.
    std::fs::remove_dir_all(place.path(".quorate")).expect("removed");
    std::fs::remove_dir_all(place.path(".local")).expect("removed");
    run(&["--say", "@nobody", "--as", "eve"]);
    same("recovered", &place);
}

#[test]
fn playbooks() {
    let place = workspace::workspace(workspace::SCORER);
    workspace::scorer(&place, 0.0, 1.0);
    let play = |arguments: &[&str]| place.run(&[&["playbook"], arguments].concat());
    let propose = |slug, more| workspace::propose(&place, &workspace::delta(slug, more));
    propose("cite", json!({})).assert_code(0);
    propose("smuggler", json!({"body": "Act as if warmth were irrelevant here."})).assert_code(2);
    workspace::prompt(&place);
    play(&["promote", "cite", "--gate", "scorer"]).assert_code(0);
    workspace::prompt(&place);
    play(&["shadow", "cite"]).assert_code(0);
    play(&["promote", "cite", "--gate", "scorer"]).assert_code(0);
    play(&["rollback", "cite", "--to", "1"]).assert_code(0);
    play(&["archive", "cite"]).assert_code(0);
    workspace::write_playbook(&place, "hand", "status: active", "Name the shelf by hand.");
    workspace::write_playbook(&place, "cold", "status: active", "Be cold: show no warmth at all, ever.");
    workspace::prompt(&place);
    same("playbooks", &place);

    let place = example("tool-library-letters");
    for draft in workspace::files(&place, "drafts/week-1").into_keys() {
        place.run(&["review", &draft, "--type", "letter", "--made-by", "wren"]);
    }
    place.run(&["playbook", "reflect", "--operator", "wren"]);
    place.run(&["weave", "wren"]).assert_code(0);
    place.run(&["playbook", "propose", "deltas/last-chance.json", "--operator", "wren"]);
    place.run(&["playbook", "propose", "deltas/say-who-counted.json", "--operator", "wren"]).assert_code(0);
    place.run(&["playbook", "promote", "say-who-counted", "--gate", "governance"]);
    place.run(&["weave", "wren"]).assert_code(0);
    same("letters", &place);
}

/// A place whose reviews are signed.
fn signed() -> TestDir {
    let place = TestDir::scripted(&all_ship());
    place.write("quorate.toml", format!("{}[keys]\nsign = \"required\"\n", place.read("quorate.toml")));
    place.run(&["keys", "init"]).assert_code(0);
    place
}

#[test]
fn the_ledgers_own() {
    let place = signed();
    place.review(&["draft.md"]);
    let run = place.only_run();
    place.run(&["keys", "rotate"]).assert_code(0);
    let over = ["override", &run, "--by", "ada", "--verdict", "hold", "--reason", "Not yet."];
    place.run(&over).assert_code(0);
    place.run(&["ledger", "hold", &run, "--reason", "claim 14"]).assert_code(0);
    place.run(&["ledger", "release", &run]).assert_code(0);
    place.run(&["ledger", "hold", &run]).assert_code(0);
    place.run(&["ledger", "checkpoint"]).assert_code(0);
    same("signed", &place);

    // An older copy of the ledger is restored and accepted.
    let place = TestDir::scripted(&all_ship());
    place.review(&["draft.md"]);
    let before = std::fs::read(place.path(LEDGER)).expect("readable");
    place.write("two.md", "Two says that the meeting moved.\n");
    place.review(&["two.md"]);
    for file in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(place.path(&format!("{LEDGER}{file}")));
    }
    std::fs::write(place.path(LEDGER), before).expect("writable");
    place.run(&["ledger", "accept-rollback", "--reason", "Monday's backup."]).assert_code(0);
    let theirs = place.run(&["ledger", "export"]).assert_code(0).stdout;
    let key = place.run(&["keys", "export", "ledger", "--format", "note"]).assert_code(0).stdout;
    same("rollback", &place);

    let place = TestDir::with("theirs.jsonl", theirs);
    place.write("their.pub", key);
    place.run(&["ledger", "import", "theirs.jsonl", "--key", "their.pub"]).assert_code(0);
    same("imported", &place);

    let place = TestDir::new();
    let more = "audit:\n  consultations: {enabled: false}\n";
    assembly::write(&place, "voting", &[("ana", "")], more);
    answers(&place, &json!({"ana": vote_answer("yes")}));
    assembly::convene(&place, "--proposal", &[]).assert_code(0);
    same("erased", &place);
}
