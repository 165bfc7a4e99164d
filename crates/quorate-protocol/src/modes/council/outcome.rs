//! The outcome of a review, as facts for the ledger: the policy's rule and the outcome.

use serde_json::{Map, json};

use super::{Council, Response, findings, verdict_of};
use crate::answers::{self, adjudicator::Adjudication, deliberator};
use crate::policy::{CountedPosition, Judgement, Verdict};
use crate::{Fact, FactKind, Json};

/// The rule that was applied, and the outcome.
pub(super) fn facts(
    council: &Council,
    judgement: &Judgement,
    adjudication: Option<&Adjudication>,
) -> (Fact, Fact) {
    let verdict = verdict_of(judgement);
    let because = summary(council, judgement, adjudication);
    let rule = json!({
        "rule": "verdict_policy",
        "policy": council.setup.policy.id(),
        "blocks": judgement.tally.blocks,
        "irreducible": judgement.tally.irreducible,
        "adjudicator": adjudication.map(|adjudication| adjudication.verdict.as_str()),
        "verdict": verdict.as_str(),
        "because": because,
    });
    let findings = located_findings(council);
    let missing = missing_members(council);
    let outcome = json!({
        "kind": "verdict",
        "verdict": verdict.as_str(),
        "incomplete": judgement.verdict.err().map(|why| why.as_str()),
        "policy": council.setup.policy.id(),
        "because": because,
        "reasoning": adjudication.map_or_else(|| because.clone(), |adjudication| adjudication.reasoning.clone()),
        "revision_brief": adjudication.and_then(|adjudication| adjudication.revision_brief.clone()).or_else(|| requested_revision(council, judgement)),
        "dissent_summary": adjudication.and_then(|adjudication| adjudication.dissent_summary.clone()),
        "partial": !missing.is_empty(),
        "missing": missing,
        "deliberators": members_json(council, judgement, &findings),
        "findings": findings,
        "applied_compounding": adjudication.is_some() && !council.priors.is_empty(),
        "prior_verdicts_consulted": if adjudication.is_some() { council.priors.len() } else { 0 },
    });
    (Fact { kind: FactKind::Rule, data: rule }, Fact { kind: FactKind::Outcome, data: outcome })
}

/// What the deliberators ask for, where there is something to revise and the adjudicator does not say what.
fn requested_revision(council: &Council, judgement: &Judgement) -> Option<String> {
    let verdict = judgement.verdict.ok()?;
    if verdict == Verdict::Ship && judgement.tally.blocks == 0 {
        return None;
    }
    let asks = |(index, member): (usize, &crate::Name)| {
        let rounds = [&council.second[index], &council.first[index]];
        let answers = || rounds.into_iter().filter_map(Response::answer);
        let brief =
            answers().find_map(|answer| answers::non_empty_text(answer.as_object()?, "revision_brief"));
        let issues = || answers().map(deliberator::issues).find(|all| !all.is_empty());
        let asked = brief.or_else(|| Some(issues()?.join("; ")))?;
        Some(format!("{member}: {asked}"))
    };
    let all: Vec<String> = council.setup.deliberators.iter().enumerate().filter_map(asks).collect();
    (!all.is_empty()).then(|| all.join("\n"))
}

/// One sentence: what the policy saw and what follows.
fn summary(council: &Council, judgement: &Judgement, adjudication: Option<&Adjudication>) -> String {
    let total = council.setup.deliberators.len();
    let minimum = council.setup.min_deliberators;
    let tally = judgement.tally;
    match judgement.verdict {
        Ok(verdict) => {
            let asked_verdict = adjudication.map_or("nothing", |adjudication| adjudication.verdict.as_str());
            format!(
                "{} of {total} block, {} of them irreducibly; the adjudicator asks for {asked_verdict}; policy {} makes that {}.",
                tally.blocks,
                tally.irreducible_blocks,
                council.setup.policy.id(),
                verdict.as_str()
            )
        }
        Err(why) => {
            use crate::policy::Incomplete as I;
            match why {
                I::FirstRound => {
                    format!("Fewer than {minimum} of {total} deliberators gave a valid first answer.")
                }
                I::SecondRound => {
                    format!("Fewer than {minimum} of {total} deliberators gave a valid second answer.")
                }
                I::NoAdjudication => "The adjudicator gave no valid answer.".to_owned(),
                I::MissingCouldBlock => {
                    "It would be SHIP, but blocks by those without an answer could change that.".to_owned()
                }
                I::BudgetExhausted => "The run's budget was spent before everybody had answered.".to_owned(),
                I::FailFast => {
                    "A deliberator failed, and this council ends a review at the first failure.".to_owned()
                }
            }
        }
    }
}

