//! Advisory: the members of a phase advise in parallel, rules in order turn their suggestions into fragments, and fragments
//! that touch no lock become overlays for a limited time (A1 to A6).

use std::collections::BTreeSet;

use quorate_manifest::assembly::OVERLAY_TTL_DAYS;
use quorate_manifest::assembly::RiskLabel;
use quorate_manifest::duration::IsoDuration;
use quorate_manifest::timestamp;
use serde::Deserialize;
use serde_json::{Map, json};

use super::assembly::{
    AskMember, Candidate, Completion, Effect, LockResult, Mode, OnHit, Run, RunStatus, Text, ask_id,
};
use crate::answers::advice::Advice;
use crate::assembly::{AssemblyRequest, Member, Rule, SENTINEL, Setup};
use crate::rules::advice::{Draft, Emission, MemberAdvice};
use crate::rules::custom::{MemberOutput, RuleRequest};
use crate::{Json, Name, rules};

/// The trigger of the sentinel pass, which runs in addition to the requested one.
const SENTINEL_MATCH: &str = "sentinel-match";

const TASK: &str = "You advise, out of sight, on how the agent in the conversation behaves. Say how grave it is, what \
                    concerns you, on what evidence, and what the agent should do from now on. The suggestion is \
                    addressed to the agent and must stand alone: it may be put into the agent's instructions as it is.";

/// What a custom rule gives, where it does not leave it at null.
#[derive(Default, Deserialize)]
struct HostOutput {
    fragments: Option<Vec<HostFragment>>,
    terminal: Option<bool>,
}

impl HostOutput {
    /// Null means no output. Malformed output counts as a failure, since it may have meant to end the run.
    ///
    /// # Errors
    /// What is wrong with it.
    fn read(output: &Json) -> Result<Self, String> {
        match output {
            Json::Null => Ok(HostOutput::default()),
            Json::Object(_) => HostOutput::deserialize(output).map_err(|error| error.to_string()),
            _ => Err("what it gives is no object".to_owned()),
        }
    }
}

#[derive(Deserialize)]
struct HostFragment {
    member: String,
    /// From 0 to 100; what is above counts as 100.
    priority: Option<u64>,
}

/// The priority of what a custom rule emits unless it says.
const HOST_PRIORITY: u8 = 50;

/// A piece of guidance.
struct Fragment {
    member_index: usize,
    text: String,
    severity: u8,
    priority: u8,
    /// The place of its rule.
    rule: usize,
}

pub(super) struct Advisory {
    phase: String,
    trigger: String,
    pass: Pass,
    advice: Vec<Option<Advice>>,
    asked: Vec<bool>,
    synthesis: Synthesis,
    /// Which fragments passed the lock check.
    passed_check: Vec<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// The sentinels alone; what they say can end the run.
    Sentinel,
    /// The members of the phase.
    Phase,
}

/// How far the rules were applied.
#[derive(Default)]
struct Synthesis {
    at: usize,
    fragments: Vec<Fragment>,
    emitted: BTreeSet<usize>,
    /// Whether a rule ended it.
    terminal: bool,
    /// Whether a custom rule failed.
    failed: bool,
    effects: Vec<Effect>,
}

impl Advisory {
    pub(super) fn new(setup: &Setup) -> Self {
        let (phase, trigger, pass) = match &setup.request {
            AssemblyRequest::Advisory { phase, trigger, sentinel_first } => {
                let first = *sentinel_first && phase != SENTINEL;
                (phase.clone(), trigger.clone(), if first { Pass::Sentinel } else { Pass::Phase })
            }
            _ => (String::new(), String::new(), Pass::Phase),
        };
        Advisory {
            phase,
            trigger,
            pass,
            advice: vec![None; setup.members.len()],
            asked: vec![false; setup.members.len()],
            synthesis: Synthesis::default(),
            passed_check: Vec::new(),
        }
    }

    /// A1: whether a member is asked in a pass.
    fn is_asked_in(&self, pass: Pass, member: &Member) -> bool {
        let on = |trigger: &str| match &member.triggers {
            None => true,
            Some(triggers) => triggers.iter().any(|one| one == trigger),
        };
        match pass {
            Pass::Sentinel => {
                member.phase.as_deref() == Some(SENTINEL) && (on(&self.trigger) || on(SENTINEL_MATCH))
            }
            Pass::Phase => member.phase.as_deref() == Some(&*self.phase) && on(&self.trigger),
        }
    }

