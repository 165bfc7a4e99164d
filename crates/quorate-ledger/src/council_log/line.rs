//! Reading a line of the log, in the published schema (`round1`, `round2`, `adjudicator`) or as the public tool
//! writes it (`verdict`, `deliberators`).

use std::collections::BTreeMap;

use quorate_kernel::clock::parse_rfc3339;
use serde::Deserialize;
use serde_json::Value;

/// The longest duration of a review that counts, in milliseconds: a year. A longer one is wrong, and a few of them
/// would overflow a sum.
const MAX_ELAPSED_MS: f64 = 366.0 * 24.0 * 3600.0 * 1000.0;

/// The verdict word of a run that was closed because its draft changed. It does not count.
pub const SUPERSEDED: &str = "SUPERSEDED";

/// The indexed data of a line.
#[derive(Debug, Clone, PartialEq)]
pub struct LogLine {
    /// The kind of the line.
    pub event: LogEvent,
    /// The run or span; empty if the line has none.
    pub span: String,
    /// The artifact's type; `unknown_type` if the line has none.
    pub artifact_type: String,
    /// The verdict in upper case; `UNKNOWN` if the line has none.
    pub verdict: String,
    /// The time, in milliseconds since the Unix epoch; 0 if the line has none.
    pub at_ms: i64,
    /// The duration in milliseconds.
    pub elapsed_ms: i64,
    /// The number of calls; -1 if the line has none.
    pub calls: i64,
    /// The number of tokens read and written; -1 if the line has none.
    pub tokens: i64,
    /// The behaviour of each deliberator.
    pub deliberators: Vec<(String, Behavior)>,
    /// The operator that made the artifact; empty if the line has none.
    pub producer: String,
}

/// The kinds of line that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogEvent {
    Verdict,
    /// A review that had ended without a verdict was resumed to one.
    Resumed,
    /// A review ended, and the same line records a person's override: the public tool's mark.
    Overridden,
    /// A person overrode the verdict.
    Override,
    /// Something else, which is ignored.
    Other,
}

impl LogEvent {
    /// The word in the index.
    pub fn as_str(self) -> &'static str {
        match self {
            LogEvent::Verdict => "verdict",
            LogEvent::Resumed => "resumed",
            LogEvent::Overridden => "overridden",
            LogEvent::Override => "override",
            LogEvent::Other => "other",
        }
    }

    fn from_word(word: Option<&str>) -> LogEvent {
        match word {
            None | Some("" | "verdict") => LogEvent::Verdict,
            Some("resumed") => LogEvent::Resumed,
            Some("override") => LogEvent::Override,
            Some(_) => LogEvent::Other,
        }
    }
}

/// The behaviour of a deliberator in one review.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Behavior {
    /// It blocked at the end.
    pub blocks: bool,
    /// It declared the draft irreparable.
    pub irreducible: bool,
    /// Its block changed from round 1 to round 2.
    pub flipped: bool,
    /// It gave an invalid answer, in either round.
    pub schema_failed: bool,
    /// It timed out, in either round.
    pub timed_out: bool,
    /// Its first score, in hundredths.
    pub first_score: Option<i64>,
    /// Its last score, in hundredths.
    pub last_score: Option<i64>,
    /// The number of reprompts after invalid answers.
    pub reprompts: i64,
    /// Whether it blocked in the answer that counts (C4); `None` if none counts.
    pub position: Option<bool>,
}

/// Replaces a missing number.
const NOT_STATED: i64 = -1;
/// The most deliberators of a line whose agreement is counted.
pub const MAX_POSITIONS: usize = 32;
/// The largest counted number. Larger ones could overflow a sum.
const MAX_COUNT: i64 = 1 << 40;

impl Behavior {
    /// In the order of the index's columns.
    pub(super) fn to_columns(self) -> [i64; 8] {
        let [blocks, irreducible, flipped, schema_failed, timed_out] =
            [self.blocks, self.irreducible, self.flipped, self.schema_failed, self.timed_out].map(i64::from);
        let [first, last] = [self.first_score, self.last_score].map(|score| score.unwrap_or(NOT_STATED));
        [blocks, irreducible, flipped, schema_failed, timed_out, first, last, self.reprompts]
    }
}

