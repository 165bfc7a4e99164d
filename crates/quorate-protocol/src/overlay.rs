//! Overlays: advisory fragments in force. Each assembly has one stream of them; its records and the time determine which
//! are active, and new overlays determine which are evicted (A5, A8).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// An overlay, in the form of the record `overlay.added`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overlay {
    /// Its id: `o` and 12 characters.
    pub overlay: String,
    /// The assembly that gave the advice.
    pub assembly: String,
    /// The operator whose prompt it goes into; empty if none is named.
    pub operator: String,
    /// The run that it comes from.
    pub run: String,
    /// The author of the words.
    pub member: String,
    /// The rule that emitted it.
    pub rule: String,
    /// What the agent is told.
    pub text: String,
    /// How grave its author found it, 0 to 10.
    pub severity: u8,
    /// How weighty it is, 0 to 100.
    pub priority: u8,
    /// When it was added, in milliseconds since the Unix epoch.
    pub added_ms: i64,
    /// When it stops to hold, in milliseconds since the Unix epoch.
    pub expires_ms: i64,
}

/// Why an overlay is no longer active.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvictionReason {
    /// Its time is over.
    Expired,
    /// There were too many.
    Cap,
    /// A user removed it.
    Person,
}

/// An overlay that is evicted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Eviction {
    /// Its id.
    pub overlay: String,
    /// The reason.
    pub why: EvictionReason,
    /// The user who removed it, if a user did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

impl Overlay {
    /// Whether it is active at a time.
    pub fn is_active(&self, now_ms: i64) -> bool {
        self.expires_ms > now_ms
    }
}

/// The overlays of a stream that were added and not evicted, in the order in which they were added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OverlaySet {
    overlays: Vec<Overlay>,
    known_ids: BTreeSet<String>,
}

impl OverlaySet {
    /// One more was added.
    pub fn add(&mut self, overlay: Overlay) {
        if self.known_ids.insert(overlay.overlay.clone()) {
            self.overlays.push(overlay);
        }
    }

    /// Removes an overlay; its id stays known.
    pub fn evict(&mut self, id: &str) {
        self.overlays.retain(|overlay| overlay.overlay != id);
    }

    /// Whether an overlay was ever added.
    pub fn was_ever_added(&self, id: &str) -> bool {
        self.known_ids.contains(id)
    }

    /// All overlays, also expired ones that were not evicted yet.
    pub fn all(&self) -> &[Overlay] {
        &self.overlays
    }

    /// Those that hold, the weightiest first: priority, then time, both descending, then id.
    pub fn active(&self, now_ms: i64) -> Vec<&Overlay> {
        let mut active: Vec<&Overlay> =
            self.overlays.iter().filter(|overlay| overlay.is_active(now_ms)).collect();
        active.sort_by(|a, b| {
            let weight = |overlay: &Overlay| (overlay.priority, overlay.added_ms);
            weight(b).cmp(&weight(a)).then_with(|| a.overlay.cmp(&b.overlay))
        });
        active
    }

