//! What must not open a gate, or get around one: outcomes handed in again, histories taken away, deltas for others, and
//! what a person finds out about it afterwards.

use crate::support;
use crate::support::playbooks::workspace;
use serde_json::{Value, json};
use support::council::all_ship_except;
use support::{TestDir, assembly, finish};
use workspace::{SCORER, assert_all_refused, delta, log, prompt, propose, recorded, scorer, write_playbook};

const SCRIPTED: &str = "defaults.executor = \"script\"\n[executors.script]\nkind = \"script\"\npath = \"answers.json\"\n\
    [playbooks]\nmin_sample = 3\nerror_rate = 0.2\n";

const CITE: &str = "playbooks/operator/alice/cite.md";
const CITE_HISTORY: &str = "playbooks/operator/alice/cite.history.md";

fn promote(place: &TestDir, slug: &str, gate: &str) -> support::CommandOutput {
    place.run(&["playbook", "promote", slug, "--gate", gate])
}

/// Checks what was printed, wherever, against what has to be said.
#[track_caller]
fn tells(ran: &support::CommandOutput, said: &str) {
    assert!(ran.stdout.contains(said) || ran.stderr.contains(said), "`{said}` is not said: {ran:?}");
}

fn remove(place: &TestDir, name: &str) {
    std::fs::remove_file(place.path(name)).expect("it is there");
}

#[test]
fn one_text_handed_in_again_and_again_is_one_outcome() {
    // B6
    let place = workspace::workspace(SCRIPTED);
    propose(&place, &delta("cite", json!({}))).assert_code(0);
    let good =
        "The lens-grinding course begins on Monday in the east room. Bring nothing; everything lies there.";
    let poor =
        "Courses are held from time to time, and whoever wants to take part in one can find out where.";
    let review = |verdict: &str, text: &str, producer: &[&str]| {
        place.write("draft.md", text);
        let adjudication =
            json!({"verdict": verdict, "reasoning": "So it is.", "revision_brief": "Name the day."});
        assembly::answers(&place, &all_ship_except(json!({"adjudicate": adjudication})));
        place.run(&[&["review", "draft.md", "--format", "json"], producer].concat()).json()["run"].clone()
    };
    let (with, without) = (["--made-by", "alice", "--trying", "cite"], ["--made-by", "alice"]);
    let mut held = Vec::new();
    for n in 0..6 {
        let blanks = " ".repeat(n + 1);
        review("SHIP", &format!("{good}{blanks}\n"), &with);
        held.push(review("HOLD", &format!("{poor} Room {n}.\n"), &without));
        review("SHIP", &good.replace(' ', &blanks), &with);
    }
    let said = promote(&place, "cite", "a-b").assert_code(2);
    said.assert_stderr_contains("1 with it, 1 without").assert_stderr_contains("1 better, 0 worse");
    // Another council that judges the same text is no second outcome either, and neither is a person's override.
    place.write("council.yaml", format!("{}protocol: {{rounds: 1}}\n", support::council::COUNCIL));
    review("SHIP", good, &with);
    let run = held[0].as_str().expect("an id");
    place
        .run(&["override", run, "--by", "ada", "--verdict", "ship", "--reason", "It is fine."])
        .assert_code(0);
    promote(&place, "cite", "a-b")
        .assert_code(2)
        .assert_stderr_contains("1 with it, 1 without")
        .assert_stderr_contains("1 better, 0 worse");
}

