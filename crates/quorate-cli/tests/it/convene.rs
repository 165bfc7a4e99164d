//! `quorate convene` from ASSEMBLY.md to a recorded outcome: overlays and the weave, plans, executors of members, kills
//! and interruptions, what the records say.

use std::time::Duration;

use crate::support;
use crate::support::records;
use records::{consultations, of_kind, operators_called_from, text};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::assembly::{advice, answers, convene, message, vote_answer, write};
use support::{TestDir, finish, wait_until};

const AGGREGATE: &str = "synthesis: {rules: [{id: all, kind: aggregate}]}\n";

fn council(more: &str) -> TestDir {
    let place = TestDir::new();
    write(
        &place,
        "advisory",
        &[("ana", "phase: session"), ("bob", "phase: session")],
        &format!("{AGGREGATE}{more}"),
    );
    answers(
        &place,
        &json!({"ana": advice(7, "Ask before you assume."), "bob": advice(4, "Shorter sentences.")}),
    );
    place
}

fn overlays(place: &TestDir) -> Vec<Value> {
    let listed = place.run(&["overlays", "list", "--format", "json"]).assert_code(0).json();
    listed["overlays"].as_array().unwrap().clone()
}

#[test]
fn an_id_names_an_assembly_without_its_folder() {
    let place = council("");
    let manifest = place.read("ASSEMBLY.md");
    place.write("assemblies/board/ASSEMBLY.md", manifest);
    let resolved = |name: &str| place.run(&["resolve", name, "--format", "json"]);
    let by_path = resolved("assemblies/board").assert_code(0).json();
    assert_eq!(resolved("board").assert_code(0).json(), by_path);
    resolved("boards").assert_code(4);
}

#[test]
fn guidance_becomes_overlays_that_are_woven_until_they_are_taken_away() {
    // A3, A5, A8, B3
    let place = council("");
    let report = convene(&place, "--conversation", &["--trigger", "sample"]).assert_code(0).json();
    assert_eq!(report["fragments"].as_array().unwrap().len(), 2);
    assert_eq!(
        (report["fragments"][0]["priority"].as_u64(), report["fragments"][1]["priority"].as_u64()),
        (Some(50), Some(49))
    );
    let all = overlays(&place);
    assert_eq!(all.len(), 2);
    assert_eq!(
        (all[0]["text"].as_str(), all[0]["holds"].as_bool()),
        (Some("Ask before you assume."), Some(true))
    );
    let weave = || place.run(&["weave", "--persona", "ana", "--assembly", "board"]).assert_code(0).stdout;
    assert_eq!(weave(), "You are ana.\n\nAsk before you assume.\n\nShorter sentences.\n");
    assert_eq!(weave(), weave(), "to the byte");
    let first = all[0]["overlay"].as_str().unwrap();
    place.run(&["overlays", "show", &first[..6]]).assert_code(0);
    place.run(&["overlays", "expire", first]).assert_code(0);
    assert_eq!(weave(), "You are ana.\n\nShorter sentences.\n");
    assert_eq!(overlays(&place).len(), 1);
    place
        .run(&["overlays", "expire", first])
        .assert_code(4)
        .assert_stderr_contains("quorate:overlay_unknown");
    assert_eq!(place.run(&["overlays", "sweep"]).assert_code(0).stdout, "nothing to sweep\n");
    assert_eq!(
        place.run(&["weave", "--persona", "bob"]).assert_code(0).stdout,
        "You are bob.\n",
        "overlays of no operator"
    );
    place.run(&["weave", "--persona", "nobody"]).assert_code(4);
}

#[test]
fn the_cap_is_kept_at_every_write() {
    // A5
    let place = council("audit: {overlays: {maxActive: 3}}\n");
    // Repeated advice counts once, at its latest time.
    for _ in 0..3 {
        convene(&place, "--conversation", &[]).assert_code(0);
    }
    let of_newest = |place: &TestDir| {
        let (all, newest) = (overlays(place), place.runs()[0]["run"].clone());
        (all.len(), all.iter().filter(|one| one["run"] == newest).count())
    };
    assert_eq!(of_newest(&place), (2, 2));
    answers(
        &place,
        &json!({"ana": advice(8, "Ask who else is affected."), "bob": advice(6, "Name the date.")}),
    );
    convene(&place, "--conversation", &[]).assert_code(0);
    assert_eq!(of_newest(&place), (3, 2), "the oldest went first");
}

