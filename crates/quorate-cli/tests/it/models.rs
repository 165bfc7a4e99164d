//! Reviews through models over HTTP: a server on loopback speaks the chat API.

use std::fs::{File, TryLockError};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::http::read_request;
use crate::support::{TestDir, files, finish, records, wait_until};

const KEY: &str = "sk-canary-77d1e0b2c4";

/// A server that answers every review in the chat API, and keeps what it was sent.
pub(crate) struct Model {
    pub(crate) address: String,
    requests: Arc<Mutex<Vec<(String, Value)>>>,
    load: Arc<Mutex<Load>>,
}

#[derive(Debug, Clone, Copy)]
struct Behaviour {
    /// Calls over so many at once get a 429.
    limit: usize,
    /// How long an answer takes.
    pause: Duration,
    /// The first so many calls are not answered, and end with their clients.
    unanswered: usize,
}

/// How many calls are under way, and were at most at once.
#[derive(Debug, Default, Clone, Copy)]
struct Load {
    under_way: usize,
    most: usize,
}

impl Model {
    pub(crate) fn start(limit: usize) -> Model {
        Model::with_pause(limit, Duration::from_millis(30))
    }

    /// A server that takes this long for an answer.
    pub(crate) fn with_pause(limit: usize, pause: Duration) -> Model {
        Model::with(Behaviour { limit, pause, unanswered: 0 })
    }

    fn with(behaviour: Behaviour) -> Model {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/v1", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let load: Arc<Mutex<Load>> = Arc::default();
        let (kept, counted) = (requests.clone(), load.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (kept, counted) = (kept.clone(), counted.clone());
                std::thread::spawn(move || serve(stream.unwrap(), &kept, &counted, behaviour));
            }
        });
        Model { address, requests, load }
    }

    pub(crate) fn requests(&self) -> Vec<(String, Value)> {
        self.requests.lock().unwrap().clone()
    }

    fn load(&self) -> Load {
        *self.load.lock().unwrap()
    }
}

fn serve(stream: TcpStream, kept: &Mutex<Vec<(String, Value)>>, load: &Mutex<Load>, behaviour: Behaviour) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let Some((head, body)) = read_request(&mut reader) else { return };
    let mut stream = stream;
    if head.starts_with("GET /v1/models ") {
        let list = json!({"data": [{"id": "small"}, {"id": "large"}]}).to_string();
        let answer =
            format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{list}", list.len());
        stream.write_all(answer.as_bytes()).unwrap();
        return;
    }
    let body: Value = serde_json::from_slice(&body).unwrap();
    let form = body["response_format"]["json_schema"]["name"].as_str().unwrap_or_default().to_owned();
    let number = {
        let mut kept = kept.lock().unwrap();
        kept.push((head, body));
        kept.len()
    };
    if number <= behaviour.unanswered {
        let _ = reader.read(&mut [0]);
        return;
    }
    let over = {
        let mut load = load.lock().unwrap();
        load.under_way += 1;
        load.most = load.most.max(load.under_way);
        load.under_way > behaviour.limit
    };
    let answer = if over {
        let error = r#"{"error":{"message":"slow down"}}"#;
        format!(
            "HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{error}",
            error.len()
        )
    } else {
        std::thread::sleep(behaviour.pause);
        let said = match &*form {
            "adjudication" => json!({"verdict": "SHIP", "reasoning": "Fine."}),
            _ => json!({"would_block": false, "irreducible": false}),
        };
        let delta =
            json!({"model": "small-2026", "choices": [{"index": 0, "delta": {"content": said.to_string()}}]});
        let stop = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
        let usage = json!({"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 10}});
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
             data: {delta}\n\ndata: {stop}\n\ndata: {usage}\n\ndata: [DONE]\n\n"
        )
    };
    // Before the answer is sent: its reader may send the next call at once.
    load.lock().unwrap().under_way -= 1;
    let _ = stream.write_all(answer.as_bytes());
}

