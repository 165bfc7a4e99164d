//! The lock check (L1): every text that an outcome would persist is checked against the locked traits. A hit drops the
//! candidate, or withholds the touched text of a ballot (V6), and is recorded; the consultation stays.

use std::sync::Arc;

use serde_json::json;

use super::{Candidate, LockResult, OnHit, Run};
use crate::locks::excerpt;
use crate::{AskedModel, Fact, FactKind, Json, Name, SemanticHit, SemanticMatch};

/// How far a check got.
pub(super) enum CheckResult {
    Ended(Checked),
    ByMeaning { candidate: Candidate, asked: SemanticMatch },
}

/// A candidate that was checked, with the records of it.
pub(super) struct Checked {
    pub(super) name: Name,
    pub(super) result: LockResult,
    pub(super) facts: Vec<Fact>,
}

/// Checks a candidate against the traits as text; the comparison by meaning is left to the host.
pub(super) fn check_text(run: &mut Run, candidate: Candidate) -> CheckResult {
    let hits = hits(run, &candidate);
    let by_meaning = if run.setup.embeds { run.locks.semantic_traits() } else { Vec::new() };
    // A hit drops the candidate whatever the comparison would find; a text that is kept needs both checks.
    let is_open = hits.is_empty() || candidate.on_hit == OnHit::Withhold;
    if is_open && !by_meaning.is_empty() {
        let traits = by_meaning.iter().map(|at| run.setup.locked_traits[*at].text.clone()).collect();
        let texts = candidate.texts.iter().map(|text| text.text.clone()).collect();
        let asked = SemanticMatch { candidate: candidate.name.clone(), texts, traits };
        return CheckResult::ByMeaning { candidate, asked };
    }
    CheckResult::Ended(report(run, &candidate, None, Ok(hits)))
}

/// The result of the host's comparison by meaning. A failed one leaves the candidate unchecked, so that none of its texts
/// is persisted (L4).
pub(super) fn check_meaning(
    run: &mut Run,
    candidate: &Candidate,
    result: &Result<Vec<SemanticHit>, Arc<str>>,
    asked: Option<&AskedModel>,
) -> Checked {
    let semantic_traits = run.locks.semantic_traits();
    let by_meaning = |near: &SemanticHit| {
        let text = &candidate.texts.get(near.text)?.text;
        let locked = run.setup.locked_traits.get(*semantic_traits.get(near.which)?)?.text.clone();
        let span = near.start..near.end;
        let excerpt = text.get(span.clone()).map_or(String::new(), |_| excerpt(text, &span));
        Some(ReportedHit { at: near.text, locked, layer: "meaning", excerpt, probability: near.probability })
    };
    let found = result.as_ref().map(|near| {
        let by_text = hits(run, candidate).into_iter();
        by_text.chain(near.iter().filter_map(by_meaning)).collect()
    });
    report(run, candidate, asked, found.map_err(|why| &**why))
}

/// A hit as recorded.
struct ReportedHit {
    /// The index of the text in its candidate.
    at: usize,
    locked: String,
    layer: &'static str,
    excerpt: String,
    probability: Option<f64>,
}

/// The hits in the texts of a candidate.
fn hits(run: &Run, candidate: &Candidate) -> Vec<ReportedHit> {
    let mut found = Vec::new();
    for (at, text) in candidate.texts.iter().enumerate() {
        found.extend(run.locks.check(&text.text).into_iter().map(|hit| ReportedHit {
            at,
            locked: hit.trait_text.to_string(),
            layer: hit.layer.as_str(),
            excerpt: excerpt(&text.text, &hit.span),
            probability: None,
        }));
    }
    found
}

/// The result of a check, and its records.
fn report(
    run: &mut Run,
    candidate: &Candidate,
    asked: Option<&AskedModel>,
    found: Result<Vec<ReportedHit>, &str>,
) -> Checked {
    let name = candidate.name.clone();
    let mut facts = Vec::new();
    if !run.locks.is_empty() {
        let word = found.as_ref().map_or("unchecked", |hits| if hits.is_empty() { "pass" } else { "hit" });
        let (texts, traits) = (candidate.texts.len(), run.locks.traits().len());
        let mut check = json!({"candidate": &*name, "result": word, "texts": texts, "traits": traits});
        if let Some(AskedModel { model, probability }) = asked {
            check["way"] = json!("question");
            check["model"] = json!(**model);
            if let Some(probability) = probability {
                check["probability"] = json!(probability);
            }
        }
        facts.push(Fact { kind: FactKind::LockCheck, data: check });
    }
    let mut violation = |data: Json| facts.push(Fact { kind: FactKind::Violation, data });
    let hits = match found {
        Ok(hits) => hits,
        Err(why) => {
            let effect = if candidate.on_hit == OnHit::Drop { "dropped" } else { "withheld" };
            run.state.note(format!("`{name}` was {effect}: the locks could not be checked: {why}"));
            run.state.count_violation();
            violation(json!({"candidate": &*name, "code": "lock_unchecked", "why": why}));
            return Checked { name, result: LockResult::Unchecked, facts };
        }
    };
    for hit in &hits {
        run.state.count_violation();
        let text = &candidate.texts[hit.at];
        let (author, kind, locked) = (text.member.as_deref(), text.kind, &hit.locked);
        let of = author.map_or_else(|| kind.to_owned(), |id| format!("the {kind} of `{id}`"));
        run.state.note(match candidate.on_hit {
            OnHit::Drop => format!("`{name}` was dropped: {of} touches the locked trait `{locked}`"),
            OnHit::Withhold => format!("{of} was withheld: it touches the locked trait `{locked}`"),
        });
        let mut data: Json = json!({
            "candidate": &*name,
            "code": "assembly_overlay_lock_violation",
            "trait": locked,
            "member": author,
            "invocation": text.invocation.as_deref(),
            "what": kind,
            "layer": hit.layer,
            "excerpt": hit.excerpt,
        });
        if let Some(probability) = hit.probability {
            data["probability"] = json!(probability);
        }
        violation(data);
    }
    let result = match hits.is_empty() {
        true => LockResult::Pass,
        false => LockResult::Hit(hits.into_iter().map(|hit| (hit.at, hit.locked)).collect()),
    };
    Checked { name, result, facts }
}
