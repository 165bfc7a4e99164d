//! Budgets of tokens and money: reserved before a call, settled after it, kept where a process dies in between (X8).

use std::time::{Duration, Instant};

use quorate::{Money, Quorate};
use quorate_kernel::record::RunIntent;
use serde_json::json;

use crate::models::Model;
use crate::support::records::{block_on, records};
use crate::support::{CommandOutput, TestDir, assembly};

/// A workspace whose executor `own` may write 1,000 tokens an answer, which cost a cent.
fn workspace(model: &Model, budget: &str) -> TestDir {
    let place = TestDir::with("draft.md", "The meeting moved to Tuesday at ten.\n");
    place.write(
        "quorate.toml",
        format!(
            "[executors.own]\nkind = \"llm\"\nmodel = \"small\"\nbase_url = \"{}\"\nmax_tokens = 1000\nconcurrency = 4\n\
             price = {{ input = 0.0, output = 10.0 }}\n\n[budget]\n{budget}\n",
            model.address
        ),
    );
    place
}

const REVIEW: [&str; 4] = ["review", "draft.md", "--executor", "own"];

fn json_of(place: &TestDir, arguments: &[&str]) -> CommandOutput {
    place.run(&[arguments, &["--format", "json"]].concat())
}

#[test]
fn members_that_are_asked_at_once_stay_within_the_money_together() {
    // Each of four may cost a cent, and costs a hundredth of that: two fit at once, the others wait for their turn.
    let model = Model::with_pause(8, Duration::from_millis(300));
    let place = workspace(&model, "money = \"0.025 USD\"");
    let started = Instant::now();
    let report = json_of(&place, &REVIEW).assert_code(0).json();
    assert!(started.elapsed() >= Duration::from_millis(600), "two waves of two, then the adjudicator");
    assert_eq!(report["spent"]["calls"], json!(model.requests().len()));
    let spent: f64 = report["spent"]["money"]["amount"].as_str().unwrap().parse().unwrap();
    assert!(spent <= 0.001, "ten tokens each: {spent}");
}

#[test]
fn a_call_that_does_not_fit_is_not_made_and_more_money_takes_the_run_up() {
    let model = Model::start(8);
    let place = workspace(&model, "money = \"0.0105 USD\"");
    let review = json_of(&place, &REVIEW);
    // One at a time, each settled at a hundredth of a cent: the seventh does not fit any more.
    let run = review.json()["run"].as_str().unwrap().to_owned();
    let calls = model.requests().len();
    assert_eq!(calls, 6);
    assert_eq!(review.assert_code(3).json()["spent"]["calls"], json!(calls));
    place
        .run(&["show", &run, "--full"])
        .assert_stdout_contains("a call costs up to US$ 0.01")
        .assert_stdout_contains("(`budget.money`)");
    // The suggested command works.
    let told = place.run(&["show", &run, "--full"]).stdout;
    assert!(told.contains(&format!("quorate resume {run} --max-money \"0.021 USD\"")), "{told}");
    let resumed = json_of(&place, &["resume", &run, "--max-money", "0.021 USD"]).assert_code(0).json();
    assert_eq!(resumed["spent"]["calls"], json!(model.requests().len()), "earlier calls count");
    place.run(&["ledger", "verify"]).assert_code(0);
    place.run(&["replay", &run]).assert_code(0);
}

#[test]
fn calls_that_a_resume_could_not_afford_are_not_counted() {
    let model = Model::start(8);
    let place = workspace(&model, "");
    json_of(&place, &[&REVIEW[..], &["--max-calls", "3"]].concat()).assert_code(3);
    for _ in 0..3 {
        // The first cap on tokens comes with the resume, and is too small for a call.
        let resumed = json_of(&place, &["resume", "latest", "--max-calls", "20", "--max-tokens", "900"]);
        assert_eq!(resumed.assert_code(3).json()["spent"]["calls"], 3);
    }
    let more = ["resume", "latest", "--max-calls", "20", "--max-tokens", "1000000"];
    let spent = json_of(&place, &more).assert_code(0).json()["spent"]["calls"].clone();
    assert_eq!((spent, model.requests().len()), (json!(9), 9));
}

