//! The conversations of a workspace, for front ends that have no manifest at hand: every runtime manifest below the root has
//! one, under an id that follows from the manifest's path.
//!
//! `talks/state.rs` reports the state of a conversation, `talks/activity.rs` the participants that are being asked, and
//! `talks/answer.rs` answers open turns.

pub mod activity;
pub mod answer;
pub mod state;

use std::path::PathBuf;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::entropy::sha256_hex;
use quorate_manifest::doctype::Doctype;
use quorate_manifest::loader::{OpenResult, Refs};
use schemars::JsonSchema;
use serde::Serialize;

use super::disk;
use super::environment::Environment;
use super::error::ServiceError;
use super::host::Host;
use super::manifests::{Manifests, location};
use super::root::Root;
use super::runtime::{self, Runtime};
use super::workspace::PathOverrides;

/// How many hexadecimal digits of the hash an id has.
const ID_DIGITS: usize = 12;

/// A conversation of the workspace
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Talk {
    /// Follows from the manifest's path: the same as long as the file is there
    pub id: String,
    /// The runtime's id; null if the manifest has none
    pub runtime: Option<String>,
    /// The manifest, from the workspace's root
    pub manifest: String,
    #[serde(skip)]
    #[schemars(skip)]
    pub path: PathBuf,
}

/// The conversations of a workspace, by the paths of their manifests.
///
/// # Errors
/// When the root cannot be read.
pub fn list(environment: &Environment, root: &Root, host: &Host) -> Result<Vec<Talk>, ServiceError> {
    let manifests = Manifests::open(environment, root.dir(), Refs::ShapeOnly)?;
    let loader = manifests.loader(host);
    let found = disk::walk(root.dir()).map_err(|error| {
        let body = Body::new(format!("cannot read the workspace {}: {error}", root.dir().display()));
        ServiceError::configuration(codes::FILE_UNREADABLE, body)
    })?;
    let is_candidate = |path: &PathBuf| {
        let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
        ["yaml", "yml"].contains(&end)
    };
    let mut talks = Vec::new();
    for path in found.into_iter().map(|entry| entry.path).chain(hidden(root)).filter(is_candidate) {
        let Ok(location) = location(root.dir(), &path) else { continue };
        // The loader does not open a link that leads out of the root.
        let OpenResult::Document(document) = loader.open(&location) else { continue };
        if document.doctype != Doctype::Runtime {
            continue;
        }
        let manifest = location.workspace_relative();
        let id = format!("t{}", &sha256_hex(manifest.as_bytes())[..ID_DIGITS]);
        let runtime = document.root.key("id").and_then(|id| id.as_str()).map(str::to_owned);
        talks.push(Talk { id, runtime, manifest, path });
    }
    talks.sort_by(|a, b| a.manifest.cmp(&b.manifest));
    Ok(talks)
}

/// The manifest in the hidden directory `.runtime`, which walks skip.
fn hidden(root: &Root) -> Option<PathBuf> {
    Some(root.dir().join(".runtime/multi-agent.yaml")).filter(|path| path.is_file())
}

/// The conversation with an id, or of the only runtime with that id.
///
/// # Errors
/// `quorate:conversation_unknown` if no conversation matches.
pub fn find(environment: &Environment, root: &Root, host: &Host, id: &str) -> Result<Talk, ServiceError> {
    let talks = list(environment, root, host)?;
    let mut of_runtime = talks.iter().filter(|talk| talk.runtime.as_deref() == Some(id));
    let by_runtime = of_runtime.next().filter(|_| of_runtime.next().is_none());
    let found = talks.iter().find(|talk| talk.id == id).or(by_runtime).cloned();
    found.ok_or_else(|| {
        let body = Body::new(format!("the workspace has no conversation `{id}`"));
        let known: Vec<&str> = talks.iter().map(|talk| &*talk.id).collect();
        let help = match known.is_empty() {
            true => "run `quorate init runtime` to create a runtime manifest".to_owned(),
            false => format!("the conversations are {}", known.join(", ")),
        };
        ServiceError::not_found(codes::CONVERSATION_UNKNOWN, body.help(help))
    })
}

