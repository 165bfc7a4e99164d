//! Everything at once: workers that are killed and stopped, a server that crashes twice, drafts that are queued again and
//! again, and a NATS server that crashes three times, while a model server keeps count of every call that it gets.
//!
//! `QUORATE_CHAOS=1000` is about so many drafts, `QUORATE_SEEDS=7..8` another course of events; `scripts/soak` does that.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use rustix::process::Signal;
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};

use super::{signal, wait};
use crate::support::http::read_request;
use crate::support::nats::Nats;
use crate::support::own_postgres::Server;
use crate::support::said::Said;
use crate::support::{CommandOutput, TestDir, finish, wait_until};

const DRAFTS: usize = 200;
/// Drafts about which the model says nothing that counts.
const HOPELESS: usize = 5;
const WORKERS: usize = 4;
/// Nothing of it takes so long.
const LIMIT: Duration = Duration::from_secs(400);

/// A call that the model server got.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Asked {
    pub(super) draft: String,
    /// As the ledger names it: `r1/skeptic`.
    invocation: String,
}

pub(super) type Calls = Arc<Mutex<Vec<(Asked, i64)>>>;

pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    i64::try_from(since.as_millis()).expect("before the year 292 million")
}

/// Answers every call after a pause, and keeps which and when.
pub(super) fn model(pause: impl Fn(&Asked) -> Duration + Send + Sync + 'static) -> (String, Calls) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let calls = Calls::default();
    let (kept, pause) = (calls.clone(), Arc::new(pause));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (kept, pause) = (kept.clone(), pause.clone());
            // A client that was killed hangs up.
            std::thread::spawn(move || drop(answer(stream, &kept, &*pause)));
        }
    });
    (address, calls)
}

fn answer(
    mut stream: TcpStream,
    kept: &Mutex<Vec<(Asked, i64)>>,
    pause: &dyn Fn(&Asked) -> Duration,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let Some((_, body)) = read_request(&mut reader) else { return Ok(()) };
    let asked = asked(&serde_json::from_slice(&body)?);
    kept.lock().unwrap().push((asked.clone(), now_ms()));
    std::thread::sleep(pause(&asked));
    let said = match (&*asked.draft, &*asked.invocation) {
        ("hopeless", _) => json!("I would rather not say."),
        (_, "adjudicate") => json!({"verdict": "SHIP", "reasoning": "Fine."}),
        _ => json!({"would_block": false, "irreducible": false}),
    };
    let delta = json!({"model": "m", "choices": [{"index": 0, "delta": {"content": said.to_string()}}]});
    let stop = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\ndata: {delta}\n\ndata: {stop}\n\ndata: [DONE]\n\n"
    );
    stream.write_all(answer.as_bytes())
}

/// The member and step of a request, from its messages.
fn asked(body: &Value) -> Asked {
    let text = body["messages"].to_string();
    let word_after = |mark: &str| {
        let rest = text.split(mark).nth(1).unwrap_or_default();
        rest.chars().take_while(|c| c.is_ascii_alphanumeric()).collect::<String>()
    };
    let step = match word_after("This is round ").as_str() {
        "" => "adjudicate".to_owned(),
        round => format!("r{round}/{}", word_after("You are `")),
    };
    Asked { draft: word_after("draft number "), invocation: step }
}

/// From 50 to 300 milliseconds.
fn some_time(asked: &Asked) -> Duration {
    let bytes = asked.draft.bytes().chain(asked.invocation.bytes());
    Duration::from_millis(50 + bytes.map(u64::from).sum::<u64>() * 7 % 250)
}

/// A machine with a council of its own words and so many drafts.
pub(super) fn machine(drafts: usize, hopeless: usize) -> TestDir {
    let place = TestDir::new();
    let members = ["skeptic", "evidence", "voice"];
    for member in members {
        place.write(
            &format!("prompts/{member}.md"),
            format!("You are {member}. Say what stands against it.\n"),
        );
    }
    let listed: String =
        members.iter().map(|id| format!("  - {{id: {id}, prompt: prompts/{id}.md}}\n")).collect();
    place.write(
        "council.yaml",
        format!(
            "deliberators:\n{listed}adjudicator: {{prompt: builtin:adjudicator}}\ntier_rules:\n  tier_1: {{post: [\"*.md\"]}}\n\
             watch: {{paths: [./drafts/]}}\n"
        ),
    );
    for draft in 0..drafts {
        place.write(
            &format!("drafts/{draft:04}.md"),
            format!("This is draft number {draft:04}, and it is fine.\n"),
        );
    }
    for draft in 0..hopeless {
        place.write(
            &format!("drafts/x{draft}.md"),
            format!("This is draft number hopeless, the {draft}th.\n"),
        );
    }
    place
}