#[test]
fn overlays_are_the_operators_that_the_view_applies_to() {
    // A8
    let place = council("");
    for operator in ["lead", "help"] {
        place.write(
            &format!("operators/{operator}/OPERATOR.md"),
            format!("---\nid: {operator}\nname: {operator}\npersona: ana\n---\n"),
        );
    }
    let view = "---\nschema: assembly.workspace/v1\nname: lead-board\ntitle: B\ndescription: B.\nversion: 1.0.0\n\
                extends: ../../ASSEMBLY.md\nappliesTo: [ws://operators/lead, ws://operators/help]\n---\n";
    place.write("operators/lead/ASSEMBLY.md", view);
    place.write("talk.md", "user: hello\n");
    let convened = ["convene", "operators/lead", "--conversation", "talk.md", "--format", "json"];
    place.run(&convened).assert_code(0);
    let mut owners: Vec<String> = overlays(&place).iter().map(|one| text(&one["operator"])).collect();
    owners.sort();
    assert_eq!(owners, ["help", "help", "lead", "lead"]);
    let woven = place.run(&["weave", "--persona", "ana"]).assert_code(0);
    assert_eq!(woven.stdout.matches("Ask before you assume.").count(), 1, "woven once, for all operators");
    // The next run is shown what is in force.
    place.run(&convened).assert_code(0);
    let run = text(&place.runs()[0]["run"]);
    let first = &records::records(&place.path(".quorate/ledger.db"), &run)[0];
    assert_eq!(
        first.data.as_ref().unwrap()["overlays"],
        json!(["Ask before you assume.", "Shorter sentences."])
    );
}

#[test]
fn what_is_not_kept_is_returned_and_hashed() {
    // D8
    let place = council("audit: {overlays: {enabled: false}}\n");
    let report = convene(&place, "--conversation", &[]).assert_code(0).json();
    assert_eq!(report["fragments"][0]["text"], "Ask before you assume.");
    assert_eq!(overlays(&place).len(), 0);
    let run = place.only_run();
    let all = records::records(&place.path(".quorate/ledger.db"), &run);
    let outcome = &of_kind(&all, "outcome")[0];
    assert_eq!(
        (outcome.get("fragments"), outcome["artifact_sha256"].as_str().map(str::len)),
        (None, Some(64))
    );
    let shown = place.run(&["show", &run, "--format", "json"]).assert_code(0).json();
    assert_eq!(shown["fragments"], report["fragments"], "it follows again from what was answered");
    place.run(&["replay", &run]).assert_code(0);
}

#[test]
fn a_plan_asks_no_member_and_leaves_nothing() {
    let place = TestDir::new();
    write(&place, "hierarchy", &[("top", ""), ("leaf", "parent: top")], "");
    answers(&place, &json!({}));
    let plan = convene(&place, "--request", &["--dry-run"]).assert_code(0).json();
    assert_eq!(
        (plan["first"][0]["member"].as_str(), plan["later"][0]["member"].as_str()),
        (Some("leaf"), Some("top"))
    );
    let prompt = plan["first"][0]["prompt"].as_str().unwrap();
    let at = |what: &str| prompt.find(what).unwrap_or_else(|| panic!("`{what}` is not in\n{prompt}"));
    // X2: the form, then the material, then who is asked, then the persona.
    assert!(
        at("\"severity\"") < at("A new region")
            && at("A new region") < at("You are `leaf`")
            && at("You are `leaf`") < at("You are leaf.")
    );
    assert!(!place.path(".quorate").exists());
}

