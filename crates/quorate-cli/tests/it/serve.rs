//! `quorate serve`: who may ask, what the API and the pages say, and that a server that only shows things writes nothing.

use std::io::{BufRead as _, BufReader};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::support::serve::Served;
use super::support::{TestDir, assembly, files, wait_until};

const TEXT: &str = "# Launch\n\nWe are the best in the world. Users love it. The hall opens at nine on weekdays, so write to us if the hours do not suit you.\n";

fn reviewed() -> TestDir {
    let place = TestDir::with("draft.md", TEXT);
    place.review(&["draft.md", "--executor", "rubric"]);
    place.write(
        "swarm.yaml",
        "schema: agentruntimes/v1\nkind: MultiAgentRuntime\nid: talk\nparticipants: [{id: ada, executor: rubric}]\n\
         substrate: {kind: file, path: talk.md}\ndispatcher: {kind: mention}\n",
    );
    place.run(&["say", "swarm.yaml", "hello"]).assert_code(0);
    place
}

/// Every route that the server says it has, with braces filled in.
fn routes(served: &Served, run: &str) -> Vec<(String, String)> {
    let document = served.get("/api/v1/openapi.json").json();
    let mut all: Vec<(String, String)> = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        // A stream of a conversation has no end, so none is named.
        let path = path.replace("{run}", run).replace("{job}", "j0").replace("{talk}", "t0");
        let path = path.replace("{slug}", "cite");
        all.extend(methods.as_object().unwrap().keys().map(|method| (method.to_uppercase(), path.clone())));
    }
    let pages = [
        "/",
        &format!("/runs/{run}"),
        &format!("/runs/{run}/live"),
        &format!("/compare?a={run}&b={run}"),
        "/talks",
        "/talks/t0",
        "/playbooks",
        "/playbooks/cite",
        "/audit",
        "/ledger",
        "/nowhere",
        "/assets/0/app.js",
    ];
    all.extend(pages.map(|path| ("GET".to_owned(), path.to_owned())));
    all
}

#[test]
fn no_route_answers_who_brings_no_secret_or_comes_from_elsewhere() {
    let place = reviewed();
    let served = Served::start(&place, &[]);
    let (cookie, bearer) = (served.cookie(), served.bearer());
    let port = served.authority.rsplit_once(':').unwrap().1.to_owned();
    let all = routes(&served, &place.only_run());
    assert!(all.len() > 20, "{all:?}");
    for (method, path) in &all {
        let status = |headers: &[(&str, &str)]| served.send(method, path, headers, "").status;
        let what = format!("{method} {path}");
        assert_eq!(
            status(&[("Host", "evil.example"), ("Authorization", &bearer)]),
            403,
            "{what}: another host"
        );
        let rebound = format!("rebound.example:{port}");
        assert_eq!(
            status(&[("Host", &rebound), ("Cookie", &cookie)]),
            403,
            "{what}: a name that was bound anew"
        );
        let refused = [401, 403];
        assert!(refused.contains(&status(&[])), "{what}: no secret");
        assert!(refused.contains(&status(&[("Authorization", "Bearer wrong")])), "{what}: a wrong token");
        assert!(
            refused.contains(&status(&[("Cookie", &cookie.replace('=', "=0"))])),
            "{what}: a wrong cookie"
        );
        if method != "GET" {
            let from = |site: &str| status(&[("Cookie", &cookie), ("Sec-Fetch-Site", site)]);
            assert_eq!(from("same-site"), 403, "{what}: a server on another port");
            assert_eq!(from("cross-site"), 403, "{what}");
            assert_eq!(status(&[("Cookie", &cookie), ("Origin", "http://127.0.0.1:1")]), 403, "{what}");
            assert_eq!(status(&[("Cookie", &cookie)]), 403, "{what}: nothing says where it comes from");
        }
        let answered = served.send(method, path, &[("Cookie", &cookie)], "");
        let policy = answered.header("content-security-policy").unwrap_or_default();
        assert!(
            policy.contains("default-src 'none'") && policy.contains("require-trusted-types-for"),
            "{what}"
        );
        assert_eq!(answered.header("cache-control"), Some("no-store"), "{what}");
        assert_eq!(answered.header("x-content-type-options"), Some("nosniff"), "{what}");
        assert_eq!(answered.header("access-control-allow-origin"), None, "{what}");
    }
}

