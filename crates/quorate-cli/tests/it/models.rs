//! Reviews through models over HTTP: a server on loopback speaks the chat API.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::http::read_request;
use crate::support::{TestDir, files, finish, records};

const KEY: &str = "sk-canary-77d1e0b2c4";

/// A server that answers every review in the chat API, and keeps what it was sent.
pub(crate) struct Model {
    pub(crate) address: String,
    requests: Arc<Mutex<Vec<(String, Value)>>>,
}

#[derive(Debug, Clone, Copy)]
struct Behaviour {
    /// Calls over so many at once get a 429.
    limit: usize,
    /// How long an answer takes.
    pause: Duration,
    /// The head and body of an error that every call gets; empty for answers.
    error: &'static str,
}

impl Model {
    pub(crate) fn start(limit: usize) -> Model {
        Model::with_pause(limit, Duration::from_millis(30))
    }

    /// A server that takes this long for an answer.
    pub(crate) fn with_pause(limit: usize, pause: Duration) -> Model {
        Model::with(Behaviour { limit, pause, error: "" })
    }

    fn with(behaviour: Behaviour) -> Model {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/v1", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let under_way: Arc<Mutex<usize>> = Arc::default();
        let kept = requests.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (kept, counted) = (kept.clone(), under_way.clone());
                std::thread::spawn(move || serve(stream.unwrap(), &kept, &counted, behaviour));
            }
        });
        Model { address, requests }
    }

    pub(crate) fn requests(&self) -> Vec<(String, Value)> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(
    stream: TcpStream,
    kept: &Mutex<Vec<(String, Value)>>,
    under_way: &Mutex<usize>,
    behaviour: Behaviour,
) {
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
    kept.lock().unwrap().push((head, body));
    if !behaviour.error.is_empty() {
        let _ = stream.write_all(behaviour.error.as_bytes());
        return;
    }
    let over = {
        let mut under_way = under_way.lock().unwrap();
        *under_way += 1;
        *under_way > behaviour.limit
    };
    let answer = if over {
        let error = r#"{"error":{"message":"slow down"}}"#;
        format!(
            "HTTP/1.1 429 Too Many Requests\r\nretry-after-ms: 300\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{error}",
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
    *under_way.lock().unwrap() -= 1;
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
    let shown = place.run(&["show", "latest", "--full"]).assert_code(0).stdout;
    assert!(shown.contains("Who was asked") && shown.contains("2,000"), "{shown}");
    // An estimate states how long that took; for another model, nothing is known.
    let dry = |executor: &str| {
        let told = ["review", "draft.md", "--executor", executor, "--dry-run", "--format", "json"];
        place.run(&told).assert_code(0).json()["texts"][0]["last_run_ms"].clone()
    };
    assert!(dry(&executor).as_u64().is_some_and(|ms| ms > 0));
    assert_eq!(dry(&format!("{}#large", model.address)), Value::Null);
    let told = place.run(&["review", "draft.md", "--executor", &executor, "--dry-run"]).assert_code(0);
    assert!(told.stdout.contains("The last run took "), "{}", told.stdout);
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
    place.write("quorate.toml", four_at_once(&model));
    let mut arguments = vec!["review", "--executor", "four", "--format", "json"];
    arguments.extend(names.iter().map(String::as_str));
    let report = place.run(&arguments).assert_code(0).json();
    let verdicts = report["reviews"].as_array().unwrap();
    assert_eq!(verdicts.len(), names.len());
    assert!(
        verdicts.iter().all(|review| review["verdict"] == "SHIP" && review["partial"] == false),
        "{report}"
    );
    assert!(model.requests().len() > 9 * names.len(), "four calls are more than the server takes");
}

/// An executor that sends four calls at once, also to a server on this machine.
fn four_at_once(model: &Model) -> String {
    let address = &model.address;
    format!(
        "[executors.four]\nkind = \"llm\"\nmodel = \"small\"\nbase_url = \"{address}\"\nconcurrency = 4\n"
    )
}

#[test]
fn a_service_that_only_fails_is_asked_once_per_member_and_round_without_retries() {
    const CASES: [(&str, Option<u16>, &str); 9] = [
        ("429 Too Many Requests\r\n", Some(429), "limits the rate"),
        ("429 Too Many Requests\r\nretry-after: 0\r\n", Some(429), "limits the rate"),
        (
            "429 Too Many Requests\r\nretry-after: Wed, 21 Oct 2015 07:28:00 GMT\r\n",
            Some(429),
            "limits the rate",
        ),
        (
            "429 Too Many Requests\r\nx-ratelimit-reset: 4102444800\r\n",
            Some(429),
            "asks to wait until 2100-01-01",
        ),
        ("503 Service Unavailable\r\nretry-after: 86400\r\n", Some(503), "longer than the time"),
        ("503 Service Unavailable\r\n", Some(503), "overloaded"),
        ("500 Oops\r\n", Some(500), "the service failed"),
        ("409 Conflict\r\n", Some(409), "the service failed"),
        ("200 OK\r\nx-cut: short\r\n", None, "ended before"),
    ];
    for (head, status, message) in CASES {
        let error: &'static str =
            Box::leak(format!("HTTP/1.1 {head}connection: close\r\n\r\n").into_boxed_str());
        let model = Model::with(Behaviour { limit: 8, pause: Duration::ZERO, error });
        let place = TestDir::with("draft.md", "The meeting moved to Tuesday at ten.\n");
        place.write("quorate.toml", format!("{}retries = 0\n", four_at_once(&model)));
        let report = place.run(&["review", "draft.md", "--executor", "four", "--format", "json"]).json();
        assert_eq!(report["verdict"], "INCOMPLETE", "{head}: {report}");
        // The others may have learned of the wait before they were asked.
        let all = report["deliberators"].as_array().unwrap().iter();
        let all: Vec<&Value> = all.map(|deliberator| &deliberator["round1"]["failure"]).collect();
        let is_it = |failure: &&&Value| failure["message"].as_str().unwrap().contains(message);
        let asked = all.iter().find(is_it).unwrap_or_else(|| panic!("{head}: {all:?}"));
        assert_eq!(asked["http"].as_u64(), status.map(u64::from), "{head}: {asked}");
        assert!(all.iter().all(|failure| failure["retries"] == 0), "{head}: {all:?}");
        assert!(model.requests().len() <= 4, "{head}: {} calls", model.requests().len());
    }
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
fn two_sweeps_of_one_service_end_without_a_failed_review() {
    let model = Model::start(3);
    let place = TestDir::new();
    let halves = ["a", "b"];
    for half in halves {
        place.write(&format!("{half}/council.yaml"), COUNCIL_OF_NOTES);
        place.write(&format!("{half}/quorate.toml"), four_at_once(&model));
        for n in 0..swept() / 2 {
            let text = format!("# Note {half}{n}\n\nThe meeting moved to Tuesday at ten.\n");
            place.write(&format!("{half}/texts/{n}.md"), text);
        }
    }
    let sweep = ["sweep", "--since", "all", "--executor", "four", "--format", "json"];
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
