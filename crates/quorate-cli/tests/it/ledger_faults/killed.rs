//! kill -9 at every call that makes a file longer, shorter, durable, named or unnamed: before it, after it, and in the
//! middle of what it writes. `QUORATE_LEDGER_KILLS=3000` tries so many.

use crate::support::shim::Event;
use crate::support::shim::{Call, Fault, FaultAction};

use crate::ledger_faults::council::{Observed, REVIEW, REVISE, hardy, holds, shim};
use crate::ledger_faults::points::{Repeat, chosen, each, fault, number, sorts};
use crate::ledger_faults::records::{execute_sql, of_kind, records};

/// What CI tries.
const KILLS: usize = 20;

fn groups(events: &[Event]) -> Vec<Vec<Fault>> {
    let deeds = |call| match call {
        Call::Write => &[FaultAction::KillBefore, FaultAction::KillAfter, FaultAction::KillTorn][..],
        _ => &[FaultAction::KillBefore, FaultAction::KillAfter],
    };
    let sorts = sorts(events).into_iter().filter(|((call, _), _)| *call != Call::Read);
    sorts
        .map(|(sort, count)| {
            let at = |at| deeds(sort.0).iter().map(|deed| fault(&sort, at, false, *deed)).collect::<Vec<_>>();
            (0..count).flat_map(at).collect()
        })
        .collect()
}

#[test]
fn a_kill_at_any_call_costs_what_was_under_way_and_nothing_else() {
    // X7, D1, D2
    let Some(shim) = shim() else { return };
    let undisturbed = hardy();
    undisturbed.disturbed(shim, &REVIEW, None).assert_code(REVISE);
    let points = chosen(groups(&undisturbed.events()), number("QUORATE_LEDGER_KILLS", KILLS));
    let died = std::sync::atomic::AtomicUsize::new(0);
    each(&points, |point| {
        let _repeat = Repeat(format!("QUORATE_LEDGER_FAULT='{point}'"), "kill");
        let place = hardy();
        let ran = place.disturbed(shim, &REVIEW, Some(point));
        // A call may come less often than in the run that was counted.
        assert!([REVISE, 128 + 9].contains(&ran.code), "{ran:?}");
        died.fetch_add(usize::from(ran.code != REVISE), std::sync::atomic::Ordering::Relaxed);
        holds(&place, &Observed::new(&place, &ran.stdout));
    });
    let died = died.into_inner();
    println!("{died} kills of reviews at chosen calls");
    assert!(died * 10 >= points.len() * 9, "most were killed: {died} of {}", points.len());
}

#[test]
fn a_kill_while_a_run_is_taken_up_costs_nothing_either() {
    // X7
    let Some(shim) = shim() else { return };
    let half_way: Fault = "sync:ledger.db-wal:2:kill-after".parse().expect("a fault");
    let begun = || {
        let place = hardy();
        assert_eq!(place.disturbed(shim, &REVIEW, Some(&half_way)).code, 128 + 9);
        let run = place.only_run();
        std::fs::remove_file(place.path("trace")).expect("it was traced");
        (place, run)
    };
    let (place, run) = begun();
    place.disturbed(shim, &["resume", &run], None).assert_code(REVISE);
    let points = chosen(groups(&place.events()), number("QUORATE_LEDGER_KILLS", KILLS) / 5);
    each(&points, |point| {
        let _repeat = Repeat(format!("QUORATE_LEDGER_FAULT='{point}'"), "taken_up");
        let (place, run) = begun();
        let ran = place.disturbed(shim, &["resume", &run, "--format", "json"], Some(point));
        assert!([REVISE, 128 + 9].contains(&ran.code), "{ran:?}");
        holds(&place, &Observed::new(&place, &ran.stdout));
    });
}

