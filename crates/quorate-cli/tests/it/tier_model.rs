//! Tiers by a model (C6): the council's executor says the tier where no rule does, once for each text, and tier 1 counts
//! without its answer.

use serde_json::{Value, json};

use crate::support::council::COUNCIL;
use crate::support::{CommandOutput, TestDir};

/// Sorts a text by a word in it, keeps a line for each question, and judges in any other prompt.
const JUDGE: &str = r#"prompt=$(cat)
case "$prompt" in
"You sort a text"*)
    echo asked >> "$(dirname "$0")/questions"
    case "$prompt" in
    *widget*) echo '{"tier": "2", "reason": "It is for one team."}' ;;
    *unreadable*) echo '{"tier": 2, "reason": "A number."}' ;;
    *broken*) exit 3 ;;
    *) echo '{"tier": "1", "reason": "It goes out."}' ;;
    esac ;;
*) echo '{"would_block": false, "irreducible": false, "verdict": "SHIP", "reasoning": "Fine."}' ;;
esac
"#;

fn place(classifier: &str) -> TestDir {
    let place = TestDir::with("judge.sh", JUDGE);
    let rules = format!(
        "tier_classifier: {{type: {classifier}}}\ntier_rules: {{tier_1: {{post: ['*post*']}}, tier_2: {{infra: ['infra*']}}}}\n\
         watch: {{paths: [./drafts/]}}\n"
    );
    place.write("council.yaml", format!("{COUNCIL}{rules}"));
    place.write(
        "quorate.toml",
        "defaults.executor = \"judge\"\n[executors.judge]\ncommand = \"sh\"\nargs = [\"judge.sh\"]\n",
    );
    place
}

fn questions(place: &TestDir) -> usize {
    std::fs::read_to_string(place.path("questions")).unwrap_or_default().lines().count()
}

fn sweep(place: &TestDir, more: &[&str]) -> CommandOutput {
    place.run(&[&["sweep", "--format", "json"], more].concat())
}

/// Fate, tier and reason of each file.
fn swept(ran: &CommandOutput) -> Vec<(String, String, u64, Value)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let of = |file: &Value| {
        let tier = file["tier"].as_u64().unwrap();
        (text(&file["path"]), text(&file["fate"]), tier, file["tier_reason"].clone())
    };
    ran.json()["files"].as_array().unwrap().iter().map(of).collect()
}

fn row(path: &str, fate: &str, tier: u64, reason: Value) -> (String, String, u64, Value) {
    (path.to_owned(), fate.to_owned(), tier, reason)
}

// C6
#[test]
fn a_model_says_the_tier_where_no_rule_does_and_once_for_each_text() {
    let place = place("hybrid");
    place.write("drafts/a.md", "A widget for one team.\n");
    place.write("drafts/b.md", "A widget for one team.\n");
    place.write("drafts/c.md", "To our customers.\n");
    place.write("drafts/infra.md", "To our customers, too.\n");
    place.write("drafts/post.md", "A widget, posted.\n");
    let dry = swept(&sweep(&place, &["--dry-run"]).assert_code(0));
    // Texts without a tier are due: a, the same as b, c, and the post.
    assert_eq!(dry.iter().filter(|(_, fate, ..)| fate == "due").count(), 3, "{dry:?}");
    assert_eq!(questions(&place), 0, "a dry run asks no model");
    let team = json!("It is for one team.");
    let expected = [
        row("drafts/a.md", "tier_skipped", 2, team.clone()),
        row("drafts/b.md", "tier_skipped", 2, team.clone()),
        row("drafts/c.md", "judged", 1, json!("It goes out.")),
        row("drafts/infra.md", "tier_skipped", 2, json!(null)),
        row("drafts/post.md", "judged", 1, json!(null)),
    ];
    assert_eq!(swept(&sweep(&place, &[]).assert_code(0)), expected);
    assert_eq!(questions(&place), 2);
    // The answers are recorded by the text's hash: a later sweep, a moved file and a dry run make no call.
    place.write("drafts/moved.md", "A widget for one team.\n");
    for more in [&[][..], &["--dry-run"], &["--force"]] {
        let again = swept(&sweep(&place, more).assert_code(0));
        assert!(again.contains(&row("drafts/moved.md", "tier_skipped", 2, team.clone())), "{again:?}");
    }
    assert_eq!(questions(&place), 2);
    let human = place.run(&["sweep"]).assert_code(0).stdout.clone();
    assert!(human.contains("skipped") && human.contains("It is for one team."), "{human}");
    for run in place.runs() {
        place.run(&["replay", run["run"].as_str().unwrap()]).assert_code(0);
    }
    place.run(&["ledger", "verify"]).assert_code(0);
}

// C6
#[test]
fn without_an_answer_a_text_has_the_strictest_tier() {
    let place = place("model");
    place.write("drafts/a.md", "This is unreadable.\n");
    place.write("drafts/b.md", "This is broken.\n");
    let ran = sweep(&place, &[]).assert_code(0);
    for (path, fate, tier, _) in swept(&ran) {
        assert_eq!((&*fate, tier), ("judged", 1), "{path}");
    }
    ran.assert_stderr_contains("quorate:tier_unknown").assert_stderr_contains("drafts/b.md counts as tier 1");
    // The malformed answer was asked for again once; neither counts as recorded.
    assert_eq!(questions(&place), 3);
    place.run(&["sweep", "--force", "--executor", "rubric"]).assert_stderr_contains("`rubric` asks no model");
}

// C6, X8
#[test]
fn a_tiered_review_pays_for_the_question_from_its_budget() {
    let place = place("model");
    place.write("internal.md", "A widget.\n");
    place
        .run(&["review", "internal.md", "--tiered"])
        .assert_code(6)
        .assert_stderr_contains("a model said: It is for one team.");
    place.write("letter.md", "To our customers.\n");
    let review =
        |more: &[&str]| place.run(&[&["review", "letter.md", "--tiered", "--format", "json"], more].concat());
    let report = review(&["--max-calls", "3"]).assert_code(3).json();
    assert_eq!((&report["verdict"], &report["spent"]["calls"]), (&json!("INCOMPLETE"), &json!(3)));
    assert!(report["notes"].to_string().contains("A model chose the tier: It goes out."), "{report}");
    let asked = questions(&place);
    let report = review(&[]).assert_code(0).json();
    assert_eq!((&report["verdict"], &report["tier"], questions(&place)), (&json!("SHIP"), &json!(1), asked));
    // A named file is reviewed whatever its tier, so no model is asked.
    place.write("other.md", "Another widget.\n");
    place.run(&["review", "other.md"]).assert_code(0);
    place.run(&["review", "other.md", "--tiered", "--tier", "2"]).assert_code(6);
    assert_eq!(questions(&place), asked);
}
