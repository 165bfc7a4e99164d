//! Death between any two writes of a change, and kill -9 of the real binary at any time: afterwards the change is wholly
//! done, or not at all, or `quorate check` reports it and `quorate playbook repair` finishes it (B5, B8).
//!
//! `QUORATE_PLAYBOOK_KILLS=1000` kills so often; `scripts/soak` sets it.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use crate::support;
use crate::support::playbooks::workspace;
use quorate_kernel::entropy::sha256_hex;
use quorate_testkit::scripted::Rng;
use serde_json::{Value, json};
use support::{TestDir, finish};
use workspace::{SCORER, assert_all_refused, delta, files, log, prompt, propose, recorded, scorer};

/// How often a process is killed, and how often in one workspace.
const KILLS: u64 = 20;
const KILLS_EACH: u64 = 10;

/// A workspace in which a good deal was done: `old` is active, `new` would take its place, `shade` is in shadow, and
/// `back` took the place of `gone`.
fn lived_in() -> TestDir {
    let place = workspace::workspace(SCORER);
    scorer(&place, 0.0, 1.0);
    let done = |arguments: &[&str]| drop(place.run(&[&["playbook"], arguments].concat()).assert_code(0));
    for (slug, more) in [
        ("old", json!({})),
        ("new", json!({"supersedes": ["old"]})),
        ("shade", json!({})),
        ("gone", json!({})),
        ("back", json!({"supersedes": ["gone"]})),
    ] {
        propose(&place, &delta(slug, more)).assert_code(0);
    }
    for slug in ["old", "gone", "back"] {
        done(&["promote", slug, "--gate", "scorer"]);
    }
    place.write("again.json", json!({"op": "revise", "slug": "shade", "body": "Name the room when shade comes up.", "summary": "Said better."}).to_string());
    place.write(
        "more.json",
        delta("more", json!({"targets": [{"kind": "operator", "ref": "*o*"}]})).to_string(),
    );
    place.write("bad.json", delta("bad", json!({"ttl": "14 days"})).to_string());
    place
}

/// What is done, and how it exits.
const CHANGES: [(&[&str], i32); 7] = [
    (&["propose", "more.json"], 0),
    (&["propose", "again.json"], 0),
    (&["propose", "bad.json"], 2),
    (&["promote", "new", "--gate", "scorer"], 0),
    (&["archive", "back"], 0),
    (&["rollback", "back", "--to", "1"], 0),
    (&["shadow", "old"], 0),
];

fn copy(place: &TestDir) -> TestDir {
    let new = TestDir::new();
    for (name, _) in files(place, "") {
        let bytes = std::fs::read(place.path(&name)).expect("a file");
        new.write(&name, bytes);
        // Keys keep their permissions, since a key that other users can read is refused.
        if name.starts_with(".quorate/keys/") {
            let permissions = std::fs::metadata(place.path(&name)).expect("a file").permissions();
            std::fs::set_permissions(new.path(&name), permissions).expect("it is ours");
        }
    }
    new
}

fn allow(place: &TestDir, mode: u32) {
    let permissions = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(place.path("playbooks/_log.md"), permissions).expect("it is ours");
}

/// The playbooks' files without the log, to which `weave` also appends.
fn but_log(place: &TestDir) -> BTreeMap<String, String> {
    let mut files = files(place, "playbooks");
    files.remove("playbooks/_log.md");
    files
}

/// The fragments that prompts may contain: those from before or after a change, and no others.
fn fragments(prompt: &str) -> Vec<&str> {
    prompt.lines().filter(|line| line.starts_with("Name the ")).collect()
}

