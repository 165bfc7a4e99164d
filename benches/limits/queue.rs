//! The queue of a ledger in Postgres, and how soon watchers hear of a record that another process has committed.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use quorate::cluster::nats::{Heard, NatsEvents, NatsOptions};
use quorate::measured::{Environment, PathOverrides, Watcher, open_ledger};
use quorate::{NatsServers, Quorate};
use quorate_kernel::ports::ledger::{Append, Durability, Entry, Kind, Ledger as _};
use quorate_ledger::Store;
use quorate_ledger::store::address::StoreAddress;
use quorate_ledger::store::tasks::{Batch, GiveBack, NewTask};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::cluster::{SERVER, execute, parts};
use crate::table::Measure;
use crate::{Bench, Failure};

/// The folder with a NATS server.
const NATS: &str = "QUORATE_TEST_NATS";
const TASKS: usize = 2_000;
const CLAIMERS: [usize; 2] = [1, 4];
const WATCHERS: usize = 100;
const EVENTS: usize = 100;
/// How long one event is waited for after the one before.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) fn measure(bench: &mut Bench) -> Result<(), Failure> {
    let Ok(server) = std::env::var(SERVER) else { return Ok(()) };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    for claimers in CLAIMERS {
        let schema = Schema::new(&server, &format!("claims_{claimers}"))?;
        let took = runtime.block_on(claims(bench, &schema.url, claimers))?;
        let rate = TASKS as f64 / took.as_secs_f64();
        let what = format!("claims of {claimers} workers that end each task at once");
        bench.table.unlimited(what, Measure::PerSecond(rate));
    }
    let Ok(folder) = std::env::var(NATS) else {
        bench.table.note(format!("no events: {NATS} names no folder (`scripts/services install nats`)"));
        return Ok(());
    };
    let nats = Nats::start(&folder)?;
    let heard = latency(bench, &runtime, &server, Some(&nats.url))?;
    let asked = latency(bench, &runtime, &server, None)?;
    for (share, word, limit) in [(50, "half of", None), (99, "99% of", Some(Duration::from_millis(50)))] {
        let at = |sorted: &[Duration]| sorted[(sorted.len() * share / 100).min(sorted.len() - 1)];
        let what = format!("{word} {WATCHERS} watchers show a record after");
        match limit {
            Some(limit) => bench.table.limited(what, Measure::Time(at(&heard)), Measure::Time(limit)),
            None => bench.table.unlimited(what, Measure::Time(at(&heard))),
        }
        bench.table.peer("asking twice a second", Measure::Time(at(&asked)));
    }
    Ok(())
}

/// A schema of its own, which is dropped.
struct Schema {
    server: String,
    name: String,
    url: String,
}

impl Schema {
    fn new(server: &str, name: &str) -> Result<Schema, Failure> {
        let name = format!("bench_{}_{name}", std::process::id());
        execute(server, &format!("CREATE SCHEMA {name}"))?;
        let (user, database) = parts(server)?;
        let host = server.rsplit('@').next().and_then(|rest| rest.split('/').next()).ok_or("no host")?;
        let url =
            format!("postgres://{user}@{host}/{database}?sslmode=disable&options=-csearch_path%3D{name}");
        Ok(Schema { server: server.to_owned(), name, url })
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        let _ = execute(&self.server, &format!("DROP SCHEMA {} CASCADE", self.name));
    }
}

struct Nats {
    process: Child,
    url: String,
}

