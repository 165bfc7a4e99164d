//! Policy `seed`: three or more blocks hold; if all of them are reducible, the adjudicator can lower them to REVISE;
//! everything else ships, with the brief.
//!
//! It deviates from a literal "otherwise SHIP": three blocks without a downgrade, or with an irreducible one among them, are
//! a HOLD.

use super::{Tally, Verdict};

pub(super) fn verdict(tally: Tally, asked: Verdict) -> Verdict {
    match tally {
        Tally { blocks: 3.., irreducible_blocks: 0, .. } if asked == Verdict::Revise => Verdict::Revise,
        Tally { blocks: 3.., .. } => Verdict::Hold,
        _ => Verdict::Ship,
    }
}
