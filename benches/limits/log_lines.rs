//! A long log in our own form of lines, the same in every run: about 3.4 kB a line, 20 types of artifact, half a year.

use std::io::{BufWriter, Write as _};
use std::path::Path;

use serde_json::{Value, json};

use crate::Failure;

/// How many types of artifact there are.
pub(super) const TYPES: u64 = 20;
const DELIBERATORS: [&str; 4] = ["skeptic", "voice_identity", "evidence", "strategy"];
const ISSUES: [&str; 4] = [
    "“40%” is a claim without a source near it, and it does not say compared with what.",
    "The text argues and never says what speaks against it, or for whom it is not.",
    "“game-changing” is a phrase that says little.",
    "“we will never raise” binds for ever.",
];
const FIX: &str = "Name the source and the base, or say how many were asked and how many answered.";
/// 2026-05-01.
const START_S: i64 = 1_777_593_600;
const SPAN_S: u64 = 180 * 24 * 3600;

/// The name of a type of artifact.
pub(super) fn artifact_type(number: u64) -> String {
    format!("type_{:02}", number % TYPES)
}

/// Writes so many lines.
pub(super) fn write(path: &Path, count: u64) -> Result<(), Failure> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    let mut out = BufWriter::with_capacity(1 << 16, std::fs::File::create(path)?);
    for number in 0..count {
        serde_json::to_writer(&mut out, &line(number, count))?;
        out.write_all(b"\n")?;
    }
    Ok(out.into_inner()?.sync_all()?)
}

/// A number that follows from two others and looks like chance.
fn mixed(number: u64, salt: u64) -> u64 {
    let mut mixed = number.wrapping_add(salt << 40).wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

fn line(number: u64, count: u64) -> Value {
    let at_s = START_S + i64::try_from(number * SPAN_S / count.max(1)).unwrap_or(0);
    let verdict =
        ["SHIP", "REVISE", "REVISE", "HOLD", "REVISE", "SHIP", "INCOMPLETE"][(mixed(number, 1) % 7) as usize];
    let run = format!("r{:012x}", mixed(number, 2) & 0xffff_ffff_ffff);
    let artifact = format!("drafts/{}/post-{number}.md", artifact_type(number));
    let brief = format!("1. Line 6: {} {FIX}", ISSUES[0]);
    let reasoning = format!(
        "2 of 4 block: skeptic on a missing other side (1 finding); evidence on figures without a base ({number})."
    );
    let deliberators: serde_json::Map<String, Value> = (0..)
        .zip(DELIBERATORS)
        .map(|(at, deliberator)| (deliberator.to_owned(), summary(number, at, deliberator)))
        .collect();
    json!({
        "v": 2,
        "ts": quorate_kernel::clock::rfc3339(at_s * 1000),
        "artifact": artifact,
        "artifact_type": artifact_type(number),
        "round1": (0..).zip(DELIBERATORS).map(|(at, deliberator)| answer(number, at, deliberator, 0)).collect::<Vec<_>>(),
        "round2": (0..).zip(DELIBERATORS).map(|(at, deliberator)| answer(number, at, deliberator, 1)).collect::<Vec<_>>(),
        "adjudicator": {
            "final_verdict": verdict,
            "reasoning": reasoning,
            "revision_brief": brief,
            "dissent_summary": "strategy (score 4) would let it go.",
            "applied_compounding": number.is_multiple_of(3),
            "prior_verdicts_consulted": 5,
        },
        "event": "verdict",
        "agent": "council",
        "sid": "quorate",
        "span_id": run,
        "parent_id": null,
        "persisted": true,
        "run": run,
        "verdict": verdict,
        "policy": "seed/2",
        "partial": false,
        "artifact_path": artifact,
        "artifact_sha256": format!("{:016x}{:016x}{:016x}{:016x}", mixed(number, 3), mixed(number, 4), mixed(number, 5), mixed(number, 6)),
        "tier": 1,
        "revision_brief": brief,
        "reasoning": reasoning,
        "deliberators": deliberators,
        "prior_verdicts_used": 5,
        "runtime": "rubric",
        "model": "",
        "calls": 9,
        "elapsed_seconds": (mixed(number, 7) % 400_000) as f64 / 1000.0,
    })
}

fn blocks(number: u64, deliberator: u64, round: u64) -> bool {
    let first = mixed(number, 10 + deliberator).is_multiple_of(3);
    if round == 1 && mixed(number, 20 + deliberator).is_multiple_of(8) { !first } else { first }
}

fn answer(number: u64, at: u64, deliberator: &str, round: u64) -> Value {
    json!({
        "deliberator": deliberator,
        "status": "answered",
        "schema_failed": mixed(number, 30 + at).is_multiple_of(50),
        "would_block": blocks(number, at, round),
        "irreducible": mixed(number, 40 + at).is_multiple_of(25),
        "score": mixed(number, 50 + at) % 5 + 1,
        "findings": if round == 0 { json!([]) } else { json!([{"line": number % 90 + 1, "issue": ISSUES[at as usize]}]) },
    })
}

fn summary(number: u64, at: u64, deliberator: &str) -> Value {
    json!({
        "role": deliberator,
        "r1_score": mixed(number, 50 + at) % 5 + 1,
        "r1_would_block": blocks(number, at, 0),
        "r2_score": mixed(number, 50 + at) % 5 + 1,
        "r2_would_block": blocks(number, at, 1),
        "r2_irreducible": mixed(number, 40 + at).is_multiple_of(25),
        "top_issues": [],
        "succeeded": true,
        "error": null,
        "schema_failed": mixed(number, 30 + at).is_multiple_of(50),
        "reprompts": 0,
    })
}
