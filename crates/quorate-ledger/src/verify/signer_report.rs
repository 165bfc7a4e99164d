//! The result for the signatures of whole runs, once all records were read.

use super::divergence::{Divergence, Kind, Part};
use super::walk::Walk;

/// Runs whose records say that they are from before their key was revoked, and are behind a checkpoint from after that.
/// Those of another ledger came in later.
pub(super) fn report_backdated(walk: &mut Walk) {
    for (run, state) in &walk.runs {
        let Some((what, n, place)) = &state.backdated else { continue };
        if !walk.ledger_facts.imported.contains(&**run) {
            let divergence = Divergence::new(Kind::Changed, Part::Signature, what.clone());
            walk.findings.add(divergence.at_record(run, *n).at_seq(*place));
        }
    }
}

/// Runs that only their own first record vouches for: governance has bound other keys than the workspace's, or they come
/// from elsewhere. What is neither was signed by a stranger, where the workspace has a keyring.
pub(super) fn report_unlisted(walk: &mut Walk) -> u64 {
    let mut vouched = 0;
    for (run, state) in &walk.runs {
        let Some((id, n, place)) = state.unlisted_signer else { continue };
        let governed = state.keyring.as_ref().is_some_and(|audit| audit.governed);
        if walk.options.keyring.is_none() || governed || walk.ledger_facts.imported.contains(&**run) {
            vouched += 1;
            continue;
        }
        let what = format!("the key {id} signed it, which is not in the workspace's keyring");
        walk.findings
            .add(Divergence::new(Kind::Changed, Part::Signature, what).at_record(run, n).at_seq(place));
    }
    vouched
}