#[test]
fn a_link_works_once() {
    let served = Served::start(&reviewed(), &[]);
    // A preview of it does not use it up.
    let preview = served.send("HEAD", &served.link, &[], "");
    assert_eq!((preview.status, preview.header("set-cookie")), (405, None));
    let first = served.send("GET", &served.link, &[], "");
    assert_eq!((first.status, first.header("location")), (303, Some("/")));
    let cookie = first.header("set-cookie").unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let again = served.send("GET", &served.link, &[], "");
    assert_eq!((again.status, again.header("set-cookie")), (401, None));
    let pair = cookie.split(';').next().unwrap();
    assert_eq!(served.send("GET", "/", &[("Cookie", pair)], "").status, 200);
    // The session of one server is none of another.
    let other = Served::start(&reviewed(), &[]);
    assert_eq!(other.send("GET", "/", &[("Cookie", pair)], "").status, 401);
}

#[test]
fn the_api_says_what_the_command_line_says() {
    let place = reviewed();
    let (served, run) = (Served::start(&place, &[]), place.only_run());
    let shown = place.run(&["show", &run, "--format", "json"]).assert_code(0).json();
    assert_eq!(served.get(&format!("/api/v1/runs/{run}")).json(), shown);
    assert_eq!(served.get("/api/v1/runs/latest").json(), shown);
    let listed = place.run(&["runs", "--format", "json"]).assert_code(0).json();
    assert_eq!(served.get("/api/v1/runs").json()["runs"], listed["runs"]);
    let audit = place.run(&["audit", "--format", "json"]).assert_code(0).json();
    assert_eq!(served.get("/api/v1/audit").json(), audit);
    let text = served.get(&format!("/api/v1/runs/{run}/artifact"));
    assert_eq!((&*text.body, text.header("content-type")), (TEXT, Some("text/plain; charset=utf-8")));
    let proof = served.get(&format!("/api/v1/runs/{run}/proof"));
    assert_eq!(proof.status, 200, "{}", proof.body);
    place.write("run.proof", &proof.body);
    let ledger = served.get("/api/v1/ledger").json();
    let key = ledger["checkpoint"]["keys"][0].as_str().unwrap();
    place.run(&["ledger", "check-proof", "run.proof", "--key", key]).assert_code(0);
    assert_eq!((&ledger["runs"], &ledger["unsealed"]), (&json!(1), &json!(0)));
    assert_eq!(served.get("/api/v1/checkpoint").json(), ledger["checkpoint"]);
    let records = served.get(&format!("/api/v1/runs/{run}/records")).json();
    let all = records["records"].as_array().unwrap();
    assert_eq!(all[0]["kind"], "run.opened");
    let rest = served.get(&format!("/api/v1/runs/{run}/records?after=3")).json();
    assert_eq!(rest["records"].as_array().unwrap()[..], all[4..]);
}

#[test]
fn pages_of_the_list_follow_each_other() {
    let place = TestDir::with("draft.md", TEXT);
    for n in 0..5 {
        place.write("draft.md", format!("{TEXT}{n}\n"));
        place.review(&["draft.md", "--executor", "rubric"]);
    }
    let served = Served::start(&place, &[]);
    let mut ids: Vec<Value> = Vec::new();
    let mut path = "/api/v1/runs?limit=2".to_owned();
    loop {
        let page = served.get(&path).json();
        ids.extend(page["runs"].as_array().unwrap().iter().map(|run| run["run"].clone()));
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/api/v1/runs?limit=2&before={next}");
    }
    let listed: Vec<Value> = place.runs().iter().map(|run| run["run"].clone()).collect();
    assert_eq!(ids, listed);
    assert_eq!(served.get("/api/v1/runs?limit=0").status, 400);
    assert_eq!(served.get("/api/v1/runs?nonsense=1").status, 400);
}

