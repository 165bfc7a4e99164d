//! Executors that stand in for others (`fallback`): a server that fails before one that answers, and how a review, its
//! records, its report and its estimate show them.

use std::io::{BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::http::read_request;
use crate::support::{CommandOutput, TestDir, assembly, finish, records, wait_until};

/// What a server sends to each question.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Reply {
    /// A fitting answer.
    Answer,
    /// Nothing until the test ends.
    Nothing,
    /// An HTTP status with this body.
    Error(u16, &'static str),
    /// An answer with this text.
    Text(&'static str),
    /// The beginning of an answer that stopped for this reason.
    Stopped(&'static str),
}

/// A server of the chat API on loopback.
struct Server {
    address: String,
    calls: Arc<AtomicUsize>,
    reply: Arc<Mutex<Reply>>,
}

impl Server {
    fn start(reply: Reply) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/v1", listener.local_addr().unwrap());
        let (calls, reply) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(reply)));
        let (counted, shared) = (calls.clone(), reply.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (counted, reply) = (counted.clone(), *shared.lock().unwrap());
                std::thread::spawn(move || serve(stream.unwrap(), &counted, reply));
            }
        });
        Server { address, calls, reply }
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// The table of an executor that asks this server.
    fn table(&self, name: &str, more: &str) -> String {
        format!(
            "[executors.{name}]\nkind = \"llm\"\nwire = \"chat\"\nbase_url = \"{}\"\nmodel = \"{name}-model\"\n\
             price = \"free\"\nretries = 0\n{more}\n",
            self.address
        )
    }
}

fn serve(mut stream: TcpStream, calls: &AtomicUsize, reply: Reply) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let Some((_, body)) = read_request(&mut reader) else { return };
    calls.fetch_add(1, Ordering::SeqCst);
    let body: Value = serde_json::from_slice(&body).unwrap();
    let text = match reply {
        Reply::Nothing => {
            std::thread::sleep(Duration::from_secs(60));
            return;
        }
        Reply::Error(status, body) => {
            let head = format!("HTTP/1.1 {status} Error\r\ncontent-length: {}\r\nconnection: close", body.len());
            let _ = stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes());
            return;
        }
        Reply::Text(text) => text.to_owned(),
        Reply::Stopped(_) => "{\"would".to_owned(),
        Reply::Answer => match body["response_format"]["json_schema"]["name"] == "adjudication" {
            true => json!({"verdict": "SHIP", "reasoning": "Fine.", "revision_brief": null, "dissent_summary": null}),
            false => {
                json!({"would_block": false, "irreducible": false, "findings": [], "reasoning": "Fine."})
            }
        }
        .to_string(),
    };
    let reason = if let Reply::Stopped(reason) = reply { reason } else { "stop" };
    let model = body["model"].as_str().unwrap_or_default().to_owned();
    let delta = json!({"model": model, "choices": [{"index": 0, "delta": {"content": text}}]});
    let stop = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]});
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 10}});
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
         data: {delta}\n\ndata: {stop}\n\ndata: {usage}\n\ndata: [DONE]\n\n"
    );
    let _ = stream.write_all(answer.as_bytes());
}

/// A draft, and a quorate.toml with an executor `opus` that `local` stands in for.
fn place(opus: &str, local: &str, more: &str) -> TestDir {
    let place = TestDir::with("draft.md", "The meeting moved to Tuesday at ten.\n");
    place.write("quorate.toml", format!("[defaults]\nexecutor = \"opus\"\n{more}{opus}{local}"));
    place
}

fn review(place: &TestDir, more: &[&str]) -> CommandOutput {
    let command = place.command(&[&["review", "draft.md", "--format", "json"], more].concat()).spawn();
    finish(command.unwrap())
}

/// The consultations of a run.
fn consultations(place: &TestDir, run: &Value) -> Vec<Value> {
    let all = records::records(&place.path(".quorate/ledger.db"), run.as_str().unwrap());
    records::of_kind(&all, "consultation")
}

