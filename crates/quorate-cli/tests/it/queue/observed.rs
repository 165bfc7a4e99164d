//! What operators see: the checks of `doctor`, the numbers of `--metrics`, and the dashboard that shows them.

#![cfg(feature = "metrics")]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use super::*;

fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

#[test]
fn a_worker_counts_what_it_does_and_the_dashboard_knows_every_number() {
    let Some(database) = database() else { return };
    let machine = Machine::with_drafts(&database, 3);
    machine.enqueue(&["--tenant", "blog"]);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let worker = Machine::new(&database, &all_ship(), "");
    let working = worker.start(&["worker", "--metrics", &address]);
    let done = r#"quorate_task_ends_total{tenant="blog",end="done"} 3"#;
    wait_until(SOON, "the worker counts", || {
        get(port, "/metrics")
            .is_some_and(|numbers| numbers.contains(done) && numbers.contains("quorate_tasks{"))
    });
    let numbers = get(port, "/metrics").unwrap();
    for line in [
        r#"quorate_claims_total{tenant="blog"} 3"#,
        r#"quorate_appends_total{result="written"} "#,
        r#"quorate_append_seconds_bucket{le="0.001"} "#,
        r#"quorate_tasks{tenant="blog",state="dead"} 0"#,
        r#"quorate_oldest_task_seconds{tenant="blog"} "#,
    ] {
        assert!(numbers.contains(line), "{line}: {numbers}");
    }
    // Every member of three councils was asked once, and nothing is counted of what was not asked.
    let calls: u64 = numbers
        .lines()
        .filter(|line| line.starts_with("quorate_invocations_total{"))
        .map(|line| {
            assert!(line.contains(r#"status="answered""#), "{line}");
            line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()
        })
        .sum();
    assert_eq!(calls, 27, "{numbers}");
    assert!(get(port, "/health").unwrap().starts_with("HTTP/1.1 200"));
    // The names in the dashboard and in its page are those of the numbers.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let dashboard = std::fs::read_to_string(root.join("deploy/grafana.json")).unwrap();
    serde_json::from_str::<Value>(&dashboard).expect("JSON");
    let page = std::fs::read_to_string(root.join("docs/deploy.md")).unwrap();
    let source = root.join("crates/quorate/src/cluster");
    let mut described = std::fs::read_to_string(source.join("metrics.rs")).unwrap();
    described += &std::fs::read_to_string(source.join("queue/metrics.rs")).unwrap();
    let names = |text: &str| -> BTreeSet<String> {
        let names = regex::Regex::new("quorate_[a-z_]+").unwrap();
        let base = |name: &str| name.trim_end_matches("_bucket").trim_end_matches("_count").to_owned();
        names.find_iter(text).map(|found| base(found.as_str())).filter(|name| !name.ends_with('_')).collect()
    };
    let constants: String = described.lines().filter(|line| line.contains("const ")).collect();
    assert_eq!(names(&dashboard), names(&constants));
    let listed: String = page.lines().filter(|line| line.starts_with("| `quorate_")).collect();
    assert_eq!(names(&listed), names(&constants));
    // A second worker is refused the address before it claims a task.
    for taken in [&*address, "127.0.0.1:0"] {
        let refused = worker.run(&["worker", "--metrics", taken]).assert_code(5);
        assert!(refused.stderr.contains("quorate:address_unusable"), "{refused:?}");
    }
    signal(&working, Signal::TERM);
    finish(working).assert_code(0);
}

#[cfg(feature = "serve")]
#[test]
fn a_server_counts_the_queue_too() {
    let Some(database) = database() else { return };
    let machine = Machine::with_drafts(&database, 2);
    machine.enqueue(&["--tenant", "blog"]);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let serving = machine.start(&["serve", "--read-only", "--port", "0", "--metrics", &address]);
    let ready = r#"quorate_tasks{tenant="blog",state="ready"} 2"#;
    wait_until(SOON, "it counts", || get(port, "/metrics").is_some_and(|numbers| numbers.contains(ready)));
    signal(&serving, Signal::TERM);
    finish(serving).assert_code(0);
}

#[test]
fn doctor_checks_the_database_and_the_queue() {
    let Some(database) = database() else { return };
    let machine = Machine::with_drafts(&database, 1);
    machine.enqueue(&[]);
    let checks = || {
        let checked = machine.run(&["doctor", "--format", "json"]).json();
        let checks = checked["checks"].as_array().unwrap().clone();
        move |name: &str| -> (String, String) {
            let check = checks.iter().find(|check| check["name"] == name).expect("a check");
            let text = |key: &str| check[key].as_str().unwrap().to_owned();
            (text("state"), text("detail"))
        }
    };
    let of = checks();
    assert!(of("database").1.starts_with("Postgres "), "{:?}", of("database"));
    assert_eq!(of("clock"), ("good".into(), "within 2 s of the database's".into()));
    assert_eq!(of("queue"), ("good".into(), "tasks: 1 ready, 0 held by workers, 0 dead".into()));
    wait(database.run("UPDATE task SET state = 'dead', error = 'gone'"));
    let (state, detail) = checks()("queue");
    assert!(state == "noted" && detail.contains("1 dead: run `quorate queue list --dead`"), "{detail}");
}
