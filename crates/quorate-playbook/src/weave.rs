//! The weave (B3): which overlays an agent gets, in which order, and the resulting prompt.
//!
//! An overlay's text is a paragraph of the prompt like any other, or replaces a block. It carries no slug, marker or
//! origin: an agent must not learn that a council deliberated about it (C7).
//! Also composition: weaves active playbooks, leaves out those that a locked trait bars or that another one supersedes
//! (both are active if a person edited files), and computes shadow playbooks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use quorate_manifest::playbook::Status;
use quorate_protocol::overlay::Overlay;

use crate::gate::GOVERNANCE_PRIORITY;
use crate::lock::{Locks, Violation};
use crate::persona::BasePrompt;

/// The highest priority that an overlay of an advisory run weaves with, whatever its rule gave it. Higher priorities are
/// reserved for playbooks that passed governance (B6).
pub const ADVISORY_CAP: u8 = 74;

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
    /// The block that it replaces.
    pub block: Option<String>,
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

/// Weaves texts into a base prompt. The base stands first, with other texts in place of the blocks that are replaced;
/// then, after a blank line each, the texts that are added: the highest priority first, of equal ones the newest, of those
/// the smallest id. If two texts replace the same block, the first in this order wins. The order in which the texts are
/// given makes no difference.
pub(crate) fn weave(base: &BasePrompt, mut texts: Vec<&Candidate>, now_ms: i64) -> WovenPrompt {
    texts.sort_by_key(|one| {
        // A rollback gives an undated playbook the first date of all.
        let dated_ms = one.written_ms.filter(|at| *at > 0);
        // The last criteria only decide between texts with the same id.
        (Reverse((one.priority, dated_ms)), &*one.slug, &*one.text, one.block.as_deref(), one.expires_ms)
    });
    let (mut woven, mut skipped) = (Vec::new(), Vec::new());
    let (mut added, mut replaced): (Vec<&str>, BTreeMap<&str, &str>) = Default::default();
    let (mut said, mut replacing): (HashMap<&str, &str>, HashMap<&str, &str>) = Default::default();
    for one in texts {
        let (id, text, block) = (&*one.slug, &*one.text, one.block.as_deref());
        let text = text.trim();
        let reason = match block {
            _ if one.is_expired(now_ms) => Some(SkipReason::Expired),
            _ if text.is_empty() => Some(SkipReason::Empty),
            None => said.get(text).map(|id| SkipReason::Duplicate((*id).to_owned())),
            Some(block) if !base.has_block(block) => Some(SkipReason::UnknownBlock(block.to_owned())),
            Some(block) => replacing.get(block).map(|id| SkipReason::Replaced((*id).to_owned())),
        };
        if let Some(reason) = reason {
            skipped.push(SkippedOverlay { id: id.to_owned(), reason });
            continue;
        }
        match block {
            None => {
                said.insert(text, id);
                added.push(text);
            }
            Some(block) => {
                replacing.insert(block, id);
                replaced.insert(block, text);
            }
        }
        woven.push(WovenOverlay { id: id.to_owned(), priority: one.priority, block: one.block.clone() });
    }
    let mut prompt = base.render_with(&replaced);
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

/// A playbook for an agent, checked against its locked traits, or an overlay. Times are milliseconds since the Unix epoch.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Its slug, or the overlay's id; never part of the prompt.
    pub slug: String,
    /// The text for agents.
    pub text: String,
    /// The block that it replaces; `None` adds it behind everything, as a paragraph.
    pub block: Option<String>,
    /// From 0 to 100, as its author set it.
    pub priority: u8,
    /// When it was written; without a time it comes last among playbooks of the same priority.
    pub written_ms: Option<i64>,
    /// When it stops to be woven.
    pub expires_ms: Option<i64>,
    /// Whether it is woven.
    pub status: Status,
    /// The slugs of the playbooks that it replaces.
    pub supersedes: Vec<String>,
    /// The locked traits that it touches.
    pub violations: Vec<Violation>,
}

impl Candidate {
    fn of_overlay(advice: &Overlay) -> Candidate {
        Candidate {
            slug: advice.overlay.clone(),
            text: advice.text.clone(),
            block: None,
            priority: advice.priority.min(ADVISORY_CAP),
            written_ms: Some(advice.added_ms),
            expires_ms: Some(advice.expires_ms),
            status: Status::Active,
            supersedes: Vec::new(),
            violations: Vec::new(),
        }
    }

