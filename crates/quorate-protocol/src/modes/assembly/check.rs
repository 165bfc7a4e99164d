//! The lock check (L1): every text that an outcome would persist is checked against the locked traits. A hit drops the
//! candidate and is recorded; the consultation stays.

use std::sync::Arc;

use serde_json::json;

use super::effect::{Candidate, Text};
use super::mode::ModeContext;
use super::state::RunState;
use crate::locks::{Hit, excerpt};
use crate::{Fact, FactKind, Json, Name, SemanticHit, SemanticMatch};

/// How far a check got.
pub(super) enum CheckResult {
    Ended { name: Name, clean: bool, facts: Vec<Fact> },
    ByMeaning { candidate: Candidate, asked: SemanticMatch },
}

/// Checks a candidate against the traits as text; the comparison by meaning is left to the host.
pub(super) fn check_text(
    context: &ModeContext,
    run_state: &mut RunState,
    candidate: Candidate,
) -> CheckResult {
    let found = |(at, text): (usize, &Text)| -> Vec<(usize, Hit)> {
        context.locks.check(&text.text).into_iter().map(|hit| (at, hit)).collect()
    };
    let hits: Vec<(usize, Hit)> = candidate.texts.iter().enumerate().flat_map(found).collect();
    let by_meaning = if context.setup.embeds { context.locks.semantic_traits() } else { Vec::new() };
    if hits.is_empty() && !by_meaning.is_empty() {
        let traits = by_meaning.iter().map(|at| context.setup.locked_traits[*at].text.clone()).collect();
        let comparison = SemanticMatch {
            candidate: candidate.name.clone(),
            texts: candidate.texts.iter().map(|text| text.text.clone()).collect(),
            traits,
        };
        return CheckResult::ByMeaning { candidate, asked: comparison };
    }
    let reported: Vec<ReportedHit<'_>> = hits
        .iter()
        .map(|(at, hit)| {
            let text = &candidate.texts[*at];
            let excerpt = excerpt(&text.text, &hit.span);
            ReportedHit { text, locked: &hit.trait_text, layer: hit.layer.as_str(), excerpt }
        })
        .collect();
    let result = if reported.is_empty() { "pass" } else { "hit" };
    let facts = facts(context, run_state, &candidate, result, &reported);
    CheckResult::Ended { name: candidate.name.clone(), clean: reported.is_empty(), facts }
}

/// The result of the host's comparison by meaning. A failed one leaves the candidate unchecked, which drops it (L4).
pub(super) fn check_meaning(
    context: &ModeContext,
    run_state: &mut RunState,
    candidate: &Candidate,
    result: &Result<Vec<SemanticHit>, Arc<str>>,
) -> (Name, bool, Vec<Fact>) {
    let semantic_traits = context.locks.semantic_traits();
    let near = match result {
        Ok(near) => near,
        Err(why) => {
            run_state
                .note(format!("`{}` was dropped: the locks could not be checked: {why}", candidate.name));
            let mut facts = facts(context, run_state, candidate, "unchecked", &[]);
            run_state.count_violation();
            let data = json!({"candidate": &*candidate.name, "code": "lock_unchecked", "why": &**why});
            facts.push(Fact { kind: FactKind::Violation, data });
            return (candidate.name.clone(), false, facts);
        }
    };
    let reported: Vec<ReportedHit<'_>> = near
        .iter()
        .filter_map(|near| {
            let text = candidate.texts.get(near.text)?;
            let locked = &context.setup.locked_traits.get(*semantic_traits.get(near.which)?)?.text;
            let span = near.start..near.end;
            let words = text.text.get(span.clone()).map(|_| excerpt(&text.text, &span));
            Some(ReportedHit { text, locked, layer: "meaning", excerpt: words.unwrap_or_default() })
        })
        .collect();
    let result = if reported.is_empty() { "pass" } else { "hit" };
    let facts = facts(context, run_state, candidate, result, &reported);
    (candidate.name.clone(), reported.is_empty(), facts)
}

/// A hit as recorded.
struct ReportedHit<'a> {
    text: &'a Text,
    locked: &'a str,
    layer: &'a str,
    excerpt: String,
}

fn facts(
    context: &ModeContext,
    run_state: &mut RunState,
    candidate: &Candidate,
    result: &str,
    hits: &[ReportedHit<'_>],
) -> Vec<Fact> {
    if context.locks.is_empty() {
        return Vec::new();
    }
    let check = json!({
        "candidate": &*candidate.name,
        "result": result,
        "texts": candidate.texts.len(),
        "traits": context.locks.traits().len(),
    });
    let mut facts = vec![Fact { kind: FactKind::LockCheck, data: check }];
    for hit in hits {
        run_state.count_violation();
        let author = hit.text.member.as_deref();
        let of =
            author.map_or_else(|| hit.text.kind.to_owned(), |id| format!("the {} of `{id}`", hit.text.kind));
        run_state.note(format!(
            "`{}` was dropped: {of} touches the locked trait `{}`",
            candidate.name, hit.locked
        ));
        let data: Json = json!({
            "candidate": &*candidate.name,
            "code": "assembly_overlay_lock_violation",
            "trait": hit.locked,
            "member": author,
            "invocation": hit.text.invocation.as_deref(),
            "what": hit.text.kind,
            "layer": hit.layer,
            "excerpt": hit.excerpt,
        });
        facts.push(Fact { kind: FactKind::Violation, data });
    }
    facts
}
