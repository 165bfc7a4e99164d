//! `assembly_xref_unresolvable`: an identity, governance, work or executor ref that leads to nothing, in the scope of
//! the layer that wrote it (M10, M14).

use quorate_diagnostics::{Body, codes};

use crate::assembly::view::View;
use crate::round::Refs;
use crate::tree::Node;

/// The refs that have to lead somewhere.
pub(crate) const KEYS: [&str; 4] = ["identity", "governance", "work", "executor"];

pub(super) fn check(view: &View<'_, '_>) {
    if view.round.options.refs == Refs::ShapeOnly {
        return;
    }
    for key in KEYS {
        let Some(node) = view.root().key(key) else { continue };
        let Some(text) = node.as_str() else { continue };
        let from = &view.chain.layer_of(node).spot;
        if let Err(unresolved) = view.round.resolves(from, text) {
            let body = Body::new(format!("`{key}` is `{text}`, and cannot be resolved: {}", unresolved.why));
            let place = view.place(node, key);
            view.refuse(
                codes::ASSEMBLY_XREF_UNRESOLVABLE,
                body.at(place)
                    .help("correct the ref, or make what it names; `--no-refs` checks the shape alone"),
            );
        }
    }
}

/// The refs of a resolved assembly, by key.
pub(crate) fn written(root: &Node) -> std::collections::BTreeMap<&'static str, String> {
    KEYS.into_iter().filter_map(|key| Some((key, root.key(key)?.as_str()?.to_owned()))).collect()
}