impl LogLine {
    /// Whether a later review of the same type learns from it.
    pub fn is_prior(&self) -> bool {
        matches!(self.event, LogEvent::Verdict | LogEvent::Resumed | LogEvent::Overridden)
            && matches!(&*self.verdict, "SHIP" | "REVISE" | "HOLD")
    }

    /// The position of each deliberator that has one, by name. A duplicate name has none, and a line with more than
    /// [`MAX_POSITIONS`] names has no positions, because pairs are counted.
    pub fn positions(&self) -> BTreeMap<&str, bool> {
        if self.deliberators.len() > MAX_POSITIONS {
            return BTreeMap::new();
        }
        let is_named_once =
            |name: &str| self.deliberators.iter().filter(|(other, _)| other == name).count() == 1;
        let positions = self.deliberators.iter().filter_map(|(name, behavior)| {
            Some((&**name, behavior.position?)).filter(|(name, _)| is_named_once(name))
        });
        positions.collect()
    }

    /// The number of deliberators that scored, and the sum of their last scores in hundredths.
    pub fn last_scores(&self) -> (i64, i64) {
        let scores = self.deliberators.iter();
        let scores = scores.filter_map(|(_, behavior)| behavior.last_score.or(behavior.first_score));
        scores.fold((0, 0), |(count, sum), score| (count + 1, sum + score))
    }

    /// Parses a line; `None` if it is not a JSON object, or follows up on a run without naming it.
    pub fn parse(text: &[u8]) -> Option<LogLine> {
        if let Ok(wire) = serde_json::from_slice::<LogObject>(text) {
            return wire.into_line();
        }
        // A field of an unexpected type is ignored; the line still counts.
        let mut object: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(text).ok()?;
        object.retain(|key, value| {
            let one = serde_json::Value::Object(serde_json::Map::from_iter([(key.clone(), value.clone())]));
            serde_json::from_value::<LogObject>(one).is_ok()
        });
        let wire: LogObject = serde_json::from_value(serde_json::Value::Object(object)).ok()?;
        wire.into_line()
    }
}

/// Every line of a log has at least one of these keys. Other files with JSON lines have none: a transcript has times
/// and events, and an export also has a version.
const MARKS: [&str; 6] = ["span_id", "artifact_type", "verdict", "adjudicator", "round1", "deliberators"];

/// Whether a line is one of a log.
pub(super) fn is_logs(text: &[u8]) -> bool {
    let object = serde_json::from_slice::<BTreeMap<String, serde::de::IgnoredAny>>(text);
    object.is_ok_and(|object| MARKS.iter().any(|mark| object.contains_key(*mark)))
}

/// Whether a text without line end is the start of an object.
pub(super) fn is_begun(text: &[u8]) -> bool {
    let object = || serde_json::from_slice::<serde::de::IgnoredAny>(text);
    text.starts_with(b"{\"") && !text.ends_with(b"\n") && object().is_err_and(|error| error.is_eof())
}

#[derive(Deserialize)]
struct LogObject {
    event: Option<String>,
    run: Option<String>,
    ts: Option<String>,
    span_id: Option<String>,
    artifact_type: Option<String>,
    verdict: Option<String>,
    adjudicator: Option<Adjudicator>,
    elapsed_seconds: Option<f64>,
    calls: Option<u32>,
    tokens: Option<Tokens>,
    tokens_total: Option<f64>,
    round1: Option<Vec<RoundEntry>>,
    round2: Option<Vec<RoundEntry>>,
    deliberators: Option<BTreeMap<String, PublicToolEntry>>,
    producer: Option<String>,
    /// The public tool's mark for a person's override.
    parth_override: Option<bool>,
}

#[derive(Deserialize)]
struct Adjudicator {
    final_verdict: Option<String>,
    verdict: Option<String>,
}

/// With the same rules as the public tool's reader.
#[derive(Deserialize)]
#[serde(untagged)]
enum Tokens {
    Split { total: Option<f64> },
    Total(f64),
}

