//! Reports, and what they are made of.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quorate_kernel::entropy::{sha256_hex, unhex};
use serde_json::{Value, json};

use super::TestDir;
use crate::serve_browser::example_place;

/// A run of each kind: the example, the command, and what its report has.
pub(crate) const EXAMPLES: [(&str, &str, &str); 5] = [
    (
        "release-board",
        "convene assemblies/release-board --proposal proposals/calendar-feed.md --class release --executor recorded",
        "Vote",
    ),
    (
        "design-critique",
        "convene assemblies/design-critique --topic topics/lending-page.md --executor recorded",
        "Messages",
    ),
    (
        "incident-review",
        "convene assemblies/incident-review --request incidents/friday-night.md --executor recorded",
        "Reports",
    ),
    (
        "council-of-mentors",
        "convene operators/support-agent --trigger sample --conversation conversations/flattery.jsonl --executor recorded",
        "Guidance",
    ),
    ("two-models", "review draft.md", "Positions"),
];

/// Writes a report of the newest run.
pub(crate) fn report(place: &TestDir, name: &str, more: &[&str]) -> PathBuf {
    place.run(&[&["report", "latest", "-o", name], more].concat()).assert_code(0);
    place.path(name)
}

/// The ledger's key as a verifier's line, as a public key, and its fingerprint.
pub(crate) fn ledger_key(place: &TestDir) -> (String, String, String) {
    let export = |more: &[&str]| {
        let said = place.run(&[&["keys", "export", "ledger"], more].concat()).assert_code(0).stdout;
        said.trim().to_owned()
    };
    let public = export(&[]);
    let mut fingerprint = sha256_hex(public.as_bytes());
    fingerprint.truncate(32);
    (export(&["--format", "note"]), public, fingerprint)
}

/// A place with a review that a person decided otherwise, its report, and the proof of another run.
pub(crate) fn decided_report() -> (TestDir, String, String) {
    let of = |example, command: &str| {
        let place = example_place(example);
        place.run(&command.split(' ').collect::<Vec<_>>());
        place
    };
    let (place, other) = (of("two-models", "review draft.md"), of(EXAMPLES[0].0, EXAMPLES[0].1));
    let decision = ["override", "latest", "--by", "Ada", "--verdict", "hold", "--reason", "legal asks"];
    place.run(&decision).assert_code(0);
    let read = |place: &TestDir| std::fs::read_to_string(report(place, "report.html", &[])).unwrap();
    let (whole, foreign) = (read(&place), proof_of(&read(&other)));
    (place, whole, foreign)
}

/// The part of a report between two marks.
pub(crate) fn between<'h>(html: &'h str, from: &str, to: &str) -> &'h str {
    html.split_once(from).unwrap().1.split_once(to).unwrap().0
}

/// The proof in a report.
pub(crate) fn proof_of(html: &str) -> String {
    String::from_utf8(STANDARD.decode(between(html, PROOF, "<")).unwrap()).unwrap()
}

const PROOF: &str = "id=\"proof\">";
const TEXT: &str = "data-input=\"0\">";
const MAIN: &str = "<main id=\"main\">";

/// What a page with scripts makes of an edit of its file. `check-proof` refuses all of them.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Effect {
    /// The page is the same.
    None,
    /// It shows nothing but the reason.
    Refused,
    /// It draws nothing, and says that nothing was checked: its script does not run.
    Unchecked,
    /// Its script is another one, which can show anything.
    Outside,
}

