//! The diagnostics of a council's own policy, which `quorate_protocol::policy` proves.

use quorate_diagnostics::{Body, codes};
use quorate_manifest::Loaded;
use quorate_manifest::council::{Council, Policy};
use quorate_protocol::Name;
use quorate_protocol::policy::check;

/// Refuses a council's own policy that is not monotone, and warns of rows that decide no case (C14).
pub(crate) fn checked(loaded: Loaded<Council>) -> Loaded<Council> {
    let Loaded { mut value, mut report } = loaded;
    let Some(Council { policy: Some(policy @ Policy::Own(_)), policy_rows, deliberators, .. }) = &value
    else {
        return Loaded { value, report };
    };
    let members: Vec<Name> = deliberators.iter().map(|member| member.id.clone()).collect();
    let at = |body: Body, row: usize| match policy_rows.get(row) {
        Some(place) => body.at(place.clone()),
        None => body,
    };
    match check(policy, &members) {
        Ok(unreached) => {
            for row in unreached {
                let body = Body::new(format!("row {} of the policy decides no case", row + 1));
                let help = "remove it, or move it above the row that decides its cases";
                report.warn(codes::RULE_WITHOUT_EFFECT, at(body.help(help), row));
            }
        }
        Err(flaw) => {
            report.refuse(codes::POLICY_NOT_MONOTONE, at(Body::new(flaw.message).help(flaw.help), flaw.row));
            value = None;
        }
    }
    Loaded { value, report }
}
