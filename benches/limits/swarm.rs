//! Conversations: a cycle over journals of ten to a million turns, growing one, an idle look, five speakers at once, and
//! the whole process. Beside a journal that is synced stands a floor: as many writes and syncs by hand.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use quorate::conversation::SayRequest;
use quorate::measured::{OpenRuntime, PathOverrides, RuntimeRequest, open_runtime, say};
use quorate::{Quorate, Trust};
use quorate_kernel::conversation::NewTurn;
use quorate_kernel::ports::executor::{About, ConfigError, Executor, Failure, Invocation, Reply, Settings};
use quorate_kernel::ports::telemetry::{Event, Telemetry};
use quorate_kernel::turn::{Begin, CycleResult, Runner};

use crate::process::{self, middle};
use crate::table::Measure;
use crate::{Bench, Failure as Broken};

/// What a turn says, in bytes.
const TURN: usize = 400;
const SIZES: [usize; 5] = [10, 1_000, 10_000, 100_000, 1_000_000];
const GROWN: usize = 10_000;

/// Answers at once, or after a while; never the same twice, which would be moved on by a millisecond each time.
struct Prompt(Duration, AtomicU64);

#[async_trait]
impl Executor for Prompt {
    fn about(&self) -> About {
        About { kind: "prompt", asks_a_model: false, model: None }
    }

    async fn invoke(&self, _: Invocation) -> Result<Reply, Failure> {
        if !self.0.is_zero() {
            tokio::time::sleep(self.0).await;
        }
        let number = self.1.fetch_add(1, Ordering::Relaxed);
        Ok(Reply { text: format!("{number:0TURN$}"), ..Reply::default() })
    }
}

struct Silent;

impl Telemetry for Silent {
    fn emit(&self, _: &Event) {}
}

fn turn(text: &str) -> SayRequest {
    SayRequest { text: text.to_owned(), ..SayRequest::default() }
}

pub(super) fn measure(bench: &mut Bench) -> Result<(), Broken> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let dir = bench.place.dir("swarm")?;
    let mut first = None;
    for turns in SIZES {
        let (cycle, idle) = runtime.block_on(cycles(&dir, turns))?;
        bench.table.limited(
            format!("cycle over a journal of {turns} turns, not synced"),
            Measure::Time(cycle),
            Measure::Time(Duration::from_micros(100)),
        );
        match first {
            None => first = Some(cycle),
            Some(first) => {
                let limit = Measure::Time(first.mul_f64(1.5));
                bench.table.limited("  against 1.5 x the one of 10", Measure::Time(cycle), limit);
            }
        }
        if turns == GROWN {
            bench.table.limited(
                "an idle look at it",
                Measure::Time(idle),
                Measure::Time(Duration::from_micros(20)),
            );
        }
    }
    let grown = runtime.block_on(grow(&dir.join("grown"), false))?;
    let limit = Measure::Time(Duration::from_secs(2));
    bench.table.limited(
        format!("growing a journal to {GROWN} turns, not synced"),
        Measure::Time(grown),
        limit,
    );
    let synced = runtime.block_on(grow(&dir.join("synced"), true))?;
    let floor = floor(&dir.join("floor"))?;
    let limit = Measure::Time(floor.mul_f64(1.2));
    bench.table.limited("  synced, against 1.2 x as many writes and syncs", Measure::Time(synced), limit);
    let five = runtime.block_on(five(&dir.join("five")))?;
    let limit = Measure::Time(Duration::from_millis(105));
    bench.table.limited("five speakers of 100 ms", Measure::Time(five), limit);
    whole(bench, &dir)
}

fn manifest(speakers: usize, substrate: &str) -> String {
    let mut text =
        String::from("schema: agentruntimes/v1\nkind: MultiAgentRuntime\nid: bench\nparticipants:\n");
    for at in 0..speakers {
        let _ = writeln!(text, "  - {{id: p{at}, executor: prompt}}");
    }
    let _ = writeln!(text, "substrate: {substrate}\ndispatcher: {{kind: mention}}\nstate: {{kind: memory}}");
    text
}

/// A journal in the public format, as another program would have written it.
fn journal(path: &Path, turns: usize) -> Result<(), Broken> {
    let mut out = BufWriter::new(File::create(path)?);
    let said = "x".repeat(TURN);
    for at in 0..turns {
        writeln!(out, "=== TURN id=u_{at} participant=user ts=2026-01-01T00:00:00.000Z ===\n{said}")?;
    }
    out.flush()?;
    Ok(())
}

async fn ready(dir: &Path, speakers: usize, substrate: &str, after: Duration) -> Result<OpenRuntime, Broken> {
    std::fs::create_dir_all(dir)?;
    std::fs::write(dir.join("swarm.yaml"), manifest(speakers, substrate))?;
    let builder = Quorate::builder().workspace(dir).state_dir(dir.join("state")).trust(Trust::Workspace);
    let prompt = move |_: &Settings| -> Result<Arc<dyn Executor>, ConfigError> {
        Ok(Arc::new(Prompt(after, AtomicU64::new(0))))
    };
    let quorate = builder.executor_with("prompt", prompt).build()?;
    let environment = quorate.environment();
    let request = RuntimeRequest::from("swarm.yaml");
    let opened = open_runtime(environment, &PathOverrides::default(), &request);
    let opened = Arc::new(opened.map_err(|stop| stop.first_message())?);
    OpenRuntime::open(&opened).await.map_err(|stop| stop.first_message().into())
}

async fn runner(ready: &OpenRuntime) -> Result<Runner, Broken> {
    let (runner, hold) =
        ready.runner(Begin::Now, None, Arc::new(Silent)).await.map_err(|stop| stop.first_message())?;
    // Each of these directories is one process's alone.
    drop(hold);
    Ok(runner)
}