/// Some numbers that follow from a seed.
struct Course(u64);

impl Course {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// The address of a model, and how many calls it is asked at once.
pub(super) type Asking<'a> = (&'a str, u32);

/// A command of a machine that asks the model.
pub(super) fn command(
    place: &TestDir,
    arguments: &[&str],
    (model, at_once): Asking<'_>,
    ledger: &str,
) -> Command {
    place.write(
        "quorate.toml",
        format!(
            "[defaults]\nexecutor = \"m\"\n[executors.m]\nkind = \"llm\"\nbase_url = \"{model}\"\nmodel = \"m\"\n\
             concurrency = {at_once}\nretries = 0\n"
        ),
    );
    let mut command = place.command(arguments);
    command.env("QUORATE_LEDGER", ledger).env("QUORATE_TRUST", "1");
    command
}

struct Cluster {
    server: Server,
    model: String,
    nats: Option<Nats>,
    sweepers: Vec<TestDir>,
    places: Vec<TestDir>,
}

impl Cluster {
    fn command(&self, place: &TestDir, arguments: &[&str]) -> Command {
        let mut command = command(place, arguments, (&self.model, 64), &self.server.url);
        if let Some(nats) = &self.nats {
            command.env("QUORATE_NATS", nats.url());
        }
        command
    }

    fn run(&self, place: &TestDir, arguments: &[&str]) -> CommandOutput {
        finish(self.command(place, arguments).spawn().expect("the binary runs"))
    }

    fn worker(&self, at: usize) -> Child {
        let arguments = ["worker", "--slots", "8", "--format", "json"];
        self.command(&self.places[at], &arguments).spawn().expect("the binary runs")
    }

    fn enqueue(&self, at: usize) -> Child {
        let arguments = ["sweep", "--since", "all", "--enqueue", "--format", "json"];
        self.command(&self.sweepers[at], &arguments).spawn().expect("the binary runs")
    }
}

