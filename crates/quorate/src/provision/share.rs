//! Files that several profiles merge into. The profiles of a file are layers, each over the content at the time of its
//! installation. To remove a layer, the plan removes the layers above it, then the layer itself, and merges the others
//! again. Values therefore return in any order of uninstalling. The records of the other profiles change with the file, and
//! their setups have the change as an intent until the file is written.

use std::sync::Arc;

use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::provisioning::Strategy;

use super::change::{self, ChangeError, FileAction, FileChange, FileWrite, stored_text};
use super::files::{Access, FileContent, FileError, TargetFiles};
use super::setup::{
    self, ContentKind, Entry, InstallRecord, Intent, Setup, SetupError, Store, StoredContent,
};
use super::{EditPolicy, merge};

/// The other profiles of a folder.
pub(super) struct OtherProfiles<'f> {
    all: Vec<OtherProfile<'f>>,
}

/// Another profile, and the changes of its records.
struct OtherProfile<'f> {
    store: Store<'f>,
    setup: Setup,
    changed: Vec<PendingUpdate>,
}

/// Another profile's new entry for a file.
struct PendingUpdate {
    dest: String,
    from: Option<String>,
    fact: InstallRecord,
    contents: Vec<(ContentKind, Arc<[u8]>)>,
}

/// A profile's part in a file.
struct Layer {
    base: Option<String>,
    installed: String,
    fact: InstallRecord,
    /// The index in [`OtherProfiles`]; `None` for the profile itself.
    other: Option<usize>,
}

