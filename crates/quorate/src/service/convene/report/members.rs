//! The members in an assembly's report.

use std::collections::BTreeMap;

use quorate_kernel::history::History;
use quorate_kernel::record;
use quorate_protocol::{Json, assembly};
use serde_json::{Map, json};

use crate::service::failure::Failure;

/// A member and all its questions.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    pub id: String,
    /// The title of the role.
    pub role: String,
    /// Advisory: the phase that it is asked in.
    pub phase: Option<String>,
    /// Voting: the classes that it votes on; `None` is all.
    pub classes: Option<Vec<String>>,
    /// Hierarchy: the node that it reports to.
    pub parent: Option<String>,
    /// The status of its last question; `not_asked` without one.
    pub status: String,
    /// Its questions, in order.
    pub consultations: Vec<Consultation>,
}

/// A question to a member, and its result.
#[derive(Debug, Clone, PartialEq)]
pub struct Consultation {
    pub invocation: String,
    /// `answered`, `timed_out`, `failed`, `schema_failed`, `over_budget`, `cancelled` or `late`.
    pub status: String,
    /// The answer, as given.
    pub answer: Option<Map<String, Json>>,
    /// The reason for a missing answer, if the record has more than the status.
    pub message: Option<String>,
    /// The reason for a missing answer, in full.
    pub failure: Option<Failure>,
    pub executor: String,
    /// The duration, in milliseconds.
    pub ms: u64,
}

impl Member {
    /// All members of a roster, with their consultations.
    pub(super) fn all(roster: &[assembly::Member], history: &History) -> Vec<Member> {
        let mut by_member: BTreeMap<&str, Vec<Consultation>> = BTreeMap::new();
        for data in history.consultations() {
            by_member.entry(&data.member).or_default().push(Consultation::of(history, data));
        }
        let of = |one: &assembly::Member| Member::of(one, by_member.remove(&*one.id).unwrap_or_default());
        roster.iter().map(of).collect()
    }

    fn of(member: &assembly::Member, consulted: Vec<Consultation>) -> Member {
        let status = consulted.last().map_or_else(|| "not_asked".to_owned(), |last| last.status.clone());
        Member {
            id: member.id.to_string(),
            role: member.role.clone(),
            phase: member.phase.clone(),
            classes: member.vote_class.clone(),
            parent: member.parent.as_ref().map(ToString::to_string),
            status,
            consultations: consulted,
        }
    }

    pub fn answer(&self) -> Option<&Map<String, Json>> {
        self.consultations.iter().rev().find_map(|one| one.answer.as_ref())
    }

    pub(super) fn json(&self) -> Json {
        let mut json =
            json!({"id": self.id, "role": self.role, "status": self.status, "answer": self.answer()});
        if let Some(message) = self.consultations.last().and_then(|one| one.message.as_ref()) {
            json["message"] = json!(message);
        }
        if let Some(failure) = self.consultations.last().and_then(|one| one.failure.as_ref()) {
            json["failure"] = json!(failure);
        }
        if self.consultations.len() > 1 {
            json["consultations"] = self.consultations.iter().map(Consultation::json).collect();
        }
        json
    }
}

impl Consultation {
    fn of(history: &History, ended: &record::Consultation) -> Consultation {
        Consultation {
            invocation: ended.invocation.to_string(),
            status: ended.status.as_str().to_owned(),
            answer: ended.answer.as_ref().and_then(Json::as_object).cloned(),
            message: ended.text.clone(),
            failure: Failure::of(history, ended),
            executor: ended.executor.clone(),
            ms: ended.spent.ms.unwrap_or_default(),
        }
    }

    fn json(&self) -> Json {
        let mut json = json!({
            "invocation": self.invocation, "status": self.status, "answer": self.answer,
            "executor": self.executor, "ms": self.ms,
        });
        if let Some(failure) = &self.failure {
            json["failure"] = json!(failure);
        }
        json
    }
}
