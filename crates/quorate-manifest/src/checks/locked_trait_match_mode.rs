//! `assembly_locked_trait_match_mode_unsupported`: traits are to be matched by meaning and nobody can (L4).

use quorate_diagnostics::{Body, codes};

use crate::assembly::MatchMode;
use crate::assembly::check_context::CheckContext;

pub(super) fn check(view: &CheckContext<'_, '_>) {
    if view.manifest.match_mode != Some(MatchMode::Semantic) || view.loader.capabilities.has_embedder() {
        return;
    }
    let place = view.root().key("matchMode").map(|node| view.place(node, "matchMode"));
    let mut body = Body::new("there is no embedder here; the locked traits are matched as text");
    body.place = place;
    view.warn(
        codes::ASSEMBLY_LOCKED_TRAIT_MATCH_MODE_UNSUPPORTED,
        body.help("what means the same in other words passes; list the words that betray a trait, or register an embedder"),
    );
}
