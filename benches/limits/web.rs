//! Pages: the list of 10 000 runs, documents of 20 kB and of 2 MiB with 500 findings, and the cost of an idle server and of one with
//! 200 watchers of a run. The server is a process of its own; times are of a whole request on this machine.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use quorate_kernel::attempts::object;
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::ledger::{Append, Durability, Entry, Kind, Ledger as _};
use quorate_ledger::Store;
use serde_json::{Value, json};

use crate::process::{command, middle};
use crate::table::Measure;
use crate::{Bench, Failure, place, process};

/// The argument of [`process::measure_inside`] that generates the ledger.
pub(super) const GENERATE: &str = "web-runs";
const RUNS: u64 = 10_000;
const FINDINGS: usize = 500;
const DOCUMENT: usize = 2 * 1024 * 1024;
const WATCHERS: usize = 200;
const TIMES: usize = 21;
/// How long the idle server is looked at.
const IDLE: Duration = Duration::from_secs(10);
const MEMBERS: [&str; 4] = ["skeptic", "voice_identity", "evidence", "strategy"];

pub(super) fn measure(bench: &mut Bench) -> Result<(), Failure> {
    runs(bench)?;
    let usual: String =
        (1..=FINDINGS).map(|number| format!("Part {number} has no source yet.\n\n")).collect();
    document(bench, "web-document", &usual, Duration::from_millis(50))?;
    document(bench, "web-long-document", &place::long_text(DOCUMENT), Duration::from_millis(150))?;
    watchers(bench)
}

fn runs(bench: &mut Bench) -> Result<(), Failure> {
    let dir = bench.place.dir("web-runs")?;
    std::fs::create_dir_all(dir.join(".quorate"))?;
    process::measure_inside(GENERATE, &dir.join(".quorate"))?;
    let served = Served::start(&bench.quorate, &dir)?;
    std::thread::sleep(Duration::from_secs(2));
    let (busy, resident) = (served.busy()?, served.resident_kib()?);
    std::thread::sleep(IDLE);
    let idle = served.busy()?.saturating_sub(busy);
    bench.table.limited("serve, idle: its memory", Measure::Memory(resident), Measure::Memory(25 * 1024));
    let hundredth = IDLE / 100;
    bench.table.limited("  its processor time in 10 s", Measure::Time(idle), Measure::Time(hundredth));
    let limit = Measure::Time(Duration::from_millis(50));
    let mut weight = 0;
    for (what, path) in [
        ("page of the runs, 10 000 in the ledger", "/"),
        ("  only those of a producer", "/?producer=op-3"),
        ("  only votes, of which there are none", "/?mode=voting"),
        ("  only a type and a verdict", "/?type=type-7&verdict=hold"),
        ("  the last page", "/?before=rrun000000000050"),
        ("  as JSON, 50 runs", "/api/v1/runs"),
    ] {
        let mut took = Vec::new();
        for _ in 0..TIMES {
            let start = Instant::now();
            let body = served.get(path)?;
            took.push(start.elapsed());
            if path == "/" {
                weight = body.len();
            }
        }
        bench.table.limited(what, Measure::Time(middle(took)), limit);
    }
    let page = served.get("/")?;
    let assets: usize =
        assets(&page).iter().map(|path| Ok(served.get(path)?.len())).sum::<Result<_, Failure>>()?;
    let kilobytes = |bytes: usize| Measure::Count(bytes.div_ceil(1_000) as u64);
    bench.table.limited(
        "weight of the page of the runs with style and script, in kB",
        kilobytes(weight + assets),
        Measure::Count(60),
    );
    let audit = served.get("/audit")?.len();
    bench.table.limited(
        "weight of the audit with style and script, in kB",
        kilobytes(audit + assets),
        Measure::Count(60),
    );
    bench.table.unlimited("serve, after these pages: its memory", Measure::Memory(served.resident_kib()?));
    Ok(())
}

/// The addresses of style and script.
fn assets(page: &str) -> Vec<String> {
    let paths = page.split('"').filter(|part| part.starts_with("/assets/"));
    paths.map(str::to_owned).collect()
}

