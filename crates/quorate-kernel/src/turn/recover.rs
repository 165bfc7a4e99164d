//! Taking up a conversation: where this runtime left off follows from the ledger's last word and from the stamps of the
//! turns since. Where they differ the conversation holds, and the difference is recorded (K3, K5).

use std::collections::{BTreeMap, BTreeSet};

use quorate_protocol::{Json, Name};
use serde_json::Map;

use super::commit::appended_turn;
use super::{Begin, Error, PartialAnswer, READ_PAGE_TURNS, Runner, own_stamp};
use crate::conversation::Turn;
use crate::ports::ledger::{self, Entry, Ledger, Record};
use crate::ports::substrate::Keeps;
use crate::ports::telemetry::EventKind;
use crate::record;

/// The state in the ledger's last record.
pub(super) struct LedgerPosition {
    /// The last turn that is settled.
    pub(super) cursor: Option<Name>,
    /// The number of the stream's next record.
    pub(super) next: u64,
    /// The turns that it names after that one.
    pub(super) recorded: BTreeSet<Name>,
}

/// The last word of a stream.
pub(super) async fn read_position(
    ledger: &dyn Ledger,
    stream: &Name,
) -> Result<LedgerPosition, ledger::Error> {
    let mut count = 32;
    loop {
        let tail = ledger.tail(stream, count).await?;
        let next = tail.last().map_or(0, |record| record.n + 1);
        let settled = tail.iter().enumerate().rev().find_map(|(at, record)| Some((at, cursor(record)?)));
        // Attempts may be behind the last settled turn, in any number.
        if settled.is_some() || tail.len() < count as usize {
            let behind = &tail[settled.as_ref().map_or(0, |(at, _)| at + 1)..];
            let recorded = behind.iter().flat_map(appended).collect();
            return Ok(LedgerPosition { cursor: settled.map(|(_, cursor)| cursor), next, recorded });
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

/// What the turns since the cursor say.
#[derive(Default)]
struct ConversationScan {
    /// The last trigger that was answered.
    answering: Option<PartialAnswer>,
    /// Our turns that the ledger does not know.
    unrecorded: Vec<(Name, Entry)>,
    /// The last state of each participant.
    states: BTreeMap<Name, Map<String, Json>>,
    /// The turns since the cursor, where there is one: what answers an earlier turn is settled.
    since: BTreeSet<Name>,
    /// The last turn of all.
    newest: Option<Name>,
    count: usize,
}

impl Runner {
    /// Finds where to go on. `recorded` are the turns since the cursor that the ledger knows.
    pub(super) async fn recover(&mut self, begin: Begin, recorded: &BTreeSet<Name>) -> Result<(), Error> {
        let known = self.cursor.clone();
        let (mut found, was_there) = self.scan(known.as_ref()).await?;
        if known.is_some() && !was_there {
            self.recover_lost_cursor(&found).await?;
        }
        self.unsaved_states.extend(found.states);
        self.save_states().await;
        found.unrecorded.retain(|(turn, _)| !recorded.contains(turn));
        let unrecorded = found.unrecorded.len();
        if unrecorded > 0 {
            self.emit(EventKind::LedgerDiffers {
                what: match unrecorded {
                    1 => "1 turn of this conversation was not in the ledger".to_owned(),
                    _ => format!("{unrecorded} turns of this conversation were not in the ledger"),
                },
            });
            self.records.put(found.unrecorded.into_iter().map(|(_, entry)| entry).collect()).await?;
        }
        match (found.answering, &self.cursor) {
            // Everything before the trigger is settled; some of its participants may still have to answer.
            (Some(answering), _) => self.resume_trigger(answering).await?,
            (None, Some(cursor)) => self.start_after(&cursor.clone()).await?,
            (None, None) if begin == Begin::Now => {
                if let Some(newest) = &found.newest {
                    self.start_after(newest).await?;
                    let entry = self.unanswered_entry(newest, Some("it was there before this runtime began"));
                    self.records.put(vec![entry]).await?;
                }
            }
            (None, None) => {}
        }
        Ok(())
    }

    /// The last turn that was read is gone: where to go on follows from the conversation as it is now.
    pub(super) async fn resync(&mut self) -> Result<(), Error> {
        self.pending.clear();
        self.settled.clear();
        self.agent_turns_in_a_row = 0;
        self.resumed = None;
        self.cursor = self.cursor.take().or(self.last_read.take());
        self.last_read = None;
        self.recover(Begin::First, &BTreeSet::new()).await
    }

    /// Reads everything since the cursor, a page at a time, and keeps of it what counts.
    async fn scan(&self, since: Option<&Name>) -> Result<(ConversationScan, bool), Error> {
        let mut found = ConversationScan::default();
        let mut at = since.cloned();
        let mut was_there = true;
        loop {
            let page = self.swarm.substrate.read(at.as_ref(), READ_PAGE_TURNS).await?;
            if found.count == 0 {
                was_there = page.known;
            }
            let since = since.filter(|_| was_there);
            let Some(last) = page.turns.last() else { break };
            at = Some(last.id.clone());
            found.newest = at.clone();
            found.count += page.turns.len();
            page.turns.iter().for_each(|turn| self.scan_turn(turn, since, &mut found));
        }
        Ok((found, was_there))
    }

    fn scan_turn(&self, turn: &Turn, since: Option<&Name>, found: &mut ConversationScan) {
        if since.is_some() {
            found.since.insert(turn.id.clone());
        }
        let Some(stamp) = own_stamp(&self.swarm.runtime, turn) else { return };
        if let Some(state) = &stamp.state {
            found.states.insert(turn.participant.clone(), state.clone());
        }
        if since.is_some() && !found.since.contains(&stamp.trigger) {
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

    /// The settled turn is gone: the conversation was cut, restored or replaced.
    async fn recover_lost_cursor(&mut self, found: &ConversationScan) -> Result<(), Error> {
        let cursor = self.cursor.take().unwrap_or_default();
        if self.swarm.substrate.about().keeps == Keeps::Turns && found.count > 0 {
            self.cursor = Some(cursor.clone());
            return Err(Error::PositionUnknown(format!(
                "turn {cursor}, the last one that was settled, is not in the conversation any more, and this \
                 substrate cannot tell which turns were answered"
            )));
        }
        let what =
            format!("turn {cursor}, the last one that was settled, is not in the conversation any more");
        self.emit(EventKind::LedgerDiffers { what: what.clone() });
        let data = record::Turn { differs: Some(what), ..record::Turn::default() };
        let entry = Entry::of(&data, self.swarm.clock.now_ms());
        Ok(self.records.put(vec![entry]).await?)
    }

    /// Marks the turns up to a settled one as settled.
    async fn start_after(&mut self, settled: &Name) -> Result<(), Error> {
        let reach = self.lookback();
        for turn in self.swarm.substrate.window(settled, reach).await? {
            self.settle(turn);
        }
        self.cursor = Some(settled.clone());
        self.last_read = Some(settled.clone());
        Ok(())
    }

    /// The trigger is taken up once more, for the participants that have not answered it.
    async fn resume_trigger(&mut self, answering: PartialAnswer) -> Result<(), Error> {
        let reach = self.lookback() + 1;
        let mut window = self.swarm.substrate.window(&answering.trigger, reach).await?;
        let Some(trigger) = window.pop() else {
            // It was removed from the conversation. Its answers are still there.
            let what = format!("turn {}, which was answered, is not in the conversation", answering.trigger);
            self.emit(EventKind::LedgerDiffers { what });
            return self.start_after(&answering.last).await;
        };
        for turn in window {
            self.settle(turn);
        }
        self.last_read = Some(trigger.id.clone());
        self.pending.push_back(trigger);
        self.resumed = Some(answering);
        Ok(())
    }

    /// How far back a start has to look: for the window, and for turns of participants in a row.
    fn lookback(&self) -> usize {
        self.swarm.policy.window.max(self.swarm.policy.max_agent_turns)
    }
}
