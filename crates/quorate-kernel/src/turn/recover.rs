//! Taking up a conversation: where this runtime left off follows from the ledger's last word and from the stamps of the
//! turns since. Where they differ the conversation holds, and the difference is recorded (K3, K5).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use quorate_protocol::{Json, Name};
use serde_json::Map;

use super::commit::appended_turn;
use super::cycle::Chains;
use super::evidence::{Alteration, Evidence, Scope};
use super::{Begin, PartialAnswer, READ_PAGE_TURNS, Runner, TurnError, own_stamp};
use crate::conversation::Turn;
use crate::ports::ledger::{self, Entry, Ledger, Record};
use crate::ports::substrate::{IdProof, Keeps, SubstrateError};
use crate::ports::telemetry::EventKind;
use crate::record;

/// How many of the last records are searched for the answers that a substrate keeps without stamps.
const CHAIN_RECORDS: u32 = 1_024;

/// The state in the ledger's last record.
pub(super) struct LedgerPosition {
    /// The last turn that is settled.
    pub(super) cursor: Option<Name>,
    /// The number of the stream's next record.
    pub(super) next: u64,
    /// The turns that it names after that one.
    pub(super) recorded: BTreeSet<Name>,
    /// What it recorded of the last turns.
    pub(super) evidence: Evidence,
}

/// How a runner begins.
#[derive(Debug, Clone)]
pub(super) struct Start {
    pub(super) begin: Begin,
    /// The turns since the cursor that the ledger knows.
    pub(super) recorded: BTreeSet<Name>,
}

/// The most records that are read to compare a window.
const MAX_TAIL_RECORDS: u32 = 8_192;

/// The newest state of a stream, with evidence of at least the last `reach` turns if the stream has it.
pub(super) async fn read_position(
    ledger: &dyn Ledger,
    stream: &Name,
    reach: usize,
) -> Result<LedgerPosition, ledger::LedgerError> {
    let mut count = 32;
    loop {
        let tail = ledger.tail(stream, count).await?;
        let next = tail.last().map_or(0, |record| record.n + 1);
        let settled = tail.iter().enumerate().rev().find_map(|(at, record)| Some((at, cursor(record)?)));
        let evidence = Evidence::from_records(&tail);
        let is_enough = settled.is_some()
            && (evidence.is_empty() || evidence.len() >= reach || count >= MAX_TAIL_RECORDS);
        // Attempts may be behind the last settled turn, in any number.
        if is_enough || tail.len() < count as usize {
            let behind = &tail[settled.as_ref().map_or(0, |(at, _)| at + 1)..];
            let recorded = behind.iter().flat_map(appended).collect();
            let cursor = settled.map(|(_, cursor)| cursor);
            return Ok(LedgerPosition { cursor, next, recorded, evidence });
        }
        count = count.saturating_mul(8);
    }
}

fn cursor(record: &Record) -> Option<Name> {
    record.read::<record::Turn>().ok()??.cursor
}

/// The turns that a record says were appended.
fn appended(record: &Record) -> Vec<Name> {
    let turn: Option<record::Turn> = record.read().ok().flatten();
    let appended = turn.and_then(|turn| turn.appended).unwrap_or_default();
    appended.into_iter().map(|answer| answer.turn).collect()
}

/// The turns since the cursor.
#[derive(Default)]
struct ConversationScan {
    /// The last trigger that was answered.
    answering: Option<PartialAnswer>,
    /// Our turns that the ledger does not know.
    unrecorded: Vec<(Name, Entry)>,
    /// The number of each turn, counted from the first one that was read.
    numbers: HashMap<Name, u64>,
    /// The last state of each participant.
    states: BTreeMap<Name, Map<String, Json>>,
    /// The first turn in a participant's name that the ledger should know and does not.
    unknown: Option<Alteration>,
    /// The last turn of all.
    newest: Option<Name>,
    count: usize,
}

impl Runner {
    /// Takes up the conversation, unless that is done. If it fails or is dropped, the next call begins again.
    pub(super) async fn start(&mut self) -> Result<(), TurnError> {
        if let Some(failed) = self.failed_start.take() {
            return Err(failed);
        }
        let Some(begin) = self.start.as_ref().map(|start| start.begin) else { return Ok(()) };
        match self.recover(begin).await {
            Err(TurnError::Altered(Alteration { what, .. }) | TurnError::PositionUnknown(what))
                if begin == Begin::Now =>
            {
                self.accept(what).await?;
            }
            recovered => recovered?,
        }
        self.start = None;
        Ok(())
    }

