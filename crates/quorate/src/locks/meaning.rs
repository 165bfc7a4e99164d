//! Scores texts against locked traits by meaning, and searches examples for a threshold (L4). Nothing is recorded.

use std::path::PathBuf;
use std::sync::Arc;

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::budget::{Amount, Budget};
use quorate_kernel::meaning::{Meaning, Score};
use quorate_protocol::SemanticMatch;
use quorate_protocol::locks::excerpt;
use serde::{Deserialize, Serialize};

use super::super::builder::Quorate;
use super::super::error::Error;
use super::super::service::artifact::Draft;
use super::super::service::environment::Environment;
use super::super::service::resolve::Resolution;
use super::super::service::workspace::Workspace;
use super::super::service::{budget, session, trust, workspace};
use super::super::view::{Doc, Table, Text, Tone};

/// The way of an executor that is asked.
const QUESTION: &str = "question";
/// How many examples one test takes.
const MAX_EXAMPLES: usize = 1_000;
/// Fewer examples than this say little about other texts.
const FEW_EXAMPLES: usize = 30;

/// Texts to score against the locked traits of an assembly, by meaning.
///
/// ```
/// use quorate::locks::{MeaningTestRequest, TextsToScore};
///
/// let texts = TextsToScore::Examples(vec!["examples.jsonl".into()]);
/// let request = MeaningTestRequest { assembly: "assemblies/board".into(), root: None, texts };
/// # let _ = request;
/// ```
#[derive(Debug, Clone)]
pub struct MeaningTestRequest {
    /// The assembly, or the directory that holds it.
    pub assembly: PathBuf,
    /// The workspace's root; `None` searches for it.
    pub root: Option<PathBuf>,
    /// The texts.
    pub texts: TextsToScore,
}

/// The texts of a [`MeaningTestRequest`].
#[derive(Debug, Clone)]
pub enum TextsToScore {
    /// One text.
    One(Draft),
    /// Files of labelled texts: a JSON object a line, with `text` and `violates`.
    Examples(Vec<PathBuf>),
}

/// The scores of texts.
#[derive(Debug, Clone, Serialize)]
pub struct MeaningTest {
    /// The assembly's name.
    pub assembly: String,
    /// `question` or `embedder`.
    pub way: &'static str,
    /// The model; `None` if the executor names none.
    pub model: Option<String>,
    /// The threshold in use.
    pub threshold: f64,
    /// The number of texts.
    pub n: usize,
    /// The texts, the highest score first.
    pub texts: Vec<ScoredText>,
    /// The decisions at the threshold in use; `None` without labels.
    pub present: Option<Decisions>,
    /// The decisions at the threshold with the fewest wrong ones; `None` if the examples show none.
    pub best: Option<Decisions>,
    /// What to write so that runs compare by meaning, if no trait has `matchMode: semantic`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_in_use: Option<String>,
    /// Why the next text could not be compared; `texts` has those before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Warnings about the assembly.
    pub warnings: Report,
}

/// A text with its scores.
#[derive(Debug, Clone, Serialize)]
pub struct ScoredText {
    /// The text's beginning, on one line.
    pub text: String,
    /// The label; `None` for a text without one.
    pub violates: Option<bool>,
    /// The highest score of a trait.
    pub score: f64,
    /// Whether a run would refuse the text.
    pub hit: bool,
    /// Each trait, in the order of the merged manifest.
    pub traits: Vec<TraitScore>,
}

/// The score of a trait in a text.
#[derive(Debug, Clone, Serialize)]
pub struct TraitScore {
    /// The trait as written.
    #[serde(rename = "trait")]
    pub text: String,
    /// The cosine or the probability; 1 or 0 for a model that gives no probability.
    pub score: f64,
    /// Whether the model gave a probability, or vectors were compared.
    pub graded: bool,
    /// Whether it reaches the threshold.
    pub hit: bool,
    /// The passage with this score.
    pub passage: String,
}

/// The decisions at a threshold, by the labels of examples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Decisions {
    /// The threshold.
    pub threshold: f64,
    /// Texts that violate no trait and are refused.
    pub wrong_refusals: usize,
    /// Texts that violate a trait and pass.
    pub missed: usize,
}

/// One line of a file of examples.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Example {
    text: String,
    violates: bool,
}

