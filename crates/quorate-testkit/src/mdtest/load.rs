//! Loads the files of a test like a check of their folder: every file that can be a manifest, in sorted order, with one
//! loader.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use quorate_diagnostics::Report;
use quorate_manifest::check::{self, Deduplicator, Discovery, FileOutcome};
use quorate_manifest::doctype::Doctype;
use quorate_manifest::loader::{Loader, Options};
use quorate_manifest::workspace::WorkspacePath;
use quorate_manifest::{Capabilities, Source, config, council};

use super::document::Test;

pub(super) struct LoadResult<'t> {
    pub(super) round: Loader<'t>,
    pub(super) report: Report,
    /// The number of files that are manifests, or were requested.
    pub(super) loaded: usize,
    pub(super) skipped: BTreeSet<String>,
}

/// Loads the files of a test.
pub(super) fn load<'t>(test: &'t Test, capabilities: &'t dyn Capabilities) -> LoadResult<'t> {
    let options =
        Options { strict_chain: strict_chain(&test.files), refs: test.expected.refs, ..Options::default() };
    let round = Loader::new(&test.files, capabilities, options);
    let mut files: BTreeMap<WorkspacePath, Discovery> = BTreeMap::new();
    for (name, named) in &test.names {
        let by_directory = check::is_candidate(name.rsplit('/').next().unwrap_or_default())
            && !name.split('/').rev().skip(1).any(|folder| folder.starts_with('.'));
        if let (Ok(spot), true) = (WorkspacePath::new(name), *named || by_directory) {
            files.insert(spot, if *named { Discovery::Explicit } else { Discovery::Walked });
        }
    }
    let spots: Vec<WorkspacePath> = files.keys().cloned().collect();
    check::register_planned(&round, &spots);
    let mut loading = LoadResult { round, report: Report::new(), loaded: 0, skipped: BTreeSet::new() };
    let mut once = Deduplicator::default();
    for (spot, named) in files {
        loading.load_file(&test.files, &spot, named, &mut once);
    }
    for path in &test.expected.loads {
        let name = path.rsplit('/').next().unwrap_or_default();
        if let Some(report) = by_path(quorate_manifest::doctype::from_name(name), path, &test.files) {
            loading.loaded += 1;
            once.add(report, &mut loading.report);
        }
    }
    loading
}

impl LoadResult<'_> {
    fn load_file(
        &mut self,
        source: &dyn Source,
        spot: &WorkspacePath,
        named: Discovery,
        once: &mut Deduplicator,
    ) {
        let path = spot.workspace_relative();
        let by_name = by_path(quorate_manifest::doctype::from_name(spot.name()), &path, source);
        let report = match by_name {
            Some(report) => Some(report),
            None => match check::check(&self.round, spot, named) {
                FileOutcome::Checked(_, report)
                | FileOutcome::Assembly(report, _)
                | FileOutcome::Unreadable(report) => Some(report),
                FileOutcome::Standalone(doctype) => by_path(Some(doctype), &path, source),
                FileOutcome::Skipped | FileOutcome::Missing => None,
            },
        };
        match report {
            Some(report) => {
                self.loaded += 1;
                once.add(report, &mut self.report);
            }
            None => drop(self.skipped.insert(path)),
        }
    }
}

/// The report of a doctype's loader that depends on the path alone; `None` for other doctypes.
fn by_path(doctype: Option<Doctype>, path: &str, source: &dyn Source) -> Option<Report> {
    match doctype? {
        Doctype::Council => Some(council::load(Path::new(path), path, source).report),
        Doctype::Config => Some(config::load(Path::new(path), path, source).report),
        _ => None,
    }
}

/// Whether the workspace's `quorate.toml` makes broken chains refusals.
fn strict_chain(source: &dyn Source) -> bool {
    let loaded = config::load(Path::new("quorate.toml"), "quorate.toml", source);
    loaded.value.is_some_and(|configuration| configuration.strict_chain)
}
