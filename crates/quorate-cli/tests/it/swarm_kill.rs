//! kill -9 of a swarm anywhere in a cycle, over and over, while people talk to it; then what is in the conversation
//! is read by a reader of this test's own. No mention is lost, none is answered twice; journal, states and ledger agree.
//!
//! `QUORATE_SWARM_KILLS=1000` kills so often; `QUORATE_SWARM_SEED` begins with another conversation. `scripts/soak`
//! sets the first.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Child;
use std::time::Duration;

use crate::support;
use crate::support::records;
use crate::support::transcript;
use quorate_testkit::scripted::Rng;
use records::{block_on, of_kind, text};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};
use sqlx::{Connection as _, Row as _, SqliteConnection};
use support::{TestDir, finish, wait_until};
use transcript::Turn;

/// How often a process is killed, and how often in one conversation.
const KILLS: u64 = 50;
const KILLS_EACH: u64 = 10;
const SOON: Duration = Duration::from_secs(20);

/// A CLI in place of a model: it answers the last turn, counts its turns in its state, and passes a chain on. The form of
/// the prompt is all that it knows of us.
const PLAYER: &str = r#"#!/bin/sh
exec awk '
/^\{"id":"/ { split($0, parts, "\""); id = parts[4]; content = $0 }
/^ *"n": [0-9]+/ { n = $0; gsub(/[^0-9]/, "", n) }
/^You are `/ { split($0, parts, "`"); me = parts[2] }
END {
    system("sleep 0.0" (length(id me content) * 7 + n * 3) % 10)
    other = me == "ada" ? "@Bo" : "@Ada"
    passes = content ~ /chain/ && content !~ /re:/ ? " and now " other : ""
    printf "{\"content\": \"re:%s by:%s n:%d%s\", \"stateUpdate\": {\"n\": %d}}\n", id, me, n + 1, passes, n + 1
}'
"#;

/// A conversation of two such participants. The longest chain has two of their turns, however many wait (K12).
fn swarm(substrate: &str) -> TestDir {
    let place = TestDir::with("player.sh", PLAYER);
    let config = "config: {command: /bin/sh, args: [player.sh], answer: json, timeout_ms: 20000}";
    place.write(
        "swarm.yaml",
        format!(
            "schema: agentruntimes/v1
kind: MultiAgentRuntime
id: hardy
participants:
  - {{id: ada, displayName: Ada, executor: agent-cli, {config}}}
  - {{id: bo, displayName: Bo, executor: agent-cli, {config}}}
substrate: {substrate}
dispatcher: {{kind: mention, maxAgentTurns: 3}}
state: {{kind: fs, dir: states}}
"
        ),
    );
    place
}

/// Gives the turns of a conversation.
type Read = fn(&TestDir) -> Vec<Turn>;

/// The substrates that outlive a process, each with its reader.
const SUBSTRATES: [(&str, Read); 2] = [
    ("{kind: file, path: talk.md}", transcript::journal),
    ("{kind: sqlite, path: talk.db}", transcript::database),
];

/// Says which conversation it was where a test fails.
struct ReproHint(u64);

impl Drop for ReproHint {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "to run it again: QUORATE_SWARM_SEED={} QUORATE_SWARM_KILLS={KILLS_EACH} \
                 cargo test -p quorate-cli --test it -- swarm_kill::killed",
                self.0
            );
        }
    }
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

#[test]
fn killed_anywhere_a_swarm_answers_everybody_once() {
    kill_all(|seed| {
        let (substrate, read) = SUBSTRATES[usize::from(seed % 2 == 1)];
        killed(&swarm(substrate), read, seed)
    });
}

/// Serves the journal `talk.md` over MCP, with keys and metadata.
#[cfg(feature = "mcp")]
const ROOM: &str = "schema: agentruntimes/v1
kind: MultiAgentRuntime
id: room
participants: [{id: host, displayName: Host, executor: rubric}]
substrate: {kind: file, path: talk.md}
dispatcher: {kind: mention}
";

#[cfg(feature = "mcp")]
#[test]
fn killed_anywhere_a_swarm_on_a_server_answers_everybody_once() {
    kill_all(|seed| {
        let place = swarm("{kind: guilde-mcp, server: here, conversationId: room}");
        place.write("room.yaml", ROOM);
        let server = support::mcp::Http::start(&place, &["--manifest", "room.yaml"], None);
        place.write("quorate.toml", format!("[mcp.here]\nurl = \"{}\"\n", server.url));
        killed(&place, transcript::journal, seed)
    });
}

/// Runs conversations until `kills` kills have happened.
fn kill_all(killed: impl Fn(u64) -> u64 + Sync) {
    let kills = number("QUORATE_SWARM_KILLS").unwrap_or(KILLS);
    let first = number("QUORATE_SWARM_SEED").unwrap_or(0);
    let seeds: Vec<u64> = (first..first + kills.div_ceil(KILLS_EACH)).collect();
    let run = |half: &[u64]| half.iter().map(|seed| killed(*seed)).sum::<u64>();
    let killed = std::thread::scope(|scope| {
        let halves = seeds.chunks(seeds.len().div_ceil(2));
        let halves: Vec<_> = halves.map(|half| scope.spawn(|| run(half))).collect();
        halves.into_iter().map(|half| half.join().expect("what failed was said")).sum::<u64>()
    });
    println!("{killed} kills of running swarms in {} conversations", seeds.len());
    assert!(
        killed >= kills * 3 / 4,
        "most processes were at work when they were killed: {killed} of {kills}"
    );
}

