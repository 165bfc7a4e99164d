//! The content of a proof's records: the first record, the outcome, people's decisions and the answers, each with its record
//! number, so that every shown fact can name its record.

use std::sync::Arc;

use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::history::History;
use quorate_kernel::ports::ledger::{Kind, Record};
use quorate_kernel::record::{Consultation, Outcome, Override, RecordData, RunOpened, Violation};
use quorate_ledger::prove::VerifiedProof;
use quorate_protocol::Name;

use super::{InputText, InvalidContents};
use crate::service::convene;
use crate::service::report::{Finding, Report, numbered_findings};
use crate::service::run_opened;
use crate::service::runs::RunReport;

/// The field that prevents guessing short data from its hash.
const SALT: &str = "salt";

/// The content of a run's records, as far as the proof has their data.
pub struct Content {
    pub run: Name,
    pub opened_ms: i64,
    /// How the run was started; `None` if the proof omits it.
    pub opened: Option<RunOpened>,
    /// The final outcome.
    pub outcome: Option<Numbered<Outcome>>,
    /// People's decisions, oldest first.
    pub overrides: Vec<Numbered<Override>>,
    /// Every answer that counts, and every late one.
    pub consultations: Vec<Consulted>,
    pub violations: Vec<Numbered<Violation>>,
    /// The report of the run; `None` if the proof omits how it was started.
    pub report: Option<RunReport>,
    history: Option<History>,
}

/// Data of a record with the record's number.
pub struct Numbered<T> {
    pub n: u64,
    pub data: T,
}

/// An answer of a member.
pub type Consulted = Numbered<Consultation>;

impl Content {
    /// Reads the records of a verified proof.
    ///
    /// # Errors
    /// If they are not those of one run, or cannot be read.
    pub(super) fn of(proven: &VerifiedProof) -> Result<Content, InvalidContents> {
        let first = proven.records.first().filter(|record| record.kind == Kind::RunOpened.as_str());
        let first = first.ok_or(InvalidContents::NotARun)?;
        let mut next = 0..;
        if proven.records.iter().any(|record| record.run != first.run || Some(record.n) != next.next()) {
            return Err(InvalidContents::NotARun);
        }
        let run = Name::from(&*first.run);
        let mut records = Vec::new();
        for proved in &proven.records {
            let mut data = proved.data.clone();
            if let Some(data) = &mut data {
                data.remove(SALT);
            }
            records.push(Record { n: proved.n, kind: proved.kind.clone(), at_ms: proved.at_ms, data });
        }
        let opened = records[0].read::<RunOpened>().ok().flatten();
        let history = match &opened {
            Some(_) => Some(History::from_remaining_records(&run, records.clone())?),
            None => None,
        };
        // A run that was resumed after an outcome is undecided.
        let decided = records.iter().rposition(|record| record.is(Kind::Outcome));
        let taken_up = records.iter().rposition(|record| record.is(Kind::RunIntent));
        let outcome = numbered::<Outcome>(&records).pop().filter(|_| decided > taken_up);
        let consultations = match &history {
            Some(history) => consulted(&records, history),
            None => Vec::new(),
        };
        Ok(Content {
            run,
            opened_ms: first.at_ms,
            opened,
            outcome,
            overrides: numbered(&records),
            consultations,
            violations: numbered(&records),
            report: None,
            history,
        })
    }

    /// Whether the run is an assembly's.
    pub fn is_assembly(&self) -> bool {
        match (&self.opened, &self.outcome) {
            (Some(opened), _) => run_opened::is_assembly_opening(opened),
            (None, Some(outcome)) => outcome.data.kind.as_deref().is_some_and(|kind| kind != "verdict"),
            (None, None) => false,
        }
    }

    /// The deliberators' findings, each with its place in the outcome.
    pub fn findings(&self) -> Vec<(usize, Finding)> {
        self.outcome.as_ref().map(|outcome| numbered_findings(&outcome.data)).unwrap_or_default()
    }

    /// The answer of a member in a step.
    pub fn consultation(&self, step: &str, member: &str) -> Option<&Consulted> {
        self.consultations.iter().find(|asked| *asked.data.step == *step && *asked.data.member == *member)
    }

    /// Texts with their names in the run.
    ///
    /// # Errors
    /// If one is not the text of its input, or they are not in order.
    pub(super) fn named(&self, texts: Vec<(usize, Arc<str>)>) -> Result<Vec<InputText>, InvalidContents> {
        let inputs = self.opened.as_ref().map(|opened| &*opened.inputs).unwrap_or_default();
        let mut named: Vec<InputText> = Vec::new();
        for (input, text) in texts {
            let found = inputs.get(input).filter(|found| found.sha256 == sha256_hex(text.as_bytes()));
            let is_next = named.last().is_none_or(|before| before.input < input);
            let found = found.filter(|_| is_next).ok_or(InvalidContents::ForeignText(input))?;
            named.push(InputText { input, name: found.name.clone(), text });
        }
        Ok(named)
    }

    /// Adds the report; that of a review needs its text.
    pub(super) fn with_report(mut self, texts: &[InputText]) -> Content {
        let is_assembly = self.is_assembly();
        self.report = self.history.as_ref().and_then(|history| {
            if is_assembly {
                return convene::report::Report::of(history)
                    .map(|report| RunReport::Assembly(Box::new(report)));
            }
            let text = texts.first().map(|text| text.text.clone());
            Some(RunReport::Review(Box::new(Report::of(history, text))))
        });
        self
    }
}

/// The data of all records of a kind that can be read.
fn numbered<T: RecordData>(records: &[Record]) -> Vec<Numbered<T>> {
    let read = |record: &Record| Some(Numbered { n: record.n, data: record.read().ok()?? });
    records.iter().filter_map(read).collect()
}

/// The consultations of the history, in its order. If a resumed run asked for one twice, the last one counts.
fn consulted(records: &[Record], history: &History) -> Vec<Consulted> {
    let all: Vec<Consulted> = numbered(records);
    let of = |counted: &Consultation| {
        let same = |asked: &&Consulted| asked.data == *counted;
        all.iter().rfind(same).map(|asked| Numbered { n: asked.n, data: counted.clone() })
    };
    history.consultations().filter_map(of).collect()
}