    /// Finds the position to continue from.
    async fn recover(&mut self, begin: Begin) -> Result<(), TurnError> {
        // An earlier attempt may have stopped halfway.
        self.forget_turns();
        self.chains = match self.about.keeps {
            Keeps::Stamps => Chains::default(),
            Keeps::Turns => {
                let records = self.swarm.ledger.tail(&self.call_context.run, CHAIN_RECORDS).await?;
                Chains::of_records(&self.roster, &records)
            }
        };
        self.last_read = None;
        let known = self.cursor.clone();
        let (mut found, was_there) = self.scan(known.as_ref()).await?;
        if known.is_some() && !was_there {
            // The last settled turn is gone. No other one may stand in its place in a participant's name.
            if let Some(unknown) = found.unknown.take() {
                return Err(TurnError::Altered(unknown));
            }
            self.recover_lost_cursor(&found).await?;
        }
        if self.cursor.is_none() {
            self.position = Some(0);
        }
        self.unsaved_states.extend(std::mem::take(&mut found.states));
        self.save_states().await;
        let recorded = self.start.as_ref().map(|start| start.recorded.clone()).unwrap_or_default();
        found.unrecorded.retain(|(turn, _)| !recorded.contains(turn));
        let unrecorded = found.unrecorded.len();
        if unrecorded > 0 {
            self.emit(EventKind::LedgerDiffers {
                what: match unrecorded {
                    1 => "1 turn of this conversation was not in the ledger".to_owned(),
                    _ => format!("{unrecorded} turns of this conversation were not in the ledger"),
                },
            });
            let (turns, entries): (Vec<Name>, Vec<Entry>) = found.unrecorded.into_iter().unzip();
            self.records.put(entries).await?;
            // A start that fails later and is repeated does not record them again.
            self.start.iter_mut().for_each(|start| start.recorded.extend(turns.iter().cloned()));
        }
        let numbers = &found.numbers;
        match (found.answering, &self.cursor) {
            // Everything before the trigger is settled; some of its participants may still have to answer.
            (Some(answering), _) => self.resume_trigger(answering, numbers).await?,
            (None, Some(cursor)) => self.start_after(&cursor.clone(), numbers).await?,
            (None, None) if begin == Begin::Now => {
                if let Some(newest) = &found.newest {
                    self.start_after(newest, numbers).await?;
                    let entry = self.unanswered_entry(newest, Some("it was there before this runtime began"));
                    self.records.put(vec![entry]).await?;
                }
            }
            (None, None) => {}
        }
        let is_exact = self.settled.back().is_some_and(|settled| self.is_exact(&settled.turn));
        let gone = self.evidence.unsettled_answers().find(|answer| !numbers.contains_key(*answer));
        match gone.filter(|_| is_exact && was_there) {
            Some(gone) => Err(TurnError::Altered(Alteration::missing(gone))),
            None => Ok(()),
        }
    }

    fn forget_turns(&mut self) {
        self.pending.clear();
        self.settled.clear();
        self.last_window.clear();
        self.unrecorded_settled.clear();
        self.resumed = None;
    }

    /// Goes on after all turns of a conversation that a person accepts although it was altered. No participant sees any of
    /// them.
    async fn accept(&mut self, what: String) -> Result<(), TurnError> {
        let (mut at, mut count) = (None, 0);
        loop {
            let page = self.swarm.substrate.read(at.as_ref(), READ_PAGE_TURNS).await?;
            if at.is_some() && !page.known {
                return Err(damaged());
            }
            let Some(last) = page.turns.last() else { break };
            at = Some(last.id.clone());
            count += page.turns.len() as u64;
        }
        self.forget_turns();
        (self.evidence, self.chains) = (Evidence::default(), Chains::default());
        (self.cursor, self.last_read, self.position) = (at.clone(), at.clone(), Some(count));
        self.emit(EventKind::LedgerDiffers { what: what.clone() });
        let data = record::Turn {
            differs: Some(what),
            cursor: at,
            position: Some(count),
            settled: Some(Vec::new()),
            ..record::Turn::default()
        };
        let entry = Entry::of(&data, self.swarm.clock.now_ms());
        Ok(self.records.put(vec![entry]).await?)
    }

