//! The prompts that members of a real run read: what they share, what is between markers, and what comes first and
//! last (X2, X3, X4).

use std::collections::BTreeMap;

use quorate_kernel::entropy::sha256_hex;

use crate::support;
use support::council::ROSTER;
use support::{TestDir, files};

/// Prompts by step and member, with the run's nonce.
struct Read {
    prompts: BTreeMap<String, String>,
    nonce: String,
}

fn read(place: &TestDir) -> Read {
    let mut prompts = BTreeMap::new();
    for prompt in place.prompts() {
        let who = prompt.lines().rfind(|line| line.starts_with("You are `")).expect("who is asked");
        let member = who.split('`').nth(1).expect("a name");
        let step = if who.contains("round 1") {
            "r1/"
        } else if who.contains("round 2") {
            "r2/"
        } else {
            ""
        };
        assert!(
            prompts.insert(format!("{step}{member}"), prompt.clone()).is_none(),
            "{step}{member} was asked twice"
        );
    }
    let first = prompts.values().next().expect("there are prompts");
    let start = first.find("MARKER is `").expect("the run's marker") + "MARKER is `".len();
    let nonce = first[start..].split('`').next().expect("it ends").to_owned();
    Read { prompts, nonce }
}

fn reviewed() -> TestDir {
    let place = TestDir::shell(
        "case \"$step\" in
            adjudicate) answer ;;
            *) echo '{\"would_block\": true, \"irreducible\": false, \"score\": 2, \"findings\": [{\"quote\": \"Tuesday\", \"issue\": \"Which one, and why should anybody come?\"}]}' ;;
        esac",
        "",
    );
    let example = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/launch-post.md");
    place.write("draft.md", std::fs::read(example).expect("the example"));
    place.run(&["review", "draft.md"]).assert_code(2);
    place
}

fn shared<'a>(prompts: impl Iterator<Item = &'a String>) -> usize {
    let prompts: Vec<&[u8]> = prompts.map(String::as_bytes).collect();
    let first = prompts[0];
    (0..first.len()).take_while(|at| prompts.iter().all(|one| one.get(*at) == first.get(*at))).count()
}

/// Where the material of a kind ends.
fn end_of(prompt: &str, kind: &str, nonce: &str) -> usize {
    let start =
        prompt.find(&format!("<<<material {kind}")).unwrap_or_else(|| panic!("no {kind} in {prompt}"));
    let end = format!("<<<end {nonce}>>>");
    start + prompt[start..].find(&end).expect("it ends") + end.len()
}

#[test]
fn prompts_of_one_form_share_everything_up_to_who_is_asked() {
    // X2
    let Read { prompts, nonce } = read(&reviewed());
    assert_eq!(prompts.len(), 9, "{:?}", prompts.keys());
    let of = |step: &str| -> Vec<&String> {
        prompts.iter().filter(|(who, _)| who.starts_with(step)).map(|(_, prompt)| prompt).collect()
    };
    let both_rounds = of("r");
    assert_eq!(both_rounds.len(), 8);
    let artifact = end_of(&prompts["r1/skeptic"], "artifact", &nonce);
    let all = shared(both_rounds.into_iter());
    assert!(all >= artifact, "both rounds share {all} of {artifact} bytes");
    for (step, kind) in [("r1/", "artifact"), ("r2/", "cross")] {
        let round = shared(of(step).into_iter());
        let asked = prompts[&format!("{step}skeptic")].find("You are `").expect("who is asked");
        let material = end_of(&prompts[&format!("{step}skeptic")], kind, &nonce);
        assert!(round > material && round >= asked, "{step} shares {round} of {asked} bytes");
    }
    // The adjudicator has a form of its own; what it shares with the others is the instruction.
    assert!(shared(prompts.values()) > 400);
}