#[test]
fn a_kill_or_a_failure_while_a_person_decides_leaves_a_line_for_what_was_decided() {
    // X7, D6
    let Some(shim) = shim() else { return };
    let begun = || {
        let place = hardy();
        place.run(&REVIEW).assert_code(REVISE);
        let run = place.only_run();
        (place, run)
    };
    fn decides(run: &str) -> [&str; 8] {
        ["override", run, "--by", "ada", "--verdict", "ship", "--reason", "It has to go out."]
    }
    let (place, run) = begun();
    place.disturbed(shim, &decides(&run), None).assert_code(0);
    let groups = groups(&place.events()).into_iter();
    let groups = groups.map(|group| group.iter().cloned().chain(group.iter().map(fails)).collect()).collect();
    let points = chosen(groups, number("QUORATE_LEDGER_KILLS", KILLS) / 5);
    each(&points, |point| {
        let _repeat = Repeat(format!("QUORATE_LEDGER_FAULT='{point}'"), "decides");
        let (place, run) = begun();
        let ran = place.disturbed(shim, &decides(&run), Some(point));
        assert!([0, 5, 128 + 9].contains(&ran.code) && !ran.stderr.contains("panicked"), "{ran:?}");
        // The next process that opens the ledger completes what is missing.
        place.run(&["runs"]).assert_code(0);
        let decided = of_kind(&records(&place.ledger(), &run), "override").len();
        let lines = place.log().iter().filter(|line| line["event"] == "override").count();
        assert_eq!(lines, decided, "{ran:?}");
        assert!(ran.code != 0 || decided == 1, "printed, but not recorded");
        place.verifies();
    });
}

#[test]
fn a_kill_or_a_failure_while_a_broken_ledger_is_set_aside_keeps_it() {
    let Some(shim) = shim() else { return };
    let broken: Vec<u8> = (0..9000_u32).map(|n| (n % 251) as u8).collect();
    let begun = || {
        let place = hardy();
        place.write(".quorate/ledger.db", &broken);
        place.write(".quorate/ledger.db-wal", &broken[..100]);
        place
    };
    let place = begun();
    place
        .disturbed(shim, &REVIEW, None)
        .assert_code(REVISE)
        .assert_stderr_contains("quorate:ledger_set_aside");
    let events = place.events();
    let last = events.iter().rposition(|one| one.call == Call::Rename).expect("it is renamed");
    let groups = groups(&events[..=last]).into_iter();
    let groups = groups.map(|group| group.iter().cloned().chain(group.iter().map(fails)).collect()).collect();
    let points = chosen(groups, number("QUORATE_LEDGER_KILLS", KILLS) / 5);
    each(&points, |point| {
        let _repeat = Repeat(format!("QUORATE_LEDGER_FAULT='{point}'"), "set_aside");
        let place = begun();
        let ran = place.disturbed(shim, &REVIEW, Some(point));
        assert!([REVISE, 5, 128 + 9].contains(&ran.code) && !ran.stderr.contains("panicked"), "{ran:?}");
        place.run(&REVIEW).assert_code(REVISE);
        let kept = std::fs::read_dir(place.path(".quorate/aside")).expect("a directory").flatten();
        let kept: Vec<Vec<u8>> = kept.map(|one| std::fs::read(one.path()).expect("a file")).collect();
        assert!(kept.contains(&broken), "what was broken is gone");
        place.verifies();
    });
}

/// A ledger as an earlier version of this program left it.
const OLD: &str = include_str!("../../../../quorate-ledger/tests/it/fixtures/schema-1.sql");

#[test]
fn a_kill_or_a_failure_while_an_old_ledger_is_brought_up_to_date_costs_nothing() {
    let Some(shim) = shim() else { return };
    let begun = || {
        let place = hardy();
        std::fs::create_dir(place.quorate()).expect("a directory");
        execute_sql(&place.ledger(), &format!("PRAGMA journal_mode = WAL; {OLD}"));
        place
    };
    let place = begun();
    let runs = place.disturbed(shim, &["runs", "--format", "json"], None).assert_code(0).json();
    assert_eq!(runs["runs"].as_array().map(Vec::len), Some(1));
    let groups = groups(&place.events()).into_iter();
    let groups = groups.map(|group| group.iter().cloned().chain(group.iter().map(fails)).collect()).collect();
    let points = chosen(groups, number("QUORATE_LEDGER_KILLS", KILLS) / 5);
    each(&points, |point| {
        let _repeat = Repeat(format!("QUORATE_LEDGER_FAULT='{point}'"), "old_ledger");
        let place = begun();
        let ran = place.disturbed(shim, &["runs"], Some(point));
        assert!([0, 5, 128 + 9].contains(&ran.code) && !ran.stderr.contains("panicked"), "{ran:?}");
        assert_eq!(place.run(&["runs", "--format", "json"]).assert_code(0).json(), runs);
        assert!(!place.path(".quorate/aside").exists(), "it was set aside");
        place.verifies();
    });
}

/// The same call, which fails.
fn fails(kill: &Fault) -> Fault {
    Fault { action: FaultAction::Eio, ..kill.clone() }
}
