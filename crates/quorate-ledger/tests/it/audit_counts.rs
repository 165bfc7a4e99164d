//! The audit's counts of producers and of agreement, compared with an independent count that parses each line as JSON
//! and does not use the index.

#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::collections::{BTreeMap, BTreeSet};

use quorate_ledger::Store;
use quorate_ledger::council_log::stats::{MIN_SHARED, agreement, stats};
use quorate_ledger::council_log::{self, line::LogLine};
use quorate_ledger::stats::ReviewFilter;
use serde_json::{Value, json};

/// Pseudorandom numbers with a fixed seed.
struct Rng(u64);

impl Rng {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.below(of.len() as u64)).unwrap()]
    }
}

const MEMBERS: [&str; 5] = ["evidence", "skeptic", "strategy", "voice \"x\"", "日本"];

fn answer(rng: &mut Rng, member: &str, round: u64) -> Option<Value> {
    let status = rng.pick(&["answered", "answered", "answered", "timed_out", "schema_failed"]);
    if rng.below(8) == 0 {
        return None;
    }
    let mut entry =
        json!({"deliberator": member, "status": status, "schema_failed": status == "schema_failed"});
    if status != "timed_out" {
        entry["would_block"] = json!(rng.below(3) == 0);
        entry["irreducible"] = json!(round == 2 && rng.below(5) == 0);
        entry["score"] = json!(rng.below(11) as f64 / 2.0);
    }
    Some(entry)
}

/// A log of reviews, some resumed, some overridden, some closed, some by the public tool; with lines that are not
/// reviews.
fn log(seed: u64, reviews: u64) -> Vec<Value> {
    let mut rng = Rng(seed);
    let mut lines = Vec::new();
    for number in 0..reviews {
        let id = format!("r{number:012}");
        let at = 1_767_225_600_000 + i64::try_from(rng.below(120 * 24 * 3600)).unwrap() * 1_000;
        let two_rounds = rng.below(4) > 0;
        let round = |rng: &mut Rng, round: u64| -> Vec<Value> {
            MEMBERS.iter().filter_map(|member| answer(rng, member, round)).collect()
        };
        let verdict = rng.pick(&["SHIP", "REVISE", "HOLD", "INCOMPLETE", "INCOMPLETE", "SUPERSEDED"]);
        let mut line = json!({
            "v": 2, "event": "verdict", "run": id, "span_id": id, "verdict": verdict,
            "artifact_type": rng.pick(&["post", "memo"]), "elapsed_seconds": 1.5,
        });
        if rng.below(10) > 0 {
            line["ts"] = json!(quorate_kernel::clock::rfc3339(at));
        }
        if let Some(producer) = rng.pick(&[Some("ada"), Some("bob"), Some("<b>"), None]) {
            line["producer"] = json!(producer);
        }
        match rng.below(5) {
            0 => {
                let mut of = |two: bool| rng.below(5).checked_sub(1).filter(|_| two);
                let entry = |first: Option<u64>, second: Option<u64>, blocks: (bool, bool)| json!({"r1_score": first, "r1_would_block": blocks.0, "r2_score": second, "r2_would_block": blocks.1});
                let map: BTreeMap<&str, Value> = MEMBERS
                    .iter()
                    .map(|member| {
                        let (first, second) = (of(true), of(two_rounds));
                        (
                            *member,
                            entry(first, second, (first == Some(1), second.is_some_and(|score| score < 2))),
                        )
                    })
                    .collect();
                line["deliberators"] = json!(map);
            }
            _ => {
                line["round1"] = json!(round(&mut rng, 1));
                line["round2"] = if two_rounds { json!(round(&mut rng, 2)) } else { json!([]) };
            }
        }
        let resumed = verdict == "INCOMPLETE" && rng.below(2) == 0;
        lines.push(line.clone());
        if resumed {
            line["event"] = json!("resumed");
            line["verdict"] = json!(rng.pick(&["SHIP", "HOLD"]));
            if line["round1"].is_array() {
                line["round2"] = json!(round(&mut rng, 2));
            }
            lines.push(line.clone());
        }
        for _ in 0..rng.below(6).saturating_sub(3) {
            let mut decision = json!({
                "v": 2, "event": "override", "run": id, "span_id": id, "artifact_type": line["artifact_type"],
                "verdict": rng.pick(&["SHIP", "REVISE", "HOLD"]), "ts": line["ts"],
            });
            if line["producer"].is_string() {
                decision["producer"] = line["producer"].clone();
            }
            lines.push(decision);
        }
    }
    lines
}

