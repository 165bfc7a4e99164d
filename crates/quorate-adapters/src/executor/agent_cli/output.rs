//! Turns a command's exit status and output into a reply or a failure. Each preset's file parses its CLI's output; this
//! file decides the order of the checks.
//! The table of messages by which CLIs report an exhausted limit is at the end.

use quorate_kernel::answer;
use quorate_kernel::ports::executor::{Failure, Notes, Reply};
use quorate_protocol::Json;
use quorate_protocol::answers::Schema;

use super::call::AttemptFiles;
use super::oneshot::{describe_exit, describe_status, overflow, with_excerpt};
use super::presets::{ModelAndUsage, OutputFormat, ReplyError, claude, codex, envelope, gemini};
use super::running_process::{CallOutput, Termination};

impl OutputFormat {
    /// The JSON values on stdout, which the other functions read; none for plain text.
    pub(super) fn values(self, stdout: &[u8]) -> Vec<Json> {
        match self {
            OutputFormat::Text => Vec::new(),
            _ => envelope::values(&String::from_utf8_lossy(stdout)),
        }
    }

    /// The model that answered and the attempt's usage, with or without a reply.
    pub(super) fn model_and_usage(self, values: &[Json]) -> ModelAndUsage {
        match self {
            OutputFormat::Text => ModelAndUsage::default(),
            OutputFormat::ClaudeJson => claude::model_and_usage(values),
            OutputFormat::CodexJsonl => codex::model_and_usage(values),
            OutputFormat::GeminiJson => gemini::model_and_usage(values),
        }
    }

    fn reply(self, stdout: &str, values: &[Json], last_message: Option<String>) -> Result<Reply, ReplyError> {
        match self {
            OutputFormat::Text => Ok(Reply { text: stdout.to_owned(), ..Reply::default() }),
            OutputFormat::CodexJsonl => codex::read(values, last_message),
            OutputFormat::ClaudeJson | OutputFormat::GeminiJson => envelope::read(values),
        }
    }
}

/// The reply in a command's output, or the failure. `form` is the schema of the answer, `values` what
/// [`OutputFormat::values`] reads.
pub(super) fn read_reply(
    output: OutputFormat,
    form: Schema,
    command: &str,
    ended: CallOutput,
    values: &[Json],
    files: Option<&AttemptFiles>,
    notes: &Notes,
) -> Result<Reply, Failure> {
    let limit = if form.is_structured() { limit_reason } else { limit_reason_in_prose };
    let failure = |problem: &str| match concerns_answer(problem) {
        true => notes.without_stand_in(Failure::failed(format!("`{command}` {problem}"))),
        false => Failure::failed(format!("`{command}` {problem}")),
    };
    let bad_answer = |problem: &str| notes.without_stand_in(failure(problem));
    let status = match ended.termination {
        Termination::Exited(status) => status,
        Termination::DeadlinePassed => return Err(Failure::TimedOut),
        Termination::Overflowed => return Err(bad_answer(&overflow())),
    };
    if !status.success() {
        let said = match output.reply("", values, None) {
            Err(ReplyError::Reported(error)) => with_excerpt(&describe_status(status), &error),
            _ => describe_exit(status, &ended.stdout, &ended.stderr),
        };
        return Err(failure(&said));
    }
    let stdout = match String::from_utf8(ended.stdout) {
        Ok(stdout) => stdout,
        Err(error) => {
            let place = error.utf8_error().valid_up_to();
            return Err(bad_answer(&format!("printed bytes that are not UTF-8 (at byte {place})")));
        }
    };
    let last_message = files.and_then(AttemptFiles::read_last_message);
    if stdout.trim().is_empty() && last_message.is_none() {
        return Err(bad_answer(&with_excerpt("printed nothing", &String::from_utf8_lossy(&ended.stderr))));
    }
    let says_so = if output == OutputFormat::Text { limit } else { limit_reason };
    if let Some(meaning) = says_so(&stdout) {
        return Err(failure(&with_excerpt(&format!("gave no answer: {meaning}"), &stdout)));
    }
    let read = match output.reply(&stdout, values, last_message) {
        Ok(reply) if output == OutputFormat::Text && form.is_structured() => {
            Ok(Reply { text: envelope::without_notices(&reply.text), ..reply })
        }
        // A script in place of the CLI may print the answer itself.
        Err(ReplyError::Malformed) if form.is_structured() && answer::extract(form, &stdout, &[]).is_ok() => {
            Ok(Reply { text: stdout.clone(), ..Reply::default() })
        }
        read => read,
    };
    let reply = read.map_err(|why| match why {
        ReplyError::Reported(error) => failure(&with_excerpt("reports an error", &error)),
        ReplyError::Ambiguous => bad_answer("printed two different answers"),
        ReplyError::Malformed => {
            bad_answer(&with_excerpt(&format!("printed something else than `{}`", output.as_str()), &stdout))
        }
    })?;
    if reply.text.trim().is_empty() {
        return Err(bad_answer("gave an empty answer"));
    }
    match limit(&reply.text) {
        None if output == OutputFormat::CodexJsonl => {
            Ok(Reply { text: codex::restore(form, reply.text), ..reply })
        }
        None => Ok(reply),
        Some(meaning) => Err(failure(&with_excerpt(&format!("gave no answer: {meaning}"), &reply.text))),
    }
}

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
    ("credit balance is too low", "the account has no credit left"),
    ("insufficient credit", "the account has no credit left"),
    ("out of credits", "the account has no credit left"),
    ("payment required", "the account has no credit left"),
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