    /// Refuses turns that were altered, before a participant sees them, and names their authors (D15, K17).
    pub(super) fn check_turns(&self, turns: &mut [Turn]) -> Result<(), TurnError> {
        let substrate = &*self.swarm.substrate;
        if substrate.about().keeps == Keeps::Turns {
            self.evidence.name_authors(turns);
        }
        let found = self.evidence.compare_each(&self.swarm.runtime, turns, |turn| substrate.id_proof(turn));
        found.into_iter().next().map_or(Ok(()), |altered| Err(TurnError::Altered(altered)))
    }

    /// Whether turns of this conversation do not change.
    fn is_exact(&self, turn: &Turn) -> bool {
        self.swarm.substrate.id_proof(turn) != IdProof::Unsupported
    }

    /// Reads turns up to one, and compares those up to the cursor with the ledger.
    async fn read_window(&self, at: &Name, count: usize) -> Result<Vec<Turn>, TurnError> {
        let mut turns = self.swarm.substrate.window(at, count).await?;
        self.evidence.remove_accepted(&mut turns);
        self.check_turns(&mut turns)?;
        if let Some(newer) = self.newer_than_cursor(&turns) {
            let proof = |turn: &Turn| self.swarm.substrate.id_proof(turn);
            let found = self.evidence.compare(&self.swarm.runtime, &turns[..newer], proof, Scope::Window);
            if let Some(altered) = found.into_iter().next() {
                return Err(TurnError::Altered(altered));
            }
        }
        Ok(turns)
    }

    /// Where the turns behind the cursor begin, if the cursor is among them.
    fn newer_than_cursor(&self, turns: &[Turn]) -> Option<usize> {
        let cursor = self.cursor.as_ref()?;
        turns.iter().rposition(|turn| turn.id == *cursor).map(|at| at + 1)
    }

    /// Marks turns as settled, of which the last has a number among those that were read since the cursor.
    fn settle_window(&mut self, turns: Vec<Turn>, last: Option<u64>) {
        let settled = self.newer_than_cursor(&turns).unwrap_or(0);
        let newer = (turns.len() - settled) as u64;
        if newer > 0 {
            self.position = self.position.zip(last).and_then(|(base, last)| (base + last).checked_sub(newer));
        }
        for (at, turn) in turns.into_iter().enumerate() {
            match at < settled {
                true => self.settle(turn),
                false => self.settle_new(turn),
            }
        }
    }

    /// The last turn that was read no longer exists: the position follows from the present conversation.
    pub(super) async fn resync(&mut self) -> Result<(), TurnError> {
        self.cursor = self.cursor.take().or(self.last_read.take());
        self.start = Some(Start { begin: Begin::First, recorded: BTreeSet::new() });
        self.start().await
    }

    /// Reads everything since the cursor, a page at a time, and keeps of it what counts.
    async fn scan(&self, since: Option<&Name>) -> Result<(ConversationScan, bool), TurnError> {
        let mut found = ConversationScan::default();
        let mut at = since.cloned();
        let mut was_there = true;
        loop {
            let mut page = self.swarm.substrate.read(at.as_ref(), READ_PAGE_TURNS).await?;
            if found.count == 0 {
                was_there = page.known;
            } else if !page.known {
                return Err(damaged());
            }
            self.check_turns(&mut page.turns)?;
            let since = since.filter(|_| was_there);
            let Some(last) = page.turns.last() else { break };
            at = Some(last.id.clone());
            found.newest = at.clone();
            for turn in &page.turns {
                found.count += 1;
                found.numbers.insert(turn.id.clone(), found.count as u64);
                self.scan_turn(turn, since.is_some(), &mut found);
            }
        }
        Ok((found, was_there))
    }