/// The position and the last score of each member, by the words of docs/ledger.md.
fn members(line: &Value) -> BTreeMap<String, (Option<bool>, Option<f64>)> {
    let mut members: BTreeMap<String, (Option<bool>, Option<f64>)> = BTreeMap::new();
    if line["round1"].is_array() {
        let two_rounds = !line["round2"].as_array().unwrap().is_empty();
        for (second, round) in [(false, "round1"), (true, "round2")] {
            for entry in line[round].as_array().unwrap() {
                let member = members.entry(entry["deliberator"].as_str().unwrap().to_owned()).or_default();
                let block = entry["would_block"].as_bool().filter(|_| entry["status"] == "answered");
                if let Some(block) = block.filter(|block| second || !two_rounds || *block) {
                    member.0 = Some(block);
                }
                member.1 = entry["score"].as_f64().or(member.1);
            }
        }
        return members;
    }
    let all = line["deliberators"].as_object().unwrap();
    let two_rounds = all.values().any(|entry| entry["r2_score"].is_number());
    for (name, entry) in all {
        let first = entry["r1_score"].as_f64().map(|_| entry["r1_would_block"] == true);
        let second = entry["r2_score"].as_f64().map(|_| entry["r2_would_block"] == true);
        let position = match (first, second, two_rounds) {
            (_, Some(second), _) => Some(second),
            (Some(true), None, _) => Some(true),
            (first, None, false) => first,
            _ => None,
        };
        members.insert(name.clone(), (position, entry["r2_score"].as_f64().or(entry["r1_score"].as_f64())));
    }
    members
}

fn monday(line: &Value) -> Option<i64> {
    let at = quorate_kernel::clock::parse_rfc3339(line["ts"].as_str()?)?;
    let day = at.div_euclid(24 * 3600 * 1000);
    // 1970-01-01 was a Thursday.
    Some(day - (day + 3).rem_euclid(7))
}

#[derive(Debug, Default, PartialEq)]
struct Naive {
    verdicts: BTreeMap<String, u64>,
    positions: (u64, u64),
    scores: (u64, f64),
}

impl Naive {
    fn add(&mut self, line: &Value) {
        let verdict = line["verdict"].as_str().unwrap();
        *self.verdicts.entry(verdict.to_owned()).or_default() += 1;
        if verdict == "INCOMPLETE" {
            return;
        }
        for (position, score) in members(line).values() {
            self.positions.0 += u64::from(position.is_some());
            self.positions.1 += u64::from(*position == Some(true));
            self.scores.0 += u64::from(score.is_some());
            self.scores.1 += score.unwrap_or_default();
        }
    }
}

