//! Composes prompts for `weave`, `run` and `convene`: a persona's or an operator's, with its active playbooks and overlays
//! (B3, K2).
//!
//! Playbooks are read once per command, as the seed requires; overlays of advisory runs and expiry times are evaluated
//! for each prompt.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::ledger::{self, PlaybookEvent, Record};
use quorate_kernel::record::PlaybookEventData;
use quorate_kernel::redact::Redactor;
use quorate_ledger::Store;
use quorate_ledger::store::StreamPosition;
use quorate_manifest::playbook::{FOLDER, Status};
use quorate_manifest::workspace::Scope;
use quorate_playbook::bind::MatchKind;
use quorate_playbook::contradiction::contradictions;
use quorate_playbook::lock::Trait;
use quorate_playbook::persona::BasePrompt;
use quorate_playbook::weave::{Candidate, Composition, ShadowPrompt, SkipReason, compose};
use quorate_protocol::overlay::Overlay;
use quorate_protocol::{Json, Name};
use serde::Deserialize as _;
use serde_json::json;
use tokio::sync::Mutex;

use super::environment::Environment;
use super::error::Error;
use crate::playbook::change::{self, ChangeEvent, PlaybookChange};
use crate::playbook::library::{self, Catalogue, Gating, KnownOperator};
use crate::playbook::traits::compile;

/// The recorded compositions, as far as the stream was read.
type SharedPromptHistory = Arc<Mutex<Projection<PromptHistory>>>;

/// The recorded prompts of one agent.
#[derive(Debug, Clone, Default)]
struct PromptHistory {
    /// The last recorded composition.
    last: Option<PlaybookEventData>,
    /// Playbooks and operators that a pattern has already matched (B10).
    matched: BTreeSet<(String, String)>,
}

/// The parts of an agent's prompt, except overlays of advisory runs.
#[derive(Debug, Clone)]
pub struct Sources {
    /// The prompt before weaving.
    pub(super) base: Arc<BasePrompt>,
    candidates: Arc<[Candidate]>,
    /// Active playbooks that passed no gate (B13).
    pub(super) never_gated: Arc<[String]>,
    traits: Arc<[Arc<Trait>]>,
    /// Playbooks that target it by a pattern, each with the operator that the pattern matches.
    pub(super) matched: Arc<[(String, String)]>,
    root: Arc<Path>,
    scope: Scope,
    /// The operators, by the names that overlays use.
    operators: Arc<[String]>,
    slugs: Arc<str>,
    redactor: Redactor,
    /// The agent's recorded prompts.
    recorded: SharedPromptHistory,
}

impl Sources {
    /// Collects the sources of an agent. Leaves out and reports a playbook that differs from its history, or that lacks
    /// a promotion by governance; names playbooks that contradict each other.
    pub fn new(
        environment: &Environment,
        redactor: &Redactor,
        (root, scope): (&Path, &Scope),
        catalogue: &Catalogue,
        base: BasePrompt,
        known: &[&KnownOperator],
        report: &mut Report,
    ) -> Self {
        let mut candidates: BTreeMap<&str, Candidate> = BTreeMap::new();
        let (mut matched, mut never_gated) = (Vec::new(), Vec::new());
        for (book, known) in catalogue.matching(known) {
            let slug = &book.playbook.slug;
            for (one, how) in known {
                if how == MatchKind::Pattern && book.playbook.status != Status::Archived {
                    matched.push((slug.clone(), one.slug.clone()));
                }
                let candidate = one.candidate(&book.playbook, book.text());
                match candidates.get_mut(&**slug) {
                    None => drop(candidates.insert(slug, candidate)),
                    // If a playbook targets several operators of the agent, the locks of each apply.
                    Some(there) => there.violations.extend(candidate.violations),
                }
            }
            let checked = catalogue.record(environment, root, book).and_then(|record| {
                record.ensure_intact(environment)?;
                Ok(catalogue.gating(book, &record))
            });
            match checked {
                Ok(Gating::Passed) => {}
                Ok(Gating::NeverGated) => never_gated.push(slug.clone()),
                Ok(Gating::Denied { body, .. }) => {
                    report.refuse(codes::PROMOTION_DENIED, body);
                    candidates.remove(&**slug);
                }
                Err(error) => {
                    report.absorb(*error.report);
                    candidates.remove(&**slug);
                }
            }
            if book.playbook.status == Status::Active {
                for body in library::ineffective_claims(catalogue, &book.playbook) {
                    report.warn(codes::SUPERSEDES_WITHOUT_EFFECT, body);
                }
            }
        }
        let candidates: Vec<Candidate> = candidates.into_values().collect();
        for found in contradictions(&candidates, environment.clock.now_ms()) {
            report.warn(codes::PLAYBOOKS_CONTRADICT, Body::new(found.to_string()).help(found.help()));
        }
        let mut traits: BTreeMap<&str, Arc<Trait>> = BTreeMap::new();
        known.iter().flat_map(|one| &one.traits).for_each(|one| drop(traits.insert(&one.id, one.clone())));
        let slugs: Vec<&str> = known.iter().map(|one| &*one.slug).collect();
        Sources {
            base: Arc::new(base),
            candidates: candidates.into(),
            never_gated: never_gated.into(),
            traits: traits.into_values().collect(),
            matched: matched.into(),
            root: root.into(),
            scope: scope.clone(),
            operators: known.iter().map(|one| one.overlay_name(scope)).collect(),
            slugs: slugs.join(", ").into(),
            redactor: redactor.clone(),
            recorded: Arc::default(),
        }
    }