#[test]
fn each_member_has_the_executor_that_is_nearest_to_it() {
    // Q1
    let place = TestDir::new();
    let members = [("ana", ""), ("bob", ""), ("cyd", "")];
    write(
        &place,
        "voting",
        &members,
        "metadata: {quorate: {executor: two, members: {cyd: {executor: three}}}}\n",
    );
    place.write("yes.json", json!({"_": vote_answer("yes")}).to_string());
    let tables = ["one", "two", "three", "four"]
        .map(|name| format!("[executors.{name}]\nkind = \"script\"\npath = \"yes.json\"\n"))
        .concat();
    let host = format!("{tables}[assemblies.board.members.ana]\nexecutor = \"one\"\n");
    place.write("quorate.toml", host);
    let executors = |more: &[&str]| -> Vec<String> {
        convene(&place, "--proposal", more).assert_code(0);
        let run = text(&place.runs()[0]["run"]);
        let all = records::records(&place.path(".quorate/ledger.db"), &run);
        let mut named: Vec<String> = of_kind(&all, "consultation")
            .iter()
            .map(|one| format!("{}={}", text(&one["member"]), text(&one["executor"])))
            .collect();
        named.sort();
        named
    };
    assert_eq!(executors(&[]), ["ana=one", "bob=two", "cyd=three"]);
    assert_eq!(executors(&["--executor", "four"]), ["ana=four", "bob=four", "cyd=four"]);
}

#[test]
fn a_vote_ends_early_only_where_that_was_asked_for() {
    // V7
    let place = TestDir::new();
    write(
        &place,
        "voting",
        &[("ana", ""), ("bob", ""), ("cyd", "")],
        "synthesis: {rules: [{id: most, kind: majority}]}\n",
    );
    answers(
        &place,
        &json!({"ana": vote_answer("yes"), "bob": vote_answer("yes"), "cyd": {"$delay_ms": 1500, "answer": vote_answer("no")}}),
    );
    let report = convene(&place, "--proposal", &[]).assert_code(0).json();
    assert_eq!(report["decision"]["votes"][2]["vote"], "no");
    let host = place.read("quorate.toml");
    place.write("quorate.toml", format!("early_decision = true\n{host}"));
    let report = convene(&place, "--proposal", &[]).assert_code(0).json();
    assert_eq!(
        (report["decision"]["result"].as_str(), report["decision"]["votes"][2]["vote"].as_str()),
        (Some("pass"), Some("cancelled"))
    );
    assert_eq!(report["partial"], false, "who was not needed is not missing");
    let run = text(&place.runs()[0]["run"]);
    let all = records::records(&place.path(".quorate/ledger.db"), &run);
    assert!(of_kind(&all, "consultation").iter().any(|one| one["status"] == "cancelled"));
    place.run(&["replay", &run]).assert_code(0);
}

#[test]
fn a_consultation_says_everything_that_an_auditor_asks_for() {
    // D7
    let place = TestDir::new();
    write(&place, "voting", &[("ana", "weight: 0.3, voteClass: [budget]")], "lockedTraits: [warmth]\n");
    answers(&place, &json!({"ana": vote_answer("yes")}));
    convene(&place, "--proposal", &["--class", "budget"]).assert_code(0);
    let run = place.only_run();
    let all = records::records(&place.path(".quorate/ledger.db"), &run);
    let one = &of_kind(&all, "consultation")[0];
    let said = json!([
        one["invocation"],
        one["member"],
        one["mode"],
        one["class"],
        one["weight"],
        one["layer"],
        one["status"],
        one["executor"]
    ]);
    assert_eq!(said, json!(["ask/ana", "ana", "voting", "budget", "0.3", 0, "answered", "script"]));
    assert_eq!(one["prompt_sha256"].as_str().map(str::len), Some(64));
    assert_eq!((&one["trigger"], &one["lock"]), (&json!("manual"), &json!("pass")));
    let checks = of_kind(&all, "lock_check");
    let checks: Vec<_> =
        checks.iter().map(|check| (check["candidate"].clone(), check["result"].clone())).collect();
    assert_eq!(checks, [(json!("rationale/ana"), json!("pass")), (json!("decision"), json!("pass"))]);
}

