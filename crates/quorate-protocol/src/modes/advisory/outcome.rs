//! The advisory outcome: fragments with their expiry, the risk level, whether to escalate, and the input of a custom rule.

use quorate_manifest::assembly::audit::OVERLAY_TTL_DAYS;
use quorate_manifest::assembly::synthesis::RiskLabel;
use quorate_manifest::duration::IsoDuration;
use quorate_manifest::timestamp;
use serde_json::{Map, json};

use super::{Advisory, Fragment, MemberAdvice, ModeContext, RunState};
use crate::Json;
use crate::assembly::{Rule, SENTINEL, Setup};

const DAY_MS: i64 = 86_400_000;
/// The shortest and the longest time that an overlay may hold (A5).
const TTL_RANGE_MS: (i64, i64) = (*OVERLAY_TTL_DAYS.start() * DAY_MS, *OVERLAY_TTL_DAYS.end() * DAY_MS);

/// A fragment as the outcome has it.
pub(super) fn fragment(context: &ModeContext, run_state: &mut RunState, fragment: &Fragment) -> Json {
    let rule = &context.setup.rules[fragment.rule];
    json!({
        "member": &*context.member(fragment.member_index).id,
        "text": fragment.text,
        "severity": fragment.severity,
        "priority": fragment.priority,
        "rule": &*rule.id,
        "expires": timestamp::format(expires_ms(context, run_state, rule)),
    })
}

/// A5: when a fragment of a rule stops to hold.
fn expires_ms(context: &ModeContext, run_state: &mut RunState, rule: &Rule) -> i64 {
    let iso = |text: &str| text.parse::<IsoDuration>().ok();
    let by_iso =
        |iso: IsoDuration| timestamp::add_duration(context.now_ms, iso).saturating_sub(context.now_ms);
    let own_ms = rule.integer_param("ttlMs").map(|ms| i64::try_from(ms).unwrap_or(i64::MAX));
    let default = || iso(&context.setup.overlays.default_ttl).map_or(TTL_RANGE_MS.0, by_iso);
    let asked_ms =
        own_ms.or_else(|| rule.text_param("ttl").and_then(iso).map(by_iso)).unwrap_or_else(default);
    let ttl_ms = asked_ms.clamp(TTL_RANGE_MS.0, TTL_RANGE_MS.1);
    if ttl_ms != asked_ms {
        let days = ttl_ms / DAY_MS;
        let duration = if days == 1 { "one day".to_owned() } else { format!("{days} days") };
        run_state.note(format!(
            "what rule `{}` emits holds for {duration}: overlays hold for 1 to 30 days",
            rule.id
        ));
    }
    context.now_ms.saturating_add(ttl_ms)
}

/// The other fields of the outcome: the risk level, and whether to escalate (A6, X12).
pub(super) fn extra_fields(
    advisory: &Advisory,
    context: &ModeContext,
    run_state: &mut RunState,
) -> Map<String, Json> {
    let severity = advisory.advice.iter().flatten().map(|advice| advice.severity).max();
    let members = context.setup.members.iter().enumerate();
    let lacking: Vec<usize> =
        members.map(|(index, _)| index).filter(|index| run_state.is_missing(*index)).collect();
    let sentinel_lacks =
        lacking.iter().any(|index| context.member(*index).phase.as_deref() == Some(SENTINEL));
    let (risk, mut escalates) = risk_of(context, run_state, severity, !lacking.is_empty());
    if sentinel_lacks {
        run_state.note("a sentinel gave no output; get somebody");
    }
    let mut also = Map::new();
    also.insert("phase".into(), json!(advisory.phase));
    also.insert("trigger".into(), json!(advisory.trigger));
    also.insert("terminal".into(), json!(advisory.synthesis.terminal));
    also.insert("risk".into(), risk);
    escalates |= sentinel_lacks || advisory.synthesis.failed;
    also.insert("shouldEscalate".into(), json!(escalates));
    also
}

/// The level of risk as outcomes have it, and whether it is to be escalated. A run in which a member gave no output
/// is never reported as ok (X12).
pub(crate) fn risk_of(
    context: &ModeContext,
    run_state: &mut RunState,
    severity: Option<u8>,
    lacking: bool,
) -> (Json, bool) {
    let mut level = severity.map(|severity| risk_level(&context.setup, severity));
    if level == Some(RiskLabel::Ok) && lacking {
        level = Some(RiskLabel::Watch);
        run_state.note("the risk is not reported as ok, since not everybody has been heard");
    }
    let risk = json!({"severity": severity, "level": level.map(RiskLabel::as_str)});
    (risk, level == Some(RiskLabel::Escalate))
}

/// A6: the level of a severity; one in a gap takes the nearest level above, one above all takes the highest.
fn risk_level(setup: &Setup, severity: u8) -> RiskLabel {
    let levels = &setup.risk_levels;
    let covers = |level: &&crate::assembly::RiskLevel| (level.lowest..=level.highest).contains(&severity);
    let above = || levels.iter().filter(|level| level.lowest > severity).min_by_key(|level| level.lowest);
    let highest = || levels.iter().max_by_key(|level| level.highest);
    levels.iter().find(covers).or_else(above).or_else(highest).map_or(RiskLabel::Escalate, |one| one.label)
}

/// What a custom rule is shown.
pub(super) fn host_rule_input(rule: &Rule, heard: &[MemberAdvice], context: &ModeContext) -> Json {
    let outputs = heard.iter().filter(|output| rule.applies_to_member(&output.member));
    let output = |advice: &MemberAdvice| {
        json!({
            "member": &*advice.member,
            "phase": context.member(advice.member_index).phase,
            "severity": advice.advice.severity,
            "concern": advice.advice.concern,
            "evidence": advice.advice.evidence,
            "suggestion": advice.advice.suggestion,
            "mayEmit": advice.may_emit,
        })
    };
    json!({"mode": context.setup.mode, "rule": rule, "outputs": outputs.map(output).collect::<Vec<_>>()})
}
