//! The caller's variables, and the redactions of a workspace (X10): strings in the form of a secret, matches of
//! configured patterns, and the values of secret variables. A text whose redaction would hide sentences is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::record::RunOpened;
use quorate_kernel::redact::{REDACTED, Redactor, Secrets, VERSION, is_worth_redacting, names_a_secret};
use quorate_manifest::config::{Configuration, Redaction as Table};
use quorate_manifest::council::Council;
use quorate_protocol::Json;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, json};

use super::error::Error;

/// The maximum length of a text's name, in bytes: no path is longer, and lists and pages repeat the name.
const MAX_NAME_BYTES: usize = 4096;

/// A redactor and its settings.
#[derive(Debug, Clone, Default)]
pub struct Redaction {
    pub redactor: Redactor,
    settings: Json,
}

impl Redaction {
    /// The redaction of a configuration and a council.
    ///
    /// # Errors
    /// If the patterns cannot be combined.
    pub fn of(config: &Configuration, council: &Council, variables: &Variables) -> Result<Self, Error> {
        let Table { builtin, environment, patterns } = &config.redact;
        let patterns = [&patterns[..], &council.logging.redact_patterns[..]].concat();
        let passed = || forwarded_variables(config, council);
        let values = if *environment { variables.secrets(&passed()) } else { Vec::new() };
        let settings = json!({
            "patterns": patterns, "builtin": builtin.then_some(VERSION), "environment": environment,
        });
        let secrets = Secrets { builtin: *builtin, patterns, values };
        let redactor = Redactor::from_secrets(&secrets)
            .map_err(|error| Error::configuration(codes::PATTERN_INVALID, Body::new(error.to_string())))?;
        Ok(Redaction { redactor, settings })
    }

    /// Refuses members whose ids look like secrets. An id is part of records, prompts and outcomes, so it cannot be
    /// redacted. User patterns are not applied: they may match an id for other reasons.
    ///
    /// # Errors
    /// If an id looks like a secret; the error does not quote it.
    pub fn check_ids<'a>(&self, ids: impl IntoIterator<Item = &'a str>) -> Result<(), Error> {
        let redactor = self.redactor.without_patterns();
        match ids.into_iter().position(|id| redactor.redact(id).1 > 0) {
            None => Ok(()),
            Some(at) => {
                let body = Body::new(format!("cannot use member {}: its id looks like a secret", at + 1));
                Err(Error::configuration(codes::COUNCIL_INVALID, body.help("rename the member")))
            }
        }
    }

    /// The text of an artifact or a proposal with this name as members see it, and the number of secrets in it. If
    /// `lines`, each line is JSON.
    ///
    /// # Errors
    /// If redaction would hide sentences: members would decide on a text that they have not read.
    pub async fn redact_subject(
        &self,
        name: &str,
        text: &Arc<str>,
        lines: bool,
    ) -> Result<(String, usize), Error> {
        if name.len() > MAX_NAME_BYTES {
            let body = Body::new(format!("the name of the text is over {MAX_NAME_BYTES} bytes"));
            return Err(Error::configuration(
                codes::ARTIFACT_UNREADABLE,
                body.help("give it a shorter name"),
            ));
        }
        let (text, bytes) = (text.clone(), text.len());
        let redact = move |redactor: &Redactor, text: &str| match lines {
            true => redactor.redact_lines(text),
            false => redactor.redact(text),
        };
        let work = move |redactor: &Redactor| {
            let (clean, found) = redact(redactor, &text);
            // The user wants the matches of a pattern of their own redacted.
            let hidden = (found > 0).then(|| redact(&redactor.without_patterns(), &text).0);
            (clean, found, hidden.and_then(|clean| find_hidden(&text, &clean)))
        };
        let (clean, found, hidden) = self.redactor.run_blocking_if_large(bytes, work).await;
        match hidden {
            None => Ok((clean, found)),
            Some((first, last)) => {
                let place =
                    if first == last { format!("line {first}") } else { format!("lines {first} to {last}") };
                let body = Body::new(format!(
                    "{place} of {} would be withheld as a secret, including sentences",
                    self.redactor.redact(name).0
                ));
                let help = "members never see what looks like a secret, and would decide without these sentences: take away what \
                            surrounds them, such as the BEGIN and END lines of a private key or `password = `";
                Err(Error::configuration(codes::TEXT_HIDDEN, body.help(help)))
            }
        }
    }

    /// The part of the run's fingerprint. It has no values: a run can be resumed after a key was rotated, and the hash
    /// of a secret must not be stored.
    pub fn settings(&self) -> &Json {
        &self.settings
    }

    /// Redacts the `run.opened` fields about the environment, and adds to its redaction count.
    pub fn redact_run_opened(&self, opened: &mut RunOpened) {
        let found = [
            self.redact(&mut opened.title),
            self.redact(&mut opened.producer),
            self.redact(&mut opened.files),
            self.redact(&mut opened.manifest),
            self.redact(&mut opened.root),
            self.redact(&mut opened.config),
            self.redact(&mut opened.host),
            self.redact(&mut opened.log_path),
            self.redact(&mut opened.executors),
            self.redact(&mut opened.stand_ins),
            opened.executor.as_mut().map_or(0, |named| self.redact(named)),
        ];
        opened.redactions += found.into_iter().sum::<usize>() as u64;
    }

    /// Redacts the texts in a value, and returns the number of secrets.
    fn redact<T: Serialize + DeserializeOwned + Default>(&self, value: &mut T) -> usize {
        let (clean, found) = self.redactor.redact_json(json!(*value));
        // Redaction keeps the types of a value. If the result cannot be read back, the default replaces the value, so
        // no secret stays.
        *value = serde_json::from_value(clean).unwrap_or_default();
        found
    }
}

