//! Playbooks: loading 10 000 files, and weaving one operator from them for the first time and again. In processes of their
//! own, on one thread.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use quorate::measured::{Catalogue, Environment, Library, Manifests, PathOverrides, Sources};
use quorate::{Quorate, Trust};
use quorate_diagnostics::Report;
use quorate_kernel::redact::Redactor;
use quorate_ledger::store::address::StoreAddress;
use quorate_manifest::loader::Refs;
use quorate_manifest::playbook;
use quorate_manifest::workspace::Scope;

use crate::process::middle;
use crate::table::Measure;
use crate::{Bench, Failure, process};

/// What arguments of [`process::measure_inside`] begin with that are meant for here.
pub(super) const OURS: &str = "playbooks-";
const PLAYBOOKS: usize = 10_000;
const OPERATORS: usize = 500;
const ROUNDS: usize = 5;
/// Weaves in one measurement of those that are warm.
const AGAIN: u32 = 1_000;

pub(super) fn measure(bench: &mut Bench) -> Result<(), Failure> {
    let dir = bench.place.dir("playbooks")?;
    std::fs::write(dir.join("quorate.toml"), "strict_chain = true\n")?;
    for number in 0..OPERATORS {
        write(&dir.join(format!("operators/op-{number:03}/OPERATOR.md")), &operator(number))?;
    }
    for number in 0..PLAYBOOKS {
        let path = format!("playbooks/area-{:02}/book-{number:05}.md", number % 40);
        write(&dir.join(path), &playbook(number))?;
    }
    let took = |what: &str| -> Result<Measure, Failure> {
        let all: Result<Vec<Duration>, Failure> =
            (0..ROUNDS).map(|_| process::measure_inside(&format!("{OURS}{what}"), &dir)).collect();
        Ok(Measure::Time(middle(all?)))
    };
    let limit = |ms: f64| Measure::Time(Duration::from_secs_f64(ms / 1e3));
    bench.table.limited(format!("loading {PLAYBOOKS} playbooks"), took("load")?, limit(600.0));
    let what = format!("weaving one operator from {PLAYBOOKS} playbooks, cold");
    bench.table.limited(what, took("cold")?, limit(25.0));
    bench.table.limited("  the same, warm", took("warm")?, limit(0.2));
    Ok(())
}

/// Is the process of its own.
pub(super) fn inside(what: &str, dir: &Path) -> Result<Duration, Failure> {
    let quorate = Quorate::builder().workspace(dir).state_dir(dir.join("state")).trust(Trust::Workspace);
    let quorate = quorate.build_unvalidated()?;
    let environment = quorate.environment();
    let manifests = Manifests::open(environment, dir, Refs::Followed).map_err(|stop| stop.first_message())?;
    let round = manifests.loader(&*environment.registries);
    let start = Instant::now();
    let shelf = playbook::load_all(&round, &Scope::Workspace);
    let loaded = start.elapsed();
    if shelf.playbooks.len() != PLAYBOOKS || !shelf.report.is_empty() {
        return Err(format!("{} playbooks were loaded, not {PLAYBOOKS}", shelf.playbooks.len()).into());
    }
    if what == "load" {
        return Ok(loaded);
    }
    let library =
        Library::open(environment, &PathOverrides::default(), None).map_err(|stop| stop.first_message())?;
    let ledger = StoreAddress::File(dir.join(".quorate/ledger.db"));
    weave(what, environment, &library, &Catalogue::open(&round, &Scope::Workspace, &ledger))
}