fn document(bench: &mut Bench, name: &str, text: &str, limit: Duration) -> Result<(), Failure> {
    let dir = bench.place.dir(name)?;
    // Quotes that are in the text once each.
    let parts =
        text.match_indices("Part ").map(|(at, _)| text[at..].split(['.', '\n']).next().unwrap_or_default());
    let quotes: Vec<&str> = parts.take(FINDINGS).collect();
    let answer = |from: usize| -> Value {
        let of_member = quotes.iter().skip(from).step_by(MEMBERS.len());
        let findings =
            of_member.map(|quote| json!({"quote": quote, "issue": "It has no source.", "fix": "Name one."}));
        json!({"would_block": true, "irreducible": false, "score": 2, "findings": findings.collect::<Vec<_>>()})
    };
    let mut script = json!({"adjudicate": {"verdict": "HOLD", "reasoning": "It rests on nothing."}});
    for (at, member) in MEMBERS.iter().enumerate() {
        for round in ["r1", "r2"] {
            script[format!("{round}/{member}")] = answer(at);
        }
    }
    scripted(&dir, &script, "")?;
    std::fs::write(dir.join("long.md"), text)?;
    process::run(command(&bench.quorate, &dir, &["review", "long.md"]).env("QUORATE_TRUST", "1"))?;
    let served = Served::start(&bench.quorate, &dir)?;
    let page = served.get("/runs/latest")?;
    let shown = page.matches("<article class=\"finding").count();
    if shown < FINDINGS.min(quotes.len()) {
        return Err(format!("{shown} of {} findings are on the page", quotes.len()).into());
    }
    let took = (0..TIMES).map(|_| {
        let start = Instant::now();
        served.get("/runs/latest")?;
        Ok(start.elapsed())
    });
    let took = took.collect::<Result<Vec<_>, Failure>>()?;
    let what = format!("page of a run, {} kB with {shown} findings", text.len() / 1_000);
    bench.table.limited(what, Measure::Time(middle(took)), Measure::Time(limit));
    Ok(())
}

fn watchers(bench: &mut Bench) -> Result<(), Failure> {
    let dir = bench.place.dir("web-watchers")?;
    let answer = json!({"would_block": false, "irreducible": false, "score": 4});
    let script =
        json!({"r1": answer, "r2": answer, "adjudicate": {"verdict": "SHIP", "reasoning": "It is plain."}});
    scripted(&dir, &script, "delay = \"8s\"\n")?;
    std::fs::write(dir.join("draft.md"), "We meet at ten.\n")?;
    let mut review = command(&bench.quorate, &dir, &["review", "draft.md"])
        .env("QUORATE_TRUST", "1")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let served = Served::start(&bench.quorate, &dir)?;
    while !served.get("/api/v1/runs")?.contains("\"open\":true") {
        std::thread::sleep(Duration::from_millis(50));
    }
    let streams: Vec<TcpStream> =
        (0..WATCHERS).map(|_| served.open("/api/v1/runs/latest/events")).collect::<Result<_, _>>()?;
    let (busy, start) = (served.busy()?, Instant::now());
    review.wait()?;
    let ended = streams.into_iter().map(|stream| {
        let mut text = String::new();
        // A stream that was cut has no `end`.
        BufReader::new(stream).read_to_string(&mut text).ok();
        text.contains("event: end")
    });
    if !ended.collect::<Vec<_>>().iter().all(|ended| *ended) {
        return Err("not every watcher saw the end of the run".into());
    }
    let (busy, elapsed) = (served.busy()?.saturating_sub(busy), start.elapsed());
    let a_minute = busy.mul_f64(60.0 / elapsed.as_secs_f64());
    bench.table.limited(
        format!("{WATCHERS} watchers of one run: processor time of a minute"),
        Measure::Time(a_minute),
        Measure::Time(Duration::from_secs(1)),
    );
    Ok(())
}

/// A workspace whose members answer from a script.
fn scripted(dir: &Path, script: &Value, more: &str) -> Result<(), Failure> {
    std::fs::write(dir.join("answers.json"), script.to_string())?;
    let config = format!(
        "[defaults]\nexecutor = \"script\"\n\n[executors.script]\nkind = \"script\"\npath = \"answers.json\"\n{more}"
    );
    Ok(std::fs::write(dir.join("quorate.toml"), config)?)
}

