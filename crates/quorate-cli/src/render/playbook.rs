//! The output of `quorate playbook`.

use quorate_diagnostics::render::{self as diagnostic, TextOptions};
use quorate_kernel::clock::rfc3339;
use quorate_kernel::ports::ledger::Record as Recorded;
use quorate_manifest::playbook::PlaybookFile;
use quorate_playbook::log::priority;
use quorate_protocol::Json;
use serde_json::json;

use super::layout::{Paint, finish, one_line};
use super::layout::{prose, table};
use super::wording::minute;
use crate::arguments::HumanOrJson;
use quorate::service::disk::display_path;
use quorate::service::environment::Environment;
use quorate::service::playbook::library::Library;
use quorate::service::playbook::overview::{self, ListedPlaybook, ShownVersion};
use quorate::service::playbook::promote;
use quorate::service::playbook::propose::{Proposal, ProposalOutcome};
use quorate::service::playbook::reflect::Reflection;
use quorate::service::playbook::rollback::RollbackResult;
use quorate::service::playbook::versions::AttemptCount;
use quorate::service::playbook::versions::VersionedFile;

fn object(library: &Library, file: &PlaybookFile, now_ms: i64) -> Json {
    json!(ListedPlaybook::of(library, file, now_ms))
}

pub(crate) fn list(library: &Library, now_ms: i64, format: HumanOrJson, options: TextOptions) -> String {
    let files = &library.catalogue.books;
    if format == HumanOrJson::Json {
        let all: Vec<Json> = files.iter().map(|file| object(library, file, now_ms)).collect();
        return format!("{:#}\n", json!({ "playbooks": all }));
    }
    if files.is_empty() {
        return "no playbooks\n".to_owned();
    }
    let row = |file: &PlaybookFile| {
        let playbook = &file.playbook;
        let listed = ListedPlaybook::of(library, file, now_ms);
        let status = match listed.expired {
            true => Paint::Absent.on(&listed.status_word()),
            false => listed.status_word(),
        };
        let operators: Vec<String> =
            library.operators_for(playbook).iter().map(|(operator, _)| one_line(&operator.slug)).collect();
        vec![
            Paint::Strong.on(&one_line(&playbook.slug)),
            status,
            priority(playbook).to_string(),
            operators.join(", "),
            one_line(&playbook.title),
        ]
    };
    let rows = overview::sorted(library).into_iter().map(row).collect();
    finish(&table(&["playbook", "status", "priority", "operators", "title"], rows, 0, options.width), options)
}

pub(crate) fn show(
    library: &Library,
    file: &PlaybookFile,
    record: &VersionedFile,
    now_ms: i64,
    format: HumanOrJson,
    options: TextOptions,
) -> String {
    let mut json = object(library, file, now_ms);
    let version = record.last().map(|last| last.n);
    let allowed = library.exceptions.allowed(&file.playbook.slug, file.text());
    let attempts = library.catalogue.attempts(file.text());
    if format == HumanOrJson::Json {
        json["version"] = json!(version);
        json["drifted"] = json!(record.has_drifted());
        json["intact"] = json!(record.is_intact());
        json["body"] = json!(file.text());
        add_attempts(&mut json, attempts);
        json["exceptions"] = allowed
            .iter()
            .map(|exception| json!({"trait": exception.locked, "by": exception.by, "reason": exception.reason}))
            .collect();
        return format!("{json:#}\n");
    }
    let playbook = &file.playbook;
    let text = |key: &str| {
        json[key].as_array().map_or(String::new(), |all| {
            all.iter().filter_map(Json::as_str).map(one_line).collect::<Vec<_>>().join(", ")
        })
    };
    let status =
        ListedPlaybook::of(library, file, now_ms).status_words(record.has_drifted(), record.is_intact());
    let mut out = format!(
        "{}\n\n{}\n",
        Paint::Strong.on(&one_line(&playbook.title)),
        prose(file.text(), 2, options.width)
    );
    for (name, value) in [
        ("slug", one_line(&playbook.slug)),
        ("file", one_line(&file.path.workspace_relative())),
        ("status", status),
        ("version", version.map_or("none yet".to_owned(), |n| n.to_string())),
        ("priority", priority(playbook).to_string()),
        ("operators", text("operators")),
        ("lock_check", text("lock_check")),
        ("attempts", if attempts.attempts > 0 { attempts.to_string() } else { String::new() }),
        (
            "supersedes",
            playbook.supersedes.iter().flatten().map(|slug| one_line(slug)).collect::<Vec<_>>().join(", "),
        ),
    ] {
        if !value.is_empty() {
            out.push_str(&format!("{name:<11} {value}\n"));
        }
    }
    for exception in allowed {
        let words = format!("may touch {}, says {}: {}", exception.locked, exception.by, exception.reason);
        out.push_str(&format!("{:<11} {}\n", "exception", one_line(&words)));
    }
    for evidence in &playbook.evidence {
        let note = evidence.note.as_deref().map_or(String::new(), |note| format!(": {}", one_line(note)));
        out.push_str(&format!("{:<11} {}{note}\n", "evidence", one_line(&evidence.reference)));
    }
    finish(&out, options)
}

