//! What `quorate playbook` prints.

use std::cmp::Reverse;

use quorate_diagnostics::render::{self as diagnostic, TextOptions};
use quorate_kernel::clock::rfc3339;
use quorate_kernel::ports::ledger::Record as Recorded;
use quorate_manifest::playbook::Status;
use quorate_manifest::playbook::catalog::PlaybookFile;
use quorate_playbook::index::priority;
use quorate_protocol::Json;
use serde_json::json;

use super::layout::{prose, table};
use super::paint::{Paint, finish, one_line};
use super::wording::minute;
use crate::arguments::HumanOrJson;
use quorate::service::environment::Environment;
use quorate::service::paths::display_path;
use quorate::service::playbook::archive::has_expired;
use quorate::service::playbook::library::Library;
use quorate::service::playbook::promote;
use quorate::service::playbook::propose::{Outcome, Proposal};
use quorate::service::playbook::reflect::Reflection;
use quorate::service::playbook::rollback::{RollbackResult, status_word};
use quorate::service::playbook::versions::VersionedFile;

fn object(library: &Library, book: &PlaybookFile, now_ms: i64) -> Json {
    let playbook = &book.playbook;
    let operators: Vec<&str> =
        library.operators_for(playbook).iter().map(|(known, _)| known.slug.as_str()).collect();
    json!({
        "slug": playbook.slug, "title": playbook.title, "status": status_word(playbook.status),
        "priority": priority(playbook), "operators": operators, "lock_check": playbook.lock_check,
        "expired": has_expired(book, now_ms) && playbook.status != Status::Archived, "file": book.path.workspace_relative(),
    })
}

/// All of them.
pub(crate) fn list(library: &Library, now_ms: i64, format: HumanOrJson, look: TextOptions) -> String {
    let books = &library.catalogue.books;
    if format == HumanOrJson::Json {
        let all: Vec<Json> = books.iter().map(|book| object(library, book, now_ms)).collect();
        return format!("{:#}\n", json!({ "playbooks": all }));
    }
    if books.is_empty() {
        return "no playbooks\n".to_owned();
    }
    let row = |book: &PlaybookFile| {
        let playbook = &book.playbook;
        let status = match has_expired(book, now_ms) && playbook.status != Status::Archived {
            true => Paint::Absent.on("expired"),
            false => status_word(playbook.status).to_owned(),
        };
        let operators: Vec<String> =
            library.operators_for(playbook).iter().map(|(known, _)| one_line(&known.slug)).collect();
        vec![
            Paint::Strong.on(&one_line(&playbook.slug)),
            status,
            priority(playbook).to_string(),
            operators.join(", "),
            one_line(&playbook.title),
        ]
    };
    let mut books: Vec<&PlaybookFile> = books.iter().collect();
    // Those that are woven first, and as they are.
    books.sort_by_key(|book| {
        let rank = match book.playbook.status {
            Status::Active => 0,
            Status::Shadow => 1,
            Status::Archived => 2,
        };
        (rank, Reverse(priority(&book.playbook)), book.playbook.slug.clone())
    });
    let rows = books.into_iter().map(row).collect();
    finish(&table(&["playbook", "status", "priority", "operators", "title"], rows, 0, look.width), look)
}

/// One of them.
pub(crate) fn show(
    library: &Library,
    book: &PlaybookFile,
    record: &VersionedFile,
    now_ms: i64,
    format: HumanOrJson,
    look: TextOptions,
) -> String {
    let mut json = object(library, book, now_ms);
    let version = record.last().map(|last| last.n);
    let allowed = library.exceptions.allowed(&book.playbook.slug, book.text());
    if format == HumanOrJson::Json {
        json["version"] = json!(version);
        json["drifted"] = json!(record.has_drifted());
        json["intact"] = json!(record.is_intact());
        json["body"] = json!(book.text());
        json["exceptions"] = allowed
            .iter()
            .map(|one| json!({"trait": one.locked, "by": one.by, "reason": one.reason}))
            .collect();
        return format!("{json:#}\n");
    }
    let playbook = &book.playbook;
    let text = |key: &str| {
        json[key].as_array().map_or(String::new(), |all| {
            all.iter().filter_map(Json::as_str).map(one_line).collect::<Vec<_>>().join(", ")
        })
    };
    let status = status_word(playbook.status);
    let status = if has_expired(book, now_ms) {
        format!("{status}, and its time is over")
    } else if record.has_drifted() {
        format!("{status}, and changed by hand since its last version")
    } else if !record.is_intact() {
        format!("{status}, and not what the ledger has")
    } else {
        status.to_owned()
    };
    let mut out = format!(
        "{}\n\n{}\n",
        Paint::Strong.on(&one_line(&playbook.title)),
        prose(book.text(), 2, look.width)
    );
    for (name, value) in [
        ("slug", one_line(&playbook.slug)),
        ("file", one_line(&book.path.workspace_relative())),
        ("status", status),
        ("version", version.map_or("none yet".to_owned(), |n| n.to_string())),
        ("priority", priority(playbook).to_string()),
        ("operators", text("operators")),
        ("lock_check", text("lock_check")),
        (
            "supersedes",
            playbook.supersedes.iter().flatten().map(|one| one_line(one)).collect::<Vec<_>>().join(", "),
        ),
    ] {
        if !value.is_empty() {
            out.push_str(&format!("{name:<11} {value}\n"));
        }
    }
    for one in allowed {
        let words = format!("may touch {}, says {}: {}", one.locked, one.by, one.reason);
        out.push_str(&format!("{:<11} {}\n", "exception", one_line(&words)));
    }
    for one in &playbook.evidence {
        let note = one.note.as_deref().map_or(String::new(), |note| format!(": {}", one_line(note)));
        out.push_str(&format!("{:<11} {}{note}\n", "evidence", one_line(&one.reference)));
    }
    finish(&out, look)
}

