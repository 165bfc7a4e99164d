//! The document of an audit: a summary, then tables of counts with their rates.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use super::wording::{DASH, amount, digit_groups, dollars, duration};
use super::{Doc, Table, Text, Tone};
use crate::service::audit::{AgreementReport, Audit, Deliberator, PairReport, Reviews, SumReport};

/// The verdicts with a column, each with its tone and its character in a bar. Other verdicts of a log are counted
/// together.
const VERDICTS: [(&str, Tone, char); 4] = [
    ("SHIP", Tone::Good, '█'),
    ("REVISE", Tone::Fair, '▓'),
    ("HOLD", Tone::Bad, '▒'),
    ("INCOMPLETE", Tone::Absent, '░'),
];
/// The most weeks shown, the newest ones.
const MAX_WEEKS: usize = 26;
/// The most deliberators of a matrix, those with the most positions.
const MAX_MEMBERS: usize = 8;
/// The most producers, those with the most reviews, and the most weeks of each, the newest ones.
const MAX_PRODUCERS: usize = 12;
const MAX_PRODUCER_WEEKS: usize = 8;
/// The length of a bar, in characters.
const BAR: u64 = 20;

const MEANS: [&str; 3] = ["mean verdict", "blocks", "score"];

/// Counts of the verdicts with a column, and of others.
#[derive(Clone, Copy, Default)]
struct Tally {
    columns: [u64; 4],
    other: u64,
}

impl Tally {
    fn of<'c>(counts: impl IntoIterator<Item = &'c BTreeMap<String, u64>>) -> Tally {
        let mut tally = Tally::default();
        for (verdict, count) in counts.into_iter().flatten() {
            match VERDICTS.iter().position(|(known, ..)| verdict.eq_ignore_ascii_case(known)) {
                Some(column) => tally.columns[column] += count,
                None => tally.other += count,
            }
        }
        tally
    }

    fn all(self) -> u64 {
        self.columns.iter().sum::<u64>() + self.other
    }

    /// The headings of tallies, after the first one.
    fn headings(has_other: bool) -> impl Iterator<Item = &'static str> {
        let verdicts = VERDICTS.iter().map(|(verdict, ..)| *verdict);
        ["reviews"].into_iter().chain(verdicts).chain(has_other.then_some("other"))
    }

    fn row(self, name: &str, has_other: bool) -> Vec<Text> {
        let share = |count: u64| match count {
            0 => "0".to_owned(),
            count => format!("{count} ({})", rate(count, self.all())),
        };
        let counts = self.columns.into_iter().chain(has_other.then_some(self.other)).map(share);
        [name.to_owned(), self.all().to_string()].into_iter().chain(counts).map(Text::from).collect()
    }

    /// A bar with a share for each verdict; boundaries are rounded, so that the bar is always full.
    fn bar(self) -> Text {
        let all: u64 = self.columns.iter().sum();
        let (mut bar, mut sum, mut filled) = (Text::default(), 0, 0);
        for ((_, tone, glyph), count) in VERDICTS.iter().zip(self.columns) {
            sum += count;
            let until = (sum * BAR).checked_div(all).map_or(0, |_| (sum * BAR).div_ceil(all));
            if until > filled {
                bar = bar.and(Text::toned(*tone, glyph.to_string().repeat((until - filled) as usize)));
                filled = until;
            }
        }
        bar
    }
}

/// A percentage, rounded half up; `–` of zero.
fn rate(part: u64, total: u64) -> String {
    let rounded = (200 * u128::from(part) + u128::from(total)).checked_div(2 * u128::from(total));
    rounded.map_or_else(|| DASH.to_owned(), |rounded| format!("{rounded}%"))
}

/// A mean with two decimals: `–` without one.
fn mean(mean: Option<f64>) -> String {
    mean.map_or_else(|| DASH.to_owned(), |mean| format!("{mean:.2}"))
}

