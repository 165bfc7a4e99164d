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
    /// The operator that made the artifact; empty where the line does not say.
    pub producer: String,
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
    /// Whether it blocked in the answer that counts (C4); `None` where none counts.
    pub position: Option<bool>,
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
            position: None,
        }
    }
}

/// Stands for a number that a line does not say.
const NOT_STATED: i64 = -1;
/// How many deliberators a line may name whose agreement is counted.
pub const MAX_POSITIONS: usize = 32;
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

    /// The position of each deliberator that has one, by name. A name that the line has twice has none, and a line with more
    /// than [`MAX_POSITIONS`] names has no positions, since pairs are counted.
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

    /// How many deliberators scored, and the sum of each one's last score in hundredths.
    pub fn last_scores(&self) -> (i64, i64) {
        let last = |behavior: &Behavior| [behavior.last_score, behavior.first_score];
        let scores = self.deliberators.iter();
        let scores =
            scores.filter_map(|(_, behavior)| last(behavior).into_iter().find(|score| *score != NOT_STATED));
        scores.fold((0, 0), |(count, sum), score| (count + 1, sum + score))
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
    producer: Option<String>,
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
            let two_rounds = public.values().any(|entry| score(entry.r2_score.as_ref()) != NOT_STATED);
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
            producer: self.producer.unwrap_or_default(),
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

    /// Whether it blocks, of a valid answer.
    fn valid_block(&self) -> Option<bool> {
        let answered = self.status.as_deref().is_none_or(|status| status == "answered");
        self.would_block.filter(|_| answered && self.schema_failed != Some(true))
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
    /// The public tool writes `false` for an answer that never was; a score tells the two apart.
    fn position(&self, two_rounds: bool) -> Option<bool> {
        let block = |block: Option<bool>, scored: Option<&Value>| {
            (score(scored) != NOT_STATED).then_some(block == Some(true))
        };
        let first = block(self.r1_would_block, self.r1_score.as_ref());
        counting(first, block(self.r2_would_block, self.r2_score.as_ref()), two_rounds)
    }

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
            position: None,
        }
    }
}

#[cfg(test)]
mod tests;