/// Parts of the messages of CLIs, in lower case, that mean a refusal, an answer that was cut off or a prompt that is too
/// long. Quorate asks no stand-in after them.
const ANSWER_MESSAGES: &[&str] = &[
    "usage policy",
    "usage policies",
    "content policy",
    "content filter",
    "content_filter",
    "refusal",
    "refused to answer",
    "blocked for safety",
    "prohibited content",
    "output token maximum",
    "max_tokens",
    "max_output_tokens",
    "prompt is too long",
    "context window",
    "context length",
    "context_length",
    "structured_output",
    "structured output",
    "error_max_turns",
];

/// Whether a message is about the question or the answer, and not about the service.
fn concerns_answer(message: &str) -> bool {
    let lowercase = message.to_lowercase();
    ANSWER_MESSAGES.iter().any(|said| lowercase.contains(said))
}

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
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::{Notes, OutputFormat, Schema, read_reply};
    use crate::executor::agent_cli::oneshot::excerpt;
    use crate::executor::agent_cli::running_process::{CallOutput, Termination};

    fn judged(status: i32, stdout: &str, stderr: &str) -> Result<String, String> {
        judged_as(Schema::FirstAnswer, status, stdout, stderr)
    }

    fn judged_as(form: Schema, status: i32, stdout: &str, stderr: &str) -> Result<String, String> {
        let ended = CallOutput {
            termination: Termination::Exited(ExitStatus::from_raw(status)),
            stdout: stdout.as_bytes().to_vec(),
            stderr: stderr.as_bytes().to_vec(),
        };
        read_reply(OutputFormat::Text, form, "x", ended, &[], None, &Notes::default())
            .map(|reply| reply.text)
            .map_err(|failure| failure.to_string())
    }

    #[test]
    fn only_a_successful_non_empty_output_is_a_reply() {
        assert_eq!(judged(0, "{}\n", "noise"), Ok("{}\n".into()));
        assert_eq!(judged(0, " \n", "why"), Err("`x` printed nothing: why".into()));
        assert_eq!(judged(256, "{\"a\": 1}", "a\nb"), Err("`x` ended with exit code 1: a | b".into()));
        assert_eq!(judged(256, "said", ""), Err("`x` ended with exit code 1: said".into()));
        assert_eq!(judged(9, "", ""), Err("`x` was killed by signal 9".into()));
        assert_eq!(
            judged(0, "Rate limit exceeded", ""),
            Err("`x` gave no answer: the rate limit is reached: Rate limit exceeded".into())
        );
    }

    #[test]
    fn an_answer_without_an_envelope_is_an_answer() {
        let judged = |output: OutputFormat, form, stdout: &str| {
            let ended = CallOutput {
                termination: Termination::Exited(ExitStatus::from_raw(0)),
                stdout: stdout.as_bytes().to_vec(),
                stderr: Vec::new(),
            };
            let values = output.values(&ended.stdout);
            read_reply(output, form, "x", ended, &values, None, &Notes::default()).map(|reply| reply.text)
        };
        let answer = "Here it is:\n{\"would_block\": false}\n";
        for output in [OutputFormat::ClaudeJson, OutputFormat::CodexJsonl, OutputFormat::GeminiJson] {
            assert_eq!(judged(output, Schema::FirstAnswer, answer).as_deref(), Ok(answer), "{output:?}");
            assert_eq!(
                judged(output, Schema::FirstAnswer, answer.split_at(12).1).map(|_| ()),
                Ok(()),
                "{output:?}"
            );
            for (form, stdout) in [
                (Schema::FirstAnswer, "I would not block it."),
                (Schema::FirstAnswer, "{\"would_block\": \"no\"}"),
                (Schema::FirstAnswer, "{\"would_block\": false} {\"would_block\": true}"),
                (Schema::PlainText, answer),
            ] {
                assert!(judged(output, form, stdout).is_err(), "{output:?} {form:?}: {stdout}");
            }
        }
        // A reported error is not an answer, even if it quotes one.
        let error = r#"{"type": "result", "is_error": true, "result": "{\"would_block\": false}"}"#;
        assert!(judged(OutputFormat::ClaudeJson, Schema::FirstAnswer, error).is_err());
        let error = r#"{"error": {"message": "quota"}, "would_block": false}"#;
        assert!(judged(OutputFormat::GeminiJson, Schema::FirstAnswer, error).is_err());
    }

    #[test]
    fn a_stand_in_is_asked_after_failures_of_the_service_alone() {
        let stands_in = |output: OutputFormat, status: i32, stdout: &str, stderr: &str| {
            let ended = CallOutput {
                termination: Termination::Exited(ExitStatus::from_raw(status)),
                stdout: stdout.as_bytes().to_vec(),
                stderr: stderr.as_bytes().to_vec(),
            };
            let notes = Notes::default();
            let values = output.values(&ended.stdout);
            let read = read_reply(output, Schema::FirstAnswer, "x", ended, &values, None, &notes);
            assert!(read.is_err(), "{stdout}");
            !notes.read().no_stand_in
        };
        let reported = |said: &str| format!(r#"{{"type": "result", "is_error": true, "result": "{said}"}}"#);
        for (output, status, stdout, stderr, expected) in [
            (OutputFormat::Text, 256, "", "API Error: 503", true),
            (OutputFormat::Text, 256, "", "Invalid API key \u{b7} Please run /login", true),
            (OutputFormat::Text, 9, "", "", true),
            (OutputFormat::Text, 0, "Claude AI usage limit reached|1749924000", "", true),
            (OutputFormat::ClaudeJson, 0, &*reported("API Error: 529 overloaded"), "", true),
            (OutputFormat::ClaudeJson, 0, &*reported("violates our Usage Policy"), "", false),
            (OutputFormat::ClaudeJson, 256, &*reported("Prompt is too long"), "", false),
            (OutputFormat::ClaudeJson, 0, &*reported("error_max_structured_output_retries"), "", false),
            (OutputFormat::ClaudeJson, 256, "", "exceeded the 32000 output token maximum", false),
            (OutputFormat::ClaudeJson, 0, "I would not block it.", "", false),
            (OutputFormat::Text, 0, " ", "", false),
        ] {
            assert_eq!(stands_in(output, status, stdout, stderr), expected, "{status} {stdout} {stderr}");
        }
    }

    #[test]
    fn somebody_may_speak_of_limits() {
        let text = "Please add a rate limit.\n";
        assert_eq!(judged_as(Schema::PlainText, 0, text, ""), Ok(text.into()));
        assert!(judged(0, text, "").is_err(), "a required object is missing");
        assert!(judged_as(Schema::PlainText, 0, "Rate limit exceeded", "").is_err());
    }

    #[test]
    fn an_excerpt_is_short_and_plain() {
        assert_eq!(excerpt("\u{1b}[31mred\u{1b}[0m\r\n\n  b\u{7}ell"), "red | bell");
        assert_eq!(excerpt(&"x".repeat(900)).chars().count(), 501);
        assert_eq!(excerpt("1\n2\n3\n4\n5\n6"), "2 | 3 | 4 | 5 | 6");
    }
}

#[cfg(test)]
mod limit_messages_tests {
    use super::{ERROR_PREFIXES, MESSAGES, limit_reason, limit_reason_in_prose};

    #[test]
    fn real_messages_are_recognised() {
        for (text, expected) in [
            ("You\u{2019}ve hit your usage limit. Try again at 3pm.", "the usage limit is reached"),
            ("Claude AI usage limit reached|1749924000", "the usage limit is reached"),
            ("Credit balance is too low", "the account has no credit left"),
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
            ("Credit balance is too low", "the account has no credit left"),
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
