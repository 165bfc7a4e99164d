//! The pages in a real browser: hostile texts stay text, nothing is loaded from elsewhere, they can be read without scripts,
//! by the keyboard, at 320 pixels, and axe finds nothing in either theme.
//!
//! Needs what `scripts/services install browser` installs, in the folder that `QUORATE_TEST_BROWSER` names, and Node;
//! without them it prints SKIPPED. `QUORATE_TEST_SHOTS` names a folder for screenshots.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::support::council::all_ship;
use super::support::playbooks::workspace::write_playbook;
use super::support::reports::EXAMPLES;
use super::support::serve::Served;
use super::support::{TestDir, files, wait_until};

pub(super) const BROWSER: &str = "QUORATE_TEST_BROWSER";

/// The browser's observations of each page; `None` without a browser.
fn looked(served: &Served, paths: &[&str], themes: &[&str]) -> Option<Vec<Value>> {
    let seen = browse(served, json!({"paths": paths, "themes": themes}))?;
    assert_eq!(seen.len(), paths.len());
    Some(seen)
}

/// The folder of the browser; a test without one reports that it is skipped.
fn browser_folder() -> Option<String> {
    let folder = std::env::var(BROWSER).ok();
    if folder.is_none() {
        eprintln!("SKIPPED: Chromium (scripts/services install browser prints {BROWSER})");
    }
    folder
}

