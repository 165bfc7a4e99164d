//! The weave (B3): which overlays an agent gets, in which order, and the resulting prompt.
//!
//! An overlay's text is a paragraph of the prompt like any other, or replaces a block. It carries no slug, marker or
//! origin: an agent must not learn that a council deliberated about it (C7).
//! Also composition: weaves active playbooks, leaves out those that a locked trait bars or that another one supersedes
//! (both are active if a person edited files), and computes shadow playbooks.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use quorate_manifest::playbook::Status;

use crate::gate::GOVERNANCE_PRIORITY;
use crate::lock::{Locks, Violation};
use crate::persona::BasePrompt;

/// The highest priority that an overlay of an advisory run weaves with, whatever its rule gave it. Higher priorities are
/// reserved for playbooks that passed governance (B6).
pub const ADVISORY_CAP: u8 = 74;

/// What may be woven. Times are milliseconds since 1970, UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlay {
    /// Its id, for a playbook its slug; never part of the prompt.
    pub id: String,
    /// Where it comes from.
    pub origin: Origin,
    /// The prompt.
    pub text: String,
    pub placement: Placement,
    /// From 0 to 100, as its author set it.
    pub priority: u8,
    /// When it was written; what nothing says that of comes last.
    pub written_ms: Option<i64>,
    /// From when on it is no longer woven.
    pub expires_ms: Option<i64>,
}

/// Where an overlay comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// An advisory run: its priority is capped.
    Advisory,
    Playbook,
}

/// Where an overlay stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Placement {
    /// Behind everything, as a paragraph.
    Appended,
    /// In place of the block of this name.
    Block(String),
}

/// A prompt with everything that was woven into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WovenPrompt {
    /// The prompt: exactly the base where nothing was woven.
    pub prompt: String,
    /// What was woven, in the order of the prompt.
    pub woven: Vec<WovenOverlay>,
    /// What was not, in the order in which it would have been.
    pub skipped: Vec<SkippedOverlay>,
}

/// An overlay that was woven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WovenOverlay {
    pub id: String,
    /// The priority that it was woven with.
    pub priority: u8,
    pub placement: Placement,
}

/// An overlay that was not woven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedOverlay {
    pub id: String,
    pub reason: SkipReason,
}

/// Why an overlay was not woven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkipReason {
    /// Its time is over.
    Expired,
    /// Its text is blank.
    Empty,
    /// Another overlay, whose id this is, was woven with the same text.
    Duplicate(String),
    /// The prompt has no block of this name.
    UnknownBlock(String),
    /// Another overlay, with this id, replaces the same block.
    Replaced(String),
    /// Another playbook, whose slug this is, takes its place.
    Superseded(String),
    /// It touches a locked trait.
    Locked(Box<Violation>),
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SkipReason::Expired => f.write_str("it has expired"),
            SkipReason::Empty => f.write_str("it has no text"),
            SkipReason::Duplicate(id) => write!(f, "`{id}` says the same"),
            SkipReason::UnknownBlock(block) => write!(f, "the prompt has no block `{block}`"),
            SkipReason::Replaced(id) => write!(f, "`{id}` replaces the same block"),
            SkipReason::Superseded(slug) => write!(f, "`{slug}` takes its place"),
            SkipReason::Locked(touch) => {
                write!(f, "it touches the locked trait `{}`: {}", touch.id, touch.cause)
            }
        }
    }
}

impl Overlay {
    /// When it was written; `None` of what nothing dates, which a rollback gives the first date of all.
    fn dated_ms(&self) -> Option<i64> {
        self.written_ms.filter(|at| *at > 0)
    }

    /// The priority that it weaves with.
    fn effective_priority(&self) -> u8 {
        match self.origin {
            Origin::Advisory => self.priority.min(ADVISORY_CAP),
            Origin::Playbook => self.priority,
        }
    }
}

