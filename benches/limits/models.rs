//! Models over HTTP, asked of a server on loopback that answers at once: what a call through the executor `llm` takes beside
//! a bare client that sends the same bytes and reads what comes, the memory of many open streams, and a review beside the
//! same one with prepared answers.

use std::io::{BufReader, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http_body_util::{BodyExt as _, Full};
use hyper::Request as HttpRequest;
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use quorate_kernel::ports::executor::{Executor, Invocation, Progress};
use quorate_kernel::single_call;
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::caching::executor;
use crate::model_server::{ADJUDICATION, DELIBERATION, HELD, ModelServer, Request, reply};
use crate::place::{launch_post, long_text};
use crate::process::{self, command, median, middle};
use crate::table::Measure;
use crate::{Bench, Failure};

/// What arguments of [`process::measure_inside`] begin with that are meant for here.
pub(super) const OURS: &str = "models-";
/// Where processes find the server's address.
const ADDRESS: &str = "address";

/// What a review adds to its question, about.
const PROMPT_BYTES: usize = 12 << 10;
const CALLS: usize = 2_000;
const IN_FLIGHT: usize = 64;
const CALLS_OF_EACH: usize = 100;
const STREAMS: usize = 500;
const REVIEWS: usize = 31;
const ROUNDS: usize = 5;
const PATIENCE: Duration = Duration::from_secs(600);

pub(super) fn measure(bench: &mut Bench) -> Result<(), Failure> {
    let dir = bench.place.dir("models")?;
    let server = ModelServer::start(&dir)?;
    std::fs::write(dir.join(ADDRESS), &server.address)?;
    let time = |what: &str| process::measure_inside(&format!("{OURS}{what}"), &dir);
    let medians = |what: [&str; 2]| -> Result<[Duration; 2], Failure> {
        let mut all = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            all[0].push(time(what[0])?);
            all[1].push(time(what[1])?);
        }
        Ok(all.map(middle))
    };
    let [overhead, bare] = medians(["overhead", "bare-call"])?;
    let limit = Measure::Time(Duration::from_micros(300));
    bench.table.limited("call of a model, less a bare client's call", Measure::Time(overhead), limit);
    bench.table.peer("the bare client's call", Measure::Time(bare));
    let [ours, bare] = medians(["busy", "bare-busy"])?;
    let what = format!("processor time of {} calls, {IN_FLIGHT} at once", IN_FLIGHT * CALLS_OF_EACH);
    bench.table.limited(what, Measure::Time(ours), Measure::Time(bare.mul_f64(1.2)));
    bench.table.peer("the bare client", Measure::Time(bare));
    let kib = process::number_inside(&format!("{OURS}streams"), &dir)?;
    let what = format!("memory that {STREAMS} open streams add");
    bench.table.limited(what, Measure::Memory(kib), Measure::Memory(60 << 10));
    reviews(bench, &dir, &server.address)
}

/// A review of nine calls, and the same with prepared answers.
fn reviews(bench: &mut Bench, dir: &Path, server: &str) -> Result<(), Failure> {
    launch_post(dir)?;
    std::fs::write(
        dir.join("answers.json"),
        format!("{{\"_\": {DELIBERATION}, \"adjudicate\": {ADJUDICATION}}}"),
    )?;
    let table = "[executors.prepared]\nkind = \"script\"\npath = \"answers.json\"\n";
    std::fs::write(dir.join("quorate.toml"), table)?;
    let http = format!("{server}/v1#m");
    let mut walls = [Vec::new(), Vec::new()];
    for _ in 0..REVIEWS {
        for (executor, walls) in ["prepared", &http].iter().zip(&mut walls) {
            let took = median(1, &[0], || {
                let _ = std::fs::remove_dir_all(dir.join(".quorate"));
                let mut review =
                    command(&bench.quorate, dir, &["review", "launch-post.md", "--executor", executor]);
                review.env("XDG_STATE_HOME", dir.join("state"));
                Ok(review)
            })?;
            walls.push(took.wall);
        }
    }
    let [prepared, asked] = walls.map(middle);
    let limit = Measure::Time(prepared * 2);
    bench.table.limited("review by a model that answers at once", Measure::Time(asked), limit);
    bench.table.peer("the same with prepared answers", Measure::Time(prepared));
    Ok(())
}

/// Is the process of its own.
pub(super) async fn inside(what: &str, dir: &Path) -> Result<u64, Failure> {
    let address = std::fs::read_to_string(dir.join(ADDRESS))?;
    let nanos = match what {
        "overhead" => overhead(&address).await?,
        "bare-call" => bare_call(&address).await?,
        "busy" => busy(&address).await?,
        "bare-busy" => bare_busy(&address).await?,
        "streams" => return streams(&address).await,
        other => return Err(format!("there is no `{other}`").into()),
    };
    Ok(u64::try_from(nanos.as_nanos())?)
}

/// An executor that asks below an address.
fn model(address: &str, concurrency: usize) -> Result<Arc<dyn Executor>, Failure> {
    executor(&json!({"wire": "chat", "base_url": address, "model": "m", "concurrency": concurrency}))
}

fn question() -> Invocation {
    let question = single_call::probe_question(PATIENCE);
    let prompt = format!("{}\n{}", question.prompt, long_text(PROMPT_BYTES));
    Invocation { prompt: prompt.into(), ..question }
}