impl Nats {
    fn start(folder: &str) -> Result<Nats, Failure> {
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = Command::new(format!("{folder}/bin/nats-server"));
        command.args(["-a", "127.0.0.1", "-p", &port.to_string()]).stderr(Stdio::null());
        let nats = Nats { process: command.spawn()?, url: format!("nats://127.0.0.1:{port}") };
        let began = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            if began.elapsed() > Duration::from_secs(10) {
                return Err("NATS does not answer".into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(nats)
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// How long it takes to claim all tasks one by one and to end each.
async fn claims(bench: &Bench, url: &str, claimers: usize) -> Result<Duration, Failure> {
    let mut stores = Vec::new();
    for number in 0..claimers {
        let dir = bench.place.dir(&format!("claims-{claimers}-{number}"))?;
        stores.push(Arc::new(
            Store::open_at(&StoreAddress::Postgres { url: url.to_owned(), dir }).await?.store,
        ));
    }
    let (id, name) = ("b1".to_owned(), "default".to_owned());
    let batch = Batch { id, tenant: name.clone(), class: name, priority: 1, log: None };
    let task = |number: usize| NewTask {
        content: format!("{number:064}"),
        generation: 0,
        run: format!("r{number:06}").into(),
        subject: format!("drafts/{number}.md"),
        body: "{}".to_owned(),
        texts: [].into(),
    };
    for first in (0..TASKS).step_by(1000) {
        let tasks: Vec<NewTask> = (first..(first + 1000).min(TASKS)).map(task).collect();
        stores[0].enqueue(&batch, &tasks).await?.expect("the tasks are queued");
    }
    let began = Instant::now();
    let mut working = JoinSet::new();
    for store in stores {
        working.spawn(async move {
            let classes = ["default".to_owned()];
            loop {
                let claimed = store.claim_tasks(&classes, 1).await?;
                if claimed.is_empty() {
                    return Ok::<_, quorate_kernel::ports::ledger::LedgerError>(());
                }
                for task in claimed {
                    store.give_back(&task.run, &GiveBack::Dead { why: "measured".to_owned() }).await?;
                }
            }
        });
    }
    while let Some(done) = working.join_next().await {
        done??;
    }
    Ok(began.elapsed())
}

/// How long after its commit was asked for each watcher has shown each record, sorted.
fn latency(
    bench: &Bench,
    runtime: &tokio::runtime::Runtime,
    server: &str,
    nats: Option<&str>,
) -> Result<Vec<Duration>, Failure> {
    let name = if nats.is_some() { "heard" } else { "asked" };
    let schema = Schema::new(server, name)?;
    let environment = |number: usize| -> Result<Environment, Failure> {
        let builder = Quorate::builder().workspace(bench.place.dir(&format!("events-{name}-{number}"))?);
        Ok(builder.ledger(schema.url.clone()).build_unvalidated()?.environment().clone())
    };
    let options = |publishes: bool| {
        nats.map(|servers| NatsOptions {
            servers: NatsServers { urls: servers.to_owned(), credentials: None, inbox: None },
            publishes,
            listens: (!publishes).then_some(Heard::Runs),
        })
    };
    let all: Vec<Environment> = (0..=WATCHERS).map(environment).collect::<Result<_, _>>()?;
    runtime.block_on(async {
        let (ready, mut is_ready) = mpsc::unbounded_channel();
        let (shown, mut all_shown) = mpsc::unbounded_channel::<(usize, Instant)>();
        let mut watching = JoinSet::new();
        let connected = |environment: Environment, options: Option<NatsOptions>| async move {
            let events = match options {
                Some(options) => Some(NatsEvents::connect(&environment.commit_events, &options).await),
                None => None,
            };
            let events = events.transpose().map_err(|error| error.first_message())?;
            let session = open_ledger(&environment, &PathOverrides::default()).await;
            Ok::<_, Failure>((events, session.map_err(|error| error.first_message())?))
        };
        let (_events, writing) = connected(all[0].clone(), options(true)).await?;
        for environment in &all[1..] {
            let (events, session) = connected(environment.clone(), options(false)).await?;
            let (ready, shown) = (ready.clone(), shown.clone());
            watching.spawn(async move {
                let _events = events;
                let Ok(mut watcher) = Watcher::new(Arc::new(session), None).await else { return };
                let _ = ready.send(());
                while let Ok(event) = watcher.next().await {
                    let number = event.run.trim_start_matches("rbench").parse().unwrap_or_default();
                    let _ = shown.send((number, Instant::now()));
                }
            });
        }
        for _ in 0..WATCHERS {
            is_ready.recv().await.ok_or("a watcher ended")?;
        }
        let mut sent = Vec::with_capacity(EVENTS);
        for number in 0..EVENTS {
            let data = json!({
                "subject": "a.md", "artifact_type": "text", "artifact_sha256": "aa", "log_path": "/log",
                "fingerprint": {"council": "c1"}, "protocol": "council/1",
            });
            let data = data.as_object().cloned().unwrap_or_default();
            let entry = Entry { kind: Kind::RunOpened, at_ms: 1_000, data };
            sent.push(Instant::now());
            let run = format!("rbench{number}").into();
            writing.store.append(Append::one(&run, 0, entry, Durability::Written)).await?;
            tokio::time::sleep(PAUSE).await;
        }
        let mut took = Vec::with_capacity(EVENTS * WATCHERS);
        while took.len() < EVENTS * WATCHERS {
            let next = tokio::time::timeout(Duration::from_secs(10), all_shown.recv()).await;
            let (number, at) = next?.ok_or("a watcher ended")?;
            took.push(at - sent[number]);
        }
        took.sort_unstable();
        Ok(took)
    })
}
