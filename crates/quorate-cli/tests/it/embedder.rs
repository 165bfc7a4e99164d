//! Locks by meaning (L4): the program's own embedder, or the one of quorate.toml, is asked where text finds nothing; one
//! that fails keeps the outcome from being written; without one text alone counts, with a warning.

use std::future::IntoFuture as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support;
use async_trait::async_trait;
use quorate::{Decision, Quorate, Trust};
use quorate_kernel::ports::extension::{Embedder, ExtensionError, Meter};
use serde_json::{Value, json};
use support::assembly::{advice, answers, write};
use support::{TestDir, records};

/// Knows two meanings: cold things, and everything else.
struct Temperature {
    broken: bool,
}

#[async_trait]
impl Embedder for Temperature {
    fn model(&self) -> &str {
        "temperature"
    }

    fn threshold(&self) -> f32 {
        0.9
    }

    async fn embed(&self, texts: &[&str], _: &Meter) -> Result<Vec<Vec<f32>>, ExtensionError> {
        if self.broken {
            return Err(ExtensionError::new("the model is not there"));
        }
        let cold = |text: &&str| ["warmth", "icy", "frosty"].iter().any(|word| text.contains(word));
        Ok(texts.iter().map(|text| if cold(text) { vec![1.0, 0.0] } else { vec![0.0, 1.0] }).collect())
    }
}

fn place() -> TestDir {
    let place = TestDir::new();
    let more =
        "lockedTraits: [warmth]\nmatchMode: semantic\nsynthesis: {rules: [{id: all, kind: aggregate}]}\n";
    write(&place, "advisory", &[("ana", "phase: session"), ("bob", "phase: session")], more);
    answers(
        &place,
        &json!({"ana": advice(5, "Ask first. Be icy with them."), "bob": advice(4, "Ask twice.")}),
    );
    place.write("talk.md", "user: hello\n");
    place
}

fn held(place: &TestDir, embedder: Temperature) -> Decision {
    let quorate = Quorate::builder()
        .workspace(place.root())
        .state_dir(place.path("state"))
        .trust(Trust::Workspace)
        .embedder(embedder)
        .build()
        .unwrap();
    let convening = quorate.convene(place.path("ASSEMBLY.md")).conversation(place.path("talk.md"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(convening.into_future()).unwrap().value
}

#[test]
fn what_means_the_same_is_dropped() {
    // L4
    let place = place();
    let report = held(&place, Temperature { broken: false });
    let kept: Vec<&str> = report.fragments.iter().flatten().map(|one| one.member.as_str()).collect();
    assert_eq!(kept, ["bob"]);
    let violation = &report.violations[0];
    assert_eq!((violation.layer.as_deref(), violation.locked.as_deref()), (Some("meaning"), Some("warmth")));
    assert!(violation.excerpt.as_ref().unwrap().contains("Be icy"), "{violation:?}");
    // X11: the comparison is recorded, so that a program without the embedder comes to the same.
    place.run(&["replay", &place.only_run()]).assert_code(0);
}

#[test]
fn what_cannot_be_compared_is_not_written() {
    // L4
    let place = place();
    let report = held(&place, Temperature { broken: true });
    assert_eq!(report.fragments, Some(Vec::new()));
    assert!(report.violations.iter().all(|one| one.code == "lock_unchecked"), "{:?}", report.violations);
    assert_eq!(report.violations.len(), 2);
}

#[test]
fn without_an_embedder_text_alone_counts() {
    // L4
    let place = place();
    let convened = ["convene", ".", "--conversation", "talk.md", "--format", "json"];
    let ran = place.run(&convened).assert_code(0);
    ran.assert_stderr_contains("assembly_locked_trait_match_mode_unsupported");
    assert_eq!(ran.json()["fragments"].as_array().unwrap().len(), 2);
}

/// How a [`Service`] answers.
#[derive(Clone, Copy, PartialEq)]
enum Answers {
    Well,
    /// With vectors that cannot be compared.
    Zeros,
    Never,
}

/// What a [`Service`] says that each request took.
const TOKENS: u64 = 100;

/// A server on loopback that speaks OpenAI's API for embeddings, and keeps what it was sent.
struct Service {
    address: String,
    requests: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Service {
    fn start(answers: Answers) -> Service {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/v1", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let kept = requests.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                serve(stream.unwrap(), &kept, answers);
            }
        });
        Service { address, requests }
    }

    fn requests(&self) -> Vec<(String, Value)> {
        self.requests.lock().unwrap().clone()
    }

    /// Writes an assembly whose locks compare meanings through this service.
    fn place(&self) -> TestDir {
        self.place_with("")
    }

    /// As [`Service::place`], with more in quorate.toml after the embedder's table.
    fn place_with(&self, more: &str) -> TestDir {
        let place = place();
        let executors = std::fs::read_to_string(place.path("quorate.toml")).unwrap();
        let table = format!(
            "{executors}[embedder]\nwire = \"chat\"\nmodel = \"temperature\"\nbase_url = \"{}\"\n\
             key = {{ env = \"EMBEDDER_KEY\" }}\nthreshold = 0.9\n{more}",
            self.address
        );
        place.write("quorate.toml", table);
        place
    }
}

