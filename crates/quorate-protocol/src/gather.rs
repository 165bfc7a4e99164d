//! Gather strategies: which part of the subject a member sees (X13).

use quorate_diagnostics::text::shortened;
use quorate_manifest::timestamp;
use serde_json::json;

use crate::assembly::Member;
use crate::{Json, Part, PartKind};

/// The whole subject with the active overlays; for a conversation, its last messages.
pub(crate) const WORKING_MEMORY: &str = "working-memory";
/// The strategy that gives a member the last messages of a conversation.
pub(crate) const RECENT_MESSAGES: &str = "recent-messages";
/// The messages of the last days, each cut short.
pub(crate) const DIGEST: &str = "digest";
/// The last message of a user.
pub(crate) const LAST_MESSAGE_ONLY: &str = "last-message-only";
/// The reports of a node's children, which every node with children receives anyway.
pub(crate) const CHILDREN_OUTPUTS: &str = "custom:children-outputs";
/// The same, written plainly (H1).
pub(crate) const CHILDREN_OUTPUTS_PLAIN: &str = "children-outputs";

/// The built-in strategies. Names that begin with [`CUSTOM_PREFIX`] belong to the host.
pub const BUILT_IN: [&str; 6] =
    [WORKING_MEMORY, RECENT_MESSAGES, DIGEST, LAST_MESSAGE_ONLY, CHILDREN_OUTPUTS, CHILDREN_OUTPUTS_PLAIN];

/// The prefix of a custom strategy.
pub const CUSTOM_PREFIX: &str = "custom:";

/// The JSON Schema of a built-in strategy's parameters; `None` where the strategy is the host's. Parameters that a strategy
/// does not read are left to other hosts.
pub fn params_schema(strategy: &str) -> Option<Json> {
    let read = match strategy {
        RECENT_MESSAGES => json!({LIMIT_PARAM: {"type": "integer", "minimum": 1}}),
        DIGEST => json!({WINDOW_DAYS_PARAM: {"type": "integer", "minimum": 1}}),
        built_in if BUILT_IN.contains(&built_in) => json!({}),
        _ => return None,
    };
    Some(json!({"type": "object", "properties": read}))
}

/// The parameter that says how many messages are recent.
const LIMIT_PARAM: &str = "limit";
/// The parameter that says how many days a digest goes back.
const WINDOW_DAYS_PARAM: &str = "window_days";
/// How many messages the working memory holds.
const WORKING_MEMORY_MESSAGES: usize = 10;
/// How many messages are recent unless said.
const DEFAULT_RECENT_MESSAGES: u64 = 20;
/// How many days a digest goes back unless said.
const DEFAULT_WINDOW_DAYS: u64 = 7;
/// The maximum number of characters of a message in a digest.
const MAX_DIGEST_CHARS: usize = 200;
const DAY_MS: i64 = 86_400_000;

/// The subject of a run, as its strategies see it.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The whole subject.
    pub part: Part,
    /// Its messages, where it is a conversation that has any.
    messages: Option<Vec<Message>>,
    /// The texts of the overlays that are active.
    overlays: Vec<String>,
    /// When the run was opened, in milliseconds since the Unix epoch.
    at_ms: i64,
}

impl Subject {
    /// A subject. A conversation that cannot be read is taken as one text.
    pub fn new(part: Part, overlays: &[Json], at_ms: i64) -> Self {
        let messages = (part.kind == PartKind::Conversation)
            .then(|| parse_conversation(&part.name, &part.text).ok())
            .flatten()
            .filter(|messages| !messages.is_empty());
        let overlays = overlays.iter().filter_map(Json::as_str).map(str::to_owned).collect();
        Subject { part, messages, overlays, at_ms }
    }