/// What was done to one.
pub(crate) fn history(record: &VersionedFile, format: HumanOrJson, look: TextOptions) -> String {
    if format == HumanOrJson::Json {
        let version = |one: &quorate_playbook::history::Version| {
            json!({
                "version": one.n, "at": one.at, "event": one.event, "summary": one.summary, "by": one.by,
                "text": one.text,
            })
        };
        let all: Vec<Json> = record.versions.iter().map(version).collect();
        return format!(
            "{:#}\n",
            json!({"slug": record.slug, "versions": all, "drifted": record.has_drifted()})
        );
    }
    if record.versions.is_empty() {
        return format!("nothing was done to {} yet\n", one_line(&record.slug));
    }
    let row = |one: &quorate_playbook::history::Version| {
        vec![
            Paint::Strong.on(&one.n.to_string()),
            one_line(&one.at),
            one_line(&one.event),
            one_line(one.by.as_deref().unwrap_or_default()),
            one_line(&one.summary),
        ]
    };
    let rows = record.versions.iter().map(row).collect();
    let mut text = table(&["version", "at", "what", "by", "in words"], rows, 0, look.width);
    if record.has_drifted() {
        text.push_str("It was changed by hand since: `quorate playbook repair` takes that in.\n");
    }
    finish(&text, look)
}

/// What the ledger has.
pub(crate) fn log(records: &[Recorded], format: HumanOrJson, look: TextOptions) -> String {
    let text = |one: &Recorded, key: &str| {
        let value = one.data.as_ref().and_then(|data| data.get(key)?.as_str());
        value.unwrap_or_default().to_owned()
    };
    if format == HumanOrJson::Json {
        let object = |one: &Recorded| json!({"n": one.n, "at": rfc3339(one.at_ms), "event": one.kind, "data": one.data});
        return format!("{:#}\n", json!({"events": records.iter().map(object).collect::<Vec<_>>()}));
    }
    if records.is_empty() {
        return "nothing is recorded\n".to_owned();
    }
    let row = |one: &Recorded| {
        vec![
            minute(one.at_ms),
            Paint::Strong.on(&one_line(&one.kind)),
            one_line(&text(one, "slug")),
            one_line(&text(one, "words")),
        ]
    };
    finish(
        &table(
            &["at (UTC)", "event", "playbook", "in words"],
            records.iter().map(row).collect(),
            0,
            look.width,
        ),
        look,
    )
}

/// Who reflected on how much.
pub(crate) fn reflected(reflected: &Reflection) -> String {
    let count =
        |n: usize, one: &str, many: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {many}") };
    format!(
        "{} has read {} and proposes {}\n",
        one_line(&reflected.by),
        count(reflected.runs, "run", "runs"),
        count(reflected.proposals.len(), "playbook", "playbooks")
    )
}

/// Proposals as deltas that `propose` reads.
pub(crate) fn proposals(proposals: &[Proposal]) -> String {
    let deltas = proposals.iter().filter_map(|one| match one {
        Proposal::Delta(delta) => Some(json!(delta)),
        Proposal::Manifest { .. } | Proposal::Unusable { .. } => None,
    });
    format!("{:#}\n", json!({"deltas": deltas.collect::<Vec<_>>()}))
}

