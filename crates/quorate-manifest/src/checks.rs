//! Checks of an assembly with a resolved chain, beyond its schema: one file for each code.

mod appliesto_unresolvable;
mod field_without_effect;
mod gather_params_invalid;
mod gather_unknown;
mod governance_exceeded;
mod governance_widened;
mod hierarchy;
mod locked_trait_doubtful;
mod locked_trait_match_mode;
mod member_field_dropped;
mod member_id_collision;
mod member_persona_unresolvable;
mod member_without_phase;
mod members_missing;
mod metadata_quorate;
mod number_unusable;
mod pattern_invalid;
mod risk_levels_invalid;
mod rule_without_effect;
mod synthesis_rule_invalid;
mod synthesis_terminal_chain;
mod synthesis_unknown_member;
mod terminal_replaced;
mod ttl_out_of_range;
mod unusable_duration;
pub(crate) mod xref_unresolvable;

pub(crate) use member_id_collision::check as collisions;
pub(crate) use number_unusable::check as numbers;

use crate::assembly::check_context::CheckContext;

/// All checks, in the order of a manifest's keys.
pub(crate) const ALL: &[fn(&CheckContext<'_, '_>)] = &[
    appliesto_unresolvable::check,
    member_persona_unresolvable::check,
    field_without_effect::check,
    member_field_dropped::check,
    member_without_phase::check,
    members_missing::check,
    gather_unknown::check,
    gather_params_invalid::check,
    metadata_quorate::check,
    hierarchy::check,
    synthesis_rule_invalid::check,
    synthesis_unknown_member::check,
    synthesis_terminal_chain::check,
    rule_without_effect::check,
    terminal_replaced::check,
    risk_levels_invalid::check,
    pattern_invalid::check,
    locked_trait_doubtful::check,
    locked_trait_match_mode::check,
    unusable_duration::check,
    ttl_out_of_range::check,
    xref_unresolvable::check,
    governance_widened::check,
    governance_exceeded::check,
];