fn weave(
    what: &str,
    environment: &Environment,
    library: &Library,
    catalogue: &Catalogue,
) -> Result<Duration, Failure> {
    let known = library.operators.first().ok_or("there is no operator")?;
    let base = known.base.clone();
    let now_ms = environment.clock.now_ms();
    let mut report = Report::new();
    let start = Instant::now();
    let (redactor, place) = (&Redactor::new(&[])?, (&*library.root, &library.scope));
    let sources = Sources::new(environment, redactor, place, catalogue, base, &[known], &mut report);
    let composed = sources.compose(&[], now_ms);
    let cold = start.elapsed();
    let woven = composed.woven.woven.len();
    if woven < 8 || sources.candidates().len() < 12 {
        return Err(format!("{woven} of {} were woven", sources.candidates().len()).into());
    }
    if what == "cold" {
        return Ok(cold);
    }
    let start = Instant::now();
    for _ in 0..AGAIN {
        let composed = sources.compose(&[], now_ms);
        std::hint::black_box(sources.hashes(&composed, &[]));
    }
    Ok(start.elapsed() / AGAIN)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    Ok(std::fs::write(path, text)?)
}

fn operator(number: usize) -> String {
    format!(
        "---\nid: op-{number:03}\nname: Operator {number}\nrole: role-{:02}\nskills: [research, write]\ncapabilities: [search, cite]\n---\nYou are operator {number}. You look at sources first and say what is missing.\n",
        number % 50
    )
}

/// Whom a playbook is for: most are for one or two operators, others for a role at some skill, or for what a glob
/// matches.
fn whom(number: usize) -> String {
    let (operator, role) = (number % OPERATORS, number % 50);
    match (number / 3) % 20 {
        0..=8 => format!("targets:\n  - {{ kind: operator, ref: op-{operator:03} }}\n"),
        9 => format!(
            "targets:\n  - {{ kind: operator, ref: operator/op-{operator:03} }}\n  - {{ kind: operator, ref: op-{:03} }}\n",
            (operator * 7 + 3) % OPERATORS
        ),
        10 if number % 200 == 30 => format!("targets:\n  - {{ kind: role, ref: role-{role:02} }}\n"),
        10..=12 => {
            format!("selector:\n  identity: [op-{operator:03}, op-{:03}]\n", (operator * 3 + 1) % OPERATORS)
        }
        13..=14 => format!("selector:\n  role: role-{role:02}\n  skill: skill-{:04}\n", number % 1_000),
        15 => format!("selector:\n  role: role-{role:02}\n  capability: [cap-{:03}, fly]\n", number % 977),
        16 => format!("targets:\n  - {{ kind: operator, ref: op-{:02}?-{number} }}\n", operator / 10),
        17 => format!("targets:\n  - {{ kind: operator, ref: \"team-{}-*\" }}\n", number % 700),
        18 => format!("selector:\n  skill: \"area-{}/*\"\n", number % 1_300),
        _ => format!(
            "selector:\n  allOf:\n    - {{ axis: role, anyOf: [role-{role:02}, lead-{role:02}] }}\n  anyOf:\n    - {{ axis: skill, anyOf: [skill-{:04}] }}\n    - {{ axis: capability, anyOf: [cap-{:03}] }}\n",
            number % 1_000,
            number % 977
        ),
    }
}

fn playbook(number: usize) -> String {
    let mut text = format!(
        "---\nschema: playbooks/v1\nslug: book-{number:05}\ntitle: What was learned in run {number} about evidence.\nkind: overlay\n{}",
        whom(number)
    );
    let status = if number % 8 == 3 { "shadow" } else { "active" };
    let _ = write!(
        text,
        "priority: {}\nlock_check: [warmth, honesty]\nevidence:\n  - {{ kind: run, ref: run-{number}, note: Two of three reviewers missed it. }}\nstatus: {status}\ncreated_at: \"2026-03-{:02}T09:00:00Z\"\nttl: P10Y\ntags: [bench]\n---\nWhen a claim has a number in it, quote the sentence that the number comes from, and say in which file it stands. Where two sources differ, name both and say which one you follow, and why. This is lesson {number}; it holds for drafts and for answers alike.\n",
        number % 75,
        number % 28 + 1
    );
    text
}