const DOWN: Reply = Reply::Error(503, r#"{"error": {"message": "no capacity"}}"#);

// X4
#[test]
fn a_stand_in_answers_for_a_service_that_is_down_and_every_view_says_so() {
    let (down, good) = (Server::start(DOWN), Server::start(Reply::Answer));
    let place = place(&down.table("opus", "fallback = [\"local\"]"), &good.table("local", ""), "");
    let reviewed = review(&place, &[]);
    let told = reviewed.stderr.matches("`local` stands in for `opus`").count();
    assert_eq!(told, 1, "{}", reviewed.stderr);
    let report = reviewed.assert_code(0).json();
    assert_eq!(
        (&report["verdict"], &report["model_asked"], &report["executor"]),
        (&json!("SHIP"), &json!(true), &json!("local"))
    );
    assert_eq!((down.calls(), good.calls()), (9, 9));
    let skeptic = &report["deliberators"][0];
    assert_eq!(
        (&skeptic["executor"], &skeptic["model"], &skeptic["stand_in_for"], &skeptic["tried"][0]["http"]),
        (&json!("local"), &json!("local-model"), &json!("opus"), &json!(503))
    );
    let notes: Vec<&str> = report["notes"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let stand_in = notes.iter().filter(|note| note.contains("stand-in")).collect::<Vec<_>>();
    assert!(stand_in.len() == 1 && stand_in[0].contains("`local` for `opus`"), "{notes:?}");
    for consultation in consultations(&place, &report["run"]) {
        assert_eq!(
            (&consultation["executor"], &consultation["stand_in_for"], &consultation["attempts"]),
            (&json!("local"), &json!("opus"), &json!(2)),
            "{consultation}"
        );
        let tried = consultation["tried"].as_array().unwrap();
        assert!(tried.len() == 1 && tried[0]["message"].as_str().unwrap().contains("no capacity"));
    }
    let run = report["run"].as_str().unwrap();
    let all = records::records(&place.path(".quorate/ledger.db"), run);
    let opened = &records::of_kind(&all, "run.opened")[0];
    assert_eq!(
        (&opened["executors"][0]["name"], &opened["stand_ins"][0]["name"]),
        (&json!("opus"), &json!("local"))
    );
    let shown = place.run(&["show", run, "--full"]).assert_code(0);
    shown.assert_stdout_contains("answered by local, standing in for opus: ");
    let audit = place.run(&["audit", "--format", "json"]).assert_code(0).json();
    assert!(audit.to_string().contains("\"local\""), "{audit}");
}

#[test]
fn doctor_fails_for_answers_of_another_form_and_asks_again_after_a_limit() {
    for (reply, retries, works) in [
        (Reply::Answer, 0, true),
        (Reply::Error(429, "{}"), 1, true),
        (Reply::Error(503, "{}"), 1, true),
        (Reply::Error(529, "{}"), 1, true),
        (Reply::Error(429, "{}"), 0, true),
        (Reply::Error(401, "{}"), 1, false),
        (Reply::Text("I would not block it."), 1, false),
        (Reply::Text("{\"would_block\": \"maybe\"}"), 1, false),
        (Reply::Text("{\"verdict\": \"SHIP\"}"), 1, false),
    ] {
        let server = Server::start(reply);
        let table = server.table("opus", "").replace("retries = 0", &format!("retries = {retries}"));
        let place = place(&table, "", "");
        let diagnosed = std::thread::scope(|scope| {
            if matches!(reply, Reply::Error(..)) {
                scope.spawn(|| {
                    wait_until(Duration::from_secs(30), "the first question", || server.calls() == 1);
                    *server.reply.lock().unwrap() = Reply::Answer;
                });
            }
            place.run(&["doctor", "--ask"])
        });
        let diagnosed = diagnosed.assert_code(if works { 0 } else { 5 });
        assert_eq!(diagnosed.stdout.contains("Everything works."), works, "{reply:?}: {}", diagnosed.stdout);
    }
}

#[test]
fn a_file_that_a_stand_in_judged_is_judged_again_once_the_service_is_back() {
    let (down, good) = (Server::start(DOWN), Server::start(Reply::Answer));
    let place = place(&down.table("opus", "fallback = [\"local\"]"), &good.table("local", ""), "");
    let council = "deliberators:\n  - {id: skeptic, prompt: builtin:skeptic}\n  - {id: evidence, prompt: builtin:evidence}\n  - {id: strategy, \
                   prompt: builtin:strategy}\nadjudicator: {prompt: builtin:adjudicator}\n\
                   tier_classifier: {default_tier: 2}\ntier_rules: {tier_1: {post: ['*post*']}}\nwatch: {paths: [./drafts/]}\n";
    place.write("council.yaml", council);
    place.write("drafts/post.md", "The meeting moved to Tuesday at ten.\n");
    let sweep = || place.run(&["sweep", "--format", "json"]).json()["files"][0].clone();
    let first = sweep();
    assert_eq!((&first["fate"], &first["stand_ins"]), (&json!("judged"), &json!(true)), "{first}");
    let shown = place.run(&["sweep"]);
    shown.assert_stdout_contains("(stand-ins)").assert_stdout_contains("the next sweep judges them again");
    *down.reply.lock().unwrap() = Reply::Answer;
    let before = down.calls();
    let hook = place.run(&["hook", "pre-commit", "drafts/post.md"]);
    assert!(down.calls() > before, "{}{}", hook.stdout, hook.stderr);
    let calls = down.calls();
    let again = sweep();
    assert_eq!((&again["fate"], &again["stand_ins"]), (&json!("already_judged"), &Value::Null), "{again}");
    assert_eq!(down.calls(), calls);
    // A later outage does not hide the own judgement.
    *down.reply.lock().unwrap() = DOWN;
    place.run(&["sweep", "--force", "--format", "json"]);
    assert_eq!(sweep()["fate"], "already_judged");
}

// X4
#[test]
fn only_failures_of_the_service_lead_to_a_stand_in() {
    let refused = TcpListener::bind("127.0.0.1:0").unwrap();
    let unreachable = format!("http://{}/v1", refused.local_addr().unwrap());
    drop(refused);
    let day_limit =
        r#"{"error": {"code": "insufficient_quota", "message": "the quota of the day is used up"}}"#;
    for (name, reply, stands_in) in [
        ("unavailable", DOWN, true),
        ("overloaded", Reply::Error(529, "{}"), true),
        ("key", Reply::Error(401, r#"{"error": {"message": "bad key"}}"#), true),
        ("forbidden", Reply::Error(403, "{}"), true),
        ("unknown model", Reply::Error(404, r#"{"error": {"code": "model_not_found"}}"#), true),
        ("conflict", Reply::Error(409, "{}"), true),
        ("day limit", Reply::Error(429, day_limit), true),
        ("bad gateway", Reply::Error(502, "<html>bad gateway</html>"), true),
        ("invalid request", Reply::Error(422, r#"{"error": {"message": "no such field"}}"#), false),
        ("too long", Reply::Error(413, r#"{"error": {"code": "context_length_exceeded"}}"#), false),
        ("policy", Reply::Error(400, r#"{"error": {"code": "content_policy_violation"}}"#), false),
        ("cut off", Reply::Stopped("length"), false),
        ("filtered", Reply::Stopped("content_filter"), false),
        ("prose", Reply::Text("I would not block it."), false),
        ("another form", Reply::Text("{\"would_block\": \"maybe\"}"), false),
        ("empty", Reply::Text(""), false),
    ] {
        let (first, good) = (Server::start(reply), Server::start(Reply::Answer));
        let place = place(&first.table("opus", "fallback = [\"local\"]"), &good.table("local", ""), "");
        let report = review(&place, &[]).assert_code(if stands_in { 0 } else { 3 }).json();
        assert_eq!(good.calls() > 0, stands_in, "{name}: {report}");
        let verdict = if stands_in { "SHIP" } else { "INCOMPLETE" };
        assert_eq!(report["verdict"], verdict, "{name}: {report}");
    }
    for (name, table) in [
        ("refused connection", format!("base_url = \"{unreachable}\"\nkey = \"none\"\n")),
        ("missing key", format!("base_url = \"{unreachable}\"\nkey = {{ env = \"NO_SUCH_KEY_9\" }}\n")),
    ] {
        let good = Server::start(Reply::Answer);
        let opus = format!(
            "[executors.opus]\nkind = \"llm\"\nwire = \"chat\"\nmodel = \"m\"\nretries = 0\n{table}fallback = [\"local\"]\n"
        );
        let opus = opus.replace("key = \"none\"\n", "");
        let place = place(&opus, &good.table("local", ""), "");
        let report = review(&place, &[]).assert_code(0).json();
        assert_eq!((&report["executor"], good.calls()), (&json!("local"), 9), "{name}: {report}");
    }
    let good = Server::start(Reply::Answer);
    let missing = "[executors.opus]\ncommand = \"no-such-program-9\"\nfallback = [\"local\"]\n";
    let place = place(missing, &good.table("local", ""), "");
    let report = review(&place, &[]).assert_code(0).json();
    assert_eq!((&report["executor"], good.calls()), (&json!("local"), 9), "missing program: {report}");
}

// X4
#[test]
fn a_silent_service_is_given_up_after_its_own_timeout() {
    let (silent, good) = (Server::start(Reply::Nothing), Server::start(Reply::Answer));
    let opus = silent.table("opus", "timeout = \"1s\"\nfallback = [\"local\"]");
    let place = place(&opus, &good.table("local", ""), "");
    let report = review(&place, &[]).assert_code(0).json();
    let tried = &report["deliberators"][0]["tried"][0];
    assert!(tried["message"].as_str().unwrap().contains("1 s"), "{report}");
}

// X4
#[test]
fn without_an_answer_every_reason_is_given() {
    let (one, two) =
        (Server::start(DOWN), Server::start(Reply::Error(401, r#"{"error": {"message": "who?"}}"#)));
    let place = place(&one.table("opus", "fallback = [\"local\"]"), &two.table("local", ""), "");
    let report = review(&place, &[]).assert_code(3).json();
    let shown = place.run(&["show", report["run"].as_str().unwrap(), "--full"]).stdout;
    assert!(shown.contains("no answer from local, standing in for opus"), "{shown}");
    assert!(!shown.contains("answered by"), "{shown}");
    let message = report["deliberators"][0]["round1"]["failure"]["message"].as_str().unwrap().to_owned();
    for part in ["`opus`: ", "no capacity", "`local`: ", "who?"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn the_list_of_a_member_replaces_that_of_its_executor_and_a_person_replaces_both() {
    let (down, good) = (Server::start(DOWN), Server::start(Reply::Answer));
    let tables = [good.table("local", ""), good.table("other", "")].concat();
    let own =
        "[council.members.skeptic]\nfallback = [\"other\"]\n[council.members.evidence]\nfallback = []\n";
    let place = place(&down.table("opus", "fallback = [\"local\"]"), &tables, own);
    let report = review(&place, &[]).json();
    let ended = consultations(&place, &report["run"]);
    let executors: Vec<_> = ended.iter().map(|one| (&one["member"], &one["executor"])).collect();
    for (member, executor) in [("skeptic", "other"), ("evidence", "opus"), ("strategy", "local")] {
        assert!(executors.contains(&(&json!(member), &json!(executor))), "{executors:?}");
    }
    let place = self::place(&down.table("opus", ""), &tables, own);
    let report = review(&place, &["--executor", "opus"]).assert_code(3).json();
    assert_eq!(report["executor"], "opus");
}

// X8
#[test]
fn the_calls_of_stand_ins_count() {
    let (down, good) = (Server::start(DOWN), Server::start(Reply::Answer));
    let place = place(&down.table("opus", "fallback = [\"local\"]"), &good.table("local", ""), "");
    let report = review(&place, &["--max-calls", "5"]).assert_code(3).json();
    assert_eq!(down.calls() + good.calls(), 5, "{report}");
    // A price that is not known cannot be held, of a stand-in as of any other executor.
    let unpriced = "[executors.local]\nkind = \"llm\"\nwire = \"chat\"\nmodel = \"m\"\nbase_url = \"https://192.0.2.1/v1\"\n";
    let opus = down.table("opus", "fallback = [\"local\"]");
    place.write(
        "quorate.toml",
        format!("[defaults]\nexecutor = \"opus\"\n[budget]\nmoney = \"1 USD\"\n{opus}{unpriced}"),
    );
    let before = down.calls();
    let refused = review(&place, &[]).assert_code(5).json().to_string();
    assert!(refused.contains("quorate:cost_unknown") && refused.contains("`local`"), "{refused}");
    assert_eq!(down.calls(), before);
}

#[test]
fn an_estimate_names_the_stand_ins() {
    let (down, good) = (Server::start(DOWN), Server::start(Reply::Answer));
    let place = place(&down.table("opus", "fallback = [\"local\"]"), &good.table("local", ""), "");
    let estimate = review(&place, &["--dry-run"]).assert_code(0).json();
    let opus = &estimate["total"]["executors"][0];
    assert_eq!((&opus["executor"], &opus["calls"]), (&json!("opus"), &json!(9)));
    assert_eq!(opus["stand_ins"], json!([{"executor": "local", "model": "local-model"}]));
    let alone = self::place(&down.table("opus", ""), "", "");
    let without = review(&alone, &["--dry-run"]).assert_code(0).json();
    let most = |estimate: &Value| estimate["total"]["executors"][0]["most"]["tokens"].as_u64().unwrap();
    assert!(most(&estimate) > most(&without));
    assert_eq!(without["total"]["executors"][0]["stand_ins"], Value::Null);
    let text = place.run(&["review", "draft.md", "--dry-run"]).assert_code(0);
    // The line is wrapped.
    let words = text.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("asked only if its service fails: local"), "{words}");
    assert_eq!((down.calls(), good.calls()), (0, 0));
}

// X7
#[test]
fn a_run_that_was_killed_asks_again_only_for_what_is_missing() {
    let (down, slow) = (Server::start(DOWN), Server::start(Reply::Nothing));
    let place = place(&down.table("opus", "fallback = [\"local\"]"), &slow.table("local", ""), "");
    let mut child = place.command(&["review", "draft.md", "--format", "json"]).spawn().unwrap();
    wait_until(Duration::from_secs(30), "the stand-in is asked", || slow.calls() >= 1);
    child.kill().unwrap();
    child.wait().unwrap();
    *slow.reply.lock().unwrap() = Reply::Answer;
    let run = place.only_run();
    let report = place.run(&["resume", &run, "--format", "json"]).assert_code(0).json();
    assert_eq!((&report["verdict"], &report["executor"]), (&json!("SHIP"), &json!("local")));
    let before = (down.calls(), slow.calls());
    let again = place.run(&["resume", &run, "--format", "json"]);
    assert_eq!((down.calls(), slow.calls()), before, "{}", again.stdout);
}

#[test]
fn a_changed_list_is_another_council() {
    let (down, good) = (Server::start(DOWN), Server::start(Reply::Answer));
    let local = good.table("local", "");
    let place = place(&down.table("opus", ""), &local, "");
    let run = review(&place, &[]).assert_code(3).json()["run"].as_str().unwrap().to_owned();
    place.write(
        "quorate.toml",
        format!("[defaults]\nexecutor = \"opus\"\n{}{local}", down.table("opus", "fallback = [\"local\"]")),
    );
    place.run(&["resume", &run]).assert_refused(5, "quorate:fingerprint_changed");
}

#[test]
fn a_list_that_cannot_be_followed_is_refused_with_its_place() {
    let nine = (1..10).map(|number| format!("\"ollama:m{number}\"")).collect::<Vec<_>>().join(", ");
    let opus =
        |list: &str| format!("[executors.opus]\npreset = \"ollama\"\nmodel = \"m\"\nfallback = {list}\n");
    for (name, text, says) in [
        ("itself", opus("[\"opus\"]"), "cannot stand in for itself"),
        ("unknown", opus("[\"no-such\"]"), "unknown executor `no-such`"),
        ("an empty text", opus("[\"\"]"), "is empty"),
        ("a blank text", opus("[\"  \"]"), "is empty"),
        ("too many", opus(&format!("[{nine}]")), "has 9 entries"),
        ("twice", opus("[\"ollama:a\", \"ollama:a\"]"), "has `ollama:a` twice"),
        ("a text", opus("\"ollama:a\""), "fallback"),
        ("a number", opus("[7]"), "fallback"),
        (
            "of a member",
            opus("[]") + "[council.members.skeptic]\nexecutor = \"opus\"\nfallback = [\"no-such\"]\n",
            "unknown executor `no-such`",
        ),
        (
            "of an assembly",
            opus("[]") + "[assemblies.board]\nfallback = [\"no-such\"]\n",
            "unknown executor `no-such`",
        ),
        (
            "of a participant",
            opus("[]") + "[runtimes.desk.participants.a]\nfallback = [\"no-such\"]\n",
            "unknown executor `no-such`",
        ),
    ] {
        let place = TestDir::with("draft.md", "The meeting moved to Tuesday at ten.\n");
        place.write("quorate.toml", text);
        let refused = place.run(&["review", "draft.md"]);
        assert_eq!(refused.code, 5, "{name}: {}", refused.stderr);
        assert!(refused.stderr.contains(says), "{name}: {}", refused.stderr);
        assert!(refused.stderr.contains("quorate.toml"), "{name}: {}", refused.stderr);
        assert!(!place.path(".quorate/ledger.db").exists(), "{name}");
    }
}

// X14
#[test]
fn a_stand_in_is_named_by_what_needs_trust() {
    let (down, good) = (Server::start(DOWN), Server::start(Reply::Answer));
    let host = good.address.trim_start_matches("http://").trim_end_matches("/v1").to_owned();
    let inline = format!("fallback = [\"{}#small\"]", good.address);
    let place = place(&down.table("opus", &inline), "", "");
    place.run(&["trust", "--show"]).assert_stdout_contains(&host);
    let mut command = place.command(&["review", "draft.md"]);
    let refused = finish(command.env_remove("QUORATE_TRUST").spawn().unwrap());
    refused.assert_refused(5, "quorate:workspace_untrusted").assert_stderr_contains(&host);
    assert_eq!((down.calls(), good.calls()), (0, 0), "nothing is asked without trust");
    let report = review(&place, &[]).assert_code(0).json();
    assert_eq!(report["executor"], format!("{}#small", good.address));
}

#[test]
fn doctor_lists_stand_ins_and_their_problems_as_warnings() {
    let good = Server::start(Reply::Answer);
    let broken = "fallback = [\"broken\"]";
    let stand_in = "[executors.broken]\ncommand = \"no-such-program-9\"\n";
    let place = place(&good.table("opus", broken), stand_in, "");
    let checks = place.run(&["doctor", "--format", "json"]).json();
    let text = checks.to_string();
    assert!(text.contains("with `broken` standing in"), "{text}");
    let find = |name: &str| {
        let all = checks["checks"].as_array().unwrap();
        all.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("{name}: {text}")).clone()
    };
    assert_eq!(find("executor broken")["state"], "noted", "{text}");
}

#[test]
fn a_member_of_an_assembly_has_a_stand_in() {
    let (down, good) = (Server::start(DOWN), Server::start(Reply::Answer));
    *good.reply.lock().unwrap() = Reply::Text("{\"vote\": \"yes\", \"rationale\": \"It holds.\"}");
    let servers = [down.table("opus", ""), good.table("local", ""), good.table("other", "")].concat();
    for (more, table, executor) in [
        ("metadata: {quorate: {fallback: [local]}}\n", "", "local"),
        (
            "metadata: {quorate: {members: {ana: {fallback: [local]}}, fallback: [other]}}\n",
            "",
            "local, other",
        ),
        (
            "metadata: {quorate: {fallback: [local]}}\n",
            "[assemblies.board]\nfallback = [\"other\"]\n",
            "other",
        ),
        ("", "[assemblies.board.members.ana]\nfallback = [\"other\"]\n", "other"),
    ] {
        let place = TestDir::new();
        assembly::write(&place, "voting", &[("ana", ""), ("bo", ""), ("cy", "")], more);
        place.write("quorate.toml", format!("[defaults]\nexecutor = \"opus\"\n{servers}{table}"));
        let report = assembly::convene(&place, "--proposal", &[]).json();
        assert_eq!(report["executor"], executor, "{more}{table}: {report}");
    }
    for wrong in ["[\"\"]", "local", "[1]", "[a, a]", "[a, b, c, d, e, f, g, h, i]"] {
        let place = TestDir::new();
        let more = format!("metadata: {{quorate: {{fallback: {wrong}}}}}\n");
        assembly::write(&place, "voting", &[("ana", ""), ("bo", ""), ("cy", "")], &more);
        let refused = assembly::convene(&place, "--proposal", &[]);
        let said = format!("{}{}", refused.stdout, refused.stderr);
        assert_eq!(refused.code, 5, "{wrong}: {said}");
        assert!(said.contains("metadata.quorate.fallback") && said.contains("refusal"), "{wrong}: {said}");
    }
}

#[test]
fn check_refuses_unknown_stand_ins_and_warns_of_those_that_cannot_be_asked() {
    let council = |fallback: &str| {
        format!(
            "deliberators:\n  - {{id: skeptic, prompt: builtin:skeptic, fallback: {fallback}}}\n  - {{id: evidence, prompt: \
             builtin:evidence}}\n  - {{id: strategy, prompt: builtin:strategy}}\nadjudicator: {{prompt: builtin:adjudicator}}\n"
        )
    };
    let table = "[executors.broken]\ncommand = \"no-such-program-9\"\n";
    let opus = "[executors.opus]\npreset = \"ollama\"\nmodel = \"m\"\n";
    for (name, config, council, code, says) in [
        ("a table", opus.to_owned() + table, council("[opus]"), 0, ""),
        ("a preset", String::new(), council("[\"ollama:qwen3\"]"), 0, ""),
        ("missing program", table.to_owned(), council("[broken]"), 0, "`broken` cannot stand in here"),
        ("unknown", opus.to_owned(), council("[no-such]"), 1, "unknown executor `no-such`"),
        ("empty", opus.to_owned(), council("[\"\"]"), 1, "is empty"),
        (
            "of the table",
            format!("{opus}fallback = [\"broken\"]\n{table}"),
            council("[]"),
            0,
            "`broken` cannot",
        ),
        ("itself", format!("{opus}fallback = [\"opus\"]\n"), council("[]"), 1, "cannot stand in for itself"),
    ] {
        let place = TestDir::with("council.yaml", council);
        place.write("quorate.toml", config);
        let checked = place.run(&["check", "council.yaml", "quorate.toml"]);
        let said = format!("{}{}", checked.stdout, checked.stderr);
        assert_eq!(checked.code, code, "{name}: {said}");
        assert!(said.contains(says), "{name}: {said}");
        assert_eq!(said.contains("cannot stand in here"), says.contains("`broken` cannot"), "{name}: {said}");
    }
}