#[test]
fn a_history_that_is_taken_away_opens_no_gate() {
    // B6, B7
    let place = workspace::workspace(SCORER);
    scorer(&place, 0.0, 1.0);
    propose(&place, &delta("cite", json!({}))).assert_code(0);
    let prompt_before = prompt(&place);
    let shadow = place.read(CITE);
    let history = place.read(CITE_HISTORY);
    // The history goes, the key goes, and the file says that it is active.
    let bare: Vec<&str> = shadow.lines().take_while(|line| !line.starts_with("history:")).collect();
    let body = shadow.rsplit("---\n").next().expect("a body");
    let forged = format!("{}\n---\n{body}", bare.join("\n")).replace("status: shadow", "status: active");
    remove(&place, CITE_HISTORY);
    place.write(CITE, &forged);
    assert_eq!(prompt(&place), prompt_before);
    assert_all_refused(&place, &["history_mutation", "the ledger has version 1 of it"]);
    place.run(&["playbook", "archive", "cite"]).assert_code(5).assert_stderr_contains("history_mutation");
    // In shadow it starts again once its edit was accepted, and a gate opens for it.
    place.write(CITE, forged.replace("status: active", "status: shadow"));
    assert_eq!(prompt(&place), prompt_before);
    promote(&place, "cite", "scorer").assert_code(5).assert_stderr_contains("history_mutation");
    place.run(&["playbook", "repair"]).assert_code(0).assert_stdout_contains("taken as it was found");
    promote(&place, "cite", "scorer").assert_code(0);
    let active = (place.read(CITE), place.read(CITE_HISTORY));
    assert_ne!(prompt(&place), prompt_before);
    place.run(&["playbook", "archive", "cite"]).assert_code(0);
    // A formerly active one is not woven just because old files are restored.
    place.write(CITE, &active.0);
    place.write(CITE_HISTORY, &active.1);
    assert_eq!(prompt(&place), prompt_before);
    assert_all_refused(&place, &["history_mutation", "is at version 3, and the ledger has version 4 of it"]);
    assert_ne!(history, active.1);
    // Another ledger knows nothing of it: files are what a clone has.
    let elsewhere = place.run(&["weave", "alice", "--ledger", "other.db"]).assert_code(0);
    assert_ne!(elsewhere.stdout, prompt_before);
}

#[test]
fn what_a_file_by_hand_supersedes_is_not_woven() {
    // B3, B6
    let place = workspace::workspace("");
    write_playbook(&place, "old", "status: active", "Name the room when somebody asks for a book.");
    write_playbook(&place, "new", "status: active\nsupersedes: [old]", "Name the room and the shelf.");
    let ran = place.run(&["weave", "alice", "--explain"]).assert_code(0);
    tells(&ran, "old: `new` takes its place");
    assert!(prompt(&place).contains("the shelf.") && !prompt(&place).contains("asks for a book."));
    place.run(&["check", "."]).assert_code(0);
    // Unknown, and mutual: reported, and nothing is left out.
    write_playbook(&place, "odd", "status: active\nsupersedes: [odl]", "Say when the house closes.");
    write_playbook(
        &place,
        "old",
        "status: active\nsupersedes: [new]",
        "Name the room when somebody asks for a book.",
    );
    for arguments in [&["weave", "alice"][..], &["check", "."]] {
        let ran = place.run(arguments).assert_code(0);
        tells(&ran, "supersedes_without_effect");
        tells(&ran, "`odd` supersedes `odl`, to no effect: there is no such playbook");
        tells(&ran, "each of them supersedes the other");
    }
    assert!(prompt(&place).contains("the shelf.") && prompt(&place).contains("asks for a book."));
    // What governance has promoted is replaced by governance alone.
    write_playbook(
        &place,
        "old",
        "status: active\npriority: 80",
        "Name the room when somebody asks for a book.",
    );
    tells(&place.run(&["check", "playbooks/new.md"]).assert_code(0), "only governance promotes");
    assert!(prompt(&place).contains("asks for a book."));
    // What is not active replaces nothing, and what would be replaced at once is not promoted.
    write_playbook(&place, "old", "status: shadow", "Name the room when somebody asks for a book.");
    place.write("quorate.toml", SCORER);
    scorer(&place, 0.0, 1.0);
    promote(&place, "old", "scorer")
        .assert_code(2)
        .assert_stderr_contains("`new` is active and supersedes `old`");
}

#[test]
fn an_operator_that_a_pattern_matches_first_is_logged() {
    // B10
    let place = workspace::workspace("");
    write_playbook(&place, "wide", "status: active", "Name the room when somebody asks for a book.");
    let text = place.read("playbooks/wide.md").replace("ref: alice", "ref: \"*li*\"");
    place.write("playbooks/wide.md", text);
    let lines = || {
        log(&place).into_iter().filter(|line| line.contains("a pattern of it matches")).collect::<Vec<_>>()
    };
    prompt(&place);
    prompt(&place);
    assert_eq!(lines().len(), 1, "{:?}", lines());
    assert!(lines()[0].contains("`wide`") && lines()[0].contains("`alice`"), "{:?}", lines());
    // An operator that is added later is matched, too, without a new proposal.
    place.write(
        "operators/olive/OPERATOR.md",
        "---\nid: olive\nname: Olive\n---\nYou are Olive, who reads the meters.\n",
    );
    place.run(&["weave", "olive"]).assert_code(0);
    prompt(&place);
    assert_eq!(lines().len(), 2, "{:?}", lines());
    assert!(lines()[1].contains("`olive`"), "{:?}", lines());
    place.run(&["weave", "bob"]).assert_code(0);
    assert_eq!((lines().len(), recorded(&place).len()), (2, 2));
}