/// The mean verdict, the share of positions that block, and the mean score, each with the number that it is of.
fn means(reviews: &Reviews) -> [Text; 3] {
    let blocks = match reviews.positions {
        0 => DASH.to_owned(),
        positions => format!("{} of {positions}", rate(reviews.blocks, positions)),
    };
    let score = reviews.mean_score.map(|mean| format!("{mean:.2} of {}", reviews.scores));
    [mean(reviews.mean_verdict), blocks, score.unwrap_or_else(|| DASH.to_owned())].map(Text::from)
}

/// A table with its heading and a note; nothing without rows.
fn section(doc: &mut Doc, title: &str, table: Table, note: Option<String>) {
    if !table.is_empty() {
        doc.heading(title);
        doc.table(table.numeric());
        note.into_iter().for_each(|note| doc.line(note));
    }
}

impl Audit {
    /// The summary, and tables of verdicts, deliberators, their agreement, weeks, producers and costs.
    pub fn doc(&self) -> Doc {
        let mut doc = Doc::new();
        doc.title("Audit of the council");
        self.summary().into_iter().for_each(|sentence| doc.line(sentence));
        self.verdicts_by_type(&mut doc);
        let headings = [
            "deliberator",
            "reviews",
            "block",
            "irreducible",
            "flip R1→R2",
            "did not fit",
            "timed out",
            "score R1",
            "score R2",
            "re-prompts",
        ];
        let deliberators = Table::new(headings).with_rows(self.deliberators.iter().map(Deliberator::row));
        section(&mut doc, "Deliberators", deliberators, None);
        self.agreement.section(&mut doc);
        self.verdicts_by_week(&mut doc);
        self.producer_sections(&mut doc);
        self.cost_sections(&mut doc);
        doc
    }

    fn summary(&self) -> Vec<String> {
        if !self.present {
            return vec![format!("{} does not exist yet: every review adds a line.", self.log)];
        }
        let reviews = self.reviews;
        let mut filter =
            self.filter.since.as_ref().map_or_else(String::new, |since| format!(" since {since}"));
        for (name, value) in [("verdict", &self.filter.verdict), ("type", &self.filter.artifact_type)] {
            filter.extend(value.iter().map(|value| format!(", {name} {value}")));
        }
        let mut out = vec![format!("{} in {}{filter}.", amount(reviews, "review"), self.log)];
        if let Some(mean) = self.elapsed_ms.checked_div(reviews) {
            let average =
                self.calls_per_review.map_or_else(String::new, |calls| format!(", {calls:.1} a review"));
            let [all, mean] = [self.elapsed_ms, mean].map(|ms| duration(Duration::from_millis(ms)));
            let known = self.reviews_with_tokens;
            let tokens = self.tokens.and_then(|tokens| {
                let [all, average] = [tokens, tokens.checked_div(known)?].map(|count| amount(count, "token"));
                Some(format!("; {all} in {} with known usage ({average} each)", amount(known, "review")))
            });
            let tokens = tokens.unwrap_or_default();
            out.push(format!("{}{average}; {all} ({mean} a review){tokens}.", amount(self.calls, "call")));
            let overrides = amount(self.overrides, "override");
            out.push(format!("{overrides} by people ({} of reviews).", rate(self.overrides, reviews)));
        }
        let drifts = self
            .drift
            .iter()
            .map(|drift| (drift.artifact_type.clone(), drift.direction, &drift.means, &drift.weeks));
        let of_producers = self.producers.iter().filter_map(|producer| {
            let drift = producer.drift.as_ref()?;
            Some((
                format!("what is made by {}", producer.producer),
                drift.direction,
                &drift.means,
                &drift.weeks,
            ))
        });
        out.extend(drifts.chain(of_producers).map(|(of, direction, means, weeks)| {
            let means: Vec<String> = means.iter().map(|mean| format!("{mean:.2}")).collect();
            let (means, weeks) = (means.join(" → "), weeks.join(", "));
            format!("Drift: {of} is {direction}, mean verdict {means} in the weeks of {weeks}.")
        }));
        let altered = self.altered.iter();
        out.extend(altered.map(|run| format!("ALTERED, not counted: run {}: {}.", run.run, run.difference)));
        if self.corrupt_lines > 0 {
            let is = if self.corrupt_lines == 1 { "is" } else { "are" };
            out.push(format!(
                "{} of the log cannot be read and {is} not counted.",
                amount(self.corrupt_lines, "line")
            ));
        }
        out
    }