/// Weaves overlays into a base prompt. The base stands first, with other texts in place of the blocks that are replaced;
/// then, after a blank line each, the texts that are added: the highest priority first, of equal ones the newest, of those
/// the smallest id. If two overlays replace the same block, the first in this order wins. The order in which the overlays
/// are
/// given makes no difference.
pub fn weave(base: &BasePrompt, overlays: &[Overlay], now_ms: i64) -> WovenPrompt {
    let mut ordered: Vec<&Overlay> = overlays.iter().collect();
    // The last criteria only decide between overlays with the same id.
    ordered.sort_by(|a, b| {
        let rank_of = |overlay: &Overlay| (overlay.effective_priority(), overlay.dated_ms());
        let rank = rank_of(b).cmp(&rank_of(a));
        let of = |overlay: &'_ Overlay| {
            (overlay.id.clone(), overlay.text.clone(), overlay.placement.clone(), overlay.expires_ms)
        };
        rank.then_with(|| a.id.cmp(&b.id)).then_with(|| of(a).cmp(&of(b)))
    });
    let (mut woven, mut skipped) = (Vec::new(), Vec::new());
    let (mut added, mut blocks): (Vec<&str>, BTreeMap<&str, (&str, &str)>) = Default::default();
    let mut said: HashMap<&str, &str> = HashMap::new();
    for overlay in ordered {
        let text = overlay.text.trim();
        let reason = if overlay.expires_ms.is_some_and(|expires| expires <= now_ms) {
            Some(SkipReason::Expired)
        } else if text.is_empty() {
            Some(SkipReason::Empty)
        } else {
            match &overlay.placement {
                Placement::Appended => said.get(text).map(|id| SkipReason::Duplicate((*id).to_owned())),
                Placement::Block(block) if !base.has_block(block) => {
                    Some(SkipReason::UnknownBlock(block.clone()))
                }
                Placement::Block(block) => {
                    blocks.get(&**block).map(|(id, _)| SkipReason::Replaced((*id).to_owned()))
                }
            }
        };
        let id = overlay.id.clone();
        if let Some(why) = reason {
            skipped.push(SkippedOverlay { id, reason: why });
            continue;
        }
        match &overlay.placement {
            Placement::Appended => {
                said.insert(text, &overlay.id);
                added.push(text);
            }
            Placement::Block(block) => {
                blocks.insert(block, (&overlay.id, text));
            }
        }
        woven.push(WovenOverlay {
            id,
            priority: overlay.effective_priority(),
            placement: overlay.placement.clone(),
        });
    }
    let mut prompt = base.render_with(&blocks.into_iter().map(|(block, (_, text))| (block, text)).collect());
    for text in added {
        end_paragraph(&mut prompt);
        prompt.push_str(text);
    }
    WovenPrompt { prompt, woven, skipped }
}

/// Ends a prompt with a blank line, without changing its text.
fn end_paragraph(prompt: &mut String) {
    let breaks = prompt.chars().rev().filter(|c| *c != '\r').take(2).take_while(|c| *c == '\n').count();
    if !prompt.is_empty() {
        prompt.push_str(&"\n\n"[breaks..]);
    }
}

/// A playbook for an agent, checked against its locked traits.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// What would be woven.
    pub overlay: Overlay,
    /// Whether it is to be.
    pub status: Status,
    /// The slugs of those that it takes the place of.
    pub supersedes: Vec<String>,
    /// The locked traits that it touches.
    pub violations: Vec<Violation>,
}

impl Candidate {
    /// Whether it is to be woven at a time, apart from locks and other playbooks.
    pub fn is_active(&self, now_ms: i64) -> bool {
        self.status == Status::Active && self.overlay.expires_ms.is_none_or(|expires| expires > now_ms)
    }
}

/// A prompt, and what might be one.
#[derive(Debug, Clone, PartialEq)]
pub struct Composition {
    /// The agent's prompt.
    pub woven: WovenPrompt,
    /// The prompt that it would get with each of the playbooks in shadow.
    pub shadows: Vec<ShadowPrompt>,
}

/// A shadow prompt, which no agent gets.
#[derive(Debug, Clone, PartialEq)]
pub struct ShadowPrompt {
    pub id: String,
    /// The prompt with it; or why it would not be woven.
    pub prompt: Result<String, SkipReason>,
}

