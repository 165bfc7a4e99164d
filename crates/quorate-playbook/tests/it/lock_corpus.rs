//! Recall corpus of playbook locks: `locks/corpus.json` lists a text, the traits that it should violate (`null`: at least one) and
//! today's violations with their causes and excerpts. The texts come from the `.tsv` files and the tables of `locks.rs`; three
//! texts with invisible characters are missing, since a playbook cannot contain them.

use quorate_playbook::lock::lexicon;
use quorate_playbook::lock::{Cause, Locks};
use serde_json::{Value, json};

#[test]
fn guard_each_text_of_the_corpus_gives_todays_violations() {
    let rows: Vec<Value> = serde_json::from_str(include_str!("locks/corpus.json")).expect("JSON");
    assert!(rows.len() >= 750, "only {} rows", rows.len());
    let locks = Locks::new(lexicon().to_vec());
    let (mut changed, mut wrong) = (Vec::new(), 0);
    for row in &rows {
        let violations = locks.check(row["text"].as_str().expect("a text"));
        let now: Vec<Value> = violations
            .iter()
            .map(|violation| match &violation.cause {
                Cause::Phrase(phrase) => {
                    json!({"trait": violation.id, "phrase": phrase, "excerpt": violation.excerpt})
                }
                Cause::Diminished { word, by } => {
                    json!({"trait": violation.id, "word": word, "by": by, "excerpt": violation.excerpt})
                }
            })
            .collect();
        if row["today"] != Value::from(now.clone()) {
            changed.push(format!("{row}: now {}", Value::from(now)));
        }
        let today: Vec<&Value> = row["today"]
            .as_array()
            .expect("violations")
            .iter()
            .map(|violation| &violation["trait"])
            .collect();
        let is_right = match row["expected"].as_array() {
            None => !today.is_empty(),
            Some(expected) => expected.len() == today.len() && expected.iter().all(|id| today.contains(&id)),
        };
        if !is_right {
            wrong += 1;
            println!("expected {}, today {today:?}: {}", row["expected"], row["text"]);
        }
    }
    println!("{wrong} of {} texts are read wrongly today", rows.len());
    assert!(changed.is_empty(), "{} of {} texts:\n{}", changed.len(), rows.len(), changed.join("\n"));
}
