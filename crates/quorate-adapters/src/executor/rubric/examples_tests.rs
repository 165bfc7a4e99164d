//! The examples under every lens, both rounds and the adjudicator; and properties of arbitrary texts.

use std::sync::Arc;

use quorate_kernel::ports::executor::Failure;
use quorate_protocol::{Part, PartKind};
use serde_json::{Value, json};

use super::banned::BannedPhrases;
use super::settings::Rubric;

const ROSTER: [&str; 4] = ["skeptic", "voice-identity", "evidence-calibration", "strategy-stakes"];
const LAUNCH: &str = include_str!("../../../../../examples/launch-post.md");
const INCIDENT: &str = include_str!("../../../../../examples/incident-report.md");
const PRICING: &str = include_str!("../../../../../examples/pricing-promise.md");

struct Review {
    first: Vec<Value>,
    second: Vec<Value>,
    adjudication: Value,
}

fn rubric() -> Rubric {
    Rubric {
        banned: BannedPhrases::new(true, &[]).expect("usable"),
        goals: None,
        file_hashes: Vec::new(),
        outside_path: None,
    }
}

fn ask(rubric: &Rubric, member: &str, step: &str, parts: &[Part]) -> Value {
    try_ask(rubric, member, step, parts).expect("an answer")
}

fn try_ask(rubric: &Rubric, member: &str, step: &str, parts: &[Part]) -> Option<Value> {
    let text = rubric.council_answer(member, step, "", parts).ok()?;
    Some(serde_json::from_str(&text).expect("one JSON object"))
}

fn cross_read(answers: &[Value]) -> Arc<str> {
    let members = ROSTER.iter().zip(answers).map(|(id, answer)| {
        let mut peer_answer = answer.clone();
        peer_answer["deliberator"] = json!(id);
        peer_answer["status"] = json!("answered");
        peer_answer
    });
    Value::Array(members.collect()).to_string().into()
}

fn review(name: &str, text: &str) -> Review {
    try_review(name, text).expect("a text that can be judged")
}

/// `None` where the text cannot be judged.
fn try_review(name: &str, text: &str) -> Option<Review> {
    let rubric = rubric();
    let artifact = Part::new(PartKind::Artifact, name, text);
    let ask_first = |id: &&str| try_ask(&rubric, id, "r1", std::slice::from_ref(&artifact));
    let first: Vec<Value> = ROSTER.iter().map(ask_first).collect::<Option<_>>()?;
    let mut parts = vec![artifact, Part::new(PartKind::CrossRead, "", cross_read(&first))];
    let second: Vec<Value> = ROSTER.iter().map(|id| ask(&rubric, id, "r2", &parts)).collect();
    parts.push(Part::new(PartKind::SecondAnswers, "", cross_read(&second)));
    let adjudication = ask(&rubric, "adjudicator", "adjudicate", &parts);
    Some(Review { first, second, adjudication })
}

impl Review {
    fn count(&self, flag: &str) -> usize {
        self.second.iter().filter(|answer| answer[flag] == true).count()
    }

    fn findings(&self) -> usize {
        self.second.iter().filter_map(|answer| answer["findings"].as_array()).map(Vec::len).sum()
    }
}

#[test]
fn the_launch_post_is_to_be_revised() {
    let review = review("examples/launch-post.md", LAUNCH);
    assert_eq!(review.adjudication["verdict"], "REVISE", "{:#}", review.adjudication);
    assert!((2..=3).contains(&review.count("would_block")), "{}", review.count("would_block"));
    assert_eq!(review.count("irreducible"), 0);
    assert!((6..=12).contains(&review.findings()), "{}", review.findings());
    for answer in &review.first {
        assert!(answer["findings"].as_array().is_some_and(|all| !all.is_empty()), "{answer:#}");
    }
}

#[test]
fn the_incident_report_ships() {
    let review = review("examples/incident-report.md", INCIDENT);
    assert_eq!(review.adjudication["verdict"], "SHIP", "{:#}", review.adjudication);
    assert!(review.findings() <= 3, "{:#}", review.adjudication);
}