/// Composes. `advice` are the overlays of advisory runs; `locks` are those of the agent, which they are compared with,
/// too.
pub fn compose(
    base: &BasePrompt,
    candidates: &[Candidate],
    advice: &[Overlay],
    locks: &Locks,
    now_ms: i64,
) -> Composition {
    let (mut barred, mut advised) = (Vec::new(), Vec::new());
    for advice in advice {
        match locks.check(&advice.text).into_iter().next() {
            Some(touch) => barred.push(skipped_by_lock(advice, touch)),
            None => advised.push(advice.clone()),
        }
    }
    let active: Vec<&Candidate> =
        candidates.iter().filter(|candidate| candidate.status == Status::Active).collect();
    let (selected, kept_out) = select_active(&active, now_ms);
    barred.extend(kept_out);
    let mut woven = weave(base, &[advised.as_slice(), &selected].concat(), now_ms);
    woven.skipped.splice(0..0, barred);
    let shadows = candidates.iter().filter(|candidate| candidate.status == Status::Shadow);
    let shadows = shadows.map(|shadow| ShadowPrompt {
        id: shadow.overlay.id.clone(),
        prompt: counterfactual(base, shadow, &active, &advised, now_ms),
    });
    Composition { shadows: shadows.collect(), woven }
}

/// Of playbooks that are active what is woven, and what is not because it touches a lock or another one has taken its
/// place.
pub fn select_active(active: &[&Candidate], now_ms: i64) -> (Vec<Overlay>, Vec<SkippedOverlay>) {
    let is_active = |candidate: &&&Candidate| {
        candidate.violations.is_empty()
            && candidate.overlay.expires_ms.is_none_or(|expires| expires > now_ms)
            && !candidate.overlay.text.trim().is_empty()
    };
    // What is not woven itself takes no other's place.
    let claims = active.iter().filter(is_active);
    let superseded = Supersessions::new(
        claims.map(|claim| (&*claim.overlay.id, claim.overlay.priority, &*claim.supersedes)),
    )
    .superseded();
    let (mut woven, mut barred) = (Vec::new(), Vec::new());
    for one in active {
        match (one.violations.first(), superseded.get(&*one.overlay.id)) {
            (Some(touch), _) => barred.push(skipped_by_lock(&one.overlay, touch.clone())),
            (None, Some(by)) => {
                barred.push(SkippedOverlay {
                    id: one.overlay.id.clone(),
                    reason: SkipReason::Superseded((*by).to_owned()),
                });
            }
            (None, None) => woven.push(one.overlay.clone()),
        }
    }
    (woven, barred)
}

/// The prompt as it would be if a playbook held, and what it takes the place of were archived.
fn counterfactual(
    base: &BasePrompt,
    one: &Candidate,
    active: &[&Candidate],
    advised: &[Overlay],
    now_ms: i64,
) -> Result<String, SkipReason> {
    let stays = |other: &&Candidate| !one.supersedes.contains(&other.overlay.id);
    let with: Vec<&Candidate> = active.iter().copied().filter(stays).chain([one]).collect();
    let (selected, barred) = select_active(&with, now_ms);
    let woven = weave(base, &[advised, &selected].concat(), now_ms);
    match barred.into_iter().chain(woven.skipped).find(|other| other.id == one.overlay.id) {
        Some(skipped) => Err(skipped.reason),
        None => Ok(woven.prompt),
    }
}

fn skipped_by_lock(overlay: &Overlay, touch: Violation) -> SkippedOverlay {
    SkippedOverlay { id: overlay.id.clone(), reason: SkipReason::Locked(Box::new(touch)) }
}

/// The `supersedes` lists of playbooks, by slug.
#[derive(Debug, Clone, Default)]
pub struct Supersessions<'p>(BTreeMap<&'p str, (u8, &'p [String])>);

/// Why a playbook does not take the place of another one that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoEffect {
    /// There is no such playbook.
    Unknown,
    /// The other one takes the place of this one, itself or over others.
    Mutual,
    /// A playbook that governance promoted is superseded only by another one that governance promoted.
    Governed,
}

impl<'p> Supersessions<'p> {
    /// The claims of playbooks, each with its slug, its priority and what it supersedes.
    pub fn new(all: impl IntoIterator<Item = (&'p str, u8, &'p [String])>) -> Self {
        Supersessions(all.into_iter().map(|(slug, priority, others)| (slug, (priority, others))).collect())
    }