/// The browser's observations of the pages in `told`.
pub(super) fn browse(served: &Served, mut told: Value) -> Option<Vec<Value>> {
    let folder = browser_folder()?;
    let url = format!("http://{}", served.authority);
    (told["link"], told["url"], told["shots"]) =
        (json!(format!("{url}{}", served.link)), json!(url), json!(shots()));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/support/browser.mjs");
    let mut command = Command::new("node");
    command.arg(script).arg(folder).arg(told.to_string()).stderr(Stdio::inherit());
    let output = command.output().expect("Node runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// The folder for pictures of the pages. To draw them takes as long as all the rest, so it is done where it is named.
pub(super) fn shots() -> Option<String> {
    let folder = std::env::var("QUORATE_TEST_SHOTS").ok()?;
    std::fs::create_dir_all(&folder).unwrap();
    Some(folder)
}

/// What holds of every page.
pub(super) fn check(seen: &Value) {
    let path = &seen["path"];
    assert_eq!(seen["status"], 200, "{path}");
    assert_eq!(seen["events"], json!([]), "{path}: dialogs, errors, breaches of the policy");
    assert_eq!(seen["elsewhere"], json!([]), "{path}: requests to others");
    assert_eq!(seen["axe"], json!([]), "{path}");
    assert_eq!(seen["foreign"], 0, "{path}: markup of a text");
    assert_eq!(seen["overflow"], 0, "{path}: at 320 pixels");
    assert_eq!(seen["keys"], true, "{path}: `?` shows the keys");
    if let Some(step) = seen["step"].as_array() {
        assert_eq!((&step[0], &step[2]), (&step[1], &json!(true)), "{path}: `n` goes to a finding");
    }
    let stops: Vec<&str> = seen["stops"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(stops[..3], ["Skip to the content", "Quorate", "Runs"], "{path}");
    assert!(stops.iter().all(|stop| !stop.is_empty()), "{path}: {stops:?}");
}

/// Texts that would be markup, a script, a link or a trick of display if a page took them for more than text.
fn hostile() -> Vec<String> {
    let tags = [
        "script",
        "img src=x",
        "svg",
        "math",
        "iframe src=//evil.example",
        "object data=x",
        "embed src=x",
        "video src=x",
        "audio src=x",
        "body",
        "details open",
        "input autofocus",
        "marquee",
        "style",
        "link rel=stylesheet href=//evil.example/a.css",
        "base href=//evil.example/",
        "meta http-equiv=refresh content=0;url=//evil.example",
        "form action=//evil.example",
        "template",
        "a href=javascript:alert(1)",
    ];
    let events =
        ["onload", "onerror", "onclick", "onfocus", "ontoggle", "onmouseover", "onbegin", "onpageshow"];
    let mut all: Vec<String> = tags
        .iter()
        .flat_map(|tag| events.iter().map(move |event| format!("<{tag} {event}=alert(1)>alert(2)</{tag}>")))
        .collect();
    let breaks = [
        "\"",
        "'",
        "-->",
        "]]>",
        "</textarea>",
        "</title>",
        "</style>",
        "</script>",
        "&quot;",
        "&#34;",
        "\\\"",
        "`",
    ];
    all.extend(breaks.iter().flat_map(|end| {
        ["<script>alert(3)</script>", "<img src=x onerror=alert(4)>", " autofocus onfocus=alert(5) x="]
            .map(|then| format!("{end}{then}"))
    }));
    let markdown = [
        "[click](javascript:alert(6))",
        "![x](http://evil.example/pixel.png)",
        "[x]: javascript:alert(7)",
        "<http://evil.example>",
        "```mermaid\ngraph LR; A-->B; click A \"javascript:alert(8)\"\n```",
        "<details><summary>x</summary></details>",
        "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCg5KTwvc2NyaXB0Pg==)",
        "&lt;script&gt;alert(10)&lt;/script&gt;",
        "{{constructor.constructor('alert(11)')()}}",
        "${alert(12)}",
        "<%= alert(13) %>",
        "#{alert(14)}",
    ];
    all.extend(markdown.map(str::to_owned));
    let unseen = [
        "\u{202e}",
        "\u{2066}",
        "\u{200b}",
        "\u{feff}",
        "\u{1b}[2J",
        "\u{7}",
        "\u{85}",
        "\u{2028}",
        "\u{e0041}",
        "\u{ad}",
    ];
    all.extend(
        unseen
            .iter()
            .flat_map(|c| [format!("a{c}b"), format!("<b{c}>x"), format!("{c}javascript:alert(15)")]),
    );
    all.extend((0..40).map(|n| format!("{}<svg/onload=alert({n})>", "w".repeat(1 << (n % 12)))));
    all.extend((0..30).map(|n| format!("<img src=\"data:image/svg+xml,<svg onload=alert({n})>\">")));
    all
}

/// A workspace in which the texts are the draft, its name, what members found, their reasons, and their names.
pub(super) fn hostile_place() -> (TestDir, usize) {
    // An answer has at most 200 findings.
    const MOST: usize = 200;
    let texts = hostile();
    let findings: Vec<Value> =
        texts.iter().map(|text| json!({"quote": text, "issue": text, "fix": text})).collect();
    let place = TestDir::scripted(&json!({
        "r1": {"would_block": true, "score": 2, "findings": findings[MOST..], "revision_brief": texts[0]},
        "r2": {"would_block": true, "irreducible": false, "score": 2, "findings": findings[..MOST], "concessions": [texts[1]]},
        "adjudicate": {"verdict": "REVISE", "reasoning": texts.join(" "), "revision_brief": texts.join("\n"), "dissent_summary": texts[2]},
    }));
    let name = "<img src=x onerror=alert(1)>.md";
    place.write(name, texts.join("\n\n"));
    place.run(&["review", name]);
    place.run(&[
        "override",
        "latest",
        "--verdict",
        "hold",
        "--reason",
        &texts[3],
        "--by",
        "<script>alert(9)</script>",
    ]);
    append_reviews(&place, &texts);
    (place, texts.len())
}

/// Logs reviews in which the texts are the names of deliberators, producers and types, so often that all charts are drawn.
fn append_reviews(place: &TestDir, texts: &[String]) {
    let log = ".quorate/council_log.jsonl";
    let mut lines = place.read(log);
    for (number, text) in texts.iter().cycle().take(texts.len() * 3).enumerate() {
        let entry = |name: &str, block: bool| json!({"deliberator": name, "would_block": block, "status": "answered", "score": 3});
        let round = [
            entry(&texts[number % 6], true),
            entry(&texts[6 + number % 2], number % 3 == 0),
            entry("calm", false),
        ];
        let verdict = ["SHIP", "REVISE", "HOLD"][number % 3];
        let line = json!({
            "v": 2, "event": "verdict", "run": format!("x{number}"), "span_id": format!("x{number}"), "artifact_type": text,
            "ts": format!("2026-0{}-{:02}T10:00:00Z", 1 + number / 28 % 9, 1 + number % 28),
            "verdict": verdict, "round1": round, "round2": round, "producer": texts[number % 12],
        });
        lines.push_str(&format!("{line}\n"));
    }
    place.write(log, lines);
}

#[test]
fn hostile_texts_stay_text_on_every_page() {
    let (place, count) = hostile_place();
    assert!(count >= 300, "{count}");
    let texts = hostile();
    let id = hostile_talk(&place, &texts);
    // A playbook with invisible characters is refused.
    let is_visible = |text: &&String| text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    let visible: Vec<&str> = texts.iter().filter(is_visible).map(String::as_str).collect();
    write_playbook(&place, "hostile", "status: shadow", &visible.join("\n\n"));
    // Another run of it, to compare.
    place.run(&["review", "<img src=x onerror=alert(1)>.md"]);
    let served = Served::start(&place, &[]);
    let talk = format!("/talks/{id}");
    let paths = [
        "/runs/latest",
        "/",
        "/runs/latest/live",
        "/compare?b=latest",
        "/talks",
        &talk,
        "/playbooks",
        "/playbooks/hostile",
        "/audit",
        "/ledger",
    ];
    // axe takes minutes for as many texts; the other tests judge both themes.
    let Some(seen) = looked(&served, &paths, &[]) else { return };
    seen.iter().for_each(check);
    for at in [3, 5, 7] {
        let text = seen[at]["text"].as_str().unwrap();
        assert!(text.contains("<script onload=alert(1)>alert(2)</script>"), "{}: {text}", paths[at]);
        let bare = seen[at]["bare"].as_str().unwrap();
        assert!(
            bare.contains("<script onload=alert(1)>alert(2)</script>"),
            "{} without scripts: {bare}",
            paths[at]
        );
    }
    let text = seen[0]["text"].as_str().unwrap();
    for visible in
        ["<script onload=alert(1)>alert(2)</script>", "[U+202E]", "<img src=x onerror=alert(1)>.md"]
    {
        assert!(text.contains(visible), "{visible}: {text}");
    }
    let audit = seen[8]["text"].as_str().unwrap();
    for drawn in ["Agreement", "too few", "Producers", "by week", "Verdicts by type", "Drift by week"] {
        assert!(audit.contains(drawn), "{drawn}: {audit}");
    }
    let bare = seen[8]["bare"].as_str().unwrap();
    assert!(bare.contains("<script onload=alert(1)>alert(2)</script>"), "{bare}");
}

/// A conversation in which every text was said, in a workspace with an operator for playbooks; its id.
fn hostile_talk(place: &TestDir, texts: &[String]) -> String {
    place.write(
        "operators/alice/OPERATOR.md",
        "---\nid: alice\nname: Alice\nrole: role/librarian\n---\nYou are Alice, who helps in the library.\n",
    );
    place.write(
        "swarm.yaml",
        "schema: agentruntimes/v1\nkind: MultiAgentRuntime\nid: talk\n\
         participants: [{id: ada, executor: rubric, displayName: '<img src=x onerror=alert(1)>'}]\n\
         substrate: {kind: file, path: talk.md}\ndispatcher: {kind: mention}\n",
    );
    place
        .run(&["say", "swarm.yaml", &texts.join("\n\n"), "--as", "<svg/onload=alert(1)>", "--yes"])
        .assert_code(0);
    "talk".to_owned()
}

#[test]
fn something_is_said_by_the_keyboard_and_answered_in_every_tab() {
    let place = TestDir::with("answers.json", r#"{"ada": "<img src=x onerror=alert(1)> I am here."}"#);
    place.write(
        "swarm.yaml",
        "schema: agentruntimes/v1\nkind: MultiAgentRuntime\nid: talk\n\
         participants: [{id: ada, executor: script, displayName: Ada, config: {path: answers.json}}]\n\
         substrate: {kind: file, path: talk.md}\ndispatcher: {kind: mention}\n",
    );
    let served = Served::start(&place, &[]);
    let say = json!({"path": "/talks/talk", "text": "@Ada there?", "until": "I am here."});
    let Some(seen) = browse(&served, json!({"paths": [], "say": say})) else { return };
    assert_eq!(seen[0]["events"], json!([]), "{seen:?}");
    assert_eq!(seen[0]["turns"], json!(["@Ada there?", "<img src=x onerror=alert(1)> I am here."]));
    assert_eq!((&seen[0]["field"], &seen[0]["foreign"]), (&json!(""), &json!(0)));
}

#[test]
fn every_kind_of_run_can_be_read_by_everyone() {
    for (example, command, word) in EXAMPLES {
        let place = example_place(example);
        place.run(&command.split(' ').collect::<Vec<_>>());
        let run = place.runs()[0]["run"].as_str().unwrap().to_owned();
        let served = Served::start(&place, &[]);
        let page = format!("/runs/{run}");
        let others = ["/", "/audit", "/ledger", "/talks", "/playbooks", "/compare", "/verify"];
        let paths: Vec<&str> = match example == EXAMPLES[0].0 {
            true => [&*page, "/runs/latest/live", "/runs/latest/proof"].into_iter().chain(others).collect(),
            false => vec![&page],
        };
        // Colours are those of one sheet: the dark ones are judged on the pages of the first.
        let themes = if example == EXAMPLES[0].0 { &["light", "dark"][..] } else { &["light"] };
        let Some(seen) = looked(&served, &paths, themes) else { return };
        seen.iter().for_each(check);
        let bare = seen[0]["bare"].as_str().unwrap();
        // The page of a council folds the positions.
        let word = if word == "Positions" { "All answers" } else { word };
        assert!(bare.contains(word), "{example} without scripts: {bare}");
    }
}

#[test]
fn pages_of_one_thing_can_be_read_by_everyone() {
    let place = TestDir::scripted(&all_ship());
    place.run(&["review", "draft.md"]);
    place.write("draft.md", "The meeting moved to Friday at ten.\n");
    place.run(&["review", "draft.md"]);
    let talk = format!("/talks/{}", hostile_talk(&place, &["Is the room free?".to_owned()]));
    write_playbook(&place, "cite", "status: shadow", "Name the source of each figure.");
    let served = Served::start(&place, &[]);
    let paths = ["/compare?b=latest", &*talk, "/playbooks/cite", "/audit", "/talks", "/playbooks"];
    let Some(seen) = looked(&served, &paths, &["light", "dark"]) else { return };
    seen.iter().for_each(check);
    for (page, shown) in
        seen.iter().zip(["the text changed", "Is the room free?", "Name the source", "Verdicts by type"])
    {
        assert!(page["bare"].as_str().unwrap().contains(shown), "{shown}: {page}");
    }
}

#[test]
fn new_workspaces_and_open_runs_can_be_read_by_everyone() {
    let place = TestDir::scripted_slowly(&all_ship(), "delay = \"600s\"\ntimeout = \"10m\"");
    let themes = ["light", "dark"];
    let Some(seen) = looked(&Served::start(&place, &[]), &["/", "/ledger"], &themes) else { return };
    seen.iter().for_each(check);
    let served = Served::start(&place, &[]);
    let body = json!({"name": "draft.md", "text": "A draft.\n", "budget": {"calls": 20}});
    served.post("/api/v1/reviews", &body);
    let Some(seen) = looked(&served, &["/runs/latest", "/runs/latest/live", "/"], &themes) else { return };
    seen.iter().for_each(check);
    for page in &seen[..2] {
        let text = page["text"].as_str().unwrap();
        for shown in
            ["0 of 9 answers", "asked 0:", " of 10:00", "waits for skeptic, voice_identity and 2 more"]
        {
            assert!(text.contains(shown), "{shown}: {text}");
        }
        assert!(page["bare"].as_str().unwrap().contains("at most 10:00"), "without scripts: {page}");
    }
}

pub(super) fn example_place(example: &str) -> TestDir {
    let place = TestDir::new();
    let source: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(example);
    for (path, bytes) in files(&source) {
        if !path.components().any(|part| part.as_os_str() == ".quorate") {
            place.write(path.strip_prefix(&source).unwrap().to_str().unwrap(), bytes);
        }
    }
    place
}

#[test]
fn the_page_of_an_open_run_follows_it_to_its_end() {
    let Some(_) = browser_folder() else { return };
    let place = TestDir::scripted_slowly(&all_ship(), "delay = \"3s\"");
    let served = Served::start(&place, &[]);
    let ready = place.path("ready");
    // The run begins once Chromium is there, however long it takes to start.
    let seen = std::thread::scope(|scope| {
        let seen = scope.spawn(|| {
            browse(&served, json!({"paths": [], "follow": {"path": "/runs/latest", "ready": ready}}))
        });
        wait_until(Duration::from_secs(60), "the browser is ready", || ready.exists());
        place.start(&["review", "draft.md"]).wait().unwrap();
        seen.join().unwrap()
    });
    let Some(seen) = seen else { return };
    assert_eq!(seen[0]["events"], json!([]));
    let states: Vec<&str> = seen[0]["states"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(states.len() > 1 && states.iter().any(|state| state.ends_with("answers")), "{states:?}");
    assert!(seen[0]["heading"].as_str().unwrap().contains("SHIP"), "{seen:?}");
}
