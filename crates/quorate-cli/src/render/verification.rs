//! The result of a verification of the ledger: what is valid, by which checks, and the differences.

use quorate_diagnostics::render::TextOptions;
use quorate_ledger::signing::PublicKey;
use quorate_ledger::verify::{Cosignature, Divergence, Report};

use super::layout::table;
use super::paint::{Paint, finish, one_line};
use super::wording::instant;
use quorate::service::ledger::verify::Verification;

pub(crate) fn human(verified: &Verification, options: TextOptions) -> String {
    let Verification { ledger, report, .. } = verified;
    let mut text = match report.divergence_count {
        0 => format!("{} {}\n\n", one_line(ledger), Paint::Good.on("holds")),
        1 => format!("{} {}: in one place\n\n", one_line(ledger), Paint::Bad.on("diverges")),
        found => format!("{} {}: in {found} places\n\n", one_line(ledger), Paint::Bad.on("diverges")),
    };
    if let Some(first) = report.divergences.first() {
        text += &format!("First: {}\n\n", one_line(&first.to_string()));
        let rows = report.divergences.iter().map(row).collect();
        text += &table(&["what", "of", "record", "place", "how"], rows, 4, options.width);
        if report.divergence_count > report.divergences.len() as u64 {
            text += &format!("and {} more\n", report.divergence_count - report.divergences.len() as u64);
        }
        text.push('\n');
    }
    for sentence in findings(verified) {
        text += &format!("- {sentence}\n");
    }
    finish(&text, options)
}

fn row(divergence: &Divergence) -> Vec<String> {
    vec![
        Paint::Bad.on(divergence.kind.as_str()),
        divergence.part.as_str().to_owned(),
        one_line(&divergence.record().unwrap_or_default()),
        place(divergence),
        one_line(&divergence.what),
    ]
}

/// `<run>/<n>`, or the run alone.
fn place(divergence: &Divergence) -> String {
    match (divergence.seq, divergence.last_seq) {
        (Some(place), Some(until)) => format!("{place} to {until}"),
        (Some(place), None) => place.to_string(),
        _ => String::new(),
    }
}

