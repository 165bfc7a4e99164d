//! Independent readers of conversations, to compare with the binary.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses some of it")]

use serde_json::Value;
use sqlx::{Connection as _, Row as _, SqliteConnection};

use crate::support::TestDir;
use crate::support::records::block_on;

/// A turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    pub id: String,
    pub participant: String,
    pub content: String,
    /// The turn that it answers, as its stamp has it.
    pub reply_to: Option<String>,
    /// The state that its stamp has.
    pub state: Option<Value>,
}

impl Turn {
    fn stamped(mut self, stamp: &Value) -> Turn {
        self.reply_to = stamp["trigger"].as_str().filter(|trigger| !trigger.is_empty()).map(str::to_owned);
        self.state = stamp.get("state").cloned();
        self
    }
}

/// The turns of the journal `talk.md`, without a truncated one.
pub fn journal(place: &TestDir) -> Vec<Turn> {
    let text = std::fs::read_to_string(place.path("talk.md")).unwrap_or_default();
    let mut turns: Vec<Turn> = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let header = line.strip_prefix("=== TURN id=").and_then(|rest| rest.strip_suffix(" ==="));
        if let Some(header) = header {
            let mut words = header.split(' ');
            let (id, participant) = (words.next(), words.next());
            let participant = participant.and_then(|word| word.strip_prefix("participant="));
            let (Some(id), Some(participant)) = (id, participant) else { panic!("a header: {line}") };
            let turn = Turn {
                id: id.to_owned(),
                participant: participant.to_owned(),
                content: String::new(),
                reply_to: None,
                state: None,
            };
            let note = lines.next_if(|line| line.starts_with("<!-- quorate: "));
            turns.push(match note {
                Some(note) => {
                    let note = parse_note(note);
                    // What a runtime elsewhere posted has its stamp in the metadata.
                    turn.stamped(note["meta"]["quorate"].get("stamp").unwrap_or(&note["stamp"]))
                }
                None => turn,
            });
        } else if line.starts_with("<!-- quorate: ") {
            assert_eq!(parse_note(line)["torn"], true, "{line}");
            turns.pop();
        } else if let Some(turn) = turns.last_mut() {
            turn.content.push_str(line);
            turn.content.push('\n');
        } else {
            panic!("text before the first turn: {line}");
        }
    }
    for turn in &mut turns {
        turn.content = turn.content.trim_end_matches('\n').to_owned();
    }
    turns
}

fn parse_note(line: &str) -> Value {
    let json = line.strip_prefix("<!-- quorate: ").and_then(|rest| rest.strip_suffix(" -->"));
    serde_json::from_str(json.expect("a note ends")).expect("a note is JSON")
}

/// The turns of the database `talk.db`.
pub fn database(place: &TestDir) -> Vec<Turn> {
    let path = place.path("talk.db");
    if !path.is_file() {
        return Vec::new();
    }
    block_on(async {
        let url = format!("sqlite://{}", path.display());
        let mut connection = SqliteConnection::connect(&url).await.expect("it opens");
        let query = sqlx::query("SELECT id, participant, content, stamp FROM turn ORDER BY n");
        let rows = query.fetch_all(&mut connection).await.expect("it answers");
        let turn = |row: &sqlx::sqlite::SqliteRow| {
            let stamp: Option<String> = row.get("stamp");
            let turn = Turn {
                id: row.get("id"),
                participant: row.get("participant"),
                content: row.get("content"),
                reply_to: None,
                state: None,
            };
            match stamp {
                Some(stamp) => turn.stamped(&serde_json::from_str(&stamp).expect("a stamp is JSON")),
                None => turn,
            }
        };
        rows.iter().map(turn).collect()
    })
}