    /// The overlays to evict at a time, given new ones: the expired, then, for each operator, the oldest past the cap, of
    /// equal age the less weighty. Overlays of one text count once, and the last of them stands for those before it.
    pub fn evictions(&self, coming: &[Overlay], max_active: usize, now_ms: i64) -> Vec<Eviction> {
        let evict = |overlay: &Overlay, why| Eviction { overlay: overlay.overlay.clone(), why, by: None };
        let known: Vec<&Overlay> = self
            .overlays
            .iter()
            .chain(coming.iter().filter(|overlay| !self.was_ever_added(&overlay.overlay)))
            .collect();
        let (holding, over): (Vec<&Overlay>, Vec<&Overlay>) =
            known.into_iter().partition(|overlay| overlay.is_active(now_ms));
        let mut evicted: Vec<Eviction> =
            over.into_iter().map(|overlay| evict(overlay, EvictionReason::Expired)).collect();
        let operators: BTreeSet<&str> = holding.iter().map(|overlay| &*overlay.operator).collect();
        for operator in operators {
            // Repeated advice counts once, with the age and priority of its last occurrence.
            let mut texts: BTreeMap<&str, Vec<&Overlay>> = BTreeMap::new();
            for overlay in holding.iter().copied().filter(|overlay| overlay.operator == operator) {
                let same = texts.entry(overlay.text.trim()).or_default();
                // What was said again as weightily, and holds as long, takes the place of what was said before.
                same.retain(|before| {
                    let stays = before.priority > overlay.priority || before.expires_ms > overlay.expires_ms;
                    if !stays {
                        evicted.push(evict(before, EvictionReason::Cap));
                    }
                    stays
                });
                same.push(overlay);
            }
            let mut by_text: Vec<Vec<&Overlay>> = texts.into_values().collect();
            let last =
                |all: &Vec<&Overlay>| all.iter().map(|overlay| (overlay.added_ms, overlay.priority)).max();
            by_text.sort_by_key(last);
            let too_many = by_text.len().saturating_sub(max_active);
            evicted.extend(
                by_text[..too_many].iter().flatten().map(|overlay| evict(overlay, EvictionReason::Cap)),
            );
        }
        evicted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlay(id: &str, operator: &str, priority: u8, added_ms: i64) -> Overlay {
        Overlay {
            overlay: id.to_owned(),
            assembly: "a".to_owned(),
            operator: operator.to_owned(),
            run: "r".to_owned(),
            member: "m".to_owned(),
            rule: "x".to_owned(),
            text: format!("Text of {id}."),
            severity: 5,
            priority,
            added_ms,
            expires_ms: added_ms + 100,
        }
    }

    fn ids(evicted: &[Eviction]) -> Vec<(&str, EvictionReason)> {
        evicted.iter().map(|eviction| (eviction.overlay.as_str(), eviction.why)).collect()
    }

    #[test]
    fn the_oldest_go_first_and_of_equal_age_the_less_weighty() {
        // A5, A8
        let mut standing = OverlaySet::default();
        for one in [overlay("o1", "x", 9, 10), overlay("o2", "x", 1, 20), overlay("o3", "y", 1, 5)] {
            standing.add(one);
        }
        let coming = [overlay("o4", "x", 7, 30), overlay("o5", "x", 6, 30)];
        assert_eq!(ids(&standing.evictions(&coming, 3, 40)), [("o1", EvictionReason::Cap)]);
        assert_eq!(
            ids(&standing.evictions(&coming, 1, 40)),
            [("o1", EvictionReason::Cap), ("o2", EvictionReason::Cap), ("o5", EvictionReason::Cap)]
        );
        assert_eq!(
            ids(&standing.evictions(&[], 10, 110)),
            [("o1", EvictionReason::Expired), ("o3", EvictionReason::Expired)],
            "a time that is over goes on every write"
        );
    }

    #[test]
    fn what_says_the_same_counts_once() {
        // A5
        let says = |id: &str, text: &str, priority, added_ms| Overlay {
            text: text.to_owned(),
            ..overlay(id, "x", priority, added_ms)
        };
        let mut standing = OverlaySet::default();
        for one in [
            says("o1", "Be slow.", 5, 10),
            says("o2", "Be brief.", 5, 20),
            says("o3", "Be slow.", 5, 30),
            says("o4", "Be slow.", 4, 35),
        ] {
            standing.add(one);
        }
        assert_eq!(
            ids(&standing.evictions(&[], 2, 50)),
            [("o1", EvictionReason::Cap)],
            "said again; the weightier one stays"
        );
        let again = [says("o5", " Be slow.\n", 5, 40)];
        assert_eq!(
            ids(&standing.evictions(&again, 2, 50)),
            [("o1", EvictionReason::Cap), ("o3", EvictionReason::Cap), ("o4", EvictionReason::Cap)]
        );
        let other = [says("o6", "Ask first.", 5, 40)];
        assert_eq!(
            ids(&standing.evictions(&other, 2, 50)),
            [("o1", EvictionReason::Cap), ("o2", EvictionReason::Cap)],
            "the other one was said again since"
        );
    }

    #[test]
    fn what_holds_longer_stays_when_it_is_said_again() {
        // A5
        let says = |id: &str, added_ms, expires_ms| Overlay {
            text: "Be slow.".to_owned(),
            expires_ms,
            ..overlay(id, "x", 5, added_ms)
        };
        let mut standing = OverlaySet::default();
        standing.add(says("o1", 10, 90));
        assert!(standing.evictions(&[says("o2", 20, 89)], 2, 50).is_empty(), "it ends before the first does");
        assert_eq!(
            ids(&standing.evictions(&[says("o2", 20, 90)], 2, 50)),
            [("o1", EvictionReason::Cap)],
            "they end together, so the later one is enough"
        );
    }

    #[test]
    fn what_was_evicted_does_not_come_back() {
        let mut standing = OverlaySet::default();
        standing.add(overlay("o1", "x", 9, 10));
        standing.evict("o1");
        standing.add(overlay("o1", "x", 9, 10));
        assert!(standing.all().is_empty() && standing.was_ever_added("o1"));
        assert!(standing.evictions(&[overlay("o1", "x", 9, 10)], 0, 20).is_empty());
    }

    #[test]
    fn the_weightiest_come_first_and_what_is_over_is_not_active() {
        // A5
        let mut standing = OverlaySet::default();
        for one in [overlay("o1", "", 5, 10), overlay("o2", "", 9, 5), overlay("o3", "", 5, 20)] {
            standing.add(one);
        }
        let active = |now_ms| -> Vec<&str> {
            standing.active(now_ms).iter().map(|overlay| overlay.overlay.as_str()).collect()
        };
        assert_eq!(active(30), ["o2", "o3", "o1"]);
        assert_eq!(active(106), ["o3", "o1"]);
    }
}