#[test]
fn a_run_that_is_out_of_time_says_what_gives_it_more() {
    let model = Model::with_pause(8, Duration::from_secs(2));
    let place = workspace(&model, "wall = \"1s\"");
    let review = place.run(&REVIEW).assert_code(3);
    let said = review.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("Next: the time of this run is spent, so raise `budget.wall` in quorate.toml; then `quorate resume"), "{said}");
    let raised = place.read("quorate.toml").replace("wall = \"1s\"", "wall = \"60s\"");
    place.write("quorate.toml", raised);
    place.run(&["resume", "latest"]).assert_code(0);
}

#[test]
fn what_was_reserved_for_a_call_stays_reserved_when_its_process_is_killed() {
    let model = Model::with_pause(8, Duration::from_secs(60));
    // Four calls of 1,000 tokens and their prompts, and not one more.
    let place = workspace(&model, "tokens = 40000");
    let mut review = place.command(&REVIEW).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while model.requests().len() < 4 {
        assert!(Instant::now() < deadline, "{}", model.requests().len());
        std::thread::sleep(Duration::from_millis(20));
    }
    review.kill().unwrap();
    review.wait().unwrap();
    let runs = place.run(&["runs", "--format", "json"]).json();
    let run = runs["runs"][0]["run"].as_str().unwrap().to_owned();
    let reserved: u64 = records(&place.path(".quorate/ledger.db"), &run)
        .iter()
        .filter_map(|record| record.read::<RunIntent>().unwrap())
        .flat_map(|intent| intent.reserved)
        .map(|reserved| reserved.most.tokens)
        .sum();
    assert!((4 * 1_000..40_000).contains(&reserved), "{reserved}");
    let left = 40_000 - reserved;
    // As much as is left does not suffice for a call: with that cap no member is asked again.
    let cap = (40_000 - left + 900).to_string();
    let resumed = json_of(&place, &["resume", &run, "--max-tokens", &cap]).assert_code(3);
    assert_eq!(model.requests().len(), 4, "{}", resumed.stdout);
}

#[test]
fn a_program_that_embeds_quorate_caps_tokens_and_money() {
    let model = Model::start(8);
    let place = workspace(&model, "");
    let quorate = Quorate::builder().workspace(place.root()).state_dir(place.path("state"));
    let quorate = quorate.trust(quorate::Trust::Workspace).build().expect("it is built");
    let review = || quorate.review("draft.md").executor("own");
    // A call may take 1,000 tokens besides its prompt, and a cent.
    for (capped, calls) in [
        (review().max_tokens(900), 0),
        (review().max_money(Money::from_nanos(9_000_000)), 0),
        (review().max_tokens(1_000_000).max_money(Money::from_nanos(1_000_000_000)), 9),
    ] {
        let before = model.requests().len();
        let review = block_on(async { capped.await }).expect("it ends");
        assert_eq!((review.spent.calls, model.requests().len() - before), (calls, calls as usize));
    }
    let settings = place.read("quorate.toml");
    assembly::write(&place, "voting", &[("ana", "")], "");
    place.write("quorate.toml", settings);
    place.write("proposal.md", "# A second region\n\nResolution: open it.\n");
    let convene = || quorate.convene("ASSEMBLY.md").proposal("proposal.md").executor("own");
    let before = model.requests().len();
    for capped in [convene().max_tokens(900), convene().max_money(Money::from_nanos(9_000_000))] {
        block_on(async { capped.await }).expect("it ends");
    }
    assert_eq!(model.requests().len(), before, "no call fits");
}

#[test]
fn money_is_not_capped_where_the_price_is_unknown() {
    let model = Model::start(8);
    let place = TestDir::with("draft.md", crate::support::REVISED);
    let remote = "[executors.far]\nkind = \"llm\"\nmodel = \"unpriced\"\nbase_url = \"https://models.example.com/v1\"\nauth = \"none\"\n";
    place.write(
        "quorate.toml",
        format!("{remote}[executors.tool]\ncommand = \"true\"\n[budget]\nmoney = \"5 USD\"\n"),
    );
    for executor in ["far", "tool"] {
        place
            .run(&["review", "draft.md", "--executor", executor])
            .assert_code(5)
            .assert_stderr_contains("quorate:cost_unknown");
    }
    // A server on this machine is free, the rubric asks no model, and a file may have the price.
    place.run(&["review", "draft.md", "--executor", &format!("{}#small", model.address)]).assert_code(0);
    place.run(&["review", "draft.md", "--executor", "rubric"]).assert_code(1);
    let place = workspace(&model, "money = \"5 USD\"\nprices = \"prices.toml\"");
    place.write("prices.toml", "date = \"2026-11-01\"\n[models.\"small\"]\ninput = \"x\"\noutput = 1.0\n");
    place.run(&REVIEW).assert_code(5).assert_stderr_contains("prices.toml");
    place.write("prices.toml", "date = \"2026-11-01\"\n[models.\"small\"]\ninput = 1.0\noutput = 1.0\n");
    place.run(&REVIEW).assert_code(0);
}

