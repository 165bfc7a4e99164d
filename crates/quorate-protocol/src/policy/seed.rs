//! Policy `seed`: three or more irreducible blocks hold; three or more blocks hold unless the adjudicator argues for
//! REVISE; everything else ships, with the brief.
//!
//! It deviates from a literal "otherwise SHIP": three blocks without a downgrade are a HOLD.

use super::{Tally, Verdict};

pub(super) fn verdict(tally: Tally, asked: Verdict) -> Verdict {
    match tally {
        Tally { irreducible_blocks: 3.., .. } => Verdict::Hold,
        Tally { blocks: 3.., .. } if asked == Verdict::Revise => Verdict::Revise,
        Tally { blocks: 3.., .. } => Verdict::Hold,
        _ => Verdict::Ship,
    }
}
