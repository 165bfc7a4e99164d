//! `quorate serve` while things fail: the server dies, clients do not read, the ledger is corrupt, newer or locked.

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;
use sqlx::{Connection as _, SqliteConnection};

use super::support::council::all_ship;
use super::support::serve::Served;
use super::support::{TestDir, wait_until};

const LEDGER: &str = ".quorate/ledger.db";
const PAGES: [&str; 5] = ["/", "/runs/latest", "/audit", "/api/v1/runs", "/api/v1/runs/latest/records"];

/// Reads records of a stream until there are `most` or it ends; whether it said that the run has ended.
fn read_records(stream: TcpStream, most: usize) -> (Vec<Value>, bool) {
    let (mut records, mut event) = (Vec::new(), String::new());
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { break };
        if let Some(name) = line.strip_prefix("event: ") {
            event = name.to_owned();
        }
        let Some(data) = line.strip_prefix("data: ") else { continue };
        if event == "end" {
            return (records, true);
        }
        records.push(serde_json::from_str(data).unwrap());
        if records.len() == most {
            break;
        }
    }
    (records, false)
}

fn stream(served: &Served, last: Option<u64>) -> TcpStream {
    let (bearer, last) = (served.bearer(), last.map(|last| last.to_string()));
    let mut headers = vec![("Authorization", &*bearer)];
    headers.extend(last.as_deref().map(|last| ("Last-Event-ID", last)));
    served.open("GET", "/api/v1/runs/latest/events", &headers, "")
}

#[test]
fn a_stream_goes_on_with_another_server_after_the_first_was_killed_in_mid_run() {
    let place = TestDir::scripted_slowly(&all_ship(), "delay = \"1s\"");
    let first = Served::start(&place, &[]);
    let mut review = place.start(&["review", "draft.md"]);
    let is_listed = || !first.get("/api/v1/runs").json()["runs"].as_array().unwrap().is_empty();
    wait_until(Duration::from_secs(60), "the run is listed", is_listed);
    let (mut seen, has_ended) = read_records(stream(&first, None), 3);
    assert!(!has_ended && seen.len() == 3, "{seen:?}");
    // The drop kills it without a chance to end its streams.
    drop(first);
    let second = Served::start(&place, &[]);
    let (rest, has_ended) = read_records(stream(&second, seen[2]["n"].as_u64()), usize::MAX);
    assert!(has_ended && !rest.is_empty());
    seen.extend(rest);
    review.wait().unwrap();
    let records = second.get("/api/v1/runs/latest/records").json();
    assert_eq!(Value::Array(seen), records["records"]);
}

#[test]
fn clients_that_never_read_hold_up_no_other() {
    let place = TestDir::scripted(&all_ship());
    place.run(&["review", "draft.md"]).assert_code(0);
    let served = Served::start(&place, &[]);
    let deaf: Vec<TcpStream> = (0..200).map(|_| stream(&served, None)).collect();
    let began = Instant::now();
    for path in PAGES {
        assert_eq!(served.get(path).status, 200, "{path}");
    }
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    // Half a request is no reason to wait either.
    let halves: Vec<TcpStream> = (0..50).map(|_| TcpStream::connect(&served.authority).unwrap()).collect();
    assert_eq!(served.get("/api/v1/runs").status, 200);
    drop((deaf, halves));
    assert_eq!(served.interrupt(), Some(0));
}

#[test]
fn a_ledger_that_is_corrupt_is_reported_on_every_route() {
    let place = TestDir::scripted(&all_ship());
    place.run(&["review", "draft.md"]).assert_code(0);
    let good = std::fs::read(place.path(LEDGER)).unwrap();
    place.write(LEDGER, "this is not a database\n".repeat(500));
    let served = Served::start(&place, &["--read-only"]);
    for path in PAGES {
        let answered = served.get(path);
        assert!((400..600).contains(&answered.status), "{path}: {}", answered.status);
        assert!(answered.body.contains("quorate:"), "{path}: {}", answered.body);
    }
    // The server needs no restart once the file is restored.
    place.write(LEDGER, good);
    for path in PAGES {
        let answered = served.get(path);
        assert_eq!(answered.status, 200, "{path}: {}", answered.body);
    }
}

#[test]
fn a_ledger_of_a_newer_version_is_shown_and_not_written_to() {
    let place = TestDir::scripted(&all_ship());
    place.run(&["review", "draft.md"]).assert_code(0);
    sql(&place, "PRAGMA user_version = 99", |_| ());
    let served = Served::start(&place, &[]);
    for path in PAGES {
        let answered = served.get(path);
        assert_eq!(answered.status, 200, "{path}: {}", answered.body);
    }
    let bytes = std::fs::read(place.path(LEDGER)).unwrap();
    let refused = served.post("/api/v1/reviews", &serde_json::json!({"text": "A text.\n"}));
    assert!((400..600).contains(&refused.status), "{}", refused.body);
    assert!(refused.json()["code"].as_str().unwrap().starts_with("quorate:ledger"), "{}", refused.body);
    assert_eq!(std::fs::read(place.path(LEDGER)).unwrap(), bytes);
}

#[test]
fn a_ledger_that_another_process_locks_can_be_read() {
    let place = TestDir::scripted(&all_ship());
    place.run(&["review", "draft.md"]).assert_code(0);
    let served = Served::start(&place, &[]);
    sql(&place, "BEGIN IMMEDIATE", |_| {
        for path in PAGES {
            let answered = served.get(path);
            assert_eq!(answered.status, 200, "{path}: {}", answered.body);
        }
    });
}

/// Runs a statement and, while its connection is open, `within`.
fn sql(place: &TestDir, statement: &'static str, within: impl FnOnce(&TestDir)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let url = format!("sqlite://{}", place.path(LEDGER).display());
    let mut sqlite = runtime.block_on(async {
        let mut sqlite = SqliteConnection::connect(&url).await.expect("it opens");
        sqlx::raw_sql(statement).execute(&mut sqlite).await.expect("it is executed");
        sqlite
    });
    within(place);
    runtime.block_on(async {
        let _ = sqlx::raw_sql("ROLLBACK").execute(&mut sqlite).await;
        sqlite.close().await.expect("it closes");
    });
}
