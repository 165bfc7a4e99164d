//! Files that several profiles merge into. Each lies over what was there when it was installed, so that the profiles of
//! a file are layers. Taking one out takes off those above it, takes it out, and lays the others on again: values and
//! items come back whatever the order of uninstalling. What the others remember of the file changes with it, and stands in
//! their setups as an intent until the file is written.

use std::sync::Arc;

use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::provisioning::Strategy;

use super::change::{Action, Cannot, Change, Write};
use super::files::{Access, Files, Found, Trouble};
use super::merge;
use super::setup::{self, Entry, Error, Fact, Held, Intent, Part, Setup, Store};
use super::standing::text_of;
use super::{Force, out};

/// The other profiles of a folder.
pub struct Others<'f> {
    all: Vec<Other<'f>>,
}

/// Another profile, and what becomes of what it remembers.
struct Other<'f> {
    store: Store<'f>,
    setup: Setup,
    changed: Vec<Changed>,
}

/// What another profile is to remember of a file.
struct Changed {
    dest: String,
    from: Option<String>,
    fact: Fact,
    contents: Vec<(Part, Arc<[u8]>)>,
}

/// A profile's part in a file.
struct Layer {
    base: Option<String>,
    installed: String,
    fact: Fact,
    /// Among the others; the profile itself is none of them.
    other: Option<usize>,
}