/// What is proposed and cannot be taken, in a line for people.
pub(crate) fn unusable(proposal: &Proposal) -> Option<String> {
    match proposal {
        Proposal::Unusable { slug, misread } => Some(format!("`{slug}` is left out: {}", misread.reason)),
        Proposal::Manifest { .. } | Proposal::Delta(_) => None,
    }
}

/// What became of proposals.
pub(crate) fn proposed(outcomes: &[Outcome], environment: &Environment, format: HumanOrJson) -> String {
    if format == HumanOrJson::Json {
        let object = |one: &Outcome| {
            json!({
                "slug": one.slug, "accepted": one.accepted.is_some(),
                "file": one.accepted.as_ref().map(|one| display_path(environment, &one.path)),
                "version": one.accepted.as_ref().map(|one| one.version),
                "operators": one.accepted.as_ref().map(|one| &one.operators),
                "diagnostics": diagnostic::json::diagnostics(&one.report),
            })
        };
        return format!("{:#}\n", json!({"proposals": outcomes.iter().map(object).collect::<Vec<_>>()}));
    }
    if outcomes.is_empty() {
        return "nothing is proposed\n".to_owned();
    }
    let words = |one: &Outcome| match &one.accepted {
        Some(accepted) => format!(
            "{} is in shadow: version {}, for {}, in {}\n",
            one_line(&one.slug),
            accepted.version,
            accepted.operators.iter().map(|one| one_line(one)).collect::<Vec<_>>().join(", "),
            display_path(environment, &accepted.path)
        ),
        None if one.slug.is_empty() => "a proposal was refused\n".to_owned(),
        None => format!("{} was refused\n", one_line(&one.slug)),
    };
    outcomes.iter().map(words).collect()
}

/// What a promotion came to.
pub(crate) fn promoted(outcome: &promote::Outcome, format: HumanOrJson) -> String {
    if format == HumanOrJson::Json {
        let json = json!({
            "slug": outcome.slug, "promoted": outcome.promoted.is_some(), "version": outcome.promoted,
            "said": outcome.said, "archived": outcome.archived,
            "diagnostics": diagnostic::json::diagnostics(&outcome.report),
        });
        return format!("{json:#}\n");
    }
    let slug = one_line(&outcome.slug);
    match outcome.promoted {
        None => format!("{slug} was not promoted\n"),
        Some(version) => {
            let gate_note =
                outcome.said.as_deref().map_or(String::new(), |said| format!(" ({})", one_line(said)));
            let mut text = format!("{slug} is active: version {version}{gate_note}\n");
            outcome
                .archived
                .iter()
                .for_each(|one| text.push_str(&format!("{} is archived\n", one_line(one))));
            text
        }
    }
}

/// What became of one.
pub(crate) fn status_changed(slug: &str, version: u32, status: &str, format: HumanOrJson) -> String {
    match format {
        HumanOrJson::Json => format!("{:#}\n", json!({"slug": slug, "version": version, "status": status})),
        HumanOrJson::Human => format!("{} is {status}: version {version}\n", one_line(slug)),
    }
}

/// What a rollback came to.
pub(crate) fn rolled_back(slug: &str, to: u32, rolled: &RollbackResult, format: HumanOrJson) -> String {
    if format == HumanOrJson::Json {
        let json = json!({
            "slug": slug, "version": rolled.version, "to": to, "status": rolled.status, "others": rolled.others,
        });
        return format!("{json:#}\n");
    }
    let mut text =
        format!("{} is as version {to} was, {}: version {}\n", one_line(slug), rolled.status, rolled.version);
    rolled.others.iter().for_each(|one| text.push_str(&format!("{} was changed with it\n", one_line(one))));
    text
}

/// What was swept.
pub(crate) fn swept(swept: &[String], format: HumanOrJson) -> String {
    match format {
        HumanOrJson::Json => format!("{:#}\n", json!({"archived": swept})),
        HumanOrJson::Human if swept.is_empty() => "nothing is over\n".to_owned(),
        HumanOrJson::Human => {
            swept.iter().map(|slug| format!("{} is archived: its time is over\n", one_line(slug))).collect()
        }
    }
}

/// What was repaired.
pub(crate) fn repaired(done: &[String], format: HumanOrJson) -> String {
    match format {
        HumanOrJson::Json => format!("{:#}\n", json!({"done": done})),
        HumanOrJson::Human if done.is_empty() => "nothing is to be repaired\n".to_owned(),
        HumanOrJson::Human => done.iter().map(|what| format!("{}\n", one_line(what))).collect(),
    }
}