    /// Whether a playbook takes the place of another one.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, by: &str, other: &str) -> Result<(), NoEffect> {
        let (Some((own, _)), Some((priority, _))) = (self.0.get(by), self.0.get(other)) else {
            return Err(NoEffect::Unknown);
        };
        if self.reaches(other, by) {
            return Err(NoEffect::Mutual);
        }
        match *priority >= GOVERNANCE_PRIORITY && *own < GOVERNANCE_PRIORITY {
            true => Err(NoEffect::Governed),
            false => Ok(()),
        }
    }

    /// Those whose place another one has taken, with the slug of that one.
    pub fn superseded(&self) -> BTreeMap<&'p str, &'p str> {
        let mut superseded = BTreeMap::new();
        for (by, (_, others)) in &self.0 {
            for other in others.iter().filter(|other| self.check(by, other).is_ok()) {
                if let Some((other, _)) = self.0.get_key_value(other.as_str()) {
                    superseded.entry(*other).or_insert(*by);
                }
            }
        }
        superseded
    }

    fn reaches(&self, from: &str, to: &str) -> bool {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(slug) = open.pop() {
            if slug == to {
                return true;
            }
            if let Some((_, others)) = self.0.get(slug).filter(|_| seen.insert(slug)) {
                open.extend(others.iter().map(String::as_str));
            }
        }
        false
    }
}

impl fmt::Display for NoEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoEffect::Unknown => "there is no such playbook",
            NoEffect::Mutual => "each of them supersedes the other, so neither takes the other's place",
            NoEffect::Governed => "that has a priority which only governance promotes, and this one has not",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlay(id: &str, text: &str, priority: u8, written_ms: i64) -> Overlay {
        Overlay {
            id: id.into(),
            origin: Origin::Advisory,
            text: text.into(),
            placement: Placement::Appended,
            priority,
            written_ms: Some(written_ms),
            expires_ms: Some(1_000),
        }
    }

    fn playbook(slug: &str, block: Option<&str>, text: &str, priority: u8) -> Overlay {
        let placement = block.map_or(Placement::Appended, |block| Placement::Block(block.to_owned()));
        Overlay { origin: Origin::Playbook, placement, expires_ms: None, ..overlay(slug, text, priority, 1) }
    }

    fn weave(base: &str, overlays: &[Overlay], now_ms: i64) -> WovenPrompt {
        super::weave(&BasePrompt::from_body(base), overlays, now_ms)
    }

    fn ids(woven: &WovenPrompt) -> Vec<&str> {
        woven.woven.iter().map(|used| used.id.as_str()).collect()
    }

    #[test]
    fn without_overlays_the_prompt_is_the_base() {
        for base in ["", "You are Ada.", "You are Ada.\n\n\n"] {
            assert_eq!(weave(base, &[], 0).prompt, base);
        }
    }

    #[test]
    fn texts_are_paragraphs_and_nothing_else_is_said() {
        // B3, C7
        let overlays = [overlay("o1", " Ask before you act.\n", 50, 1), overlay("o2", "Be slow.", 60, 1)];
        for base in ["You are Ada.", "You are Ada.\n", "You are Ada.\n\n"] {
            assert_eq!(weave(base, &overlays, 10).prompt, "You are Ada.\n\nBe slow.\n\nAsk before you act.");
        }
        assert_eq!(weave("A\r\n", &overlays[..1], 10).prompt, "A\r\n\nAsk before you act.");
        assert_eq!(weave("", &overlays[..1], 10).prompt, "Ask before you act.");
    }

    #[test]
    fn priority_then_time_then_id() {
        // B3: both descending, the id ascending; the cap comes before the order.
        let overlays = [
            overlay("c", "c", 40, 9),
            overlay("b", "b", 40, 9),
            overlay("a", "a", 40, 8),
            overlay("y", "y", 100, 1),
            overlay("x", "x", 74, 2),
        ];
        let woven = weave("base", &overlays, 10);
        assert_eq!(ids(&woven), ["x", "y", "b", "c", "a"]);
        assert_eq!(woven.woven[1].priority, ADVISORY_CAP);
        assert_eq!(woven.woven[2].priority, 40);
    }

    #[test]
    fn what_is_over_says_nothing_or_is_said_is_skipped() {
        let mut over = overlay("over", "old", 90, 5);
        over.expires_ms = Some(10);
        let overlays = [
            over,
            overlay("blank", " \n", 50, 5),
            overlay("one", "same", 50, 5),
            overlay("two", "same\n", 60, 1),
        ];
        let woven = weave("base", &overlays, 10);
        assert_eq!(woven.prompt, "base\n\nsame");
        assert_eq!(ids(&woven), ["two"]);
        let skipped: Vec<(&str, String)> =
            woven.skipped.iter().map(|skipped| (skipped.id.as_str(), skipped.reason.to_string())).collect();
        let same = "`two` says the same".to_owned();
        let expected =
            [("over", "it has expired".to_owned()), ("blank", "it has no text".to_owned()), ("one", same)];
        assert_eq!(skipped, expected);
        // A moment earlier it is still in force.
        assert_eq!(ids(&weave("base", &overlays, 9)), ["over", "two"]);
    }

    #[test]
    fn a_block_is_replaced_by_the_first_and_a_playbook_has_its_own_priority() {
        // B3, B9
        let base = "Hello.\n<!-- block: tone -->\nBe calm.\n<!-- /block -->";
        let overlays = [
            playbook("second", Some("tone"), "Be slow.", 50),
            playbook("first", Some("tone"), " Be quick.\n", 60),
            playbook("nowhere", Some("voice"), "Sing.", 99),
            playbook("more", None, "Cite.", 90),
            overlay("advice", "Ask.", 100, 9),
        ];
        let woven = weave(base, &overlays, 10);
        assert_eq!(woven.prompt, "Hello.\nBe quick.\n\nCite.\n\nAsk.");
        assert_eq!(ids(&woven), ["more", "advice", "first"]);
        let skipped: Vec<(&str, &SkipReason)> =
            woven.skipped.iter().map(|skipped| (&*skipped.id, &skipped.reason)).collect();
        let (none, replaced) =
            (SkipReason::UnknownBlock("voice".to_owned()), SkipReason::Replaced("first".to_owned()));
        assert_eq!(skipped, [("nowhere", &none), ("second", &replaced)]);
    }

    #[test]
    fn what_nothing_dates_comes_last_among_equals() {
        // B11
        let mut undated = playbook("a", None, "A", 50);
        undated.written_ms = None;
        assert_eq!(ids(&weave("", &[undated.clone(), playbook("b", None, "B", 50)], 10)), ["b", "a"]);
        // A rollback gives an undated playbook the first date of all (B7), which orders it no differently.
        let mut rolled_back = playbook("c", None, "C", 50);
        rolled_back.written_ms = Some(0);
        assert_eq!(ids(&weave("", &[rolled_back, undated], 10)), ["a", "c"]);
    }
}