fn serve(mut stream: TcpStream, kept: &Mutex<Vec<(String, Value)>>, answers: Answers) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let vector = |text: &Value| {
        let text = text.as_str().unwrap();
        let cold = ["warmth", "icy", "frosty"].iter().any(|word| text.contains(word));
        json!({"embedding": if cold { [1, 0] } else { [0, u8::from(answers == Answers::Well)] }})
    };
    let data: Vec<Value> = body["input"].as_array().unwrap().iter().map(vector).collect();
    kept.lock().unwrap().push((head, body));
    if answers == Answers::Never {
        let _ = reader.read(&mut [0]);
        return;
    }
    let answer = json!({"data": data, "usage": {"prompt_tokens": TOKENS}}).to_string();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", answer.len());
    let _ = stream.write_all(format!("{head}{answer}").as_bytes());
}

const KEY: &str = "sk-canary-5b1f20aa97";
const CONVENE: [&str; 6] = ["convene", ".", "--conversation", "talk.md", "--format", "json"];

fn run(place: &TestDir, arguments: &[&str], key: Option<&str>) -> support::CommandOutput {
    let mut command = place.command(arguments);
    command.env_remove("QUORATE_TRUST").envs(key.map(|key| ("EMBEDDER_KEY", key)));
    support::CommandOutput::from_output(command.output().unwrap())
}

// L4, X11, X14
#[test]
fn a_configured_embedder_is_asked_once_it_is_trusted_and_never_by_a_replay() {
    let service = Service::start(Answers::Well);
    let place = service.place();
    let untrusted = run(&place, &CONVENE, Some(KEY));
    let untrusted = untrusted.assert_code(5).stdout.clone();
    for said in ["quorate:workspace_untrusted", "with the value of EMBEDDER_KEY (embedder)"] {
        assert!(untrusted.contains(said), "{untrusted}");
    }
    let shown = run(&place, &["trust", "--show"], None);
    assert!(
        shown.stdout.contains(&service.address) && shown.stdout.contains("(embedder)"),
        "{}",
        shown.stdout
    );
    let trusted = [&CONVENE[..], &["--trust"]].concat();
    let without_key = run(&place, &trusted, None).assert_code(5).stdout.clone();
    assert!(without_key.contains("quorate:model_key_missing"), "{without_key}");
    assert!(service.requests().is_empty(), "nothing was sent");
    let ran = run(&place, &trusted, Some(KEY)).assert_code(0);
    let report = ran.json();
    assert!(!ran.stderr.contains("assembly_locked_trait_match_mode_unsupported"), "{}", ran.stderr);
    let fragments = report["fragments"].as_array().unwrap();
    assert_eq!((fragments.len(), &fragments[0]["member"]), (1, &json!("bob")));
    assert_eq!(report["violations"][0]["layer"], "meaning");
    let sent = service.requests();
    assert!(sent.iter().all(|(head, _)| head.contains(&format!("Bearer {KEY}"))));
    let traits = sent.iter().flat_map(|(_, body)| body["input"].as_array().unwrap());
    assert!(traits.filter(|text| **text == json!("warmth")).count() <= 2, "vectors are kept for a run");
    run(&place, &["replay", &place.only_run()], None).assert_code(0);
    assert_eq!(service.requests().len(), sent.len());
    for (file, bytes) in support::files(place.root()) {
        assert!(!String::from_utf8_lossy(&bytes).contains(KEY), "{file:?} has the key");
    }
}