impl Quorate {
    /// Scores texts against the locked traits of an assembly by meaning, with what the workspace configures for it. The
    /// texts are sent to a model, within the caps of `[budget]`; nothing is recorded.
    ///
    /// # Errors
    /// If the assembly or a text does not exist or cannot be used, nothing compares meanings, the workspace is not
    /// trusted, the questions are more than `budget.calls`, or the first text could not be compared.
    #[crate::boxed]
    pub async fn test_meaning(&self, request: MeaningTestRequest) -> Result<MeaningTest, Error> {
        let environment = &self.environment;
        let (view, locks) = self.load_traits(request.assembly, request.root)?;
        let texts: Vec<(String, Option<bool>)> = match &request.texts {
            TextsToScore::One(draft) => vec![(self.read_text(draft)?.text.to_string(), None)],
            TextsToScore::Examples(files) => self.read_examples(files)?,
        };
        let workspace = workspace::load(environment, &self.places, &view.root)?;
        session::deny_to_members(&workspace);
        let meaning = admitted_meaning(environment, &workspace)?;
        let (compared, declared) = (locks.semantic_traits(), view.resolved.locked_traits.iter().enumerate());
        let traits = declared.filter(|(at, _)| compared.is_empty() || compared.contains(at));
        let traits: Vec<String> = traits.map(|(_, declared)| declared.locked.text.clone()).collect();
        let redactor = &workspace.redaction.redactor;
        let budget = Arc::new(Budget::new(budget::configured(&workspace.config), 0, Amount::default()));
        let redacted = |(text, violates): (String, Option<bool>)| {
            let texts = vec![Arc::from(redactor.redact(&text).0)];
            (SemanticMatch { candidate: "test".into(), texts, traits: traits.clone() }, violates)
        };
        let all: Vec<(SemanticMatch, Option<bool>)> = texts.into_iter().map(redacted).collect();
        let incomparable = |one: &SemanticMatch, why: &str| {
            format!("cannot compare “{}”: {}", beginning(&one.texts[0]), redactor.redact(why).0)
        };
        let refuse = |message| Error::configuration(codes::LOCKS_UNCOMPARED, Body::new(message));
        let mut questions = 0;
        for (one, _) in &all {
            questions += meaning.questions(one).map_err(|why| refuse(incomparable(one, &why)))?;
        }
        if !budget.has_left(questions, Amount::default()) {
            let cap = budget.caps().calls.unwrap_or_default();
            let body =
                Body::new(format!("the texts take {questions} questions, and `budget.calls` is {cap}"));
            let body = body.help("raise `calls` in `[budget]` of quorate.toml, or give fewer examples");
            return Err(Error::configuration(codes::LOCKS_UNCOMPARED, body));
        }
        let (mut scored, mut model, mut failure) = (Vec::with_capacity(all.len()), meaning.model(), None);
        for (one, violates) in &all {
            match meaning.compare_alone(one, &budget, redactor.clone(), environment.clock.clone()).await {
                Ok(compared) => {
                    model = compared.model;
                    scored.push(ScoredText::of(one, *violates, &compared.scores, &meaning));
                }
                Err(why) if scored.is_empty() => return Err(refuse(incomparable(one, &why))),
                Err(why) => {
                    failure = Some(incomparable(one, &why));
                    break;
                }
            }
        }
        scored.sort_by(|one, other| other.score.total_cmp(&one.score));
        let first = super::declared_traits(&view.resolved).into_iter().next();
        let not_in_use = first.filter(|_| compared.is_empty()).map(|first| {
            let place = format!("{}:{}", first.file, first.line);
            format!("write `matchMode: semantic` on a line of its own beside `lockedTraits` ({place})")
        });
        Ok(MeaningTest { failure, not_in_use, ..MeaningTest::of(view, &meaning, model, scored) })
    }

    fn read_examples(&self, files: &[PathBuf]) -> Result<Vec<(String, Option<bool>)>, Error> {
        let mut examples = Vec::new();
        for file in files {
            let read = self.read_text(&Draft::File(file.clone()))?;
            for (number, line) in read.text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
                let example: Example = serde_json::from_str(line).map_err(|error| {
                    let place = format!("{}:{}", read.display_name, number + 1);
                    let body = Body::new(format!("cannot read the example at {place}: {error}"));
                    let help =
                        r#"write one JSON object a line: {"text": "Release it today.", "violates": true}"#;
                    Error::configuration(codes::EXAMPLES_INVALID, body.help(help))
                })?;
                examples.push((example.text, Some(example.violates)));
            }
        }
        if examples.is_empty() || examples.len() > MAX_EXAMPLES {
            let body = Body::new(format!("the files have {} examples", examples.len()));
            let body = body.help(format!("give from 1 to {MAX_EXAMPLES}, one JSON object a line"));
            return Err(Error::configuration(codes::EXAMPLES_INVALID, body));
        }
        Ok(examples)
    }
}