    fn verdicts_by_type(&self, doc: &mut Doc) {
        let all = Tally::of(self.verdicts.values());
        let has_other = all.other > 0;
        let mut table = Table::new(["type"].into_iter().chain(Tally::headings(has_other)));
        for (name, counts) in &self.verdicts {
            table.row(Tally::of([counts]).row(name, has_other));
        }
        if self.verdicts.len() > 1 {
            table.row(all.row("all", has_other));
        }
        section(doc, "Verdicts by type", table, None);
    }

    fn verdicts_by_week(&self, doc: &mut Doc) {
        let earlier = self.weeks.len().saturating_sub(MAX_WEEKS);
        let weeks: Vec<(&str, Tally)> = self.weeks[earlier..]
            .iter()
            .map(|week| (&*week.week, Tally::of(week.verdicts.values())))
            .collect();
        let has_other = weeks.iter().any(|(_, tally)| tally.other > 0);
        let headings = ["week of"].into_iter().chain(Tally::headings(has_other));
        let mut table = Table::new(headings.chain(["mix"]));
        for (week, tally) in weeks {
            table.row(tally.row(week, has_other).into_iter().chain([tally.bar()]));
        }
        let legend = VERDICTS.map(|(verdict, _, glyph)| format!("{glyph} {verdict}")).join(", ");
        let note = (earlier > 0)
            .then(|| format!("… and {earlier} weeks before: `quorate audit --format json` lists all."));
        section(doc, &format!("Drift by week: {legend}"), table, note);
    }

    fn producer_sections(&self, doc: &mut Doc) {
        let mut shown: Vec<_> = self.producers.iter().collect();
        shown.sort_by_key(|producer| (Reverse(producer.all.reviews), &producer.producer));
        let omitted = shown.len().saturating_sub(MAX_PRODUCERS) as u64;
        shown.truncate(MAX_PRODUCERS);
        let has_other = Tally::of(shown.iter().map(|producer| &producer.all.verdicts)).other > 0;
        let headings = ["producer"].into_iter().chain(Tally::headings(has_other));
        let mut all = Table::new(headings.chain(MEANS).chain(["overrides"]));
        let mut by_week = Table::new(["producer", "week of", "reviews"].into_iter().chain(MEANS));
        for producer in shown {
            let row = Tally::of([&producer.all.verdicts]).row(&producer.producer, has_other).into_iter();
            all.row(row.chain(means(&producer.all)).chain([producer.overrides.to_string().into()]));
            let weeks = &producer.weeks[producer.weeks.len().saturating_sub(MAX_PRODUCER_WEEKS)..];
            for week in weeks {
                let name = [producer.producer.clone(), week.week.clone(), week.all.reviews.to_string()];
                by_week.row(name.map(Text::from).into_iter().chain(means(&week.all)));
            }
        }
        let note = (omitted > 0).then(|| {
            format!("{} not shown: `quorate audit --format json` lists all.", amount(omitted, "producer"))
        });
        section(doc, "Producers", all, note);
        section(doc, "Producers by week", by_week, None);
    }

    fn cost_sections(&self, doc: &mut Doc) {
        let costs = &self.costs;
        let executors = costs.executors.iter().map(|cost| {
            let name = match &cost.model {
                Some(model) if !cost.executor.contains(model.as_str()) => {
                    format!("{} ({model})", cost.executor)
                }
                _ => cost.executor.clone(),
            };
            (name, &cost.sum)
        });
        let all = (costs.executors.len() > 1).then(|| ("all".to_owned(), &costs.all));
        cost_section(doc, "executor", executors.chain(all));
        cost_section(doc, "member", costs.members.iter().map(|cost| (cost.member.clone(), &cost.sum)));
        let types = costs.artifact_types.iter();
        cost_section(doc, "type", types.map(|cost| (cost.artifact_type.clone(), &cost.sum)));
        cost_section(doc, "month", costs.months.iter().map(|cost| (cost.month.clone(), &cost.sum)));
    }
}