impl<'f> OtherProfiles<'f> {
    /// The profiles of a folder except `slug`.
    ///
    /// # Errors
    /// If a setup cannot be read.
    pub(super) fn of(files: &'f dyn TargetFiles, slug: &str) -> Result<OtherProfiles<'f>, SetupError> {
        let mut all = Vec::new();
        for mut setup in setup::load_all(files)?.into_iter().filter(|setup| setup.slug != slug) {
            setup.recover(files)?;
            all.push(OtherProfile { store: Store::new(files, &setup.slug), setup, changed: Vec::new() });
        }
        all.sort_by(|a, b| (&a.setup.at, &a.setup.slug).cmp(&(&b.setup.at, &b.setup.slug)));
        Ok(OtherProfiles { all })
    }

    /// The slugs of the other profiles with a part in a file.
    pub(super) fn profiles_sharing(&self, dest: &str) -> Vec<String> {
        let shares = |other: &&OtherProfile<'_>| other.setup.install_record(dest).is_some();
        self.all.iter().filter(shares).map(|other| other.setup.slug.clone()).collect()
    }

    /// Plans the change that removes a profile's part of a file; the profile was installed at `at`.
    ///
    /// # Errors
    /// If an existing file or the setup ledger cannot be used.
    pub(super) fn plan_removal(
        &mut self,
        store: &Store<'_>,
        at: &str,
        dest: &str,
        fact: &InstallRecord,
        found: Option<FileContent>,
        policy: EditPolicy,
    ) -> Result<FileChange, ChangeError> {
        let layers = self.layers(store, at, dest, fact)?;
        let (Some(there), true) = (&found, layers.len() > 1) else {
            return change::plan_removal(store, dest, fact, found, policy);
        };
        let Ok(text) = std::str::from_utf8(&there.bytes) else {
            return change::plan_removal(store, dest, fact, found, policy);
        };
        let mut text = Some(text.to_owned());
        let mut notes = Vec::new();
        let mut lost = false;
        for layer in layers.iter().rev() {
            let own = layer.other.is_none();
            let Some(taken) =
                remove_layer(layer, text.as_deref(), if own { policy } else { EditPolicy::Protect })
            else {
                return change::plan_removal(store, dest, fact, found, policy);
            };
            if own {
                lost = !taken.lost.is_empty();
                notes = [taken.lost, taken.left].concat();
            }
            text = taken.text;
        }
        for layer in &layers {
            let Some(at) = layer.other else { continue };
            text = Some(self.reapply(at, dest, layer, there, text)?);
        }
        let write = match text {
            Some(text) if text.as_bytes() == there.bytes => FileWrite::Nothing,
            Some(text) => FileWrite::Put(text.into_bytes().into(), Access::Exactly(there.mode)),
            None => FileWrite::Remove,
        };
        let action = match &write {
            FileWrite::Nothing => FileAction::Leave,
            FileWrite::Put(..) => FileAction::Change,
            FileWrite::Remove => FileAction::Delete,
        };
        let aside_path = (lost && write != FileWrite::Nothing).then(|| store.aside_path(dest, &there.bytes));
        let kept = |aside_path| format!("the earlier content is kept as {aside_path}");
        notes.extend(aside_path.iter().map(kept));
        let mut change = FileChange::nothing(dest, fact.strategy, found, action);
        (change.write, change.notes, change.aside) = (write, notes, aside_path);
        Ok(change)
    }

    /// The content of a file without the layers above a profile.
    ///
    /// # Errors
    /// If a stored content cannot be read.
    pub(super) fn without_layers_above(
        &self,
        store: &Store<'_>,
        at: &str,
        dest: &str,
        fact: &InstallRecord,
        found: &FileContent,
    ) -> Result<Option<FileContent>, SetupError> {
        let Ok(text) = std::str::from_utf8(&found.bytes) else { return Ok(None) };
        let mut text = Some(text.to_owned());
        for layer in
            self.layers(store, at, dest, fact)?.iter().rev().take_while(|layer| layer.other.is_some())
        {
            match remove_layer(layer, text.as_deref(), EditPolicy::Protect) {
                Some(taken) => text = taken.text,
                None => return Ok(None),
            }
        }
        Ok(text.map(|text| FileContent { bytes: text.into_bytes(), mode: found.mode }))
    }

    /// The layers of a file with the profile's own, lowest first.
    fn layers(
        &self,
        store: &Store<'_>,
        at: &str,
        dest: &str,
        fact: &InstallRecord,
    ) -> Result<Vec<Layer>, SetupError> {
        if fact.strategy != Strategy::MergeJsonDeep {
            return Ok(Vec::new());
        }
        let mut layers = Vec::new();
        let mut own_layer = Some(Layer::read(store, fact, None)?);
        for (index, other) in self.all.iter().enumerate() {
            let Some(fact) =
                other.setup.install_record(dest).filter(|fact| fact.strategy == Strategy::MergeJsonDeep)
            else {
                continue;
            };
            if *at < *other.setup.at {
                layers.extend(own_layer.take());
            }
            layers.push(Layer::read(&other.store, fact, Some(index))?);
        }
        layers.extend(own_layer);
        // A profile that was installed again has a later time than the layers above it.
        for _ in 0..layers.len() {
            for upper in 1..layers.len() {
                let lies_over = |layer: &Layer, other: &Layer| {
                    layer.fact.base.as_ref().is_some_and(|base| base.sha256 == other.fact.text)
                };
                if lies_over(&layers[upper - 1], &layers[upper])
                    && !lies_over(&layers[upper], &layers[upper - 1])
                {
                    layers.swap(upper - 1, upper);
                }
            }
        }
        Ok(layers)
    }

    /// Merges another profile into a text again, and notes the change of its record.
    fn reapply(
        &mut self,
        at: usize,
        dest: &str,
        layer: &Layer,
        there: &FileContent,
        text: Option<String>,
    ) -> Result<String, ChangeError> {
        let other = &mut self.all[at];
        let source = stored_text(&other.store, ContentKind::Installed, &layer.fact.source)?;
        let laid = match &text {
            // Texts that cannot be merged were handled before.
            Some(text) => merge::merge_json(text, &source).unwrap_or_else(|_| text.clone()),
            None => source,
        };
        let fact = InstallRecord {
            base: text
                .as_ref()
                .map(|text| StoredContent { sha256: sha256_hex(text.as_bytes()), mode: there.mode }),
            text: sha256_hex(laid.as_bytes()),
            ..layer.fact.clone()
        };
        if fact != layer.fact {
            let mut contents = vec![(ContentKind::Installed, Arc::from(laid.as_bytes()))];
            contents.extend(text.map(|text| (ContentKind::Before, Arc::from(text.into_bytes()))));
            let from = Some(sha256_hex(&there.bytes));
            other.changed.push(PendingUpdate { dest: dest.to_owned(), from, fact, contents });
        }
        Ok(laid)
    }

    /// Writes the other profiles' new records as intents, before the files are written.
    ///
    /// # Errors
    /// If a setup cannot be written.
    pub(super) fn write_intents(&self) -> Result<(), FileError> {
        for other in self.all.iter().filter(|other| !other.changed.is_empty()) {
            let mut begun = other.setup.clone();
            for changed in &other.changed {
                for (part, bytes) in &changed.contents {
                    other.store.store_content(*part, bytes)?;
                }
                let intent = Intent::Put { from: changed.from.clone(), fact: changed.fact.clone() };
                let installed = other.setup.install_record(&changed.dest).cloned();
                begun.files.insert(changed.dest.clone(), Entry { installed, intent: Some(intent) });
            }
            other.store.save(&begun)?;
        }
        Ok(())
    }

    /// Writes the other profiles' new records, after the files are written.
    ///
    /// # Errors
    /// If a setup cannot be written.
    pub(super) fn write_results(&self) -> Result<(), FileError> {
        for other in self.all.iter().filter(|other| !other.changed.is_empty()) {
            let mut done = other.setup.clone();
            for PendingUpdate { dest, fact, .. } in &other.changed {
                done.files.insert(dest.clone(), Entry { installed: Some(fact.clone()), intent: None });
            }
            other.store.save(&done)?;
            other.store.remove_unreferenced(&done)?;
        }
        Ok(())
    }
}

impl Layer {
    fn read(store: &Store<'_>, fact: &InstallRecord, other: Option<usize>) -> Result<Layer, SetupError> {
        let base = fact
            .base
            .as_ref()
            .map(|held| stored_text(store, ContentKind::Before, &held.sha256))
            .transpose()?;
        let installed = stored_text(store, ContentKind::Installed, &fact.text)?;
        Ok(Layer { base, installed, fact: fact.clone(), other })
    }
}

/// Removes a layer from a text; `None` if a text is not JSON.
fn remove_layer(layer: &Layer, text: Option<&str>, policy: EditPolicy) -> Option<merge::Removal> {
    let untouched = |text: Option<String>| merge::Removal { text, left: Vec::new(), lost: Vec::new() };
    match text {
        None => Some(untouched(None)),
        Some(text) if *text == layer.installed => Some(untouched(layer.base.clone())),
        Some(text) => merge::remove_json(text, layer.base.as_deref(), &layer.installed, policy).ok(),
    }
}