#[derive(Deserialize)]
struct RoundEntry {
    deliberator: Option<String>,
    would_block: Option<bool>,
    irreducible: Option<bool>,
    schema_failed: Option<bool>,
    status: Option<String>,
    score: Option<Value>,
    scores: Option<Value>,
}

#[derive(Deserialize)]
struct PublicToolEntry {
    r1_would_block: Option<bool>,
    r2_would_block: Option<bool>,
    r2_irreducible: Option<bool>,
    schema_failed: Option<bool>,
    r1_score: Option<Value>,
    r2_score: Option<Value>,
    reprompts: Option<Value>,
    error: Option<String>,
}

impl LogObject {
    fn into_line(self) -> Option<LogLine> {
        let public = self.deliberators.unwrap_or_default();
        let deliberators = if self.round1.is_some() || self.round2.is_some() {
            let mut deliberators =
                merge_rounds(self.round1.unwrap_or_default(), self.round2.unwrap_or_default());
            // Fields that the published schema lacks.
            for (member, marks) in &mut deliberators {
                marks.reprompts = public.get(member).map_or(0, |entry| entry.behavior().reprompts);
            }
            deliberators
        } else {
            let two_rounds = public.values().any(|entry| score(entry.r2_score.as_ref()).is_some());
            let behavior = |(member, entry): (String, PublicToolEntry)| {
                let position = entry.position(two_rounds);
                (member, Behavior { position, ..entry.behavior() })
            };
            public.into_iter().map(behavior).collect()
        };
        let tokens = self.tokens.and_then(|tokens| match tokens {
            Tokens::Split { total } => total,
            Tokens::Total(total) => Some(total),
        });
        let verdict = self.verdict.or_else(|| {
            self.adjudicator.and_then(|adjudicator| adjudicator.final_verdict.or(adjudicator.verdict))
        });
        let is_superseded = verdict.as_deref() == Some(SUPERSEDED);
        let event = match LogEvent::from_word(self.event.as_deref()) {
            LogEvent::Verdict if self.parth_override == Some(true) => LogEvent::Overridden,
            event => event,
        };
        // The published schema has neither. This program writes run, span and verdict.
        let follows_up =
            matches!(event, LogEvent::Resumed | LogEvent::Override) && self.parth_override != Some(true);
        let is_whole =
            self.run.as_deref().is_some_and(|run| !run.is_empty() && self.span_id.as_deref() == Some(run))
                && verdict.as_deref().is_some_and(|word| matches!(word, "SHIP" | "REVISE" | "HOLD"));
        if follows_up && !is_whole {
            return None;
        }
        Some(LogLine {
            event,
            span: self.span_id.unwrap_or_default(),
            artifact_type: self
                .artifact_type
                .filter(|word| !word.is_empty())
                .unwrap_or_else(|| "unknown_type".into()),
            verdict: verdict.map_or_else(|| "UNKNOWN".into(), |word| word.to_uppercase()),
            at_ms: self.ts.as_deref().and_then(time).unwrap_or(0),
            elapsed_ms: self
                .elapsed_seconds
                .map_or(0, |seconds| (seconds * 1000.0).clamp(0.0, MAX_ELAPSED_MS) as i64),
            calls: self.calls.map_or(NOT_STATED, i64::from),
            tokens: tokens.or(self.tokens_total).map_or(NOT_STATED, clamp_count),
            // It is not finished.
            deliberators: if is_superseded { Vec::new() } else { deliberators },
            producer: self.producer.unwrap_or_default(),
        })
    }
}

/// A counted number, limited so that sums cannot overflow.
fn clamp_count(number: f64) -> i64 {
    (number as i64).clamp(0, MAX_COUNT)
}

/// A score in hundredths.
fn score(value: Option<&Value>) -> Option<i64> {
    let score = value.and_then(Value::as_f64).filter(|score| (0.0..=100.0).contains(score));
    score.map(|score| (score * 100.0).round() as i64)
}

/// A time with an offset, or without one, which means UTC.
fn time(text: &str) -> Option<i64> {
    parse_rfc3339(text).or_else(|| parse_rfc3339(&format!("{text}Z")))
}