    fn scan_turn(&self, turn: &Turn, is_behind_cursor: bool, found: &mut ConversationScan) {
        let is_participant = self.roster.iter().any(|participant| participant.id == turn.participant);
        if is_participant && self.is_exact(turn) && self.evidence.lacks(found.count as u64, &turn.id) {
            found.unknown.get_or_insert_with(|| Alteration::unknown(&turn.id, &turn.participant));
        }
        let Some(stamp) = own_stamp(&self.swarm.runtime, turn) else { return };
        if let Some(state) = &stamp.state {
            found.states.insert(turn.participant.clone(), state.clone());
        }
        // A turn that answers an earlier one is settled.
        if is_behind_cursor && !found.numbers.contains_key(&stamp.trigger) {
            return;
        }
        match &mut found.answering {
            Some(answering) if answering.trigger == stamp.trigger => {
                answering.answered.insert(turn.participant.clone());
                answering.last = turn.id.clone();
            }
            answering => {
                let alone = stamp.selected.is_empty();
                *answering = Some(PartialAnswer {
                    trigger: stamp.trigger.clone(),
                    selected: if alone { vec![turn.participant.clone()] } else { stamp.selected.clone() },
                    answered: [turn.participant.clone()].into(),
                    last: turn.id.clone(),
                });
            }
        }
        let data = record::Turn {
            trigger: Some(stamp.trigger.clone()),
            appended: Some(vec![appended_turn(turn)]),
            recovered: Some(true),
            ..record::Turn::default()
        };
        let entry = Entry::of(&data, self.swarm.clock.now_ms());
        found.unrecorded.push((turn.id.clone(), entry));
    }

    /// The settled turn is gone: the conversation was cut, restored or replaced. Where turns do not change, only an empty
    /// conversation is taken up (D15).
    async fn recover_lost_cursor(&mut self, found: &ConversationScan) -> Result<(), TurnError> {
        let first = self.swarm.substrate.read(None, 1).await?.turns.pop();
        if first.is_some_and(|first| self.is_exact(&first)) {
            return Err(TurnError::Altered(Alteration::missing(&self.cursor.clone().unwrap_or_default())));
        }
        let cursor = self.cursor.take().unwrap_or_default();
        if self.swarm.substrate.about().keeps == Keeps::Turns && found.count > 0 {
            self.cursor = Some(cursor.clone());
            return Err(TurnError::PositionUnknown(format!(
                "turn {cursor}, the last one that was settled, is not in the conversation any more, and this \
                 substrate cannot tell which turns were answered"
            )));
        }
        let what =
            format!("turn {cursor}, the last one that was settled, is not in the conversation any more");
        self.emit(EventKind::LedgerDiffers { what: what.clone() });
        let data = record::Turn { differs: Some(what), ..record::Turn::default() };
        let entry = Entry::of(&data, self.swarm.clock.now_ms());
        self.evidence.clear();
        Ok(self.records.put(vec![entry]).await?)
    }

    /// Marks the turns up to a settled one as settled.
    async fn start_after(&mut self, settled: &Name, numbers: &HashMap<Name, u64>) -> Result<(), TurnError> {
        let turns = self.read_window(settled, self.lookback()).await?;
        self.settle_window(turns, numbers.get(settled).copied());
        self.cursor = Some(settled.clone());
        self.last_read = Some(settled.clone());
        Ok(())
    }

    /// The trigger is taken up once more, for the participants that have not answered it.
    async fn resume_trigger(
        &mut self,
        answering: PartialAnswer,
        numbers: &HashMap<Name, u64>,
    ) -> Result<(), TurnError> {
        let mut window = self.read_window(&answering.trigger, self.lookback().saturating_add(1)).await?;
        let Some(trigger) = window.pop() else {
            // It was removed from the conversation. Its answers are still there.
            let what = format!("turn {}, which was answered, is not in the conversation", answering.trigger);
            self.emit(EventKind::LedgerDiffers { what });
            return self.start_after(&answering.last, numbers).await;
        };
        self.settle_window(window, numbers.get(&trigger.id).map(|number| number - 1));
        self.last_read = Some(trigger.id.clone());
        self.pending.push_back(trigger);
        self.resumed = Some(answering);
        Ok(())
    }

    /// How far back a start has to look: for the window, and for chains of turns without stamps.
    fn lookback(&self) -> usize {
        self.swarm.policy.window.max(self.swarm.policy.max_agent_turns)
    }
}

/// Why a conversation is not read on: without this, a store that finds none of its own turns would be read without end.
fn damaged() -> TurnError {
    let what = "the conversation is damaged: the turn that was read last is not in it";
    SubstrateError::Refused(what.to_owned()).into()
}
