//! Reading a line of the log, in the published schema (`round1`, `round2`, `adjudicator`) or as the public tool
//! writes it (`verdict`, `deliberators`).

use std::collections::BTreeMap;

use quorate_kernel::clock::parse_rfc3339;
use serde::Deserialize;
use serde_json::Value;

/// The longest time that one review is counted with, in milliseconds: a year. A longer time is wrong, and a
/// few of them would be more than a sum can hold.
const MAX_ELAPSED_MS: f64 = 366.0 * 24.0 * 3600.0 * 1000.0;

/// The verdict word of a run that was closed because its draft changed; it counts for nothing.
pub const SUPERSEDED: &str = "SUPERSEDED";

/// What the index keeps of a line.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// What kind of line.
    pub event: Event,
    /// The run or span that it belongs to; empty where the line has none.
    pub span: String,
    /// The artifact's type; `unknown_type` where the line has none.
    pub artifact_type: String,
    /// The verdict in upper case; `UNKNOWN` where the line has none.
    pub verdict: String,
    /// When, in milliseconds since the Unix epoch; 0 where the line does not say.
    pub at_ms: i64,
    /// How long it took, in milliseconds.
    pub elapsed_ms: i64,
    /// How many calls were made; -1 where the line does not say.
    pub calls: i64,
    /// How many tokens were read and written; -1 where the line does not say.
    pub tokens: i64,
    /// How each deliberator behaved.
    pub deliberators: Vec<(String, Behavior)>,
}

/// The kinds of line that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    Verdict,
    /// A review that had ended without a verdict was resumed to one.
    Resumed,
    /// A review ended, and the same line says that a person decided otherwise: the public tool's mark.
    Overridden,
    /// A person decided otherwise.
    Override,
    /// Something else, which is passed over.
    Other,
}

impl Event {
    /// The word in the index.
    pub fn as_str(self) -> &'static str {
        match self {
            Event::Verdict => "verdict",
            Event::Resumed => "resumed",
            Event::Overridden => "overridden",
            Event::Override => "override",
            Event::Other => "other",
        }
    }

    fn from_word(word: Option<&str>) -> Event {
        match word {
            None | Some("" | "verdict") => Event::Verdict,
            Some("resumed") => Event::Resumed,
            Some("override") => Event::Override,
            Some(_) => Event::Other,
        }
    }
}

/// How a deliberator behaved in one review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Behavior {
    /// It blocked at the end.
    pub blocks: bool,
    /// It said that no revision could repair it.
    pub irreducible: bool,
    /// Its block changed from round 1 to round 2.
    pub flipped: bool,
    /// It gave an answer that did not fit, in either round.
    pub schema_failed: bool,
    /// It ran out of time, in either round.
    pub timed_out: bool,
    /// Its first score, in hundredths; -1 without one.
    pub first_score: i64,
    /// Its last score, in hundredths; -1 without one.
    pub last_score: i64,
    /// How often it was asked again, since its answer did not fit.
    pub reprompts: i64,
}

impl Default for Behavior {
    fn default() -> Self {
        Behavior {
            blocks: false,
            irreducible: false,
            flipped: false,
            schema_failed: false,
            timed_out: false,
            first_score: NOT_STATED,
            last_score: NOT_STATED,
            reprompts: 0,
        }
    }
}

/// Stands for a number that a line does not say.
const NOT_STATED: i64 = -1;
/// The largest number that is counted: more of what one line says could be more than a sum can hold.
const MAX_COUNT: i64 = 1 << 40;

impl Behavior {
    /// As the index has them, in the order of its columns.
    pub(super) fn to_columns(self) -> [i64; 8] {
        let [blocks, irreducible, flipped, schema_failed, timed_out] =
            [self.blocks, self.irreducible, self.flipped, self.schema_failed, self.timed_out].map(i64::from);
        let said = [self.first_score, self.last_score, self.reprompts];
        let [first_score, last_score, reprompts] = said;
        [blocks, irreducible, flipped, schema_failed, timed_out, first_score, last_score, reprompts]
    }
}

impl Line {
    /// Whether a later review of the same type learns from it.
    pub fn is_prior(&self) -> bool {
        matches!(self.event, Event::Verdict | Event::Resumed | Event::Overridden)
            && matches!(&*self.verdict, "SHIP" | "REVISE" | "HOLD")
    }

