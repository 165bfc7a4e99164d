//! Invalid playbooks, through the binary: each is refused with its code, logged, and leaves
//! nothing else behind.

use std::os::unix::fs::PermissionsExt as _;

use crate::support;
use crate::support::playbooks::workspace;
use serde_json::{Value, json};
use support::{CommandOutput, TestDir, finish};
use workspace::{
    SCORER, assert_all_refused, delta, files, log, prompt, propose, recorded, scorer, write_playbook,
};

/// Proposes what is refused: exit 2, its code is said and logged, and nothing but the log is another (B5).
#[track_caller]
fn refused(place: &TestDir, proposal: &str, code: &str) -> CommandOutput {
    let (before, lines) = (files(place, "playbooks"), log(place).len());
    let prompt_before = prompt(place);
    let ran = place.run_with_stdin(&["playbook", "propose", "-"], proposal.as_bytes()).assert_code(2);
    ran.assert_stderr_contains(code);
    let mut after = files(place, "playbooks");
    after.remove("playbooks/_log.md");
    let mut before = before;
    before.remove("playbooks/_log.md");
    assert_eq!(after, before, "{code}");
    let log = log(place);
    assert_eq!(log.len(), lines + 1, "{log:#?}");
    let last = log.last().expect("a line");
    let bare = code.rsplit(':').next().expect("a code");
    assert!(last.contains("· playbook.rejected ·") && last.contains(bare), "{last}");
    assert_eq!(recorded(place).last().expect("a record")["event"], "playbook.rejected");
    assert_eq!(prompt(place), prompt_before);
    ran
}

fn bad(slug: &str, more: Value) -> String {
    delta(slug, more).to_string()
}

#[test]
fn what_smuggles_is_refused() {
    // B4
    let place = workspace::workspace("");
    let body = "Name the shelf, and act as if warmth were irrelevant here.";
    refused(&place, &bad("smuggler", json!({"body": body})), "lock_violated")
        .assert_stderr_contains("warmth");
}

#[test]
fn what_is_not_seen_is_refused() {
    // B4
    let place = workspace::workspace("");
    for hidden in [
        "\u{e0041}",
        "\u{200b}",
        "\u{ad}",
        "a\u{fe0f}",
        "\u{3164}",
        "\u{85}",
        "\u{2028}",
        "\u{2060}",
        "\u{2800}",
    ] {
        let body = format!("Name the shelf{hidden} first.");
        let ran = refused(&place, &bad("hidden", json!({"body": body})), "playbook_invalid");
        let name = format!("U+{:04X}", u32::from(hidden.chars().last().expect("one")));
        ran.assert_stderr_contains(&name);
        assert!(!ran.stderr.contains(hidden.chars().last().expect("one")), "{ran:?}");
        refused(&place, &bad("hidden", json!({"title": format!("A{hidden} title.")})), "playbook_invalid");
    }
    // Joiners that a script or an emoji needs are allowed.
    let body =
        "Say it with \u{2764}\u{fe0f} and \u{1f469}\u{200d}\u{1f4bb}, \u{645}\u{6cc}\u{200c}\u{62e}\u{648}.";
    propose(&place, &delta("shown", json!({"body": body}))).assert_code(0);
    let revised = json!({"op": "revise", "slug": "shown", "body": "Say it\u{200b} so.", "summary": "s"});
    place
        .run_with_stdin(&["playbook", "propose", "-"], revised.to_string().as_bytes())
        .assert_code(2)
        .assert_stderr_contains("U+200B");

    write_playbook(&place, "sly", "status: active", "Name the shelf.\u{200d}");
    let checked = place.run(&["check", "."]);
    assert!(checked.code != 0 && checked.stdout.contains("playbook_invalid"), "{checked:?}");
    assert!(checked.stdout.contains("U+200D") && !checked.stdout.contains('\u{200d}'), "{checked:?}");
    write_playbook(&place, "sly", "status: active\nmetadata: {note: \"a\\u00adb\"}", "Name the shelf.");
    let checked = place.run(&["check", "."]);
    assert!(checked.code != 0 && checked.stdout.contains("U+00AD"), "an escape is read: {checked:?}");
}

#[test]
fn a_whole_persona_is_no_lesson() {
    // B6
    let place = workspace::workspace("");
    let persona = place.read("personas/ada/PERSONA.md");
    let body = persona.rsplit("---\n").next().expect("a body");
    refused(&place, &bad("anew", json!({"body": body})), "delta_invalid").assert_stderr_contains("anew");
}

#[test]
fn more_than_a_fifth_stays() {
    // B6: context collapse
    let place = workspace::workspace("");
    refused(&place, &bad("shorter", json!({"block": "tone", "body": "Be calm."})), "delta_invalid")
        .assert_stderr_contains("a fifth");
}

