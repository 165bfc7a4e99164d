//! Writes of a runtime outside of its workspace. `check` reports them, and they need a trusted manifest.

use std::path::{Path, PathBuf};

use quorate_adapters::{state, substrate};
use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::ports::executor::SideEffect;
use quorate_manifest::document::Document;
use quorate_manifest::runtime::Runtime;
use quorate_manifest::workspace::WorkspacePath;

use crate::service::guard::{Guard, with_suffix};
use crate::service::workspace;
use crate::service::{disk, manifests};

/// The kinds of a port that write to a path, and the key of the path in their block.
type PathKeys = [(&'static str, &'static str); 2];

const SUBSTRATES: PathKeys = [(substrate::file::KIND, "path"), (substrate::sqlite::KIND, "path")];
const STATES: PathKeys = [(state::fs::KIND, "dir"), (state::sqlite::KIND, "path")];

/// The suffixes of the files of a journal and of a database.
const BESIDE: [&str; 6] = ["", ".lock", ".idx", "-wal", "-shm", "-journal"];

/// Warns about writes outside of the workspace and returns them, since running the manifest then requires trust. Refuses a
/// link out of the workspace, because its target can change while the manifest does not.
pub(super) fn warn_external_writes(
    runtime: &Runtime,
    document: &Document,
    location: &WorkspacePath,
    (root, dir): (&Path, &Path),
    guard: &Guard,
    report: &mut Report,
    cautions: &mut Report,
) -> Vec<SideEffect> {
    let own_state = state::fs::default_dir(&runtime.id);
    let substrate = ("substrate", Some(&runtime.substrate), SUBSTRATES, "the conversation", None);
    let state = ("state", runtime.state.as_ref(), STATES, "what participants remember", Some(&*own_state));
    let mut acts = Vec::new();
    for (port, adapter, writes, what, fallback) in [substrate, state] {
        let written = match adapter {
            Some(adapter) => writes.iter().find(|(kind, _)| *kind == adapter.kind).and_then(|(_, key)| {
                let path = adapter.settings.get(*key).and_then(|path| path.as_str());
                Some((*key, path.or(fallback)?))
            }),
            None => fallback.map(|path| ("dir", path)),
        };
        let Some((key, path)) = written else { continue };
        let target = dir.join(path);
        let entry = document.root.key(port).and_then(|block| block.entry(key));
        let at = || {
            let span = entry.map_or(0..0, |entry| entry.key_span.clone());
            document.place(span, format!("{port}.{key}"))
        };
        // A journal and a database have files beside them.
        let written = BESIDE.iter().map(|end| with_suffix(&target, end));
        if let Some(why) = written.into_iter().find_map(|file| guard.occupant(&file, None)) {
            let body = Body::new(format!("cannot keep {what} at `{path}`: {why}")).at(at());
            report.refuse(codes::FILE_UNWRITABLE, body.help("name another path, which nothing else uses"));
            continue;
        }
        let by_name = !is_in_scope(root, location, path);
        if !by_name && workspace::is_inside(root, &target) {
            continue;
        }
        let target = disk::canonical_or_new(&target);
        let at = at();
        if !by_name {
            let message = format!("`{path}` leads out of the workspace by a link, to {}", target.display());
            let help = "remove the link, or name its target in the manifest and trust the manifest";
            report.refuse(codes::PATH_OUTSIDE, Body::new(message).at(at).help(help));
            continue;
        }
        let body = Body::new(format!("`{path}` is outside of the workspace, and {what} is written there"))
            .at(at)
            .help("keep it in the workspace, whose root is the directory of the outermost quorate.toml");
        cautions.warn(codes::OUTSIDE_WORKSPACE, body);
        acts.push(SideEffect::new(format!("keep {what} at {}", target.display())));
    }
    acts
}

/// The databases of conversation and states that do not exist yet.
pub(super) fn missing_databases(runtime: &Runtime, dir: &Path) -> Vec<PathBuf> {
    let ports =
        [(Some(&runtime.substrate), substrate::sqlite::KIND), (runtime.state.as_ref(), state::sqlite::KIND)];
    let named = ports.into_iter().filter_map(|(adapter, kind)| {
        let adapter = adapter.filter(|adapter| adapter.kind == kind)?;
        Some(dir.join(adapter.settings.get("path")?.as_str()?))
    });
    named.filter(|path| !path.exists()).collect()
}

/// Whether a relative path of a manifest is in the manifest's scope, or an absolute one in the workspace.
fn is_in_scope(root: &Path, location: &WorkspacePath, path: &str) -> bool {
    if Path::new(path).is_absolute() {
        manifests::location(root, Path::new(path)).is_ok()
    } else {
        location.resolve_relative(path).is_ok()
    }
}
