//! Figures: numbers without a source, and numbers with a source that lack their base.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::{Check, Reading};
use crate::executor::rubric::document::{BlockKind, Sentence};
use crate::executor::rubric::finding::{Finding, Severity};
use crate::executor::rubric::phrases::{compile, compiled, list, words};

/// A number that claims something, by its form. The first group is a number that claims only as a sum of money to boast
/// with, the second one that counts, the third a duration that claims only beside a change.
static FIGURE: LazyLock<Regex> = LazyLock::new(|| {
    let counted = "users?|customers?|clients?|teams|companies|businesses|organi[sz]ations|developers|engineers|people|downloads|\
                   installs|subscribers|members|readers|sites|stores|students|patients|households|respondents";
    let magnitude = "hundreds?|thousands?|millions?|billions?|trillion";
    let parts = [
        r"\d[\d.,]*\s?(?:%|percent(?:age)?\b|per\s+cent\b)".to_owned(),
        r"\b[1-9][\d.]*(?:x\b|×)".to_owned(),
        format!(r"\b(?:{magnitude})\s+of\s+(?:[a-z-]+\s+)?(?:{counted})\b"),
        format!(r"[$€£¥]\s?\d[\d.,]*(?:\s+(?:{magnitude})\b|[kmb]n?\b)"),
        r"([$€£¥]\s?\d[\d.,]*)".to_owned(),
        format!(r"\b(\d[\d.,]*)(?:\s+(?:{magnitude}))?(?:\s+[a-z-]+)?{{0,2}}?\s+(?:{counted})\b"),
        r"\b(\d[\d.,]*)(?:\s+[a-z-]+)?\s+(?:hours?|minutes?|days?|weeks?|months)\b".to_owned(),
    ];
    compile(&parts.join("|")).unwrap_or_else(|_| compiled("$^"))
});

/// A number that claims something: the figure and its unit.
struct Claim {
    span: Range<usize>,
    severity: Severity,
}