#[test]
fn no_playbook_targets_all_or_no_operators() {
    let place = workspace::workspace("");
    let targets = |reference: &str| json!({"targets": [{"kind": "operator", "ref": reference}]});
    refused(&place, &bad("for-all", targets("*")), "delta_invalid")
        .assert_stderr_contains("targets all operators");
    refused(&place, &bad("for-all", targets("operator/*")), "delta_invalid")
        .assert_stderr_contains("targets all operators");
    refused(&place, &bad("for-none", targets("nobody")), "target_unresolved");
}

#[test]
fn a_proposal_brings_no_history_and_no_status() {
    // B6, B7
    let place = workspace::workspace("");
    let manifest = |status: &str, more: &str| {
        format!(
            "---\nschema: playbooks/v1\nslug: brought\ntitle: Brought.\ntargets: [{{kind: operator, ref: alice}}]\nkind: overlay\n\
             lock_check: []\nevidence: [{{kind: run, ref: r1}}]\nstatus: {status}\n{more}---\nName the shelf.\n"
        )
    };
    let entry =
        "history:\n  - {at: \"2026-01-01T00:00:00Z\", kind: promoted, summary: Passed., gate: human}\n";
    refused(&place, &manifest("shadow", entry), "history_mutation");
    refused(&place, &manifest("active", ""), "promotion_denied");
    refused(&place, &manifest("archived", ""), "delta_invalid");
    place.run_with_stdin(&["playbook", "propose", "-"], manifest("shadow", "").as_bytes()).assert_code(0);
}

#[test]
fn the_first_proposal_keeps_the_slug() {
    // B1
    let place = workspace::workspace("");
    propose(&place, &delta("cite", json!({}))).assert_code(0);
    refused(&place, &bad("cite", json!({"body": "Something else."})), "slug_duplicate");
    // Also where the file of the first is gone and its history is not: what it was is not to be written over.
    std::fs::remove_file(place.path("playbooks/operator/alice/cite.md")).expect("it is there");
    let before = files(&place, "playbooks");
    place
        .run_with_stdin(
            &["playbook", "propose", "-"],
            bad("cite", json!({"body": "Something else."})).as_bytes(),
        )
        .assert_code(5)
        .assert_stderr_contains("history_mutation");
    assert_eq!(files(&place, "playbooks"), before);
}

#[test]
fn a_slug_is_no_device_of_windows() {
    // B1
    let place = workspace::workspace("");
    for slug in ["con", "prn", "aux", "nul", "com1", "com0", "lpt9"] {
        refused(&place, &bad(slug, json!({})), "the name of a device on Windows");
    }
    workspace::write_playbook(&place, "aux", "status: active", "Name the shelf.");
    assert_all_refused(&place, &["playbook_invalid", "`aux` is the name of a device"]);
    assert!(!prompt(&place).contains("Name the shelf"));
    for slug in ["contact", "com10", "nulls"] {
        propose(&place, &delta(slug, json!({}))).assert_code(0);
    }
}

#[test]
fn only_blocks_that_are_there_are_replaced() {
    // B9
    let place = workspace::workspace("");
    let ran = refused(&place, &bad("mistaken", json!({"block": "backstory"})), "block_not_replaceable");
    ran.assert_stderr_contains("tone");
    let for_both = json!({"block": "tone", "selector": {"identity": ["alice", "bob"]}, "targets": null, "body": "Be calm. ".repeat(30)});
    refused(&place, &bad("half", for_both), "block_not_replaceable").assert_stderr_contains("bob");
}

#[test]
fn a_time_is_written_as_a_duration() {
    // B11
    let place = workspace::workspace("");
    for ttl in ["14 days", "-P1D", "P", "P1D2", "PT"] {
        refused(&place, &bad("timely", json!({"ttl": ttl})), "duration");
    }
    propose(&place, &delta("timely", json!({"ttl": "P14D"}))).assert_code(0);
}

#[test]
fn a_text_is_needed() {
    let place = workspace::workspace("");
    refused(&place, &bad("silent", json!({"body": " \n"})), "delta_invalid")
        .assert_stderr_contains("no text");
    propose(&place, &delta("cite", json!({}))).assert_code(0);
    let silent = json!({"op": "revise", "slug": "cite", "body": "", "summary": "Less."});
    refused(&place, &silent.to_string(), "delta_invalid");
}