/// Whether opening a conversation may create files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    ReadOnly,
    ReadWrite,
}

/// Opens the runtime of a conversation, by the manifest's current content.
///
/// # Errors
/// As [`runtime::open`]; and if `access` is read-only and reading would create a database.
pub fn open(
    environment: &Environment,
    places: &PathOverrides,
    root: &Root,
    host: &Host,
    (talk, access): (&Talk, Access),
) -> Result<Runtime, ServiceError> {
    let request = runtime::Request {
        path: talk.path.clone(),
        root: Some(root.dir().to_owned()),
        ..runtime::Request::default()
    };
    let runtime = runtime::open(environment, places, &request, host)?;
    if let (Access::ReadOnly, Some(missing)) = (access, runtime.missing_databases.first()) {
        let message = format!("the database {} of `{}` does not exist yet", missing.display(), runtime.id);
        let help = "run `quorate say` or `quorate run` to begin the conversation";
        return Err(ServiceError::not_found(codes::CONVERSATION_UNKNOWN, Body::new(message).help(help)));
    }
    Ok(runtime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "a test's own files")]
    fn workspace(manifests: &[(&str, &str)]) -> (tempfile::TempDir, Environment, Root) {
        let dir = tempfile::tempdir().unwrap();
        for (path, id) in manifests {
            let path = dir.path().join("root").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let text = format!("schema: agentruntimes/v1\nkind: MultiAgentRuntime\nid: {id}\n");
            std::fs::write(path, text).unwrap();
        }
        std::fs::write(dir.path().join("outside.yaml"), "schema: agentruntimes/v1\nid: outside\n").unwrap();
        let root = Root::open(dir.path().join("root")).unwrap();
        (dir, Environment::new(root.dir()), root)
    }

    #[test]
    fn every_runtime_below_the_root_has_a_conversation_with_a_stable_id() {
        let paths = [
            ("a.yaml", "one"),
            ("deep/b.yml", "two"),
            ("deep/c.yaml", "two"),
            (".runtime/multi-agent.yaml", "four"),
        ];
        let (_dir, environment, root) = workspace(&paths);
        let talks = list(&environment, &root, &Host::new()).unwrap();
        let shown: Vec<_> =
            talks.iter().map(|talk| (&*talk.manifest, talk.runtime.as_deref().unwrap())).collect();
        assert_eq!(
            shown,
            [
                (".runtime/multi-agent.yaml", "four"),
                ("a.yaml", "one"),
                ("deep/b.yml", "two"),
                ("deep/c.yaml", "two")
            ]
        );
        assert_eq!(talks[1].id, "t".to_owned() + &sha256_hex(b"a.yaml")[..ID_DIGITS]);
        let find = |id: &str| find(&environment, &root, &Host::new(), id).map(|talk| talk.manifest);
        assert_eq!(
            (find(&talks[2].id).unwrap(), find("one").unwrap()),
            ("deep/b.yml".into(), "a.yaml".into())
        );
        for unknown in ["two", "../outside.yaml", "a.yaml", "", "/etc/passwd"] {
            let error = find(unknown).unwrap_err();
            assert_eq!(error.report.refusals[0].code, codes::CONVERSATION_UNKNOWN, "{unknown}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_out_of_the_root_does_not_count_as_a_conversation() {
        let (dir, environment, root) = workspace(&[("a.yaml", "one")]);
        let link = root.dir().join("link.yaml");
        std::os::unix::fs::symlink(dir.path().join("outside.yaml"), link).unwrap();
        let talks = list(&environment, &root, &Host::new()).unwrap();
        assert_eq!(talks.len(), 1, "{talks:?}");
    }
}