/// One conversation, killed again and again; gives how many processes were running when they were.
fn killed(place: &TestDir, read: Read, seed: u64) -> u64 {
    let _hint = ReproHint(seed);
    let mut chance = Rng::from_seed_and_name(seed, "kills");
    let (mut killed, mut said) = (0, 0);
    for _ in 0..KILLS_EACH {
        for _ in 0..chance.below(3) {
            say(place, &mut chance, &mut said);
        }
        let until = if chance.percent(70) { "--watch" } else { "--until-idle" };
        let child = place.start(&["run", "swarm.yaml", until]);
        let speaks = chance.percent(60).then(|| start_to_say(place, &mut chance, &mut said));
        let longest = [40, 150, 500][usize::try_from(chance.below(3)).unwrap_or(0)];
        std::thread::sleep(Duration::from_millis(chance.below(longest)));
        killed += u64::from(kill(child));
        if let Some((mut speaker, also)) = speaks {
            if also {
                kill(speaker);
            } else {
                assert!(speaker.wait().expect("it ends").success(), "the message is accepted");
            }
        }
    }
    say(place, &mut chance, &mut said);
    let last = place.run(&["run", "swarm.yaml"]).assert_code(0);
    assert!(!last.stderr.contains("quorate:"), "{}", last.stderr);
    let turns = read(place);
    place.assert_no_new_turns(&["swarm.yaml"]);
    assert_eq!(read(place), turns, "a run that finds nothing new says nothing");
    holds(place, &turns);
    killed
}

/// Kills a process; whether it was still at work. One that has ended has ended well.
fn kill(mut child: Child) -> bool {
    let ended = child.try_wait().expect("it is ours");
    child.kill().expect("it is ours");
    let ran = finish(child);
    let Some(ended) = ended else { return true };
    assert!(ended.success(), "{ran:?}");
    false
}

/// A turn of a person's: it mentions one, both or none, or begins a chain.
fn text_of(chance: &mut Rng, said: &mut u64) -> String {
    *said += 1;
    let mentions = ["@Ada", "@Bo", "@Ada and @Bo", "@Bo, chain", "nobody"];
    let mentions = mentions[usize::try_from(chance.below(5)).unwrap_or(0)];
    format!("h{said} {mentions}")
}

fn say(place: &TestDir, chance: &mut Rng, said: &mut u64) {
    place.run(&["say", "swarm.yaml", &text_of(chance, said)]).assert_code(0);
}

/// A process posts while the swarm runs; now and then it is also killed.
fn start_to_say(place: &TestDir, chance: &mut Rng, said: &mut u64) -> (Child, bool) {
    let text = text_of(chance, said);
    (place.start(&["say", "swarm.yaml", &text]), chance.percent(15))
}

/// Holds a conversation that is at rest against what has to be.
fn holds(place: &TestDir, turns: &[Turn]) {
    let ids: BTreeSet<&str> = turns.iter().map(|turn| &*turn.id).collect();
    assert_eq!(ids.len(), turns.len(), "an id stands twice");
    let people = turns.iter().filter(|turn| turn.participant == "user");
    let said: Vec<&str> = people.map(|turn| &*turn.content).collect();
    assert_eq!(
        said.iter().collect::<BTreeSet<_>>().len(),
        said.len(),
        "what was said once stands twice: {said:?}"
    );

    let mut answers: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut counts: BTreeMap<&str, Vec<u64>> = BTreeMap::from([("ada", Vec::new()), ("bo", Vec::new())]);
    for turn in turns.iter().filter(|turn| turn.participant != "user") {
        let word = |key: &str| turn.content.split(' ').find_map(|word| word.strip_prefix(key));
        let (trigger, by) = (word("re:").expect("a trigger"), word("by:").expect("an author"));
        assert_eq!((by, Some(trigger)), (&*turn.participant, turn.reply_to.as_deref()), "{turn:?}");
        let place_of = |id: &str| turns.iter().position(|one| one.id == id);
        assert!(place_of(trigger) < place_of(&turn.id), "{turn:?} stands before what it answers");
        *answers.entry((trigger.to_owned(), by.to_owned())).or_default() += 1;
        let count = word("n:").expect("a count").parse().expect("a number");
        assert_eq!(turn.state, Some(json!({"n": count})), "{turn:?}");
        counts.get_mut(by).expect("it takes part").push(count);
    }
    let mentioned =
        |turn: &&Turn, name: &str, id: &str| turn.content.contains(name) && turn.participant != id;
    for (name, id) in [("@Ada", "ada"), ("@Bo", "bo")] {
        for turn in turns.iter().filter(|turn| mentioned(turn, name, id)) {
            let count = answers.remove(&(turn.id.clone(), id.to_owned()));
            assert_eq!(count, Some(1), "{id} and {turn:?}, in {turns:#?}");
        }
    }
    assert!(answers.is_empty(), "unrequested answers {answers:?}, in {turns:#?}");

    for (id, counts) in counts {
        let last = counts.len() as u64;
        assert_eq!(counts, (1..=last).collect::<Vec<_>>(), "{id} was asked with a stale state");
        let state = place.run(&["state", "swarm.yaml", id, "--format", "json"]).assert_code(0).json();
        let state = state.get("state").unwrap_or(&state).clone();
        assert_eq!(state, if last == 0 { json!({}) } else { json!({"n": last}) }, "{id}");
    }

    let log = place.run(&["log", "swarm.yaml", "--format", "json"]).assert_code(0).json();
    let shown = |key: &str, turn: &Value| turn[key].as_str().map(str::to_owned).unwrap_or_default();
    let logged: Vec<[String; 4]> = log["turns"]
        .as_array()
        .expect("turns")
        .iter()
        .map(|turn| ["id", "participant", "content", "answers"].map(|key| shown(key, turn)))
        .collect();
    let read: Vec<[String; 4]> = turns
        .iter()
        .map(|turn| {
            let answers = turn.reply_to.clone().unwrap_or_default();
            [turn.id.clone(), turn.participant.clone(), turn.content.clone(), answers]
        })
        .collect();
    assert_eq!(logged, read, "`quorate log` and the journal");
    in_the_ledger(place, turns);
}

