//! Checks that look at a text as a whole or count in it: boasting, the other side, promises as the core, goals, calls to
//! action, phrases and their repetitions, and the form of sentences and paragraphs.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;
use std::sync::LazyLock;

use quorate_diagnostics::text::{one_line, shortened};
use regex::Regex;

use super::{Check, Reading};
use crate::executor::rubric::criteria::{Goal, stems};
use crate::executor::rubric::document::{BlockKind, Channel};
use crate::executor::rubric::finding::{Finding, Severity};
use crate::executor::rubric::phrases::{compiled, list};

/// Fewer boasts can be repaired one by one.
const MIN_BOASTS: usize = 4;
/// A shorter text need not argue both sides.
const MIN_ARGUMENT_WORDS: usize = 100;
/// So many signs of persuasion make it an argument.
const SIGNS: usize = 3;
/// So many points of absolutes, survivors and leaps, with nothing against them, leave nothing to repair by edits.
const ONE_SIDED_POINTS: u32 = 18;
/// So many lasting promises are what the text is about, one of them in its title or one more elsewhere, if there is one
/// in so many words.
const CORE_PROMISES: usize = 2;
const WORDS_PER_PROMISE: usize = 150;
/// Words; a longer sentence is a finding, and from the second on a severe one.
const LONG_WORDS: usize = 35;
const SEVERE_WORDS: usize = 50;
/// A longer paragraph in an outward text is a finding.
const MAX_PARAGRAPH_WORDS: usize = 130;

/// A row of capitals, and words that are shouted one by one; `MUST`, `NOT` and acronyms are terms.
static CAPITALS: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"\b[A-Z][A-Z']+(?:\s+[A-Z][A-Z']*){2,}\b|\b(?:FREE|NOW|AMAZING|HUGE|EVERY|EVERYTHING|BEST|INCREDIBLE|FOREVER|TODAY|",
        r"EVER|NEVER|ALWAYS|ALL|BIGGEST|MASSIVE|UNLIMITED|FINALLY|WOW|REALLY|VERY)\b",
    ))
});
/// In a row of capitals, one of these shows that it is speech and not a list of acronyms.
static SPEECH: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"\b(?:THE|IS|ARE|YOU|IT|TO|AND|FOR|THIS|WE|OUR|YOUR|WILL|OF)\b"));
/// A sentence that asks the reader to do something.
static IMPERATIVE: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i)\A(?:apply|ask|book|bring|buy|call|check|choose|contact|download|email|find|follow|get|give|help|install|join|learn|",
        r"let|look|open|order|pick|read|register|reply|run|see|send|share|sign|start|subscribe|switch|take|tell|test|try|visit|",
        r"vote|watch|write)\b|\?\s*\z",
    ))
});
static DENIAL: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"(?i)\b(?:not|no|never|without|(?:do|wo|does)n['’]t)\b"));