// L4
#[test]
fn a_configured_embedder_whose_vectors_cannot_be_compared_lets_nothing_pass() {
    let service = Service::start(Answers::Zeros);
    let place = service.place();
    let report = run(&place, &[&CONVENE[..], &["--trust"]].concat(), Some(KEY)).json();
    assert_eq!(report["fragments"], json!([]));
    let violations = report["violations"].as_array().unwrap();
    assert!(
        violations.len() == 2 && violations.iter().all(|one| one["code"] == "lock_unchecked"),
        "{violations:?}"
    );
}

// L4, X8
#[test]
fn comparisons_count_in_the_budget_and_in_what_was_paid() {
    let service = Service::start(Answers::Well);
    let place =
        service.place_with("price = { input = 10.0 }\n[budget]\ntokens = 100000\nmoney = \"1 USD\"\n");
    let trusted = [&CONVENE[..], &["--trust"]].concat();
    let report = run(&place, &trusted, Some(KEY)).assert_code(0).json();
    let tokens = TOKENS * service.requests().len() as u64;
    let spent = &report["spent"];
    let money = format!("{:.3}", tokens as f64 * 1e-5);
    assert_eq!((&spent["tokens_in"], &spent["money"]["amount"]), (&json!(tokens), &json!(money)), "{spent}");
    let records = records::records(&place.path(".quorate/ledger.db"), &place.only_run());
    let compared = records::of_kind(&records, "match");
    let charged: u64 = compared.iter().map(|one| one["charged"]["tokens"].as_u64().unwrap()).sum();
    assert_eq!(charged, tokens, "{compared:?}");
    // A comparison's reservation is on disk before the request.
    let intents = records::of_kind(&records, "run.intent");
    let reserved = intents.iter().filter_map(|intent| intent["compares"].as_array()).flatten().count();
    assert_eq!(reserved, compared.len());
    let audit = run(&place, &["audit", "--format", "json"], None).json();
    let paid = audit["costs"]["members"].as_array().unwrap().iter().find(|sum| sum["member"] == "[embedder]");
    assert_eq!(paid.unwrap()["tokens_in"], json!(tokens), "{audit}");
    assert_eq!(audit["costs"]["executors"][0]["model"], "temperature");
    run(&place, &["replay", &place.only_run()], None).assert_code(0);
}

// L4, X8
#[test]
fn a_comparison_that_does_not_fit_is_not_made() {
    let service = Service::start(Answers::Well);
    let place = service.place_with("[budget]\ntokens = 3\n");
    let trusted = [&CONVENE[..], &["--trust"]].concat();
    let report = run(&place, &trusted, Some(KEY)).json();
    assert!(service.requests().is_empty(), "nothing was sent");
    assert_eq!(report["fragments"], json!([]), "what is not compared is dropped");
    assert!(report["violations"].to_string().contains("lock_unchecked"), "{report}");
    assert!(report["notes"].to_string().contains("3 of 3 are left (`budget.tokens`)"), "{report}");
    let allowed = run(&place, &[&trusted[..], &["--max-tokens", "100000"]].concat(), Some(KEY)).json();
    assert_eq!(allowed["fragments"].as_array().unwrap().len(), 1, "{allowed}");
    assert_eq!(allowed["spent"]["tokens_in"], json!(TOKENS * service.requests().len() as u64));
}

