//! `human`: a person reads the proposed change, and decides.

use quorate_manifest::playbook::PlaybookFile;
use quorate_playbook::index::priority;

use super::super::propose::contradictions_of;
use super::super::writer::LibraryWriter;
use super::evidence::{Approver, GateClosed, GateEvidence, push_quote};

/// Asks a person, and opens the gate on a yes.
///
/// # Errors
/// If no person can be asked, or the answer is no.
pub fn attempt(
    keeping: &LibraryWriter,
    book: &PlaybookFile,
    asked: &mut dyn Approver,
) -> Result<GateEvidence, GateClosed> {
    let redactor = &keeping.session.workspace.redaction.redactor;
    let answer = asked.ask(&redactor.redact(&describe(keeping, book)).0)?;
    let why = redactor.redact(answer.why.trim()).0;
    if !answer.yes {
        let reason = if why.is_empty() { String::new() } else { format!(": {why}") };
        return Err(GateClosed::new(format!("{} says no{reason}", answer.by), "revise it, or archive it"));
    }
    let note = if why.is_empty() {
        format!("{} says yes", answer.by)
    } else {
        format!("{} says yes: {why}", answer.by)
    };
    Ok(GateEvidence { kind: "human", reference: answer.by, note })
}

/// The question for a person or an assembly: first our description, then the playbook's text, quoted so that it cannot pass
/// for ours.
pub fn describe(keeping: &LibraryWriter, book: &PlaybookFile) -> String {
    let playbook = &book.playbook;
    let matched = keeping.library.operators_for(playbook);
    let operators: Vec<&str> = matched.iter().map(|(known, _)| &*known.slug).collect();
    let mut text = format!("# Weave `{}` into the prompts of {}\n\n", playbook.slug, operators.join(", "));
    let superseded = playbook.supersedes.iter().flatten().cloned().collect::<Vec<_>>().join(", ");
    text.push_str(&format!(
        "Resolution: `{}` becomes active, at priority {}",
        playbook.slug,
        priority(playbook)
    ));
    if !superseded.is_empty() {
        text.push_str(&format!(", in place of {superseded}"));
    }
    if let Some(block) = &playbook.block {
        text.push_str(&format!(", and stands in place of the block `{block}`"));
    }
    text.push_str(".\n\n## What agents would be told\n\n");
    push_quote(&mut text, book.text());
    for exception in keeping.library.exceptions.allowed(&playbook.slug, book.text()) {
        text.push_str(&format!("\n## It may touch `{}`, by an exception\n\n", exception.locked));
        push_quote(&mut text, &format!("{}: {}", exception.by, exception.reason));
    }
    if let Some(block) = &playbook.block {
        for (known, _) in &matched {
            let block_text = known.base.block_text(block).unwrap_or_default();
            text.push_str(&format!("\n## What `{}` is told there now\n\n", known.slug));
            push_quote(&mut text, block_text);
        }
    }
    let now_ms = keeping.session.environment.clock.now_ms();
    for found in contradictions_of(&keeping.library, playbook, book.text(), now_ms) {
        text.push_str(&format!("\n## It states the opposite of `{}`, which is active\n\n", found.active));
        push_quote(&mut text, &found.active_sentence);
    }
    let asked = keeping.library.catalogue.attempts(book.text());
    if asked.attempts > 0 {
        text.push_str(&format!("\nEarlier attempts to promote this text: {asked}.\n"));
    }
    text.push_str("\n## Title and evidence, from its author\n\n");
    push_quote(&mut text, &playbook.title);
    for evidence in &playbook.evidence {
        let note = evidence.note.as_deref().map_or(String::new(), |note| format!(": {note}"));
        push_quote(
            &mut text,
            &format!("learned from {}{note}", evidence.reference).replace(['\n', '\r'], " "),
        );
    }
    text
}
