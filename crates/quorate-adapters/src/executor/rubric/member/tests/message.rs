//! Messages of peers, and whole conversations among them.

use super::*;

const TOPIC: &str = "# Campaign\n\nWe sell the personal data of subscribers to partners. The slogan is new. We guarantee that sales double.";

fn legal() -> Json {
    json!({"title": "Legal Critic", "boundaries": {"refuses": ["selling-personal-data"]}, "body": "You watch for missing consent."})
}

fn brand() -> Json {
    json!({"title": "Brand Critic", "body": "## Watches for\n\n- slogans\n- consent\n\n## Asks\n\n- What does the logo say?\n"})
}

fn visual() -> Json {
    json!({"title": "Visual Critic", "body": "You look for contrast and typography."})
}

fn say(member: &str, persona: &Json, round: usize, heard: &[Json]) -> Json {
    let heard = Json::Array(heard.to_vec()).to_string();
    let parts = [Part::new(PartKind::Topic, "t.md", TOPIC), Part::new(PartKind::Transcript, "", heard)];
    ask(Wanted::Message, member, &format!("round{round}"), Some(persona), &parts)
}

fn said(round: usize, from: &str, text: &Json) -> Json {
    json!({"round": round, "from": from, "to": "*", "text": text})
}

#[test]
fn the_first_round_says_the_strongest_concern() {
    // P3
    let first = say("legal", &legal(), 1, &[]);
    assert_eq!(
        (&first["objection"], &first["pass"], &first["addressedTo"]),
        (&json!(true), &json!(false), &json!("*"))
    );
    assert!(first["message"].as_str().expect("text").contains("“selling personal data”"), "{first}");
    let watched = say("brand", &brand(), 1, &[]);
    assert_eq!(watched["objection"], false);
    assert!(watched["message"].as_str().expect("text").contains("“slogans”"), "{watched}");
    assert_eq!(say("visual", &visual(), 1, &[])["pass"], true);
}

#[test]
fn an_objection_is_dropped_when_somebody_takes_it_up() {
    let first = said(1, "legal", &say("legal", &legal(), 1, &[])["message"]);
    for (text, still) in [
        ("Then we stop selling personal data.", false),
        ("Selling personal data is no problem.", true),
        ("I object: selling personal data is wrong.", true),
        ("I like the slogan.", true),
    ] {
        let heard = [first.clone(), said(2, "copy", &json!(text))];
        let next = say("legal", &legal(), 3, &heard);
        assert_eq!(next["objection"], still, "{text}: {next}");
        if !still {
            assert_eq!(next["addressedTo"], "copy");
            let heard = [&heard[..], &[said(3, "legal", &next["message"])]].concat();
            let later = say("legal", &legal(), 4, &heard);
            assert!(!later["message"].as_str().expect("text").contains("personal data"), "{later}");
        }
    }
}

#[test]
fn a_message_that_touches_its_words_is_answered_once() {
    let heard = [
        said(1, "brand", &say("brand", &brand(), 1, &[])["message"]),
        said(1, "copy", &json!("What about consent?")),
    ];
    let reply = say("brand", &brand(), 2, &heard);
    assert_eq!(reply["addressedTo"], "copy", "{reply}");
    assert!(reply["message"].as_str().expect("text").contains("“consent”"), "{reply}");
    let heard = [&heard[..], &[said(2, "brand", &reply["message"])]].concat();
    assert_ne!(say("brand", &brand(), 3, &heard)["addressedTo"], "copy");
}

#[test]
fn peers_come_to_an_end() {
    // P1: nobody objects to one thing more than twice, and all pass in the end.
    let peers = [
        ("legal", legal()),
        ("brand", brand()),
        ("visual", visual()),
        ("critic", critic()),
        ("ciso", ciso()),
        ("cfo", cfo()),
    ];
    let mut heard: Vec<Json> = Vec::new();
    let mut objections = std::collections::BTreeMap::<&str, usize>::new();
    for round in 1..=20 {
        let mut passed = 0;
        let mut messages = Vec::new();
        for (member, persona) in &peers {
            let next = say(member, persona, round, &heard);
            passed += usize::from(next["pass"] == true);
            *objections.entry(member).or_default() += usize::from(next["objection"] == true);
            messages.push(said(round, member, &next["message"]));
        }
        heard.extend(messages);
        if passed == peers.len() {
            assert!(round > 2 && round < 12, "{round}");
            assert_eq!(objections["legal"], 2);
            return;
        }
    }
    panic!("{heard:#?}");
}

#[test]
fn who_cannot_see_its_own_messages_stops_all_the_same() {
    let objects = |round: usize| say("legal", &legal(), round, &[])["objection"] == true;
    assert_eq!([1, 2, 3, 4].map(objects), [true, true, false, false]);
    assert_eq!(say("brand", &brand(), 2, &[])["pass"], true);
}