#[test]
fn consultations_have_trigger_and_lock_result_in_every_mode() {
    // D7
    let advice = json!({"severity": 3, "concern": "It loses warmth.", "suggestion": "Go on."});
    for (mode, keys, flag, said) in [
        ("advisory", "phase: session", "--conversation", advice.clone()),
        ("voting", "weight: 1", "--proposal", json!({"vote": "yes", "rationale": "It loses warmth."})),
        ("peer", "timeout_ms: 9000", "--topic", message("It loses warmth.")),
        ("hierarchy", "timeout_ms: 9000", "--request", advice),
    ] {
        let place = TestDir::new();
        let members: &[(&str, &str)] = match mode {
            "hierarchy" => &[("ana", keys), ("bob", "parent: ana"), ("cyd", "parent: ana")],
            _ => &[("ana", keys), ("bob", keys), ("cyd", keys)],
        };
        write(&place, mode, members, "lockedTraits: [warmth]\n");
        let calm = match mode {
            "voting" => vote_answer("yes"),
            "peer" => message("So be it."),
            _ => json!({"severity": 3, "concern": "None.", "suggestion": "Go on."}),
        };
        answers(&place, &json!({"ana": said, "bob": calm, "cyd": {"$fail": "out"}}));
        let trigger = if mode == "advisory" { "sample" } else { "manual" };
        let more: &[&str] = if mode == "advisory" { &["--trigger", "sample"] } else { &[] };
        convene(&place, flag, more);
        let all = records::records(&place.path(".quorate/ledger.db"), &place.only_run());
        let rows = of_kind(&all, "consultation");
        let row = |member: &str| {
            let row = rows.iter().find(|row| row["member"] == member).expect("a consultation");
            (row["trigger"].clone(), row["lock"].clone())
        };
        let expected = |lock: &str| (json!(trigger), json!(lock));
        assert_eq!(
            [row("ana"), row("bob"), row("cyd")],
            [expected("hit"), expected("pass"), expected("unchecked")],
            "{mode}"
        );
    }
}

/// Peers who take their time, in three rounds.
fn slow() -> TestDir {
    let place = TestDir::new();
    write(
        &place,
        "peer",
        &[("ana", ""), ("bob", ""), ("cyd", "")],
        "synthesis: {rules: [{id: talk, kind: aggregate, params: {maxRounds: 3}}]}\n",
    );
    answers(&place, &json!({"_": {"$delay_ms": 40, "answer": message("So be it.")}}));
    place.write("subject.md", "# A topic\n");
    place
}

#[test]
fn a_killed_run_continues_and_no_call_is_paid_twice() {
    // X7
    for ms in (0..10).map(|point| point * 25) {
        let place = slow();
        let mut child = place.start(&["convene", ".", "--topic", "subject.md"]);
        std::thread::sleep(Duration::from_millis(ms));
        child.kill().unwrap();
        child.wait().unwrap();
        let ledger = place.path(".quorate/ledger.db");
        let runs = if ledger.is_file() { records::runs(&ledger) } else { Vec::new() };
        let Some((run, decided)) = runs.first() else { continue };
        let before = records::records(&ledger, run);
        let answered = consultations(&before);
        if decided.is_none() {
            let report = place.run(&["resume", run, "--format", "json"]).assert_code(0).json();
            assert_eq!(report["messages"].as_array().unwrap().len(), 9, "killed after {ms} ms");
        }
        let after = records::records(&ledger, run);
        assert_eq!(after[..before.len()], before, "a record was changed");
        assert!(consultations(&after).values().all(|count| *count == 1), "killed after {ms} ms");
        let again: Vec<String> = operators_called_from(&after, before.len())
            .into_iter()
            .filter(|id| answered.contains_key(id))
            .collect();
        assert_eq!(again, Vec::<String>::new(), "paid for twice");
        place.run(&["replay", run]).assert_code(0);
    }
}