/// What compares meanings in runs of this workspace, once it is trusted.
fn admitted_meaning(environment: &Environment, workspace: &Workspace) -> Result<Meaning, Error> {
    if let Some(registered) = environment.registries.extensions().meaning {
        return Ok(registered);
    }
    let Some(chosen) = workspace.executors().configured_meaning()? else {
        let body =
            Body::new("nothing compares meanings: quorate.toml has neither `[meaning]` nor `[embedder]`");
        let body = body.help("name the executor that is asked: `executor = \"anthropic\"` in `[meaning]`");
        return Err(Error::configuration(codes::LOCKS_UNCOMPARED, body));
    };
    let admitted = trust::admit(environment, chosen.needs())?;
    chosen.ensure_installed()?;
    chosen.ensure_enforceable(&budget::configured(&workspace.config))?;
    Ok(chosen.meaning(admitted))
}

impl ScoredText {
    fn of(one: &SemanticMatch, violates: Option<bool>, scores: &[Score], meaning: &Meaning) -> Self {
        let text = &one.texts[0];
        let by_trait = one.traits.iter().enumerate().filter_map(|(which, locked)| {
            let of_trait = scores.iter().filter(|score| score.place.which == which);
            let highest = of_trait.max_by(|one, other| one.score.total_cmp(&other.score))?;
            let span = highest.place.start..highest.place.end;
            Some(TraitScore {
                text: locked.clone(),
                score: highest.score,
                graded: highest.place.probability.is_some() || matches!(meaning, Meaning::Embedder(_)),
                hit: scores.iter().any(|score| score.place.which == which && score.is_hit),
                passage: beginning(&text[span]),
            })
        });
        let traits: Vec<TraitScore> = by_trait.collect();
        ScoredText {
            text: beginning(text),
            violates,
            score: traits.iter().map(|scored| scored.score).max_by(f64::total_cmp).unwrap_or_default(),
            hit: traits.iter().any(|scored| scored.hit),
            traits,
        }
    }
}

/// The beginning of a text, on one line.
fn beginning(text: &str) -> String {
    let end = text.char_indices().nth(80).map_or(text.len(), |(at, _)| at);
    let shown = excerpt(&text[..end], &(0..end));
    if end < text.len() { format!("{shown}…") } else { shown }
}

impl MeaningTest {
    fn of(view: Resolution, meaning: &Meaning, model: String, texts: Vec<ScoredText>) -> Self {
        let threshold = meaning.threshold();
        let labelled: Vec<(f64, bool)> =
            texts.iter().filter_map(|scored| Some((scored.score, scored.violates?))).collect();
        let decided = texts.iter().filter_map(|scored| Some((scored.hit, scored.violates?)));
        let present = Decisions::of(threshold, decided);
        let graded = texts.iter().flat_map(|scored| &scored.traits).all(|scored| scored.graded);
        MeaningTest {
            assembly: view.resolved.name.clone(),
            way: if matches!(meaning, Meaning::Embedder(_)) { "embedder" } else { QUESTION },
            model: Some(model).filter(|model| !model.is_empty()),
            threshold,
            n: texts.len(),
            present: (!labelled.is_empty()).then_some(present),
            best: best_threshold(&labelled).filter(|_| graded),
            texts,
            not_in_use: None,
            failure: None,
            warnings: view.report,
        }
    }

    /// The scores, and the threshold that they suggest.
    pub fn doc(&self) -> Doc {
        let mut doc = Doc::new();
        let way = if self.way == QUESTION { "a question to" } else { "vectors of" };
        let model = self.model.as_ref().map_or("a model".to_owned(), |model| format!("`{model}`"));
        doc.line(format!("Compared by {way} {model}; the threshold is {}.", self.threshold));
        let cells = |score: f64, label: &str, hit, shown: &str| -> [Text; 4] {
            let decision = match (hit, &self.not_in_use) {
                (true, None) => Text::toned(Tone::Bad, "refused"),
                (true, Some(_)) => "above the threshold".into(),
                (false, _) => "passes".into(),
            };
            [format!("{score:.4}").into(), label.into(), decision, shown.into()]
        };
        let rows: Vec<[Text; 4]> = match &self.texts[..] {
            [ScoredText { violates: None, traits, .. }] => {
                traits.iter().map(|of| cells(of.score, &of.text, of.hit, &of.passage)).collect()
            }
            texts => {
                let label = |of: &ScoredText| if of.violates == Some(true) { "violates" } else { "does not" };
                texts.iter().map(|of| cells(of.score, label(of), of.hit, &of.text)).collect()
            }
        };
        let what = if self.present.is_some() { "label" } else { "trait" };
        doc.table(Table::new(["score", what, "", "text"]).with_rows(rows));
        if let Some(write) = &self.not_in_use {
            doc.line(format!("Runs do not compare these traits by meaning and refuse nothing: {write}."));
        }
        if let Some(failure) = &self.failure {
            doc.line(format!("The scores are incomplete: {failure}."));
        }
        let Some(present) = &self.present else { return doc };
        let of = format!("of {} examples", self.n);
        doc.line(format!("At {}, in use: {}, {of}.", present.threshold, present.counts()));
        match &self.best {
            Some(best) => {
                doc.line(format!("At {}, the best: {}, {of}.", best.threshold, best.counts()));
                if self.n < FEW_EXAMPLES {
                    let few = format!("{} examples say little about other texts", self.n);
                    doc.line(format!("{few}: use {FEW_EXAMPLES} or more."));
                }
            }
            None if self.texts.iter().flat_map(|scored| &scored.traits).any(|scored| !scored.graded) => {
                doc.line("The model gives no probability, so the threshold does not matter.");
            }
            None => doc.line("A threshold needs examples of both labels."),
        }
        doc
    }
}