    /// The material for a member; `None` if the host has to gather it.
    pub fn gather(&self, member: &Member) -> Option<Vec<Part>> {
        let number = |key: &str, unless: u64| member.params.get(key).and_then(Json::as_u64).unwrap_or(unless);
        let last = |many: u64| {
            self.select_messages(|all| {
                let skipped = all.len().saturating_sub(usize::try_from(many).unwrap_or(usize::MAX));
                all[skipped..].to_vec()
            })
        };
        Some(match &*member.strategy {
            WORKING_MEMORY => {
                let memory = last(WORKING_MEMORY_MESSAGES as u64);
                self.active_overlays().into_iter().chain([memory]).collect()
            }
            RECENT_MESSAGES => vec![last(number(LIMIT_PARAM, DEFAULT_RECENT_MESSAGES))],
            DIGEST => vec![self.digest(number(WINDOW_DAYS_PARAM, DEFAULT_WINDOW_DAYS))],
            LAST_MESSAGE_ONLY => {
                vec![self.select_messages(|all| last_user_message(all).into_iter().collect())]
            }
            CHILDREN_OUTPUTS | CHILDREN_OUTPUTS_PLAIN => vec![self.part.clone()],
            _ => return None,
        })
    }

    /// The messages that are chosen, as one text; the whole subject where there are none to choose from.
    fn select_messages(&self, choose: impl FnOnce(&[Message]) -> Vec<Message>) -> Part {
        let Some(messages) = &self.messages else { return self.part.clone() };
        let text = render_messages(&choose(messages));
        Part { text: text.into(), ..self.part.clone() }
    }

    fn digest(&self, days: u64) -> Part {
        let window_ms = i64::try_from(days).unwrap_or(i64::MAX).saturating_mul(DAY_MS);
        let since_ms = self.at_ms.saturating_sub(window_ms);
        self.select_messages(|all| {
            let recent = all.iter().filter(|message| message.at_ms.is_none_or(|at_ms| at_ms >= since_ms));
            recent
                .map(|message| Message {
                    content: shortened(&message.content, MAX_DIGEST_CHARS),
                    ..message.clone()
                })
                .collect()
        })
    }

    fn active_overlays(&self) -> Option<Part> {
        let text = || Json::from(self.overlays.clone()).to_string();
        (!self.overlays.is_empty()).then(|| Part::new(PartKind::Overlays, "", text()))
    }
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The speaker, such as `user` or `assistant`.
    pub role: String,
    /// The text of the message.
    pub content: String,
    /// The time, in milliseconds since the Unix epoch, if known.
    pub at_ms: Option<i64>,
}

/// A line that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct ConversationError {
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

/// Reads the messages of a conversation, oldest first; the form follows from the file's name. Plain text always parses,
/// possibly without messages.
///
/// # Errors
/// The first line of a `.jsonl` file that is not a message.
pub fn parse_conversation(name: &str, text: &str) -> Result<Vec<Message>, ConversationError> {
    match name.to_ascii_lowercase().ends_with(".jsonl") {
        true => parse_jsonl(text),
        false => Ok(parse_transcript(text)),
    }
}

fn parse_jsonl(text: &str) -> Result<Vec<Message>, ConversationError> {
    let numbered = text.trim_start_matches('\u{feff}').lines().enumerate();
    let nonempty = numbered.filter(|(_, line)| !line.trim().is_empty());
    nonempty
        .map(|(at, line)| parse_message(line).map_err(|why| ConversationError { line: at + 1, why }))
        .collect()
}