#[test]
fn a_review_is_started_watched_and_overridden() {
    let place = TestDir::new();
    let served = Served::start(&place, &[]);
    assert_eq!(served.get("/api/v1/runs").json()["runs"], json!([]));
    let started = served.post("/api/v1/reviews", &json!({"name": "draft.md", "text": TEXT}));
    assert_eq!(started.status, 202, "{}", started.body);
    let started = started.json();
    let result = served.finish(started["job"].as_str().unwrap());
    assert_eq!(result["run"], started["run"]);
    let run = result["run"].as_str().unwrap();
    assert_eq!(served.get(&format!("/api/v1/runs/{run}")).json()["verdict"], result["verdict"]);
    let decision = json!({"verdict": "HOLD", "reason": "legal asks", "by": "Ada"});
    let decided = served.post(&format!("/api/v1/runs/{run}/override"), &decision);
    assert_eq!((decided.status, &decided.json()["override"]["verdict"]), (200, &json!("HOLD")));
    let shown = place.run(&["show", run, "--format", "json"]).assert_code(0).json();
    assert_eq!(shown["override"]["reason"], "legal asks");
    let resumed = served.post(&format!("/api/v1/runs/{run}/resume"), &json!({}));
    assert_eq!((resumed.status, &resumed.json()["code"]), (409, &json!("quorate:run_decided")));
}

#[test]
fn a_repeated_request_starts_nothing_twice() {
    let place = TestDir::new();
    let served = Served::start(&place, &[]);
    let body = json!({"text": TEXT}).to_string();
    let bearer = served.bearer();
    let headers = [("Authorization", &*bearer), ("Idempotency-Key", "k1")];
    let first = served.send("POST", "/api/v1/reviews", &headers, &body).json();
    let again = served.send("POST", "/api/v1/reviews", &headers, &body).json();
    assert_eq!(first, again);
    served.finish(first["job"].as_str().unwrap());
    assert_eq!(place.runs().len(), 1);
    let other = json!({"text": "Another text.\n"}).to_string();
    assert_eq!(served.send("POST", "/api/v1/reviews", &headers, &other).status, 422);
}

#[test]
fn bad_requests_are_refused_with_a_code_and_a_place() {
    let place = reviewed();
    let served = Served::start(&place, &[]);
    for (body, says) in [
        (json!({}), "nothing to review"),
        (json!({"text": "a", "path": "b"}), "both `path` and `text`"),
        (json!({"text": 1}), "`text`: invalid type"),
        (json!({"text": "a", "executor": "sh"}), "not an executor that this server offers"),
        (json!({"text": "a", "executor": "claude"}), "not an executor that this server offers"),
        (json!({"text": "a", "executor": "codex:gpt-5"}), "not an executor that this server offers"),
        (
            json!({"text": "a", "executor": "http://127.0.0.1:1/v1#m"}),
            "not an executor that this server offers",
        ),
        (json!({"text": "a", "executor": "agent-cli"}), "not an executor that this server offers"),
        (json!({"text": "a", "budget": {"money": "lots"}}), "`budget.money`"),
        (json!({"text": "a", "budget": {"calls": 0}}), "`budget.calls`: it is 0"),
        (json!({"text": "a", "tier": 9}), "`tier`: it is 9"),
        (json!({"path": "../secret"}), "leads out of the served workspace"),
        (json!({"path": "/etc/passwd"}), "leads out of the served workspace"),
    ] {
        let answered = served.post("/api/v1/reviews", &body);
        assert!((400..500).contains(&answered.status), "{body}: {}", answered.status);
        let said = answered.json();
        assert!(said["message"].as_str().unwrap().contains(says), "{body}: {said}");
        assert!(said["code"].as_str().unwrap().starts_with("quorate:"), "{said}");
    }
    let bearer = served.bearer();
    let send =
        |body: &str| served.send("POST", "/api/v1/reviews", &[("Authorization", &bearer)], body).status;
    assert_eq!(send("{\"text\""), 400);
    assert_eq!(send("{\"text\": \"a\"} {}"), 400);
    for (path, status) in [
        ("/api/v1/runs?verdict=nope", 400),
        ("/api/v1/runs?mode=nope", 400),
        ("/api/v1/runs/nothing", 404),
        ("/api/v1/jobs/nothing", 404),
        ("/api/v1/nothing", 404),
        ("/api/v1/jobs/j?wait_ms=60000", 400),
    ] {
        let answered = served.get(path);
        assert_eq!(answered.status, status, "{path}");
        assert!(answered.json()["message"].is_string(), "{path}");
    }
    assert_eq!(served.post("/api/v1/runs", &json!({})).status, 405);
}

