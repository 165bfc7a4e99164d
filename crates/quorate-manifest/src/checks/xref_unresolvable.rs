//! `assembly_xref_unresolvable`: an identity, governance, work or executor ref whose target does not exist in the scope of
//! the document that contains it (M10, M14).

use quorate_diagnostics::{Body, codes};

use crate::assembly::check_context::CheckContext;
use crate::loader::{Refs, Unresolved};
use crate::tree::Node;
use crate::workspace::WorkspacePath;

/// The keys whose refs must resolve.
pub(crate) const KEYS: [&str; 4] = ["identity", "governance", "work", "executor"];

const HELP: &str = "correct the ref, or create its target; `--no-refs` checks only the syntax of refs";

pub(super) fn check(view: &CheckContext<'_, '_>) {
    if view.loader.options.refs == Refs::ShapeOnly {
        return;
    }
    for key in KEYS {
        let Some(node) = view.root().key(key) else { continue };
        let Some(text) = node.as_str() else { continue };
        let from = &view.chain.document_of(node).path;
        let resolved = view.loader.resolve(from, text).and_then(|location| match key {
            "governance" if !text.contains("://") => check_readable(view, location),
            _ => Ok(location),
        });
        if let Err(unresolved) = resolved {
            let body =
                Body::new(format!("`{key}` is `{text}`, which cannot be resolved: {}", unresolved.reason));
            let place = view.place(node, key);
            view.refuse(codes::ASSEMBLY_XREF_UNRESOLVABLE, body.at(place).help(unresolved.help(HELP)));
        }
    }
}

/// The text of a governance file is needed (D9).
fn check_readable(view: &CheckContext<'_, '_>, location: WorkspacePath) -> Result<WorkspacePath, Unresolved> {
    match view.loader.workspace.read(&location) {
        Ok(_) => Ok(location),
        Err(error) => Err(Unresolved {
            reason: format!("`{}` cannot be read: {error}", view.loader.display_name(&location)),
            outside_scope: false,
            suggestion: None,
        }),
    }
}

/// The refs of a resolved assembly, by key.
pub(crate) fn references(root: &Node) -> std::collections::BTreeMap<&'static str, String> {
    KEYS.into_iter().filter_map(|key| Some((key, root.key(key)?.as_str()?.to_owned()))).collect()
}