/// The answer that counts (C4): the second one, else a block in the first one; in a review of one round the first one.
fn counting(first: Option<bool>, second: Option<bool>, two_rounds: bool) -> Option<bool> {
    second.or_else(|| first.filter(|block| *block || !two_rounds))
}

fn merge_rounds(first: Vec<RoundEntry>, second: Vec<RoundEntry>) -> Vec<(String, Behavior)> {
    let two_rounds = !second.is_empty();
    let mut deliberators: Vec<(String, Behavior, Option<bool>)> = Vec::new();
    for entry in first {
        let Some(member) = entry.deliberator.clone() else { continue };
        let (block, position) = (entry.block(), counting(entry.valid_block(), None, two_rounds));
        deliberators.push((member, Behavior { position, ..entry.behavior() }, block));
    }
    for entry in second {
        let Some(member) = entry.deliberator.clone() else { continue };
        let (marks, block) = (entry.behavior(), entry.block());
        let at = deliberators.iter().position(|(one, ..)| *one == member).unwrap_or_else(|| {
            deliberators.push((member, Behavior::default(), None));
            deliberators.len() - 1
        });
        let (_, before, first_block) = &mut deliberators[at];
        before.position = entry.valid_block().or(before.position);
        before.schema_failed |= marks.schema_failed;
        before.timed_out |= marks.timed_out;
        before.last_score = marks.first_score;
        // Without a second answer the first one stands (C4).
        if let Some(block) = block {
            before.flipped = first_block.is_some_and(|first| first != block);
            before.blocks = marks.blocks;
            before.irreducible = marks.irreducible;
        }
    }
    deliberators.into_iter().map(|(member, marks, _)| (member, marks)).collect()
}

impl RoundEntry {
    fn block(&self) -> Option<bool> {
        self.would_block
    }

    /// Whether a valid answer blocks.
    fn valid_block(&self) -> Option<bool> {
        let answered = self.status.as_deref().is_none_or(|status| status == "answered");
        self.would_block.filter(|_| answered && self.schema_failed != Some(true))
    }

    /// Reads one round. Its score is the first score.
    fn behavior(&self) -> Behavior {
        let status = self.status.as_deref();
        let named = || {
            let scores = self.scores.as_ref()?.as_object()?.values().filter_map(Value::as_f64);
            let (count, sum) = scores.fold((0, 0.0), |(count, sum), score| (count + 1, sum + score));
            (count > 0).then(|| Value::from(sum / f64::from(count)))
        };
        Behavior {
            first_score: score(self.score.clone().or_else(named).as_ref()),
            blocks: self.would_block == Some(true),
            irreducible: self.irreducible == Some(true),
            flipped: false,
            schema_failed: self.schema_failed == Some(true) || status == Some("schema_failed"),
            timed_out: status == Some("timed_out"),
            ..Behavior::default()
        }
    }
}

impl PublicToolEntry {
    /// The public tool writes `false` for an answer that never existed. A score distinguishes the two.
    fn position(&self, two_rounds: bool) -> Option<bool> {
        let block = |block: Option<bool>, scored: Option<&Value>| score(scored).map(|_| block == Some(true));
        let first = block(self.r1_would_block, self.r1_score.as_ref());
        counting(first, block(self.r2_would_block, self.r2_score.as_ref()), two_rounds)
    }

