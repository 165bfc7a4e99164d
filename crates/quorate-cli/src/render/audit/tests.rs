//! One audit in every format.

use std::collections::BTreeMap;

use quorate::service::audit::Costs;
use quorate_diagnostics::render::TextOptions;
use quorate_ledger::council_log::stats::{
    Agreement, DeliberatorStats, LogStats, Pair, ProducerStats, Producers, ReviewCounts,
};
use quorate_ledger::stats::ReviewFilter;
use serde_json::{Value, json};

use super::*;

fn counts(all: [u64; 4]) -> BTreeMap<String, u64> {
    let nonzero = VERDICTS.iter().zip(all).filter(|(_, count)| *count > 0);
    nonzero.map(|(verdict, count)| ((*verdict).to_owned(), count)).collect()
}

fn audit() -> Audit {
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
    let filter = ReviewFilter { since_ms: Some(1_772_000_000_000), ..ReviewFilter::default() };
    Audit {
        log: "council_log.jsonl".to_owned(),
        filter,
        stats,
        producers: producers(),
        agreement: agreement(),
        costs: Costs::default(),
        altered: BTreeMap::new(),
        corrupt_lines: 1,
        log_exists: true,
    }
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
fn for_people() {
    insta::assert_snapshot!(human(&audit(), TextOptions::default()), @"
    13 reviews in council_log.jsonl since 2026-02-25T06:13:20.000Z. 92 calls, 9.2 a review; 12 min 35 s
    (58.0 s a review); 48,000 tokens in 4 reviews with known usage (12,000 tokens each). 2 overrides by
    people (15% of reviews). 1 line of the log cannot be read and is not counted.

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
      agrees with  skeptic    voice
      ──────────────────────────────────
      evidence     70% of 50  too few: 7
      skeptic                 too few: 0
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
    insta::assert_snapshot!(markdown(&audit()), @r#"
    ## Audit of the council

    - 13 reviews in council\_log.jsonl since 2026-02-25T06:13:20.000Z.
    - 92 calls, 9.2 a review; 12 min 35 s (58.0 s a review); 48,000 tokens in 4 reviews with known usage (12,000 tokens each).
    - 2 overrides by people (15% of reviews).
    - 1 line of the log cannot be read and is not counted.

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
    | evidence | 70% of 50 | too few: 7 |
    | skeptic |  | too few: 0 |

    A pair that shares fewer than 20 decided reviews has no rate.

    ### Drift by week

    | week of | reviews | SHIP | REVISE | HOLD | INCOMPLETE |
    | --- | ---: | ---: | ---: | ---: | ---: |
    | 2026-03-02 | 7 | 5 (71%) | 0 | 1 (14%) | 1 (14%) |
    | 2026-03-09 | 6 | 1 (17%) | 4 (67%) | 1 (17%) | 0 |

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
    let object: Value = quorate::service::audit::json(&audit());
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
        (&ada["producer"], &ada["reviews"], &ada["block_rate"], &ada["mean_score"], &ada["override_rate"]),
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
    let empty = Audit {
        stats: LogStats::default(),
        producers: Producers::default(),
        agreement: Agreement::default(),
        filter: ReviewFilter::default(),
        corrupt_lines: 0,
        ..audit()
    };
    assert_eq!(human(&empty, TextOptions::default()), "0 reviews in council_log.jsonl.\n");
    let absent = Audit { log_exists: false, ..empty };
    assert_eq!(
        human(&absent, TextOptions::default()),
        "council_log.jsonl does not exist yet: every review adds a line.\n"
    );
    assert_eq!(quorate::service::audit::json(&absent)["override_rate"], Value::Null);
}

#[test]
fn long_histories_are_cut() {
    let mut long = Audit { producers: Producers::default(), ..audit() };
    long.stats.weeks = (0..40)
        .map(|week| (20_514 + week * 7, BTreeMap::from([("post".to_owned(), counts([1, 0, 0, 0]))])))
        .collect();
    let text = human(&long, TextOptions::default());
    assert!(text.contains("… and 14 weeks before"), "{text}");
    assert!(!text.contains("2026-03-02 ") && text.contains("2026-11-30 "), "{text}");
}