#[test]
fn a_cassette_of_a_model_has_no_key_and_asks_it_no_more() {
    let model = Model::start(8);
    let place = TestDir::with("draft.md", "The meeting moved to Tuesday at ten.\n");
    let table = format!(
        "[executors.model]\nkind = \"llm\"\nbase_url = \"{}\"\nmodel = \"small\"\nkey = {{ env = \"CANARY_KEY\" }}\n",
        model.address
    );
    let tape = "[executors.tape]\nkind = \"cassette\"\ndir = \"tapes\"\n";
    place.write("quorate.toml", format!("{table}{tape}source = \"model\"\n"));
    let review = |more: &[&str]| {
        let mut command = place
            .command(&[&["review", "draft.md", "--executor", "tape", "--format", "json"], more].concat());
        command.env("CANARY_KEY", KEY);
        finish(command.spawn().unwrap()).assert_code(0).json()
    };
    let recorded = review(&[]);
    assert_eq!((&recorded["model_asked"], model.requests().len()), (&json!(true), 9));
    assert!(model.requests()[0].0.contains(KEY), "the server was sent the key");
    let tapes = files(&place.path("tapes"));
    assert_eq!(tapes.len(), 9);
    for (path, bytes) in &tapes {
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert!(!text.contains(KEY) && text.contains("\"model\": \"small-2026\""), "{path:?}: {text}");
    }
    place.write("quorate.toml", tape);
    let replayed = review(&[]);
    assert_eq!((&replayed["verdict"], &replayed["model_asked"]), (&json!("SHIP"), &json!(false)));
    assert_eq!(model.requests().len(), 9, "no model is asked");
    let spent = &replayed["deliberators"][0];
    assert_eq!((&spent["model"], &spent["spent"]["tokens_in"]), (&json!("small-2026"), &json!(2000)));
    assert_eq!(
        (&spent["spent"]["money"], &recorded["spent"]["money"]["amount"]),
        (&Value::Null, &json!("0"))
    );
    // Another model of the source is another executor, but the same question.
    place.write("quorate.toml", format!("{table}{tape}source = \"model\"\n"));
    review(&["--model", "large"]);
    assert_eq!(model.requests().len(), 9, "what is recorded is not asked again");
}

#[test]
fn a_review_needs_an_address_and_no_file() {
    let model = Model::start(8);
    let place = TestDir::with("draft.md", "The meeting moved to Tuesday at ten.\n");
    let executor = format!("{}#small", model.address);
    let report =
        place.run(&["review", "draft.md", "--executor", &executor, "--format", "json"]).assert_code(0).json();
    assert_eq!((&report["verdict"], &report["executor"]), (&json!("SHIP"), &json!(executor)));
    let spent = &report["spent"];
    let calls = model.requests().len() as u64;
    assert_eq!(
        (spent["tokens_in"].as_u64(), spent["calls"].as_u64()),
        (Some(1000 * calls), Some(calls)),
        "{spent}"
    );
    assert_eq!(spent["money"]["amount"], "0", "this machine is free: {spent}");
    let skeptic = &report["deliberators"][0];
    assert_eq!(
        (&skeptic["executor"], &skeptic["kind"], &skeptic["model"], &skeptic["requested_model"]),
        (&json!(executor), &json!("llm"), &json!("small-2026"), &json!("small"))
    );
    assert_eq!((&skeptic["spent"]["calls"], &skeptic["spent"]["tokens_in"]), (&json!(2), &json!(2000)));
    assert_eq!(report["adjudicator"]["spent"]["calls"], 1);
    let shown = place.run(&["show", "latest"]).assert_code(0).stdout;
    assert!(shown.contains("Who was asked") && shown.contains("2,000"), "{shown}");
    assert!(!place.run(&["review", "draft.md", "--executor", &executor]).stdout.contains("Who was asked"));
    for (head, body) in model.requests() {
        assert!(!head.to_ascii_lowercase().contains("authorization"), "{head}");
        assert_eq!(body["messages"].as_array().map(Vec::len), Some(2), "the host's instruction stands apart");
    }
    let listed = place.run(&["models", &model.address]).assert_code(0);
    assert_eq!(listed.stdout, "large\nsmall\n");
}