    fn behavior(&self) -> Behavior {
        let first = self.r1_would_block == Some(true);
        // The public tool writes `false` for a round that never existed. A score distinguishes the two.
        let second = self.r2_score.is_some().then_some(self.r2_would_block == Some(true));
        Behavior {
            blocks: second.unwrap_or(first || self.r2_would_block == Some(true)),
            irreducible: self.r2_irreducible == Some(true),
            flipped: second.is_some_and(|second| second != first),
            schema_failed: self.schema_failed == Some(true),
            timed_out: self
                .error
                .as_deref()
                .is_some_and(|error| error.to_ascii_lowercase().contains("timeout")),
            first_score: score(self.r1_score.as_ref()),
            last_score: score(self.r2_score.as_ref()),
            reprompts: self
                .reprompts
                .as_ref()
                .and_then(Value::as_i64)
                .map_or(0, |many| many.clamp(0, MAX_COUNT)),
            position: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_published_schema_is_read() {
        // D6
        let line = LogLine::parse(
        br#"{"v":2,"ts":"2026-05-18T14:23:11.504Z","artifact":"a.md","artifact_type":"post",
            "round1":[{"deliberator":"skeptic","verdict":"revise","would_block":true,"irreducible":false},{"deliberator":"voice","status":"timed_out"}],
            "round2":[{"deliberator":"skeptic","would_block":false,"irreducible":false},{"deliberator":"voice","schema_failed":true}],
            "adjudicator":{"final_verdict":"REVISE","reasoning":"r"},"elapsed_seconds":312.4}"#,
    )
    .expect("read");
        assert_eq!((line.event, &*line.verdict, &*line.artifact_type), (LogEvent::Verdict, "REVISE", "post"));
        assert_eq!(line.elapsed_ms, 312_400);
        assert_eq!(
            line.deliberators[0],
            ("skeptic".into(), Behavior { flipped: true, position: Some(false), ..Behavior::default() })
        );
        assert_eq!(
            line.deliberators[1].1,
            Behavior { schema_failed: true, timed_out: true, ..Behavior::default() }
        );
    }

    #[test]
    fn a_line_of_the_public_tool_is_read() {
        // D6
        let line = LogLine::parse(
        br#"{"v":2,"span_id":"council-ab12","event":"verdict","ts":"2026-05-15T10:23:11Z","artifact_type":"memo","verdict":"HOLD",
            "deliberators":{"skeptic":{"r1_score":2,"r1_would_block":true,"r2_score":2,"r2_would_block":true,"r2_irreducible":true,"schema_failed":false,"error":null},
            "evidence":{"r1_would_block":true,"r2_score":null,"r2_would_block":false,"error":"TimeoutError: "}}}"#,
    )
    .expect("read");
        assert!(line.is_prior());
        let skeptic = Behavior {
            blocks: true,
            irreducible: true,
            first_score: Some(200),
            last_score: Some(200),
            position: Some(true),
            ..Behavior::default()
        };
        assert_eq!(line.deliberators[1].1, skeptic);
        assert_eq!(line.deliberators[0].1, Behavior { blocks: true, timed_out: true, ..Behavior::default() });
    }

