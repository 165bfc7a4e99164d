//! The checks, which `checks.toml` lists: their phrases and patterns, and when a hit counts. This file applies them.
//! A check that needs more than phrases is code in `checks/whole_text.rs` and `checks/figures.rs`.
//!
//! Findings of a check are left out where the settings turn it off, or a comment in the text suppresses it.

mod figures;
mod suppression;
mod whole_text;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;

use super::criteria::{BannedPhrases, Goals};
use super::document::{BlockKind, Channel, Document, Sentence};
use super::finding::{Finding, Lens, Severity};
use super::phrases::{Phrases, compile, compiled, is_whole, list};
pub(super) use suppression::Suppressions;

/// The criteria that checks apply to a text.
pub(super) struct Criteria<'a> {
    pub(super) banned: &'a BannedPhrases,
    /// May be empty.
    pub(super) goals: &'a Goals,
    /// Documents of the member's context: a number or a phrase that occurs in one of them raises no finding.
    pub(super) context: &'a [Document<'a>],
    /// The severity of each check that the settings change; `None` turns it off.
    pub(super) severities: &'a Severities,
}

/// Severities by the name of their check.
pub(super) type Severities = BTreeMap<&'static str, Option<Severity>>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Check {
    /// Also the name of its score. With hyphens it is the check's id.
    pub(super) name: String,
    /// The lens that runs it. Every lens runs those of [`Lens::General`].
    pub(super) lens: Lens,
    /// Whether its findings are about the whole text and not about their place.
    #[serde(default)]
    pub(super) whole: bool,
    /// The problem; `{}` stands for the words that were found.
    pub(super) issue: String,
    pub(super) fix: String,
    /// Whether a sentence has one finding at most.
    #[serde(default)]
    once: bool,
    #[serde(default, rename = "rule")]
    rules: Vec<Rule>,
}

/// Which words a check finds, and where they count.
#[derive(Debug, Deserialize)]
#[serde(from = "WrittenRule")]
struct Rule {
    written: WrittenRule,
    find: Regex,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenRule {
    severity: Option<Severity>,
    /// Phrases, or in their place a regular expression, whose first group is what is quoted.
    find: Vec<String>,
    pattern: String,
    issue: Option<String>,
    fix: Option<String>,
    /// Phrases right before the hit, or with one word between.
    not_after: Option<Phrases>,
    /// Phrases right after the hit.
    not_before: Option<Phrases>,
    /// Phrases anywhere in the sentence.
    unless: Option<Phrases>,
    /// Phrases before the hit in its clause.
    unless_before: Option<Phrases>,
    /// A list, of which the sentence must have a phrase.
    needs: Option<String>,
    /// The same for the sentence and the one before.
    needs_near: Option<String>,
    /// A list, of which neither the sentence nor a neighbour may have a phrase.
    unless_near: Option<String>,
    /// A list, of which a phrase in the sentence makes the finding minor.
    weaker_if: Option<String>,
    /// Which source makes the words no finding.
    sourced: Option<Sourced>,
    not_in: Vec<Channel>,
    only_in: Vec<Channel>,
    /// An imperative begins with its verb: “Never commit secrets”.
    not_at_start: bool,
    /// Whether a hit may span sentences of a paragraph.
    across_sentences: bool,
    /// Whether comments, footnotes and tables are read as well.
    reads_markup: bool,
    /// How many words before and after the hit are quoted with it.
    margin: (usize, usize),
}

/// How near a source must be.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Sourced {
    Sentence,
    /// The sentence or a neighbour.
    Next,
    /// As for figures: the line that leads a list in, and the text below a heading count as well.
    Near,
}

impl From<WrittenRule> for Rule {
    fn from(written: WrittenRule) -> Self {
        let find = match written.pattern.is_empty() {
            true => Phrases::new(&written.find).into_regex(),
            false => compile(&written.pattern.replace(' ', r"\s+")).unwrap_or_else(|_| compiled("$^")),
        };
        Rule { find, written }
    }
}

#[derive(Deserialize)]
struct Checks {
    check: Vec<Check>,
}