    /// Reads a line; `None` where it is no JSON object, or says that it follows up on a run and does not name one.
    pub fn parse(text: &[u8]) -> Option<Line> {
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

/// Keys of which every line of a log has at least one. Other files of JSON lines have none: a transcript has times and
/// events, and an export has a version, too.
const MARKS: [&str; 6] = ["span_id", "artifact_type", "verdict", "adjudicator", "round1", "deliberators"];

/// Whether a line is one of a log.
pub(super) fn is_logs(text: &[u8]) -> bool {
    let object = serde_json::from_slice::<BTreeMap<String, serde::de::IgnoredAny>>(text);
    object.is_ok_and(|object| MARKS.iter().any(|mark| object.contains_key(*mark)))
}

/// Whether a text without line end is the beginning of an object.
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
    /// The public tool's mark for a person's override.
    parth_override: Option<bool>,
}

#[derive(Deserialize)]
struct Adjudicator {
    final_verdict: Option<String>,
    verdict: Option<String>,
}

/// As the public tool's reader takes them.
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
    fn into_line(self) -> Option<Line> {
        let public = self.deliberators.unwrap_or_default();
        let deliberators = if self.round1.is_some() || self.round2.is_some() {
            let mut deliberators =
                merge_rounds(self.round1.unwrap_or_default(), self.round2.unwrap_or_default());
            // What the published schema has no field for.
            for (member, marks) in &mut deliberators {
                marks.reprompts = public.get(member).map_or(0, |entry| entry.behavior().reprompts);
            }
            deliberators
        } else {
            public.into_iter().map(|(member, entry)| (member, entry.behavior())).collect()
        };
        let tokens = self.tokens.and_then(|tokens| match tokens {
            Tokens::Split { total } => total,
            Tokens::Total(total) => Some(total),
        });
        let verdict = self.verdict.or_else(|| {
            self.adjudicator.and_then(|adjudicator| adjudicator.final_verdict.or(adjudicator.verdict))
        });
        let is_superseded = verdict.as_deref() == Some(SUPERSEDED);
        let event = match Event::from_word(self.event.as_deref()) {
            Event::Verdict if self.parth_override == Some(true) => Event::Overridden,
            event => event,
        };
        // The published schema has neither: what this program writes names run, span and verdict.
        let follows_up =
            matches!(event, Event::Resumed | Event::Override) && self.parth_override != Some(true);
        let is_whole =
            self.run.as_deref().is_some_and(|run| !run.is_empty() && self.span_id.as_deref() == Some(run))
                && verdict.as_deref().is_some_and(|word| matches!(word, "SHIP" | "REVISE" | "HOLD"));
        if follows_up && !is_whole {
            return None;
        }
        Some(Line {
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
        })
    }
}

/// A number that is counted, within what a sum can hold.
fn clamp_count(number: f64) -> i64 {
    (number as i64).clamp(0, MAX_COUNT)
}

/// A score in hundredths.
fn score(value: Option<&Value>) -> i64 {
    let score = value.and_then(Value::as_f64).filter(|score| (0.0..=100.0).contains(score));
    score.map_or(NOT_STATED, |score| (score * 100.0).round() as i64)
}

/// A time with an offset, or without one, which is UTC.
fn time(text: &str) -> Option<i64> {
    parse_rfc3339(text).or_else(|| parse_rfc3339(&format!("{text}Z")))
}