fn cost_section<'c>(doc: &mut Doc, by: &str, sums: impl Iterator<Item = (String, &'c SumReport)>) {
    let count = |count: Option<u64>| count.map_or_else(|| DASH.to_owned(), digit_groups);
    let row = |(name, sum): (String, &SumReport)| {
        let money = match (sum.money, sum.unpriced_calls) {
            (None, _) => DASH.to_owned(),
            (Some(money), 0) => dollars(money),
            // Some of the calls have no known price.
            (Some(money), _) => format!("{} or more", dollars(money)),
        };
        let tokens = [sum.tokens_in, sum.tokens_cached, sum.tokens_out].map(count);
        [name, digit_groups(sum.calls)].into_iter().chain(tokens).chain([money])
    };
    let headings = [by, "calls", "tokens read", "cached", "written", "US$"];
    section(doc, &format!("Cost by {by}"), Table::new(headings).with_rows(sums.map(row)), None);
}

impl Deliberator {
    fn row(&self) -> [String; 10] {
        let share = |count: u64| rate(count, self.reviews);
        [
            self.id.clone(),
            self.reviews.to_string(),
            share(self.block),
            share(self.irreducible),
            share(self.flip),
            share(self.schema_failed),
            share(self.timed_out),
            mean(self.avg_r1_score),
            mean(self.avg_r2_score),
            self.reprompts.to_string(),
        ]
    }
}

impl AgreementReport {
    fn section(&self, doc: &mut Doc) {
        let mut ranked: Vec<(&String, &u64)> = self.members.iter().collect();
        ranked.sort_by_key(|(name, reviews)| (Reverse(**reviews), *name));
        let omitted = self.omitted + ranked.len().saturating_sub(MAX_MEMBERS) as u64;
        ranked.truncate(MAX_MEMBERS);
        let mut names: Vec<&String> = ranked.into_iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        let headings = ["agrees with"].into_iter().chain(names.iter().skip(1).map(|name| name.as_str()));
        let mut table = Table::new(headings);
        for (at, first) in names.iter().enumerate().take(names.len().saturating_sub(1)) {
            let cells = names.iter().enumerate().skip(1).map(|(other, second)| match other > at {
                true => self.cell(first, second),
                false => Text::default(),
            });
            table.row([Text::from(*first)].into_iter().chain(cells));
        }
        let mut note =
            format!("A pair that shares fewer than {} decided reviews has no rate.", self.min_shared);
        if omitted > 0 {
            let omitted = amount(omitted, "deliberator");
            note.push_str(&format!(" {omitted} not shown: `quorate audit --format json` lists more."));
        }
        section(doc, "Agreement of deliberators", table, Some(note));
    }

    fn cell(&self, first: &str, second: &str) -> Text {
        let is_pair = |pair: &&PairReport| pair.members == [first, second];
        let Some(pair) = self.pairs.iter().find(is_pair) else { return "too few: 0".into() };
        if pair.agreement.is_none() {
            return format!("too few: {}", pair.shared).into();
        }
        let agreed = rate(pair.both_block + pair.both_pass, pair.shared);
        let kappa = pair.kappa.map_or_else(String::new, |kappa| format!(" κ {kappa:.2}"));
        Text::from(format!("{agreed} of {}", pair.shared)).and(Text::faint(kappa))
    }
}

#[cfg(test)]
mod tests {
    use quorate_diagnostics::render::TextOptions;
    use quorate_ledger::council_log::stats::{
        Agreement, DeliberatorStats, LogStats, Pair, ProducerStats, Producers, ReviewCounts,
    };
    use quorate_ledger::stats::ReviewFilter;
    use serde_json::{Value, json};

    use super::*;
    use crate::service::audit::Counts;

    fn counts(all: [u64; 4]) -> BTreeMap<String, u64> {
        let nonzero = VERDICTS.iter().zip(all).filter(|(_, count)| *count > 0);
        nonzero.map(|((verdict, ..), count)| ((*verdict).to_owned(), count)).collect()
    }

