//! The lock check (L1): every text that an outcome would persist is checked against the locked traits. A hit drops the
//! candidate, or withholds the touched text of a ballot (V6), and is recorded; the consultation stays.

use std::sync::Arc;

use serde_json::json;

use super::{Candidate, LockResult, OnHit, Run, RunState, Text};
use crate::locks::{Hit, Locks, excerpt};
use crate::{AskedModel, Fact, FactKind, Json, Name, SemanticHit, SemanticMatch};

/// How far a check got.
pub(super) enum CheckResult {
    Ended { name: Name, result: LockResult, facts: Vec<Fact> },
    ByMeaning { candidate: Candidate, asked: SemanticMatch },
}

/// Checks a candidate against the traits as text; the comparison by meaning is left to the host.
pub(super) fn check_text(run: &mut Run, candidate: Candidate) -> CheckResult {
    let hits = hits(run, &candidate);
    let by_meaning = if run.setup.embeds { run.locks.semantic_traits() } else { Vec::new() };
    // A hit drops the candidate whatever the comparison would find; a text that is kept needs both checks.
    let is_open = hits.is_empty() || candidate.on_hit == OnHit::Withhold;
    if is_open && !by_meaning.is_empty() {
        let traits = by_meaning.iter().map(|at| run.setup.locked_traits[*at].text.clone()).collect();
        let comparison = SemanticMatch {
            candidate: candidate.name.clone(),
            texts: candidate.texts.iter().map(|text| text.text.clone()).collect(),
            traits,
        };
        return CheckResult::ByMeaning { candidate, asked: comparison };
    }
    let reported = hits.iter().map(|(at, hit)| ReportedHit::from_text(*at, hit, &candidate)).collect();
    let (result, facts) = report(&run.locks, &mut run.state, &candidate, None, reported);
    CheckResult::Ended { name: candidate.name.clone(), result, facts }
}

/// The hits in the texts of a candidate, each with the index of its text.
fn hits(run: &Run, candidate: &Candidate) -> Vec<(usize, Hit)> {
    let found = |(at, text): (usize, &Text)| -> Vec<(usize, Hit)> {
        run.locks.check(&text.text).into_iter().map(|hit| (at, hit)).collect()
    };
    candidate.texts.iter().enumerate().flat_map(found).collect()
}

/// The result of the host's comparison by meaning. A failed one leaves the candidate unchecked, so that none of its texts
/// is persisted (L4).
pub(super) fn check_meaning(
    run: &mut Run,
    candidate: &Candidate,
    result: &Result<Vec<SemanticHit>, Arc<str>>,
    asked: Option<&AskedModel>,
) -> (Name, LockResult, Vec<Fact>) {
    let semantic_traits = run.locks.semantic_traits();
    let near = match result {
        Ok(near) => near,
        Err(why) => {
            let effect = candidate.on_hit.past_participle();
            run.state
                .note(format!("`{}` was {effect}: the locks could not be checked: {why}", candidate.name));
            let mut facts = facts(&run.locks, &mut run.state, candidate, "unchecked", asked, &[]);
            run.state.count_violation();
            let data = json!({"candidate": &*candidate.name, "code": "lock_unchecked", "why": &**why});
            facts.push(Fact { kind: FactKind::Violation, data });
            return (candidate.name.clone(), LockResult::Unchecked, facts);
        }
    };
    let by_text = hits(run, candidate);
    let by_text = by_text.iter().map(|(at, hit)| ReportedHit::from_text(*at, hit, candidate));
    let by_meaning = near.iter().filter_map(|near| {
        let text = candidate.texts.get(near.text)?;
        let locked = &run.setup.locked_traits.get(*semantic_traits.get(near.which)?)?.text;
        let span = near.start..near.end;
        let words = text.text.get(span.clone()).map(|_| excerpt(&text.text, &span));
        Some(ReportedHit {
            at: near.text,
            text,
            locked,
            layer: "meaning",
            excerpt: words.unwrap_or_default(),
            probability: near.probability,
        })
    });
    let reported = by_text.chain(by_meaning).collect();
    let (result, facts) = report(&run.locks, &mut run.state, candidate, asked, reported);
    (candidate.name.clone(), result, facts)
}

/// A hit as recorded.
struct ReportedHit<'a> {
    /// The index of the text in its candidate.
    at: usize,
    text: &'a Text,
    locked: &'a str,
    layer: &'a str,
    excerpt: String,
    probability: Option<f64>,
}

impl<'a> ReportedHit<'a> {
    fn from_text(at: usize, hit: &'a Hit, candidate: &'a Candidate) -> Self {
        let text = &candidate.texts[at];
        let excerpt = excerpt(&text.text, &hit.span);
        ReportedHit {
            at,
            text,
            locked: &hit.trait_text,
            layer: hit.layer.as_str(),
            excerpt,
            probability: None,
        }
    }
}

impl OnHit {
    fn past_participle(self) -> &'static str {
        match self {
            OnHit::Drop => "dropped",
            OnHit::Withhold => "withheld",
        }
    }
}

/// The result of a check, and its records.
fn report(
    locks: &Locks,
    state: &mut RunState,
    candidate: &Candidate,
    asked: Option<&AskedModel>,
    hits: Vec<ReportedHit<'_>>,
) -> (LockResult, Vec<Fact>) {
    let word = if hits.is_empty() { "pass" } else { "hit" };
    let facts = facts(locks, state, candidate, word, asked, &hits);
    let result = match hits.is_empty() {
        true => LockResult::Pass,
        false => LockResult::Hit(hits.into_iter().map(|hit| (hit.at, hit.locked.to_owned())).collect()),
    };
    (result, facts)
}

fn facts(
    locks: &Locks,
    state: &mut RunState,
    candidate: &Candidate,
    result: &str,
    asked: Option<&AskedModel>,
    hits: &[ReportedHit<'_>],
) -> Vec<Fact> {
    if locks.is_empty() {
        return Vec::new();
    }
    let mut check = json!({
        "candidate": &*candidate.name,
        "result": result,
        "texts": candidate.texts.len(),
        "traits": locks.traits().len(),
    });
    if let Some(AskedModel { model, probability }) = asked {
        check["way"] = json!("question");
        check["model"] = json!(**model);
        if let Some(probability) = probability {
            check["probability"] = json!(probability);
        }
    }
    let mut facts = vec![Fact { kind: FactKind::LockCheck, data: check }];
    for hit in hits {
        state.count_violation();
        let author = hit.text.member.as_deref();
        let of =
            author.map_or_else(|| hit.text.kind.to_owned(), |id| format!("the {} of `{id}`", hit.text.kind));
        state.note(match candidate.on_hit {
            OnHit::Drop => {
                format!("`{}` was dropped: {of} touches the locked trait `{}`", candidate.name, hit.locked)
            }
            OnHit::Withhold => format!("{of} was withheld: it touches the locked trait `{}`", hit.locked),
        });
        let mut data: Json = json!({
            "candidate": &*candidate.name,
            "code": "assembly_overlay_lock_violation",
            "trait": hit.locked,
            "member": author,
            "invocation": hit.text.invocation.as_deref(),
            "what": hit.text.kind,
            "layer": hit.layer,
            "excerpt": hit.excerpt,
        });
        if let Some(probability) = hit.probability {
            data["probability"] = json!(probability);
        }
        facts.push(Fact { kind: FactKind::Violation, data });
    }
    facts
}