async fn call(executor: &dyn Executor, question: &Invocation) -> Result<(), Failure> {
    let _admitted = executor.admit().await;
    let reply = executor.invoke(question.clone()).await?;
    match reply.text == DELIBERATION {
        true => Ok(()),
        false => Err(format!("the answer is `{}`", reply.text).into()),
    }
}

/// A client that sends what `llm` sends.
struct Bare {
    client: Client<HttpConnector, Full<Bytes>>,
    request: HttpRequest<Full<Bytes>>,
}

impl Bare {
    async fn new(address: &str) -> Result<Bare, Failure> {
        let sent = sent().await?;
        let mut request = HttpRequest::post(format!("{address}/v1/chat/completions"));
        for line in sent.head.lines().skip(1) {
            let (name, value) = line.split_once(": ").ok_or("a header has no value")?;
            if !["host", "content-length"].contains(&name) {
                request = request.header(name, value);
            }
        }
        let request = request.body(Full::new(Bytes::from(sent.body)))?;
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Ok(Bare { client: Client::builder(TokioExecutor::new()).build(connector), request })
    }

    async fn call(&self) -> Result<(), Failure> {
        let mut response = self.client.request(self.request.clone()).await?;
        let mut bytes = 0;
        while let Some(frame) = response.frame().await {
            bytes += frame?.data_ref().map_or(0, Bytes::len);
        }
        match bytes > DELIBERATION.len() {
            true => Ok(()),
            false => Err("the response is too short".into()),
        }
    }
}

/// What `llm` sends.
async fn sent() -> Result<Request, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = format!("http://{}/v1", listener.local_addr()?);
    let server = std::thread::spawn(move || -> std::io::Result<Option<Request>> {
        let (mut stream, _) = listener.accept()?;
        let request = Request::read(&mut BufReader::new(stream.try_clone()?))?;
        stream.write_all(&reply(DELIBERATION))?;
        Ok(request)
    });
    call(&*model(&address, 1)?, &question()).await?;
    let request = server.join().map_err(|_| "the server panicked")??;
    request.ok_or_else(|| "nothing was sent".into())
}

/// How much longer a call through `llm` takes; both kinds in turn, so that both meet the same machine.
async fn overhead(address: &str) -> Result<Duration, Failure> {
    let (bare, ours, question) = (Bare::new(address).await?, model(&format!("{address}/v1"), 4)?, question());
    let mut all = [Vec::with_capacity(CALLS), Vec::with_capacity(CALLS)];
    for _ in 0..CALLS {
        let start = Instant::now();
        call(&*ours, &question).await?;
        let middle = Instant::now();
        bare.call().await?;
        all[0].push(middle - start);
        all[1].push(middle.elapsed());
    }
    let [ours, bare] = all.map(middle);
    Ok(ours.saturating_sub(bare))
}

async fn bare_call(address: &str) -> Result<Duration, Failure> {
    let bare = Bare::new(address).await?;
    let mut all = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let start = Instant::now();
        bare.call().await?;
        all.push(start.elapsed());
    }
    Ok(middle(all))
}

/// The processor time of calls of which so many are under way, once all connections stand.
async fn busy(address: &str) -> Result<Duration, Failure> {
    let (ours, question) = (model(&format!("{address}/v1"), IN_FLIGHT)?, Arc::new(question()));
    let calls = |times: usize| {
        let (ours, question) = (ours.clone(), question.clone());
        at_once(move || {
            let (ours, question) = (ours.clone(), question.clone());
            async move {
                for _ in 0..times {
                    call(&*ours, &question).await.map_err(|error| error.to_string())?;
                }
                Ok(())
            }
        })
    };
    calls(1).await?;
    let before = processor_time();
    calls(CALLS_OF_EACH).await?;
    Ok(processor_time() - before)
}

async fn bare_busy(address: &str) -> Result<Duration, Failure> {
    let bare = Arc::new(Bare::new(address).await?);
    let calls = |times: usize| {
        let bare = bare.clone();
        at_once(move || {
            let bare = bare.clone();
            async move {
                for _ in 0..times {
                    bare.call().await.map_err(|error| error.to_string())?;
                }
                Ok(())
            }
        })
    };
    calls(1).await?;
    let before = processor_time();
    calls(CALLS_OF_EACH).await?;
    Ok(processor_time() - before)
}

async fn at_once<F: Future<Output = Result<(), String>> + Send + 'static>(
    make: impl Fn() -> F,
) -> Result<(), Failure> {
    let mut tasks = JoinSet::new();
    (0..IN_FLIGHT).for_each(|_| drop(tasks.spawn(make())));
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}

/// What this process has kept processors busy for.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// How much memory open streams add to the first one, in KiB.
async fn streams(address: &str) -> Result<u64, Failure> {
    let executor = model(&format!("{address}{HELD}"), STREAMS + 1)?;
    let (told, mut begun) = mpsc::unbounded_channel();
    let question =
        Invocation { progress: Progress::new(move |_| told.send(()).unwrap_or_default()), ..question() };
    let mut tasks = JoinSet::new();
    let mut open = async |count: usize| -> Result<u64, Failure> {
        for _ in 0..count {
            let (executor, question) = (executor.clone(), question.clone());
            tasks.spawn(async move { call(&*executor, &question).await.map_err(|error| error.to_string()) });
        }
        for _ in 0..count {
            tokio::select! {
                _ = begun.recv() => {}
                Some(ended) = tasks.join_next() => ended??,
            }
        }
        resident_kib()
    };
    let first = open(1).await?;
    Ok(open(STREAMS).await?.saturating_sub(first))
}

fn resident_kib() -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("the memory is not told")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