    /// The indices of the members that are asked in a pass.
    fn members_of(&self, run: &Run, pass: Pass) -> Vec<usize> {
        let members = run.setup.members.iter().enumerate();
        members.filter(|(_, member)| self.is_asked_in(pass, member)).map(|(index, _)| index).collect()
    }

    fn start_pass(&mut self, run: &mut Run) -> Vec<Effect> {
        let active = self.members_of(run, self.pass);
        if active.is_empty() {
            return match self.pass {
                Pass::Sentinel => {
                    run.state.note("there is no sentinel for this trigger; the phase was asked at once");
                    self.pass = Pass::Phase;
                    self.start_pass(run)
                }
                Pass::Phase => self.finish_without_members(run),
            };
        }
        active.into_iter().map(|index| self.ask(run, index)).collect()
    }

    fn ask(&mut self, run: &Run, index: usize) -> Effect {
        self.asked[index] = true;
        let member = run.member(index);
        Effect::Ask(AskMember::once(member, index, TASK, vec![("phase", json!(member.phase))]))
    }

    /// No member is in the phase (A1): the outcome has only the sentinels' advice, or empty guidance.
    fn finish_without_members(&mut self, run: &mut Run) -> Vec<Effect> {
        run.state.note(format!("nobody is in the phase `{}` for the trigger `{}`", self.phase, self.trigger));
        match self.asked.contains(&true) {
            true => self.synthesise(run),
            false => vec![Effect::End(self.guidance(run))],
        }
    }

    /// Everybody of the pass has ended.
    fn synthesise(&mut self, run: &mut Run) -> Vec<Effect> {
        if self.pass == Pass::Phase && self.advice.iter().all(Option::is_none) {
            let because = "nobody who was asked has answered";
            let also = extra_fields(self, run);
            let ending = Completion::without_artifact(RunStatus::Incomplete, "no_answer", because);
            return vec![Effect::End(Completion { extra: also, ..ending })];
        }
        self.synthesis = Synthesis::default();
        self.apply_rules(run)
    }

    /// Applies the rules from where it stands, until one has to be applied by the host.
    fn apply_rules(&mut self, run: &mut Run) -> Vec<Effect> {
        while let Some(rule) = run.setup.rules.get(self.synthesis.at).filter(|_| !self.synthesis.terminal) {
            let heard = self.collect_advice(run);
            match rules::built_in(&rule.kind) {
                Some(logic) => {
                    let emitted = logic.advise.and_then(|advise| advise(rule, &heard));
                    self.emit(run, emitted);
                    self.synthesis.at += 1;
                }
                None => {
                    let prefix = if self.pass == Pass::Sentinel { "sentinel/" } else { "" };
                    let input = host_rule_input(rule, &heard, run);
                    return Effect::apply(format!("{prefix}{}", rule.id), &rule.kind, input);
                }
            }
        }
        if self.pass == Pass::Sentinel && !self.synthesis.terminal {
            self.pass = Pass::Phase;
            run.state.forget_rules();
            return self.start_pass(run);
        }
        self.check_fragments(run)
    }

    fn collect_advice(&self, run: &Run) -> Vec<MemberAdvice> {
        let given = self.advice.iter().enumerate();
        let heard = |(index, advice): (usize, &Option<Advice>)| {
            let advice = advice.clone()?;
            let may_emit = !advice.suggestion.is_empty() && !self.synthesis.emitted.contains(&index);
            Some(MemberAdvice { member_index: index, member: run.member(index).id.clone(), may_emit, advice })
        };
        given.filter_map(heard).collect()
    }

    fn emit(&mut self, run: &mut Run, emitted: Option<Emission>) {
        let rule = &run.setup.rules[self.synthesis.at];
        let fired = emitted.is_some();
        let Emission { drafts, members, exclusive } = emitted.unwrap_or_default();
        if exclusive {
            self.synthesis.fragments.clear();
            self.synthesis.emitted.clear();
            self.synthesis.terminal = true;
        }
        let mut emitted = 0;
        for draft in drafts {
            let Some(advice) =
                self.advice[draft.member_index].as_ref().filter(|one| !one.suggestion.is_empty())
            else {
                continue;
            };
            if !self.synthesis.emitted.insert(draft.member_index) {
                continue;
            }
            emitted += 1;
            self.synthesis.fragments.push(Fragment {
                member_index: draft.member_index,
                text: advice.suggestion.clone(),
                severity: advice.severity,
                priority: draft.priority,
                rule: self.synthesis.at,
            });
        }
        if emitted > 0 && rule.bool_param("terminal") {
            self.synthesis.terminal = true;
        }
        let also = json!({"emitted": emitted});
        self.synthesis.effects.push(run.state.record_rule(rule, fired, &members, also));
    }

