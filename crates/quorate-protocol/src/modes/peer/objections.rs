//! Who has objected, whether that was taken back, and whether anybody answered it. A talk may end over an objection; the
//! outcome then says so.

use std::collections::BTreeMap;

use serde_json::json;

use super::super::assembly::Ending;
use super::{Case, Conduct, Log};
use crate::Json;

/// The last objection of each seat.
#[derive(Default)]
pub(super) struct Objections(BTreeMap<usize, Objection>);

struct Objection {
    round: u32,
    taken_back: bool,
}

impl Objections {
    /// What a member says of objections in a round. Only a plain no takes one back: who says nothing of it, or gives no
    /// answer, leaves it standing (X5).
    pub(super) fn hear(&mut self, seat: usize, round: u32, says: Option<bool>) {
        match says {
            Some(true) => drop(self.0.insert(seat, Objection { round, taken_back: false })),
            Some(false) => {
                if let Some(objection) = self.0.get_mut(&seat) {
                    objection.taken_back = true;
                }
            }
            None => {}
        }
    }

    /// In the outcome: all of them, and whose still stand.
    pub(super) fn write(&self, case: &Case, log: &Log, conduct: &Conduct, ending: &mut Ending) {
        let id = |seat: usize| &*case.member(seat).id;
        let standing = self.0.iter().filter(|(_, one)| !one.taken_back).map(|(seat, _)| id(*seat));
        let all = self.0.iter().map(|(seat, one)| {
            json!({
                "member": id(*seat), "round": one.round, "takenBack": one.taken_back,
                "answered": log.reached_since(case, conduct, *seat, one.round),
            })
        });
        ending.also.insert("objecting".into(), standing.collect::<Json>());
        ending.also.insert("objections".into(), all.collect::<Json>());
    }
}
