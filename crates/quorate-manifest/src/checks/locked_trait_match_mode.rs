//! `assembly_locked_trait_match_mode_unsupported`: `matchMode` is semantic, but there is no embedder (L4).

use quorate_diagnostics::{Body, codes};

use crate::assembly::MatchMode;
use crate::assembly::check_context::CheckContext;

pub(super) fn check(view: &CheckContext<'_, '_>) {
    let has_embedder = view.loader.options.has_embedder || view.loader.capabilities.has_embedder();
    if view.manifest.match_mode != Some(MatchMode::Semantic) || has_embedder {
        return;
    }
    let place = view.root().key("matchMode").map(|node| view.place(node, "matchMode"));
    let mut body = Body::new("there is no embedder; the locked traits are matched as text");
    body.place = place;
    view.warn(
        codes::ASSEMBLY_LOCKED_TRAIT_MATCH_MODE_UNSUPPORTED,
        body.help("configure an `[embedder]` in quorate.toml, or list other words for each trait: synonyms are not found"),
    );
}