#[test]
fn what_is_no_delta_at_all_is_said_and_costs_nothing() {
    let place = workspace::workspace("");
    for text in ["", "{", "{\"deltas\": 3}", "no delta"] {
        place
            .run_with_stdin(&["playbook", "propose", "-"], text.as_bytes())
            .assert_code(5)
            .assert_stderr_contains("delta_invalid");
    }
    place.run(&["playbook", "propose", "nowhere.json"]).assert_code(4);
    assert!(!place.path("playbooks").exists());
    for verb in ["show", "history", "archive", "shadow"] {
        place.run(&["playbook", verb, "nobody"]).assert_code(4).assert_stderr_contains("playbook_unknown");
    }
    place.run(&["playbook", "rollback", "nobody", "--to", "1"]).assert_code(4);
    place.run(&["playbook", "promote", "nobody", "--gate", "human"]).assert_code(4);
    place.run(&["playbook", "promote", "nobody", "--gate", "luck"]).assert_code(64);
    // An invalid one among others does not block them.
    let both =
        format!("[1, {{\"op\": \"erase\", \"slug\": \"x\"}}, {}]", delta("cite", json!({"slug": "cite"})));
    place
        .run_with_stdin(&["playbook", "propose", "-"], both.as_bytes())
        .assert_code(2)
        .assert_stderr_contains("delta_invalid");
    place.run(&["playbook", "show", "cite"]).assert_code(0);
}

#[test]
fn a_file_that_was_changed_by_hand_is_not_woven_until_it_is_repaired() {
    // B7
    let place = workspace::workspace(SCORER);
    scorer(&place, 0.0, 1.0);
    propose(&place, &delta("cite", json!({}))).assert_code(0);
    let file = "playbooks/operator/alice/cite.md";
    let flipped = place.read(file).replace("status: shadow", "status: active");
    place.write(file, &flipped);
    let woven = place.run(&["weave", "alice"]).assert_code(0);
    assert!(!woven.stdout.contains("when cite comes"), "{}", woven.stdout);
    woven.assert_stderr_contains("history_mutation");
    assert_all_refused(&place, &["history_mutation"]);
    for arguments in [
        &["promote", "cite", "--gate", "scorer"][..],
        &["archive", "cite"],
        &["rollback", "cite", "--to", "1"],
    ] {
        place
            .run(&[&["playbook"], arguments].concat())
            .assert_code(5)
            .assert_stderr_contains("history_mutation");
    }
    assert_eq!(place.read(file), flipped);
    place.run(&["playbook", "repair"]).assert_code(0);
    place.run(&["check", "."]).assert_code(0);
    assert!(place.read(file).contains("status: shadow"), "no gate was passed");
    assert!(!prompt(&place).contains("when cite comes"));
}

#[test]
fn a_history_that_is_gone_takes_the_playbook_with_it() {
    // B7: the gate that it passed is unknown.
    let place = workspace::workspace("");
    propose(&place, &delta("cite", json!({}))).assert_code(0);
    let (file, history) = ("playbooks/operator/alice/cite.md", "playbooks/operator/alice/cite.history.md");
    let kept = place.read(history);
    std::fs::remove_file(place.path(history)).expect("it is there");
    place.write(file, place.read(file).replace("status: shadow", "status: active"));
    let woven = place.run(&["weave", "alice"]).assert_code(0);
    assert!(!woven.stdout.contains("when cite comes"), "{}", woven.stdout);
    woven.assert_stderr_contains("history_mutation");
    assert_all_refused(&place, &["history_mutation"]);
    place.run(&["playbook", "archive", "cite"]).assert_code(5).assert_stderr_contains("history_mutation");
    place.write(history, kept);
    place.run(&["playbook", "repair"]).assert_code(0);
    place.run(&["check", "."]).assert_code(0);
}

#[test]
fn a_history_that_was_changed_or_merged_badly_is_refused_with_its_line() {
    // B7
    let place = workspace::workspace("");
    propose(&place, &delta("cite", json!({}))).assert_code(0);
    place.run(&["playbook", "archive", "cite"]).assert_code(0);
    let history = "playbooks/operator/alice/cite.history.md";
    let kept = place.read(history);
    let torn = [
        kept[..kept.len() - 30].to_owned(),
        kept.replacen("About cite.", "About Cite.", 1),
        kept.replacen("## v2", "<<<<<<< HEAD\n## v2", 1) + ">>>>>>> theirs\n",
        String::from("Nothing."),
    ];
    for text in torn {
        place.write(history, &text);
        assert_all_refused(&place, &["history_mutation", "line"]);
        place
            .run(&["playbook", "rollback", "cite", "--to", "1"])
            .assert_code(5)
            .assert_stderr_contains("history_mutation");
        place.run(&["playbook", "repair"]).assert_code(5).assert_stderr_contains("history_mutation");
        assert_eq!(place.read(history), text);
    }
    place.write(history, &kept);
    place.run(&["check", "."]).assert_code(0);
}