fn parse_message(line: &str) -> Result<Message, String> {
    let value: Json = serde_json::from_str(line).map_err(|error| format!("invalid JSON: {error}"))?;
    let object = value.as_object().ok_or("expected an object; write {\"role\": …, \"content\": …}")?;
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
fn last_user_message(messages: &[Message]) -> Option<Message> {
    let by = |wanted: &dyn Fn(&str) -> bool| {
        messages.iter().rev().find(|message| wanted(&message.role.to_ascii_lowercase()))
    };
    let found = by(&|role| USER_ROLES.contains(&role)).or_else(|| by(&|role| !AGENT_ROLES.contains(&role)));
    found.or(messages.last()).cloned()
}

/// Messages as one text, a line or more for each.
pub(crate) fn render_messages(messages: &[Message]) -> String {
    let all: Vec<String> =
        messages.iter().map(|message| format!("{}: {}", message.role, message.content)).collect();
    all.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(strategy: &str, params: Json) -> Member {
        Member {
            id: "a".into(),
            role: "A".into(),
            phase: None,
            triggers: None,
            weight: None,
            vote_class: None,
            parent: None,
            strategy: strategy.into(),
            params: params.as_object().cloned().unwrap_or_default(),
            layer: 0,
        }
    }

    fn conversation() -> Subject {
        let lines: Vec<String> = (0..30)
            .map(|n| {
                let role = if n % 2 == 0 { "user" } else { "assistant" };
                let ts = format!("1970-01-{:02}T00:00:00Z", n + 1);
                json!({"role": role, "content": format!("m{n} {}", "x".repeat(300)), "ts": ts}).to_string()
            })
            .collect();
        let part = Part::new(PartKind::Conversation, "talk.jsonl", lines.join("\n"));
        Subject::new(part, &[json!("Be brief.")], 29 * DAY_MS)
    }

    fn gathered(subject: &Subject, strategy: &str, params: Json) -> Vec<(PartKind, usize, bool)> {
        let parts = subject.gather(&member(strategy, params)).expect("built in");
        let count = |part: &Part| part.text.lines().filter(|line| line.contains(": m")).count();
        parts.iter().map(|part| (part.kind, count(part), part.text.contains("m29 "))).collect()
    }

    #[test]
    fn each_strategy_cuts_a_conversation() {
        // X13
        let subject = conversation();
        let talk = PartKind::Conversation;
        assert_eq!(
            gathered(&subject, WORKING_MEMORY, json!({})),
            [(PartKind::Overlays, 0, false), (talk, 10, true)]
        );
        assert_eq!(gathered(&subject, RECENT_MESSAGES, json!({})), [(talk, 20, true)]);
        assert_eq!(gathered(&subject, RECENT_MESSAGES, json!({"limit": 3})), [(talk, 3, true)]);
        assert_eq!(gathered(&subject, DIGEST, json!({})), [(talk, 8, true)]);
        assert_eq!(gathered(&subject, DIGEST, json!({"window_days": 2})), [(talk, 3, true)]);
        assert_eq!(gathered(&subject, LAST_MESSAGE_ONLY, json!({})), [(talk, 1, false)]);
        let digest = subject.gather(&member(DIGEST, json!({}))).expect("built in");
        assert!(digest[0].text.lines().all(|line| line.chars().count() <= 215), "{}", digest[0].text);
        assert!(subject.gather(&member("custom:mine", json!({}))).is_none());
    }

    #[test]
    fn what_is_no_conversation_is_given_whole() {
        // X13
        let subject = Subject::new(Part::new(PartKind::Proposal, "p.md", "# Spend it\n"), &[], 0);
        for strategy in BUILT_IN {
            let parts = subject.gather(&member(strategy, json!({}))).expect("built in");
            assert_eq!(parts, std::slice::from_ref(&subject.part), "{strategy}");
        }
    }
}

#[cfg(test)]
mod conversation_tests {
    use super::*;

    fn said(name: &str, text: &str) -> Vec<(String, String)> {
        let read = parse_conversation(name, text).unwrap_or_else(|error| panic!("{error}"));
        read.into_iter().map(|message| (message.role, message.content)).collect()
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
            assert_eq!(
                parse_conversation("talk.jsonl", text).map_err(|error| error.line),
                Err(line),
                "{text}"
            );
        }
    }

    #[test]
    fn the_last_user_is_found_by_role() {
        // X13
        let last = |text| {
            last_user_message(&parse_conversation("x.md", text).unwrap_or_default())
                .map(|message| message.content)
        };
        assert_eq!(last("user: a\nassistant: b").as_deref(), Some("a"));
        assert_eq!(last("Ana: a\nassistant: b").as_deref(), Some("a"));
        assert_eq!(last("assistant: b").as_deref(), Some("b"));
    }
}