fn merge_rounds(first: Vec<RoundEntry>, second: Vec<RoundEntry>) -> Vec<(String, Behavior)> {
    let mut deliberators: Vec<(String, Behavior, Option<bool>)> = Vec::new();
    for entry in first {
        let Some(member) = entry.deliberator.clone() else { continue };
        let block = entry.block();
        deliberators.push((member, entry.behavior(), block));
    }
    for entry in second {
        let Some(member) = entry.deliberator.clone() else { continue };
        let (marks, block) = (entry.behavior(), entry.block());
        let at = deliberators.iter().position(|(one, ..)| *one == member).unwrap_or_else(|| {
            deliberators.push((member, Behavior::default(), None));
            deliberators.len() - 1
        });
        let (_, before, first_block) = &mut deliberators[at];
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

    /// Of one round; what it scored is its first score.
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
    fn behavior(&self) -> Behavior {
        let first = self.r1_would_block == Some(true);
        // The public tool writes `false` for a round that never was; a score tells the two apart.
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_published_schema_is_read() {
        // D6
        let line = Line::parse(
            br#"{"v":2,"ts":"2026-05-18T14:23:11.504Z","artifact":"a.md","artifact_type":"post",
                "round1":[{"deliberator":"skeptic","verdict":"revise","would_block":true,"irreducible":false},{"deliberator":"voice","status":"timed_out"}],
                "round2":[{"deliberator":"skeptic","would_block":false,"irreducible":false},{"deliberator":"voice","schema_failed":true}],
                "adjudicator":{"final_verdict":"REVISE","reasoning":"r"},"elapsed_seconds":312.4}"#,
        )
        .expect("read");
        assert_eq!((line.event, &*line.verdict, &*line.artifact_type), (Event::Verdict, "REVISE", "post"));
        assert_eq!(line.elapsed_ms, 312_400);
        assert_eq!(
            line.deliberators[0],
            ("skeptic".into(), Behavior { flipped: true, ..Behavior::default() })
        );
        assert_eq!(
            line.deliberators[1].1,
            Behavior { schema_failed: true, timed_out: true, ..Behavior::default() }
        );
    }

    #[test]
    fn a_line_of_the_public_tool_is_read() {
        // D6
        let line = Line::parse(
            br#"{"v":2,"span_id":"council-ab12","event":"verdict","ts":"2026-05-15T10:23:11Z","artifact_type":"memo","verdict":"HOLD",
                "deliberators":{"skeptic":{"r1_score":2,"r1_would_block":true,"r2_score":2,"r2_would_block":true,"r2_irreducible":true,"schema_failed":false,"error":null},
                "evidence":{"r1_would_block":true,"r2_score":null,"r2_would_block":false,"error":"TimeoutError: "}}}"#,
        )
        .expect("read");
        assert!(line.is_prior());
        let skeptic = Behavior {
            blocks: true,
            irreducible: true,
            first_score: 200,
            last_score: 200,
            ..Behavior::default()
        };
        assert_eq!(line.deliberators[1].1, skeptic);
        assert_eq!(line.deliberators[0].1, Behavior { blocks: true, timed_out: true, ..Behavior::default() });
    }

    #[test]
    fn scores_reprompts_and_tokens_are_read_in_either_form() {
        let public = Line::parse(
            br#"{"verdict":"SHIP","tokens":{"total":1200},"deliberators":{"a":{"r1_score":3,"r2_score":4.5,"reprompts":2}}}"#,
        );
        let marks = Behavior { first_score: 300, last_score: 450, reprompts: 2, ..Behavior::default() };
        let public = public.expect("read");
        assert_eq!((public.tokens, public.deliberators), (1200, vec![("a".to_owned(), marks)]));
        let published = Line::parse(
            br#"{"round1":[{"deliberator":"a","would_block":false,"scores":{"x":2,"y":4}}],
                "round2":[{"deliberator":"a","would_block":false,"score":4.5}],
                "deliberators":{"a":{"reprompts":2}},"tokens_total":7}"#,
        );
        let published = published.expect("read");
        assert_eq!((published.tokens, published.deliberators), (7, vec![("a".to_owned(), marks)]));
        // Nothing that a line says is more than a sum can hold.
        for said in ["1e300", "-5", "\"many\"", "{\"total\": null}"] {
            let line = Line::parse(format!("{{\"tokens\": {said}}}").as_bytes()).expect("read");
            assert!((-1..=MAX_COUNT).contains(&line.tokens), "{said}");
        }
    }

    #[test]
    fn odd_fields_cost_their_meaning_and_not_the_line() {
        let line =
            Line::parse(br#"{"artifact_type": 5, "verdict": "SHIP", "round1": "none"}"#).expect("an object");
        assert_eq!((&*line.artifact_type, &*line.verdict), ("unknown_type", "SHIP"));
        assert_eq!(Line::parse(b"[1]"), None);
        assert_eq!(Line::parse(b"{\"verdict\": \"SH"), None);
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
            assert_eq!(Line::parse(line), None, "{}", String::from_utf8_lossy(line));
        }
        // The public tool has another word for it.
        let theirs =
            br#"{"event": "verdict", "parth_override": true, "span_id": "council-1", "verdict": "SHIP"}"#;
        let theirs = Line::parse(theirs).expect("read");
        assert_eq!((theirs.event, &*theirs.verdict, theirs.is_prior()), (Event::Overridden, "SHIP", true));
    }

    #[test]
    fn incomplete_and_overrides_are_no_priors() {
        // C10
        assert!(!Line::parse(br#"{"verdict": "INCOMPLETE"}"#).expect("read").is_prior());
        let person = br#"{"event": "override", "run": "r1", "span_id": "r1", "verdict": "SHIP"}"#;
        assert!(!Line::parse(person).expect("read").is_prior());
        assert!(!Line::parse(br#"{"event": "sweep_complete", "verdict": "SHIP"}"#).expect("read").is_prior());
    }
}