#[test]
fn a_stream_gives_each_record_once_and_goes_on_after_the_last_that_was_seen() {
    let place = reviewed();
    let (served, run) = (Served::start(&place, &[]), place.only_run());
    let records = served.get(&format!("/api/v1/runs/{run}/records")).json();
    let all = records["records"].as_array().unwrap().clone();
    let read = |last: Option<usize>| {
        let (bearer, last) = (served.bearer(), last.map(|last| last.to_string()));
        let mut headers = vec![("Authorization", &*bearer)];
        headers.extend(last.as_deref().map(|last| ("Last-Event-ID", last)));
        let stream = served.open("GET", &format!("/api/v1/runs/{run}/events"), &headers, "");
        events(BufReader::new(stream))
    };
    let data: Vec<Value> = all.clone();
    assert_eq!(read(None), data);
    assert_eq!(read(Some(4)), data[5..]);
    assert_eq!(read(Some(all.len() - 1)), [] as [Value; 0]);
    let bearer = served.bearer();
    let headers = [("Authorization", &*bearer), ("Last-Event-ID", "x")];
    assert_eq!(served.send("GET", &format!("/api/v1/runs/{run}/events"), &headers, "").status, 400);
}

/// The records of a stream, up to its `end`.
fn events(stream: BufReader<std::net::TcpStream>) -> Vec<Value> {
    let mut records = Vec::new();
    let mut event = String::new();
    for line in stream.lines() {
        let line = line.unwrap();
        if let Some(name) = line.strip_prefix("event: ") {
            event = name.to_owned();
            if event == "end" {
                return records;
            }
        }
        if let Some(data) = line.strip_prefix("data: ").filter(|_| event == "record") {
            records.push(serde_json::from_str(data).unwrap());
        }
    }
    panic!("the stream ended before its end: {} records", records.len());
}

#[test]
fn a_run_of_another_process_is_watched() {
    let place = reviewed();
    let served = Served::start(&place, &[]);
    place.write("second.md", "A second text. It is the best.\n");
    let mut review = place.start(&["review", "second.md", "--executor", "rubric"]);
    let second = || served.get("/api/v1/runs").json()["runs"].as_array().unwrap().len() == 2;
    wait_until(Duration::from_secs(60), "the run is listed", second);
    let bearer = served.bearer();
    let stream = served.open("GET", "/api/v1/runs/latest/events", &[("Authorization", &bearer)], "");
    let seen = events(BufReader::new(stream));
    review.wait().unwrap();
    let records = served.get("/api/v1/runs/latest/records").json();
    assert_eq!(&seen[..], &records["records"].as_array().unwrap()[..seen.len()]);
    assert_eq!(seen.last().unwrap()["kind"], "run.ended");
}

