//! The rubric executor: a deterministic reviewer of prose that works offline and asks no model.
//!
//! It reads the typed parts of an invocation, never the prompt, through the lens that the member's id or role names,
//! and answers from counted findings; as a member of an assembly, by the lists of its persona; in a conversation, with a
//! few sentences; reflecting, with what was found again and again. `docs/rubric.md` says what is looked for, and the rules.
//! This file owns the port; `rubric/document.rs` parses texts, `rubric/substance.rs` refuses those that no rule can judge,
//! `rubric/checks.rs` has the checks, `rubric/lens_review.rs` scores their findings, `rubric/member.rs` serves assemblies,
//! and `rubric/reflection.rs` reflects.

mod adjudication;
mod checks;
mod criteria;
mod document;
mod finding;
mod lens_review;
mod lexicon;
mod member;
mod reflection;
mod substance;
mod turn;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use quorate_diagnostics::invisible::escape_invisible;
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::executor::{
    About, ConfigError, Executor, Failure, Invocation, Reply, Settings, SideEffect,
};
use quorate_protocol::answers::Schema;
use quorate_protocol::answers::advice::Turn;
use quorate_protocol::{Json, Part, PartKind};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use checks::Criteria;
use criteria::{BannedPhrases, Goals};
use document::Document;
use finding::Lens;
use lens_review::LensReview;
use member::Question;
use quorate_kernel::files;

/// The version of the rules. It changes when some text would be answered otherwise, so that a sweep judges again.
const RULES_VERSION: u32 = 5;

/// The kind, as settings name it.
pub const KIND: &str = crate::optional_kinds::RUBRIC;

/// Why it answers no question about a text's meaning.
const NO_MEANING: &str = "the rubric cannot say what a text means; name another executor";

/// Builds a rubric executor.
///
/// Its block may hold `banned` (strings: phrases, or `/regular expressions/`), `banned_defaults` (true) and `goals`
/// (the path of a goals document, relative to the settings' directory).
///
/// # Errors
/// Any other key, a value of the wrong kind, a pattern that does not compile, a goals document that cannot be read.
pub fn new(settings: &Settings) -> Result<Arc<dyn Executor>, ConfigError> {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Ok(Arc::new(RubricExecutor {
        rubric: Arc::new(read_settings(settings)?),
        processors: Semaphore::new(processors),
    }))
}

/// The rubric as an executor: no more readings at once than there are processors, since each holds its text several
/// times over.
struct RubricExecutor {
    rubric: Arc<Rubric>,
    processors: Semaphore,
}

#[async_trait]
impl Executor for RubricExecutor {
    fn about(&self) -> About {
        About { kind: KIND, asks_a_model: false, model: None }
    }

    fn fingerprint(&self) -> Json {
        json!({"rules": RULES_VERSION, "reads": self.rubric.file_hashes})
    }

    fn refuses(&self, answer: Schema) -> Option<String> {
        (answer == Schema::Predicate).then(|| NO_MEANING.to_owned())
    }

    /// Answers quote the goals, so that a document from outside ends up in the ledger and in reports.
    fn side_effects(&self) -> Vec<SideEffect> {
        let side_effect = |path: &PathBuf| SideEffect::new(format!("quote goals from {}", path.display()));
        self.rubric.outside_path.iter().map(side_effect).collect()
    }

    async fn invoke(&self, invocation: Invocation) -> Result<Reply, Failure> {
        let _processor = self.processors.acquire().await;
        let (rubric, notes) = (self.rubric.clone(), invocation.notes.clone());
        // Reading keeps a processor busy, for seconds when the text is long; deadlines and interruptions go on.
        let read = tokio::task::spawn_blocking(move || rubric.answer_to(&invocation)).await;
        let text = read.map_err(|error| Failure::failed(format!("the reading broke off: {error}")))?;
        // The rubric depends on no service.
        let text = text.map_err(|failure| notes.without_stand_in(failure))?;
        Ok(Reply { text, ..Reply::default() })
    }
}