#[test]
fn an_interruption_keeps_what_is_paid_and_says_how_to_go_on() {
    let place = slow();
    let child = place.start(&["convene", ".", "--topic", "subject.md"]);
    let ledger = place.path(".quorate/ledger.db");
    wait_until(Duration::from_secs(20), "the first round", || {
        ledger.is_file()
            && records::runs(&ledger)
                .first()
                .is_some_and(|(run, _)| !consultations(&records::records(&ledger, run)).is_empty())
    });
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ran = finish(child).assert_code(130);
    let run = place.only_run();
    ran.assert_stderr_contains(&format!("quorate resume {run}"));
    place.run(&["resume", &run]).assert_code(0);
}

#[test]
fn a_run_that_changed_underneath_does_not_go_on() {
    // X7
    let place = slow();
    place.run(&["convene", ".", "--topic", "subject.md", "--max-calls", "4"]).assert_code(3);
    let run = place.only_run();
    for (file, with) in
        [("personas/ana/PERSONA.md", "prompts"), ("subject.md", "input"), ("ASSEMBLY.md", "manifest")]
    {
        let before = place.read(file);
        place.write(
            file,
            before
                .replace("Sits here.", "Sits there.")
                .replace("You are", "You were")
                .replace("# A topic", "# Another")
                .replace("Decides.", "Did."),
        );
        place.run(&["resume", &run]).assert_code(5).assert_stderr_contains(with);
        place.write(file, before);
    }
    // X8: the cap that it was opened with holds until another is said.
    place.run(&["resume", &run]).assert_code(3);
    place.run(&["resume", &run, "--max-calls", "100"]).assert_code(0);
}

#[test]
fn what_is_not_due_is_not_convened() {
    // A7
    let talk = |lines: usize| "user: hello\n".repeat(lines);
    let due = |place: &TestDir, lines: usize, phase: &str| {
        place.write("talk.md", talk(lines));
        place.run(&["convene", ".", "--conversation", "talk.md", "--phase", phase, "--if-due"]).code
    };
    let place =
        council("defaults: {triggerHeuristic: every-n-messages}\nmetadata: {quorate: {everyMessages: 3}}\n");
    assert_eq!([due(&place, 1, "session"), due(&place, 3, "session"), due(&place, 4, "session")], [0, 6, 0]);
    let place = council("defaults: {triggerHeuristic: on-mode-change}\n");
    assert_eq!([due(&place, 1, "session"), due(&place, 9, "session"), due(&place, 9, "standing")], [0, 6, 0]);
    let place = council("defaults: {triggerHeuristic: periodic, triggerInterval_ms: 3600000}\n");
    assert_eq!([due(&place, 1, "session"), due(&place, 1, "session")], [0, 6]);
    let place = council("defaults: {triggerHeuristic: manual}\n");
    assert_eq!(due(&place, 1, "session"), 6);
    let place = council("defaults: {triggerHeuristic: 'custom:mine'}\n");
    assert_eq!([due(&place, 1, "session"), due(&place, 1, "session")], [0, 5]);
    assert_eq!(due(&council(""), 1, "session"), 0);
}

