//! Calls that fail: the device, a full disk, a read-only one, and writes that are cut short. The process says what is wrong
//! with a code, tells nothing that is not so, and what is left can be gone on with. `QUORATE_LEDGER_ERRORS=3000` tries so
//! many.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::shim::Event;
use crate::support::shim::{Call, Fault, FaultAction};

use crate::ledger_faults::council::{Observed, REVIEW, REVISE, hardy, holds, shim};
use crate::ledger_faults::points::{Repeat, Sort, chosen, each, fault, number, sorts};
use crate::support::{CommandOutput, TestDir};

/// What CI tries.
const ERRORS: usize = 16;

/// What can happen to a call of a kind.
fn deeds(call: Call) -> &'static [FaultAction] {
    match call {
        Call::Read => &[FaultAction::Eio],
        Call::Write => &[FaultAction::Eio, FaultAction::Enospc, FaultAction::Short],
        Call::Sync => &[FaultAction::Eio, FaultAction::Enospc],
        Call::Unlink => &[FaultAction::Eio, FaultAction::Erofs],
        _ => &[FaultAction::Eio, FaultAction::Enospc, FaultAction::Erofs],
    }
}

/// The faults of one sort: at each call, once and forever after.
fn faults(sort: &Sort, count: u64) -> Vec<Fault> {
    let at = |at| {
        let ever = [false, true].into_iter();
        ever.flat_map(move |ever| deeds(sort.0).iter().map(move |deed| fault(sort, at, ever, *deed)))
    };
    (0..count).flat_map(at).collect()
}

/// From one call on everything fails, as when a disk goes.
fn gone(all: u64) -> Vec<Fault> {
    let deeds = [FaultAction::Eio, FaultAction::Enospc, FaultAction::Erofs];
    let fault = |at, deed| Fault { call: None, path: "*".to_owned(), at, and_later: true, action: deed };
    (0..all).flat_map(|at| deeds.map(|deed| fault(at, deed))).collect()
}

fn groups(events: &[Event]) -> Vec<Vec<Fault>> {
    let sorts = sorts(events);
    let all = sorts.values().sum();
    sorts.iter().map(|(sort, count)| faults(sort, *count)).chain([gone(all)]).collect()
}

/// The system's number of a failure.
fn errno(deed: FaultAction) -> i32 {
    match deed {
        FaultAction::Enospc => libc::ENOSPC,
        FaultAction::Erofs => libc::EROFS,
        _ => libc::EIO,
    }
}

/// A process that met a failing call ended by itself, and either did what it was to do or said with a code why not.
fn says_so(ran: &CommandOutput, point: &Fault) {
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(!said.contains("panicked"), "{said}");
    match ran.code {
        REVISE => assert_eq!(ran.json()["verdict"], "REVISE"),
        5 => assert!(said.contains("quorate:"), "no code: {said}"),
        other => panic!("exit {other}: {said}"),
    }
    if point.action == FaultAction::Short && !point.and_later {
        assert_eq!(ran.code, REVISE, "a short write is gone on with: {said}");
    }
}

/// After a failed sync of the ledger no member is asked, and no verdict is printed.
fn stopped_acknowledging(place: &TestDir, ran: &CommandOutput) {
    let events = place.events();
    let failed = |one: &Event| one.call == Call::Sync && one.error != 0 && one.path == "ledger.db-wal";
    let Some(at) = events.iter().position(failed) else { return };
    // The checkpoint is synced after the outcome, and so is closing, which folds the write-ahead log into the file: what fails
    // then takes nothing back. The line of the log follows the synced outcome.
    let sealing = ran.stderr.contains("quorate:checkpoint_missing");
    let asked: Vec<&str> =
        events[at..].iter().filter(|one| one.call == Call::Ask).map(|one| &*one.path).collect();
    assert_eq!(asked, Vec::<&str>::new(), "asked after a sync had failed");
    let is_logged = |one: &Event| one.call == Call::Sync && one.error == 0 && one.path == "council_log.jsonl";
    if sealing || events[..at].iter().any(is_logged) {
        return;
    }
    assert_eq!(ran.code, 5, "a verdict after a sync had failed: {}", ran.stdout);
}

#[test]
fn a_call_that_fails_is_said_and_loses_nothing() {
    // X7, D1, D2, D6
    let Some(shim) = shim() else { return };
    let undisturbed = hardy();
    undisturbed.disturbed(shim, &REVIEW, None).assert_code(REVISE);
    let points = chosen(groups(&undisturbed.events()), number("QUORATE_LEDGER_ERRORS", ERRORS));
    let hit = AtomicUsize::new(0);
    each(&points, |point| {
        let _repeat = Repeat(format!("QUORATE_LEDGER_FAULT='{point}'"), "fails_is_said");
        let place = hardy();
        let ran = place.disturbed(shim, &REVIEW, Some(point));
        let met = point.action == FaultAction::Short
            || place.events().iter().any(|one| one.error == errno(point.action));
        hit.fetch_add(usize::from(met), Ordering::Relaxed);
        says_so(&ran, point);
        stopped_acknowledging(&place, &ran);
        holds(&place, &Observed::new(&place, &ran.stdout));
    });
    let hit = hit.into_inner();
    println!("calls that fail: {} points, {hit} met", points.len());
    assert!(hit * 10 >= points.len() * 8, "most were met: {hit} of {}", points.len());
}

#[test]
fn a_call_that_fails_while_a_line_is_made_good_doubles_nothing() {
    // D6
    let Some(shim) = shim() else { return };
    let unsynced: Fault = "sync:council_log.jsonl:0:kill-before".parse().expect("a fault");
    let left = || {
        let place = hardy();
        assert_eq!(place.disturbed(shim, &REVIEW, Some(&unsynced)).code, 128 + 9);
        std::fs::remove_file(place.path("trace")).expect("it was traced");
        place
    };
    let place = left();
    place.disturbed(shim, &["runs"], None).assert_code(0);
    let points = chosen(groups(&place.events()), number("QUORATE_LEDGER_ERRORS", ERRORS) / 4);
    each(&points, |point| {
        let _repeat = Repeat(format!("QUORATE_LEDGER_FAULT='{point}'"), "made_good");
        let place = left();
        let observed = Observed::new(&place, "");
        let ran = place.disturbed(shim, &["runs"], Some(point));
        assert!([0, 5].contains(&ran.code) && !ran.stderr.contains("panicked"), "{ran:?}");
        holds(&place, &observed);
    });
}