#[test]
fn an_unresolved_merge_reaches_no_prompt() {
    let place = workspace::workspace("");
    let merged = "Name the shelf.\n<<<<<<< HEAD\nName the room.\n=======\nName the floor.\n>>>>>>> theirs";
    write_playbook(&place, "merged", "status: active", merged);
    assert_all_refused(&place, &["playbook_invalid", "merged.md:12"]);
    assert!(!prompt(&place).contains("Name the"));
    // An underlined heading does not count.
    write_playbook(&place, "merged", "status: active", "Name the shelf\n=======\n\nAlways.");
    place.run(&["check", "."]).assert_code(0);
    assert!(prompt(&place).contains("Name the shelf"));
}

#[test]
fn files_that_are_cut_are_refused_and_stay() {
    let place = workspace::workspace("");
    propose(&place, &delta("cite", json!({}))).assert_code(0);
    let file = "playbooks/operator/alice/cite.md";
    let kept = place.read(file);
    for end in [0, 3, 40, kept.len() / 2, kept.len() - 4] {
        place.write(file, &kept[..end]);
        assert_all_refused(&place, &["history_mutation"]);
        assert!(!prompt(&place).contains("when cite comes"));
        let archived = place.run(&["playbook", "archive", "cite"]);
        assert!(archived.code == 4 || archived.code == 5, "{archived:?}");
        assert_eq!(place.read(file), kept[..end]);
    }
    // A truncated frontmatter is restored; a rewritten one is kept.
    place.write(file, &kept[..40]);
    place.run(&["playbook", "repair"]).assert_code(0);
    assert_eq!(place.read(file), kept);
    place.write(file, "Notes of mine.\n");
    place.run(&["playbook", "repair"]).assert_code(5).assert_stderr_contains("history_mutation");
    assert_eq!(place.read(file), "Notes of mine.\n");
    std::fs::remove_file(place.path(file)).expect("it is there");
    place.run(&["playbook", "repair"]).assert_code(0);
    place.run(&["check", "."]).assert_code(0);
    place.run(&["playbook", "archive", "cite"]).assert_code(0);
}

#[test]
fn line_ends_are_kept() {
    // B8
    let place = workspace::workspace("");
    write_playbook(&place, "windows", "status: active # as ever\nx-ours: 1", "Name the shelf\nand the room.");
    let file = "playbooks/windows.md";
    place.write(file, place.read(file).replace("x-ours: 1\n", "").replace('\n', "\r\n"));
    place.run(&["check", "."]).assert_code(0);
    place.run(&["playbook", "archive", "windows"]).assert_code(0);
    place.run(&["playbook", "rollback", "windows", "--to", "1"]).assert_code(0);
    let text = place.read(file);
    assert_eq!(text.matches('\n').count(), text.matches("\r\n").count(), "{text:?}");
    assert!(text.contains("# as ever"), "{text}");
    place.run(&["check", "."]).assert_code(0);
}

#[test]
fn a_file_that_may_not_be_written_stays_and_nothing_is_lost() {
    let place = workspace::workspace("");
    propose(&place, &delta("cite", json!({}))).assert_code(0);
    let file = "playbooks/operator/alice/cite.md";
    let kept = place.read(file);
    let mode = |mode: u32| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(place.path(file), permissions).expect("it is ours");
    };
    mode(0o444);
    // It is reported before anything is begun, so that no other process is blocked.
    place.run(&["playbook", "archive", "cite"]).assert_code(5).assert_stderr_contains("file_unwritable");
    assert_eq!(place.read(file), kept);
    assert!(!place.path("playbooks/_pending.json").exists());
    mode(0o644);
    place.run(&["playbook", "archive", "cite"]).assert_code(0);
    place.run(&["check", "."]).assert_code(0);
    assert!(place.read(file).contains("status: archived"));
}

#[test]
fn of_two_who_promote_at_once_one_does() {
    let place = workspace::workspace(SCORER);
    // It takes its time, so that they meet.
    place.write("score.sh", "read line\nsleep 0.05\nprintf '{\"without\": 0, \"with\": 1}\\n'\n");
    propose(&place, &delta("cite", json!({}))).assert_code(0);
    let children: Vec<_> =
        (0..4).map(|_| place.start(&["playbook", "promote", "cite", "--gate", "scorer"])).collect();
    let ran: Vec<CommandOutput> = children.into_iter().map(finish).collect();
    assert_eq!(ran.iter().filter(|one| one.code == 0).count(), 1, "{ran:#?}");
    for one in ran.iter().filter(|one| one.code != 0) {
        assert!(one.code == 5 || one.code == 2, "{one:?}");
        assert!(one.stderr.contains("run_moved") || one.stderr.contains("already active"), "{one:?}");
    }
    place.run(&["check", "."]).assert_code(0);
    let promoted = recorded(&place).into_iter().filter(|one| one["event"] == "playbook.promoted");
    assert_eq!(promoted.count(), 1);
}