#[test]
fn a_table_needs_trust_and_its_key_stays_out_of_everything() {
    let model = Model::start(8);
    let place = TestDir::with("draft.md", "The meeting moved to Tuesday at ten.\n");
    place.write(
        "quorate.toml",
        format!(
            "[executors.own]\nkind = \"llm\"\nmodel = \"small\"\nbase_url = \"{}\"\nkey = {{ env = \"OWN_KEY\" }}\n\
             price = {{ input = 3.0, output = 15.0 }}\n",
            model.address
        ),
    );
    let run = |arguments: &[&str], key: Option<&str>| {
        let mut command = place.command(arguments);
        command.env_remove("QUORATE_TRUST").envs(key.map(|key| ("OWN_KEY", key)));
        crate::support::CommandOutput::from_output(command.output().unwrap())
    };
    let review = ["review", "draft.md", "--executor", "own"];
    run(&review, Some(KEY))
        .assert_code(5)
        .assert_stderr_contains("quorate:workspace_untrusted")
        .assert_stderr_contains("with the value of OWN_KEY");
    let trusted = [&review[..], &["--trust"]].concat();
    run(&trusted, None).assert_code(5).assert_stderr_contains("quorate:model_key_missing");
    assert!(model.requests().is_empty(), "nothing was sent");
    let report = run(&[&trusted[..], &["--format", "json", "-vvv"]].concat(), Some(KEY));
    let report = report.assert_code(0);
    // 1,000 x 3 + 10 x 15 dollars for a million, for each call
    let calls = model.requests().len();
    let dollars: f64 = report.json()["spent"]["money"]["amount"].as_str().unwrap().parse().unwrap();
    assert!((dollars - 0.003_15 * calls as f64).abs() < 1e-9, "{dollars} for {calls} calls");
    assert!(model.requests().iter().all(|(head, _)| head.contains(&format!("Bearer {KEY}"))));
    let doctor = run(&["doctor", "--trust"], Some(KEY)).assert_code(0).stdout.clone();
    assert!(doctor.contains("--ask") && doctor.contains("3 and 15 USD"), "{doctor}");
    let asked = model.requests().len();
    run(&["doctor", "--trust", "--ask"], Some(KEY)).assert_code(0);
    assert_eq!(model.requests().len(), asked + 1);
    assert!(!report.stderr.contains(KEY) && !report.stdout.contains(KEY));
    for (file, bytes) in files(place.root()) {
        let found = bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes());
        assert!(!found, "{} has the key", file.display());
    }
}

#[test]
fn a_server_that_allows_three_calls_at_once_fails_no_review() {
    let model = Model::start(3);
    let names: Vec<String> = (0..20).map(|n| format!("draft{n}.md")).collect();
    let place = TestDir::with("draft.md", "x\n");
    names
        .iter()
        .for_each(|name| place.write(name, format!("# {name}\n\nThe meeting moved to Tuesday at ten.\n")));
    let executor = format!("{}#small", model.address);
    let mut arguments = vec!["review", "--executor", &executor, "--format", "json"];
    arguments.extend(names.iter().map(String::as_str));
    let report = place.run(&arguments).assert_code(0).json();
    let verdicts = report["reviews"].as_array().unwrap();
    assert_eq!(verdicts.len(), names.len());
    assert!(
        verdicts.iter().all(|review| review["verdict"] == "SHIP" && review["partial"] == false),
        "{report}"
    );
}

