//! Loads everything in a test, as a check of the folder that holds it would: every file that can be a manifest, in
//! sorted order, in one round.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use quorate_diagnostics::Report;
use quorate_manifest::check::{self, Checked, Named, Once};
use quorate_manifest::doctype::Doctype;
use quorate_manifest::round::{Options, Round};
use quorate_manifest::workspace::Spot;
use quorate_manifest::{Host, Source, council, host};

use super::document::Test;

/// What loading gave.
pub(super) struct Loading<'t> {
    pub(super) round: Round<'t>,
    pub(super) report: Report,
    /// How many files are manifests, or were asked for.
    pub(super) loaded: usize,
    pub(super) passed_over: BTreeSet<String>,
}

/// Loads the files of a test.
pub(super) fn load<'t>(test: &'t Test, known: &'t dyn Host) -> Loading<'t> {
    let options =
        Options { strict_chain: strict_chain(&test.files), refs: test.expected.refs, ..Options::default() };
    let round = Round::new(&test.files, known, options);
    let mut files: BTreeMap<Spot, Named> = BTreeMap::new();
    for (name, named) in &test.names {
        let by_directory = check::is_candidate(name.rsplit('/').next().unwrap_or_default())
            && !name.split('/').rev().skip(1).any(|folder| folder.starts_with('.'));
        if let (Ok(spot), true) = (Spot::new(name), *named || by_directory) {
            files.insert(spot, if *named { Named::Explicitly } else { Named::ByDirectory });
        }
    }
    let spots: Vec<Spot> = files.keys().cloned().collect();
    check::plan(&round, &spots);
    let mut loading = Loading { round, report: Report::new(), loaded: 0, passed_over: BTreeSet::new() };
    let mut once = Once::default();
    for (spot, named) in files {
        loading.one(&test.files, &spot, named, &mut once);
    }
    for path in &test.expected.loads {
        let name = path.rsplit('/').next().unwrap_or_default();
        if let Some(report) = by_path(quorate_manifest::doctype::by_name(name), path, &test.files) {
            loading.loaded += 1;
            once.keep(report, &mut loading.report);
        }
    }
    loading
}

impl Loading<'_> {
    fn one(&mut self, source: &dyn Source, spot: &Spot, named: Named, once: &mut Once) {
        let path = spot.in_workspace();
        let by_name = by_path(quorate_manifest::doctype::by_name(spot.name()), &path, source);
        let report = match by_name {
            Some(report) => Some(report),
            None => match check::check(&self.round, spot, named) {
                Checked::Said(_, report) | Checked::Assembly(report, _) | Checked::Unreadable(report) => {
                    Some(report)
                }
                Checked::Elsewhere(doctype) => by_path(Some(doctype), &path, source),
                Checked::PassedOver | Checked::Missing => None,
            },
        };
        match report {
            Some(report) => {
                self.loaded += 1;
                once.keep(report, &mut self.report);
            }
            None => drop(self.passed_over.insert(path)),
        }
    }
}

/// What the loader of a doctype says that goes by its path alone; `None` for others.
fn by_path(doctype: Option<Doctype>, path: &str, source: &dyn Source) -> Option<Report> {
    match doctype? {
        Doctype::Council => Some(council::load(Path::new(path), path, source).report),
        Doctype::Host => Some(host::load(Path::new(path), path, source).report),
        _ => None,
    }
}

/// What the workspace's `quorate.toml` says of broken chains.
fn strict_chain(source: &dyn Source) -> bool {
    let loaded = host::load(Path::new("quorate.toml"), "quorate.toml", source);
    loaded.value.is_some_and(|configuration| configuration.strict_chain)
}