/// The ledger, whose chain holds, names every answer and nothing else.
fn in_the_ledger(place: &TestDir, turns: &[Turn]) {
    let ledger = place.path(".quorate/ledger.db");
    let stream = block_on(async {
        let url = format!("sqlite://{}", ledger.display());
        let mut connection = SqliteConnection::connect(&url).await.expect("it opens");
        let found = sqlx::query("SELECT DISTINCT run FROM record WHERE run LIKE 'turns/hardy/%'");
        let rows = found.fetch_all(&mut connection).await.expect("it answers");
        assert_eq!(rows.len(), 1, "one conversation has one stream");
        rows[0].get::<String, _>(0)
    });
    let records = records::records(&ledger, &stream);
    let records = of_kind(&records, "turn");
    let appended = records.iter().filter_map(|record| record["appended"].as_array()).flatten();
    let named: BTreeSet<String> = appended.map(|one| text(&one["turn"])).collect();
    let answers = turns.iter().filter(|turn| turn.reply_to.is_some());
    assert_eq!(named, answers.map(|turn| turn.id.clone()).collect(), "the ledger and the journal");
    let cursor = records.iter().rev().find_map(|record| record["cursor"].as_str());
    assert_eq!(cursor, turns.last().map(|turn| &*turn.id), "everything is settled");
}

#[test]
fn ctrl_c_ends_members_and_leaves_everything_as_it_should_be() {
    for (substrate, read) in SUBSTRATES {
        let place = swarm(substrate);
        // Ada says who she is, and hangs.
        place.write("player.sh", "#!/bin/sh\necho $$ >> pids\nexec sleep 300\n");
        place.run(&["say", "swarm.yaml", "@Ada and @Bo"]).assert_code(0);
        let child = place.start(&["run", "swarm.yaml", "--watch"]);
        let pids = || -> Vec<i32> {
            let text = std::fs::read_to_string(place.path("pids")).unwrap_or_default();
            text.lines().filter_map(|line| line.parse().ok()).collect()
        };
        wait_until(SOON, "two members at work", || pids().len() == 2);
        let busy = place.run(&["run", "swarm.yaml"]).assert_code(5);
        busy.assert_stderr_contains("quorate:runtime_busy");
        kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
        finish(child).assert_code(130);
        for pid in pids() {
            let pid = Pid::from_raw(pid).expect("a process");
            wait_until(SOON, "the end of a member", || test_kill_process(pid).is_err());
        }
        assert_eq!(read(&place).len(), 1, "no participant has answered");
        place.write("player.sh", PLAYER);
        place.run(&["run", "swarm.yaml"]).assert_code(0);
        holds(&place, &read(&place));
    }
}

#[test]
fn who_holds_a_runtime_and_is_killed_lets_the_next_one_in() {
    let place = swarm(SUBSTRATES[0].0);
    let mut holder = place.start(&["run", "swarm.yaml", "--watch"]);
    place.run(&["say", "swarm.yaml", "@Ada"]).assert_code(0);
    wait_until(SOON, "an answer", || transcript::journal(&place).len() == 2);
    place.run(&["run", "swarm.yaml"]).assert_code(5).assert_stderr_contains("quorate:runtime_busy");
    holder.kill().expect("it is ours");
    holder.wait().expect("it ends");
    place.run(&["run", "swarm.yaml"]).assert_code(0);
    holds(&place, &transcript::journal(&place));
}