#[test]
fn nothing_is_lost_or_decided_twice_whatever_fails() {
    let Some(server) = Server::start() else { return };
    let drafts = std::env::var("QUORATE_CHAOS").map_or(DRAFTS, |count| count.parse().expect("a number"));
    let seed = std::env::var("QUORATE_SEEDS").ok().and_then(|seeds| seeds.split("..").next()?.parse().ok());
    let seed = seed.unwrap_or(1);
    let mut course = Course(seed);
    let (model, calls) = model(some_time);
    let mut cluster = Cluster {
        server,
        model,
        nats: Nats::start(),
        sweepers: vec![machine(drafts, HOPELESS), machine(drafts, HOPELESS)],
        places: (0..=WORKERS).map(|_| TestDir::new()).collect(),
    };
    let began = Instant::now();
    // Two machines queue the same at once, and one of them again in between.
    let both = [cluster.enqueue(0), cluster.enqueue(1)];
    both.into_iter().for_each(|child| drop(finish(child).assert_code(0)));
    let all = drafts + HOPELESS;
    assert_eq!(cluster.server.count("SELECT CAST(COUNT(*) AS TEXT) FROM task"), all, "seed {seed}");
    let mut watching =
        Said::start(cluster.command(&cluster.sweepers[1], &["watch", "--all", "--format", "json"]));
    watching.wait_for("following every run");
    // One worker is stopped as soon as it has tasks, and goes on when its leases have ended.
    let silent = cluster.worker(WORKERS);
    wait_until(Duration::from_secs(60), "it has asked", || calls.lock().unwrap().len() > 2);
    signal(&silent, Signal::STOP);
    let mut workers: Vec<Child> = (0..WORKERS).map(|at| cluster.worker(at)).collect();
    let (mut kills, mut crashes, mut again) = (0, 0, None);
    let mut next_kill = Duration::from_millis(2_000 + course.below(2_000));
    let mut nats_crashes = 0;
    let (mut is_continued, mut continued_ms) = (false, 0);
    let started = Instant::now();
    loop {
        let at = started.elapsed();
        assert!(began.elapsed() < LIMIT, "seed {seed}: it does not end: {:?}", states(&cluster));
        if !is_continued && at > Duration::from_secs(20) {
            continued_ms = now_ms();
            signal(&silent, Signal::CONT);
            is_continued = true;
        }
        if crashes < 2 && at > Duration::from_secs(5 + 6 * crashes) {
            cluster.server.script("crash");
            crashes += 1;
        }
        if let Some(nats) = cluster
            .nats
            .as_mut()
            .filter(|_| nats_crashes < 3 && at > Duration::from_secs(3 + 5 * nats_crashes))
        {
            nats.crash();
            nats.start_again();
            nats_crashes += 1;
        }
        if at > next_kill {
            let victim = usize::try_from(course.below(WORKERS as u64)).unwrap();
            signal(&workers[victim], Signal::KILL);
            finish(std::mem::replace(&mut workers[victim], cluster.worker(victim)));
            kills += 1;
            next_kill = at + Duration::from_millis(2_000 + course.below(2_000));
        }
        if again.is_none() && at > Duration::from_secs(7) {
            again = Some(cluster.enqueue(0));
        }
        // Retries become due at once.
        wait(async {
            if let Ok(mut connection) = PgConnection::connect(&cluster.server.url).await {
                let now = "UPDATE task SET not_before_ms = 0 WHERE state = 'ready' AND not_before_ms > 0";
                let _ = sqlx::query(now).execute(&mut connection).await;
            }
        });
        let open = "SELECT CAST(COUNT(*) AS TEXT) FROM task WHERE state IN ('ready', 'leased')";
        if is_continued && crashes == 2 && cluster.server.count(open) == 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(250));
    }
    // With 3 where a hopeless one was dead already.
    let again = finish(again.expect("it was begun"));
    assert!([0, 3].contains(&again.code), "seed {seed}: {again:?}");
    for child in workers {
        signal(&child, Signal::TERM);
        finish(child).assert_code(0);
    }
    signal(&silent, Signal::TERM);
    let silent = finish(silent).assert_code(0);
    let took = started.elapsed();

    // 1: each is done once or dead, and no lease is left.
    assert_eq!(
        states(&cluster),
        BTreeMap::from([("dead".into(), HOPELESS), ("done".into(), drafts)]),
        "seed {seed}"
    );
    assert_eq!(cluster.server.count("SELECT CAST(COUNT(*) AS TEXT) FROM lease"), 0, "seed {seed}");
    let twice = "SELECT record.run FROM record JOIN task ON task.run = record.run WHERE kind = 'outcome' AND state = 'done' \
        GROUP BY record.run HAVING COUNT(*) <> 1";
    let twice = cluster.server.column(twice);
    assert!(twice.is_empty(), "seed {seed}: {twice:?} have not one outcome");
    // 2: no call for what was answered, and no more calls than there were takeovers.
    let answered = answered(&cluster.server);
    let takeovers = takeovers(&cluster.server);
    let mut counts: BTreeMap<&Asked, i64> = BTreeMap::new();
    let mut late = 0;
    let calls = calls.lock().unwrap();
    for (asked, at_ms) in calls.iter().filter(|(asked, _)| asked.draft != "hopeless") {
        *counts.entry(asked).or_default() += 1;
        let recorded_ms =
            answered.get(asked).unwrap_or_else(|| panic!("seed {seed}: {asked:?} has no record"));
        // What was on its way to the network when the process was stopped is sent when it goes on: no check is later.
        if (continued_ms..continued_ms + 1_000).contains(at_ms) && at_ms > recorded_ms {
            late += 1;
            continue;
        }
        assert!(
            at_ms <= recorded_ms,
            "seed {seed}: {asked:?} was asked {} ms after its answer was recorded",
            at_ms - recorded_ms
        );
    }
    assert!(late <= 8 * 3, "seed {seed}: {late} calls of a worker with 8 slots for councils of three");
    assert_eq!(counts.len(), drafts * 7, "seed {seed}");
    let repeated: i64 = counts.values().map(|count| count - 1).sum();
    for (asked, count) in &counts {
        // A crash of the server loses claims that it had not synced: they are not counted.
        let most = 1 + takeovers[&asked.draft] + 2;
        assert!(
            *count <= most,
            "seed {seed}: {asked:?} was asked {count} times, after {} takeovers",
            most - 3
        );
    }
    // 3: the ledger is whole, and replays give what was decided.
    cluster.run(&cluster.sweepers[0], &["ledger", "verify"]).assert_code(0);
    for run in cluster.server.column("SELECT run FROM task WHERE state = 'done' ORDER BY run LIMIT 20") {
        cluster.run(&cluster.sweepers[1], &["replay", &run]).assert_code(0);
    }
    // 4: the worker that was continued was refused, and gave up.
    let ends: BTreeSet<String> = silent
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["end"].as_str().unwrap().to_owned())
        .collect();
    assert!(ends.contains("lost"), "seed {seed}: {ends:?}");
    // 5: what was watched of a run is what it says afterwards.
    let watched = watching.stop();
    let watched: Vec<Value> = watched.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    for run in cluster.server.column("SELECT run FROM task WHERE state = 'done' ORDER BY run DESC LIMIT 20") {
        let again = cluster.run(&cluster.sweepers[1], &["watch", &run, "--format", "json"]).assert_code(0);
        let again: Vec<Value> =
            again.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let of_run: Vec<&Value> = watched.iter().filter(|event| event["run"] == *run).collect();
        assert_eq!(of_run, again.iter().collect::<Vec<_>>(), "seed {seed}");
    }
    // Its lines are logged once each where they were queued.
    let mut logged = 0;
    for sweeper in &cluster.sweepers {
        cluster.run(sweeper, &["runs", "--limit", "1"]).assert_code(0);
        logged += sweeper.log().iter().filter(|line| line["verdict"] == "SHIP").count();
    }
    assert_eq!(logged, drafts, "seed {seed}");
    println!(
        "{drafts} drafts queued three times, {} calls ({repeated} of them again), {kills} kills, {crashes} crashes of the server: {took:.1?}",
        calls.len()
    );
}

