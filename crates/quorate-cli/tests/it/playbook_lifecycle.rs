//! Random lives of playbooks, through the service: whatever is proposed, promoted, archived, rolled back, swept, repaired
//! or changed by hand, prompts contain what passed its gate, is in force and matches its history, and nothing else.
//!
//! `QUORATE_SEEDS=from..to` lives others; `scripts/soak` lives many.

#![allow(dead_code, unreachable_pub, reason = "parts are shared with other tests")]

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;

use crate::support::playbooks::oracle;
use crate::support::playbooks::world;
use oracle::{History, PlaybookFile, assert_checks, assert_invariants, assert_log, prompts, texts};
use quorate::playbook::{Gate, ProposeRequest, Proposed};
use quorate::{Draft, Error, Outcome};
use serde_json::{Value, json};
use world::{DAY_MS, FixedAnswer, World};

/// How many lives the ordinary test run tries.
const LIVES: Range<u64> = 0..6;
/// Lives that have failed once.
const RELIVED: [u64; 4] = [13_735, 20_259, 22_030, 36_019];

/// What was done, by word, and how often.
type Counts = BTreeMap<&'static str, u32>;

#[test]
fn no_life_of_a_playbook_breaks_a_rule() {
    let read = |text: String| {
        let (from, to) = text.split_once("..")?;
        Some(from.parse().ok()?..to.parse().ok()?)
    };
    let asked = std::env::var("QUORATE_SEEDS").ok();
    let relived = if asked.is_some() { &[][..] } else { &RELIVED };
    let seeds = asked.map_or(LIVES, |text| read(text).expect("QUORATE_SEEDS is from..to"));
    let next = Mutex::new(relived.iter().copied().chain(seeds.clone()));
    let started = std::time::Instant::now();
    let counts = std::thread::scope(|scope| {
        let worker = || {
            let mut counts = Counts::new();
            while let Some(seed) = { next.lock().expect("it is whole").next() } {
                let _hint = ReproHint(seed);
                let life = live(seed, &mut counts);
                tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .expect("a runtime")
                    .block_on(life);
            }
            counts
        };
        let workers: Vec<_> = (0..2).map(|_| scope.spawn(worker)).collect();
        let mut all = Counts::new();
        for worker in workers {
            for (word, count) in worker.join().expect("what failed was said") {
                *all.entry(word).or_default() += count;
            }
        }
        all
    });
    let lives = seeds.end - seeds.start;
    println!("{lives} lives of playbooks in {:.1?}: {counts:?}", started.elapsed());
    if lives >= 100 {
        let words = [
            "accepted",
            "refused",
            "revised",
            "promoted",
            "denied",
            "archived",
            "shadowed",
            "rolled back",
            "exact",
            "swept",
            "repaired",
        ];
        assert!(words.iter().all(|word| counts.get(word).is_some_and(|n| *n > 2)), "{counts:?}");
    }
}

/// Says which life it was where a test fails.
struct ReproHint(u64);

impl Drop for ReproHint {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (seed, next) = (self.0, self.0 + 1);
            eprintln!(
                "to run it again: QUORATE_SEEDS={seed}..{next} cargo test -p quorate-cli --test it -- playbook_lifecycle::"
            );
            eprintln!("seed {seed}");
        }
    }
}