#[test]
fn two_processes_share_the_calls_that_a_server_allows() {
    let model = Model::start(3);
    let place = TestDir::with("quorate.toml", "");
    let executor = format!("{}#small", model.address);
    let processes = ["a", "b"].map(|name| {
        let names: Vec<String> = (0..6).map(|n| format!("{name}{n}.md")).collect();
        let text = "The meeting moved to Tuesday at ten.\n";
        names.iter().for_each(|name| place.write(name, format!("# {name}\n\n{text}")));
        let mut arguments = vec!["review", "--executor", &executor, "--format", "json"];
        arguments.extend(names.iter().map(String::as_str));
        place.start(&arguments)
    });
    for process in processes {
        let report = finish(process).assert_code(0).json();
        let reviews = report["reviews"].as_array().unwrap();
        assert_eq!(reviews.len(), 6);
        assert!(
            reviews.iter().all(|review| review["verdict"] == "SHIP" && review["partial"] == false),
            "{report}"
        );
    }
    // Four is the concurrency of one process.
    let load = model.load();
    assert!(load.most <= 4, "{load:?}");
    let pools = place.path(".local/state/quorate/pools");
    let shared = files(&pools);
    assert!(shared.iter().any(|(path, _)| path.ends_with("slot-0")), "{shared:?}");
    // Without the directory each process has its own limits, and `doctor` reports it.
    std::fs::remove_dir_all(&pools).unwrap();
    std::fs::write(&pools, "").unwrap();
    let doctor = place.run(&["doctor"]);
    assert!(doctor.stdout.contains("cannot share limits of model services"), "{}", doctor.stdout);
    place.run(&["review", "a0.md", "--executor", &executor]).assert_code(0);
}

/// The files whose locks are the calls that may be under way, over all processes.
fn slots(place: &TestDir) -> Vec<File> {
    let all = files(&place.path(".local/state/quorate/pools")).into_iter();
    let slots = all.filter(|(path, _)| path.file_name().unwrap().to_str().unwrap().starts_with("slot-"));
    slots.map(|(path, _)| File::open(path).unwrap()).collect()
}

#[test]
fn a_process_that_is_killed_gives_back_what_it_has_of_a_shared_pool() {
    let unanswered = 4;
    let model = Model::with(Behaviour { limit: 100, pause: Duration::ZERO, unanswered });
    let place = TestDir::with("first.md", "The meeting moved to Tuesday at ten.\n");
    place.write("second.md", "The meeting moved to Friday at nine.\n");
    let executor = format!("{}#small", model.address);
    let review = |name: &str| place.start(&["review", name, "--executor", &executor]);
    let limit = Duration::from_secs(60);
    let mut first = review("first.md");
    wait_until(limit, "a wave of calls", || model.requests().len() == unanswered);
    let all_locked =
        || slots(&place).iter().all(|slot| matches!(slot.try_lock(), Err(TryLockError::WouldBlock)));
    assert!(slots(&place).len() == unanswered && all_locked(), "the calls have all of the pool");
    let second = review("second.md");
    let ledger = place.path(".quorate/ledger.db");
    wait_until(limit, "the second run", || records::runs(&ledger).len() == 2);
    assert_eq!(model.requests().len(), unanswered, "the second process waits");
    first.kill().unwrap();
    first.wait().unwrap();
    finish(second).assert_code(0);
    assert_eq!(model.requests().len(), unanswered + 9);
}

/// A council of three over the notes in `texts`, which takes seven calls for each.
pub(crate) const COUNCIL_OF_NOTES: &str = "deliberators:\n  - {id: skeptic, prompt: builtin:skeptic}\n  \
     - {id: evidence, prompt: builtin:evidence}\n  - {id: strategy, prompt: builtin:strategy}\n\
     adjudicator: {prompt: builtin:adjudicator}\n\
     tier_rules: {tier_1: {note: [texts/*]}}\nwatch: {paths: [texts]}\n";