/// Makes a ledger of many runs; is the process of its own.
pub(super) async fn generate(dir: &Path) -> Result<Duration, Failure> {
    let store = Store::open(&dir.join("ledger.db")).await?.store;
    let start = Instant::now();
    for number in 0..RUNS {
        let append = Append {
            run: format!("rrun{number:012}").as_str().into(),
            from: 0,
            entries: records(number),
            bodies: Vec::new(),
            durability: Durability::Written,
        };
        store.append(append).await?;
    }
    store.close().await;
    Ok(start.elapsed())
}

fn records(number: u64) -> Vec<Entry> {
    let at_ms = 1_788_000_000_000 + i64::try_from(number).unwrap_or(0) * 600_000;
    let entry = |kind, data| Entry { kind, at_ms, data: object(data) };
    let verdict = ["SHIP", "REVISE", "HOLD"][(number % 3) as usize];
    let counted: Vec<Value> = MEMBERS
        .iter()
        .map(|id| json!({"id": id, "counted": "round2", "would_block": verdict == "HOLD", "ungrounded": false}))
        .collect();
    let mut reasoning = String::new();
    for part in 0..40 {
        let _ = write!(reasoning, "Claim {part} of draft {number} has no source. ");
    }
    let opened = json!({
        "protocol": "council/1", "program": "quorate", "subject": format!("drafts/draft-{number:05}.md"),
        "artifact_type": format!("type-{}", number % 20), "artifact_sha256": sha256_hex(&number.to_be_bytes()),
        "producer": {"operator": format!("op-{}", number % 50), "trying": []}, "setup": {"about": reasoning},
        "fingerprint": {"council": "c0"}, "log_path": "",
    });
    let mut records = vec![entry(Kind::RunOpened, opened)];
    // Some are open.
    if number % 500 != 7 {
        records.push(entry(
            Kind::Outcome,
            json!({"kind": "verdict", "verdict": verdict, "reasoning": reasoning, "deliberators": counted, "missing": []}),
        ));
        records.push(entry(Kind::RunEnded, json!({"logged": true})));
    }
    records
}

/// A running server.
struct Served {
    process: Child,
    authority: String,
    token: String,
}

impl Served {
    fn start(quorate: &Path, dir: &Path) -> Result<Served, Failure> {
        let mut process = Command::new(quorate)
            .arg("serve")
            .current_dir(dir)
            .env_remove("QUORATE_LEDGER")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(process.stdout.as_mut().ok_or("it has an output")?).read_line(&mut line)?;
        let said: Value = serde_json::from_str(&line)?;
        let text = |key: &str| said[key].as_str().unwrap_or_default().to_owned();
        let authority = text("url").trim_start_matches("http://").to_owned();
        Ok(Served { process, authority, token: text("token") })
    }

    /// The body of a page.
    fn get(&self, path: &str) -> Result<String, Failure> {
        let mut answer = Vec::new();
        self.open(path)?.read_to_end(&mut answer)?;
        let answer = String::from_utf8(answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or("it is an answer")?;
        match head.split(' ').nth(1) {
            Some("200") => Ok(body.to_owned()),
            _ => Err(format!("{path}: {head}").into()),
        }
    }

    fn open(&self, path: &str) -> Result<TcpStream, Failure> {
        let mut stream = TcpStream::connect(&self.authority)?;
        let Served { authority, token, .. } = self;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: {authority}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        )?;
        Ok(stream)
    }

    /// What it has kept processors busy for.
    fn busy(&self) -> Result<Duration, Failure> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id()))?;
        let (_, fields) = stat.rsplit_once(')').ok_or("the system says what a process took")?;
        let ticks: u64 =
            fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        // Linux counts in hundredths of a second for every program.
        Ok(Duration::from_millis(ticks * 10))
    }

    fn resident_kib(&self) -> Result<u64, Failure> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line
            .and_then(|line| line.split_whitespace().next())
            .ok_or("the system says what a process holds")?;
        Ok(number.parse()?)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