    #[test]
    fn scores_reprompts_and_tokens_are_read_in_either_form() {
        let public = LogLine::parse(
        br#"{"verdict":"SHIP","tokens":{"total":1200},"deliberators":{"a":{"r1_score":3,"r2_score":4.5,"reprompts":2}}}"#,
    );
        let marks = Behavior {
            first_score: Some(300),
            last_score: Some(450),
            reprompts: 2,
            position: Some(false),
            ..Behavior::default()
        };
        let public = public.expect("read");
        assert_eq!((public.tokens, public.deliberators), (1200, vec![("a".to_owned(), marks)]));
        let published = LogLine::parse(
            br#"{"round1":[{"deliberator":"a","would_block":false,"scores":{"x":2,"y":4}}],
            "round2":[{"deliberator":"a","would_block":false,"score":4.5}],
            "deliberators":{"a":{"reprompts":2}},"tokens_total":7}"#,
        );
        let published = published.expect("read");
        assert_eq!((published.tokens, published.deliberators), (7, vec![("a".to_owned(), marks)]));
        // No number in a line overflows a sum.
        for said in ["1e300", "-5", "\"many\"", "{\"total\": null}"] {
            let line = LogLine::parse(format!("{{\"tokens\": {said}}}").as_bytes()).expect("read");
            assert!((-1..=MAX_COUNT).contains(&line.tokens), "{said}");
        }
    }

    #[test]
    fn a_position_is_the_answer_that_counts() {
        // C4
        let positions = |text: &str| {
            let line = LogLine::parse(text.as_bytes()).expect("read");
            line.positions()
                .into_iter()
                .map(|(name, block)| format!("{name}{}", u8::from(block)))
                .collect::<Vec<_>>()
        };
        let two_rounds = r#"{"verdict": "HOLD", "round1": [
        {"deliberator": "a", "would_block": true, "status": "answered"}, {"deliberator": "b", "would_block": false},
        {"deliberator": "c", "would_block": true}, {"deliberator": "d", "would_block": true, "schema_failed": true},
        {"deliberator": "e", "would_block": true}, {"deliberator": "e", "would_block": true}],
        "round2": [{"deliberator": "a", "would_block": false, "status": "answered"},
        {"deliberator": "b", "status": "timed_out"}, {"deliberator": "c", "would_block": false, "status": "schema_failed"},
        {"deliberator": "d", "status": "failed"}]}"#;
        assert_eq!(positions(two_rounds), ["a0", "c1"]);
        let one_round = r#"{"round1": [{"deliberator": "a", "would_block": true}, {"deliberator": "b", "would_block": false}], "round2": []}"#;
        assert_eq!(positions(one_round), ["a1", "b0"]);
        let public = r#"{"deliberators": {
        "a": {"r1_score": 2, "r1_would_block": true, "r2_score": null, "r2_would_block": false},
        "b": {"r1_score": 4, "r1_would_block": false, "r2_score": null, "r2_would_block": false},
        "c": {"r1_score": 4, "r1_would_block": false, "r2_score": 2, "r2_would_block": true},
        "d": {"r1_score": null, "r1_would_block": false, "error": "down"}}}"#;
        assert_eq!(positions(public), ["a1", "c1"]);
        let many: Vec<Value> = (0..=MAX_POSITIONS)
            .map(|n| serde_json::json!({"deliberator": format!("m{n}"), "would_block": true}))
            .collect();
        assert!(positions(&serde_json::json!({"round1": many}).to_string()).is_empty());
    }

    #[test]
    fn odd_fields_cost_their_meaning_and_not_the_line() {
        let line = LogLine::parse(br#"{"artifact_type": 5, "verdict": "SHIP", "round1": "none"}"#)
            .expect("an object");
        assert_eq!((&*line.artifact_type, &*line.verdict), ("unknown_type", "SHIP"));
        assert_eq!(LogLine::parse(b"[1]"), None);
        assert_eq!(LogLine::parse(b"{\"verdict\": \"SH"), None);
    }

    #[test]
    fn a_line_that_follows_up_on_a_run_names_it() {
        // D6
        for line in [
            &br#"{"event": "override"}"#[..],
            br#"{"event": "override", "verdict": "SHIP"}"#,
            br#"{"event": "override", "run": "r1", "verdict": "SHIP"}"#,
            br#"{"event": "override", "run": "r1", "span_id": "r2", "verdict": "SHIP"}"#,
            br#"{"event": "override", "run": "r1", "span_id": "r1"}"#,
            br#"{"event": "override", "run": "r1", "span_id": "r1", "verdict": "MAYBE"}"#,
            br#"{"event": "resumed", "span_id": "r1", "verdict": "SHIP"}"#,
        ] {
            assert_eq!(LogLine::parse(line), None, "{}", String::from_utf8_lossy(line));
        }
        // The public tool has another word for it.
        let theirs =
            br#"{"event": "verdict", "parth_override": true, "span_id": "council-1", "verdict": "SHIP"}"#;
        let theirs = LogLine::parse(theirs).expect("read");
        assert_eq!((theirs.event, &*theirs.verdict, theirs.is_prior()), (LogEvent::Overridden, "SHIP", true));
    }

    #[test]
    fn incomplete_and_overrides_are_no_priors() {
        // C10
        assert!(!LogLine::parse(br#"{"verdict": "INCOMPLETE"}"#).expect("read").is_prior());
        let person = br#"{"event": "override", "run": "r1", "span_id": "r1", "verdict": "SHIP"}"#;
        assert!(!LogLine::parse(person).expect("read").is_prior());
        assert!(
            !LogLine::parse(br#"{"event": "sweep_complete", "verdict": "SHIP"}"#).expect("read").is_prior()
        );
    }
}