/// How often a gate was asked about its text.
fn add_attempts(json: &mut Json, attempts: AttemptCount) {
    json["attempts"] = json!(attempts.attempts);
    json["refused_attempts"] = json!(attempts.refused_attempts);
}

/// The versions of a playbook.
pub(crate) fn history(
    library: &Library,
    file: &PlaybookFile,
    record: &VersionedFile,
    format: HumanOrJson,
    options: TextOptions,
) -> String {
    let all = ShownVersion::all(record, file);
    let attempts = library.catalogue.attempts(file.text());
    if format == HumanOrJson::Json {
        let mut json = json!({"slug": record.slug, "versions": all, "drifted": record.has_drifted()});
        add_attempts(&mut json, attempts);
        return format!("{json:#}\n");
    }
    let asked = match attempts.attempts {
        0 => String::new(),
        _ => format!("attempts to promote this text: {attempts}\n"),
    };
    if all.is_empty() {
        return format!("no records of {} yet\n{asked}", one_line(&record.slug));
    }
    let row = |version: &ShownVersion| {
        vec![
            Paint::Strong.on(&version.version.to_string()),
            one_line(&version.at),
            one_line(&version.event),
            one_line(version.by.as_deref().unwrap_or_default()),
            one_line(&version.summary),
        ]
    };
    let mut text = table(&overview::VERSION_COLUMNS, all.iter().map(row).collect(), 0, options.width);
    text.push_str(&asked);
    if record.has_drifted() {
        text.push_str(&format!("{}\n", overview::DRIFTED));
    }
    finish(&text, options)
}

/// The ledger's records of playbooks.
pub(crate) fn log(records: &[Recorded], format: HumanOrJson, options: TextOptions) -> String {
    let text = |record: &Recorded, key: &str| {
        let value = record.data.as_ref().and_then(|data| data.get(key)?.as_str());
        value.unwrap_or_default().to_owned()
    };
    if format == HumanOrJson::Json {
        let object = |record: &Recorded| json!({"n": record.n, "at": rfc3339(record.at_ms), "event": record.kind, "data": record.data});
        return format!("{:#}\n", json!({"events": records.iter().map(object).collect::<Vec<_>>()}));
    }
    if records.is_empty() {
        return "nothing is recorded\n".to_owned();
    }
    let row = |record: &Recorded| {
        vec![
            minute(record.at_ms),
            Paint::Strong.on(&one_line(&record.kind)),
            one_line(&text(record, "slug")),
            one_line(&text(record, "words")),
        ]
    };
    finish(
        &table(
            &["at (UTC)", "event", "playbook", "in words"],
            records.iter().map(row).collect(),
            0,
            options.width,
        ),
        options,
    )
}

/// The reflector, its input, and the number of proposals.
pub(crate) fn reflected(reflected: &Reflection) -> String {
    let count = |n: usize, singular: &str, plural: &str| {
        if n == 1 { format!("1 {singular}") } else { format!("{n} {plural}") }
    };
    format!(
        "{} has read {} and proposes {}\n",
        one_line(&reflected.by),
        count(reflected.runs, "run", "runs"),
        count(reflected.proposals.len(), "playbook", "playbooks")
    )
}

/// Proposals as deltas that `propose` reads.
pub(crate) fn proposals(proposals: &[Proposal]) -> String {
    let deltas = proposals.iter().filter_map(|proposal| match proposal {
        Proposal::Delta(delta) => Some(json!(delta)),
        Proposal::Manifest { .. } | Proposal::Unusable { .. } => None,
    });
    format!("{:#}\n", json!({"deltas": deltas.collect::<Vec<_>>()}))
}

/// An unusable proposal, in one line.
pub(crate) fn unusable(proposal: &Proposal) -> Option<String> {
    match proposal {
        Proposal::Unusable { slug, misread } => Some(format!("skipped `{slug}`: {}", misread.reason)),
        Proposal::Manifest { .. } | Proposal::Delta(_) => None,
    }
}