impl Rubric {
    /// The answer to an invocation, a JSON object.
    fn answer_to(&self, invocation: &Invocation) -> Result<String, Failure> {
        let Invocation { member, step, role, persona, answer_schema: form, parts, .. } = invocation;
        match form {
            Schema::PlainText => return self.conversation_turn(invocation),
            Schema::Turn => {
                return Ok(Turn::plain_text_answer(&self.conversation_turn(invocation)?).to_string());
            }
            Schema::Selection => {
                return Err(Failure::failed(
                    "the rubric reads prose by rule and cannot choose who speaks; name another executor",
                ));
            }
            Schema::Tier => {
                return Err(Failure::never(
                    "the rubric cannot say the tier of a text; name another executor",
                ));
            }
            Schema::Predicate => {
                return Err(Failure::never(NO_MEANING));
            }
            Schema::Deltas => return Ok(escape_answer(&reflection::deltas(parts))),
            Schema::Judgement => return Ok(reflection::judgement().to_string()),
            Schema::FirstAnswer | Schema::SecondAnswer | Schema::Adjudication => {
                return self.council_answer(member, step, role, parts);
            }
            Schema::Advice | Schema::Ballot | Schema::Message => {}
        }
        let question = Question { step, role, persona: persona.as_deref(), parts };
        let goals = self.goals.clone().unwrap_or_default();
        let criteria = Criteria { banned: &self.banned, goals: &goals, context: &[] };
        Ok(escape_answer(&member::answer(*form, &question, &criteria)?))
    }

    /// The text of a turn in a conversation.
    fn conversation_turn(&self, invocation: &Invocation) -> Result<String, Failure> {
        let Invocation { member, role, parts, conversation: speaking, .. } = invocation;
        let goals = self.goals.clone().unwrap_or_default();
        let criteria = Criteria { banned: &self.banned, goals: &goals, context: &[] };
        turn::reply(Lens::of(member, role), speaking.as_deref(), parts, &criteria)
    }

    /// The answer to one member of a council, a JSON object.
    fn council_answer(
        &self,
        member: &str,
        step: &str,
        role: &str,
        parts: &[Part],
    ) -> Result<String, Failure> {
        let part = |kind: PartKind| parts.iter().find(|part| part.kind == kind);
        let artifact =
            part(PartKind::Artifact).ok_or_else(|| Failure::failed("the invocation has no artifact"))?;
        let document = Document::parse(&artifact.name, &artifact.text);
        let others = |kind| part(kind).map(|part| lens_review::read_peer_answers(&part.text, &document));
        if step == "adjudicate" {
            let first = others(PartKind::CrossRead).unwrap_or_default();
            let last = others(PartKind::SecondAnswers).unwrap_or_else(|| first.clone());
            let priors = part(PartKind::PriorVerdicts).map_or("", |part| &*part.text);
            let input = adjudication::AdjudicationInput {
                document: &document,
                last,
                first,
                priors,
                artifact: &artifact.name,
            };
            return Ok(adjudication::adjudicate(input).to_string());
        }
        if let Some(why) = substance::obstacle(&artifact.name, &document) {
            return Err(Failure::never(format!(
                "the rubric cannot judge this text: {why}; choose another `--executor`"
            )));
        }
        let lens = Lens::of(member, role);
        let context: Vec<&Part> = parts.iter().filter(|part| part.kind == PartKind::Context).collect();
        let given: Vec<Document<'_>> =
            context.iter().map(|part| Document::parse(&part.name, &part.text)).collect();
        let goals = self.goals_for(lens, &context);
        let criteria = Criteria { banned: &self.banned, goals: &goals, context: &given };
        let mut reading = LensReview::first_round(lens, &document, &criteria);
        if let Some(others) = others(PartKind::CrossRead).filter(|_| step == "r2") {
            lens_review::apply_peer_answers(&mut reading, member, &others);
        }
        Ok(reading.to_answer().to_string())
    }

    /// The goals of the settings, and for a member that reads for strategy those that it was given.
    fn goals_for(&self, lens: Lens, context: &[&Part]) -> Goals {
        let mut goals = self.goals.clone().unwrap_or_default();
        if lens == Lens::Strategy {
            context.iter().for_each(|part| goals.extend(Goals::read(&part.text)));
        }
        goals
    }
}

/// An answer that is passed on to agents: invisible characters in its quotations are made visible.
fn escape_answer(answer: &Json) -> String {
    escape_invisible(&answer.to_string()).into_owned()
}

const SETTING_KEYS: [&str; 3] = ["banned", "banned_defaults", "goals"];
/// The longest goals document that is read, in bytes.
const GOALS_CAP: u64 = 1024 * 1024;