/// The variables that members and servers receive.
fn forwarded_variables(config: &Configuration, council: &Council) -> BTreeSet<String> {
    let executors = config.executors.values().chain(council.runtimes()).map(|table| &table.block.json);
    let servers = config.servers.values().map(|block| &block.json);
    let named = |block: &Map<String, Json>| {
        let list = block.get("env").and_then(Json::as_array).cloned().unwrap_or_default();
        let names = list.into_iter().chain(block.get("token").cloned());
        names.filter_map(|name| name.as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    executors.chain(servers).flat_map(named).collect()
}

/// The redactor where no configuration is read: built-in forms, and the values of secret variables.
pub fn built_in_redactor(variables: &Variables) -> Redactor {
    let redaction =
        Redaction::of(&Configuration::default(), &quorate_manifest::council::built_in_council(), variables);
    redaction.map(|redaction| redaction.redactor).unwrap_or_default()
}

/// Words in one line that make it prose: a phrase of eight words may be a password.
const SENTENCE: usize = 9;
/// Words in several lines that make them prose. A secret with its headers has fewer.
const SENTENCES: usize = 16;
/// The maximum length of a word, in languages that put spaces between words.
const LONGEST: usize = 20;

/// The first and the last line, from 1, of the first passage with sentences that `clean` lacks: a line, or successive
/// lines of which no word is left, with the empty lines between them. Redaction keeps the number of lines.
fn find_hidden(text: &str, clean: &str) -> Option<(usize, usize)> {
    let mut passage = Passage::default();
    for (line, (before, after)) in (1..).zip(text.lines().zip(clean.lines())) {
        let lost = words(before).saturating_sub(words(after));
        if before == after && before.trim().is_empty() {
            continue;
        }
        if before == after || words(&after.replace(REDACTED, "")) > 0 {
            if passage.hides() {
                break;
            }
            passage = Passage::default();
            if lost >= SENTENCE {
                return Some((line, line));
            }
            continue;
        }
        passage.first.get_or_insert(line);
        (passage.last, passage.words) = (line, passage.words + lost);
        passage.has_sentence |= lost >= SENTENCE;
    }
    passage.first.filter(|_| passage.hides()).map(|first| (first, passage.last))
}

/// Successive lines of which no word is left.
#[derive(Default)]
struct Passage {
    first: Option<usize>,
    last: usize,
    words: usize,
    has_sentence: bool,
}

impl Passage {
    fn hides(&self) -> bool {
        self.has_sentence || self.words >= SENTENCES
    }
}

/// The number of words in a line. A run of base64 characters is one token, and not a word if it has digits or signs or
/// is long. Letters outside of ASCII do not occur in secrets, and some languages put no spaces between words.
fn words(line: &str) -> usize {
    let tokens = line.split(|c: char| !c.is_alphanumeric() && !"+/=-_".contains(c));
    // Emphasis does not belong to a word.
    let trimmed = tokens.map(|token| token.trim_matches(['-', '_']));
    let word = |token: &str| match token.is_ascii() {
        true => usize::from(
            (1..=LONGEST).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_alphabetic()),
        ),
        false => token.chars().filter(|c| !c.is_ascii() && c.is_alphabetic()).count().div_ceil(3),
    };
    trimmed.map(word).sum()
}

#[derive(Clone, Default)]
pub struct Variables(Arc<BTreeMap<String, String>>);

/// Shows names only: a value may be a secret.
impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl FromIterator<(String, String)> for Variables {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(variables: I) -> Self {
        Variables(Arc::new(variables.into_iter().collect()))
    }
}

impl Variables {
    /// A variable's value; `None` if it is not set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The values to redact: of variables whose name indicates a secret, and of those `forwarded` to members. Paths,
    /// words and short values are not redacted.
    pub fn secrets(&self, forwarded: &BTreeSet<String>) -> Vec<String> {
        let holds = |(name, value): (&String, &String)| {
            let named = names_a_secret(name);
            let is_secret = (named || forwarded.contains(name)) && is_worth_redacting(value, named);
            is_secret.then(|| value.clone())
        };
        self.0.iter().filter_map(holds).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_kernel::redact::{Redactor, Secrets};

    fn hidden(text: &str) -> Option<(usize, usize)> {
        let secrets = Secrets { builtin: true, ..Secrets::default() };
        let redactor = Redactor::from_secrets(&secrets).unwrap();
        find_hidden(text, &redactor.redact(text).0)
    }

    #[test]
    fn sentences_between_the_marks_of_a_key_are_seen() {
        let prose = "Prices never change.\n\nEverybody who joins today keeps what they pay, forever.";
        let between = |body: &str| {
            format!(
                "# News\n<!-- -----BEGIN PRIVATE KEY----- -->\n{body}\n<!-- -----END PRIVATE KEY----- -->\nEnd.\n"
            )
        };
        assert_eq!(hidden(&between(prose)), Some((2, 6)));
        assert_eq!(
            hidden(&between("我们永远不会提高价格，今天加入的每个人都将永远保持现在的价格。")),
            Some((2, 4))
        );
        assert_eq!(
            hidden(&between(
                "**We** will_ _never_ &#32;raise&#32;prices&#32;for&#32;anybody&#32;who joins today"
            )),
            Some((2, 4))
        );
        let short =
            "We will\nnever raise\na price\nfor anybody\nwho joins\nbefore the\nend of\nMay or\nlater";
        assert_eq!(hidden(&between(short)), Some((2, 12)));
    }

    #[test]
    fn secrets_hide_none() {
        let line = |at: u32| format!("{}\n", quorate_kernel::entropy::sha256_hex(&at.to_be_bytes()));
        let key: String = (0..25).map(line).collect();
        for secret in [
            format!(
                "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123\n\n{key}-----END RSA PRIVATE KEY-----\n"
            ),
            format!(
                "key: \"-----BEGIN PRIVATE KEY-----\\n{}\\n-----END PRIVATE KEY-----\"\n",
                key.replace('\n', "\\n")
            ),
            "password = \"correct horse battery staple orange river seven lamp\"\n".to_owned(),
            "password: swordfish\n".repeat(40),
            "DB_PASSWORD=k7Rz2Xk9Lm\nAPI_KEY=sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"
                .to_owned(),
        ] {
            assert_eq!(hidden(&secret), None, "{secret}");
        }
    }
}