/// All checks.
pub(super) static ALL: LazyLock<Vec<Check>> = LazyLock::new(|| {
    toml::from_str::<Checks>(include_str!("checks.toml")).map(|all| all.check).unwrap_or_default()
});

/// Tells the judges how to judge: no comment suppresses it, and every member of an assembly refuses such a text.
pub(super) const INSTRUCTIONS: &str = "instructions to the reviewer";

/// The check with a name or an id, in any case.
pub(super) fn named(name: &str) -> Option<&'static Check> {
    let name = name.replace('-', " ");
    ALL.iter().find(|check| check.name.replace('-', " ").eq_ignore_ascii_case(name.trim()))
}

#[derive(Clone)]
pub(super) struct CheckFinding {
    pub(super) check: &'static Check,
    pub(super) finding: Finding,
}

/// A text, and what it is read by.
pub(super) struct Reading<'a> {
    pub(super) document: &'a Document<'a>,
    pub(super) criteria: &'a Criteria<'a>,
    pub(super) suppressions: Suppressions,
    /// What was found, by check: some checks count the findings of others.
    found: RefCell<BTreeMap<&'static str, Vec<Finding>>>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(document: &'a Document<'a>, criteria: &'a Criteria<'a>) -> Self {
        Reading { document, criteria, suppressions: Suppressions::read(document), found: RefCell::default() }
    }

    /// Runs all checks of a lens.
    pub(super) fn run(&self, lens: Lens) -> Vec<CheckFinding> {
        let checks = ALL.iter().filter(|check| lens.covers(check.lens));
        checks
            .flat_map(|check| {
                self.findings_of(check).into_iter().map(move |finding| CheckFinding { check, finding })
            })
            .collect()
    }

    /// What a check finds that counts, by its name.
    fn of(&self, name: &str) -> Vec<Finding> {
        named(name).map_or(Vec::new(), |check| self.findings_of(check))
    }

    /// What a check finds that counts.
    pub(super) fn findings_of(&self, check: &'static Check) -> Vec<Finding> {
        if let Some(known) = self.found.borrow().get(check.name.as_str()) {
            return known.clone();
        }
        let set = self.criteria.severities.get(check.name.as_str());
        if set.is_some_and(Option::is_none) {
            return Vec::new();
        }
        let mut findings = self.raw_findings(check);
        findings.retain(|finding| !self.suppressions.cover(check, finding.span.start));
        for finding in &mut findings {
            finding.severity = set.copied().flatten().unwrap_or(finding.severity);
        }
        self.found.borrow_mut().insert(&check.name, findings.clone());
        findings
    }

    fn raw_findings(&self, check: &'static Check) -> Vec<Finding> {
        let mut findings: Vec<Finding> =
            check.rules.iter().flat_map(|rule| self.rule_findings(check, rule)).collect();
        match check.name.as_str() {
            "boasting" => findings.extend(self.boasting(check)),
            "counter-position" => findings.extend(self.missing_counter_position(check)),
            "banned phrases" => findings.extend(self.banned_phrases(check)),
            "sentence length" => findings.extend(self.long_sentences(check)),
            "shouting" => findings.extend(self.capitals(check)),
            "register" => findings.extend(self.walls(check)),
            "unsourced numbers" => findings.extend(self.unsourced_numbers(check)),
            "missing base" => findings.extend(self.missing_bases(check)),
            "evidence at all" => findings.extend(self.missing_evidence(check)),
            "call to action" => findings.extend(self.missing_call(check)),
            "goals" => findings.extend(self.unmet_goals(check)),
            _ => {}
        }
        findings.sort_by_key(|finding| finding.span.start);
        if check.once {
            findings.dedup_by_key(|finding| self.document.sentence_at(finding.span.start));
        }
        if check.name == "irreversible promises" {
            self.weigh_promises(&mut findings);
        }
        findings
    }

    fn rule_findings(&self, check: &Check, rule: &Rule) -> Vec<Finding> {
        let (document, written) = (self.document, &rule.written);
        let here = document.channel;
        if written.not_in.contains(&here) || !written.only_in.is_empty() && !written.only_in.contains(&here) {
            return Vec::new();
        }
        let mut findings = Vec::new();
        let mut units: Vec<(usize, Range<usize>)> = Vec::new();
        for block in &document.blocks {
            if block.kind == BlockKind::Cell && !written.reads_markup || block.sentences.is_empty() {
                continue;
            }
            match written.across_sentences {
                true => units.push((block.sentences.start, block.span.clone())),
                false => {
                    units.extend(block.sentences.clone().map(|at| (at, document.sentences[at].span.clone())))
                }
            }
        }
        for (index, unit) in units {
            let text = &document.prose[unit.clone()];
            let hits: Vec<Range<usize>> = rule.hits(text).filter(|hit| rule.counts(text, hit)).collect();
            if !hits.is_empty() && self.context_fits(rule, index) {
                let place = |hit: Range<usize>| unit.start + hit.start..unit.start + hit.end;
                findings
                    .extend(hits.into_iter().map(|hit| self.rule_finding(check, rule, index, place(hit))));
            }
        }
        if written.reads_markup {
            for span in &document.markup {
                let text = &document.text[span.clone()];
                for hit in rule.hits(text).filter(|hit| rule.counts(text, hit)) {
                    let place = span.start + hit.start..span.start + hit.end;
                    // The text between the tags of HTML is read as prose as well.
                    if findings.iter().all(|finding: &Finding| finding.span != place) {
                        findings.push(self.rule_finding(check, rule, usize::MAX, place));
                    }
                }
            }
        }
        findings
    }

    /// Whether the sentence of a hit and its neighbours leave it a finding.
    fn context_fits(&self, rule: &Rule, index: usize) -> bool {
        let (document, written) = (self.document, &rule.written);
        let sentence = &document.sentences[index];
        let (before, after) = (document.neighbour(index, false), document.neighbour(index, true));
        let has = |name: &Option<String>, sentence: Option<&Sentence>| {
            let phrases = name.as_deref().map(list);
            phrases
                .zip(sentence)
                .is_some_and(|(phrases, sentence)| phrases.is_in(document.prose_of(sentence)))
        };
        let cites = |sentence: Option<&Sentence>| sentence.is_some_and(|sentence| sentence.cites);
        let sourced = match written.sourced {
            None => false,
            Some(Sourced::Sentence) => sentence.cites,
            Some(Sourced::Next) => sentence.cites || cites(before) || cites(after),
            Some(Sourced::Near) => self.has_source(index),
        };
        let here = Some(sentence);
        let near = [before, here, after].into_iter().any(|one| has(&written.unless_near, one));
        let needed = (written.needs.is_none() || has(&written.needs, here))
            && (written.needs_near.is_none()
                || has(&written.needs_near, here)
                || has(&written.needs_near, before));
        let excused =
            written.unless.as_ref().is_some_and(|phrases| phrases.is_in(document.prose_of(sentence)));
        needed && !near && !sourced && !excused
    }

    fn rule_finding(&self, check: &Check, rule: &Rule, index: usize, span: Range<usize>) -> Finding {
        let written = &rule.written;
        let sentence = self.document.sentences.get(index);
        let weaker = written.weaker_if.as_deref().zip(sentence);
        let weaker =
            weaker.is_some_and(|(name, sentence)| list(name).is_in(self.document.prose_of(sentence)));
        let severity = written.severity.filter(|_| !weaker).unwrap_or(Severity::Minor);
        let (issue, fix) =
            (written.issue.as_ref().unwrap_or(&check.issue), written.fix.as_ref().unwrap_or(&check.fix));
        let issue = issue.replace("{}", &self.document.one_line(&span));
        let span = match written.margin {
            (0, 0) => span,
            (before, after) => self.document.widened(&span, before, after),
        };
        Finding { span, severity, beyond_edit: false, extra_points: 0, issue, fix: fix.clone() }
    }

    /// A finding in the words of its check.
    fn finding(&self, check: &Check, span: Range<usize>, severity: Severity, words: &str) -> Finding {
        let issue = check.issue.replace("{}", words);
        Finding { span, severity, beyond_edit: false, extra_points: 0, issue, fix: check.fix.clone() }
    }

    /// A finding that names the words at its place.
    fn quoting(&self, check: &Check, span: Range<usize>, severity: Severity) -> Finding {
        self.finding(check, span.clone(), severity, &self.document.one_line(&span))
    }

    /// Whether a sentence or a neighbour of it names a source: before and after it in its block, the line that leads a
    /// list in, and a `Source:` line below. A heading is sourced by what is under it.
    fn has_source(&self, index: usize) -> bool {
        let (document, sentences) = (self.document, &self.document.sentences);
        let sentence = &sentences[index];
        let cites = |other: Option<&Sentence>| other.is_some_and(|other| other.cites);
        let names_source = |other: &&Sentence| {
            document.prose_of(other).get(..6).is_some_and(|word| word.eq_ignore_ascii_case("source"))
        };
        if sentence.cites
            || cites(document.neighbour(index, false))
            || cites(document.neighbour(index, true))
            || cites(sentences.get(index + 1).filter(names_source))
        {
            return true;
        }
        match document.kind_of(sentence) {
            BlockKind::Item => {
                // A list may be as long as the text.
                let mut above = document.blocks[..sentence.block].iter().rev().take(60);
                let lead = above.find(|block| block.kind != BlockKind::Item);
                lead.is_some_and(|block| {
                    sentences[block.sentences.clone()].last().is_some_and(|last| last.cites)
                })
            }
            BlockKind::Heading => document
                .blocks
                .get(sentence.block + 1)
                .is_some_and(|below| sentences[below.sentences.clone()].iter().any(|one| one.cites)),
            BlockKind::Paragraph | BlockKind::Cell => false,
        }
    }
}