    /// The playbooks that target it.
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// Keeps the overlays of advisory runs that target its operators.
    pub fn overlays_for_operators(&self, mut holding: Vec<Overlay>) -> Vec<Overlay> {
        holding.retain(|one| self.operators.contains(&one.operator));
        holding
    }

    /// Composes the prompt for a point in time with these overlays of advisory runs, and redacts secrets.
    pub fn compose(&self, advice: &[Overlay], now_ms: i64) -> Composition {
        // Only overlays of advice are checked against traits.
        let traits: &[Arc<Trait>] = if advice.is_empty() { &[] } else { &self.traits };
        let mut composed = compose(&self.base, &self.candidates, advice, &compile(traits), now_ms);
        let prompts = composed.shadows.iter_mut().filter_map(|one| one.prompt.as_mut().ok());
        for prompt in prompts.chain([&mut composed.woven.prompt]) {
            *prompt = self.redactor.redact(prompt).0;
        }
        composed
    }

    /// SHA-256 of each woven text, in the order of the prompt.
    pub fn hashes(&self, composed: &Composition, advice: &[Overlay]) -> Vec<String> {
        let text = |id: &str| {
            let book = self.candidates.iter().find(|one| one.slug == id).map(|one| &one.text);
            book.or_else(|| advice.iter().find(|one| one.overlay == id).map(|one| &one.text))
        };
        let hash = |id: &str| sha256_hex(text(id).map_or(&[][..], |text| text.as_bytes()));
        composed.woven.woven.iter().map(|one| hash(&one.id)).collect()
    }

    /// The records of a composed prompt: woven, skipped and shadow texts. `None` if the prompt is the base alone.
    pub(crate) fn events(&self, composed: &Composition) -> Option<(Vec<ChangeEvent>, Vec<ledger::Body>)> {
        if self.candidates.is_empty() {
            return None;
        }
        let prompt = &composed.woven.prompt;
        let mut bodies = vec![body(prompt)];
        bodies.extend(composed.shadows.iter().filter_map(|one| Some(body(one.prompt.as_ref().ok()?))));
        let used: Vec<Json> =
            composed.woven.woven.iter().map(|one| json!({"id": one.id, "priority": one.priority})).collect();
        let words = match (used.len(), composed.shadows.len()) {
            (woven, 0) => format!("for {}: {woven} woven", self.slugs),
            (woven, shadows) => format!("for {}: {woven} woven, {shadows} in shadow", self.slugs),
        };
        let data = json!({
            "operator": &*self.slugs, "sha256": sha256_hex(prompt.as_bytes()), "woven": used,
            "shadows": shadows(&composed.shadows),
        });
        let mut events = vec![ChangeEvent::new(PlaybookEvent::Composed, &self.slugs, words, data)];
        for one in &composed.woven.skipped {
            let SkipReason::Locked(touch) = &one.reason else { continue };
            let words = format!("not woven for {}: {}", self.slugs, one.reason);
            let data = json!({"operator": &*self.slugs, "trait": touch.id, "excerpt": self.redactor.redact(&touch.excerpt).0});
            events.push(ChangeEvent::new(PlaybookEvent::Skipped, &one.id, words, data));
        }
        Some((events, bodies))
    }

