//! A discussion by rounds: each member's message, its addressees and its delivery.

use std::collections::BTreeMap;

use quorate_protocol::Json;

use super::super::paint::one_line;
use super::super::wording::status;
use super::phrases::names;
use super::rejections::reason_for;
use quorate::service::convene::report::{Consultation, Message, Report};

const NAMED: usize = 6;

pub(super) struct Round<'r> {
    pub(super) number: u64,
    /// In roster order, without silent and absent members.
    pub(super) turns: Vec<Turn<'r>>,
    /// Members that passed without a message.
    pub(super) silent: Vec<&'r str>,
    /// Members without an answer, each with its status.
    pub(super) absent: Vec<(&'r str, String)>,
}

/// A member's message in a round.
pub(super) struct Turn<'r> {
    pub(super) from: &'r str,
    /// `None` is every member in reach.
    pub(super) to: Option<Vec<String>>,
    pub(super) text: &'r str,
    pub(super) objects: bool,
    pub(super) passes: bool,
    /// Why it reached no member, or is not in the log.
    pub(super) kept_back: Option<String>,
}

impl Turn<'_> {
    pub(super) fn to(&self) -> String {
        match &self.to {
            None => "all".to_owned(),
            Some(ids) if ids.is_empty() => "nobody".to_owned(),
            Some(ids) => names(&ids.iter().map(String::as_str).collect::<Vec<_>>(), NAMED),
        }
    }

    /// Whether its author objects or passes, in words.
    pub(super) fn annotations(&self) -> Vec<&'static str> {
        let flags = [(self.objects, "objects"), (self.passes, "passes")];
        flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, word)| word).collect()
    }
}

pub(super) fn rounds(report: &Report) -> Vec<Round<'_>> {
    let mut rounds: BTreeMap<u64, Round<'_>> = BTreeMap::new();
    let delivered: BTreeMap<(u64, &str), &Message> =
        report.messages.iter().map(|message| ((message.round, &*message.from), message)).collect();
    for member in &report.members {
        // After a resume a new answer replaces the earlier one.
        let mut by_round: BTreeMap<u64, &Consultation> = BTreeMap::new();
        for consultation in &member.consultations {
            by_round.extend(number(&consultation.invocation).map(|number| (number, consultation)));
        }
        for (number, consultation) in by_round {
            let round = rounds.entry(number).or_insert_with(|| Round {
                number,
                turns: Vec::new(),
                silent: Vec::new(),
                absent: Vec::new(),
            });
            let id = &*member.id;
            match turn(report, number, id, consultation, delivered.get(&(number, id)).copied()) {
                Ok(Some(turn)) => round.turns.push(turn),
                Ok(None) => round.silent.push(id),
                Err(ended) => round.absent.push((id, ended)),
            }
        }
    }
    rounds.into_values().collect()
}

/// The round of an invocation `round<k>/<member>`.
fn number(invocation: &str) -> Option<u64> {
    invocation.strip_prefix("round")?.split_once('/')?.0.parse().ok()
}

/// A member's message; `None` if it only passed.
///
/// # Errors
/// The status of a consultation without an answer.
fn turn<'r>(
    report: &Report,
    number: u64,
    id: &'r str,
    consultation: &'r Consultation,
    delivered: Option<&'r Message>,
) -> Result<Option<Turn<'r>>, String> {
    let Some(answer) = consultation.answer.as_ref().filter(|_| consultation.status == "answered") else {
        return Err(status(&one_line(&consultation.status)));
    };
    let flag = |key: &str| answer.get(key).and_then(Json::as_bool).unwrap_or_default();
    let text = answer.get("message").and_then(Json::as_str).unwrap_or_default();
    let (objects, passes) = (flag("objection"), flag("pass"));
    if delivered.is_none() && text.trim().is_empty() && !objects {
        return Ok(None);
    }
    let kept_back = match (delivered, &report.verdict) {
        (Some(_), _) | (None, None) => None,
        (None, Some(_)) if text.trim().is_empty() => None,
        (None, Some(_)) => Some(match reason_for(report, &format!("message/{number}/{id}")) {
            Some(reason) => format!("refused, not delivered: {reason}"),
            None => "not in the log: no rule collects it".to_owned(),
        }),
    };
    Ok(Some(Turn {
        from: id,
        to: delivered.map_or_else(|| addressees(answer.get("addressedTo")), |message| message.to.clone()),
        text: delivered.map_or(text, |message| &message.text),
        objects,
        passes,
        kept_back,
    }))
}

/// The addressees in an answer.
fn addressees(to: Option<&Json>) -> Option<Vec<String>> {
    let ids = match to? {
        Json::String(id) => vec![id.clone()],
        Json::Array(ids) => ids.iter().filter_map(Json::as_str).map(str::to_owned).collect(),
        _ => return None,
    };
    (!ids.iter().any(|id| id == "*")).then_some(ids)
}