impl Check {
    /// The problems that its findings name, each with its remedy.
    pub(super) fn messages(&self) -> impl Iterator<Item = (&str, &str)> {
        let own = self.rules.iter().filter_map(|rule| {
            let issue = rule.written.issue.as_deref()?;
            Some((issue, rule.written.fix.as_deref().unwrap_or(&self.fix)))
        });
        std::iter::once((&*self.issue, &*self.fix)).chain(own)
    }
}

impl Rule {
    fn hits<'r>(&'r self, text: &'r str) -> Box<dyn Iterator<Item = Range<usize>> + 'r> {
        if self.written.pattern.is_empty() {
            return Box::new(
                self.find.find_iter(text).map(|hit| hit.range()).filter(|span| is_whole(text, span)),
            );
        }
        let groups = self.find.captures_iter(text);
        Box::new(groups.filter_map(|hit| Some(hit.get(1).or(hit.get(0))?.range())))
    }

    /// Whether the words around a hit leave it one.
    fn counts(&self, text: &str, hit: &Range<usize>) -> bool {
        let rule = &self.written;
        let is =
            |phrases: &Option<Phrases>, fits: &dyn Fn(&Phrases) -> bool| phrases.as_ref().is_some_and(fits);
        let is_excused = (rule.not_at_start && hit.start == 0)
            || is(&rule.not_after, &|phrases| phrases.is_before(text, hit.start))
            || is(&rule.not_before, &|phrases| phrases.is_after(text, hit.end))
            || is(&rule.unless_before, &|phrases| phrases.is_leading(text, hit.start));
        !is_excused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_compiles_and_has_twenty_checks() {
        let all = toml::from_str::<Checks>(include_str!("checks.toml")).expect("a table of checks").check;
        assert_eq!(all.len(), 20);
        for rule in all.iter().flat_map(|check| &check.rules) {
            assert_ne!(rule.find.as_str(), "$^", "{:?}", rule.written);
            let lists = [
                &rule.written.needs,
                &rule.written.needs_near,
                &rule.written.unless_near,
                &rule.written.weaker_if,
            ];
            lists.into_iter().flatten().for_each(|name| assert!(!list(name).is_in(""), "{name}"));
        }
        assert!(
            named("Unsourced-Numbers").is_some()
                && named("counter position").is_some()
                && named("x").is_none()
        );
    }
}