async fn live(seed: u64, counts: &mut Counts) {
    let mut world = World::from_seed(seed);
    let mut memory = History::default();
    let mut before = texts(&assert_invariants(&mut world, &mut memory).await);
    for _ in 0..5 + world.chance.below(11) {
        // Events of the same millisecond have no order in the log.
        world.advance(1);
        if world.chance.percent(20) {
            let days = i64::try_from(world.chance.below(4)).expect("it is small");
            world.advance(days * DAY_MS);
            world.steps.push(format!("{days} days go by"));
            before = texts(&prompts(&world).await);
        }
        let versions: BTreeMap<String, u32> = world
            .files()
            .iter()
            .map(|path| PlaybookFile::read(path))
            .map(|one| (one.slug.clone(), one.version()))
            .collect();
        let word = Box::pin(step(&mut world, &mut memory)).await;
        *counts.entry(word.0).or_default() += 1;
        let after = texts(&assert_invariants(&mut world, &mut memory).await);
        let earlier = std::mem::replace(&mut before, after);
        let Some((slug, version)) =
            word.1.and_then(|slug| Some((versions.get(&slug).copied()?, slug))).map(|(n, slug)| (slug, n))
        else {
            continue;
        };
        if world.chance.percent(35) {
            // B7: what was done last can be taken back, to the byte.
            world.note(format!("at once roll {slug} back to {version}"), None);
            let rolled = world.quorate.playbooks().rollback(&slug, version).await;
            if let Err(stop) = rolled {
                // By hand there may be more active ones than the cap has room for, and each counts.
                if stop.to_string().contains("already has") {
                    continue;
                }
                panic!("{stop}, after\n  {}", world.story());
            }
            let after = texts(&assert_invariants(&mut world, &mut memory).await);
            assert_eq!(after, earlier, "after\n  {}", world.story());
            before = after;
            *counts.entry("exact").or_default() += 1;
        }
    }
    assert_checks(&world);
    assert_log(&world).await;
}

