//! Conversations as files (X13): `.jsonl` of `{role, content, ts?}`, or text in lines of `speaker: words` with
//! continuation lines.

use quorate_manifest::timestamp;

use crate::Json;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Conversation {
    /// Its messages, oldest first.
    pub messages: Vec<Message>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub role: String,
    pub content: String,
    /// When, in milliseconds since the Unix epoch, where it says so.
    pub at_ms: Option<i64>,
}

/// A line that is no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct Error {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

/// How long a speaker's name may be, in characters.
const MAX_SPEAKER_CHARS: usize = 60;
/// Roles of a user.
const USER_ROLES: [&str; 5] = ["user", "human", "customer", "client", "member"];
/// Roles that are never a user.
const AGENT_ROLES: [&str; 5] = ["assistant", "agent", "system", "tool", "bot"];

/// Reads a conversation; its file's name says in which form it is.
///
/// # Errors
/// The first line of a `.jsonl` that is no message. Text is always a conversation, if one without messages.
pub fn parse(name: &str, text: &str) -> Result<Conversation, Error> {
    let messages = if name.to_ascii_lowercase().ends_with(".jsonl") {
        parse_jsonl(text)?
    } else {
        parse_transcript(text)
    };
    Ok(Conversation { messages })
}

fn parse_jsonl(text: &str) -> Result<Vec<Message>, Error> {
    let numbered = text.trim_start_matches('\u{feff}').lines().enumerate();
    let nonempty = numbered.filter(|(_, line)| !line.trim().is_empty());
    nonempty.map(|(at, line)| parse_message(line).map_err(|why| Error { line: at + 1, why })).collect()
}

fn parse_message(line: &str) -> Result<Message, String> {
    let value: Json = serde_json::from_str(line).map_err(|error| format!("it is no JSON: {error}"))?;
    let object = value.as_object().ok_or("it is no object; write {\"role\": …, \"content\": …}")?;
    let text = |key: &str| {
        let value = object.get(key).ok_or_else(|| format!("`{key}` is missing"))?;
        value.as_str().map(str::to_owned).ok_or_else(|| format!("`{key}` has to be text"))
    };
    let at_ms = match object.get("ts").filter(|value| !value.is_null()) {
        None => None,
        Some(value) => Some(
            value
                .as_str()
                .and_then(timestamp::parse)
                .ok_or("`ts` has to be a time like 2026-04-21T09:00:00Z")?,
        ),
    };
    Ok(Message { role: text("role")?, content: text("content")?, at_ms })
}

fn parse_transcript(text: &str) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    for line in text.trim_start_matches('\u{feff}').lines() {
        match (split_speaker(line), messages.last_mut()) {
            (Some((role, content)), _) => {
                messages.push(Message { role, content: content.to_owned(), at_ms: None });
            }
            (None, Some(last)) => {
                last.content.push('\n');
                last.content.push_str(line);
            }
            // Text before the first speaker is a heading.
            (None, None) => {}
        }
    }
    for message in &mut messages {
        message.content.truncate(message.content.trim_end().len());
    }
    messages
}

/// `speaker: words`, also with the speaker in bold.
fn split_speaker(line: &str) -> Option<(String, &str)> {
    let (name, rest) = line.split_once(':')?;
    let (name, rest) = match (name.strip_prefix("**"), rest.strip_prefix("**")) {
        (Some(name), Some(rest)) => (name, rest),
        (Some(name), None) => (name.strip_suffix("**")?, rest),
        (None, _) => (name, rest),
    };
    let plain = name.chars().next().is_some_and(char::is_alphabetic)
        && name.chars().count() <= MAX_SPEAKER_CHARS
        && name.chars().all(|c| c.is_alphanumeric() || " _.-@'()".contains(c));
    let spoken = rest.is_empty() || rest.starts_with([' ', '\t']);
    (plain && spoken).then(|| (name.trim().to_owned(), rest.trim()))
}

/// The last message of a user; else of a speaker that is not known to be a machine; else the last.
pub(super) fn last_user_message(messages: &[Message]) -> Option<Message> {
    let by = |wanted: &dyn Fn(&str) -> bool| {
        messages.iter().rev().find(|message| wanted(&message.role.to_ascii_lowercase()))
    };
    let found = by(&|role| USER_ROLES.contains(&role)).or_else(|| by(&|role| !AGENT_ROLES.contains(&role)));
    found.or(messages.last()).cloned()
}

/// Messages as one text, a line or more for each.
pub fn render(messages: &[Message]) -> String {
    let all: Vec<String> =
        messages.iter().map(|message| format!("{}: {}", message.role, message.content)).collect();
    all.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(name: &str, text: &str) -> Vec<(String, String)> {
        let read = parse(name, text).unwrap_or_else(|error| panic!("{error}"));
        read.messages.into_iter().map(|message| (message.role, message.content)).collect()
    }

    fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(role, content)| ((*role).to_owned(), (*content).to_owned())).collect()
    }

    #[test]
    fn text_has_speakers_and_continuations() {
        // X13
        let text = "# Ticket 7\n\nuser: Hello\nthere\n\n**Agent Smith:** Hi\nsee https://x.example: fine\n**bob**: ok\n12:30 it is\n";
        assert_eq!(
            said("talk.md", text),
            owned(&[
                ("user", "Hello\nthere"),
                ("Agent Smith", "Hi\nsee https://x.example: fine"),
                ("bob", "ok\n12:30 it is"),
            ])
        );
        assert!(said("talk.md", "Nobody speaks here.").is_empty());
        let (longest, longer) = ("n".repeat(MAX_SPEAKER_CHARS), "n".repeat(MAX_SPEAKER_CHARS + 1));
        assert_eq!(said("talk.md", &format!("{longest}: a")), owned(&[(&longest, "a")]));
        for nobody in [&*longer, "2nd", "see [1]", "so, then"] {
            assert!(said("talk.md", &format!("{nobody}: a")).is_empty(), "{nobody}");
        }
    }

    #[test]
    fn lines_of_json_are_held_to_their_form() {
        // X13
        let fine = "{\"role\":\"user\",\"content\":\"a\",\"ts\":\"1970-01-01T00:00:01Z\"}\n\n{\"role\":\"x\",\"content\":\"b\",\"more\":1}\n";
        assert_eq!(said("talk.jsonl", fine), owned(&[("user", "a"), ("x", "b")]));
        for (text, line) in [
            ("{\"role\":\"user\"}", 1),
            ("{\"role\":\"user\",\"content\":\"a\"}\nnot json", 2),
            ("{\"role\":\"user\",\"content\":\"a\",\"ts\":\"yesterday\"}", 1),
            ("[1]", 1),
        ] {
            assert_eq!(parse("talk.jsonl", text).map_err(|error| error.line), Err(line), "{text}");
        }
    }

    #[test]
    fn the_last_user_is_found_by_role() {
        // X13
        let last = |text| {
            last_user_message(&parse("x.md", text).unwrap_or_default().messages)
                .map(|message| message.content)
        };
        assert_eq!(last("user: a\nassistant: b").as_deref(), Some("a"));
        assert_eq!(last("Ana: a\nassistant: b").as_deref(), Some("a"));
        assert_eq!(last("assistant: b").as_deref(), Some("b"));
    }
}
