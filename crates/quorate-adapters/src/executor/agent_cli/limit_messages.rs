//! Messages that a CLI prints, with exit code 0, in place of an answer: it is out of quota, or not logged in.
//! They are failures (X5). The table is complete; a message counts only if the output is short and holds no JSON
//! object, so that a review *about* rate limits is not mistaken for one. Where the answer is plain text, as in a
//! conversation, it counts only as one short line that begins like a message, so that "Add a rate limit." is an answer.

use quorate_protocol::Json;

/// The searched text (lower case, straight quotes), and its meaning.
const MESSAGES: &[(&str, &str)] = &[
    ("usage limit", "the usage limit is reached"),
    ("hit your limit", "the usage limit is reached"),
    ("hit your session limit", "the usage limit is reached"),
    ("hit your weekly limit", "the usage limit is reached"),
    ("limit reached", "the usage limit is reached"),
    ("rate limit", "the rate limit is reached"),
    ("rate_limit", "the rate limit is reached"),
    ("ratelimit", "the rate limit is reached"),
    ("too many requests", "the rate limit is reached"),
    ("exceeded your current quota", "the quota is used up"),
    ("quota exceeded", "the quota is used up"),
    ("exceeded your quota", "the quota is used up"),
    ("insufficient_quota", "the quota is used up"),
    ("resource_exhausted", "the quota is used up"),
    ("credit balance is too low", "there is no credit left"),
    ("insufficient credit", "there is no credit left"),
    ("out of credits", "there is no credit left"),
    ("payment required", "there is no credit left"),
    ("please log in", "the CLI is not logged in"),
    ("please login", "the CLI is not logged in"),
    ("please run /login", "the CLI is not logged in"),
    ("not logged in", "the CLI is not logged in"),
    ("login required", "the CLI is not logged in"),
    ("please sign in", "the CLI is not logged in"),
    ("invalid api key", "the API key is not accepted"),
    ("incorrect api key", "the API key is not accepted"),
    ("authentication_error", "the API key is not accepted"),
    ("oauth token has expired", "the login has expired"),
    ("overloaded_error", "the service is overloaded"),
    ("service is overloaded", "the service is overloaded"),
];

/// How a line begins that reports an error before it names one of the table.
const ERROR_PREFIXES: &[&str] =
    &["error", "api error", "fatal", "429", "you've hit", "you have hit", "claude ai usage limit"];
/// Longer lines count as an answer.
const MAX_LINE_BYTES: usize = 160;
/// Longer texts count as prose.
const MAX_MESSAGE_BYTES: usize = 800;

/// The meaning of a limit message; `None` for any other text.
pub(super) fn limit_reason(text: &str) -> Option<&'static str> {
    let text = text.trim();
    if text.len() > MAX_MESSAGE_BYTES || contains_json_object(text) {
        return None;
    }
    let lowercase = text.to_lowercase().replace('\u{2019}', "'");
    MESSAGES.iter().find(|(message, _)| lowercase.contains(message)).map(|(_, meaning)| *meaning)
}

/// The meaning of a limit message where the answer may be prose; stricter than [`limit_reason`].
pub(super) fn limit_reason_in_prose(text: &str) -> Option<&'static str> {
    let text = text.trim();
    if text.contains('\n') || text.len() > MAX_LINE_BYTES {
        return None;
    }
    let lowercase = text.to_lowercase().replace('\u{2019}', "'");
    let complains = ERROR_PREFIXES.iter().any(|opening| lowercase.starts_with(opening));
    let is_prefix = |message: &str| {
        lowercase.starts_with(message) && (!message.ends_with("limit") || says_limit_reached(&lowercase))
    };
    if !complains && !MESSAGES.iter().any(|(message, _)| is_prefix(message)) {
        return None;
    }
    MESSAGES.iter().find(|(message, _)| lowercase.contains(message)).map(|(_, meaning)| *meaning)
}

/// Whether the text says that a limit is reached, and does not just mention it.
fn says_limit_reached(lowercase: &str) -> bool {
    ["reached", "exceeded", "was hit", "429"].iter().any(|word| lowercase.contains(word))
}

fn contains_json_object(text: &str) -> bool {
    text.match_indices('{').any(|(start, _)| {
        let mut stream = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Json>();
        matches!(stream.next(), Some(Ok(Json::Object(_))))
    })
}

#[cfg(test)]
mod tests {
    use super::{ERROR_PREFIXES, MESSAGES, limit_reason, limit_reason_in_prose};

    #[test]
    fn real_messages_are_recognised() {
        for (text, expected) in [
            ("You\u{2019}ve hit your usage limit. Try again at 3pm.", "the usage limit is reached"),
            ("Claude AI usage limit reached|1749924000", "the usage limit is reached"),
            ("Credit balance is too low", "there is no credit left"),
            ("Error: Rate limit exceeded (429)", "the rate limit is reached"),
            ("Invalid API key \u{b7} Please run /login", "the CLI is not logged in"),
            ("RESOURCE_EXHAUSTED: Quota exceeded for quota metric", "the quota is used up"),
        ] {
            assert_eq!(limit_reason(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn an_answer_about_limits_is_an_answer() {
        assert_eq!(limit_reason("{\"issue\": \"the rate limit is not explained\"}"), None);
        assert_eq!(limit_reason("Sure: {\"issue\": \"please log in\"} as asked"), None);
        assert_eq!(limit_reason(&format!("{} rate limit", "word ".repeat(300))), None);
        assert_eq!(limit_reason("The text reads well."), None);
    }

    #[test]
    fn of_words_only_what_begins_like_a_message_is_one() {
        for (text, expected) in [
            ("You\u{2019}ve hit your usage limit. Try again at 3pm.", "the usage limit is reached"),
            ("Claude AI usage limit reached|1749924000", "the usage limit is reached"),
            ("Credit balance is too low", "there is no credit left"),
            ("Error: Rate limit exceeded (429)", "the rate limit is reached"),
            ("Rate limit exceeded", "the rate limit is reached"),
            ("Invalid API key \u{b7} Please run /login", "the CLI is not logged in"),
            ("RESOURCE_EXHAUSTED: Quota exceeded for quota metric", "the quota is used up"),
        ] {
            assert_eq!(limit_reason_in_prose(text), Some(expected), "{text}");
        }
        for text in [
            "Add a rate limit to the endpoint.",
            "Rate limit the endpoint.",
            "I would say \"rate limit exceeded\" there.",
            "The page should ask people: please log in.",
            "Rate limit exceeded\nis the text of the second error, and it should say when to try again.",
        ] {
            assert_eq!(limit_reason_in_prose(text), None, "{text}");
        }
    }

    #[test]
    fn the_table_is_in_the_form_it_is_compared_in() {
        for message in MESSAGES.iter().map(|(message, _)| message).chain(ERROR_PREFIXES) {
            assert_eq!(*message, message.to_lowercase());
        }
    }
}