/// The checks and their results, one sentence each.
fn findings(verified: &Verification) -> Vec<String> {
    let Verification { report, log, witness, .. } = verified;
    let mut sentences = Vec::new();
    let since = match report.since {
        0 => String::new(),
        since => format!(", behind {since} that a trusted checkpoint is over"),
    };
    sentences.push(format!(
        "{} records of {} runs and other streams, {} without their body, {} texts{since}",
        report.records, report.streams, report.erased, report.texts
    ));
    sentences.push(match (&report.origin, report.checkpoints) {
        (Some(origin), count) if count > 0 => format!(
            "{count} checkpoints of {}, the last over {} records; {} of them unsigned; {} records not sealed yet",
            one_line(origin),
            report.sealed,
            report.unsigned,
            report.unsealed
        ),
        (_, _) => format!("no checkpoint; {} records not sealed yet", report.unsealed),
    });
    if report.unproven > 0 {
        sentences.push(format!(
            "{} records are neither signed nor under a signed checkpoint, so their author is unproven: a crash leaves such \
             records, and a person with write access to the ledger can add some; inspect them, then seal them with `quorate \
             ledger checkpoint`",
            report.unproven
        ));
    }
    sentences.push(match report.ledger_key_signed {
        Some(true) => format!("verified with the ledger's own key, which signed {} records", report.signed),
        Some(false) => "the ledger's own key did not sign the last checkpoint".to_owned(),
        None if report.signed > 0 => {
            "verified only with keys that the ledger names: its own key is not on this machine".to_owned()
        }
        None => "no checkpoint is signed".to_owned(),
    });
    match (
        report.trusted_keys_signed.len(),
        report.trusted_keys_signed.iter().filter(|signed| **signed).count(),
    ) {
        (0, _) => sentences.push("verified with no key from `--key`".to_owned()),
        (keys, good) if keys == good => {
            sentences.push("verified with every given key".to_owned())
        }
        (keys, good) => sentences.push(format!("verified with {good} of the {keys} given keys")),
    }
    if let Some(copies_kept) = &report.local_checkpoints {
        sentences.push(match (copies_kept.checkpoints, copies_kept.fragments) {
            (0, 0) => "this machine keeps no checkpoint of the ledger: this is its first use here, or the copies were \
                       removed"
                .to_owned(),
            (copies, _) => format!(
                "consistent with {copies} copies of the last checkpoint signed on this machine, over {} records",
                copies_kept.size
            ),
        });
    }
    for rollback in &report.rollbacks {
        sentences.push(format!(
            "a rollback was accepted by {}: {} (ledger/{})",
            one_line(&rollback.by),
            one_line(&rollback.reason),
            rollback.n
        ));
    }
    for accepted in &report.key_changes.accepted {
        let key = PublicKey::from_text(&accepted.key).map(|key| key.id().to_string());
        sentences.push(format!(
            "the key {} was accepted by {}, since no earlier key could vouch for it: {} (ledger/{})",
            key.unwrap_or_else(|_| one_line(&accepted.key)),
            one_line(&accepted.by),
            one_line(&accepted.reason),
            accepted.n
        ));
    }
    match (&report.witness, witness) {
        (Some(witness_kept), Some(name)) => {
            let fragments = match witness_kept.fragments {
                0 => String::new(),
                fragments => format!("; {fragments} parts of it are not signed notes"),
            };
            sentences.push(format!(
                "the witness {} has {} checkpoints, the largest over {} records{fragments}",
                one_line(name),
                witness_kept.checkpoints,
                witness_kept.size
            ));
        }
        _ if report.cosignature.is_none() => sentences.push("no witness".to_owned()),
        _ => {}
    }
    if let Some(Cosignature { name, size, at_s }) = &report.cosignature {
        let at_ms = i64::try_from(*at_s).unwrap_or(i64::MAX).saturating_mul(1000);
        let at = instant(at_ms);
        sentences.push(format!("the witness {} signed {size} records at {at}, by its clock", one_line(name)));
    }
    sentences.push(format!(
        "{} runs are signed, with {} signatures; {} of them by keys that only they name",
        report.signed_runs, report.signatures, report.self_vouched_runs
    ));
    if report.unsigned_ledger_records > 0 {
        sentences.push(format!(
            "{} of the ledger's own records are not signed, and no known key should have signed them",
            report.unsigned_ledger_records
        ));
    }
    if let Some(logged) = &report.log {
        sentences.push(format!("{} lines of {} belong to its runs", logged.ours, one_line(log)));
        if let Some((number, run)) = &logged.first_unknown {
            sentences.push(format!(
                "{} lines of the log name runs that this ledger does not have: the first is line {number}, {}",
                logged.unknown,
                one_line(run)
            ));
        }
        if let Some(elsewhere) = &logged.first_elsewhere {
            sentences.push(format!(
                "{} runs log elsewhere ({}); their lines were not checked",
                logged.elsewhere,
                one_line(&elsewhere.display().to_string())
            ));
        }
        if logged.unreadable > 0 {
            sentences.push(format!(
                "{} lines of the log cannot be read, or follow up on a run without naming it; they are not counted",
                logged.unreadable
            ));
        }
    }
    if report.open > 0 {
        let open_runs: Vec<String> = report.open_runs.iter().map(|run| one_line(run)).collect();
        let more = if report.open > open_runs.len() as u64 { " and others" } else { "" };
        sentences.push(format!("{} runs are open: {}{more}", report.open, open_runs.join(", ")));
    }
    sentences.push(undetectable(report));
    sentences
}

/// What these checks cannot detect.
fn undetectable(report: &Report) -> String {
    let kept_size = report.local_checkpoints.map_or(0, |copies| copies.size);
    let witnessed = report.witness.map_or(0, |witness| witness.size);
    let cosigned = report.cosignature.as_ref().map_or(0, |cosigned| cosigned.size);
    let covered = kept_size.max(witnessed).max(cosigned);
    let cut = match covered {
        0 => "whether records were cut off at the end".to_owned(),
        covered => format!("whether records after the first {covered} were cut off"),
    };
    let anew = match witnessed.max(cosigned) {
        0 => "with the ledger's key and access to every copy",
        _ => "with the ledger's key and access to every copy and the witness",
    };
    let added = match report.unsigned_records {
        0 => String::new(),
        unsigned => format!(
            ", whether a person with write access added any of the {unsigned} unsigned records before they were sealed \
             (`sign = \"optional\"` or `\"required\"` in `[keys]` signs the records of later runs, and a witness shows when \
             they existed)"
        ),
    };
    format!("not detectable here: {cut}{added}, and a ledger rewritten by a person {anew}")
}
