//! `/` with the runs of the ledger, and `/runs/{run}`: the page of an ended run by its mode, or of an open one.

use std::collections::BTreeSet;
use std::sync::Arc;

use askama::Template;
use axum::response::Response;
use quorate::runs::{ListedRun, MODES, Recorded, VERDICTS};
use quorate::view::wording::{day, list_limited};
use quorate::{AssemblyVerdict, Choices, Verdict};

use super::live_run::LiveView;
use super::wording::Mark;
use super::{Asked, Frame, Surroundings, assembly_run, respond, review_run};
use crate::Server;
use crate::api::runs::{Query, list, load_live, load_report};
use crate::failure::Failure;

/// The most members that a row names.
const MAX_NAMES: usize = 3;

#[derive(Template)]
#[template(path = "runs.html")]
pub(super) struct RunsPage {
    frame: Frame,
    filter: Query,
    verdicts: Vec<(&'static str, bool)>,
    modes: Vec<(&'static str, bool)>,
    /// The filter in words.
    selection: String,
    /// The runs, each with the reason of its verdict in a few words.
    rows: Vec<(ListedRun, String)>,
    has_reasons: bool,
    has_makers: bool,
    has_overrides: bool,
    is_filtered: bool,
    choices: Choices,
    /// The types of the runs.
    types: BTreeSet<String>,
    /// The verdicts of the last seven days, the newest ones if there are too many.
    week: Vec<Bar>,
    is_week_cut: bool,
    /// The same in words.
    about: String,
    /// The address of the next page.
    next: Option<String>,
}

/// The page.
pub(super) async fn page(server: Arc<Server>, asked: Asked) -> Result<RunsPage, Failure> {
    let server = &server;
    let filter: Query = asked.query()?;
    let listed = list(server, &filter).await?;
    let chosen = |chosen: &Option<String>| chosen.as_deref().unwrap_or_default().to_lowercase();
    let (verdict, mode) = (chosen(&filter.verdict), chosen(&filter.mode));
    let pairs = [
        ("verdict", &filter.verdict),
        ("type", &filter.artifact_type),
        ("mode", &filter.mode),
        ("producer", &filter.producer),
        ("since", &filter.since),
    ];
    let given: Vec<(&str, &str)> = pairs
        .iter()
        .filter_map(|(key, value)| Some((*key, value.as_deref()?)))
        .filter(|(_, value)| !value.is_empty())
        .collect();
    let next = listed.next.map(|cursor| {
        let before = cursor.to_string();
        let limit = filter.limit.map(|limit| limit.to_string());
        let limit = limit.as_deref().map(|limit| ("limit", limit));
        let pairs = given.iter().copied().chain(limit).chain([("before", &*before)]).collect::<Vec<_>>();
        format!("/?{}", serde_urlencoded::to_string(pairs).unwrap_or_default())
    });
    let flags: String = given.iter().map(|(key, value)| format!(" --{key} {value}")).collect();
    let frame = Frame::new(server, "Runs", "runs", format!("quorate runs{flags}"));
    let selection = match given.is_empty() {
        true => "All runs".to_owned(),
        false => given.iter().map(|(key, value)| format!("{key} {value}")).collect::<Vec<_>>().join(", "),
    };
    let since = filter.since.clone().filter(|since| !since.is_empty()).or(Some("7d".to_owned()));
    let recent = Query { since, limit: Some(MAX_WEEK), before: None, ..filter.clone() };
    let recent = list(server, &recent).await?;
    let (week, about) = week(&recent.runs, server.quorate.now_ms());
    let rows: Vec<_> = listed.runs.into_iter().map(with_reason).collect();
    Ok(RunsPage {
        selection,
        week,
        is_week_cut: recent.next.is_some(),
        about,
        has_makers: rows.iter().any(|(run, _)| run.producer.is_some()),
        has_overrides: rows.iter().any(|(run, _)| run.overridden.is_some()),
        frame: frame.with_json(format!("/api/v1/runs?{}", asked.query)),
        is_filtered: !given.is_empty() || filter.before.is_some(),
        // The page of a workspace whose files are refused still lists its runs.
        choices: server.quorate.choices().unwrap_or_default(),
        types: rows.iter().map(|(run, _)| run.artifact_type.clone()).collect(),
        verdicts: VERDICTS.iter().map(|word| (*word, *word == verdict)).collect(),
        modes: MODES.iter().map(|word| (*word, *word == mode)).collect(),
        filter,
        has_reasons: rows.iter().any(|(_, why)| !why.is_empty()),
        rows,
        next,
    })
}

/// The most runs of the strip: the ledger compares each with its records.
const MAX_WEEK: u32 = 200;

/// A name that fits a row, without its middle if it is long.
fn middle(name: &str) -> String {
    const MOST: usize = 42;
    let characters: Vec<char> = name.chars().collect();
    if characters.len() <= MOST {
        return name.to_owned();
    }
    let part = |range: &[char]| range.iter().collect::<String>();
    format!("{}…{}", part(&characters[..MOST * 2 / 3]), part(&characters[characters.len() - MOST / 3..]))
}

/// A run with [`why`].
fn with_reason(run: ListedRun) -> (ListedRun, String) {
    let why = why(&run);
    (run, why)
}

/// The reason of a listed verdict in a few words: who objects, and whose answer is missing.
fn why(run: &ListedRun) -> String {
    if let Some(what) = run.difference() {
        return what.to_owned();
    }
    let names = |all: &[String]| list_limited(&all.iter().map(String::as_str).collect::<Vec<_>>(), MAX_NAMES);
    let verb = match (&*run.mode, run.blockers.len()) {
        ("council", 1) => "blocks",
        ("council", _) => "block",
        ("voting", 1) => "votes no",
        ("voting", _) => "vote no",
        (_, 1) => "objects",
        _ => "object",
    };
    let blocked = (!run.blockers.is_empty()).then(|| format!("{} {verb}", names(&run.blockers)));
    let missing = (!run.missing.is_empty()).then(|| format!("no answer from {}", names(&run.missing)));
    let parts = [blocked, missing].into_iter().flatten().collect::<Vec<_>>();
    match (parts.is_empty(), run.open, run.verdict.as_deref()) {
        (false, ..) => parts.join("; "),
        (true, true, _) => "not decided yet".to_owned(),
        (true, false, Some("SHIP" | "pass")) => "no objections".to_owned(),
        _ => String::new(),
    }
}

/// The verdicts of one kind on one day.
struct Bar {
    class: &'static str,
    /// Of 700, with 100 for each day.
    x: usize,
    /// Of 100.
    y: usize,
    height: usize,
}

/// The verdicts of runs on the last seven days, as stacked bars and in words; nothing without one.
fn week(runs: &[ListedRun], now_ms: i64) -> (Vec<Bar>, String) {
    const DAY_MS: i64 = 24 * 3_600_000;
    let today = now_ms.div_euclid(DAY_MS);
    let counted = |date: &str| {
        ["good", "fair", "bad", "none"].map(|class| {
            let is_counted = |run: &&ListedRun| {
                run.opened.starts_with(date) && Mark::of(run.verdict.as_deref()).class == class
            };
            (class, runs.iter().filter(is_counted).count())
        })
    };
    let days: Vec<_> = (today - 6..=today).map(day).map(|date| (counted(&date), date)).collect();
    let most = days.iter().map(|(counts, _)| counts.iter().map(|(_, count)| count).sum()).max().unwrap_or(0);
    let (mut bars, mut about) = (Vec::new(), Vec::new());
    for (place, (counts, date)) in days.iter().enumerate() {
        let mut y = 100;
        for (class, count) in counts.iter().filter(|(_, count)| *count > 0) {
            let height = count * 100 / most;
            y -= height;
            bars.push(Bar { class, x: place * 100 + 3, y, height });
        }
        let [ship, revise, stop, other] = counts.map(|(_, count)| count);
        if ship + revise + stop + other > 0 {
            about.push(format!(
                "{date}: {ship} ship or pass, {revise} revise, {stop} hold or fail, {other} other"
            ));
        }
    }
    (bars, format!("The verdicts of the last seven days. {}.", about.join("; ")))
}

/// The page.
pub(super) async fn run_page(server: Arc<Server>, asked: Asked) -> Result<Response, Failure> {
    let (server, (recorded, around)) = (&server, load_run(&server, asked.part("run")).await?);
    Ok(match recorded {
        Recorded::Review(report) => respond(server, Ok(review_run::page(server, *report, around))),
        Recorded::Decision(report) => respond(server, Ok(assembly_run::page(server, *report, around))),
    })
}

async fn load_run(server: &Arc<Server>, run: String) -> Result<(Recorded, Surroundings), Failure> {
    let report = load_report(server, run).await?;
    let (run, is_open, is_incomplete) = match &report {
        Recorded::Review(report) => (
            report.run.clone(),
            report.verdict.is_none() && !report.is_superseded(),
            report.verdict == Some(Verdict::Incomplete),
        ),
        Recorded::Decision(report) => (
            report.run.clone(),
            report.verdict().is_none(),
            report.verdict() == Some(AssemblyVerdict::Incomplete),
        ),
    };
    let quorate = server.reading().await?;
    let live = match is_open {
        true => Some(LiveView::of(server, &load_live(server, run.clone()).await?)),
        false => None,
    };
    let is_driven = match &live {
        Some(live) => live.is_driven,
        None => is_incomplete && quorate.run_state(&run).await?.is_driven(),
    };
    let previous = quorate.previous_run(&run).await?.map(|previous| previous.to_string());
    Ok((report, Surroundings { live, is_driven, previous }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_keeps_its_beginning_and_its_end() {
        assert_eq!(middle("draft.md"), "draft.md");
        let long = middle("minutes-2026-11-27-of-the-board-of-the-sociéty.md");
        assert_eq!(long, "minutes-2026-11-27-of-the-bo…the-sociéty.md");
        assert_eq!(middle(&"日".repeat(60)).chars().count(), 43);
    }
}
