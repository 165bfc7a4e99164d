//! What must not open a gate, or get around one: outcomes handed in again, histories taken away, deltas for others, and
//! what a person finds out about it afterwards.

use std::time::Duration;

use crate::support;
use crate::support::playbooks::workspace;
use serde_json::{Value, json};
use support::council::all_ship_except;
use support::{TestDir, assembly, finish, wait_until};
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
    assembly::answers(&place, &json!({}));
    propose(&place, &delta("cite", json!({}))).assert_code(0);
    let good =
        "The lens-grinding course begins on Monday in the east room. Bring nothing; everything lies there.";
    let poor =
        "Courses are held from time to time, and a person who wants to take part in one can find out where.";
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
    // Neither another council on the same text nor a person's override counts as a second outcome.
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
    place.run(&["playbook", "repair"]).assert_code(0).assert_stdout_contains("adopted from the file");
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
    write_playbook(&place, "old", "status: active", "Name the room when a guest asks for a book.");
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
        "Name the room when a guest asks for a book.",
    );
    for arguments in [&["weave", "alice"][..], &["check", "."]] {
        let ran = place.run(arguments).assert_code(0);
        tells(&ran, "supersedes_without_effect");
        tells(&ran, "`odd` supersedes `odl` without effect: ");
        tells(&ran, "each of them supersedes the other");
    }
    assert!(prompt(&place).contains("the shelf.") && prompt(&place).contains("asks for a book."));
    // Only governance can replace a playbook that governance promoted.
    write_playbook(
        &place,
        "old",
        "status: active\npriority: 80",
        "Name the room when a guest asks for a book.",
    );
    tells(&place.run(&["check", "playbooks/new.md"]).assert_code(0), "only governance promotes");
    // B13: by hand it is not woven either.
    assert!(prompt(&place).contains("the shelf.") && !prompt(&place).contains("asks for a book."));
    // What is not active replaces nothing, and what would be replaced at once is not promoted.
    write_playbook(&place, "old", "status: shadow", "Name the room when a guest asks for a book.");
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
    write_playbook(&place, "wide", "status: active", "Name the room when a guest asks for a book.");
    let text = place.read("playbooks/wide.md").replace("ref: alice", "ref: \"*li*\"");
    place.write("playbooks/wide.md", text);
    let lines = || {
        log(&place).into_iter().filter(|line| line.contains("a pattern of it matches")).collect::<Vec<_>>()
    };
    prompt(&place);
    prompt(&place);
    assert_eq!(lines().len(), 1, "{:?}", lines());
    assert!(lines()[0].contains("`wide`") && lines()[0].contains("`alice`"), "{:?}", lines());
    // An operator that is added later is also matched, without a new proposal.
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
    ran.assert_stderr_contains("it targets other operators than `alice`")
        .assert_stderr_contains("unknown key `why`");
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
    tells(&place.run(&["playbook", "repair"]).assert_code(0), "lines of the log");
    assert_eq!(place.read("playbooks/_log.md"), whole);
    let cut: Vec<&str> =
        whole.lines().filter(|line| !line.contains("playbook.registered · `greet`")).collect();
    place.write("playbooks/_log.md", format!("{}\n", cut.join("\n")));
    tells(&place.run(&["playbook", "repair"]).assert_code(0), "restored a line of the log");
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

/// A scorer that answers at random, the same way each time: `state` has its generator's state.
fn random_scorer(place: &TestDir, seed: u32) {
    place.write("state", seed.to_string());
    place.write(
        "score.sh",
        "read line\nx=$(cat state)\n\
         x=$(( (x * 1103515245 + 12345) % 2147483648 )); a=$(( x / 65536 ))\n\
         x=$(( (x * 1103515245 + 12345) % 2147483648 )); b=$(( x / 65536 ))\n\
         echo $x > state\nprintf '{\"without\": %s, \"with\": %s}\\n' $a $b\n",
    );
}