#[test]
fn a_tenants_overlays_are_woven_into_its_own_agents_alone() {
    // M10, A8
    let place = TestDir::new();
    place.write(
        "quorate.toml",
        "defaults.executor = \"script\"\n[executors.script]\nkind = \"script\"\npath = \"answers.json\"\n",
    );
    answers(&place, &json!({"_": advice(5, "Customer 4711 pays late.")}));
    for scope in ["", "tenants/acme/", "tenants/beta/"] {
        let who = scope.trim_matches('/').replace('/', "-");
        place.write(
            &format!("{scope}personas/bot/PERSONA.md"),
            format!("---\nschema: persona/v1\nname: bot\ntitle: Bot\ndescription: Helps.\nversion: 1.0.0\n---\nI am {who}.\n"),
        );
        place.write(
            &format!("{scope}operators/bot/OPERATOR.md"),
            "---\nid: bot\nname: Bot\npersona: ws://personas/bot\n---\n",
        );
    }
    let mentors = "---\nschema: assembly.workspace/v1\nname: mentors\ntitle: M\ndescription: M.\nversion: 1.0.0\nmode: advisory\n\
                   executor: ws://operators/bot\nmembers:\n  - {id: mm, persona: ws://personas/bot, role: M, phase: session}\n\
                   synthesis: {rules: [{id: all, kind: aggregate}]}\n---\n";
    place.write("tenants/acme/mentors/ASSEMBLY.md", mentors);
    place.write("talk.md", "user: hello\n");
    place.run(&["convene", "tenants/acme/mentors", "--conversation", "talk.md"]).assert_code(0);
    let woven = |below: &str| place.run_in(below, &["weave", "--persona", "bot"]).assert_code(0).stdout;
    assert_eq!(woven("tenants/acme"), "I am tenants-acme.\n\nCustomer 4711 pays late.\n");
    assert_eq!(
        (woven("tenants/beta"), woven("")),
        ("I am tenants-beta.\n".to_owned(), "I am .\n".to_owned())
    );
    let rooted = place.run(&["weave", "--persona", "bot", "--root", "tenants/beta"]).assert_code(0);
    assert_eq!(rooted.stdout, "I am tenants-beta.\n");
}

#[test]
fn a_plan_gives_the_reason_why_a_member_is_asked_later_or_not_at_all() {
    let no_class =
        "it votes only on proposals of the class money or legal; `--class` names the proposal's class";
    let standing = "its phase is standing, and this run asks the phase session";
    let sentinel =
        "its phase is sentinel, and this run asks the phase session; `--sentinel-first` asks it too";
    let after = "after the sentinels, unless they end the run";
    let again = "again in each further round, up to round 2, with the messages it has received";
    for (mode, bob, more, list, why) in [
        ("voting", "voteClass: [money, legal]", &[][..], "never", no_class),
        (
            "voting",
            "voteClass: [money]",
            &["--class", "tax"],
            "never",
            "it votes only on proposals of the class money, not tax",
        ),
        ("voting", "voteClass: []", &[], "never", "its `voteClass` is empty, so it votes on no proposal"),
        ("advisory", "phase: standing", &[], "never", standing),
        ("advisory", "phase: sentinel", &[], "never", sentinel),
        ("advisory", "", &[], "never", "it has no `phase`"),
        (
            "advisory",
            "phase: session, triggers: [sample]",
            &[],
            "never",
            "its triggers are sample, and this run's is manual",
        ),
        (
            "advisory",
            "phase: session, triggers: []",
            &[],
            "never",
            "its `triggers` are empty, so it is never asked",
        ),
        ("advisory", "phase: session", &["--sentinel-first"], "later", after),
        ("peer", "", &["--rounds", "2"], "later", again),
        ("hierarchy", "", &[], "later", "when ana has ended"),
    ] {
        let (flag, ana) = match mode {
            "voting" => ("--proposal", "voteClass: [tax]"),
            "advisory" => ("--conversation", "phase: sentinel"),
            "peer" => ("--topic", ""),
            _ => ("--request", "parent: bob"),
        };
        let place = TestDir::with("talk.md", "user: hello\n");
        write(&place, mode, &[("ana", ana), ("bob", bob)], "");
        answers(&place, &json!({}));
        let plan = ["convene", "ASSEMBLY.md", flag, "talk.md", "--dry-run", "--format", "json"];
        let plan = place.run(&[&plan[..], more].concat()).assert_code(0).json();
        let listed = plan[list].as_array().unwrap().iter().find(|entry| entry["member"] == "bob");
        assert_eq!(listed.map(|entry| &entry["when"]), Some(&json!(why)), "{mode} {bob} {more:?}\n{plan:#}");
    }
    // A talk of one round asks no member again.
    let place = TestDir::new();
    write(&place, "peer", &[("ana", ""), ("bob", "")], "");
    answers(&place, &json!({}));
    assert_eq!(convene(&place, "--topic", &["--dry-run"]).assert_code(0).json()["later"], json!([]));
}