#[test]
fn the_pricing_promise_is_held() {
    let review = review("examples/pricing-promise.md", PRICING);
    assert_eq!(review.adjudication["verdict"], "HOLD", "{:#}", review.adjudication);
    assert!(review.count("irreducible") >= 3);
}

#[test]
fn a_text_that_cannot_be_judged_gets_no_answer() {
    // C15
    for (text, why) in [
        ("", "it has no prose of its own"),
        ("```\ncode\n```\n", "it has no prose of its own"),
        ("Fix typo.", "it has only 2 words of prose"),
        (&"a ".repeat(50_000), "it has only 1 different words"),
    ] {
        let parts = [Part::new(PartKind::Artifact, "x.md", text)];
        for step in ["r1", "r2"] {
            let failed = rubric().council_answer("skeptic", step, "", &parts).expect_err("no answer");
            let expected = format!("the rubric cannot judge this text: {why}; choose another `--executor`");
            assert_eq!(failed, Failure::never(expected), "{text:.20}");
        }
    }
}

#[test]
fn a_post_that_mostly_boasts_is_held() {
    let text = "# Meet Lumen, the best lamp in the world\n\nEveryone loves Lumen. You will read 40% faster, guaranteed, and you \
                will always feel great. Thousands of teams have switched, and none of them looked back. Order yours today!\n";
    let review = review("x.md", text);
    assert_eq!(review.adjudication["verdict"], "HOLD", "{:#}", review.adjudication);
    assert_eq!((review.count("would_block"), review.count("irreducible")), (4, 4));
}

#[test]
fn a_technical_readme_is_not_blocked_for_trivia() {
    let text = "# Winnow\n\nWinnow is a small command that reads a folder of drafts and says which of them are ready. It keeps \
                a record of each decision, and nothing leaves your machine.\n\n## Install\n\n```sh\ncargo install winnow\n```\n\n\
                It needs Rust 1.80 or later and about 20 MiB of disk. On two cores the build takes 3 minutes.\n\n## Use\n\n\
                ```sh\nwinnow check drafts/ --jobs 4\n```\n\nExit code 0 means ready, 1 means not yet, and 64 means that the \
                command line was wrong. Every run is written to `.winnow/log`, which is never rewritten. A run that was \
                interrupted goes on where it stopped; it always starts from the last record.\n\n## Options\n\n\
                | option | default | meaning |\n|---|---|---|\n| `--jobs` | 4 | how many at once |\n| `--limit` | 50% | share of drafts |\n\n\
                ## Limits\n\nWinnow reads English. It does not judge whether a claim is true.\n";
    let review = review("README.md", text);
    assert_eq!(
        (review.count("would_block"), &review.adjudication["verdict"]),
        (0, &json!("SHIP")),
        "{:#}",
        review.adjudication
    );
}

#[test]
fn the_same_text_gets_the_same_answer() {
    for text in [LAUNCH, INCIDENT, PRICING] {
        let (a, b) = (review("x.md", text), review("x.md", text));
        assert_eq!((a.first, a.second, a.adjudication), (b.first, b.second, b.adjudication));
    }
}

#[test]
fn a_second_round_without_cross_read_repeats_the_first() {
    let parts = [Part::new(PartKind::Artifact, "launch-post.md", LAUNCH)];
    for id in ROSTER {
        assert_eq!(ask(&rubric(), id, "r2", &parts), ask(&rubric(), id, "r1", &parts));
    }
}

#[test]
fn context_sources_numbers_and_sets_goals() {
    let with = |id: &str, context: &str| {
        let parts = [
            Part::new(PartKind::Artifact, "launch-post.md", LAUNCH),
            Part::new(PartKind::Context, "given.md", context),
        ];
        ask(&rubric(), id, "r1", &parts).to_string()
    };
    assert!(with("evidence", "Nothing.").contains("“40%” is a claim"));
    assert!(!with("evidence", "In June it was 40% in the lab.").contains("“40%” is a claim"));
    assert!(
        with("strategy", "# Goals\n\n- Sell fewer umbrellas in deserts\n")
            .contains("None of the 1 stated goals")
    );
    assert!(!with("skeptic", "# Goals\n\n- Sell fewer umbrellas in deserts\n").contains("stated goals"));
}