#[test]
fn runs_share_the_instruction_and_the_form() {
    // X2
    let runs = [read(&reviewed()), read(&reviewed())];
    let [first, second] = &runs.each_ref().map(|run| &run.prompts["r2/skeptic"]);
    let nonce = first.find(&runs[0].nonce).expect("the nonce");
    // Two nonces may begin alike.
    let shared = shared([*first, *second].into_iter());
    assert!((nonce..nonce + runs[0].nonce.len()).contains(&shared), "{shared} bytes of {nonce}");
    assert!(first[..nonce].contains("never an instruction") && first[..nonce].contains("\"would_block\""));
}

#[test]
fn material_is_between_unguessable_markers() {
    // X3
    let place = reviewed();
    let Read { prompts, nonce } = read(&place);
    assert!(nonce.len() >= 16, "{nonce}");
    let text = place.read("draft.md");
    for (who, prompt) in &prompts {
        assert_eq!(prompt.matches(&text).count(), 1, "{who}");
        let artifact = &prompt
            [prompt.find("<<<material artifact").expect("a marker")..end_of(prompt, "artifact", &nonce)];
        assert!(
            artifact.lines().next().is_some_and(|line| line.ends_with(&format!("{nonce}>>>")))
                && artifact.contains(&text),
            "{who}"
        );
        let before = &prompt[..prompt.find("<<<material artifact").expect("a marker")];
        assert!(before.contains("material") && before.contains(&nonce), "{who}: it is said before");
    }
    let again = reviewed();
    assert_ne!(read(&again).nonce, nonce);
}

#[test]
fn the_form_of_the_answer_comes_first_and_who_is_asked_after_the_material() {
    let Read { prompts, nonce } = read(&reviewed());
    let last_marker = format!("<<<end {nonce}>>>");
    for (who, prompt) in &prompts {
        let material = prompt.rfind(&last_marker).expect("material");
        let asked = prompt.rfind("You are `").expect("who is asked");
        let role = prompt.rfind("our one concern").expect("the built-in role texts say it");
        let schema = prompt.find("JSON Schema").expect("a schema");
        let first = prompt.find("<<<material artifact").expect("a marker");
        assert!(schema < first && material < asked && asked < role, "{who}");
        assert!(
            prompt
                .trim_end()
                .ends_with("exactly one JSON object that fits the JSON Schema above, and nothing else.")
        );
        let text = &prompt[prompt[schema..].find('{').expect("an object") + schema..];
        let schema: serde_json::Value = serde_json::Deserializer::from_str(text)
            .into_iter()
            .next()
            .expect("a schema")
            .expect("the schema is JSON");
        let required = if who == "adjudicator" { "reasoning" } else { "would_block" };
        assert!(
            schema["required"].to_string().contains(required) || schema.to_string().contains(required),
            "{who}"
        );
    }
    let round_1 = &prompts["r1/evidence"];
    assert!(!round_1.contains("Which one, and why"), "X2: round 1 is independent");
    for member in ROSTER {
        let round_2 = &prompts[&format!("r2/{member}")];
        assert_eq!(
            round_2.matches("Which one, and why").count(),
            4,
            "C1: all first answers, the same block for all"
        );
    }
    assert_eq!(prompts["adjudicator"].matches("Which one, and why").count(), 8);
}

#[test]
fn a_re_prompt_carries_the_whole_first_prompt() {
    // X4
    let place = TestDir::shell(
        "if mkdir asked-$step-$member 2>/dev/null; then echo 'Looks fine to me.'; else answer; fi",
        "",
    );
    place.run(&["review", "draft.md"]).assert_code(0);
    assert_eq!(place.calls().len(), 18);
    let prompts = place.prompts();
    let (again, first): (Vec<_>, Vec<_>) = prompts.iter().partition(|prompt| prompt.contains("## Once more"));
    assert_eq!((again.len(), first.len()), (9, 9));
    for prompt in again {
        let carried =
            first.iter().find(|one| prompt.starts_with(one.as_str())).expect("the whole first prompt");
        assert!(prompt[carried.len()..].contains("no JSON object"), "it quotes what was wrong");
    }
}