impl<'f> Others<'f> {
    /// All but one.
    ///
    /// # Errors
    /// When a setup cannot be read.
    pub fn of(files: &'f dyn Files, slug: &str) -> Result<Others<'f>, Error> {
        let mut all = Vec::new();
        for mut setup in setup::all(files)?.into_iter().filter(|setup| setup.slug != slug) {
            setup.settle(files)?;
            all.push(Other { store: Store::new(files, &setup.slug), setup, changed: Vec::new() });
        }
        all.sort_by(|a, b| (&a.setup.at, &a.setup.slug).cmp(&(&b.setup.at, &b.setup.slug)));
        Ok(Others { all })
    }

    /// Who else has a part in a file.
    pub fn sharing(&self, dest: &str) -> Vec<String> {
        let shares = |other: &&Other<'_>| other.setup.fact(dest).is_some();
        self.all.iter().filter(shares).map(|other| other.setup.slug.clone()).collect()
    }

    /// What is to be done so that a file is as it would be without a profile that was installed at `at`.
    ///
    /// # Errors
    /// When what is there or what is kept cannot be used.
    pub fn take(
        &mut self,
        store: &Store<'_>,
        at: &str,
        dest: &str,
        fact: &Fact,
        found: Option<Found>,
        force: Force,
    ) -> Result<Change, Cannot> {
        let layers = self.layers(store, at, dest, fact)?;
        let (Some(there), true) = (&found, layers.len() > 1) else {
            return out::take(store, dest, fact, found, force);
        };
        let Ok(text) = std::str::from_utf8(&there.bytes) else {
            return out::take(store, dest, fact, found, force);
        };
        let mut text = Some(text.to_owned());
        let mut notes = Vec::new();
        let mut lost = false;
        for layer in layers.iter().rev() {
            let own = layer.other.is_none();
            let Some(taken) = off(layer, text.as_deref(), if own { force } else { Force::No }) else {
                return out::take(store, dest, fact, found, force);
            };
            if own {
                lost = !taken.lost.is_empty();
                notes = [taken.lost, taken.left].concat();
            }
            text = taken.text;
        }
        for layer in &layers {
            let Some(at) = layer.other else { continue };
            text = Some(self.laid(at, dest, layer, there, text)?);
        }
        let write = match text {
            Some(text) if text.as_bytes() == there.bytes => Write::Nothing,
            Some(text) => Write::Put(text.into_bytes().into(), Access::Exactly(there.mode)),
            None => Write::Remove,
        };
        let action = match &write {
            Write::Nothing => Action::Leave,
            Write::Put(..) => Action::Change,
            Write::Remove => Action::Delete,
        };
        let aside = (lost && write != Write::Nothing).then(|| store.aside(dest, &there.bytes));
        notes.extend(aside.iter().map(|aside| format!("what was there is kept as {aside}")));
        let mut change = Change::nothing(dest, fact.strategy, found, action);
        (change.write, change.notes, change.aside) = (write, notes, aside);
        Ok(change)
    }

    /// A file as it would be without the profiles that lie above one.
    ///
    /// # Errors
    /// When what is kept cannot be read.
    pub fn below(
        &self,
        store: &Store<'_>,
        at: &str,
        dest: &str,
        fact: &Fact,
        found: &Found,
    ) -> Result<Option<Found>, Error> {
        let Ok(text) = std::str::from_utf8(&found.bytes) else { return Ok(None) };
        let mut text = Some(text.to_owned());
        for layer in
            self.layers(store, at, dest, fact)?.iter().rev().take_while(|layer| layer.other.is_some())
        {
            match off(layer, text.as_deref(), Force::No) {
                Some(taken) => text = taken.text,
                None => return Ok(None),
            }
        }
        Ok(text.map(|text| Found { bytes: text.into_bytes(), mode: found.mode }))
    }

    /// The layers of a file, the lowest first; the profile's own is among them.
    fn layers(&self, store: &Store<'_>, at: &str, dest: &str, fact: &Fact) -> Result<Vec<Layer>, Error> {
        if fact.strategy != Strategy::MergeJsonDeep {
            return Ok(Vec::new());
        }
        let mut layers = Vec::new();
        let mut own = Some(Layer::read(store, fact, None)?);
        for (index, other) in self.all.iter().enumerate() {
            let Some(fact) = other.setup.fact(dest).filter(|fact| fact.strategy == Strategy::MergeJsonDeep)
            else {
                continue;
            };
            if *at < *other.setup.at {
                layers.extend(own.take());
            }
            layers.push(Layer::read(&other.store, fact, Some(index))?);
        }
        layers.extend(own);
        // A profile that is installed again is younger than what lies over it.
        for _ in 0..layers.len() {
            for upper in 1..layers.len() {
                let lies_over = |one: &Layer, other: &Layer| {
                    one.fact.base.as_ref().is_some_and(|base| base.sha256 == other.fact.text)
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

    /// Lays another profile on a text again, and notes what it is to remember.
    fn laid(
        &mut self,
        at: usize,
        dest: &str,
        layer: &Layer,
        there: &Found,
        text: Option<String>,
    ) -> Result<String, Cannot> {
        let other = &mut self.all[at];
        let source = text_of(&other.store, Part::Installed, &layer.fact.source)?;
        let laid = match &text {
            // What cannot be merged any more was told apart before.
            Some(text) => merge::merge(text, &source).unwrap_or_else(|_| text.clone()),
            None => source,
        };
        let fact = Fact {
            base: text.as_ref().map(|text| Held { sha256: sha256_hex(text.as_bytes()), mode: there.mode }),
            text: sha256_hex(laid.as_bytes()),
            ..layer.fact.clone()
        };
        if fact != layer.fact {
            let mut contents = vec![(Part::Installed, Arc::from(laid.as_bytes()))];
            contents.extend(text.map(|text| (Part::Before, Arc::from(text.into_bytes()))));
            let from = Some(sha256_hex(&there.bytes));
            other.changed.push(Changed { dest: dest.to_owned(), from, fact, contents });
        }
        Ok(laid)
    }

    /// Writes what others are to remember, as an intent: before the files are written.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn begin(&self) -> Result<(), Trouble> {
        for other in self.all.iter().filter(|other| !other.changed.is_empty()) {
            let mut begun = other.setup.clone();
            for changed in &other.changed {
                for (part, bytes) in &changed.contents {
                    other.store.keep(*part, bytes)?;
                }
                let intent = Intent::Put { from: changed.from.clone(), fact: changed.fact.clone() };
                let installed = other.setup.fact(&changed.dest).cloned();
                begun.files.insert(changed.dest.clone(), Entry { installed, intent: Some(intent) });
            }
            other.store.save(&begun)?;
        }
        Ok(())
    }

    /// Writes what others remember, after the files are written.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn end(&self) -> Result<(), Trouble> {
        for other in self.all.iter().filter(|other| !other.changed.is_empty()) {
            let mut done = other.setup.clone();
            for Changed { dest, fact, .. } in &other.changed {
                done.files.insert(dest.clone(), Entry { installed: Some(fact.clone()), intent: None });
            }
            other.store.save(&done)?;
            other.store.tidy(&done)?;
        }
        Ok(())
    }
}

impl Layer {
    fn read(store: &Store<'_>, fact: &Fact, other: Option<usize>) -> Result<Layer, Error> {
        let base = fact.base.as_ref().map(|held| text_of(store, Part::Before, &held.sha256)).transpose()?;
        let installed = text_of(store, Part::Installed, &fact.text)?;
        Ok(Layer { base, installed, fact: fact.clone(), other })
    }
}

/// Takes a layer off a text; `None` where something is no JSON.
fn off(layer: &Layer, text: Option<&str>, force: Force) -> Option<merge::Taken> {
    let untouched = |text: Option<String>| merge::Taken { text, left: Vec::new(), lost: Vec::new() };
    match text {
        None => Some(untouched(None)),
        Some(text) if *text == layer.installed => Some(untouched(layer.base.clone())),
        Some(text) => merge::take_out(text, layer.base.as_deref(), &layer.installed, force).ok(),
    }
}