    /// Records a composed prompt unless it equals the last one recorded for the same agent; and each pattern that
    /// matches an operator for the first time (B10).
    ///
    /// # Errors
    /// If the ledger does not answer.
    #[crate::boxed]
    pub async fn record(&self, store: &Store, composed: &Composition, now_ms: i64) -> Result<(), Error> {
        let Some((mut events, mut bodies)) = self.events(composed) else { return Ok(()) };
        let stream: Name = change::playbook_stream(&self.scope);
        let mut recorded = self.recorded.lock().await;
        let slugs = self.slugs.clone();
        let noted = recorded.catch_up(store, &stream, |noted, record| {
            let Some(event) = change::playbook_event(record) else { return Ok(()) };
            if record.kind == PlaybookEvent::Composed.as_str() {
                if event.operator.as_deref() == Some(&slugs) {
                    noted.last = Some(event);
                }
            } else if record.kind == PlaybookEvent::Registered.as_str()
                && let Some(matched) = event.slug.zip(event.operator)
            {
                noted.matched.insert(matched);
            }
            Ok(())
        });
        let noted = noted.await?;
        let composed = PlaybookEventData::deserialize(&events[0].data).unwrap_or_default();
        let is_same = |last: &PlaybookEventData| {
            last.sha256 == composed.sha256 && last.shadows == composed.shadows && last.woven == composed.woven
        };
        if noted.last.as_ref().is_some_and(is_same) {
            (events, bodies) = Default::default();
        }
        let new = self.matched.iter().filter(|one| !noted.matched.contains(one));
        events.extend(new.filter_map(|(slug, operator)| {
            change::first_match_event(&self.root, &self.scope, slug, operator)
        }));
        if events.is_empty() {
            return Ok(());
        }
        // The id of the change is new, so only the end of the stream is read.
        let change = PlaybookChange { events, ..PlaybookChange::new_at(now_ms) };
        change::append_new_events(store, &stream, &change, bodies, &mut recorded.next_n()).await?;
        // The ledger is authoritative; an unwritable workspace is no reason to stop a weave.
        let dir = self.root.join(self.scope.folder());
        let _ = change::append_lines(&dir, &dir.join(FOLDER), now_ms, &change.events);
        Ok(())
    }
}

/// Shadow prompts by slug: the hash of the prompt, or the reason why it is missing.
pub(crate) fn shadows(shadows: &[ShadowPrompt]) -> Json {
    let one = |prompt: &Result<String, SkipReason>| match prompt {
        Ok(prompt) => json!({"sha256": sha256_hex(prompt.as_bytes())}),
        Err(why) => json!({"why": why.to_string()}),
    };
    shadows.iter().map(|shadow| (shadow.id.clone(), one(&shadow.prompt))).collect()
}

fn body(text: &str) -> ledger::Body {
    ledger::Body { sha256: sha256_hex(text.as_bytes()), text: text.into() }
}

/// The state of a stream up to the last record read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Projection<T> {
    seen: StreamPosition,
    value: T,
}

impl<T: Default> Projection<T> {
    /// Applies new records and returns the state. If the last record read is gone, the whole stream is read again.
    ///
    /// # Errors
    /// If the ledger does not answer, or a record is malformed; the next call then reads everything again.
    pub(crate) async fn catch_up(
        &mut self,
        store: &Store,
        stream: &Name,
        take: impl Fn(&mut T, &Record) -> Result<(), Error>,
    ) -> Result<&T, Error> {
        let before = std::mem::take(self);
        let (mut value, behind) = match store.records_after(stream, &before.seen).await? {
            Some(behind) => (before.value, Some(behind)),
            None => (T::default(), store.records_after(stream, &StreamPosition::default()).await?),
        };
        let (records, seen) = behind.unwrap_or_default();
        for record in &records {
            take(&mut value, record)?;
        }
        *self = Projection { seen, value };
        Ok(&self.value)
    }

    /// The number of the stream's next record.
    pub(crate) fn next_n(&self) -> u64 {
        self.seen.next()
    }
}