#[cfg(test)]
mod supersede_tests {
    use super::*;

    #[test]
    fn each_takes_the_place_of_what_it_names_and_no_two_of_each_other() {
        // B6
        let names = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        let (b, c, none) = (names(&["b", "gone", "governed"]), names(&["c"]), names(&[]));
        let (x, y, z) = (names(&["y"]), names(&["z"]), names(&["x", "c"]));
        let claims = Supersessions::new([
            ("a", 50, b.as_slice()),
            ("b", 50, c.as_slice()),
            ("c", 50, none.as_slice()),
            ("governed", 75, none.as_slice()),
            ("x", 50, x.as_slice()),
            ("y", 50, y.as_slice()),
            ("z", 50, z.as_slice()),
        ]);
        assert_eq!(claims.superseded(), BTreeMap::from([("b", "a"), ("c", "b")]));
        assert_eq!(claims.check("a", "gone"), Err(NoEffect::Unknown));
        assert_eq!(claims.check("a", "governed"), Err(NoEffect::Governed));
        for (by, other) in [("x", "y"), ("y", "z"), ("z", "x")] {
            assert_eq!(claims.check(by, other), Err(NoEffect::Mutual), "{by} {other}");
        }
        assert_eq!(claims.check("z", "c"), Ok(()));
        let own = names(&["a"]);
        assert_eq!(Supersessions::new([("a", 50, own.as_slice())]).check("a", "a"), Err(NoEffect::Mutual));
    }
}