/// Who lacks output in a step that it was asked in (X12), also where a review that ends at the first failure took the
/// question back. In a round that was asked at least one member has ended.
fn missing_members(council: &Council) -> Vec<String> {
    let rounds = [&council.first, &council.second];
    let asked: Vec<_> =
        rounds.into_iter().filter(|round| round.iter().any(|heard| *heard != Response::Pending)).collect();
    let lacking = |index: usize| asked.iter().any(|round| round[index].answer().is_none());
    let deliberators = council.setup.deliberators.iter().enumerate().filter(|(index, _)| lacking(*index));
    let mut missing: Vec<String> = deliberators.map(|(_, member)| member.to_string()).collect();
    if matches!(council.adjudication, Response::Absent(_)) {
        missing.push(super::ADJUDICATOR.to_owned());
    }
    missing
}

fn members_json(council: &Council, judgement: &Judgement, findings: &[Json]) -> Vec<Json> {
    let member_json = |(index, member): (usize, &crate::Name)| {
        let (counted, position) = match judgement.counted[index] {
            CountedPosition::Last(position) => (last_step(council), Some(position)),
            CountedPosition::FirstBlock(position) => ("round1_block", Some(position)),
            CountedPosition::Missing => ("missing", None),
        };
        let grounded =
            |finding: &&Json| finding["by"] == json!(&**member) && finding["grounded"] == json!(true);
        let blocks = position.is_some_and(|position| position.block);
        json!({
            "id": &**member,
            "counted": counted,
            "would_block": position.map(|position| position.block),
            "irreducible": position.map(|position| position.irreducible),
            "ungrounded": blocks && !findings.iter().any(|finding| grounded(&finding)),
        })
    };
    council.setup.deliberators.iter().enumerate().map(member_json).collect()
}

fn last_step(council: &Council) -> &'static str {
    match council.setup.rounds {
        super::Rounds::One => "round1",
        super::Rounds::Two => "round2",
    }
}

/// Everybody's findings by their last answer (or the first, where the last lists none), in the text's order.
fn located_findings(council: &Council) -> Vec<Json> {
    let artifact = council.artifact_text();
    let grounds = findings::ArtifactIndex::new(&artifact);
    let mut all: Vec<(usize, Json)> = Vec::new();
    for (index, member) in council.setup.deliberators.iter().enumerate() {
        let Some(found) = last_findings(council, index) else { continue };
        for finding in found {
            let place = grounds.locate(&finding);
            let mut entry = Map::new();
            entry.insert("by".into(), json!(&**member));
            entry.insert("line".into(), json!(place.as_ref().map(|p| p.line)));
            entry.insert("column".into(), json!(place.as_ref().map(|p| p.column)));
            entry.insert("span".into(), json!(place.as_ref().map(|p| [p.span.start, p.span.end])));
            entry.insert("quote".into(), json!(finding.quote));
            entry.insert("issue".into(), json!(finding.issue));
            entry.insert("fix".into(), json!(finding.fix));
            entry.insert("grounded".into(), json!(place.is_some()));
            all.push((place.map_or(usize::MAX, |p| p.span.start), Json::Object(entry)));
        }
    }
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, entry)| entry).collect()
}

fn last_findings(council: &Council, index: usize) -> Option<Vec<deliberator::Finding>> {
    let read = |round, heard: &Response| deliberator::Answer::read(round, heard.answer()?)?.findings;
    read(deliberator::Round::Second, &council.second[index])
        .or_else(|| read(deliberator::Round::First, &council.first[index]))
}

/// The verdict that an outcome states by this word.
pub fn verdict(word: &str) -> Option<Verdict> {
    match word {
        "INCOMPLETE" => Some(Verdict::Incomplete),
        word => Verdict::read(word),
    }
}