#[test]
fn a_plan_states_what_keeps_its_run_from_asking() {
    let place = TestDir::new();
    write(&place, "voting", &[("ana", "voteClass: [tax]"), ("bob", "voteClass: [tax]")], "");
    answers(&place, &json!({}));
    let host = place.read("quorate.toml");
    let gone = "defaults.executor = \"gone\"\n[executors.gone]\ncommand = \"./gone.sh\"\n".to_owned();
    for (host, class, trust, said) in [
        (host.clone(), "", "1", "No member votes on it, so the run is refused."),
        (format!("{host}[budget]\ncalls = 1\n"), "tax", "1", "The budget allows 1 of the 2 calls"),
        (format!("early_decision = true\n{host}"), "tax", "1", "The vote ends as soon as the missing votes"),
        (gone.clone(), "tax", "1", "A run is refused now: executor `gone`: "),
        (gone, "tax", "0", "A run is refused now: quorate.toml is not trusted; it would run "),
    ] {
        place.write("subject.md", "# A new region\n");
        place.write("quorate.toml", &host);
        let mut arguments = vec!["convene", "ASSEMBLY.md", "--proposal", "subject.md", "--dry-run"];
        if !class.is_empty() {
            arguments.extend(["--class", class]);
        }
        let mut command = place.command(&arguments);
        let plan = finish(command.env("QUORATE_TRUST", trust).spawn().unwrap()).assert_code(0).stdout;
        let plan = plan.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(plan.contains(said), "`{said}` is not in\n{plan}");
    }
    // As does the estimate of a review.
    place.write("quorate.toml", "[budget]\ncalls = 3\n");
    for (more, said) in [
        (&[][..], "The budget allows 3 of the 9 calls: the members after them are not asked."),
        (&["--tiered"], "Tier 2 (type unclassified) is not reviewed with `--tiered`."),
    ] {
        let estimate = place.run(&[&["review", "subject.md", "--dry-run"], more].concat()).assert_code(0);
        estimate.assert_stdout_contains(said);
    }
}

#[test]
fn what_an_escape_hides_is_redacted_too() {
    // X10
    let place = council("");
    place.write("council.yaml", "deliberators:\n  - {id: a, prompt: builtin:skeptic}\n  - {id: b, prompt: builtin:evidence}\n  - {id: c, prompt: builtin:strategy}\nadjudicator: {prompt: builtin:adjudicator}\nlogging: {redact_patterns: ['M\u{fc}ller']}\n");
    place.write("talk.jsonl", "{\"role\": \"user\", \"content\": \"I am M\\u00fcller\"}\n");
    let plan = place
        .run(&["convene", ".", "--conversation", "talk.jsonl", "--dry-run", "--format", "json"])
        .assert_code(0)
        .json();
    let prompt = plan["first"][0]["prompt"].as_str().unwrap();
    assert!(prompt.contains("I am [REDACTED]") && !prompt.contains("Müller"), "{prompt}");
}

#[test]
fn a_vote_is_not_overridden_as_a_review_is() {
    let place = TestDir::new();
    write(&place, "voting", &[("ana", "")], "");
    answers(&place, &json!({"ana": vote_answer("yes")}));
    convene(&place, "--proposal", &[]).assert_code(0);
    place
        .run(&["override", &place.only_run(), "--by", "ada", "--verdict", "revise", "--reason", "x"])
        .assert_code(64);
}

#[test]
fn formats_for_findings_have_no_words_for_an_assembly() {
    let place = council("");
    place.write("talk.md", "user: hello\n");
    for format in ["sarif", "github", "gitlab"] {
        let ran = place.run(&["convene", ".", "--conversation", "talk.md", "--format", format]);
        let ran = ran.assert_code(64);
        ran.assert_stderr_contains(&format!("invalid value '{format}'"));
        assert!(ran.stdout.is_empty() && !place.path(".quorate").exists(), "{ran:?}");
    }
}