/// What `doctor` prints, in one line.
fn doctor(place: &TestDir) -> String {
    place.run(&["doctor"]).stdout.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Checks the number of attempts in `show` and `history`.
#[track_caller]
fn assert_attempts(place: &TestDir, slug: &str, attempts: u64, refused: u64) {
    for command in ["show", "history"] {
        let json = place.run(&["playbook", command, slug, "--format", "json"]).assert_code(0).json();
        assert_eq!(
            (&json["attempts"], &json["refused_attempts"]),
            (&json!(attempts), &json!(refused)),
            "{json}"
        );
        let shown = place.run(&["playbook", command, slug]).assert_code(0).stdout;
        let said = shown.contains(&format!("{attempts}, {refused} refused"));
        assert_eq!(said, attempts > 0, "{shown}");
    }
}

#[test]
fn a_scorer_that_is_asked_again_and_again_begins_no_new_test() {
    // B12: if each attempt were a test of its own, this text would pass at the third one.
    let place = workspace::workspace(SCORER);
    random_scorer(&place, 9);
    let text = json!({"body": "Name the donor first in each answer of yours."});
    propose(&place, &delta("donor", text.clone())).assert_code(0);
    assert_attempts(&place, "donor", 0, 0);
    for attempt in 1..=4 {
        let ran = promote(&place, "donor", "scorer").assert_code(2);
        ran.assert_stderr_contains(&format!("{} with it, {} without", attempt * 10, attempt * 10));
        assert_eq!(ran.stderr.contains(&format!("; attempt {attempt}")), attempt > 1, "{}", ran.stderr);
        assert_attempts(&place, "donor", attempt, attempt);
    }
    // Neither archiving it nor other words for the same begin one.
    for (slug, text) in [
        ("again", "Name the donor first in each answer of yours."),
        ("loud", "NAME the **donor** first,\nin each answer of yours!"),
        ("more", "Name the donor first in each answer of yours. 7"),
    ] {
        for book in ["donor", "again", "loud"] {
            place.run(&["playbook", "archive", book]);
        }
        propose(&place, &delta(slug, json!({"body": text}))).assert_code(0);
        let ran = promote(&place, slug, "scorer").assert_code(2);
        ran.assert_stderr_contains("; attempt ");
    }
    assert_attempts(&place, "more", 7, 7);
    // A fluke of a changed text has the earlier attempts against it.
    scorer(&place, 0.0, 1.0);
    promote(&place, "more", "scorer").assert_code(2).assert_stderr_contains("80 with it");
    // Another text has its own evidence, which adds up as well.
    propose(&place, &delta("shelf", json!({"body": "Say on which shelf a document lies."}))).assert_code(0);
    promote(&place, "shelf", "scorer").assert_code(0);
    assert_attempts(&place, "shelf", 1, 0);
    place.run(&["playbook", "archive", "shelf"]).assert_code(0);
    propose(&place, &delta("shelf-too", json!({"body": "say on WHICH shelf a document lies"})))
        .assert_code(0);
    let passed = promote(&place, "shelf-too", "scorer").assert_code(0);
    assert!(passed.stdout.contains("5 with it") && passed.stdout.contains("attempt 2"), "{passed:?}");
    assert_attempts(&place, "shelf-too", 2, 0);
}

#[test]
fn an_attempt_that_is_killed_or_fails_counts_as_far_as_it_went() {
    // B12
    let place = workspace::workspace(SCORER);
    propose(&place, &delta("cite", json!({}))).assert_code(0);
    // The fourth trial has no answer: after three defeats, an attempt could begin anew.
    let losing = |fourth: &str| {
        place.write("count", "0");
        place.write(
            "score.sh",
            format!(
                "read line\nn=$(cat count)\necho $((n + 1)) > count\n[ \"$n\" -lt 3 ] || {fourth}\n\
                 echo '{{\"without\": 1, \"with\": 0}}'\n"
            ),
        );
    };
    losing("exit 1");
    promote(&place, "cite", "scorer").assert_code(2).assert_stderr_contains("the scorer");
    assert_attempts(&place, "cite", 1, 1);
    losing("exec sleep 5");
    let mut killed = place.start(&["playbook", "promote", "cite", "--gate", "scorer"]);
    wait_until(Duration::from_secs(20), "three trials", || place.read("count").trim() == "4");
    killed.kill().expect("it runs");
    killed.wait().expect("it ended");
    assert_attempts(&place, "cite", 2, 1);
    scorer(&place, 1.0, 0.0);
    promote(&place, "cite", "scorer").assert_code(2).assert_stderr_contains("0 better, 16 worse");
    // The log is for people: it has no line for a trial, and lacks none.
    assert!(!place.read("playbooks/_log.md").contains("playbook.tried"));
    place.run(&["playbook", "repair"]).assert_code(0).assert_stdout_contains("nothing to repair");
}

#[test]
fn outcomes_of_a_text_count_for_the_next_playbook_with_it() {
    // B12, for the gate a-b
    let place = workspace::workspace(&SCRIPTED.replace("min_sample = 3", "min_sample = 2"));
    assembly::answers(&place, &json!({}));
    let review = |n: u32, verdict: &str, producer: &[&str]| {
        place.write("draft.md", workspace::draft(n));
        let adjudication =
            json!({"verdict": verdict, "reasoning": "So it is.", "revision_brief": "Name the day."});
        assembly::answers(&place, &all_ship_except(json!({"adjudicate": adjudication})));
        place.run(&[&["review", "draft.md", "--made-by", "alice"], producer].concat());
    };
    propose(&place, &delta("cite", json!({}))).assert_code(0);
    for n in 0..3 {
        review(2 * n, "HOLD", &["--trying", "cite"]);
        review(2 * n + 1, "SHIP", &[]);
    }
    let against = "3 with it, 3 without (at least 2 each): 0 better, 3 worse";
    promote(&place, "cite", "a-b").assert_code(2).assert_stderr_contains(against);
    place.run(&["playbook", "archive", "cite"]).assert_code(0);
    let same = json!({"body": "Name the SHELF when cite comes up!"});
    propose(&place, &delta("cite-again", same)).assert_code(0);
    promote(&place, "cite-again", "a-b").assert_code(2).assert_stderr_contains(against);
    review(20, "SHIP", &["--trying", "cite-again"]);
    promote(&place, "cite-again", "a-b").assert_code(2).assert_stderr_contains("4 with it, 3 without");
    // What says something else begins with nothing.
    propose(&place, &delta("other", json!({"body": "Offer to walk there together."}))).assert_code(0);
    promote(&place, "other", "a-b").assert_code(2).assert_stderr_contains("0 with it, 0 without");
}

#[test]
fn a_file_that_no_gate_passed_is_marked_in_every_view() {
    // B13
    let place = workspace::workspace(SCORER);
    scorer(&place, 0.0, 1.0);
    write_playbook(&place, "hand", "status: active", "Name the room when a guest asks for a book.");
    // A claim in a file's own frontmatter is not a gate.
    let own_word = "status: active\nhistory: [{at: \"2026-01-01T00:00:00Z\", kind: promoted, summary: Passed., gate: human}]";
    write_playbook(&place, "boast", own_word, "Say when the house closes.");
    propose(&place, &delta("cite", json!({}))).assert_code(0);
    promote(&place, "cite", "scorer").assert_code(0);
    for slug in ["hand", "boast"] {
        assert!(
            prompt(&place)
                .contains(place.read(&format!("playbooks/{slug}.md")).lines().last().expect("a line"))
        );
        let shown = place.run(&["playbook", "show", slug]).assert_code(0).stdout;
        assert!(shown.contains("active, never gated"), "{shown}");
        let json = place.run(&["playbook", "show", slug, "--format", "json"]).assert_code(0).json();
        assert_eq!(json["never_gated"], json!(true));
        place
            .run(&["check", "."])
            .assert_code(0)
            .assert_stdout_contains(&format!("`{slug}` is active, and no gate"));
        let index = place.read("playbooks/_index.md");
        assert!(
            index.lines().any(|line| line.contains(slug) && line.contains("active, never gated")),
            "{index}"
        );
        let list = place.run(&["playbook", "list"]).assert_code(0).stdout;
        assert!(list.lines().any(|line| line.contains(slug) && line.contains("never gated")), "{list}");
    }
    let list = place.run(&["playbook", "list", "--format", "json"]).assert_code(0).json();
    let marked = |slug: &str| {
        let all = list["playbooks"].as_array().expect("a list");
        all.iter().find(|one| one["slug"] == slug).expect("it is listed")["never_gated"].clone()
    };
    assert_eq!((marked("hand"), marked("boast"), marked("cite")), (json!(true), json!(true), json!(false)));
    let woven = place.run(&["weave", "alice", "--format", "json"]).assert_code(0).json();
    for piece in woven["woven"].as_array().expect("a list") {
        assert_eq!(piece["never_gated"], json!(piece["playbook"] != "cite"), "{piece}");
    }
    let explained = place.run(&["weave", "alice", "--explain"]).assert_code(0);
    let explained: Vec<String> =
        explained.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for said in ["woven hand at priority 50, never gated", "woven cite at priority 50"] {
        assert!(explained.iter().any(|line| line == said), "{said}: {explained:?}");
    }
    assert!(doctor(&place).contains("never gated: boast, hand"), "{}", doctor(&place));
    place.run(&["check", ".", "--strict"]).assert_code(1);
    place.run(&["playbook", "list"]).assert_code(0).assert_stdout_contains("cite");
    // A gate takes the mark away, also from what was once written by hand.
    place.run(&["playbook", "shadow", "hand"]).assert_code(0);
    promote(&place, "hand", "scorer").assert_code(0);
    let shown = place.run(&["playbook", "show", "hand"]).assert_code(0).stdout;
    assert!(!shown.contains("never gated"), "{shown}");
    place.run(&["playbook", "rollback", "hand", "--to", "1"]).assert_code(0);
}

#[test]
fn a_file_that_only_governance_may_promote_is_not_woven_by_hand() {
    // B13
    let text = "Name the room when a guest asks for a book.";
    let everyone =
        |head: &str, targets: &str| format!("{head}\ntargets: {targets}").replace("\ntargets: alice", "");
    for (head, targets) in [
        ("status: active\npriority: 75", "alice"),
        ("status: active\npriority: 100", "[{kind: operator, ref: \"*\"}]"),
        ("status: active", "[{kind: operator, ref: \"operator/*\"}]"),
        ("status: active", "[{kind: role, ref: \"*\"}]"),
        ("status: active", "[{kind: operator, ref: \"a*\"}, {kind: operator, ref: \"b*\"}]"),
        ("status: active\nselector: {role: \"*\"}", "alice"),
        (
            "status: active\npriority: 90\nhistory: [{at: \"2026-01-01T00:00:00Z\", kind: promoted, summary: S., gate: governance}]",
            "alice",
        ),
    ] {
        let place = workspace::workspace("");
        write_playbook(&place, "high", "", text);
        let file = place.read("playbooks/high.md");
        let own = "targets: [{kind: operator, ref: alice}]\n";
        let file = if targets == "alice" { file } else { file.replace(own, "") };
        place.write(
            "playbooks/high.md",
            file.replace("\n\n---", &format!("\n{}\n---", everyone(head, targets))),
        );
        let woven = place.run(&["weave", "alice"]).assert_code(0);
        assert!(!woven.stdout.contains("asks for a book"), "{head} {targets}: {woven:?}");
        woven.assert_stderr_contains("refusal[promotion_denied]").assert_stderr_contains("never gated");
        let checked = place.run(&["check", "."]).assert_code(1);
        checked.assert_stdout_contains("promotion_denied").assert_stdout_contains("playbooks/high.md:");
        place.run(&["playbook", "show", "high"]).assert_code(0).assert_stdout_contains("active, never gated");
        place.run(&["playbook", "list"]).assert_code(0).assert_stderr_contains("promotion_denied");
        assert!(doctor(&place).contains("never gated: high"), "{}", doctor(&place));
    }
    // One below the limit, for some operators, is woven.
    let place = workspace::workspace("");
    write_playbook(&place, "low", "status: active\npriority: 74", text);
    assert!(prompt(&place).contains("asks for a book"));
    // A gate that is not governance's promotes none for all operators either.
    place.write("quorate.toml", SCORER);
    scorer(&place, 0.0, 1.0);
    write_playbook(&place, "all", "status: shadow", "Say when the house closes.");
    let all = place.read("playbooks/all.md").replace("ref: alice", "ref: \"*\"");
    place.write("playbooks/all.md", all);
    promote(&place, "all", "scorer").assert_code(2).assert_stderr_contains("targets all operators");
}

#[test]
fn a_proposal_that_states_the_opposite_is_named() {
    // B14
    let place = workspace::workspace(SCORER);
    scorer(&place, 0.0, 1.0);
    let says = |slug: &str, body: &str, more: Value| {
        let mut delta = delta(slug, json!({"body": body}));
        delta.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        propose(&place, &delta).assert_code(0)
    };
    assert!(!says("french", "Always answer in French.", json!({})).stderr.contains("contradict"));
    promote(&place, "french", "scorer").assert_code(0);
    let named = "quorate:playbooks_contradict";
    let opposite = says("no-french", "Greet first. Never answer in French.", json!({}));
    opposite
        .assert_stderr_contains(named)
        .assert_stderr_contains("`no-french` states the opposite of `french`");
    // A playbook of another operator and a superseded one do not contradict it.
    let for_bob = json!({"targets": [{"kind": "operator", "ref": "bob"}]});
    assert!(!says("bob-no-french", "Never answer in French.", for_bob).stderr.contains(named));
    let instead = json!({"supersedes": ["french"]});
    assert!(!says("instead", "Avoid answering in French!", instead).stderr.contains(named));
    // In shadow it is named where the prompt is composed, and so it is once both are active.
    place.run(&["weave", "alice"]).assert_code(0).assert_stderr_contains(named);
    promote(&place, "no-french", "scorer").assert_code(0).assert_stderr_contains(named);
    place.run(&["weave", "alice"]).assert_code(0).assert_stderr_contains(named);
    place.run(&["check", "."]).assert_code(0).assert_stdout_contains(named);
    let promoted = place.run(&["playbook", "shadow", "no-french"]).assert_code(0);
    assert_eq!(promoted.code, 0);
    let json =
        place.run(&["playbook", "promote", "no-french", "--gate", "scorer", "--format", "json"]).json();
    assert_eq!(json["diagnostics"][0]["code"], json!(named), "{json}");
    place.run(&["playbook", "archive", "french"]).assert_code(0);
    assert!(!place.run(&["check", "."]).assert_code(0).stdout.contains(named));
}

#[test]
fn what_supersedes_others_may_be_shorter_than_they_are() {
    // B14
    let place = workspace::workspace(SCORER);
    scorer(&place, 0.0, 1.0);
    let long = |room: u32| {
        (0..9)
            .map(|shelf| format!("In room {room} shelf {shelf} has the letters of {}. ", 1800 + shelf))
            .collect::<String>()
    };
    for room in 0..4 {
        propose(&place, &delta(&format!("room-{room}"), json!({"body": long(room)}))).assert_code(0);
        promote(&place, &format!("room-{room}"), "scorer").assert_code(0);
    }
    let others: Vec<String> = (0..4).map(|room| format!("room-{room}")).collect();
    let merged = json!({"body": "Say the room of each document.", "supersedes": others});
    propose(&place, &delta("rooms", merged)).assert_code(0);
    promote(&place, "rooms", "scorer").assert_code(0);
    assert!(prompt(&place).contains("Say the room") && !prompt(&place).contains("In room 0"));
    place.run(&["check", "."]).assert_code(0);
    // The persona and the overlays that stay still count.
    let block = json!({"body": "Calm.", "block": "tone", "supersedes": ["rooms"]});
    propose(&place, &delta("tone", block)).assert_code(2).assert_stderr_contains("more than a fifth is lost");
}

#[test]
fn a_log_that_was_cut_is_reported() {
    // B5
    let place = workspace::workspace("");
    for slug in ["cite", "greet"] {
        propose(&place, &delta(slug, json!({}))).assert_code(0);
    }
    let clean = place.run(&["check", "."]).assert_code(0);
    assert!(!clean.stdout.contains("playbook_log_truncated"), "{clean:?}");
    let whole = place.read("playbooks/_log.md");
    let without_last = whole.trim_end().rsplit_once('\n').expect("lines").0.to_owned() + "\n";
    for (log, said) in [
        (whole[..whole.len() - 9].to_owned(), "lacks a line"),
        (without_last, "lacks a line"),
        (whole.trim_end().to_owned(), "the last line of playbooks/_log.md is cut off"),
        (String::new(), "lacks 4 lines"),
    ] {
        place.write("playbooks/_log.md", log);
        let ran = place.run(&["check", "."]).assert_code(0);
        ran.assert_stdout_contains("quorate:playbook_log_truncated").assert_stdout_contains(said);
        assert!(doctor(&place).contains(said), "{}", doctor(&place));
    }
    remove(&place, "playbooks/_log.md");
    place.run(&["check", "playbooks"]).assert_code(0).assert_stdout_contains("lacks 4 lines");
    place.run(&["playbook", "repair"]).assert_code(0);
    assert!(!place.run(&["check", "."]).assert_code(0).stdout.contains("playbook_log_truncated"));
}

#[test]
fn a_model_that_is_configured_reads_proposals_unless_it_is_turned_off() {
    // B4
    let judging = |place: &TestDir, more: &str| {
        let config = "defaults.executor = \"own\"\n[executors.own]\ncommand = \"./own.sh\"\n";
        place.write("quorate.toml", format!("{config}[playbooks]\n{more}\n"));
        place.write(
            "own.sh",
            "#!/bin/sh\ncat > asked\necho '{\"verdict\": \"unsure\", \"reason\": \"I cannot tell.\"}'\n",
        );
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(place.path("own.sh"), permissions).expect("it is there");
        place.run(&["--trust", "playbook", "propose", "delta.json"])
    };
    let place = workspace::workspace("");
    place.write("delta.json", delta("cite", json!({})).to_string());
    write_playbook(&place, "hand", "status: active", "Say when the house closes.");
    judging(&place, "").assert_code(2).assert_stderr_contains("it is unsure: I cannot tell.");
    assert!(place.read("asked").contains("Say when the house closes."), "the judge is told what is active");
    judging(&place, "judge = \"rubric\"").assert_code(2).assert_stderr_contains("the judge does not let");
    let off = judging(&place, "judge = \"off\"");
    off.assert_code(0);
    place
        .run(&["check", "."])
        .assert_code(0)
        .assert_stdout_contains("quorate:judge_off")
        .assert_stdout_contains("quorate.toml:5:");
}