#[test]
fn what_a_review_takes_is_said_beforehand_without_a_key_and_without_a_trace() {
    let place = TestDir::with("drafts/a.md", "The meeting moved to Tuesday at ten.\n");
    place.write("drafts/b.md", "All of you are invited.\n");
    let dry = ["review", "drafts/a.md", "drafts/b.md", "--executor", "anthropic", "--dry-run"];
    let estimate = json_of(&place, &dry).assert_code(0).json();
    let schema = place.run(&["schema", "estimate"]).assert_code(0).json();
    assert!(jsonschema::is_valid(&schema, &estimate), "{estimate}");
    let (texts, total) = (&estimate["texts"], &estimate["total"]);
    assert_eq!((&texts[0]["calls"], &total["calls"]), (&json!(9), &json!(18)));
    let nanos = |amount: &serde_json::Value| amount["amount"].as_str().unwrap().parse::<f64>().unwrap();
    let paid = &total["executors"][0];
    assert!(nanos(&paid["money"]) > 0.0 && nanos(&paid["money"]) < nanos(&paid["most"]["money"]), "{paid}");
    assert!(!place.path(".quorate").exists());
    place.run(&dry).assert_code(0).assert_stdout_contains("All of them: 18 calls");
    place.run(&[&dry[..], &["--format", "sarif"]].concat()).assert_code(64);

    // The estimate is of the prompts that are sent.
    let model = Model::start(8);
    let executor = format!("{}#small", model.address);
    let free = json_of(&place, &["review", "drafts/a.md", "--executor", &executor, "--dry-run"]).json();
    assert!(model.requests().is_empty());
    place.run(&["review", "drafts/a.md", "--executor", &executor]).assert_code(0);
    let sent: usize = model
        .requests()
        .iter()
        .flat_map(|(_, body)| body["messages"].as_array().cloned().unwrap_or_default())
        .map(|message| message["content"].to_string().len())
        .sum();
    let expected = free["total"]["executors"][0]["tokens_in"].as_u64().unwrap() as f64 * 4.0;
    assert!((0.8..1.6).contains(&(expected / sent as f64)), "{expected} {sent}");

    let rules = "tier_classifier: {default_tier: 1}\nwatch: {paths: [./drafts/]}\n";
    place.write("council.yaml", format!("{}{rules}", crate::support::council::COUNCIL));
    let swept =
        json_of(&place, &["sweep", "--since", "all", "--dry-run", "--executor", "anthropic"]).assert_code(0);
    assert_eq!(swept.json()["estimate"]["calls"], json!(18));
}

#[test]
fn an_audit_says_what_was_paid_for_whom() {
    let model = Model::start(8);
    let place = workspace(&model, "money = \"5 USD\"");
    place.run(&["review", "draft.md", "--executor", "own", "--type", "notice"]).assert_code(0);
    place.run(&["review", "draft.md", "--executor", "rubric", "--type", "notice"]);
    let audit = json_of(&place, &["audit"]).assert_code(0).json();
    let costs = &audit["costs"];
    let calls = model.requests().len() as u64;
    // 10 tokens x 10 dollars for a million, for each call; the rubric takes nothing.
    let whole = json!({"amount": format!("{:.4}", 0.0001 * calls as f64), "currency": "USD"});
    assert_eq!((&costs["all"]["calls"], &costs["all"]["money"]), (&json!(calls), &whole), "{costs:#}");
    let executor = &costs["executors"][0];
    assert_eq!((&executor["executor"], &executor["model"]), (&json!("own"), &json!("small-2026")));
    assert_eq!(costs["artifact_types"][0]["artifact_type"], "notice");
    assert_eq!(costs["members"].as_array().map(Vec::len), Some(5), "four deliberators and the adjudicator");
    assert_eq!(costs["months"].as_array().map(Vec::len), Some(1));
    let none = json_of(&place, &["audit", "--type", "other"]).assert_code(0).json();
    assert_eq!(none["costs"]["all"]["calls"], json!(0));
    place.run(&["audit"]).assert_code(0).assert_stdout_contains("Cost by member");
}
