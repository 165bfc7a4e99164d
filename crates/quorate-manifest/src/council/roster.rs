//! `deliberators` and `adjudicator`: the members of a council and their prompts.

use std::collections::BTreeMap;
use std::sync::Arc;

use quorate_diagnostics::{Body, Place, codes};

use super::files::CouncilFiles;
use super::prompts::ADJUDICATOR;
use super::{Deliberator, PolicyName, Prompt, runtime};
use crate::config::ExecutorTable;
use crate::tree::reader::nearest;
use crate::tree::{Field, Kind};

/// The minimum number of deliberators.
const MIN_DELIBERATORS: usize = 3;

const MAX_ID_LENGTH: usize = 64;

/// The valid deliberators.
pub(super) struct Roster {
    pub(super) deliberators: Vec<Deliberator>,
    /// The number of deliberators in the file, valid or not.
    pub(super) listed: usize,
}

/// The adjudicator; invalid values are `None`.
pub(super) struct Adjudicator {
    pub(super) prompt: Option<Prompt>,
    pub(super) policy: Option<PolicyName>,
    pub(super) runtime: Option<ExecutorTable>,
}

/// Reads `deliberators`.
pub(super) fn deliberators(field: &Field<'_>, files: &mut CouncilFiles<'_>) -> Option<Roster> {
    let items = field.list()?;
    let listed = items.len();
    if listed < MIN_DELIBERATORS {
        let message = format!("a council has at least {MIN_DELIBERATORS} deliberators; here are {listed}");
        field.invalid_with(message, "with fewer, one failure leaves no verdict");
    }
    let mut seen = BTreeMap::new();
    let deliberators = items.iter().filter_map(|item| deliberator(item, files, &mut seen)).collect();
    Some(Roster { deliberators, listed })
}

fn deliberator<'d>(
    item: &Field<'d>,
    files: &mut CouncilFiles<'_>,
    seen: &mut BTreeMap<&'d str, Place>,
) -> Option<Deliberator> {
    let mut fields = item.fields()?;
    let id = fields.required("id", "a name, unique in the council").and_then(|field| id(&field, seen));
    let prompt = fields
        .required("prompt", "the path of a Markdown file, or `builtin:skeptic`")
        .and_then(|field| files.prompt(&field));
    let weight = fields.optional("weight").and_then(|field| weight(&field));
    let context = fields.optional("context_refs").and_then(|field| field.list()).unwrap_or_default();
    let context = context.iter().filter_map(|field| files.context(field)).collect();
    let runtime = fields.optional("runtime").and_then(|field| runtime::read(&field));
    fields.finish();
    Some(Deliberator { id: id?, prompt: prompt?, weight: weight.unwrap_or(1.0), context, runtime })
}

fn id<'d>(field: &Field<'d>, seen: &mut BTreeMap<&'d str, Place>) -> Option<Arc<str>> {
    let id = field.non_blank_text()?;
    let plain = id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if !plain || id.len() > MAX_ID_LENGTH {
        let help = format!("use up to {MAX_ID_LENGTH} of the characters A-Z a-z 0-9 _ -");
        field.invalid_with(format!("`{id}` cannot be an id"), help);
        return None;
    }
    if id == ADJUDICATOR {
        field.invalid_with(
            "no deliberator can be called `adjudicator`",
            "give it another id; the adjudicator has its own key",
        );
        return None;
    }
    if let Some(first) = seen.get(id) {
        let body =
            Body::new(format!("two deliberators are called `{id}`")).related(first.clone(), "first here");
        field.refuse(codes::COUNCIL_INVALID, body);
        return None;
    }
    seen.insert(id, field.place());
    Some(id.into())
}

/// Reads `weight`, which is recorded, but does not change verdicts.
fn weight(field: &Field<'_>) -> Option<f64> {
    let weight = field.number()?;
    if weight < 0.0 {
        field.invalid(format!("`{}` is less than 0", field.path()));
        return None;
    }
    #[expect(clippy::float_cmp, reason = "only exactly 1 needs no warning")]
    if weight != 1.0 {
        let body = Body::new("a weight does not change the verdict: the policies count members");
        field.warn(codes::FIELD_WITHOUT_EFFECT, body.help("remove it, or keep it as a note"));
    }
    Some(weight)
}

/// Reads `adjudicator`.
pub(super) fn adjudicator(field: &Field<'_>, files: &mut CouncilFiles<'_>) -> Option<Adjudicator> {
    let mut fields = field.fields()?;
    let prompt = fields
        .required("prompt", "the path of a Markdown file, or `builtin:adjudicator`")
        .and_then(|field| files.prompt(&field));
    let policy = fields.optional("verdict_policy").and_then(|field| policy(&field));
    let runtime = fields.optional("runtime").and_then(|field| runtime::read(&field));
    fields.finish();
    Some(Adjudicator { prompt, policy, runtime })
}

/// Reads `verdict_policy`: a policy's name; or a mapping, as in the public tool, which only documents the tool's code. That
/// code behaves like `strict`, and `strict` is never milder than `seed` (C13).
fn policy(field: &Field<'_>) -> Option<PolicyName> {
    if matches!(field.kind(), Kind::Map(_)) {
        let body = Body::new("a mapping as `verdict_policy` means `strict`; its content has no effect")
            .help("write `verdict_policy: strict`, which behaves like the public tool, or `seed`");
        field.warn(codes::FIELD_WITHOUT_EFFECT, body);
        return Some(PolicyName::Strict);
    }
    match field.text()? {
        "seed" => Some(PolicyName::Seed),
        "strict" => Some(PolicyName::Strict),
        other => {
            let help = match nearest(other, &["seed", "strict"]) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "the policies are `seed` and `strict`".to_owned(),
            };
            field.invalid_with(format!("there is no verdict policy `{other}`"), help);
            None
        }
    }
}
