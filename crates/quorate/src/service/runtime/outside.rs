//! What a runtime writes outside of its workspace: told, and not refused, since somebody may want it so.

use std::path::Path;

use quorate_adapters::{state, substrate};
use quorate_diagnostics::{Body, Report, codes};
use quorate_manifest::layer::Layer;
use quorate_manifest::runtime::Runtime;
use quorate_manifest::workspace::Spot;

use crate::service::manifests;

/// Which kinds of a port write where a key of their block says.
type Writes = [(&'static str, &'static str); 2];

const SUBSTRATES: Writes = [(substrate::file::KIND, "path"), (substrate::sqlite::KIND, "path")];
const STATES: Writes = [(state::fs::KIND, "dir"), (state::sqlite::KIND, "path")];

/// Warns of what is written elsewhere.
pub(super) fn caution(runtime: &Runtime, layer: &Layer, spot: &Spot, root: &Path, cautions: &mut Report) {
    let substrate = ("substrate", Some(&runtime.substrate), SUBSTRATES, "the conversation is written there");
    let state = ("state", runtime.state.as_ref(), STATES, "what participants remember is written there");
    for (port, adapter, writes, what) in [substrate, state] {
        let Some(adapter) = adapter else { continue };
        for (_, key) in writes.iter().filter(|(kind, _)| *kind == adapter.kind) {
            let Some(path) = adapter.settings.get(*key).and_then(|path| path.as_str()) else { continue };
            if lies_in(root, spot, path) {
                continue;
            }
            let entry = layer.root.key(port).and_then(|block| block.entry(key));
            let span = entry.map_or(0..0, |entry| entry.key_span.clone());
            let body = Body::new(format!("`{path}` leads out of the workspace: {what}"))
                .at(layer.place(span, format!("{port}.{key}")))
                .help("keep it in the workspace, which begins where the outermost quorate.toml lies");
            cautions.warn(codes::OUTSIDE_WORKSPACE, body);
        }
    }
}

/// Whether a path of a manifest lies in the scope that its role files have to lie in; an absolute one, in the workspace.
fn lies_in(root: &Path, spot: &Spot, path: &str) -> bool {
    if Path::new(path).is_absolute() {
        manifests::spot(root, Path::new(path)).is_ok()
    } else {
        spot.beside(path).is_ok()
    }
}
