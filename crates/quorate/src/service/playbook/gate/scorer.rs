//! `scorer`: a user's command compares two prompts repeatedly, until one is significantly better.
//!
//! For each trial it gets one line of JSON on stdin, `{playbook, operator, trial, prompt, counterfactual}`, and answers
//! `{"without": number, "with": number}`: the agent's score without and with the playbook, in any unit; more is better.
//! Trials rotate over the targeted operators. The sequential test of the other gates applies, so the gate may end early.
//! The test covers all recorded trials of the text, also of earlier attempts. Each trial is therefore recorded before the
//! next one begins, and the finished trials of an interrupted attempt count (B12).

use std::time::Duration;

use quorate_adapters::process;
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::ledger::PlaybookEvent;
use quorate_kernel::record::Scores;
use quorate_manifest::playbook::Gate;
use quorate_manifest::playbook::PlaybookFile;
use quorate_playbook::compose::{Composition, compose};
use quorate_playbook::gate::{Thresholds, compare_attempts};
use serde_json::json;

use super::super::change::{Change, append_from};
use super::super::event::{ChangeEvent, stream};
use super::super::recorded_versions::RecordedVersions;
use super::super::trials::NewAttempt;
use super::super::versions::gate_word;
use super::super::writer::LibraryWriter;
use super::evidence::{GateClosed, GateEvidence};
use crate::service::error::ServiceError;
use crate::service::trust;
use crate::service::trust::TrustRequest;

/// The deadline of a trial.
const TRIAL_TIMEOUT: Duration = Duration::from_secs(600);
/// The maximum number of trials, as a multiple of the minimum.
const MAX_TRIALS_FACTOR: u32 = 5;

/// Runs trials until the test passes or the maximum is reached.
///
/// # Errors
/// If the file that names the command is not trusted, or the ledger does not answer. A failing command keeps the gate closed.
#[crate::boxed]
pub async fn attempt(
    keeping: &LibraryWriter,
    book: &PlaybookFile,
    attempt: &NewAttempt,
    terms: Thresholds,
) -> Result<Result<GateEvidence, GateClosed>, ServiceError> {
    let host = &keeping.library.workspace.host;
    let Some((command, _)) = &host.playbooks.scorer else {
        let help = "name one in quorate.toml: [playbooks] scorer = [\"python3\", \"score.py\"]";
        return Ok(Err(GateClosed::new("quorate.toml names no scorer", help)));
    };
    let environment = &keeping.session.environment;
    let need =
        TrustRequest { file: host.path(), acts: vec![process::command_side_effect(command, &host.dir)] };
    trust::admit(environment, vec![need])?;
    let slug = &book.playbook.slug;
    let now_ms = keeping.session.environment.clock.now_ms();
    let mut prompts = Vec::new();
    for (known, _) in keeping.library.operators_for(&book.playbook) {
        let candidates = keeping.library.candidates_for(known);
        let Composition { woven, shadows } = compose(&known.base, &candidates, &[], &known.locks(), now_ms);
        let with = shadows.into_iter().find(|shadow| shadow.id == *slug).map(|shadow| shadow.prompt);
        match with {
            Some(Ok(with)) => prompts.push((known.slug.clone(), woven.prompt, with)),
            Some(Err(why)) => {
                return Ok(Err(GateClosed::new(
                    format!("cannot weave it for `{}`: {why}", known.slug),
                    "correct the playbook first",
                )));
            }
            None => {}
        }
    }
    let store = &keeping.session.store;
    let earlier = RecordedVersions::load(store, &keeping.library.scope).await?.trials;
    let (mut pairs, mut next) = (Vec::new(), 0);
    let result = |new: &[(f64, f64)]| {
        let new = new.iter().map(|pair| (&attempt.text, *pair));
        compare_attempts(&attempt.text, earlier.pairs().chain(new), terms)
    };
    for trial in 0..terms.min_sample.saturating_mul(MAX_TRIALS_FACTOR) {
        let Some((operator, prompt, counterfactual)) = prompts.get(trial as usize % prompts.len().max(1))
        else {
            break;
        };
        let question = json!({
            "playbook": slug, "operator": operator, "trial": trial, "prompt": prompt, "counterfactual": counterfactual,
        });
        let answer = process::run_command(command, &host.dir, format!("{question}\n"), TRIAL_TIMEOUT).await;
        let scores = answer.and_then(|text| {
            let scores: Result<Scores, _> = serde_json::from_str(text.trim());
            scores.map_err(|error| {
                format!("the answer is not {{\"without\": number, \"with\": number}}: {error}")
            })
        });
        let scores = match scores {
            Ok(scores) => scores,
            Err(why) => {
                let help = "run the command by hand with one line of JSON on stdin";
                return Ok(Err(GateClosed::new(
                    format!("the scorer `{}` failed: {why}", command.join(" ")),
                    help,
                )));
            }
        };
        let mut data = json!({"gate": gate_word(Gate::Scorer), "scores": scores});
        match trial {
            0 => attempt.add_to(&mut data),
            _ => data["attempt"] = json!(attempt.id),
        }
        let words = format!("trial {trial}: {} with it, {} without", scores.with, scores.without);
        let mut change = Change::new_at(keeping.session.environment.clock.now_ms());
        change.events.push(ChangeEvent::new(PlaybookEvent::Tried, slug, words, data));
        append_from(store, &stream(&keeping.library.scope), &change, Vec::new(), &mut next).await?;
        pairs.push((scores.with, scores.without));
        if result(&pairs).passes() {
            break;
        }
    }
    let finding = result(&pairs);
    let note = finding.to_string();
    if pairs.is_empty() || !finding.passes() {
        return Ok(Err(GateClosed::new(
            note,
            "revise the playbook, or archive it: the scorer measured no improvement",
        )));
    }
    let reference = format!("scorer/{}", &sha256_hex(command.join(" ").as_bytes())[..12]);
    Ok(Ok(GateEvidence { kind: "reflection", reference, note }))
}