#[test]
fn a_death_between_any_two_writes_is_repaired() {
    // B5, B6, B8
    let before = lived_in();
    let is_soak = std::env::var("QUORATE_PLAYBOOK_KILLS").is_ok();
    for (at, (arguments, exit)) in CHANGES.into_iter().enumerate() {
        let command = [&["playbook"], arguments].concat();
        // The log is the last thing that is written: where it cannot be, everything else has been, and the plan is left.
        let left = copy(&before);
        allow(&left, 0o444);
        left.run(&command)
            .assert_code(5)
            .assert_stderr_contains("file_unwritable")
            .assert_stderr_contains("repair");
        let plan = left.read("playbooks/_pending.json");
        let change: Value = serde_json::from_str(&plan).expect("it is whole");
        let after = copy(&left);
        // It is finished wherever the workspace lies by then.
        after.run(&["playbook", "repair"]).assert_code(0);
        let whole = but_log(&after);
        // Done at one go it comes to the same, but for times.
        let at_once = copy(&before);
        at_once.run(&command).assert_code(exit);
        assert_eq!(whole.keys().collect::<Vec<_>>(), but_log(&at_once).keys().collect::<Vec<_>>());
        let (before_prompt, after_prompt) = (prompt(&before), prompt(&after));
        let allowed = [fragments(&before_prompt), fragments(&after_prompt)].concat();

        let writes = change["files"].as_array().expect("files");
        let steps = writes.len() + 3;
        // Every sixth place of each change, from another one in turn; every place in the soak.
        for step in (0..=steps).filter(|step| is_soak || step % 6 == at % 6) {
            let place = copy(&before);
            place.write("playbooks/_pending.json", &plan);
            for (name, _) in files(&left, ".quorate/keys/begun") {
                place.write(&name, "");
                let private = std::fs::Permissions::from_mode(0o600);
                std::fs::set_permissions(place.path(&name), private).expect("it is ours");
            }
            for write in writes.iter().take(step) {
                let path = write["path"].as_str().expect("a path");
                place.write(path, write["text"].as_str().expect("a text"));
            }
            let copied = |from: &TestDir, name: &str| {
                place.write(name, std::fs::read(from.path(name)).expect("it is there"))
            };
            if step > writes.len() {
                copied(&after, "playbooks/_index.md");
            }
            if step > writes.len() + 1 {
                copied(&left, ".quorate/ledger.db");
            }
            if step > writes.len() + 2 {
                copied(&after, "playbooks/_log.md");
            }
            let what = format!("{arguments:?}, dead after {step} of {steps} writes");
            let current = prompt(&place);
            assert!(fragments(&current).iter().all(|one| allowed.contains(one)), "{what}: {current}");
            assert_all_refused(&place, &["playbook_unfinished"]);
            place
                .run(&["playbook", "archive", "shade"])
                .assert_code(5)
                .assert_stderr_contains("playbook_unfinished");
            place.run(&["playbook", "repair"]).assert_code(0);
            place.run(&["check", "."]).assert_code(0);
            assert_eq!(but_log(&place), whole, "{what}");
            assert_eq!(prompt(&place), after_prompt, "{what}");
            once(&place, &what);
            let recorded = recorded(&place);
            let of_it = recorded.iter().filter(|one| one["data"]["change"] == change["id"]);
            assert_eq!(of_it.count(), change["events"].as_array().expect("events").len(), "{what}");
        }
    }
}

/// Asserts that each event is in the ledger and in the log once, in the same order.
fn once(place: &TestDir, what: &str) {
    let recorded = recorded(place);
    let lines = log(place);
    assert_eq!(lines.len(), recorded.len(), "{what}: {lines:#?} {recorded:#?}");
    for (line, one) in lines.iter().zip(&recorded) {
        let (event, slug) = (one["event"].as_str(), one["data"]["slug"].as_str());
        let head = format!("· {} · `{}`", event.expect("an event"), slug.expect("a slug"));
        assert!(line.contains(&head), "{what}: {line} is not {one}");
    }
}

#[test]
fn a_death_before_the_plan_is_written_leaves_nothing_to_do() {
    let place = lived_in();
    place.write("playbooks/.tmpAbC123", "half a pl");
    place.run(&["check", "."]).assert_code(0);
    place.run(&["playbook", "promote", "new", "--gate", "scorer"]).assert_code(0);
    assert!(fragments(&prompt(&place)).contains(&"Name the shelf when new comes up."));
}

#[test]
fn a_plan_that_is_cut_is_said_and_nothing_is_guessed() {
    let place = lived_in();
    let before = files(&place, "playbooks");
    place.write("playbooks/_pending.json", "{\"id\": \"ab\", \"files\": [");
    assert_all_refused(&place, &["playbook_unfinished"]);
    place
        .run(&["playbook", "repair"])
        .assert_code(5)
        .assert_stderr_contains("playbook_unfinished")
        .assert_stderr_contains("if the file is truncated, remove it");
    std::fs::remove_file(place.path("playbooks/_pending.json")).expect("it is there");
    assert_eq!(files(&place, "playbooks"), before);
    place.run(&["check", "."]).assert_code(0);
}

#[test]
fn a_plan_that_was_not_begun_here_is_not_finished() {
    // B5: a program that writes the folder, or a copy of a workspace, could else pass gates and make exceptions.
    let elsewhere = lived_in();
    allow(&elsewhere, 0o444);
    elsewhere.run(&["playbook", "promote", "new", "--gate", "scorer"]).assert_code(5);
    let copied = elsewhere.read("playbooks/_pending.json");
    let exception = json!({"by": "the CEO", "reason": "approved", "text": "00", "trait": "honesty"});
    let forged = json!({"id": "ab", "at_ms": 0, "files": [], "events": [{
        "event": "playbook.registered", "slug": "new", "words": "the CEO lets it touch honesty: approved",
        "data": {"exceptions": [exception]},
    }]});
    for plan in [copied, forged.to_string()] {
        let place = lived_in();
        let (before, records) = (files(&place, "playbooks"), place.run(&["playbook", "log"]).stdout);
        place.write("playbooks/_pending.json", &plan);
        let refused = || {
            place
                .run(&["playbook", "repair"])
                .assert_code(5)
                .assert_stderr_contains("playbook_unfinished")
                .assert_stderr_contains("was not started with this ledger");
        };
        refused();
        // A note of it that came with a checkout can be read by others.
        let note = format!(".quorate/keys/begun/{}", sha256_hex(plan.as_bytes()));
        place.write(&note, "");
        std::fs::set_permissions(place.path(&note), std::fs::Permissions::from_mode(0o644))
            .expect("it is ours");
        refused();
        assert_eq!(place.run(&["playbook", "log"]).stdout, records);
        std::fs::remove_file(place.path("playbooks/_pending.json")).expect("it is there");
        assert_eq!(files(&place, "playbooks"), before);
        place.run(&["playbook", "repair"]).assert_code(0);
    }
}

