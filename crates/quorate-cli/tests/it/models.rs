//! Reviews through models over HTTP: a server on loopback speaks the chat API.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::{TestDir, files};

const KEY: &str = "sk-canary-77d1e0b2c4";

/// A server that answers every review in the chat API, and keeps what it was sent. Calls over `limit` at once get a 429.
struct Model {
    address: String,
    requests: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Model {
    fn start(limit: usize) -> Model {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/v1", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let (kept, under_way) = (requests.clone(), Arc::new(Mutex::new(0_usize)));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (kept, under_way) = (kept.clone(), under_way.clone());
                std::thread::spawn(move || serve(stream.unwrap(), &kept, &under_way, limit));
            }
        });
        Model { address, requests }
    }

    fn requests(&self) -> Vec<(String, Value)> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, kept: &Mutex<Vec<(String, Value)>>, under_way: &Mutex<usize>, limit: usize) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
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
    kept.lock().unwrap().push((head.clone(), body));
    let over = {
        let mut under_way = under_way.lock().unwrap();
        *under_way += 1;
        *under_way > limit
    };
    let answer = if over {
        let error = r#"{"error":{"message":"slow down"}}"#;
        format!(
            "HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{error}",
            error.len()
        )
    } else {
        std::thread::sleep(std::time::Duration::from_millis(30));
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
    let _ = stream.write_all(answer.as_bytes());
    *under_way.lock().unwrap() -= 1;
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
