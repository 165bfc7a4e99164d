//! `assembly_xref_unresolvable`: an identity, governance, work or executor ref that leads to nothing, in the scope of
//! the layer that wrote it (M10, M14).

use quorate_diagnostics::{Body, codes};

use crate::assembly::view::View;
use crate::round::{Refs, Unresolved};
use crate::tree::Node;
use crate::workspace::Spot;

/// The refs that have to lead somewhere.
pub(crate) const KEYS: [&str; 4] = ["identity", "governance", "work", "executor"];

const HELP: &str = "correct the ref, or make what it names; `--no-refs` checks the shape alone";

pub(super) fn check(view: &View<'_, '_>) {
    if view.round.options.refs == Refs::ShapeOnly {
        return;
    }
    for key in KEYS {
        let Some(node) = view.root().key(key) else { continue };
        let Some(text) = node.as_str() else { continue };
        let from = &view.chain.layer_of(node).spot;
        let resolved = view.round.resolves(from, text).and_then(|spot| match key {
            "governance" if !text.contains("://") => readable(view, spot),
            _ => Ok(spot),
        });
        if let Err(unresolved) = resolved {
            let body = Body::new(format!("`{key}` is `{text}`, and cannot be resolved: {}", unresolved.why));
            let place = view.place(node, key);
            view.refuse(codes::ASSEMBLY_XREF_UNRESOLVABLE, body.at(place).help(unresolved.help(HELP)));
        }
    }
}

/// A policy is a file, and its text is needed (D9).
fn readable(view: &View<'_, '_>, spot: Spot) -> Result<Spot, Unresolved> {
    match view.round.workspace.read(&spot) {
        Ok(_) => Ok(spot),
        Err(error) => Err(Unresolved {
            why: format!("`{}` cannot be read: {error}", view.round.shown(&spot)),
            outside: false,
            near: None,
        }),
    }
}

/// The refs of a resolved assembly, by key.
pub(crate) fn written(root: &Node) -> std::collections::BTreeMap<&'static str, String> {
    KEYS.into_iter().filter_map(|key| Some((key, root.key(key)?.as_str()?.to_owned()))).collect()
}
