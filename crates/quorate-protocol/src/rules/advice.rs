//! The members' advice as rules see it, and what rules make of it.

use crate::Name;
use crate::answers::advice::Advice;

/// What a member gave, as rules see it.
pub(crate) struct MemberAdvice {
    pub(crate) member_index: usize,
    pub(crate) member: Name,
    pub(crate) advice: Advice,
    /// Whether it has a suggestion that no earlier rule has emitted (A4).
    pub(crate) may_emit: bool,
}

/// What a rule emits.
pub(crate) struct Emission {
    pub(crate) drafts: Vec<Draft>,
    /// Whose words made it fire.
    pub(crate) members: Vec<Name>,
    /// Whether it drops what earlier rules emitted and ends the synthesis.
    pub(crate) exclusive: bool,
}

/// A fragment that a rule asks for.
pub(crate) struct Draft {
    pub(crate) member_index: usize,
    pub(crate) priority: u8,
}