    /// Whether its time is over.
    pub fn is_expired(&self, now_ms: i64) -> bool {
        self.expires_ms.is_some_and(|expires| expires <= now_ms)
    }

    /// Whether it is woven at a time, apart from locks and other playbooks.
    pub fn is_active(&self, now_ms: i64) -> bool {
        self.status == Status::Active && !self.is_expired(now_ms)
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

/// Composes a prompt. `locks` are those of the agent; overlays are checked against them here, playbooks were before.
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
            Some(touch) => barred.push(SkippedOverlay::locked(&advice.overlay, touch)),
            None => advised.push(Candidate::of_overlay(advice)),
        }
    }
    let of_status = |status| candidates.iter().filter(move |candidate| candidate.status == status);
    let active: Vec<&Candidate> = of_status(Status::Active).collect();
    let (selected, kept_out) = select_active(&active, now_ms);
    barred.extend(kept_out);
    let advised: Vec<&Candidate> = advised.iter().collect();
    let mut woven = weave(base, [&*advised, &selected].concat(), now_ms);
    woven.skipped.splice(0..0, barred);
    let shadows = of_status(Status::Shadow).map(|shadow| ShadowPrompt {
        id: shadow.slug.clone(),
        prompt: counterfactual(base, shadow, &active, &advised, now_ms),
    });
    Composition { shadows: shadows.collect(), woven }
}

/// Divides active playbooks into those that are woven, and those that touch a lock or are superseded by another one.
pub(crate) fn select_active<'a>(
    active: &[&'a Candidate],
    now_ms: i64,
) -> (Vec<&'a Candidate>, Vec<SkippedOverlay>) {
    let is_woven = |candidate: &&&Candidate| {
        candidate.violations.is_empty() && !candidate.is_expired(now_ms) && !candidate.text.trim().is_empty()
    };
    // A playbook that is not woven itself supersedes no other.
    let claims = active.iter().filter(is_woven);
    let superseded =
        Supersessions::new(claims.map(|claim| (&*claim.slug, claim.priority, &*claim.supersedes)))
            .superseded();
    let (mut woven, mut barred) = (Vec::new(), Vec::new());
    for &one in active {
        match (one.violations.first(), superseded.get(&*one.slug)) {
            (Some(touch), _) => barred.push(SkippedOverlay::locked(&one.slug, touch.clone())),
            (None, Some(by)) => {
                let reason = SkipReason::Superseded((*by).to_owned());
                barred.push(SkippedOverlay { id: one.slug.clone(), reason });
            }
            (None, None) => woven.push(one),
        }
    }
    (woven, barred)
}

/// The prompt as it would be if a playbook were active, and those that it supersedes were archived.
fn counterfactual(
    base: &BasePrompt,
    one: &Candidate,
    active: &[&Candidate],
    advised: &[&Candidate],
    now_ms: i64,
) -> Result<String, SkipReason> {
    let stays = |other: &&Candidate| !one.supersedes.contains(&other.slug);
    let with: Vec<&Candidate> = active.iter().copied().filter(stays).chain([one]).collect();
    let (selected, barred) = select_active(&with, now_ms);
    let woven = weave(base, [advised, &selected].concat(), now_ms);
    match barred.into_iter().chain(woven.skipped).find(|other| other.id == one.slug) {
        Some(skipped) => Err(skipped.reason),
        None => Ok(woven.prompt),
    }
}

impl SkippedOverlay {
    fn locked(id: &str, touch: Violation) -> SkippedOverlay {
        SkippedOverlay { id: id.to_owned(), reason: SkipReason::Locked(Box::new(touch)) }
    }
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

    fn overlay(id: &str, text: &str, priority: u8, written_ms: i64) -> Candidate {
        Candidate {
            slug: id.to_owned(),
            text: text.to_owned(),
            block: None,
            priority: priority.min(ADVISORY_CAP),
            written_ms: Some(written_ms),
            expires_ms: Some(1_000),
            status: Status::Active,
            supersedes: Vec::new(),
            violations: Vec::new(),
        }
    }

    fn playbook(slug: &str, block: Option<&str>, text: &str, priority: u8) -> Candidate {
        let block = block.map(str::to_owned);
        Candidate { block, priority, expires_ms: None, ..overlay(slug, text, priority, 1) }
    }

    fn weave(base: &str, texts: &[Candidate], now_ms: i64) -> WovenPrompt {
        super::weave(&BasePrompt::from_body(base), texts.iter().collect(), now_ms)
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
