//! A talk by rounds: what each member said to whom, and what became of it.

use std::collections::BTreeMap;

use quorate_protocol::Json;

use super::super::paint::one_line;
use super::super::wording::status;
use super::phrases::names;
use super::rejections::reason_for;
use quorate::service::convene::report::{Consultation, Message, Report};

/// How many members are named as those whom a message is for.
const NAMED: usize = 6;

/// A round.
pub(super) struct Round<'r> {
    pub(super) number: u64,
    /// In roster order, those who said something.
    pub(super) turns: Vec<Turn<'r>>,
    /// Who passed and said nothing.
    pub(super) silent: Vec<&'r str>,
    /// Who gave no answer, each with how it ended.
    pub(super) absent: Vec<(&'r str, String)>,
}

/// What a member said in a round.
pub(super) struct Turn<'r> {
    pub(super) from: &'r str,
    /// To whom; `None` is everybody in reach.
    pub(super) to: Option<Vec<String>>,
    pub(super) text: &'r str,
    pub(super) objects: bool,
    pub(super) passes: bool,
    /// Why it reached nobody, or is not in the log.
    pub(super) kept_back: Option<String>,
}

impl Turn<'_> {
    /// Whom it is for.
    pub(super) fn to(&self) -> String {
        match &self.to {
            None => "all".to_owned(),
            Some(ids) if ids.is_empty() => "nobody".to_owned(),
            Some(ids) => names(&ids.iter().map(String::as_str).collect::<Vec<_>>(), NAMED),
        }
    }

    /// What its author says besides: that it objects, or passes.
    pub(super) fn annotations(&self) -> Vec<&'static str> {
        let marks = [(self.objects, "objects"), (self.passes, "passes")];
        marks.into_iter().filter(|(said, _)| *said).map(|(_, mark)| mark).collect()
    }
}

/// All rounds, in order.
pub(super) fn rounds(report: &Report) -> Vec<Round<'_>> {
    let mut rounds: BTreeMap<u64, Round<'_>> = BTreeMap::new();
    let delivered: BTreeMap<(u64, &str), &Message> =
        report.messages.iter().map(|one| ((one.round, &*one.from), one)).collect();
    for member in &report.members {
        // An answer that is asked for again after a resume stands in place of the one before.
        let mut asked: BTreeMap<u64, &Consultation> = BTreeMap::new();
        for one in &member.consultations {
            asked.extend(number(&one.invocation).map(|number| (number, one)));
        }
        for (number, one) in asked {
            let round = rounds.entry(number).or_insert_with(|| Round {
                number,
                turns: Vec::new(),
                silent: Vec::new(),
                absent: Vec::new(),
            });
            let id = &*member.id;
            match turn(report, number, id, one, delivered.get(&(number, id)).copied()) {
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

/// What a member said; nothing where it only passed.
///
/// # Errors
/// How its question ended, where there is no answer.
fn turn<'r>(
    report: &Report,
    number: u64,
    id: &'r str,
    one: &'r Consultation,
    delivered: Option<&'r Message>,
) -> Result<Option<Turn<'r>>, String> {
    let Some(answer) = one.answer.as_ref().filter(|_| one.status == "answered") else {
        return Err(status(&one_line(&one.status)));
    };
    let flag = |key: &str| answer.get(key).and_then(Json::as_bool).unwrap_or_default();
    let said = answer.get("message").and_then(Json::as_str).unwrap_or_default();
    let (objects, passes) = (flag("objection"), flag("pass"));
    if delivered.is_none() && said.trim().is_empty() && !objects {
        return Ok(None);
    }
    let kept_back = match (delivered, &report.verdict) {
        (Some(_), _) | (None, None) => None,
        (None, Some(_)) if said.trim().is_empty() => None,
        (None, Some(_)) => Some(match reason_for(report, &format!("message/{number}/{id}")) {
            Some(why) => format!("refused, it reached nobody: {why}"),
            None => "not in the log: no rule collects it".to_owned(),
        }),
    };
    Ok(Some(Turn {
        from: id,
        to: delivered.map_or_else(|| addressees(answer.get("addressedTo")), |one| one.to.clone()),
        text: delivered.map_or(said, |one| &one.text),
        objects,
        passes,
        kept_back,
    }))
}

/// To whom an answer says that it is.
fn addressees(to: Option<&Json>) -> Option<Vec<String>> {
    let ids = match to? {
        Json::String(id) => vec![id.clone()],
        Json::Array(ids) => ids.iter().filter_map(Json::as_str).map(str::to_owned).collect(),
        _ => return None,
    };
    (!ids.iter().any(|id| id == "*")).then_some(ids)
}
