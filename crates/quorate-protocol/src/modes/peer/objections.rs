//! Objections: who objected, whether they withdrew it, and whether any member answered it. An exchange may end over an
//! objection; the outcome then says so.

use std::collections::BTreeMap;

use serde_json::json;

use super::super::assembly::Completion;
use super::{Exchange, Log, ModeContext};
use crate::Json;

/// The last objection of each member.
#[derive(Default)]
pub(super) struct Objections(BTreeMap<usize, Objection>);

struct Objection {
    round: u32,
    withdrawn: bool,
}

impl Objections {
    /// What a member says of objections in a round. Only a plain no takes one back: who says nothing of it, or gives no
    /// answer, leaves it standing (X5).
    pub(super) fn update(&mut self, index: usize, round: u32, says: Option<bool>) {
        match says {
            Some(true) => drop(self.0.insert(index, Objection { round, withdrawn: false })),
            Some(false) => {
                if let Some(objection) = self.0.get_mut(&index) {
                    objection.withdrawn = true;
                }
            }
            None => {}
        }
    }

    /// In the outcome: all of them, and whose still stand.
    pub(super) fn write_outcome(
        &self,
        context: &ModeContext,
        log: &Log,
        conduct: &Exchange,
        ending: &mut Completion,
    ) {
        let id = |index: usize| &*context.member(index).id;
        let standing = self.0.iter().filter(|(_, one)| !one.withdrawn).map(|(index, _)| id(*index));
        let all = self.0.iter().map(|(index, one)| {
            json!({
                "member": id(*index), "round": one.round, "takenBack": one.withdrawn,
                "answered": log.reached_since(context, conduct, *index, one.round),
            })
        });
        ending.extra.insert("objecting".into(), standing.collect::<Json>());
        ending.extra.insert("objections".into(), all.collect::<Json>());
    }
}