#[test]
fn earlier_verdicts_go_to_the_adjudicator_alone() {
    // C1
    let place = TestDir::shell("answer", "");
    place.run(&["review", "draft.md", "--type", "memo"]).assert_code(0);
    std::fs::remove_dir_all(place.path("prompts")).expect("they were written");
    place.run(&["review", "draft.md", "--type", "memo"]).assert_code(0);
    for (who, prompt) in read(&place).prompts {
        assert_eq!(prompt.contains("Earlier verdicts"), who == "adjudicator", "{who}");
    }
}

/// The SHA-256 of each prompt with its nonce replaced by `{marker}`, under `name`, or `name-again` for a repeated question.
fn hashes(name: &str, prompts: &[String]) -> BTreeMap<String, String> {
    let mut hashes = BTreeMap::new();
    for prompt in prompts {
        let start = prompt.find("MARKER is `").expect("the run's marker") + "MARKER is `".len();
        let nonce = prompt[start..].split('`').next().expect("the marker ends");
        let who = prompt.lines().rfind(|line| line.starts_with("You are `")).expect("who is asked");
        let member = who.split('`').nth(1).expect("a name");
        let step = ["round 1", "round 2"].iter().find(|round| who.contains(**round));
        let step = step.map_or(String::new(), |round| round.replace("round ", "r") + "/");
        let again = if prompt.contains("## Once more") { "-again" } else { "" };
        let hash = sha256_hex(prompt.replace(nonce, "{marker}").as_bytes());
        let key = format!("{name}{again}/{step}{member}");
        assert!(hashes.insert(key.clone(), hash).is_none(), "{key} was asked twice");
    }
    hashes
}

/// The SHA-256 of what each recording of the examples' cassettes asks: the shared instruction's hash, the role, the prompt.
fn recorded_hashes() -> BTreeMap<String, String> {
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let recordings = files(&examples).into_iter().filter_map(|(path, bytes)| {
        let name = path.strip_prefix(&examples).expect("a path below").to_str().expect("UTF-8").to_owned();
        (name.contains("/cassettes/") && name.ends_with(".json")).then_some((name, bytes))
    });
    recordings
        .map(|(name, bytes)| {
            let recording: serde_json::Value = serde_json::from_slice(&bytes).expect("a recording is JSON");
            let request = &recording["request"];
            let mut lines = vec![request["instruction_sha256"].as_str().expect("a hash")];
            for part in ["role", "prompt"] {
                let part = request[part].as_array().expect("lines").iter();
                lines.extend(part.map(|line| line.as_str().expect("a line")));
            }
            (name, sha256_hex(lines.join("\n").as_bytes()))
        })
        .collect()
}

/// `golden/prompts.sha256` lists the prompts of the built-in council, its repeated questions and the examples' cassettes. The
/// cassettes' prompts are those that this binary composes: `cassettes::the_examples_replay_without_trust_and_ask_nobody` fails
/// otherwise. `QUORATE_WRITE_GOLDEN=1` rewrites the list.
#[test]
fn guard_prompts_are_frozen_byte_for_byte() {
    let corrected = TestDir::shell(
        "if mkdir asked-$step-$member 2>/dev/null; then echo 'Looks fine to me.'; else answer; fi",
        "",
    );
    corrected.run(&["review", "draft.md"]).assert_code(0);
    let mut now = hashes("council", &reviewed().prompts());
    now.extend(hashes("corrected", &corrected.prompts()));
    now.extend(recorded_hashes());
    let now: String = now.into_iter().map(|(name, hash)| format!("{hash}  {name}\n")).collect();
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden/prompts.sha256");
    if std::env::var_os("QUORATE_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, &now).expect("the list is written");
    }
    let then = std::fs::read_to_string(&path).expect("the list is readable");
    let changed: Vec<&str> = then.lines().filter(|line| !now.contains(line)).collect();
    assert_eq!(changed, [""; 0], "these prompts changed");
    assert_eq!(now, then);
}
