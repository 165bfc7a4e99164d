//! Recall corpus of locked traits: `corpus.json` lists a trait, whether it is a pattern, a text, the expected result and the
//! hit of the matcher (the layer and the words of the best hit). Rows whose hit is not the expected result are the known limits.

use quorate_text::locks::{Matcher, Wanted};
use serde_json::{Value, json};

#[test]
fn guard_each_text_of_the_corpus_gives_its_hit() {
    let rows: Vec<Value> = serde_json::from_str(include_str!("corpus.json")).unwrap();
    assert!(rows.len() >= 290, "only {} rows", rows.len());
    let mut changed = Vec::new();
    for row in &rows {
        let (text, locked) = (row["text"].as_str().unwrap(), row["trait"].as_str().unwrap());
        let wanted = match row["mode"].as_str().unwrap() {
            "substring" => Wanted::Text(locked),
            "regex" => Wanted::Pattern(locked),
            other => panic!("unknown match mode `{other}`"),
        };
        let hits = Matcher::new(&[wanted]).unwrap().check(text);
        let now = hits
            .first()
            .map_or(Value::Null, |hit| json!({"layer": hit.layer.as_str(), "words": text[hit.span.clone()]}));
        if now != row["today"] {
            changed.push(format!("{row}: now {now}"));
        }
    }
    assert!(changed.is_empty(), "{} of {} rows:\n{}", changed.len(), rows.len(), changed.join("\n"));
}