/// The median of a cycle that answers, and of a look that finds nothing.
async fn cycles(dir: &Path, turns: usize) -> Result<(Duration, Duration), Broken> {
    let dir = dir.join(format!("cycles-{turns}"));
    std::fs::create_dir_all(&dir)?;
    journal(&dir.join("talk.md"), turns)?;
    let ready = ready(&dir, 1, "{kind: file, path: talk.md, sync: false}", Duration::ZERO).await?;
    let mut runner = runner(&ready).await?;
    let (mut answers, mut idles) = (Vec::new(), Vec::new());
    for number in 0..201 {
        let text = format!("@p0 {number:0TURN$}");
        say(&ready.runtime, &turn(&text)).await.map_err(|stop| stop.first_message())?;
        let start = Instant::now();
        let cycled = runner.cycle().await?;
        answers.push(start.elapsed());
        assert!(matches!(cycled, CycleResult::Asked { .. }), "a participant answers");
        runner.cycle().await?;
        let start = Instant::now();
        let cycled = runner.cycle().await?;
        idles.push(start.elapsed());
        assert_eq!(cycled, CycleResult::NoNewTurn, "everything is answered");
        // The ledger's task gets its turn, as it does while a process waits for a model.
        tokio::task::yield_now().await;
    }
    runner.close(Duration::from_secs(1)).await?;
    Ok((middle(answers), middle(idles)))
}

async fn grow(dir: &Path, sync: bool) -> Result<Duration, Broken> {
    let ready =
        ready(dir, 1, &format!("{{kind: file, path: talk.md, sync: {sync}}}"), Duration::ZERO).await?;
    let content: Arc<str> = "x".repeat(TURN).into();
    let start = Instant::now();
    for at in 0..GROWN {
        let timestamp = format!("2026-01-01T{:02}:{:02}:{:02}.000Z", at / 3600, at / 60 % 60, at % 60);
        let turn = NewTurn {
            participant: "user".into(),
            content: content.clone(),
            timestamp,
            meta: Default::default(),
            stamp: None,
        };
        ready.runtime.substrate.append(turn).await?;
    }
    Ok(start.elapsed())
}

/// As many writes of as many bytes, each synced.
fn floor(path: &Path) -> Result<Duration, Broken> {
    let mut file = File::create(path)?;
    let block = vec![b'x'; TURN + 80];
    let start = Instant::now();
    for _ in 0..GROWN {
        file.write_all(&block)?;
        file.sync_data()?;
    }
    Ok(start.elapsed())
}

async fn five(dir: &Path) -> Result<Duration, Broken> {
    let ready = ready(dir, 5, "{kind: file, path: talk.md}", Duration::from_millis(100)).await?;
    let mut runner = runner(&ready).await?;
    let mut all = Vec::new();
    for _ in 0..11 {
        say(&ready.runtime, &turn("@p0 @p1 @p2 @p3 @p4")).await.map_err(|stop| stop.first_message())?;
        let start = Instant::now();
        runner.cycle().await?;
        all.push(start.elapsed());
        for _ in 0..5 {
            runner.cycle().await?;
        }
    }
    runner.close(Duration::from_secs(1)).await?;
    Ok(middle(all))
}

/// The program itself: one cycle of a small conversation, and its memory over a large one.
fn whole(bench: &mut Bench, dir: &Path) -> Result<(), Broken> {
    let prepare = |dir: &Path, turns: usize| -> Result<(), Broken> {
        if dir.exists() {
            std::fs::remove_dir_all(dir)?;
        }
        std::fs::create_dir_all(dir)?;
        std::fs::write(dir.join("answers.json"), "{\"p0\": \"fine\"}")?;
        let text = manifest(1, "{kind: file, path: talk.md, sync: false}");
        let text = text.replace("executor: prompt", "executor: script, config: {path: answers.json}");
        std::fs::write(dir.join("swarm.yaml"), text)?;
        journal(&dir.join("talk.md"), turns)?;
        let mut journal = File::options().append(true).open(dir.join("talk.md"))?;
        writeln!(journal, "=== TURN id=u_last participant=user ts=2026-01-01T00:00:01.000Z ===\n@p0?")?;
        Ok(())
    };
    let command = |quorate: &Path, dir: &Path| {
        let mut command = Command::new(quorate);
        command.current_dir(dir).args(["run", "swarm.yaml", "--once"]);
        command
    };
    let small = dir.join("whole");
    let mut walls = Vec::new();
    for _ in 0..31 {
        prepare(&small, 10)?;
        let took = process::run(&mut command(&bench.quorate, &small))?;
        if took.code != 0 {
            return Err(format!("the run exited with {}", took.code).into());
        }
        walls.push(took.wall);
    }
    let limit = Measure::Time(Duration::from_millis(20));
    bench.table.limited("whole process for one cycle, new ledger", Measure::Time(middle(walls)), limit);
    let large = dir.join("large");
    prepare(&large, 1_000_000)?;
    let took = process::median(1, &[0], || Ok(command(&bench.quorate, &large)))?;
    bench.table.unlimited("first run over a million turns without an answer", Measure::Time(took.wall));
    let mut journal = File::options().append(true).open(large.join("talk.md"))?;
    writeln!(journal, "=== TURN id=u_more participant=user ts=2026-01-01T00:00:02.000Z ===\n@p0?")?;
    drop(journal);
    let took = process::median(1, &[0], || Ok(command(&bench.quorate, &large)))?;
    let limit = Measure::Time(Duration::from_secs(2));
    bench.table.limited("  started again, for one cycle", Measure::Time(took.wall), limit);
    bench.table.limited("  its memory", Measure::Memory(took.peak_kib), Measure::Memory(128 << 10));
    Ok(())
}