pub(crate) fn proposed(
    outcomes: &[ProposalOutcome],
    environment: &Environment,
    format: HumanOrJson,
) -> String {
    if format == HumanOrJson::Json {
        let object = |outcome: &ProposalOutcome| {
            json!({
                "slug": outcome.slug, "accepted": outcome.accepted.is_some(),
                "file": outcome.accepted.as_ref().map(|accepted| display_path(environment, &accepted.path)),
                "version": outcome.accepted.as_ref().map(|accepted| accepted.version),
                "operators": outcome.accepted.as_ref().map(|accepted| &accepted.operators),
                "diagnostics": diagnostic::machine::diagnostics_json(&outcome.report),
            })
        };
        return format!("{:#}\n", json!({"proposals": outcomes.iter().map(object).collect::<Vec<_>>()}));
    }
    if outcomes.is_empty() {
        return "nothing is proposed\n".to_owned();
    }
    let words = |outcome: &ProposalOutcome| match &outcome.accepted {
        Some(accepted) => format!(
            "{} is in shadow: version {}, for {}, in {}\n",
            one_line(&outcome.slug),
            accepted.version,
            accepted.operators.iter().map(|operator| one_line(operator)).collect::<Vec<_>>().join(", "),
            display_path(environment, &accepted.path)
        ),
        None if outcome.slug.is_empty() => "a proposal was refused\n".to_owned(),
        None => format!("{} was refused\n", one_line(&outcome.slug)),
    };
    outcomes.iter().map(words).collect()
}

/// The result of a promotion.
pub(crate) fn promoted(outcome: &promote::PromotionOutcome, format: HumanOrJson) -> String {
    if format == HumanOrJson::Json {
        let json = json!({
            "slug": outcome.slug, "promoted": outcome.promoted.is_some(), "version": outcome.promoted,
            "said": outcome.gate_message, "archived": outcome.archived,
            "diagnostics": diagnostic::machine::diagnostics_json(&outcome.report),
        });
        return format!("{json:#}\n");
    }
    let slug = one_line(&outcome.slug);
    match outcome.promoted {
        None => format!("{slug} was not promoted\n"),
        Some(version) => {
            let gate_note = outcome
                .gate_message
                .as_deref()
                .map_or(String::new(), |remark| format!(" ({})", one_line(remark)));
            let mut text = format!("{slug} is active: version {version}{gate_note}\n");
            outcome
                .archived
                .iter()
                .for_each(|slug| text.push_str(&format!("{} is archived\n", one_line(slug))));
            text
        }
    }
}

/// The new status of a playbook.
pub(crate) fn status_changed(slug: &str, version: u32, status: &str, format: HumanOrJson) -> String {
    match format {
        HumanOrJson::Json => format!("{:#}\n", json!({"slug": slug, "version": version, "status": status})),
        HumanOrJson::Human => format!("{} is {status}: version {version}\n", one_line(slug)),
    }
}

/// The result of a rollback.
pub(crate) fn rolled_back(slug: &str, to: u32, rolled: &RollbackResult, format: HumanOrJson) -> String {
    if format == HumanOrJson::Json {
        let json = json!({
            "slug": slug, "version": rolled.version, "to": to, "status": rolled.status, "others": rolled.others,
        });
        return format!("{json:#}\n");
    }
    let mut text =
        format!("{} is as version {to} was, {}: version {}\n", one_line(slug), rolled.status, rolled.version);
    rolled.others.iter().for_each(|slug| text.push_str(&format!("{} was changed with it\n", one_line(slug))));
    text
}

pub(crate) fn swept(swept: &[String], format: HumanOrJson) -> String {
    match format {
        HumanOrJson::Json => format!("{:#}\n", json!({"archived": swept})),
        HumanOrJson::Human if swept.is_empty() => "nothing is over\n".to_owned(),
        HumanOrJson::Human => {
            swept.iter().map(|slug| format!("{} is archived: it expired\n", one_line(slug))).collect()
        }
    }
}

pub(crate) fn repaired(repairs: &[String], format: HumanOrJson) -> String {
    match format {
        HumanOrJson::Json => format!("{:#}\n", json!({"done": repairs})),
        HumanOrJson::Human if repairs.is_empty() => "nothing to repair\n".to_owned(),
        HumanOrJson::Human => repairs.iter().map(|repair| format!("{}\n", one_line(repair))).collect(),
    }
}