fn states(cluster: &Cluster) -> BTreeMap<String, usize> {
    let mut states = BTreeMap::new();
    for state in cluster.server.column("SELECT state FROM task") {
        *states.entry(state).or_default() += 1;
    }
    states
}

/// When each answer was recorded, by the clock of this machine.
fn answered(server: &Server) -> BTreeMap<Asked, i64> {
    let rows = server.column(
        "SELECT subject || '|' || head || '|' || data FROM record JOIN task ON task.run = record.run \
         WHERE kind = 'consultation' AND subject NOT LIKE '%/x%'",
    );
    let mut answered = BTreeMap::new();
    for row in rows {
        let mut parts = row.splitn(2, "|{");
        let subject = parts.next().unwrap();
        let (head, data) = parts.next().unwrap().split_once("}|{").unwrap();
        let head: Value = serde_json::from_str(&format!("{{{head}}}")).unwrap();
        let data: Value = serde_json::from_str(&format!("{{{data}")).unwrap();
        let draft = PathBuf::from(subject).file_stem().unwrap().to_str().unwrap().to_owned();
        let invocation = data["invocation"].as_str().unwrap().to_owned();
        let at_ms = quorate_manifest::timestamp::parse(head["at"].as_str().unwrap()).unwrap();
        answered.entry(Asked { draft, invocation }).or_insert(at_ms);
    }
    answered
}

/// How often each draft's task was claimed again.
fn takeovers(server: &Server) -> BTreeMap<String, i64> {
    let rows = server.column("SELECT subject || '|' || attempts FROM task WHERE subject NOT LIKE '%/x%'");
    let row = |row: &String| {
        let (subject, attempts) = row.split_once('|').unwrap();
        let draft = PathBuf::from(subject).file_stem().unwrap().to_str().unwrap().to_owned();
        (draft, attempts.parse::<i64>().unwrap() - 1)
    };
    rows.iter().map(row).collect()
}
