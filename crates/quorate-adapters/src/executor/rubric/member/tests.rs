//! Members of assemblies: each form by tables, and what holds for any material whatever.

mod advice;
mod ballot;
mod hostile;
mod message;

use quorate_manifest::json_schema::CompiledSchema;
use quorate_protocol::answers::Schema;
use quorate_protocol::{Json, Part, PartKind};
use serde_json::json;

use super::{Question, Wanted, answer};
use crate::executor::rubric::banned::BannedPhrases;
use crate::executor::rubric::checks::Criteria;
use crate::executor::rubric::goals::Goals;

/// Asks once; the answer fits its form, and is the same when asked again.
fn ask(wanted: Wanted, member: &str, step: &str, persona: Option<&Json>, parts: &[Part]) -> Json {
    asked(wanted, Question { member, step, role: "", persona, parts })
}

fn asked(wanted: Wanted, question: Question<'_>) -> Json {
    let banned = BannedPhrases::new(true, &[]).expect("usable");
    let criteria = Criteria { banned: &banned, goals: &Goals::read(""), context: &[] };
    let said = answer(wanted, &question, &criteria).expect("an answer");
    assert_eq!(answer(wanted, &question, &criteria), Ok(said.clone()));
    let schema = match wanted {
        Wanted::Advice => Schema::Advice,
        Wanted::Ballot => Schema::Ballot,
        Wanted::Message => Schema::Message,
    };
    assert_eq!(Wanted::of(schema), Some(wanted));
    let form = CompiledSchema::parse(&schema.json_schema()).expect("a form");
    assert!(form.errors(&said).is_empty(), "{said}");
    said
}

/// The quotes of an answer, each of which stands in the material.
fn quotes(said: &Json, material: &str) -> Vec<String> {
    let quotes = said["evidence"].as_array().cloned().unwrap_or_default();
    let quotes: Vec<String> = quotes.iter().map(|quote| quote.as_str().expect("text").to_owned()).collect();
    assert!(quotes.len() <= 5);
    for quote in &quotes {
        assert!(material.contains(quote.as_str()) && !quote.is_empty(), "{quote:?} in {material:?}");
    }
    quotes
}

fn advise(persona: &Json, talk: &str) -> Json {
    let part = Part::new(PartKind::Conversation, "talk.md", talk);
    let said = ask(Wanted::Advice, "m", "ask", Some(persona), &[part]);
    quotes(&said, talk);
    said
}

fn vote(member: &str, persona: &Json, proposal: &str) -> Json {
    let part = Part::new(PartKind::Proposal, "p.md", proposal);
    let said = ask(Wanted::Ballot, member, "ask", Some(persona), &[part]);
    quotes(&said, proposal);
    said
}

fn critic() -> Json {
    json!({
        "title": "Critic",
        "voice": {"tonality": ["candid", "dry"]},
        "boundaries": {"refuses": ["people-pleasing"], "defers": ["legal-positions"]},
        "body": "# Critic\n\n## Watches for\n\n- agreeing with the user without a reason\n- **Overclaiming**: \
                 certainty that nothing carries\n\n## Asks\n\n- What would change your mind?\n",
    })
}

fn sentinel() -> Json {
    json!({
        "title": "Sentinel",
        "boundaries": {
            "refuses": ["self-harm-encouragement", "prescribing-medication"],
            "defers": ["tax-questions"],
            "redirects": [{"topic": "immigration-status", "to": "ws://operators/referral"}],
        },
        "body": "You listen for distress and imminent harm.",
    })
}

fn ciso() -> Json {
    json!({
        "title": "Chief Information Security Officer",
        "boundaries": {
            "refuses": ["plaintext-passwords", "deploys-without-rollback"],
            "defers": ["pricing-questions", "hiring"],
        },
        "body": "# CISO\n\n## Asks\n\n- Who can read the credentials?\n- How is a breach found?\n\n\
                 ## Watches for\n\n- access without an owner\n- third-party data sharing\n",
    })
}

fn cfo() -> Json {
    json!({
        "title": "Chief Financial Officer",
        "voice": {"tonality": ["rigorous"]},
        "boundaries": {"refuses": ["unsourced-claims", "open-ended contracts"]},
        "body": "You look for hidden costs, budget overruns and unsourced figures.",
    })
}