/// How many drafts two processes sweep together; `scripts/soak` has more.
fn swept() -> usize {
    std::env::var("QUORATE_SWEPT").map_or(12, |count| count.parse().expect("a number of drafts"))
}

#[test]
fn two_sweeps_through_one_pool_end_without_a_failed_review() {
    let model = Model::start(3);
    let executor = format!("{}#small", model.address);
    let place = TestDir::new();
    let halves = ["a", "b"];
    for half in halves {
        place.write(&format!("{half}/council.yaml"), COUNCIL_OF_NOTES);
        for n in 0..swept() / 2 {
            let text = format!("# Note {half}{n}\n\nThe meeting moved to Tuesday at ten.\n");
            place.write(&format!("{half}/texts/{n}.md"), text);
        }
    }
    let sweep = ["sweep", "--since", "all", "--executor", &executor, "--format", "json"];
    let processes = halves.map(|half| (half, place.command_in(half, &sweep).spawn().unwrap()));
    for (half, process) in processes {
        let output = process.wait_with_output().unwrap();
        let report = crate::support::CommandOutput::from_output(output).assert_code(0).json();
        let files = report["files"].as_array().unwrap();
        assert_eq!(files.len(), swept() / 2);
        for file in files {
            assert_eq!((&file["fate"], &file["verdict"]), (&json!("judged"), &json!("SHIP")), "{file}");
            let ledger = place.path(&format!("{half}/.quorate/ledger.db"));
            let records = records::records(&ledger, file["run"].as_str().unwrap());
            let asked = records::of_kind(&records, "consultation");
            assert_eq!(asked.len(), 7);
            assert!(asked.iter().all(|one| one["status"] == "answered"), "{asked:?}");
        }
    }
    let limited = model.requests().len() - 7 * swept();
    println!("{} drafts swept, {limited} calls of them limited", swept());
    assert!(limited > 0, "four calls are more than the server takes");
}

#[test]
fn a_proxy_is_used_but_not_for_this_machine_and_what_no_proxy_names() {
    let place = TestDir::with("draft.md", "The meeting moved to Tuesday at ten.\n");
    let review = |address: &str, variables: &[(&str, &str)]| {
        let executor = format!("{address}#small");
        let mut command = place.command(&["review", "draft.md", "--executor", &executor]);
        command.envs(variables.iter().copied());
        crate::support::CommandOutput::from_output(command.output().unwrap())
    };
    let proxy = Model::start(8);
    let at = proxy.address.trim_end_matches("/v1");
    review("http://model.invalid/v1", &[("HTTP_PROXY", at)]).assert_code(0);
    let asked = proxy.requests();
    assert!(asked.iter().all(|(head, _)| head.starts_with("POST http://model.invalid/v1/")), "{asked:?}");
    review("http://model.invalid/v1", &[("HTTP_PROXY", at), ("NO_PROXY", "model.invalid")]).assert_code(3);
    assert_eq!(proxy.requests().len(), asked.len());
    let own = Model::start(8);
    review(&own.address, &[("HTTP_PROXY", "http://127.0.0.1:9"), ("ALL_PROXY", "http://127.0.0.1:9")])
        .assert_code(0);
    // With TLS a proxy learns the host alone.
    let tunnel = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("http://{}", tunnel.local_addr().unwrap());
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = heard.clone();
    std::thread::spawn(move || {
        for stream in tunnel.incoming() {
            let mut stream = stream.unwrap();
            let mut line = String::new();
            BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
            kept.lock().unwrap().push(line);
            let _ = stream.write_all(b"HTTP/1.1 502 No\r\ncontent-length: 0\r\n\r\n");
        }
    });
    review("https://model.invalid/v1", &[("HTTPS_PROXY", &at)]).assert_code(3);
    let heard = heard.lock().unwrap();
    assert!(
        !heard.is_empty() && heard.iter().all(|line| line == "CONNECT model.invalid:443 HTTP/1.1\r\n"),
        "{heard:?}"
    );
}