impl Reading<'_> {
    pub(super) fn boasting(&self, check: &Check) -> Option<Finding> {
        let sentences = self.document.sentences.iter();
        let sentences = sentences.filter(|one| self.document.kind_of(one) != BlockKind::Cell).count();
        let checks = [
            "absolutes",
            "survivorship",
            "unsourced numbers",
            "social proof",
            "superlatives",
            "vague authority",
            "irreversible promises",
        ];
        let findings = checks.iter().filter(|_| sentences >= MIN_BOASTS).flat_map(|name| self.of(name));
        let severe = findings.filter(|finding| finding.severity >= Severity::Major);
        let boasts: BTreeSet<usize> =
            severe.filter_map(|finding| self.document.sentence_at(finding.span.start)).collect();
        let first =
            boasts.first().filter(|_| boasts.len() >= MIN_BOASTS && boasts.len() * 5 >= sentences * 2)?;
        let place = self.document.sentences[*first].span.clone();
        let counted = format!("{} of {sentences} sentences", boasts.len());
        Some(Finding { beyond_edit: true, ..self.finding(check, place, Severity::Critical, &counted) })
    }

    pub(super) fn missing_counter_position(&self, check: &Check) -> Option<Finding> {
        if self.document.word_count() < MIN_ARGUMENT_WORDS || self.document.channel == Channel::Manual {
            return None;
        }
        let prose = || self.document.sentences.iter().map(|sentence| self.document.prose_of(sentence));
        let signs: usize = prose().map(|prose| list("persuasion").spans(prose).count()).sum();
        let turns = |prose: &str| {
            let first = prose.get(..4).is_some_and(|first| first.eq_ignore_ascii_case("but "));
            first || prose.contains(", but ") || list("other side").is_in(prose)
        };
        if signs < SIGNS || prose().any(turns) {
            return None;
        }
        let one_sided = ["absolutes", "survivorship", "causal leaps"];
        let points: u32 =
            one_sided.iter().flat_map(|name| self.of(name)).map(|finding| finding.points()).sum();
        let finding = self.finding(check, self.opening(), Severity::Major, "");
        if points < ONE_SIDED_POINTS || (points as usize) * 30 < self.document.word_count() {
            return Some(finding);
        }
        Some(Finding {
            severity: Severity::Critical,
            beyond_edit: true,
            issue: "The argument is absolutes and success stories from end to end, and nothing in it could turn out wrong.".to_owned(),
            fix: "Work out what speaks against it, and for whom it is not, then write it again.".to_owned(),
            ..finding
        })
    }

    /// The place of a finding on the whole text: its title, else its first longer sentence, else its first words.
    fn opening(&self) -> Range<usize> {
        let sentences = &self.document.sentences;
        let title =
            sentences.first().filter(|sentence| self.document.kind_of(sentence) == BlockKind::Heading);
        let long = sentences.iter().find(|sentence| sentence.words >= 4);
        title.or(long).or(sentences.first()).map_or(0..0, |sentence| sentence.span.clone())
    }

    /// Makes lasting promises that are the core of a text one critical finding.
    pub(super) fn weigh_promises(&self, findings: &mut [Finding]) {
        let mut lasting: Vec<&mut Finding> = findings
            .iter_mut()
            .filter(|one| one.severity == Severity::Major && one.issue.contains("for ever"))
            .collect();
        let mut sentences = self.document.sentences.iter();
        let headline = sentences.find(|sentence| self.document.kind_of(sentence) == BlockKind::Heading);
        let in_headline =
            lasting.iter().any(|one| headline.is_some_and(|title| title.span.contains(&one.span.start)));
        let many = lasting.len() > CORE_PROMISES || lasting.len() == CORE_PROMISES && in_headline;
        let dense = lasting.len() * WORDS_PER_PROMISE >= self.document.word_count();
        if let Some(first) = lasting.first_mut().filter(|_| many && dense) {
            (first.severity, first.beyond_edit) = (Severity::Critical, true);
            first.issue.push_str(" Such promises are the core of the text.");
        }
    }

    pub(super) fn banned_phrases(&self, check: &Check) -> Vec<Finding> {
        let fold = |phrase: &str| one_line(&phrase.replace('-', " ")).to_lowercase();
        // A text that the voice corpus in the member's context has is not a fault.
        let house: Vec<String> = self.criteria.context.iter().map(|given| fold(&given.prose)).collect();
        let mut by_phrase: BTreeMap<String, Vec<(Range<usize>, String)>> = BTreeMap::new();
        for (span, fix) in self.criteria.banned.occurrences(self.document) {
            let phrase = fold(&self.document.text[span.clone()]);
            if !house.iter().any(|corpus| corpus.contains(&phrase)) {
                by_phrase.entry(phrase).or_default().push((span, fix));
            }
        }
        let findings = by_phrase.into_values().map(|uses| {
            let (span, fix) = uses[0].clone();
            let mut finding = self.quoting(check, span, Severity::Minor);
            finding.fix = fix;
            let again =
                uses.iter().skip(1).take(5).map(|(span, _)| self.document.line_of(span.start).to_string());
            let again = again.collect::<Vec<_>>().join(", ");
            if !again.is_empty() {
                finding.issue.push_str(&format!(" It stands {} times, again on line {again}.", uses.len()));
            }
            finding.extra_points = u32::try_from(uses.len() - 1).unwrap_or(u32::MAX).min(9);
            finding
        });
        findings.collect()
    }

    pub(super) fn long_sentences(&self, check: &Check) -> Vec<Finding> {
        let prose = |kind| matches!(kind, BlockKind::Paragraph | BlockKind::Item);
        let sentences = self.document.sentences.iter().filter(|one| prose(self.document.kind_of(one)));
        let long = sentences.filter(|sentence| sentence.words > LONG_WORDS);
        long.map(|sentence| {
            let severity = if sentence.words > SEVERE_WORDS { Severity::Major } else { Severity::Minor };
            self.finding(check, sentence.span.clone(), severity, &sentence.words.to_string())
        })
        .collect()
    }

    pub(super) fn capitals(&self, check: &Check) -> Vec<Finding> {
        let mut findings = Vec::new();
        let sentences = self.document.sentences.iter();
        let calm = |kind| matches!(kind, BlockKind::Heading | BlockKind::Cell);
        for sentence in sentences.filter(|sentence| !calm(self.document.kind_of(sentence))) {
            let prose = self.document.prose_of(sentence);
            let single = |text: &str| !text.contains(char::is_whitespace);
            for hit in
                CAPITALS.find_iter(prose).filter(|hit| single(hit.as_str()) || SPEECH.is_match(hit.as_str()))
            {
                let span = sentence.span.start + hit.start()..sentence.span.start + hit.end();
                findings.push(self.quoting(check, span, Severity::Minor));
            }
        }
        findings
    }

    /// Paragraphs that are too long for a text that people skim.
    pub(super) fn walls(&self, check: &Check) -> Vec<Finding> {
        let outward = self.document.channel == Channel::Outward;
        let paragraphs =
            self.document.blocks.iter().filter(|one| outward && one.kind == BlockKind::Paragraph);
        let walls = paragraphs.filter_map(|block| {
            let sentences = &self.document.sentences[block.sentences.clone()];
            let count: usize = sentences.iter().map(|sentence| sentence.words).sum();
            let first = sentences.first().filter(|_| count > MAX_PARAGRAPH_WORDS)?;
            Some(Finding {
                issue: format!("A paragraph of {count} words is a wall in a text that people skim."),
                fix: "Break it into two or three.".to_owned(),
                ..self.finding(check, first.span.clone(), Severity::Minor, "")
            })
        });
        walls.collect()
    }

    pub(super) fn missing_call(&self, check: &Check) -> Option<Finding> {
        if self.document.channel != Channel::Outward || self.document.has_link {
            return None;
        }
        let invites = |prose: &str| IMPERATIVE.is_match(prose) || list("next step").is_in(prose);
        let mut sentences = self.document.sentences.iter();
        let invited = sentences.any(|sentence| invites(self.document.prose_of(sentence)));
        let last = self.document.sentences.last().filter(|_| !invited)?;
        Some(self.finding(check, last.span.clone(), Severity::Major, ""))
    }

    /// Goals are compared by words, not meanings, so that these findings ask rather than judge.
    pub(super) fn unmet_goals(&self, check: &Check) -> Vec<Finding> {
        let goals = self.criteria.goals;
        let (mut findings, mut all) = (Vec::new(), HashSet::new());
        if goals.is_empty() {
            return findings;
        }
        let quoted = |goal: &Goal| shortened(&one_line(&goal.text), 80);
        for sentence in &self.document.sentences {
            let prose = self.document.prose_of(sentence);
            let stems = stems(prose);
            let judged = self.document.kind_of(sentence) != BlockKind::Cell && !DENIAL.is_match(prose);
            let touched =
                |list: &[Goal]| list.iter().find(|goal| judged && goal.is_touched_by(&stems)).map(quoted);
            let finding = |words: String| self.finding(check, sentence.span.clone(), Severity::Major, &words);
            findings.extend(touched(&goals.non_goals).map(|goal| finding(format!("non-goal: “{goal}”"))));
            let stop = touched(&goals.kill_criteria).map(|goal| finding(format!("reason to stop: “{goal}”")));
            findings.extend(stop.map(|stop| Finding {
                fix: "Say whether it is met before this goes out.".to_owned(),
                ..stop
            }));
            all.extend(stems);
        }
        if !goals.goals.is_empty() && !goals.goals.iter().any(|goal| goal.is_served_by(&all)) {
            let (count, first) = (goals.goals.len(), quoted(&goals.goals[0]));
            findings.push(Finding {
                extra_points: 2,
                issue: format!("None of the {count} stated goals shows in the text; the first is “{first}”."),
                fix: "Say which goal it serves, or ask whether it should go out at all.".to_owned(),
                ..self.finding(check, self.opening(), Severity::Major, "")
            });
        }
        findings
    }
}