    fn sample() -> Counts {
        let types = |post, memo| {
            BTreeMap::from([("blog_post".to_owned(), counts(post)), ("memo|2".to_owned(), counts(memo))])
        };
        let stats = LogStats {
            verdicts: types([6, 3, 2, 1], [0, 1, 0, 0]),
            deliberators: BTreeMap::from([
                (
                    "evidence".to_owned(),
                    DeliberatorStats {
                        reviews: 13,
                        blocks: 5,
                        irreducible: 2,
                        flipped: 3,
                        schema_failed: 0,
                        timed_out: 1,
                        first_scores: (13, 3_900),
                        last_scores: (12, 4_230),
                        reprompts: 2,
                    },
                ),
                (
                    "skeptic".to_owned(),
                    DeliberatorStats {
                        reviews: 12,
                        blocks: 0,
                        irreducible: 0,
                        flipped: 0,
                        schema_failed: 1,
                        timed_out: 0,
                        ..DeliberatorStats::default()
                    },
                ),
            ]),
            weeks: BTreeMap::from([
                (20_514, types([5, 0, 1, 1], [0, 0, 0, 0])),
                (20_521, types([1, 3, 1, 0], [0, 1, 0, 0])),
            ]),
            calls: (10, 92),
            tokens: (4, 48_000),
            elapsed_ms: 755_000,
            overrides: 2,
        };
        Counts {
            stats,
            producers: producers(),
            agreement: agreement(),
            corrupt_lines: 1,
            log_exists: true,
            ..Counts::default()
        }
    }

    fn audit() -> Audit {
        let filter = ReviewFilter { since_ms: Some(1_772_000_000_000), ..ReviewFilter::default() };
        Audit::new("council_log.jsonl".to_owned(), &filter, sample())
    }

    fn text(counts: Counts) -> String {
        let audit = Audit::new("council_log.jsonl".to_owned(), &ReviewFilter::default(), counts);
        audit.doc().text(TextOptions::default())
    }

    fn producers() -> Producers {
        let ada = ProducerStats {
            all: counts_of([5, 3, 2, 1], (40, 10), (38, 13_300)),
            weeks: BTreeMap::from([
                (20_514, counts_of([5, 0, 1, 1], (24, 4), (24, 9_000))),
                (20_521, counts_of([0, 3, 1, 0], (16, 6), (14, 4_300))),
            ]),
            overrides: 2,
        };
        BTreeMap::from([("ada".to_owned(), ada)])
    }

    fn counts_of(all: [u64; 4], positions: (u64, u64), scores: (u64, u64)) -> ReviewCounts {
        ReviewCounts { verdicts: counts(all), positions, scores }
    }

    fn agreement() -> Agreement {
        let names = ["evidence", "skeptic", "voice"].map(str::to_owned);
        let pair = |both_block, both_pass, first_blocks, second_blocks| Pair {
            both_block,
            both_pass,
            first_blocks,
            second_blocks,
        };
        let of = |first: usize, second: usize, pair| ((names[first].clone(), names[second].clone()), pair);
        Agreement {
            members: names.iter().map(|name| (name.clone(), 50)).collect(),
            pairs: BTreeMap::from([of(0, 1, pair(20, 15, 5, 10)), of(0, 2, pair(4, 3, 0, 0))]),
            omitted: 0,
        }
    }

    #[test]
    fn shares_are_rounded_half_up() {
        let shares =
            [(0, 3), (1, 3), (2, 3), (1, 8), (3, 3), (1, 200)].map(|(part, total)| rate(part, total));
        assert_eq!(shares, ["0%", "33%", "67%", "13%", "100%", "1%"]);
        assert_eq!(rate(0, 0), DASH);
        assert_eq!(rate(u64::MAX, u64::MAX), "100%");
    }

