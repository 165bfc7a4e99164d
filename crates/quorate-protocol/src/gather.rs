//! Gather strategies: which part of the subject a member sees (X13).

pub mod conversation;

use serde_json::json;

use crate::assembly::Member;
use crate::{Json, Part, PartKind};
use conversation::{Conversation, Message};

/// The whole subject with what is in force; of a conversation the last messages.
pub const WORKING_MEMORY: &str = "working-memory";
pub const RECENT_MESSAGES: &str = "recent-messages";
/// The messages of the last days, each cut short.
pub const DIGEST: &str = "digest";
/// The last message of a user.
pub const LAST_MESSAGE_ONLY: &str = "last-message-only";
/// What a node's children have passed up, which every node with children is given anyway.
pub const CHILDREN_OUTPUTS: &str = "custom:children-outputs";
/// The same, written plainly (H1).
pub const CHILDREN_OUTPUTS_PLAIN: &str = "children-outputs";

/// The built-in strategies. Names that begin with [`CUSTOM_PREFIX`] belong to the host.
pub const BUILT_IN: [&str; 6] =
    [WORKING_MEMORY, RECENT_MESSAGES, DIGEST, LAST_MESSAGE_ONLY, CHILDREN_OUTPUTS, CHILDREN_OUTPUTS_PLAIN];

/// What a custom strategy begins with.
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

/// What a run is about, as its strategies see it.
#[derive(Debug, Clone)]
pub struct Subject {
    pub part: Part,
    /// Its messages, where it is a conversation that has any.
    messages: Option<Conversation>,
    /// The texts of the overlays that are active.
    overlays: Vec<String>,
    /// When the run was opened, in milliseconds since the Unix epoch.
    at_ms: i64,
}

impl Subject {
    /// A subject. A conversation that cannot be read is taken as one text.
    pub fn new(part: Part, overlays: &[Json], at_ms: i64) -> Self {
        let messages = (part.kind == PartKind::Conversation)
            .then(|| conversation::parse(&part.name, &part.text).ok())
            .flatten()
            .filter(|conversation| !conversation.messages.is_empty());
        let overlays = overlays.iter().filter_map(Json::as_str).map(str::to_owned).collect();
        Subject { part, messages, overlays, at_ms }
    }

    /// What a member is shown; `None` where its strategy is the host's.
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
                vec![self.select_messages(|all| conversation::last_user_message(all).into_iter().collect())]
            }
            CHILDREN_OUTPUTS | CHILDREN_OUTPUTS_PLAIN => vec![self.part.clone()],
            _ => return None,
        })
    }

    /// The messages that are chosen, as one text; the whole subject where there are none to choose from.
    fn select_messages(&self, choose: impl FnOnce(&[Message]) -> Vec<Message>) -> Part {
        let Some(conversation) = &self.messages else { return self.part.clone() };
        let text = conversation::render(&choose(&conversation.messages));
        Part { text: text.into(), ..self.part.clone() }
    }

    fn digest(&self, days: u64) -> Part {
        let window_ms = i64::try_from(days).unwrap_or(i64::MAX).saturating_mul(DAY_MS);
        let since_ms = self.at_ms.saturating_sub(window_ms);
        self.select_messages(|all| {
            let recent = all.iter().filter(|message| message.at_ms.is_none_or(|at_ms| at_ms >= since_ms));
            recent.map(|message| Message { content: truncate(&message.content), ..message.clone() }).collect()
        })
    }

    fn active_overlays(&self) -> Option<Part> {
        let text = || Json::from(self.overlays.clone()).to_string();
        (!self.overlays.is_empty()).then(|| Part::new(PartKind::Overlays, "", text()))
    }
}

fn truncate(content: &str) -> String {
    match content.char_indices().nth(MAX_DIGEST_CHARS) {
        Some((at, _)) => format!("{}…", &content[..at]),
        None => content.to_owned(),
    }
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