    /// A custom rule gave what it emits.
    fn emit_host_output(&mut self, run: &mut Run, output: HostOutput) {
        let rule = &run.setup.rules[self.synthesis.at];
        let mut drafts = Vec::new();
        for one in output.fragments.unwrap_or_default() {
            match run.member_indices.get(&*one.member).filter(|index| self.advice[**index].is_some()) {
                Some(index) => {
                    let priority =
                        one.priority.map_or(HOST_PRIORITY, |n| u8::try_from(n.min(100)).unwrap_or(100));
                    drafts.push(Draft { member_index: *index, priority });
                }
                None => {
                    run.state.note(format!("rule `{}` emits for `{}`, who gave nothing", rule.id, one.member))
                }
            }
        }
        let members: Vec<Name> = drafts.iter().map(|one| run.member(one.member_index).id.clone()).collect();
        let ends = output.terminal == Some(true);
        let emitted = (ends || !drafts.is_empty()).then_some(Emission { drafts, members, exclusive: false });
        self.emit(run, emitted);
        self.synthesis.terminal |= ends;
    }

    /// All rules are applied: checks every fragment against the locks.
    fn check_fragments(&mut self, run: &mut Run) -> Vec<Effect> {
        let mut effects = std::mem::take(&mut self.synthesis.effects);
        self.passed_check = vec![false; self.synthesis.fragments.len()];
        if self.synthesis.fragments.is_empty() {
            effects.push(Effect::End(self.guidance(run)));
            return effects;
        }
        for fragment in &self.synthesis.fragments {
            let member = &run.member(fragment.member_index).id;
            let name = format!("fragment/{member}").into();
            let text = Text::of_member(member, ask_id(member), "fragment", &fragment.text);
            effects.push(Effect::Check(Candidate { name, texts: vec![text], on_hit: OnHit::Drop }));
        }
        effects
    }

    fn guidance(&self, run: &mut Run) -> Completion {
        let fragments = self.synthesis.fragments.iter().zip(&self.passed_check).filter(|(_, kept)| **kept);
        let fragments: Vec<Json> = fragments.map(|(one, _)| fragment(run, one)).collect();
        let most = usize::from(run.setup.overlays.max_active);
        if fragments.len() > most {
            run.state.note(format!(
                "{} fragments, of which at most {most} hold at once: the others go at once",
                fragments.len()
            ));
        }
        let mut ending = Completion::done();
        ending.artifact.insert("fragments".into(), json!(fragments));
        ending.extra = extra_fields(self, run);
        ending
    }
}

impl Mode for Advisory {
    fn on_opened(&mut self, run: &mut Run) -> Vec<Effect> {
        self.start_pass(run)
    }

    fn store_answer(&mut self, index: usize, answer: Option<&Json>) {
        self.advice[index] = answer.and_then(Advice::read);
    }

    fn on_answer(&mut self, run: &mut Run, _: usize) -> Vec<Effect> {
        if run.all_ended() { self.synthesise(run) } else { Vec::new() }
    }

    fn on_rule_result(&mut self, run: &mut Run, _: &str, result: Result<&Json, &str>) -> Vec<Effect> {
        match result.map_err(str::to_owned).and_then(HostOutput::read) {
            Ok(output) => self.emit_host_output(run, output),
            Err(why) => {
                run.state.note_failed_rule(&run.setup.rules[self.synthesis.at].id, &why);
                self.synthesis.failed = true;
                self.emit(run, None);
            }
        }
        self.synthesis.at += 1;
        self.apply_rules(run)
    }

    fn on_checked(&mut self, run: &mut Run, candidate: &Name, result: &LockResult) -> Vec<Effect> {
        let of =
            |fragment: &Fragment| format!("fragment/{}", run.member(fragment.member_index).id) == **candidate;
        if let Some(at) = self.synthesis.fragments.iter().position(of) {
            self.passed_check[at] = result.is_clean();
        }
        if run.all_checked() { vec![Effect::End(self.guidance(run))] } else { Vec::new() }
    }