/// The criteria from the settings.
#[derive(Debug)]
struct Rubric {
    banned: BannedPhrases,
    goals: Option<Goals>,
    /// Path and hash of every file that the settings name.
    file_hashes: Vec<(String, String)>,
    /// The goals document, if it is outside of the settings' directory.
    outside_path: Option<PathBuf>,
}

///
/// # Errors
/// An unknown key, a value of the wrong kind, a pattern that does not compile, a goals document that cannot be read.
fn read_settings(settings: &Settings) -> Result<Rubric, ConfigError> {
    for key in settings.block.keys() {
        if !SETTING_KEYS.contains(&key.as_str()) {
            return Err(unknown_key(key));
        }
    }
    // A key with a null value counts as absent.
    let value = |key: &str| settings.block.get(key).filter(|value| !value.is_null());
    let defaults = match value("banned_defaults") {
        None => true,
        Some(Value::Bool(on)) => *on,
        Some(_) => {
            return Err(ConfigError::for_key("banned_defaults", "`banned_defaults` must be true or false"));
        }
    };
    let phrases = value("banned").map_or(Ok(Vec::new()), phrases)?;
    let banned = BannedPhrases::new(defaults, &phrases).map_err(|bad| {
        ConfigError::for_key(
            "banned",
            format!("the banned pattern `{}` cannot be used: {}", bad.pattern, bad.reason),
        )
        .with_help("write a literal phrase, or a regular expression between slashes")
    })?;
    let (mut file_hashes, mut outside_path) = (Vec::new(), None);
    let goals = match value("goals") {
        None => None,
        Some(Value::String(path)) => {
            let text = read_goals_text(&settings.dir, path)?;
            file_hashes.push((path.clone(), sha256_hex(text.as_bytes())));
            outside_path = files::path_outside(&settings.dir, &settings.dir.join(path));
            Some(Goals::read(&text))
        }
        Some(_) => return Err(ConfigError::for_key("goals", "`goals` must be the path of a goals document")),
    };
    Ok(Rubric { banned, goals, file_hashes, outside_path })
}

fn phrases(value: &Value) -> Result<Vec<String>, ConfigError> {
    let refusal = || ConfigError::for_key("banned", "`banned` must be a list of strings");
    let list = value.as_array().ok_or_else(refusal)?;
    list.iter().map(|phrase| phrase.as_str().map(str::to_owned).ok_or_else(refusal)).collect()
}

fn read_goals_text(dir: &Path, path: &str) -> Result<String, ConfigError> {
    files::read_text(&dir.join(path), GOALS_CAP).map_err(|error| {
        let reason = match error.kind() {
            std::io::ErrorKind::FileTooLarge => "it is over 1 MiB".to_owned(),
            _ => error.to_string(),
        };
        ConfigError::for_key("goals", format!("the goals document `{path}` cannot be read: {reason}"))
    })
}

