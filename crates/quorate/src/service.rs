//! Use cases, one module each, and what they share. A front end parses arguments, calls a use case and renders its
//! result.

pub(crate) mod artifact;
pub(crate) mod attest;
pub(crate) mod audit;
pub(crate) mod budget;
pub(crate) mod commit_events;
pub(crate) mod compare;
pub(crate) mod compose;
pub(crate) mod confined;
pub(crate) mod convene;
pub(crate) mod diff;
pub(crate) mod disk;
pub(crate) mod environment;
pub(crate) mod error;
pub(crate) mod estimate;
pub(crate) mod executor;
pub(crate) mod finalize;
pub(crate) mod guard;
pub(crate) mod hidden_text;
pub(crate) mod keys;
pub(crate) mod ledger;
pub(crate) mod live;
pub(crate) mod manifests;
pub(crate) mod member_usage;
pub(crate) mod open_session;
pub(crate) mod operate;
pub(crate) mod overlays;
pub(crate) mod policy {
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
                report.refuse(
                    codes::POLICY_NOT_MONOTONE,
                    at(Body::new(flaw.message).help(flaw.help), flaw.row),
                );
                value = None;
            }
        }
        Loaded { value, report }
    }
}
pub(crate) mod redaction;
pub(crate) mod registries;
pub(crate) mod report;
pub(crate) mod resolve;
pub(crate) mod resume;
pub(crate) mod review;
pub(crate) mod run_opened;
pub(crate) mod run_spec;
pub(crate) mod runs;
pub(crate) mod runtime;
pub(crate) mod sealing;
pub(crate) mod session;
pub(crate) mod signer;
pub(crate) mod talks;
pub(crate) mod tier_model;
pub(crate) mod time_text;
pub(crate) mod trust;
pub(crate) mod weave;
pub(crate) mod witness;
pub(crate) mod workspace;
pub(crate) mod wrong_guess;