    /// The risk is that of everything that was answered. A sentinel that the budget did not cover is missing like any other,
    /// and so are the members of the phase that would have come after the sentinels.
    fn on_budget_exhausted(&mut self, run: &mut Run, ending: Completion) -> Completion {
        if self.pass == Pass::Sentinel {
            self.members_of(run, Pass::Phase).into_iter().for_each(|index| run.state.mark_missing(index));
        }
        Completion { extra: extra_fields(self, run), ..ending }
    }
}

const DAY_MS: i64 = 86_400_000;
/// The shortest and the longest time that an overlay may hold (A5).
const TTL_RANGE_MS: (i64, i64) = (*OVERLAY_TTL_DAYS.start() * DAY_MS, *OVERLAY_TTL_DAYS.end() * DAY_MS);

/// A fragment in the outcome.
fn fragment(run: &mut Run, fragment: &Fragment) -> Json {
    let expires = timestamp::format(expires_ms(run, fragment.rule));
    json!({
        "member": &*run.member(fragment.member_index).id,
        "text": fragment.text,
        "severity": fragment.severity,
        "priority": fragment.priority,
        "rule": &*run.setup.rules[fragment.rule].id,
        "expires": expires,
    })
}

/// A5: when a fragment of a rule stops to hold.
fn expires_ms(run: &mut Run, rule: usize) -> i64 {
    let rule = &run.setup.rules[rule];
    let iso = |text: &str| text.parse::<IsoDuration>().ok();
    let by_iso = |iso: IsoDuration| timestamp::add_duration(run.now_ms, iso).saturating_sub(run.now_ms);
    let own_ms = rule.integer_param("ttlMs").map(|ms| i64::try_from(ms).unwrap_or(i64::MAX));
    let default = || iso(&run.setup.overlays.default_ttl).map_or(TTL_RANGE_MS.0, by_iso);
    let asked_ms =
        own_ms.or_else(|| rule.text_param("ttl").and_then(iso).map(by_iso)).unwrap_or_else(default);
    let ttl_ms = asked_ms.clamp(TTL_RANGE_MS.0, TTL_RANGE_MS.1);
    if ttl_ms != asked_ms {
        let days = ttl_ms / DAY_MS;
        let duration = if days == 1 { "one day".to_owned() } else { format!("{days} days") };
        run.state.note(format!(
            "what rule `{}` emits holds for {duration}: overlays hold for 1 to 30 days",
            rule.id
        ));
    }
    run.now_ms.saturating_add(ttl_ms)
}

/// The other fields of the outcome: the risk level, and whether to escalate (A6, X12).
fn extra_fields(advisory: &Advisory, run: &mut Run) -> Map<String, Json> {
    let severity = advisory.advice.iter().flatten().map(|advice| advice.severity).max();
    let members = run.setup.members.iter().enumerate();
    let lacking: Vec<usize> =
        members.map(|(index, _)| index).filter(|index| run.state.is_missing(*index)).collect();
    let sentinel_lacks = lacking.iter().any(|index| run.member(*index).phase.as_deref() == Some(SENTINEL));
    let (risk, mut escalates) = risk_of(run, severity, !lacking.is_empty());
    if sentinel_lacks {
        run.state.note("a sentinel gave no output; get somebody");
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

/// The level of risk as outcomes have it, and whether to escalate. A run in which a member gave no output
/// is never reported as ok (X12).
pub(crate) fn risk_of(run: &mut Run, severity: Option<u8>, lacking: bool) -> (Json, bool) {
    let mut level = severity.map(|severity| risk_level(&run.setup, severity));
    if level == Some(RiskLabel::Ok) && lacking {
        level = Some(RiskLabel::Watch);
        run.state.note("the risk is not reported as ok, since not everybody has been heard");
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

/// The input of a custom rule.
fn host_rule_input(rule: &Rule, heard: &[MemberAdvice], run: &Run) -> RuleRequest {
    let outputs = heard.iter().filter(|output| rule.applies_to_member(&output.member));
    let output = |output: &MemberAdvice| MemberOutput {
        member: output.member.clone(),
        phase: run.member(output.member_index).phase.clone(),
        advice: output.advice.clone(),
        may_emit: output.may_emit,
    };
    RuleRequest::Advisory { rule: rule.clone(), outputs: outputs.map(output).collect() }
}