/// The result of a step; and the playbook that was changed, where it can be rolled back.
type Came = (&'static str, Option<String>);

/// One thing that is done.
async fn step(world: &mut World, memory: &mut History) -> Came {
    match world.chance.below(100) {
        0..28 => proposed(world).await,
        28..34 => revised(world).await,
        34..54 => Box::pin(promoted(world)).await,
        54..60 => settled(world, true).await,
        60..66 => settled(world, false).await,
        66..76 => rolled_back(world).await,
        76..81 => swept(world).await,
        81..89 => repaired(world).await,
        _ => by_hand(world, memory),
    }
}

/// The result of a change: files were written, so the index is true.
fn settle<T>(world: &mut World, what: String, result: &Result<T, Error>) -> bool {
    world.note(what, result.as_ref().err());
    if result.is_ok() {
        world.may_lag = false;
    }
    result.is_ok()
}

async fn proposed(world: &mut World) -> Came {
    let slug = world.new_slug();
    let targets = world.target(&slug);
    let targets: Value = match targets.split_once(": ") {
        Some(("selector", "{role: librarian}")) => json!({"selector": {"role": "librarian"}}),
        Some(("selector", _)) => json!({"selector": {"identity": ["alice", "carol"]}}),
        Some((_, list)) => {
            let kind = if list.contains("kind: role") { "role" } else { "operator" };
            let reference =
                list.split("ref: ").nth(1).unwrap_or_default().trim_end_matches("}]").trim_matches('"');
            json!({"targets": [{"kind": kind, "ref": reference}]})
        }
        None => json!({}),
    };
    let mut delta =
        json!({"op": "add", "slug": slug, "title": format!("About {slug}."), "body": world.fragment()});
    let set = |delta: &mut Value, more: Value| {
        let object = delta.as_object_mut().expect("an object");
        object.extend(more.as_object().cloned().unwrap_or_default());
    };
    set(&mut delta, targets);
    if world.chance.percent(50) {
        set(&mut delta, json!({"priority": world.chance.below(90)}));
    }
    if world.chance.percent(40) {
        let days = 1 + world.chance.below(5);
        set(&mut delta, json!({"ttl": format!("P{days}D")}));
    }
    if world.chance.percent(20) {
        set(&mut delta, json!({"block": "tone"}));
    }
    let others: Vec<String> = world.files().iter().map(|path| PlaybookFile::read(path).slug).collect();
    if world.chance.percent(35) && !others.is_empty() {
        let other = others[world.pick(others.len())].clone();
        set(&mut delta, json!({"supersedes": [other]}));
    }
    let mut is_bad = world.chance.percent(30);
    if is_bad {
        let body = world.fragment();
        let bad = match world.chance.below(6) {
            0 => json!({"body": format!("{body} Act as if warmth were irrelevant here.")}),
            1 => json!({"targets": [{"kind": "operator", "ref": "*"}], "selector": null}),
            2 => json!({"ttl": "14 days"}),
            3 => json!({"block": "nowhere"}),
            4 => json!({"targets": [{"kind": "operator", "ref": "nobody"}], "selector": null}),
            _ if others.is_empty() => json!({"body": ""}),
            _ => json!({"slug": others[world.pick(others.len())]}),
        };
        // Not everybody has the lock.
        is_bad = bad.get("body").is_none_or(|body| body == "");
        set(&mut delta, bad);
    }
    let text = delta.to_string();
    let outcomes = submit(world, &text).await;
    let accepted = outcomes.as_ref().is_ok_and(|all| all.proposals[0].accepted);
    let why = outcomes.as_ref().ok().and_then(|all| all.proposals[0].report.refusals.first());
    let why = why.map_or(String::new(), |one| one.body.message.clone());
    world.note(format!("propose {text}: accepted {accepted} {why}"), outcomes.as_ref().err());
    assert!(!(accepted && is_bad), "{}", world.story());
    if accepted {
        world.may_lag = false;
    }
    // Nothing was there before it that it could be rolled back to.
    (if accepted { "accepted" } else { "refused" }, None)
}

/// A random existing playbook.
fn some(world: &mut World) -> Option<PlaybookFile> {
    let files = world.files();
    (!files.is_empty()).then(|| PlaybookFile::read(&files[world.pick(files.len())]))
}

/// Proposes a delta.
async fn submit(world: &World, delta: &str) -> Result<Outcome<Proposed>, Error> {
    let source = Draft::Text { name: "delta.json".to_owned(), text: delta.to_owned() };
    world.quorate.playbooks().propose(ProposeRequest { source, operator: None, exception: None }).await
}

async fn revised(world: &mut World) -> Came {
    let Some(one) = some(world) else { return ("nothing", None) };
    let delta = json!({"op": "revise", "slug": one.slug, "body": world.fragment(), "summary": "Said again."});
    let outcomes = submit(world, &delta.to_string()).await;
    let accepted = outcomes.as_ref().is_ok_and(|all| all.proposals[0].accepted);
    world.note(format!("revise {}: {accepted}", one.slug), outcomes.as_ref().err());
    assert!(!accepted || (one.status == "shadow" && one.is_faithful()), "{}", world.story());
    if accepted {
        world.may_lag = false;
        return ("revised", Some(one.slug));
    }
    ("not revised", None)
}

async fn promoted(world: &mut World) -> Came {
    let Some(one) = some(world) else { return ("nothing", None) };
    let gate = [Gate::Human, Gate::Human, Gate::Human, Gate::Human, Gate::AB, Gate::Scorer, Gate::Governance]
        [world.pick(7)];
    let yes = world.chance.percent(85);
    let outcome = world.quorate.playbooks().promote(&one.slug, gate, Box::new(FixedAnswer(yes))).await;
    let passed = outcome.as_ref().is_ok_and(|outcome| outcome.promoted);
    let why = outcome.as_ref().ok().and_then(|one| one.report.refusals.first());
    let why = why.map_or(String::new(), |one| one.body.message.clone());
    world.note(
        format!("promote {} by {gate:?}, who says {yes}: {passed} {why}", one.slug),
        outcome.as_ref().err(),
    );
    assert!(
        !passed || (gate == Gate::Human && yes && one.status == "shadow" && one.is_faithful()),
        "{}",
        world.story()
    );
    if passed {
        world.may_lag = false;
        return ("promoted", Some(one.slug));
    }
    ("denied", None)
}

async fn settled(world: &mut World, archives: bool) -> Came {
    let Some(one) = some(world) else { return ("nothing", None) };
    let playbooks = world.quorate.playbooks();
    let result = match archives {
        true => playbooks.archive(&one.slug, "It does no good.").await,
        false => playbooks.shadow(&one.slug).await,
    };
    let done = settle(world, format!("archive {} ({archives})", one.slug), &result);
    match (done, archives) {
        (true, true) => ("archived", Some(one.slug)),
        (true, false) => ("shadowed", Some(one.slug)),
        (false, _) => ("not settled", None),
    }
}

async fn rolled_back(world: &mut World) -> Came {
    let Some(one) = some(world) else { return ("nothing", None) };
    let to = 1 + u32::try_from(world.chance.below(u64::from(one.version()))).expect("it is small");
    let result = world.quorate.playbooks().rollback(&one.slug, to).await;
    if settle(world, format!("roll {} back to {to}", one.slug), &result) {
        ("rolled back", Some(one.slug))
    } else {
        ("not rolled back", None)
    }
}

async fn swept(world: &mut World) -> Came {
    let result = world.quorate.playbooks().sweep().await;
    let swept = result.as_ref().map(|swept| swept.archived.clone()).unwrap_or_default();
    world.note(format!("sweep {swept:?}"), result.as_ref().err());
    assert!(result.is_ok() || !world.touched_slugs.is_empty(), "{}", world.story());
    if swept.is_empty() {
        return ("nothing", None);
    }
    world.may_lag = false;
    ("swept", swept.into_iter().next())
}

async fn repaired(world: &mut World) -> Came {
    let result = world.quorate.playbooks().repair().await;
    let done = result.as_ref().map(|repairs| repairs.done.clone()).unwrap_or_default();
    world.note(format!("repair: {done:?}"), result.as_ref().err());
    assert!(result.is_ok(), "{}", world.story());
    world.touched_slugs.clear();
    world.may_lag = world.files().is_empty();
    (if done.is_empty() { "nothing" } else { "repaired" }, None)
}

/// A user edits a file by hand.
fn by_hand(world: &mut World, memory: &mut History) -> Came {
    let files = world.files();
    if files.is_empty() || world.chance.percent(15) {
        let status = ["active", "shadow"][world.pick(2)];
        let (slug, text) = world.manifest(status);
        world.write(&format!("playbooks/{slug}.md"), &text);
        world.note(format!("write {slug} by hand:\n{text}"), None);
        world.may_lag = true;
        return ("written by hand", None);
    }
    let path = files[world.pick(files.len())].clone();
    let one = PlaybookFile::read(&path);
    let (word, text) = match world.chance.below(5) {
        0 => {
            let (head, _) = one.text.rsplit_once("---").expect("frontmatter");
            ("body", Some(format!("{head}---\n{}\n", world.fragment())))
        }
        1 => {
            let to = if one.status == "active" { "shadow" } else { "active" };
            ("flip", Some(one.text.replacen(&format!("status: {}", one.status), &format!("status: {to}"), 1)))
        }
        2 => ("history", Some(without_history(&one.text))),
        3 => ("crlf", Some(one.text.replace("\r\n", "\n").replace('\n', "\r\n"))),
        _ => ("delete", None),
    };
    world.note(format!("change {} by hand: {word}", one.slug), None);
    world.may_lag = true;
    match &text {
        Some(text) => std::fs::write(&path, text).expect("a file"),
        None => std::fs::remove_file(&path).expect("a file"),
    }
    if one.versions.is_empty() {
        oracle::forget(memory, &one.slug);
    } else if text.is_none() || !PlaybookFile::read(&path).is_faithful() {
        world.touched_slugs.insert(one.slug);
    } else {
        world.touched_slugs.remove(&one.slug);
    }
    ("changed by hand", None)
}

/// A text without its list of what was done.
fn without_history(text: &str) -> String {
    let mut out = String::new();
    let mut inside = false;
    for line in text.split_inclusive('\n') {
        inside = line.starts_with("history:")
            || (inside && line.starts_with([' ', '-']) && !line.starts_with("---"));
        if !inside {
            out.push_str(line);
        }
    }
    out
}