fn unknown_key(key: &str) -> ConfigError {
    let error = ConfigError::for_unknown_key(key, format!("a rubric executor has no key `{key}`"));
    let nearest = SETTING_KEYS.iter().min_by_key(|known| strsim::damerau_levenshtein(key, known));
    match nearest.filter(|known| strsim::damerau_levenshtein(key, known) <= 3) {
        Some(near) => error.with_help(format!("did you mean `{near}`?")),
        None => error.with_help("its keys are `banned`, `banned_defaults` and `goals`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn settings(block: Value) -> Settings {
        crate::block::test_settings(&std::env::temp_dir(), &block)
    }

    fn refused(block: Value) -> (Option<String>, String, String) {
        let error = read_settings(&settings(block)).expect_err("refused");
        (error.key, error.message, error.help.unwrap_or_default())
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_nearest_known() {
        let (key, _, help) = refused(json!({"baned": []}));
        assert_eq!((key.as_deref(), help.as_str()), (Some("baned"), "did you mean `banned`?"));
        assert!(refused(json!({"temperature": 1})).2.contains("its keys are"));
    }

    #[test]
    fn values_of_the_wrong_kind_are_refused_by_key() {
        for (key, value) in [
            ("banned", json!("x")),
            ("banned", json!([1])),
            ("banned_defaults", json!("no")),
            ("goals", json!(1)),
        ] {
            let mut block = serde_json::Map::new();
            block.insert(key.into(), value);
            assert_eq!(refused(Value::Object(block)).0.as_deref(), Some(key));
        }
    }

    #[test]
    fn a_pattern_that_does_not_compile_is_named() {
        let (key, message, _) = refused(json!({"banned": ["fine", "/(/"]}));
        assert_eq!(key.as_deref(), Some("banned"));
        assert!(message.contains("`/(/`"), "{message}");
    }

    #[test]
    fn a_goals_document_is_read_relative_to_the_settings() {
        let dir = tempfile::tempdir().expect("a directory");
        #[expect(clippy::disallowed_methods, reason = "the test needs a goals document")]
        std::fs::write(dir.path().join("GOALS.md"), "# Goals\n\n- Make audits cheap\n").expect("written");
        let mut settings = settings(json!({"goals": "GOALS.md", "banned": null}));
        settings.dir = dir.path().to_owned();
        assert!(read_settings(&settings).expect("read").goals.is_some());
        assert_eq!(refused(json!({"goals": "no-such-goals.md"})).0.as_deref(), Some("goals"));
    }
}

#[cfg(test)]
mod examples_tests {
    //! The examples under every lens, both rounds and the adjudicator; and properties of arbitrary texts.

    use std::sync::Arc;

    use quorate_kernel::ports::executor::Failure;
    use quorate_protocol::{Part, PartKind};
    use serde_json::{Value, json};

    use super::Rubric;
    use super::criteria::BannedPhrases;

    const ROSTER: [&str; 4] = ["skeptic", "voice-identity", "evidence-calibration", "strategy-stakes"];
    const LAUNCH: &str = include_str!("../../../../examples/launch-post.md");
    const INCIDENT: &str = include_str!("../../../../examples/incident-report.md");
    const PRICING: &str = include_str!("../../../../examples/pricing-promise.md");

    struct Review {
        first: Vec<Value>,
        second: Vec<Value>,
        adjudication: Value,
    }

    fn rubric() -> Rubric {
        Rubric {
            banned: BannedPhrases::new(true, &[]).expect("usable"),
            goals: None,
            file_hashes: Vec::new(),
            outside_path: None,
        }
    }

    fn ask(rubric: &Rubric, member: &str, step: &str, parts: &[Part]) -> Value {
        try_ask(rubric, member, step, parts).expect("an answer")
    }

    fn try_ask(rubric: &Rubric, member: &str, step: &str, parts: &[Part]) -> Option<Value> {
        let text = rubric.council_answer(member, step, "", parts).ok()?;
        Some(serde_json::from_str(&text).expect("one JSON object"))
    }

    fn cross_read(answers: &[Value]) -> Arc<str> {
        let members = ROSTER.iter().zip(answers).map(|(id, answer)| {
            let mut peer_answer = answer.clone();
            peer_answer["deliberator"] = json!(id);
            peer_answer["status"] = json!("answered");
            peer_answer
        });
        Value::Array(members.collect()).to_string().into()
    }

    fn review(name: &str, text: &str) -> Review {
        try_review(name, text).expect("a text that can be judged")
    }

    /// `None` where the text cannot be judged.
    fn try_review(name: &str, text: &str) -> Option<Review> {
        let rubric = rubric();
        let artifact = Part::new(PartKind::Artifact, name, text);
        let ask_first = |id: &&str| try_ask(&rubric, id, "r1", std::slice::from_ref(&artifact));
        let first: Vec<Value> = ROSTER.iter().map(ask_first).collect::<Option<_>>()?;
        let mut parts = vec![artifact, Part::new(PartKind::CrossRead, "", cross_read(&first))];
        let second: Vec<Value> = ROSTER.iter().map(|id| ask(&rubric, id, "r2", &parts)).collect();
        parts.push(Part::new(PartKind::SecondAnswers, "", cross_read(&second)));
        let adjudication = ask(&rubric, "adjudicator", "adjudicate", &parts);
        Some(Review { first, second, adjudication })
    }

    impl Review {
        fn count(&self, flag: &str) -> usize {
            self.second.iter().filter(|answer| answer[flag] == true).count()
        }

        fn findings(&self) -> usize {
            self.second.iter().filter_map(|answer| answer["findings"].as_array()).map(Vec::len).sum()
        }
    }

    #[test]
    fn the_launch_post_is_to_be_revised() {
        let review = review("examples/launch-post.md", LAUNCH);
        assert_eq!(review.adjudication["verdict"], "REVISE", "{:#}", review.adjudication);
        assert!((2..=3).contains(&review.count("would_block")), "{}", review.count("would_block"));
        assert_eq!(review.count("irreducible"), 0);
        assert!((6..=12).contains(&review.findings()), "{}", review.findings());
        for answer in &review.first {
            assert!(answer["findings"].as_array().is_some_and(|all| !all.is_empty()), "{answer:#}");
        }
    }

    #[test]
    fn the_incident_report_ships() {
        let review = review("examples/incident-report.md", INCIDENT);
        assert_eq!(review.adjudication["verdict"], "SHIP", "{:#}", review.adjudication);
        assert!(review.findings() <= 3, "{:#}", review.adjudication);
    }

    #[test]
    fn the_pricing_promise_is_held() {
        let review = review("examples/pricing-promise.md", PRICING);
        assert_eq!(review.adjudication["verdict"], "HOLD", "{:#}", review.adjudication);
        assert!(review.count("irreducible") >= 3);
    }

    #[test]
    fn a_text_that_cannot_be_judged_gets_no_answer() {
        // C15
        for (text, why) in [
            ("", "it has no prose of its own"),
            ("```\ncode\n```\n", "it has no prose of its own"),
            ("Fix typo.", "it has only 2 words of prose"),
            (&"a ".repeat(50_000), "it has only 1 different words"),
        ] {
            let parts = [Part::new(PartKind::Artifact, "x.md", text)];
            for step in ["r1", "r2"] {
                let failed = rubric().council_answer("skeptic", step, "", &parts).expect_err("no answer");
                let expected =
                    format!("the rubric cannot judge this text: {why}; choose another `--executor`");
                assert_eq!(failed, Failure::never(expected), "{text:.20}");
            }
        }
    }

    #[test]
    fn a_post_that_mostly_boasts_is_held() {
        let text = "# Meet Lumen, the best lamp in the world\n\nEveryone loves Lumen. You will read 40% faster, guaranteed, and you \
                will always feel great. Thousands of teams have switched, and none of them looked back. Order yours today!\n";
        let review = review("x.md", text);
        assert_eq!(review.adjudication["verdict"], "HOLD", "{:#}", review.adjudication);
        assert_eq!((review.count("would_block"), review.count("irreducible")), (4, 4));
    }

    #[test]
    fn a_technical_readme_is_not_blocked_for_trivia() {
        let text = "# Winnow\n\nWinnow is a small command that reads a folder of drafts and says which of them are ready. It keeps \
                a record of each decision, and nothing leaves your machine.\n\n## Install\n\n```sh\ncargo install winnow\n```\n\n\
                It needs Rust 1.80 or later and about 20 MiB of disk. On two cores the build takes 3 minutes.\n\n## Use\n\n\
                ```sh\nwinnow check drafts/ --jobs 4\n```\n\nExit code 0 means ready, 1 means not yet, and 64 means that the \
                command line was wrong. Every run is written to `.winnow/log`, which is never rewritten. A run that was \
                interrupted goes on where it stopped; it always starts from the last record.\n\n## Options\n\n\
                | option | default | meaning |\n|---|---|---|\n| `--jobs` | 4 | how many at once |\n| `--limit` | 50% | share of drafts |\n\n\
                ## Limits\n\nWinnow reads English. It does not judge whether a claim is true.\n";
        let review = review("README.md", text);
        assert_eq!(
            (review.count("would_block"), &review.adjudication["verdict"]),
            (0, &json!("SHIP")),
            "{:#}",
            review.adjudication
        );
    }

    #[test]
    fn the_same_text_gets_the_same_answer() {
        for text in [LAUNCH, INCIDENT, PRICING] {
            let (a, b) = (review("x.md", text), review("x.md", text));
            assert_eq!((a.first, a.second, a.adjudication), (b.first, b.second, b.adjudication));
        }
    }

    #[test]
    fn a_second_round_without_cross_read_repeats_the_first() {
        let parts = [Part::new(PartKind::Artifact, "launch-post.md", LAUNCH)];
        for id in ROSTER {
            assert_eq!(ask(&rubric(), id, "r2", &parts), ask(&rubric(), id, "r1", &parts));
        }
    }

    #[test]
    fn context_sources_numbers_and_sets_goals() {
        let with = |id: &str, context: &str| {
            let parts = [
                Part::new(PartKind::Artifact, "launch-post.md", LAUNCH),
                Part::new(PartKind::Context, "given.md", context),
            ];
            ask(&rubric(), id, "r1", &parts).to_string()
        };
        assert!(with("evidence", "Nothing.").contains("“40%” is a claim"));
        assert!(!with("evidence", "In June it was 40% in the lab.").contains("“40%” is a claim"));
        assert!(
            with("strategy", "# Goals\n\n- Sell fewer umbrellas in deserts\n")
                .contains("None of the 1 stated goals")
        );
        assert!(!with("skeptic", "# Goals\n\n- Sell fewer umbrellas in deserts\n").contains("stated goals"));
    }

    #[test]
    fn without_an_artifact_there_is_no_answer() {
        assert!(rubric().council_answer("skeptic", "r1", "", &[]).is_err());
    }

    /// Every quote occurs verbatim on its line, and is short.
    fn assert_grounded(text: &str, answers: &[Value]) {
        let lines: Vec<&str> = text.split('\n').collect();
        for finding in answers.iter().filter_map(|answer| answer["findings"].as_array()).flatten() {
            let quote = finding["quote"].as_str().expect("a quote");
            let line = finding["line"].as_u64().expect("a line") as usize;
            assert!(quote.chars().count() <= 160, "{finding:#}");
            assert!(lines[line - 1].contains(quote), "{finding:#} is not on {:?}", lines[line - 1]);
        }
    }

    #[test]
    fn odd_texts_are_read_without_panic_and_quotes_stay_grounded() {
        let odd = [
            "**bold*_ [x](y \"z) ![a](b) <p>é</p> &amp;&nbsp; `` ` `` \\* ~~x~~ | a | b\n|-|\n",
            "\r\n\r\n# T\r\n\r\nIt is 40% faster,\r\nalways.\r\n",
            "“It is 40% — „faster” «now» \"and\nthe fastest!!",
            "[^1]: a\n[^1]\n[^2]\n- - - 1. 2.\n  - [ ] x\n",
            "𝒜lways 40％ ﬁrst İstanbul ǅ ß… \u{202e}never\u{202c} 🎉🎉!!",
            "http://[ https://é.x/\u{301}40% never\n\thttp",
            "\u{1}\u{1} 40% \u{0} never, so 3x $5k €",
            ". . . ! ? … e.g. i.e. A. B. No. 5 %\n",
            "not but not just it's — not only but\n",
            "| a | 40% |\n|---|---|\n| never | 3x |\n\n> [!NOTE]\n> It is 40% faster, always.\n",
        ];
        let filler = "The council reads what it is given and says what it found there, and then it goes home for the night. ";
        for text in odd
            .iter()
            .flat_map(|text| [(*text).to_owned(), format!("{filler}{filler}{text}"), text.repeat(40)])
        {
            let Some(review) = try_review("x.md", &text) else {
                assert!(!text.starts_with(filler), "{text}");
                continue;
            };
            assert_grounded(&text, &review.first);
            assert_grounded(&text, &review.second);
        }
    }

    #[test]
    fn mutated_examples_are_read_without_panic_and_quotes_stay_grounded() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = move |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below.max(1) as u64) as usize
        };
        let inserts = [
            "*", "`", "\n\n", "> ", "“", "\"", "[", "](", "<", "é", "\u{1}", "!!", "|", "# ", "```\n", "40%",
            " never ", "https://", "\r\n", "🎉",
        ];
        let mut judged = 0;
        for round in 0..60 {
            let mut chars: Vec<char> = [LAUNCH, INCIDENT, PRICING][round % 3].chars().collect();
            for _ in 0..1 + next(30) {
                let at = next(chars.len());
                match next(3) {
                    0 => drop(chars.drain(at..(at + next(40)).min(chars.len()))),
                    1 => drop(chars.splice(at..at, inserts[next(inserts.len())].chars())),
                    _ => chars.truncate(chars.len().max(1) - next(5)),
                }
            }
            let text: String = chars.into_iter().collect();
            // A control character within a word cannot be judged.
            let Some(review) = try_review("x.md", &text) else { continue };
            judged += 1;
            assert_grounded(&text, &review.first);
            assert_grounded(&text, &review.second);
            assert_ne!(review.adjudication["reasoning"], "");
        }
        assert!(judged > 30, "{judged} of 60");
    }
}
