//! Policy `strict`: any irreducible dissent holds, blocking or not; three or more blocks hold unless the adjudicator
//! brings them down to REVISE; one or two revise; none ships.

use super::{Tally, Verdict};

pub(super) fn verdict(tally: Tally, asked: Verdict) -> Verdict {
    match tally {
        Tally { irreducible: 1.., .. } => Verdict::Hold,
        Tally { blocks: 3.., .. } if asked == Verdict::Revise => Verdict::Revise,
        Tally { blocks: 3.., .. } => Verdict::Hold,
        Tally { blocks: 1.., .. } => Verdict::Revise,
        _ => Verdict::Ship,
    }
}
