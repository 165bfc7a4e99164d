//! Reviews a second of several processes that share a ledger in Postgres, over a network with a round-trip time: a proxy
//! holds what is sent back for half of it in each direction. The members are the offline rubric, which takes next to no
//! time, so the ledger is what is measured.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use crate::place::drafts;
use crate::process::command;
use crate::table::Measure;
use crate::{Bench, Failure};

/// Names the server, a scratch one: schemas are made in it and dropped.
pub(super) const SERVER: &str = "QUORATE_TEST_POSTGRES";
const ROUND_TRIPS: [Duration; 3] = [Duration::ZERO, Duration::from_millis(1), Duration::from_micros(2_600)];
const PROCESSES: [usize; 3] = [1, 4, 8];
/// How many texts each process reviews.
const TEXTS: usize = 25;

pub(super) fn measure(bench: &mut Bench) -> Result<(), Failure> {
    let Ok(server) = std::env::var(SERVER) else {
        bench.table.note(format!("no cluster: {SERVER} names no server (`scripts/services start postgres`)"));
        return Ok(());
    };
    for round_trip in ROUND_TRIPS {
        let port = proxy(&server, round_trip / 2)?;
        for processes in PROCESSES {
            let took = sweeps(bench, &server, port, processes)?;
            let per_review = took / u32::try_from(TEXTS * processes)?;
            let what = format!(
                "a review, {processes} processes on one Postgres, round trip {:.1} ms",
                round_trip.as_secs_f64() * 1e3
            );
            let is_goal = round_trip == ROUND_TRIPS[2] && processes == PROCESSES[1];
            match is_goal {
                true => bench.table.limited(
                    what,
                    Measure::Time(per_review),
                    Measure::Time(Duration::from_millis(25)),
                ),
                false => bench.table.unlimited(what, Measure::Time(per_review)),
            }
            let rate = (1.0 / per_review.as_secs_f64()).round();
            bench.table.unlimited("  reviews a second", Measure::Count(rate as u64));
        }
    }
    Ok(())
}

/// How long so many processes take for a sweep each, from the first one's start to the last one's end.
fn sweeps(bench: &mut Bench, server: &str, port: u16, processes: usize) -> Result<Duration, Failure> {
    let schema = format!("bench_{}_{port}_{processes}", std::process::id());
    execute(server, &format!("CREATE SCHEMA {schema}"))?;
    let (user, database) = parts(server)?;
    let url = format!(
        "postgres://{user}@127.0.0.1:{port}/{database}?sslmode=disable&options=-csearch_path%3D{schema}"
    );
    let mut dirs = Vec::new();
    for number in 0..processes {
        let dir = bench.place.dir(&format!("cluster-{port}-{processes}-{number}"))?;
        crate::process::median(1, &[0], || Ok(command(&bench.quorate, &dir, &["init", "council"])))?;
        std::fs::remove_dir_all(dir.join("drafts"))?;
        drafts(&dir.join("drafts"), TEXTS)?;
        dirs.push(dir);
    }
    // The tables are made before.
    crate::process::median(1, &[0], || Ok(command(&bench.quorate, &dirs[0], &["runs", "--ledger", &url])))?;
    let began = Instant::now();
    let children: Vec<Child> = dirs
        .iter()
        .map(|dir| {
            let arguments = ["sweep", "--since", "all", "--jobs", "8", "--ledger", &url];
            command(&bench.quorate, dir, &arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()
        })
        .collect::<Result<_, _>>()?;
    for child in children {
        let ended = child.wait_with_output()?;
        if !matches!(ended.status.code(), Some(0 | 1)) {
            return Err(String::from_utf8_lossy(&ended.stderr).into());
        }
    }
    let took = began.elapsed();
    execute(server, &format!("DROP SCHEMA {schema} CASCADE"))?;
    Ok(took)
}

/// The user and the database of an address without a password.
pub(super) fn parts(server: &str) -> Result<(&str, &str), Failure> {
    let user = server.split("//").nth(1).and_then(|rest| rest.split(['@', ':']).next());
    let database = server.rsplit('/').next().map(|last| last.split('?').next().unwrap_or(last));
    user.zip(database).ok_or_else(|| format!("{SERVER} is no address of a database").into())
}

pub(super) fn execute(server: &str, statement: &str) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut connection = PgConnection::connect(server).await?;
        sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut connection).await?;
        Ok(())
    })
}

/// Listens before the server; what goes through is late by `delay` in each direction. Lasts as long as this process.
fn proxy(server: &str, delay: Duration) -> Result<u16, Failure> {
    let host = server.rsplit('@').next().and_then(|rest| rest.split('/').next());
    let host = host.ok_or("the server has no host")?.to_owned();
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = TcpStream::connect(&host) else { continue };
            for end in [&client, &server] {
                let _ = end.set_nodelay(true);
            }
            let (Ok(from), Ok(to)) = (client.try_clone(), server.try_clone()) else { continue };
            forward(from, to, delay);
            forward(server, client, delay);
        }
    });
    Ok(port)
}

/// Passes bytes on, each part a while after it came.
fn forward(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    let (sender, receiver) = mpsc::channel::<(Instant, Vec<u8>)>();
    std::thread::spawn(move || {
        let mut part = vec![0; 64 * 1024];
        while let Ok(read @ 1..) = from.read(&mut part) {
            if sender.send((Instant::now() + delay, part[..read].to_vec())).is_err() {
                return;
            }
        }
    });
    std::thread::spawn(move || {
        for (due, part) in receiver {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&part).is_err() {
                return;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    });
}