#[test]
fn an_interrupt_ends_it_although_streams_are_open() {
    let place = reviewed();
    let served = Served::start(&place, &[]);
    let open: Vec<_> = (0..5)
        .map(|_| served.open("GET", "/api/v1/runs/latest/events", &[("Authorization", &served.bearer())], ""))
        .collect();
    let began = Instant::now();
    assert_eq!(served.interrupt(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    drop(open);
}

#[test]
fn one_that_only_shows_things_writes_nothing() {
    let place = reviewed();
    let before = files(place.root());
    let served = Served::start(&place, &["--read-only"]);
    for (method, path) in routes(&served, &place.only_run()) {
        assert_eq!(method, "GET", "{path}");
        if !path.ends_with("/events") {
            served.get(&path);
        }
    }
    for path in ["/talks/talk", "/api/v1/talks/talk", "/api/v1/talks"] {
        let answered = served.get(path);
        assert_eq!(answered.status, 200, "{path}: {}", answered.body);
        assert!(!answered.body.contains("data-send"), "{path}: no field");
    }
    assert!([404, 405].contains(&served.post("/api/v1/talks/talk/messages", &json!({"text": "a"})).status));
    assert!([404, 405].contains(&served.post("/api/v1/reviews", &json!({"text": TEXT})).status));
    assert!(!served.get("/").body.contains("Review it"));
    drop(served);
    let changed: Vec<_> = files(place.root())
        .into_iter()
        // A reader of SQLite makes the files in which processes find each other; the log has no page.
        .filter(|(path, bytes)| {
            let of_readers = path.to_string_lossy().ends_with("-shm")
                || (path.to_string_lossy().ends_with("-wal") && bytes.is_empty());
            !of_readers && !before.contains(&(path.clone(), bytes.clone()))
        })
        .map(|(path, _)| path)
        .collect();
    assert_eq!(changed, [] as [std::path::PathBuf; 0]);
}

#[test]
fn pages_say_what_was_decided_and_keep_hostile_text_as_text() {
    let hostile = "<script>alert(1)</script> <img src=x onerror=alert(1)> \u{202e}desrever &amp; [x](javascript:alert(1))\n";
    let place = TestDir::with("draft.md", format!("{TEXT}{hostile}"));
    place.review(&["draft.md", "--executor", "rubric"]);
    let served = Served::start(&place, &[]);
    let page = served.get("/runs/latest").body;
    let unmarked = page.replace("<mark>", "").replace("<mark class=\"block\">", "").replace("</mark>", "");
    assert!(unmarked.contains("&#60;script&#62;alert(1)&#60;/script&#62;"), "{page}");
    assert!(!page.contains("<script>alert") && !page.contains("<img") && !page.contains("href=\"javascript"));
    assert!(page.contains("[U+202E]") && !page.contains('\u{202e}'));
    let verdict = served.get("/api/v1/runs/latest").json()["verdict"].as_str().unwrap().to_owned();
    assert!(page.contains(&format!("</span> {verdict}</span> draft.md")), "{page}");
    assert!(page.contains("<mark"), "{page}");
    for path in ["/", "/audit", "/ledger", "/runs/latest"] {
        let page = served.get(path);
        assert_eq!(page.status, 200, "{path}");
        assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
        for forbidden in [" style=", " onclick=", "<script>", "javascript:"] {
            let found = page.body.replace(hostile, "").contains(forbidden);
            assert!(!found || (forbidden == "javascript:" && path == "/runs/latest"), "{path}: {forbidden}");
        }
    }
    let missing = served.get("/runs/nothing");
    assert_eq!(missing.status, 404);
    assert!(missing.body.contains("quorate explain quorate:run_unknown"), "{}", missing.body);
}

#[test]
fn a_page_offers_the_configured_executors_and_no_other_can_be_asked_for() {
    let place = TestDir::new();
    assembly::write(&place, "voting", &[("ada", "")], "");
    place.write(
        "quorate.toml",
        "[executors.mine]\ncommand = \"touch\"\nargs = [\"ran\"]\n[executors.replayed]\nkind = \"cassette\"\ndir = \"tapes\"\n",
    );
    place.write("assemblies/board/ASSEMBLY.md", "");
    place.write("assemblies/notes.md", "");
    let mut command = place.command(&["serve"]);
    command.env_remove("QUORATE_TRUST");
    let served = Served::start_by(command);
    let page = served.get("/").body;
    let form = page.split("name=\"executor\">").nth(1).unwrap().split("</select>").next().unwrap();
    let offered: Vec<&str> =
        form.split("<option").skip(1).map(|option| option.split(['>', '<']).nth(1).unwrap()).collect();
    assert_eq!(offered, ["as configured", "mine", "replayed", "rubric"]);
    assert!(page.contains("value=\"assemblies/board\"") && !page.contains("assemblies/notes"), "{page}");
    let refused = |executor: &str| {
        let answered = served.post("/api/v1/reviews", &json!({"text": TEXT, "executor": executor}));
        assert_eq!(answered.status, 422, "{executor}: {}", answered.body);
        answered.json()["code"].as_str().unwrap().to_owned()
    };
    // A preset would start a program or send the text elsewhere, without trust in any file.
    for executor in
        ["claude", "codex", "anthropic", "ollama:llama3.2", "http://127.0.0.1:9/v1#m", "script", "agent-cli"]
    {
        assert_eq!(refused(executor), "quorate:executor_invalid", "{executor}");
    }
    let trust = served.post("/api/v1/reviews", &json!({"text": TEXT, "executor": "mine"}));
    assert_eq!(
        (trust.status, &trust.json()["code"]),
        (422, &json!("quorate:workspace_untrusted")),
        "{}",
        trust.body
    );
    assert!(!place.path("ran").exists());
    let board = json!({"assembly": "ASSEMBLY.md", "proposal": {"text": "Go."}, "executor": "claude"});
    assert_eq!(served.post("/api/v1/convenings", &board).json()["code"], "quorate:executor_invalid");
    assert_eq!(served.post("/api/v1/reviews", &json!({"text": TEXT, "executor": "rubric"})).status, 202);
}

#[test]
fn no_link_of_the_menu_is_missing_in_a_new_workspace() {
    let place = TestDir::new();
    let served = Served::start(&place, &[]);
    for path in ["/", "/talks", "/playbooks", "/audit", "/ledger", "/verify", "/compare"] {
        assert_eq!(served.get(path).status, 200, "{path}");
    }
    let page = served.get("/").body;
    assert!(page.contains("id=\"review\"") && !page.contains("<table"), "{page}");
    assert!(!page.contains("popover"), "the form is open: {page}");
}

#[test]
fn assemblies_of_every_mode_have_pages() {
    let recorded = |example, command: &str, shows, says| {
        (example, format!("convene {command} --executor recorded"), shows, says)
    };
    for (example, command, shows, says) in [
        recorded(
            "release-board",
            "assemblies/release-board --proposal proposals/calendar-feed.md --class release",
            "board",
            &["which decided, needs 0.66", "title=\"", "<td data-head=\"Votes on\">"][..],
        ),
        recorded(
            "design-critique",
            "assemblies/design-critique --topic topics/lending-page.md",
            "talk",
            &["Who reached whom", "Objections"],
        ),
        recorded(
            "incident-review",
            "assemblies/incident-review --request incidents/friday-night.md",
            "tree",
            &["data-heat=\"7\"", "dropped by support", "by the rule support-gravest"],
        ),
        recorded(
            "council-of-mentors",
            "operators/support-agent --trigger sample --conversation conversations/flattery.jsonl",
            "guidance",
            &["All answers"],
        ),
    ] {
        let place = TestDir::new();
        let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(example);
        for (path, bytes) in files(&source) {
            place.write(path.strip_prefix(&source).unwrap().to_str().unwrap(), bytes);
        }
        place.run(&command.split(' ').collect::<Vec<_>>());
        let served = Served::start(&place, &[]);
        let page = served.get("/runs/latest");
        assert_eq!(page.status, 200, "{example}: {}", page.body);
        for part in [&*format!("<h2 id=\"{shows}\">")].iter().chain(says) {
            assert!(page.body.contains(part), "{example}: {part}: {}", page.body);
        }
        let report = served.get("/api/v1/runs/latest").json();
        let shown = place.run(&["show", "latest", "--format", "json"]).json();
        assert_eq!(report, shown, "{example}");
        let listed = place.runs()[0]["verdict"].as_str().unwrap().to_uppercase();
        assert!(page.body.contains(&format!("</span> {listed}</span>")), "{example}: {}", page.body);
    }
}