// L4, X8
#[test]
fn what_was_reserved_for_a_comparison_counts_when_its_process_is_killed() {
    let service = Service::start(Answers::Never);
    let place = service.place_with("[budget]\ntokens = 100000\n");
    let mut command = place.command(&[&CONVENE[..], &["--trust"]].concat());
    let mut convened = command.env("EMBEDDER_KEY", KEY).spawn().unwrap();
    support::wait_until(Duration::from_secs(60), "a request", || !service.requests().is_empty());
    convened.kill().unwrap();
    convened.wait().unwrap();
    // Requests sent before the kill may still arrive.
    std::thread::sleep(Duration::from_millis(300));
    let sent = service.requests().len();
    let run_id = place.only_run();
    let records = records::records(&place.path(".quorate/ledger.db"), &run_id);
    let intents = records::of_kind(&records, "run.intent");
    let reserved = intents.iter().filter_map(|intent| intent["compares"].as_array()).flatten();
    let reserved: u64 = reserved.map(|one| one["tokens"].as_u64().unwrap()).sum();
    assert!(reserved > 0, "{intents:?}");
    // No more than that is allowed, so that nothing is left.
    let cap = reserved.to_string();
    let resume = ["resume", &run_id, "--max-tokens", &cap, "--trust", "--format", "json"];
    let resumed = run(&place, &resume, Some(KEY)).json();
    assert_eq!(service.requests().len(), sent, "{resumed}");
    let left = format!("0 of {cap} are left (`budget.tokens`)");
    assert!(resumed["notes"].to_string().contains(&left), "{resumed}");
}

// L4, X8
#[test]
fn money_is_not_capped_where_the_price_of_the_embedder_is_unknown() {
    let service = Service::start(Answers::Well);
    let place = service.place_with("[budget]\nmoney = \"5 USD\"\nprices = \"prices.toml\"\n");
    let far = place.read("quorate.toml").replace(&service.address, "https://models.example.com/v1");
    place.write("quorate.toml", far);
    place.write("prices.toml", "date = \"2026-11-01\"\n[models.other]\ninput = 1.0\noutput = 1.0\n");
    let trusted = [&CONVENE[..], &["--trust"]].concat();
    let refused = run(&place, &trusted, Some(KEY)).assert_code(5).stdout.clone();
    assert!(refused.contains("quorate:cost_unknown") && refused.contains("[embedder]"), "{refused}");
    assert!(!place.path(".quorate/ledger.db").exists() || place.runs().is_empty(), "nothing is recorded");
    // An invalid price file is refused.
    place.write("prices.toml", "date = \"2026-13-01\"\n[models.other]\ninput = 1.0\noutput = 1.0\n");
    let refused = run(&place, &trusted, Some(KEY)).assert_code(5).stdout.clone();
    assert!(refused.contains("not a day"), "{refused}");
}

#[test]
fn doctor_lists_the_embedder_and_a_misspelt_key_is_refused_everywhere() {
    let service = Service::start(Answers::Well);
    let place = service.place();
    let doctor = run(&place, &["doctor", "--trust"], Some(KEY));
    assert!(doctor.stdout.contains("with a vector of 2 numbers"), "{}", doctor.stdout);
    let doctor = run(&place, &["doctor", "--trust"], None);
    assert!(doctor.stdout.contains("EMBEDDER_KEY, which holds the key, is not set"), "{}", doctor.stdout);
    let table = std::fs::read_to_string(place.path("quorate.toml")).unwrap();
    place.write("quorate.toml", table.replace("threshold", "treshold"));
    for arguments in [&["runs"][..], &CONVENE, &["check", "."]] {
        let ran = run(&place, arguments, Some(KEY));
        assert!(
            ran.stderr.contains("quorate:embedder_invalid")
                || ran.stdout.contains("quorate:embedder_invalid"),
            "{arguments:?}: {}{}",
            ran.stdout,
            ran.stderr
        );
    }
}

// L4
#[test]
fn the_embedder_scores_a_text() {
    let service = Service::start(Answers::Well);
    let place = service.place();
    let test = ["locks", "test", ".", "--meaning", "--trust", "--text", "Ask first. Be icy."];
    let tested = run(&place, &[&test[..], &["--format", "json"]].concat(), Some(KEY)).assert_code(0).json();
    assert_eq!(
        (&tested["way"], &tested["model"], &tested["threshold"]),
        (&json!("embedder"), &json!("temperature"), &json!(0.9))
    );
    let scored = &tested["texts"][0]["traits"][0];
    assert_eq!(
        (&scored["trait"], &scored["score"], &scored["hit"]),
        (&json!("warmth"), &json!(1.0), &json!(true))
    );
    let human = run(&place, &test, Some(KEY)).assert_code(0).stdout;
    assert!(human.contains("Compared by vectors of `temperature`; the threshold is 0.9."), "{human}");
}
