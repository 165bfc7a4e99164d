//! Recall corpus of locked traits: `corpus.json` lists a trait, its match mode, a text, the expected result and the result of
//! today's matcher (the layer and the words of the best hit). The rows come from the tables of this crate's tests.

use quorate_manifest::assembly::MatchMode;
use quorate_protocol::locks::{LockedTrait, Locks};
use serde_json::{Value, json};

use crate::evasion::{TRAITS, locks};

#[test]
fn guard_each_text_of_the_corpus_gives_todays_result() {
    let rows: Vec<Value> = serde_json::from_str(include_str!("corpus.json")).unwrap();
    assert!(rows.len() >= 290, "only {} rows", rows.len());
    let mut changed = Vec::new();
    for row in &rows {
        let text = row["text"].as_str().unwrap();
        let declared = match row["mode"].as_str().unwrap() {
            "substring" => MatchMode::Substring,
            "regex" => MatchMode::Regex,
            other => panic!("unknown match mode `{other}`"),
        };
        let traits = [LockedTrait { text: row["trait"].as_str().unwrap().to_owned(), declared }];
        let hits = Locks::compile(&traits, declared).unwrap().check(text);
        let now = hits
            .first()
            .map_or(Value::Null, |hit| json!({"layer": hit.layer.as_str(), "words": text[hit.span.clone()]}));
        if now != row["today"] {
            changed.push(format!("{row}: now {now}"));
        }
        let is_hit = row["today"] != Value::Null;
        if is_hit != (row["expected"] == "hit") {
            println!("today's matcher is wrong: {row}");
        }
    }
    assert!(changed.is_empty(), "{} of {} rows:\n{}", changed.len(), rows.len(), changed.join("\n"));
}

#[test]
fn guard_no_benign_line_is_a_hit() {
    let locks = locks(&TRAITS);
    let hits: Vec<&str> =
        include_str!("benign.txt").lines().filter(|line| !locks.check(line).is_empty()).collect();
    assert_eq!(hits, [""; 0]);
}
