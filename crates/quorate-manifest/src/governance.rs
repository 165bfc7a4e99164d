//! Governance files (D9): whose signatures count, how long answers are kept at least, and how long advice may hold. An
//! assembly binds one by `governance`; each layer of a chain may bind its own, and together they only tighten.
//!
//! The file is Markdown with frontmatter, or YAML. A text with none of the keys below, of whatever format, is somebody
//! else's policy: it may be bound, and binds nothing here.

mod read;

use std::sync::Arc;

use quorate_diagnostics::{Place, Report};

use crate::duration::Iso;
use crate::keyring::Key;
use crate::layer::Layer;
use crate::round::{Chain, Reference, Refs, Round};
use crate::tree::Node;
use crate::workspace::{Error, Spot};

/// The file that stands for a folder that a ref leads to.
const FILE: &str = "GOVERNANCE.md";

/// What one governance file says.
#[derive(Debug, Clone, Default)]
pub struct Governance {
    /// `keys` and `keyring`: whose signatures count; `None` where it does not say.
    pub keys: Option<Vec<Key>>,
    /// Keys that are none of ours, where they stand: nothing that we can verify is signed with them.
    pub foreign: Vec<Place>,
    /// `retention.floor`: how long answers are kept at least, and where it stands.
    pub floor: Option<(Floor, Place)>,
    /// `overlays.ttl.min`: the shortest time that advice may hold, and where it stands.
    pub ttl_min: Option<(Iso, Place)>,
    /// `overlays.ttl.max`: the longest.
    pub ttl_max: Option<(Iso, Place)>,
    /// `approvals`: where it stands. What it asks for is not looked at.
    pub approvals: Option<Place>,
}

/// How long answers are kept at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Floor {
    /// So many days.
    Days(u32),
    /// For ever.
    Forever,
}

impl Floor {
    /// Whether answers that are kept for so many days, or for ever, are kept long enough.
    pub fn allows(self, days: Option<u32>) -> bool {
        match self {
            Floor::Forever => days.is_none(),
            Floor::Days(least) => days.is_none_or(|days| days >= least),
        }
    }
}

/// A governance file, and what binds it.
#[derive(Debug, Clone)]
pub struct Bound {
    /// Where it is bound: the value of `governance`, or the file's beginning where the workspace binds it.
    pub at: Place,
    /// What the user calls the file.
    pub file: Arc<str>,
    /// What it says.
    pub says: Governance,
}

/// All that binds a chain, root first, and the texts to quote from.
#[derive(Debug, Clone, Default)]
pub struct Policies {
    /// The files that say something, root first.
    pub bound: Vec<Bound>,
    /// What is refused of them; and their texts.
    pub report: Report,
}

impl Policies {
    /// Reads what each layer of a chain binds, or what the workspace does where none binds anything.
    pub(crate) fn of(round: &Round<'_>, chain: &Chain) -> Policies {
        let mut policies = Policies::default();
        if round.options.refs == Refs::ShapeOnly {
            return policies;
        }
        let mut bound_by_a_layer = false;
        for layer in &chain.layers {
            let Some(text) = layer.root.key("governance").and_then(Node::as_str) else { continue };
            bound_by_a_layer = true;
            policies.bind(round, layer, text);
        }
        match &round.options.governance {
            Some(spot) if !bound_by_a_layer => policies.of_the_workspace(round, spot),
            _ => {}
        }
        policies
    }

    /// Whose signatures count: of the last that says so, and each key no longer than all before it let it. `None` where
    /// nobody says so.
    pub fn keys(&self) -> Option<Vec<Key>> {
        let mut lists = self.bound.iter().filter_map(|one| one.says.keys.as_ref());
        let first = lists.next()?.clone();
        Some(lists.fold(first, |above, own| own.iter().map(|key| within(key, &above)).collect()))
    }

    fn bind(&mut self, round: &Round<'_>, layer: &Layer, text: &str) {
        // A ref that leads nowhere is refused as one.
        let Ok(spot) = round.resolves(&layer.spot, text) else { return };
        let folder = Reference::read(text).is_some();
        let (spot, bytes) = match round.workspace.read(&spot) {
            Ok(bytes) => (spot, bytes),
            Err(_) if folder => match round.workspace.read(&spot.child(FILE)) {
                Ok(bytes) => (spot.child(FILE), bytes),
                Err(Error::Missing) => return,
                Err(error) => return self.unreadable(round, &spot.child(FILE), &error),
            },
            // A path that leads to what cannot be read is refused as a ref, too.
            Err(_) => return,
        };
        self.take(round, &spot, bytes, layer.value_place("governance"));
    }

    fn of_the_workspace(&mut self, round: &Round<'_>, spot: &Spot) {
        let at = Place { file: round.shown(spot).into(), span: 0..0, path: String::new() };
        match round.workspace.read(spot) {
            Ok(bytes) => self.take(round, spot, bytes, at),
            Err(error) => self.unreadable(round, spot, &error),
        }
    }

    fn take(&mut self, round: &Round<'_>, spot: &Spot, bytes: Vec<u8>, at: Place) {
        let (says, report) = read::read(round, spot, bytes);
        self.report.absorb(report);
        self.bound.extend(says.map(|says| Bound { at, file: round.shown(spot).into(), says }));
    }

    fn unreadable(&mut self, round: &Round<'_>, spot: &Spot, error: &Error) {
        self.report.absorb(read::unreadable(&round.shown(spot), error));
    }
}

/// A key that may sign when both lists let it.
fn within(key: &Key, above: &[Key]) -> Key {
    let mut key = key.clone();
    if let Some(one) = above.iter().find(|one| one.public == key.public) {
        let least = |a: Option<i64>, b: Option<i64>| a.into_iter().chain(b).min();
        key.not_before_ms = key.not_before_ms.max(one.not_before_ms);
        key.not_after_ms = least(key.not_after_ms, one.not_after_ms);
        key.revoked_at_ms = least(key.revoked_at_ms, one.revoked_at_ms);
    }
    key
}
