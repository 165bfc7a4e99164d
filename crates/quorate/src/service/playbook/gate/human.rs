//! `human`: a person reads what would change, and says yes or no.

use quorate_manifest::playbook::shelf::Book;

use super::super::change::Keeping;
use super::{Asked, Passed, Shut};

/// Asks.
///
/// # Errors
/// When nobody is there, or the answer is no.
pub fn open(keeping: &Keeping, book: &Book, asked: &mut dyn Asked) -> Result<Passed, Shut> {
    let answer = asked.ask(&shown(keeping, book))?;
    let why = answer.why.trim();
    if !answer.yes {
        let said = if why.is_empty() { String::new() } else { format!(": {why}") };
        return Err(Shut::new(format!("{} says no{said}", answer.by), "revise it, or archive it"));
    }
    let note = if why.is_empty() {
        format!("{} says yes", answer.by)
    } else {
        format!("{} says yes: {why}", answer.by)
    };
    Ok(Passed { kind: "human", reference: answer.by, note })
}

/// What is to be decided, for a person or an assembly: what it is, for whom, and what would be different.
pub fn shown(keeping: &Keeping, book: &Book) -> String {
    let playbook = &book.playbook;
    let matched = keeping.library.matched(playbook);
    let operators: Vec<&str> = matched.iter().map(|(known, _)| &*known.slug).collect();
    let mut text = format!("# Weave `{}` into the prompts of {}\n\n", playbook.slug, operators.join(", "));
    text.push_str(&format!("{}\n\n", playbook.title.trim()));
    text.push_str(&format!(
        "Resolution: it becomes active, at priority {}{}.\n\n",
        quorate_playbook::index::priority(playbook),
        playbook
            .supersedes
            .as_ref()
            .filter(|all| !all.is_empty())
            .map_or(String::new(), |all| { format!(", in place of {}", all.join(", ")) })
    ));
    text.push_str("## What agents would be told\n\n");
    book.text().lines().for_each(|line| text.push_str(&format!("> {line}\n")));
    text.push_str("\n## What it was learned from\n\n");
    for one in &playbook.evidence {
        let note = one.note.as_deref().map_or(String::new(), |note| format!(": {note}"));
        text.push_str(&format!("- {}{note}\n", one.reference));
    }
    text
}
