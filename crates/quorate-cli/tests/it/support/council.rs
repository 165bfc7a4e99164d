//! Councils for tests: scripted answers, and a `council.yaml` of four.

use serde_json::{Value, json};

use super::TestDir;

/// A file that names four deliberators and an adjudicator, by the built-in prompts.
pub const COUNCIL: &str = "\
deliberators:
  - {id: skeptic, prompt: builtin:skeptic}
  - {id: voice_identity, prompt: builtin:voice_identity}
  - {id: evidence, prompt: builtin:evidence}
  - {id: strategy, prompt: builtin:strategy}
adjudicator: {prompt: builtin:adjudicator}
";

/// The built-in council's deliberators, in roster order.
pub const ROSTER: [&str; 4] = ["skeptic", "voice_identity", "evidence", "strategy"];

/// Answers with which everything ships.
pub fn all_ship() -> Value {
    json!({
        "r1": {"would_block": false, "score": 4},
        "r2": {"would_block": false, "irreducible": false, "score": 4},
        "adjudicate": {"verdict": "SHIP", "reasoning": "Nothing stands against it."},
    })
}

/// Those answers with some in place of others.
pub fn all_ship_except(changes: Value) -> Value {
    let mut answers = all_ship();
    for (key, value) in changes.as_object().expect("answers by key") {
        answers[key] = value.clone();
    }
    answers
}

impl TestDir {
    /// A place where `answers.json` answers for everybody, and a draft to judge.
    pub fn scripted(answers: &Value) -> TestDir {
        TestDir::scripted_slowly(answers, "")
    }

    /// With further lines in the executor's table, such as a `delay`.
    pub fn scripted_slowly(answers: &Value, settings: &str) -> TestDir {
        let place = TestDir::with("draft.md", "The meeting moved to Tuesday at ten.\n");
        place.write(
            "quorate.toml",
            format!(
                "[defaults]\nexecutor = \"scripted\"\n[executors.scripted]\nkind = \"script\"\npath = \"answers.json\"\n{settings}\n"
            ),
        );
        place.answers(answers);
        place
    }

    /// Puts other answers in place.
    pub fn answers(&self, answers: &Value) {
        self.write("answers.json", answers.to_string());
    }
}