#[test]
fn without_an_artifact_there_is_no_answer() {
    assert!(rubric().council_answer("skeptic", "r1", "", &[]).is_err());
}

/// Every quote occurs verbatim on its line, and is short.
fn assert_grounded(text: &str, answers: &[Value]) {
    let lines: Vec<&str> = text.split('\n').collect();
    for finding in answers.iter().filter_map(|answer| answer["findings"].as_array()).flatten() {
        let quote = finding["quote"].as_str().expect("a quote");
        let line = finding["line"].as_u64().expect("a line") as usize;
        assert!(quote.chars().count() <= 160, "{finding:#}");
        assert!(lines[line - 1].contains(quote), "{finding:#} is not on {:?}", lines[line - 1]);
    }
}

#[test]
fn odd_texts_are_read_without_panic_and_quotes_stay_grounded() {
    let odd = [
        "**bold*_ [x](y \"z) ![a](b) <p>é</p> &amp;&nbsp; `` ` `` \\* ~~x~~ | a | b\n|-|\n",
        "\r\n\r\n# T\r\n\r\nIt is 40% faster,\r\nalways.\r\n",
        "“It is 40% — „faster” «now» \"and\nthe fastest!!",
        "[^1]: a\n[^1]\n[^2]\n- - - 1. 2.\n  - [ ] x\n",
        "𝒜lways 40％ ﬁrst İstanbul ǅ ß… \u{202e}never\u{202c} 🎉🎉!!",
        "http://[ https://é.x/\u{301}40% never\n\thttp",
        "\u{1}\u{1} 40% \u{0} never, so 3x $5k €",
        ". . . ! ? … e.g. i.e. A. B. No. 5 %\n",
        "not but not just it's — not only but\n",
        "| a | 40% |\n|---|---|\n| never | 3x |\n\n> [!NOTE]\n> It is 40% faster, always.\n",
    ];
    let filler = "The council reads what it is given and says what it found there, and then it goes home for the night. ";
    for text in
        odd.iter().flat_map(|text| [(*text).to_owned(), format!("{filler}{filler}{text}"), text.repeat(40)])
    {
        let Some(review) = try_review("x.md", &text) else {
            assert!(!text.starts_with(filler), "{text}");
            continue;
        };
        assert_grounded(&text, &review.first);
        assert_grounded(&text, &review.second);
    }
}

#[test]
fn mutated_examples_are_read_without_panic_and_quotes_stay_grounded() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    };
    let inserts = [
        "*", "`", "\n\n", "> ", "“", "\"", "[", "](", "<", "é", "\u{1}", "!!", "|", "# ", "```\n", "40%",
        " never ", "https://", "\r\n", "🎉",
    ];
    let mut judged = 0;
    for round in 0..60 {
        let mut chars: Vec<char> = [LAUNCH, INCIDENT, PRICING][round % 3].chars().collect();
        for _ in 0..1 + next(30) {
            let at = next(chars.len());
            match next(3) {
                0 => drop(chars.drain(at..(at + next(40)).min(chars.len()))),
                1 => drop(chars.splice(at..at, inserts[next(inserts.len())].chars())),
                _ => chars.truncate(chars.len().max(1) - next(5)),
            }
        }
        let text: String = chars.into_iter().collect();
        // A control character within a word cannot be judged.
        let Some(review) = try_review("x.md", &text) else { continue };
        judged += 1;
        assert_grounded(&text, &review.first);
        assert_grounded(&text, &review.second);
        assert_ne!(review.adjudication["reasoning"], "");
    }
    assert!(judged > 30, "{judged} of 60");
}