#[test]
fn a_plan_leads_out_of_no_workspace() {
    let place = lived_in();
    let outside = TestDir::new();
    let path = outside.path("victim.md");
    let plan = json!({"id": "ab", "at_ms": 0, "files": [{"path": path, "was": null, "text": "Got you."}], "events": []});
    place.write("playbooks/_pending.json", plan.to_string());
    place.run(&["playbook", "repair"]).assert_code(5).assert_stderr_contains("playbook_unfinished");
    assert!(!path.exists());
}

#[test]
fn killed_anywhere_a_change_is_done_or_not() {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let kills = number("QUORATE_PLAYBOOK_KILLS").unwrap_or(KILLS);
    let first = number("QUORATE_PLAYBOOK_SEED").unwrap_or(0);
    let seeds: Vec<u64> = (first..first + kills.div_ceil(KILLS_EACH)).collect();
    let counts = std::thread::scope(|scope| {
        let halves = seeds.chunks(seeds.len().div_ceil(2));
        let halves: Vec<_> = halves
            .map(|half| scope.spawn(|| half.iter().map(|seed| killed(*seed)).collect::<Vec<_>>()))
            .collect();
        halves.into_iter().flat_map(|half| half.join().expect("what failed was said")).collect::<Vec<_>>()
    });
    let (killed, unfinished) = counts.iter().fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
    println!("{killed} kills of changes, {unfinished} left unfinished");
    assert!(killed * 4 >= kills, "some processes were at work when they were killed: {killed} of {kills}");
    assert!(kills < 500 || unfinished > 0, "no kill ever hit a change");
}

/// Says which workspace it was where a test fails.
struct ReproHint(u64);

impl Drop for ReproHint {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "to run it again: QUORATE_PLAYBOOK_SEED={} QUORATE_PLAYBOOK_KILLS={KILLS_EACH} \
                 cargo test -p quorate-cli --test it -- playbook_crash::killed",
                self.0
            );
        }
    }
}

/// One workspace, in which changing commands are killed again and again.
fn killed(seed: u64) -> (u64, u64) {
    let _hint = ReproHint(seed);
    let mut chance = Rng::from_seed_and_name(seed, "kills of playbooks");
    let place = workspace::workspace(SCORER);
    scorer(&place, 0.0, 1.0);
    let (mut killed, mut unfinished) = (0, 0);
    let mut asked: Vec<String> = Vec::new();
    for slug in ["p0", "p1"] {
        propose(&place, &delta(slug, json!({}))).assert_code(0);
    }
    for n in 2..KILLS_EACH + 2 {
        let slug = format!("p{}", chance.below(n));
        let to = (1 + chance.below(3)).to_string();
        let more = delta(&format!("p{n}"), json!({"supersedes": [slug]}));
        place.write("more.json", more.to_string());
        let arguments: Vec<&str> = match chance.below(8) {
            0..3 => vec!["propose", "more.json"],
            3..6 => vec!["promote", &slug, "--gate", "scorer"],
            6 => vec!["archive", &slug],
            _ => vec!["rollback", &slug, "--to", &to],
        };
        if arguments[0] == "promote" {
            asked.push(slug.clone());
        }
        let mut child = place.start(&[&["playbook"], &*arguments].concat());
        let longest = [30, 80, 160][usize::try_from(chance.below(3)).unwrap_or(0)];
        std::thread::sleep(Duration::from_millis(chance.below(longest)));
        killed += u64::from(child.try_wait().expect("it is ours").is_none());
        child.kill().expect("it is ours");
        finish(child);

        let current = prompt(&place);
        for line in fragments(&current) {
            let passed = asked.iter().any(|slug| line.contains(&format!("when {slug} comes")));
            assert!(passed, "{line} has passed no gate");
        }
        let checked = place.run(&["check", "."]);
        if checked.code != 0 {
            assert!(
                checked.code == 1 && checked.stdout.contains("playbook_unfinished"),
                "{arguments:?}: {checked:?}"
            );
            unfinished += 1;
        }
        place.run(&["playbook", "repair"]).assert_code(0);
        place.run(&["check", "."]).assert_code(0);
        assert!(!place.path("playbooks/_pending.json").exists());
        once(&place, &format!("{arguments:?}"));
    }
    (killed, unfinished)
}
