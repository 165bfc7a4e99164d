//! Emit: turns the fragments of an advisory run into shadow playbooks, each with its mentor's id below `metadata`. Advice
//! lasts two weeks as an overlay, and becomes permanent as a playbook that passes a gate.

use quorate_diagnostics::{Body, codes};
use quorate_kernel::record::Fragment;
use quorate_playbook::delta::{Add, Delta};
use quorate_protocol::Json;
use serde_json::json;

use super::propose::Proposal;
use super::writer::LibraryWriter;
use crate::service::error::{ExitClass, ServiceError};
use crate::service::run_opened;

/// The maximum length of a title made of a fragment, in characters.
const MAX_TITLE_CHARS: usize = 120;

/// The fragments of an advisory run as proposals for its operators.
///
/// # Errors
/// If the run is unknown, or has no fragments.
#[crate::boxed]
pub async fn proposals_of_run(keeping: &LibraryWriter, prefix: &str) -> Result<Vec<Proposal>, ServiceError> {
    let run = keeping.session.find_run(prefix).await?.run;
    let history = keeping.session.partial_history(&run).await?;
    let fragments = history.outcome().map(|outcome| outcome.fragments).filter(|all| !all.is_empty());
    let (Some(setup), Some(fragments)) = (run_opened::assembly_setup(&history), fragments) else {
        let body = Body::new(format!("run {run} has no advice"));
        let help = "name a run of an advisory assembly: `quorate runs` lists all runs";
        return Err(ServiceError::new(ExitClass::Usage, codes::USAGE, body.help(help)));
    };
    let known = keeping.library.operators.iter();
    let targets: Vec<Json> = known
        .filter(|known| setup.operators.contains(&known.overlay_name(&keeping.library.scope)))
        .map(|known| json!({"kind": "operator", "ref": known.slug}))
        .collect();
    if targets.is_empty() {
        let body = Body::new(format!("run {run} does not advise an operator of this workspace"));
        let help = "name one in `appliesTo` or `executor` of the assembly";
        return Err(ServiceError::configuration(codes::TARGET_UNRESOLVED, body.help(help)));
    }
    let proposals = fragments.iter().map(|fragment| {
        let Fragment { member, severity, .. } = fragment;
        let text = fragment.text.trim().to_owned();
        let priority = u8::try_from(fragment.priority).ok();
        let add = Add {
            slug: slug(&setup.assembly, member, &run),
            title: title(&text),
            body: text,
            targets: Some(json!(targets)),
            selector: None,
            block: None,
            priority: priority.map(|n| json!(n.min(quorate_playbook::weave::ADVISORY_CAP))),
            lock_check: Vec::new(),
            ttl: None,
            evidence: Some(json!([{
                "kind": "run", "ref": format!("runs/{run}"), "note": format!("severity {severity}"),
            }])),
            supersedes: None,
            tags: None,
            metadata: Some(json!({"quorate": {"mentor": member, "assembly": &*setup.assembly}})),
        };
        Proposal::Delta(Box::new(Delta::Add(Box::new(add))))
    });
    Ok(proposals.collect())
}

/// A slug that depends only on the run and the fragment.
fn slug(assembly: &str, member: &str, run: &str) -> String {
    let plain = |text: &str| -> String {
        let text = text.to_ascii_lowercase();
        let text = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect::<String>();
        text.trim_matches('-').chars().take(28).collect()
    };
    let slug = format!("{}-{}-{}", plain(assembly), plain(member), plain(run));
    let slug = slug.trim_start_matches(|c: char| !c.is_ascii_lowercase());
    slug.trim_end_matches('-').to_owned()
}

fn title(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let cut: String = line.chars().take(MAX_TITLE_CHARS).collect();
    if cut.len() < line.len() { format!("{}…", cut.trim_end()) } else { cut }
}