impl Reading<'_> {
    /// The first number in a sentence that claims something.
    fn claim(&self, sentence: &Sentence) -> Option<Claim> {
        let prose = self.document.prose_of(sentence);
        if self.document.kind_of(sentence) == BlockKind::Cell || list("sets a rule").is_in(prose) {
            return None;
        }
        let (boasts_of_money, changes) = (list("money").is_in(prose), list("change").is_in(prose));
        let digits = |text: &str| text.bytes().filter(u8::is_ascii_digit).count();
        let figure = FIGURE.captures_iter(prose).find_map(|figure| {
            let whole = figure.get(0)?;
            let severity = match (figure.get(1), figure.get(2), figure.get(3)) {
                (Some(_), ..) => boasts_of_money.then_some(Severity::Major),
                (_, Some(number), _) => {
                    let many = digits(number.as_str()) > 1
                        || whole.as_str().contains("illion")
                        || whole.as_str().contains("thousand");
                    let year = number.as_str().len() == 4
                        && number.as_str().starts_with(['1', '2'])
                        && !number.as_str().contains(',');
                    (many && !year).then_some(Severity::Major)
                }
                (_, _, Some(_)) => changes.then_some(Severity::Minor),
                _ => Some(Severity::Major),
            };
            Some((whole.range(), severity?))
        });
        let (span, severity) =
            figure.or_else(|| list("multiples").first(prose).map(|span| (span, Severity::Major)))?;
        let start = sentence.span.start;
        Some(Claim { span: start + span.start..start + span.end, severity })
    }

    pub(super) fn unsourced_numbers(&self, check: &Check) -> Vec<Finding> {
        let numbers = |text: &str| {
            let numbers = words(text).filter(|(_, word)| word.starts_with(|c: char| c.is_ascii_digit()));
            numbers.map(|(_, number)| number.to_owned()).collect::<Vec<_>>()
        };
        let known: HashSet<String> =
            self.criteria.context.iter().flat_map(|given| numbers(&given.prose)).collect();
        let crowds: HashSet<Option<usize>> =
            self.of("social proof").iter().map(|crowd| self.document.sentence_at(crowd.span.start)).collect();
        let mut findings = Vec::new();
        for (index, sentence) in self.document.sentences.iter().enumerate() {
            let Some(claim) = self.claim(sentence) else { continue };
            let here = numbers(self.document.prose_of(sentence));
            let is_known = !here.is_empty() && here.iter().all(|number| known.contains(number));
            if is_known || crowds.contains(&Some(index)) || self.has_source(index) {
                continue;
            }
            let mut finding = self.quoting(check, claim.span.clone(), claim.severity);
            if let Some((_, asked)) = self.unstated_base(index, &claim) {
                finding.issue =
                    format!("{}, and it does not say {asked}.", finding.issue.trim_end_matches('.'));
            }
            finding.span = self.document.widened(&claim.span, 4, 3);
            findings.push(finding);
        }
        findings
    }

    /// Figures with a source. The check for sources also asks for the base of a figure without one.
    pub(super) fn missing_bases(&self, check: &Check) -> Vec<Finding> {
        let sourced = (0..self.document.sentences.len()).filter(|index| self.has_source(*index));
        let unstated = sourced.filter_map(|index| {
            let claim = self.claim(&self.document.sentences[index])?;
            let (span, asked) = self.unstated_base(index, &claim)?;
            let issue = format!("“{}” does not say {asked}.", self.document.one_line(&span));
            Some(Finding { issue, ..self.finding(check, span, Severity::Minor, "") })
        });
        unstated.collect()
    }

    /// What the figure of a sentence leaves open, and where; `None` where it has a base or needs none.
    fn unstated_base(&self, index: usize, claim: &Claim) -> Option<(Range<usize>, &'static str)> {
        let sentence = &self.document.sentences[index];
        let near = &self.document.prose[claim.span.start..sentence.span.end];
        let near = words(near).take(6).last().map_or(near, |(at, word)| &near[..at + word.len()]);
        let compares = list("comparing").first(near).map(|of| (of, "compared with what"));
        let is_share = near.contains('%') || near.contains("per");
        let shares = || list("people").first(near).filter(|_| is_share).map(|of| (of, "of how many"));
        let (of, asked) = compares.or_else(shares)?;
        let has_base = |sentence: &Sentence| {
            let prose = self.document.prose_of(sentence);
            prose.contains("n =") || list("bases").is_in(prose)
        };
        let based = has_base(sentence) || self.document.neighbour(index, true).is_some_and(has_base);
        (!based).then_some((claim.span.start..claim.span.start + of.end, asked))
    }

    pub(super) fn missing_evidence(&self, check: &Check) -> Vec<Finding> {
        /// From this many claims without a source on, the text is a finding.
        const CLAIMS: usize = 5;
        /// At most this many words for each claim.
        const WORDS_PER_CLAIM: usize = 80;
        let claims = ["unsourced numbers", "social proof", "superlatives", "vague authority"];
        let unsourced: Vec<Finding> = claims.iter().flat_map(|name| self.of(name)).collect();
        let sentences = self.document.sentences.iter().enumerate();
        let has_sourced = || {
            let mut sourced = sentences.filter(|(index, _)| self.has_source(*index));
            sourced.any(|(_, sentence)| self.claim(sentence).is_some())
        };
        let dense =
            unsourced.len() >= CLAIMS && unsourced.len() * WORDS_PER_CLAIM >= self.document.word_count();
        let first = unsourced.iter().map(|finding| &finding.span).min_by_key(|span| span.start);
        let Some(first) = first.filter(|_| dense && !has_sourced()) else { return Vec::new() };
        let finding = self.finding(check, first.clone(), Severity::Critical, &unsourced.len().to_string());
        vec![Finding { beyond_edit: true, ..finding }]
    }
}