impl Decisions {
    /// The decisions in pairs: whether a text is refused, and whether it violates a trait.
    fn of(threshold: f64, decided: impl Iterator<Item = (bool, bool)> + Clone) -> Self {
        let wrong = |hit, violates| decided.clone().filter(|pair| *pair == (hit, violates)).count();
        Decisions { threshold, wrong_refusals: wrong(true, false), missed: wrong(false, true) }
    }

    fn counts(&self) -> String {
        let refusals = if self.wrong_refusals == 1 { "refusal" } else { "refusals" };
        format!("{} wrong {refusals}, {} missed", self.wrong_refusals, self.missed)
    }
}

/// The threshold with the fewest wrong decisions about scores with labels (`true` violates), in the middle between two scores;
/// `None` unless both labels occur. If several have as few, it is the one with the fewest missed texts.
fn best_threshold(labelled: &[(f64, bool)]) -> Option<Decisions> {
    if labelled.iter().all(|(_, violates)| *violates) || !labelled.iter().any(|(_, violates)| *violates) {
        return None;
    }
    let mut scores: Vec<f64> =
        labelled.iter().map(|(score, _)| score.clamp(0.0, 1.0)).chain([0.0, 1.0]).collect();
    scores.sort_by(f64::total_cmp);
    scores.dedup();
    let decisions = scores.windows(2).map(|pair| {
        // Four decimals; a threshold is above 0.
        let threshold = ((f64::midpoint(pair[0], pair[1]) * 1e4).round() / 1e4).max(1e-4);
        Decisions::of(threshold, labelled.iter().map(|(score, violates)| (*score >= threshold, *violates)))
    });
    decisions.min_by_key(|found| (found.wrong_refusals + found.missed, found.missed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_threshold_has_the_fewest_wrong_decisions() {
        // The examples; threshold, wrong refusals, missed.
        type Case = (&'static [(f64, bool)], Option<(f64, usize, usize)>);
        const YES: bool = true;
        const NO: bool = false;
        let cases: [Case; 16] = [
            (&[], None),
            (&[(0.9, YES)], None),
            (&[(0.2, NO)], None),
            (&[(0.9, YES), (0.8, YES)], None),
            (&[(0.9, NO), (0.8, NO)], None),
            (&[(0.2, NO), (0.9, YES)], Some((0.55, 0, 0))),
            (&[(0.9, YES), (0.2, NO), (0.4, NO), (0.8, YES)], Some((0.6, 0, 0))),
            // The labels overlap: one decision is wrong, and it is not a missed text.
            (&[(0.05, NO), (0.4, YES), (0.7, NO), (0.9, YES)], Some((0.225, 1, 0))),
            (&[(0.3, YES), (0.5, NO), (0.6, NO), (0.9, YES)], Some((0.75, 0, 1))),
            // One score has both labels: it is refused.
            (&[(0.5, YES), (0.5, NO)], Some((0.25, 1, 0))),
            (&[(0.5, YES), (0.5, NO), (0.5, NO)], Some((0.75, 0, 1))),
            // The order of the labels is wrong: refusing all misses none.
            (&[(0.1, YES), (0.9, NO)], Some((0.05, 1, 0))),
            // A narrow gap.
            (&[(0.8610, NO), (0.8614, YES)], Some((0.8612, 0, 0))),
            // Cosines may be negative, and thresholds are not.
            (&[(-0.5, NO), (0.4, YES)], Some((0.2, 0, 0))),
            (&[(-0.5, YES), (-0.2, NO)], Some((0.5, 0, 1))),
            (&[(0.999, NO), (1.0, YES)], Some((0.9995, 0, 0))),
        ];
        for (labelled, expected) in cases {
            let found = best_threshold(labelled);
            let found = found.map(|found| (found.threshold, found.wrong_refusals, found.missed));
            assert_eq!(found, expected, "{labelled:?}");
            let reversed: Vec<(f64, bool)> = labelled.iter().rev().copied().collect();
            assert_eq!(
                best_threshold(&reversed),
                best_threshold(labelled),
                "the order of examples has no effect"
            );
        }
    }
}
