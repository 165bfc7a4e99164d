//! `assembly_locked_trait_match_mode_unsupported`: `matchMode` is semantic, but no embedder is registered (L4).

use quorate_diagnostics::{Body, codes};

use crate::assembly::MatchMode;
use crate::assembly::check_context::CheckContext;

pub(super) fn check(view: &CheckContext<'_, '_>) {
    if view.manifest.match_mode != Some(MatchMode::Semantic) || view.loader.capabilities.has_embedder() {
        return;
    }
    let place = view.root().key("matchMode").map(|node| view.place(node, "matchMode"));
    let mut body = Body::new("no embedder is registered; the locked traits are matched as text");
    body.place = place;
    view.warn(
        codes::ASSEMBLY_LOCKED_TRAIT_MATCH_MODE_UNSUPPORTED,
        body.help("list other words for each trait, since synonyms are not found, or register an embedder"),
    );
}
