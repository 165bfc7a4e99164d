//! Whatever is in the material: an answer that fits, and quotes that are there.

use super::*;

const FORMS: [(Wanted, PartKind); 4] = [
    (Wanted::Advice, PartKind::Conversation),
    (Wanted::Advice, PartKind::Request),
    (Wanted::Ballot, PartKind::Proposal),
    (Wanted::Message, PartKind::Topic),
];

fn all_answer(text: &str) {
    for (wanted, kind) in FORMS {
        for persona in [Some(critic()), Some(sentinel()), Some(ciso()), Some(cfo()), Some(json!(text)), None]
        {
            let parts = [
                Part::new(kind, "a.md", text),
                Part::new(PartKind::Transcript, "", text),
                Part::new(PartKind::ChildrenOutputs, "", text),
                Part::new(PartKind::Overlays, "", text),
            ];
            let said = ask(wanted, "m", "round2", persona.as_ref(), &parts);
            quotes(&said, text);
        }
    }
}

#[test]
fn any_text_is_answered() {
    for text in [
        "",
        " \n\r\n\t",
        "\u{feff}\u{0}\u{202e}",
        "user:",
        "user: \nassistant: \n",
        "assistant: You're right\r\nuser: I want to die\r\n",
        "---\n---\n---",
        "```\nplaintext passwords\n",
        "| plaintext | passwords |\n|---|---|\n| kill myself | vote yes |",
        "“Ünïcödé” 你好。世界 plaintext passwords 你好 vote yes \u{1F600}\u{1F600}",
        "I’ve got İstanbul plaintext PASSWORDS… ‘kill myself’",
        "{\"role\":\"user\",\"content\":5}",
        "[{\"round\":-1,\"from\":\"m\",\"text\":null},{\"from\":\"x\",\"text\":\"consent\"}]",
        "1. 2. 3. 4.5.6 .... ?!?! a.b.c",
    ] {
        all_answer(text);
    }
}

#[test]
fn any_persona_is_read() {
    let part = Part::new(PartKind::Proposal, "p.md", "We sell plaintext passwords.");
    for persona in [
        json!(null),
        json!([1, 2]),
        json!({"boundaries": {"refuses": "x", "defers": [5, null], "redirects": [{}, 3]}, "voice": 5, "body": {}}),
        json!({"boundaries": {"refuses": ["", " ", "---", "\u{0}", "no", "without"]}, "title": "—", "body": "#\n\n- \n\n****"}),
        json!({"body": "- Don't\n- don’t\n- **\n## Asks\n- ?\n- Why?\nYou look for"}),
        json!({"body": "é".repeat(40_000), "boundaries": {"refuses": ["x".repeat(5_000)]}}),
        json!({"body": "## Watches for\n\n".to_owned() + &"- plaintext passwords of kind x\n".repeat(2_000)}),
    ] {
        ask(Wanted::Ballot, "\u{202e}--", "", Some(&persona), std::slice::from_ref(&part));
    }
}

#[test]
fn a_megabyte_is_answered() {
    let sentence = "We store plaintext passwords and always guarantee 40% growth, vote yes, I want to die. ";
    let talk = "user: is it?\nassistant: What a brilliant idea!\n";
    for text in
        [sentence.repeat(12_000), talk.repeat(20_000), "a".repeat(1_000_000), "plaintext ".repeat(100_000)]
    {
        let conversation = Part::new(PartKind::Conversation, "a.md", text.as_str());
        quotes(&ask(Wanted::Advice, "m", "", Some(&critic()), &[conversation]), &text);
        let proposal = Part::new(PartKind::Proposal, "a.md", text.as_str());
        quotes(&ask(Wanted::Ballot, "m", "", Some(&ciso()), &[proposal]), &text);
    }
}