#[test]
fn a_key_that_a_delta_does_not_have_is_said() {
    // B5
    let place = workspace::workspace("");
    propose(&place, &delta("cite", json!({"prioritty": 70})))
        .assert_code(2)
        .assert_stderr_contains("unknown key `prioritty`")
        .assert_stderr_contains("did you mean `priority`?");
    let beside = json!({"deltas": [delta("cite", json!({}))], "operator": "bob"});
    propose(&place, &beside).assert_code(5).assert_stderr_contains("unknown key `operator` beside `deltas`");
    assert!(!place.path(CITE).exists());
    propose(&place, &delta("cite", json!({}))).assert_code(0);
    let revise = json!({"op": "revise", "slug": "cite", "body": "Name the shelf.", "summary": "Shorter.", "titel": "x"});
    propose(&place, &revise).assert_code(2).assert_stderr_contains("unknown key `titel`");
}

#[test]
fn who_reflects_on_one_proposes_for_that_one_alone() {
    // B5
    let place = workspace::workspace(SCRIPTED);
    let of = |slug: &str, more: Value| {
        let mut delta = json!({"op": "add", "slug": slug, "title": "A title.", "body": format!("Name the shelf when {slug} comes up.")});
        delta.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        delta
    };
    let operator = |name: &str| json!({"kind": "operator", "ref": name});
    let deltas = json!({"deltas": [
        of("sneaky", json!({"targets": [operator("bob")]})),
        of("wider", json!({"targets": [operator("alice"), operator("bob")]})),
        of("roles", json!({"targets": [{"kind": "role", "ref": "librarian"}]})),
        of("selecting", json!({"selector": {"role": "engineer"}})),
        of("odd", json!({"why": "Because."})),
        of("fine", json!({})),
        of("named", json!({"targets": [operator("operator/alice")]})),
    ]});
    assembly::answers(&place, &json!({"reflect/alice": deltas, "alice": deltas, "reflect": deltas}));
    let ran =
        place.run(&["playbook", "reflect", "--operator", "alice", "--executor", "script"]).assert_code(2);
    ran.assert_stderr_contains("it is not for `alice` alone").assert_stderr_contains("unknown key `why`");
    let there = |slug: &str| place.path(&format!("playbooks/operator/alice/{slug}.md")).exists();
    assert!(there("fine") && there("named"), "{ran:?}");
    for refused in ["sneaky", "wider", "roles", "selecting", "odd"] {
        assert!(
            !there(refused)
                && log(&place).iter().any(|line| line.contains(refused) && line.contains("rejected"))
        );
    }
}

#[test]
fn repair_puts_lines_back_into_the_log() {
    // B5
    let place = workspace::workspace("");
    for slug in ["cite", "greet"] {
        propose(&place, &delta(slug, json!({}))).assert_code(0);
    }
    prompt(&place);
    let whole = place.read("playbooks/_log.md");
    place.run(&["playbook", "repair"]).assert_code(0);
    assert_eq!(place.read("playbooks/_log.md"), whole);
    remove(&place, "playbooks/_log.md");
    tells(&place.run(&["playbook", "repair"]).assert_code(0), "lines back into the log");
    assert_eq!(place.read("playbooks/_log.md"), whole);
    let cut: Vec<&str> =
        whole.lines().filter(|line| !line.contains("playbook.registered · `greet`")).collect();
    place.write("playbooks/_log.md", format!("{}\n", cut.join("\n")));
    tells(&place.run(&["playbook", "repair"]).assert_code(0), "put a line back into the log");
    assert_eq!(place.read("playbooks/_log.md"), whole);
}

#[test]
fn proposals_at_once_wait_for_each_other() {
    // B5
    let place = workspace::workspace("");
    let all: Vec<String> = (0..30)
        .map(|n| format!("cite-{}", char::from(b'a' + n % 26).to_string().repeat(1 + usize::from(n / 26))))
        .collect();
    for slug in &all {
        place.write(&format!("deltas/{slug}.json"), delta(slug, json!({})).to_string());
    }
    let children: Vec<_> = all
        .iter()
        .map(|slug| place.start(&["playbook", "propose", &format!("deltas/{slug}.json")]))
        .collect();
    for child in children {
        finish(child).assert_code(0);
    }
    let accepted = recorded(&place).into_iter().filter(|one| one["event"] == "playbook.shadowed").count();
    assert_eq!(accepted, all.len());
}