async fn compare(seed: u64, filter: &ReviewFilter) {
    let lines = log(seed, 300);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("council_log.jsonl");
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(&path, format!("{text}not a line\n")).unwrap();
    let store = Store::open_log_only(&path).await.unwrap();
    let indexed = council_log::sync(&store, &path).await.unwrap();
    let counted_log = council_log::without_ledger(&store, indexed).await.unwrap();

    let is_in = |line: &&Value| {
        let at = line["ts"].as_str().and_then(quorate_kernel::clock::parse_rfc3339).unwrap_or(0);
        filter.since_ms.is_none_or(|since| at >= since)
            && filter.verdict.as_ref().is_none_or(|verdict| line["verdict"] == **verdict)
            && filter.artifact_type.as_ref().is_none_or(|of| line["artifact_type"] == **of)
    };
    let resumed: BTreeSet<&str> = lines
        .iter()
        .filter(|line| line["event"] == "resumed")
        .map(|line| line["run"].as_str().unwrap())
        .collect();
    let is_review = |line: &&Value| {
        line["event"] != "override"
            && line["verdict"] != "SUPERSEDED"
            && !(line["event"] == "verdict"
                && line["verdict"] == "INCOMPLETE"
                && resumed.contains(line["run"].as_str().unwrap()))
    };
    let reviews: Vec<&Value> = lines.iter().filter(is_in).filter(is_review).collect();

    let mut all: BTreeMap<&str, Naive> = BTreeMap::new();
    let mut weeks: BTreeMap<(&str, i64), Naive> = BTreeMap::new();
    let mut overridden: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in &reviews {
        let Some(producer) = line["producer"].as_str() else { continue };
        all.entry(producer).or_default().add(line);
        if let Some(monday) = monday(line) {
            weeks.entry((producer, monday)).or_default().add(line);
        }
    }
    for line in lines.iter().filter(is_in).filter(|line| line["event"] == "override") {
        if let Some(producer) = line["producer"].as_str() {
            overridden.entry(producer).or_default().insert(line["run"].as_str().unwrap());
        }
    }
    let (_, counted) = stats(&store, &counted_log, filter).await.unwrap();
    let names: BTreeSet<&str> = all.keys().chain(overridden.keys()).copied().collect();
    assert_eq!(counted.keys().map(String::as_str).collect::<BTreeSet<_>>(), names);
    let close = |scores: (u64, u64), naive: (u64, f64)| {
        assert_eq!(scores.0, naive.0);
        assert!((scores.1 as f64 / 100.0 - naive.1).abs() < 1e-6, "{scores:?} {naive:?}");
    };
    for (name, stats) in &counted {
        let naive = all.remove(&**name).unwrap_or_default();
        assert_eq!((&stats.all.verdicts, stats.all.positions), (&naive.verdicts, naive.positions), "{name}");
        close(stats.all.scores, naive.scores);
        assert_eq!(stats.overrides, overridden.get(&**name).map_or(0, |runs| runs.len() as u64), "{name}");
        for (monday, counts) in &stats.weeks {
            let naive = weeks.remove(&(&**name, *monday)).unwrap_or_default();
            assert_eq!(
                (&counts.verdicts, counts.positions),
                (&naive.verdicts, naive.positions),
                "{name} {monday}"
            );
            close(counts.scores, naive.scores);
        }
    }
    assert!(weeks.is_empty(), "{weeks:?}");

    let agreement = agreement(&store, &counted_log, filter).await.unwrap();
    let decided: Vec<BTreeMap<String, bool>> = reviews
        .iter()
        .filter(|line| ["SHIP", "REVISE", "HOLD"].contains(&line["verdict"].as_str().unwrap()))
        .map(|line| {
            members(line).into_iter().filter_map(|(name, (position, _))| Some((name, position?))).collect()
        })
        .collect();
    for (at, first) in MEMBERS.iter().enumerate() {
        for second in &MEMBERS[at + 1..] {
            let mut names = [*first, *second];
            names.sort_unstable();
            let met: Vec<(bool, bool)> = decided
                .iter()
                .filter_map(|positions| Some((*positions.get(names[0])?, *positions.get(names[1])?)))
                .collect();
            let pair =
                agreement.pairs.get(&(names[0].to_owned(), names[1].to_owned())).copied().unwrap_or_default();
            let count = |wanted: (bool, bool)| met.iter().filter(|pair| **pair == wanted).count() as u64;
            assert_eq!(
                [pair.both_block, pair.both_pass, pair.first_blocks, pair.second_blocks],
                [(true, true), (false, false), (true, false), (false, true)].map(count),
                "{names:?}"
            );
            let agreed = met.iter().filter(|(one, other)| one == other).count();
            let rate = (met.len() as u64 >= MIN_SHARED).then(|| agreed as f64 / met.len() as f64);
            assert_eq!(pair.rate(), rate, "{names:?}");
        }
    }

    // Deliberators of a review that was resumed to a verdict are counted once, as the review is.
    let (counted, _) = stats(&store, &counted_log, filter).await.unwrap();
    for member in MEMBERS {
        let named = |line: &&&Value| {
            LogLine::parse(line.to_string().as_bytes())
                .unwrap()
                .deliberators
                .iter()
                .any(|(name, _)| name == member)
        };
        let reviews = reviews.iter().filter(named).count() as u64;
        assert_eq!(counted.deliberators.get(member).map_or(0, |stats| stats.reviews), reviews, "{member}");
    }
}

#[tokio::test]
async fn producers_and_agreement_are_what_a_naive_count_says() {
    for seed in 1..=12_u64 {
        let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        compare(seed, &ReviewFilter::default()).await;
        compare(seed, &ReviewFilter { artifact_type: Some("memo".to_owned()), ..ReviewFilter::default() })
            .await;
        compare(seed, &ReviewFilter { verdict: Some("HOLD".to_owned()), ..ReviewFilter::default() }).await;
        compare(seed, &ReviewFilter { since_ms: Some(1_771_000_000_000), ..ReviewFilter::default() }).await;
    }
}
