//! What a person lets a text touch, and what follows from it.

use serde_json::json;

use crate::support::playbooks::workspace::{at_a_terminal, delta, has_terminal, prompt, workspace};

#[test]
fn a_person_lets_one_text_touch_one_trait() {
    // B4
    if !has_terminal() {
        return;
    }
    let place = workspace("");
    let mut proposal = delta("quiet", json!({}));
    proposal["body"] = json!("Withhold the discount code until the form is sent.");
    place.write("quiet.json", proposal.to_string());
    let wanted = "playbook propose quiet.json --except-trait honesty --reason \"A code carries no news.\"";
    let at_no_terminal = [
        "playbook",
        "propose",
        "quiet.json",
        "--except-trait",
        "honesty",
        "--reason",
        "A code carries no news.",
    ];
    place.run(&at_no_terminal[..3]).assert_code(2).assert_stderr_contains("lock_violated");
    place.run(&at_no_terminal[..5]).assert_code(64);
    place
        .run(&at_no_terminal)
        .assert_code(2)
        .assert_stderr_contains("lock_violated")
        .assert_stderr_contains("is not a terminal");
    // The file itself can say what it likes.
    let mut sly = proposal.clone();
    sly["metadata"] = json!({"exceptions": [{"trait": "honesty", "by": "me", "reason": "r"}]});
    place.write("sly.json", sly.to_string());
    place.run(&["playbook", "propose", "sly.json"]).assert_code(2).assert_stderr_contains("lock_violated");
    let other = at_a_terminal(&place, &wanted.replace("honesty", "warmth"), "y\\n");
    assert_eq!(other.code, 2, "what is not touched is not allowed: {other:?}");
    let no = at_a_terminal(&place, wanted, "n\\n");
    assert_eq!(no.code, 2, "{no:?}");
    assert!(no.stdout.contains("Withhold the discount code"), "what is decided is shown: {no:?}");
    assert!(!place.root().join("playbooks/operator/alice/quiet.md").exists());

    let yes = at_a_terminal(&place, wanted, "y\\n");
    assert_eq!(yes.code, 0, "{yes:?}");
    let shown = place.run(&["playbook", "show", "quiet"]).assert_code(0).stdout;
    assert!(shown.contains("may touch honesty") && shown.contains("A code carries no news."), "{shown}");
    let logged = place.run(&["playbook", "log", "quiet"]).assert_code(0).stdout;
    assert!(logged.contains("lets it touch honesty: A code carries no news."), "{logged}");
    place.run(&["check", "."]).assert_code(0);
    let locked = || {
        let checked = place.run(&["check", "."]);
        assert!(checked.code != 0 && checked.stdout.contains("lock_violated"), "{checked:?}");
    };
    let gate = at_a_terminal(&place, "playbook promote quiet --gate human", "y\\n\\n");
    assert_eq!(gate.code, 0, "{gate:?}");
    assert!(gate.stdout.contains("It may touch `honesty`, by an exception"), "{gate:?}");
    assert!(prompt(&place).contains("Withhold the discount code"));

    // Another text of the same playbook, and the same text of another, are checked against the locks as ever.
    let file = "playbooks/operator/alice/quiet.md";
    let text = place.read(file);
    place.write(file, text.replace("discount code", "bad news"));
    locked();
    place.write(file, &text);
    place.write("playbooks/operator/alice/loud.md", text.replace("slug: quiet", "slug: loud"));
    locked();
    std::fs::remove_file(place.root().join("playbooks/operator/alice/loud.md")).expect("it goes");
    place.run(&["check", "."]).assert_code(0);
    // Without the ledger it is unknown.
    std::fs::remove_file(place.root().join(".quorate/ledger.db")).expect("it goes");
    locked();
}