    #[test]
    fn for_people() {
        insta::assert_snapshot!(audit().doc().text(TextOptions::default()), @"
        Audit of the council
        13 reviews in council_log.jsonl since 2026-02-25T06:13:20.000Z.
        92 calls, 9.2 a review; 12 min 35 s (58.0 s a review); 48,000 tokens in 4 reviews with known usage
        (12,000 tokens each).
        2 overrides by people (15% of reviews).
        1 line of the log cannot be read and is not counted.

        Verdicts by type
          type       reviews  SHIP     REVISE    HOLD     INCOMPLETE
          ──────────────────────────────────────────────────────────
          blog_post  12       6 (50%)  3 (25%)   2 (17%)  1 (8%)
          memo|2     1        0        1 (100%)  0        0
          all        13       6 (46%)  4 (31%)   2 (15%)  1 (8%)

        Deliberators
          deliberator  reviews  block  irreducible  flip      did not  timed    score    score    re-prompts
                                                    R1→R2     fit      out      R1       R2
          ──────────────────────────────────────────────────────────────────────────────────────────────────
          evidence     13       38%    15%          23%       0%       8%       3.00     3.52     2
          skeptic      12       0%     0%           0%        8%       0%       –        –        0

        Agreement of deliberators
          agrees with  skeptic           voice
          ─────────────────────────────────────────
          evidence     70% of 50 κ 0.40  too few: 7
          skeptic                        too few: 0

          A pair that shares fewer than 20 decided reviews has no rate.

        Drift by week: █ SHIP, ▓ REVISE, ▒ HOLD, ░ INCOMPLETE
          week of     reviews  SHIP     REVISE   HOLD     INCOMPLETE  mix
          ────────────────────────────────────────────────────────────────────────────────
          2026-03-02  7        5 (71%)  0        1 (14%)  1 (14%)     ███████████████▒▒▒░░
          2026-03-09  6        1 (17%)  4 (67%)  1 (17%)  0           ████▓▓▓▓▓▓▓▓▓▓▓▓▓▒▒▒

        Producers
          producer  reviews  SHIP     REVISE  HOLD     INCOMPLETE  mean     blocks     score       overrides
                                                                   verdict
          ──────────────────────────────────────────────────────────────────────────────────────────────────
          ada       11       5 (45%)  3       2 (18%)  1 (9%)      0.59     25% of 40  3.50 of 38  2
                                      (27%)

        Producers by week
          producer  week of     reviews  mean verdict  blocks     score
          ──────────────────────────────────────────────────────────────────
          ada       2026-03-02  7        0.71          17% of 24  3.75 of 24
          ada       2026-03-09  4        0.38          38% of 16  3.07 of 14
        ");
    }

    #[test]
    fn for_pasting() {
        insta::assert_snapshot!(audit().doc().markdown(), @r#"
        ## Audit of the council

        13 reviews in council\_log.jsonl since 2026-02-25T06:13:20.000Z.

        92 calls, 9.2 a review; 12 min 35 s (58.0 s a review); 48,000 tokens in 4 reviews with known usage (12,000 tokens each).

        2 overrides by people (15% of reviews).

        1 line of the log cannot be read and is not counted.

        ### Verdicts by type

        | type | reviews | SHIP | REVISE | HOLD | INCOMPLETE |
        | --- | ---: | ---: | ---: | ---: | ---: |
        | blog\_post | 12 | 6 (50%) | 3 (25%) | 2 (17%) | 1 (8%) |
        | memo\|2 | 1 | 0 | 1 (100%) | 0 | 0 |
        | all | 13 | 6 (46%) | 4 (31%) | 2 (15%) | 1 (8%) |

        ### Deliberators

        | deliberator | reviews | block | irreducible | flip R1→R2 | did not fit | timed out | score R1 | score R2 | re-prompts |
        | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
        | evidence | 13 | 38% | 15% | 23% | 0% | 8% | 3.00 | 3.52 | 2 |
        | skeptic | 12 | 0% | 0% | 0% | 8% | 0% | – | – | 0 |

        ### Agreement of deliberators

        | agrees with | skeptic | voice |
        | --- | ---: | ---: |
        | evidence | 70% of 50 κ 0.40 | too few: 7 |
        | skeptic |  | too few: 0 |

        A pair that shares fewer than 20 decided reviews has no rate.

        ### Drift by week: █ SHIP, ▓ REVISE, ▒ HOLD, ░ INCOMPLETE

        | week of | reviews | SHIP | REVISE | HOLD | INCOMPLETE | mix |
        | --- | ---: | ---: | ---: | ---: | ---: | ---: |
        | 2026-03-02 | 7 | 5 (71%) | 0 | 1 (14%) | 1 (14%) | ███████████████▒▒▒░░ |
        | 2026-03-09 | 6 | 1 (17%) | 4 (67%) | 1 (17%) | 0 | ████▓▓▓▓▓▓▓▓▓▓▓▓▓▒▒▒ |

        ### Producers

        | producer | reviews | SHIP | REVISE | HOLD | INCOMPLETE | mean verdict | blocks | score | overrides |
        | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
        | ada | 11 | 5 (45%) | 3 (27%) | 2 (18%) | 1 (9%) | 0.59 | 25% of 40 | 3.50 of 38 | 2 |

        ### Producers by week

        | producer | week of | reviews | mean verdict | blocks | score |
        | --- | ---: | ---: | ---: | ---: | ---: |
        | ada | 2026-03-02 | 7 | 0.71 | 17% of 24 | 3.75 of 24 |
        | ada | 2026-03-09 | 4 | 0.38 | 38% of 16 | 3.07 of 14 |
        "#);
    }

    #[test]
    fn for_programs() {
        let object = json!(audit());
        assert_eq!(
            object["deliberators"][0],
            json!({
                "id": "evidence", "reviews": 13, "block": 5, "block_rate": 0.3846, "irreducible": 2,
                "irreducible_rate": 0.1538, "flip": 3, "flip_rate": 0.2308, "schema_failed": 0, "schema_failed_rate": 0.0,
                "timed_out": 1, "timed_out_rate": 0.0769, "avg_r1_score": 3.0, "avg_r2_score": 3.525, "reprompts": 2,
            })
        );
        assert_eq!(object["weeks"][1]["week"], "2026-03-09");
        let ada = &object["producers"][0];
        assert_eq!(
            (
                &ada["producer"],
                &ada["reviews"],
                &ada["block_rate"],
                &ada["mean_score"],
                &ada["override_rate"]
            ),
            (&json!("ada"), &json!(11), &json!(0.25), &json!(3.5), &json!(0.1818))
        );
        assert_eq!(ada["weeks"][1]["mean_verdict"], 0.375);
        let pairs = &object["agreement"]["pairs"];
        assert_eq!(
            (&pairs[0]["shared"], &pairs[0]["agreement"], &pairs[0]["kappa"]),
            (&json!(50), &json!(0.7), &json!(0.4))
        );
        assert_eq!((&pairs[1]["shared"], &pairs[1]["agreement"]), (&json!(7), &Value::Null));
        assert_eq!(object["calls_per_review"], 9.2);
        assert_eq!((&object["tokens_per_review"], &object["drift"]), (&json!(12_000.0), &json!([])));
        assert_eq!(object["override_rate"], 0.1538);
    }

    #[test]
    fn nothing_to_count() {
        let empty = Counts { log_exists: true, ..Counts::default() };
        assert_eq!(text(empty), "Audit of the council\n0 reviews in council_log.jsonl.\n");
        assert_eq!(
            text(Counts::default()),
            "Audit of the council\ncouncil_log.jsonl does not exist yet: every review adds a line.\n"
        );
        let absent = Audit::new(String::new(), &ReviewFilter::default(), Counts::default());
        assert_eq!(json!(absent)["override_rate"], Value::Null);
    }

    #[test]
    fn long_histories_are_cut() {
        let mut long = sample();
        long.producers = Producers::default();
        long.stats.weeks = (0..40)
            .map(|week| (20_514 + week * 7, BTreeMap::from([("post".to_owned(), counts([1, 0, 0, 0]))])))
            .collect();
        let text = text(long);
        assert!(text.contains("… and 14 weeks before"), "{text}");
        assert!(!text.contains("2026-03-02 ") && text.contains("2026-11-30 "), "{text}");
    }
}