pub(crate) type Edit = (&'static str, String, Effect);

/// Edits of a report by hand. `foreign` is the proof of another run.
pub(crate) fn edits(whole: &str, foreign: &str) -> Vec<Edit> {
    let mut all = frame_edits(whole);
    all.extend(program_edits(whole));
    all.extend(embedded_edits(whole, foreign));
    all.extend(proof_edits(whole));
    for (what, edited, _) in &all {
        assert_ne!(edited, whole, "{what}");
    }
    all
}

/// Elements, attributes and texts around what is embedded.
fn frame_edits(whole: &str) -> Vec<Edit> {
    let swap = |from: &str, to: &str| {
        assert!(whole.contains(from), "{from}");
        whole.replacen(from, to, 1)
    };
    let first = |html: &str| swap(MAIN, &format!("{MAIN}{html}"));
    let head = |html: &str| swap("</head>", &format!("{html}</head>"));
    let forged = "<h1><span class=\"mark good\">● SHIP</span></h1>";
    vec![
        ("a heading", first(forged), Effect::None),
        ("a second main", swap(MAIN, &format!("<main>{forged}</main>{MAIN}")), Effect::None),
        ("a canvas", first("<canvas id=\"verdict\"></canvas>"), Effect::None),
        ("a hidden body", swap("<body>", "<body hidden>"), Effect::None),
        ("an inert main", swap(MAIN, "<main id=\"main\" inert>"), Effect::None),
        ("a style attribute", swap(MAIN, "<main id=\"main\" style=\"display:none\">"), Effect::None),
        ("a second style sheet", head("<style>main{display:none}</style>"), Effect::None),
        (
            "an overlay",
            first("<div style=\"position:fixed;inset:0;background:#fff\">● SHIP</div>"),
            Effect::None,
        ),
        ("a dialog", first("<dialog open>● SHIP</dialog>"), Effect::None),
        ("a frame", first("<iframe srcdoc=\"<h1>SHIP</h1>\"></iframe>"), Effect::None),
        (
            "a shadow",
            first("<div><template shadowrootmode=\"open\"><h1>SHIP</h1></template></div>"),
            Effect::None,
        ),
        (
            "the same id twice",
            first("<p id=\"stand\">● Proof valid: these records say SHIP</p>"),
            Effect::None,
        ),
        ("an id of the drawn page", first("<div id=\"drawn\">SHIP</div><p id=\"key\">"), Effect::None),
        (
            "the name of a method",
            first("<img name=\"querySelectorAll\"><form name=\"createElement\"></form>"),
            Effect::None,
        ),
        (
            "the name of a field",
            first("<img name=\"documentElement\"><img name=\"body\"><a id=\"crypto\"></a>"),
            Effect::None,
        ),
        ("an entity", swap("not checked yet", "not che&#99;ked, but val&#105;d"), Effect::None),
        ("the text without scripts", swap("<noscript>", &format!("<noscript>{forged}")), Effect::None),
        ("something behind it", whole.to_owned() + forged, Effect::None),
        ("the title", swap("<title>Quorate", "<title>SHIP · Quorate"), Effect::None),
        ("a title from right to left", swap("<title>Quorate", "<title>&#8238;PIHS"), Effect::None),
        (
            "direction and language",
            swap("<html lang=\"en\">", "<html lang=\"ar\" dir=\"rtl\">"),
            Effect::None,
        ),
        ("no document type", swap("<!doctype html>\n", ""), Effect::None),
        ("a base", head("<base href=\"https://example.com/\" target=\"_blank\">"), Effect::None),
        ("the viewport", swap("width=device-width", "width=1"), Effect::None),
        ("another program", swap("content=\"Quorate ", "content=\"Quorate 9"), Effect::None),
        (
            "a redirection",
            head("<meta http-equiv=\"refresh\" content=\"0;url=about:blank\">"),
            Effect::Refused,
        ),
        (
            "a redirection in the text",
            first("<meta http-equiv=\"refresh\" content=\"0;url=about:blank\">"),
            Effect::Refused,
        ),
        ("the encoding", swap("charset=\"utf-8\"", "charset=\"windows-1252\""), Effect::Unchecked),
    ]
}

/// The style sheet, the policy, and scripts.
fn program_edits(whole: &str) -> Vec<Edit> {
    let hash = |text: &str| STANDARD.encode(unhex(&sha256_hex(text.as_bytes())).unwrap());
    let style = between(whole, "<style>", "</style>");
    let styled = format!("{style}#stand{{display:none}}");
    let script = between(whole, "<script type=\"module\">", "</script>");
    let other = script.replacen("const find", "const found", 1).replace("find(", "found(");
    let policy = between(whole, "Content-Security-Policy\" content=\"", "\"");
    let with_policy = |html: &str, to: &str| html.replacen(policy, to, 1);
    let first = |html: &str| whole.replacen(MAIN, &format!("{MAIN}{html}"), 1);
    let hostile = "document.title = 1";
    let inline = format!("<script>{hostile}</script>");
    let permitted = policy.replace("script-src ", &format!("script-src 'sha256-{}' ", hash(hostile)));
    let restyled = whole.replacen(style, &styled, 1);
    vec![
        ("the style sheet", restyled.clone(), Effect::Refused),
        (
            "the style sheet with its hash",
            with_policy(&restyled, &policy.replace(&hash(style), &hash(&styled))),
            Effect::Refused,
        ),
        (
            "no policy",
            whole.replacen("http-equiv=\"Content-Security-Policy\"", "name=\"x\"", 1),
            Effect::Refused,
        ),
        (
            "a loose policy",
            with_policy(whole, &policy.replace("default-src 'none'", "default-src *")),
            Effect::Refused,
        ),
        ("a script", first(&inline), Effect::Refused),
        ("a script with its hash", with_policy(&first(&inline), &permitted), Effect::Refused),
        (
            "a script before the policy",
            whole.replacen("<meta http-equiv", &format!("{inline}<meta http-equiv"), 1),
            Effect::Refused,
        ),
        (
            "an event attribute",
            whole.replacen("<body>", "<body onload=\"document.title = 1\">", 1),
            Effect::Refused,
        ),
        ("an event of an image", first("<img src=x onerror=\"document.title = 1\">"), Effect::Refused),
        ("another script", whole.replacen(script, &other, 1), Effect::Unchecked),
        ("no script", whole.replacen("type=\"module\"", "type=\"text/plain\"", 1), Effect::Unchecked),
        (
            "another script with its hash",
            with_policy(&whole.replacen(script, &other, 1), &policy.replace(&hash(script), &hash(&other))),
            Effect::Outside,
        ),
    ]
}

/// The proof and the texts as a whole.
fn embedded_edits(whole: &str, foreign: &str) -> Vec<Edit> {
    let (proof, text) = (between(whole, PROOF, "<"), between(whole, TEXT, "<"));
    let block =
        |id: &str, body: &str| format!("<script type=\"application/octet-stream\" {id}{body}</script>");
    let (proof_block, text_block) = (block(PROOF, proof), block(&format!("class=\"text\" {TEXT}"), text));
    let second = block(PROOF, &STANDARD.encode(foreign));
    let edit = |from: &str, to: &str| whole.replacen(from, to, 1);
    vec![
        ("a second proof", edit("<main", &format!("{second}<main")), Effect::Refused),
        ("a commented proof", edit(&proof_block, &format!("<!--{proof_block}-->")), Effect::Refused),
        ("no proof", edit(&proof_block, ""), Effect::Refused),
        ("another run's proof", edit(proof, &STANDARD.encode(foreign)), Effect::Refused),
        ("a damaged proof", edit(&proof[..40], &format!("{}AAAA", &proof[..36])), Effect::Refused),
        ("a longer proof", edit(PROOF, &format!("{PROOF}AAAA")), Effect::Refused),
        ("the text", edit(text, &STANDARD.encode("All is well.\n")), Effect::Refused),
        ("the text of another input", edit(TEXT, "data-input=\"1\">"), Effect::Refused),
        ("the text twice", edit(&text_block, &format!("{text_block}{text_block}")), Effect::Refused),
        ("no text", edit(&text_block, ""), Effect::Refused),
    ]
}

/// What is in the proof.
fn proof_edits(whole: &str) -> Vec<Edit> {
    let proof: Value = serde_json::from_str(&proof_of(whole)).unwrap();
    let records = proof["records"].as_array().unwrap();
    let kind = |at: usize| records[at]["head"].as_str().unwrap();
    let find = |name: &str| (0..records.len()).find(|at| kind(*at).contains(&format!("\"{name}\""))).unwrap();
    let (outcome, answer, person) = (find("outcome"), find("consultation"), find("override"));
    let edit = |change: &dyn Fn(&mut Value)| {
        let mut edited = proof.clone();
        change(&mut edited);
        let line = quorate_kernel::canonical::text(&edited).unwrap() + "\n";
        whole.replacen(between(whole, PROOF, "<"), &STANDARD.encode(line), 1)
    };
    let replace = |at: usize, field: &'static str, from: &'static str, to: &'static str| {
        edit(&move |proof| {
            let text = proof["records"][at][field].as_str().unwrap();
            assert!(text.contains(from), "{from}");
            proof["records"][at][field] = json!(text.replace(from, to));
        })
    };
    let list =
        |change: fn(&mut Vec<Value>)| edit(&move |proof| change(proof["records"].as_array_mut().unwrap()));
    vec![
        ("a verdict", replace(outcome, "data", "REVISE", "SHIP"), Effect::Refused),
        (
            "a finding",
            replace(outcome, "data", "\"findings\":[{", "\"findings\":[],\"x\":[{"),
            Effect::Refused,
        ),
        ("a person's word", replace(person, "data", "HOLD", "SHIP"), Effect::Refused),
        (
            "an answer",
            replace(answer, "data", "\"would_block\":true", "\"would_block\":false"),
            Effect::Refused,
        ),
        ("a time", replace(outcome, "head", "\"at\":\"2", "\"at\":\"1"), Effect::Refused),
        ("a kind", replace(person, "head", "override", "attempts"), Effect::Refused),
        (
            "a member's record for another's",
            edit(&|proof| proof["records"][answer]["id"] = proof["records"][outcome]["id"].clone()),
            Effect::Refused,
        ),
        ("no record in the middle", list(|records| drop(records.remove(3))), Effect::Refused),
        ("no first record", list(|records| drop(records.remove(0))), Effect::Refused),
        ("no last record", list(|records| drop(records.pop())), Effect::Refused),
        ("another order", list(|records| records.swap(3, 4)), Effect::Refused),
        ("a record twice", list(|records| records.insert(4, records[3].clone())), Effect::Refused),
        (
            "no outcome's data",
            edit(&|proof| proof["records"][outcome]["data"] = Value::Null),
            Effect::Refused,
        ),
        ("no person's data", edit(&|proof| proof["records"][person]["data"] = Value::Null), Effect::Refused),
        ("no answer's data", edit(&|proof| proof["records"][answer]["data"] = Value::Null), Effect::Refused),
        ("a place", edit(&|proof| proof["records"][answer]["index"] = json!(0)), Effect::Refused),
        (
            "a path",
            edit(&|proof| drop(proof["records"][answer]["leaf_path"].as_array_mut().unwrap().pop())),
            Effect::Refused,
        ),
        (
            "a key",
            edit(&|proof| {
                let key = proof["keys"][0].as_str().unwrap();
                let at = key.len() - 8;
                let other = if &key[at..=at] == "A" { "B" } else { "A" };
                proof["keys"][0] = json!(format!("{}{other}{}", &key[..at], &key[at + 1..]));
            }),
            Effect::Refused,
        ),
        ("no key", edit(&|proof| proof["keys"] = json!([])), Effect::Refused),
        (
            "a signature",
            edit(&|proof| {
                let note = proof["checkpoint"].as_str().unwrap();
                let at = note.len() - 12;
                let other = if &note[at..=at] == "A" { "B" } else { "A" };
                proof["checkpoint"] = json!(format!("{}{other}{}", &note[..at], &note[at + 1..]));
            }),
            Effect::Refused,
        ),
        ("another ledger", edit(&|proof| proof["origin"] = json!("quorate/other")), Effect::Refused),
    ]
}
