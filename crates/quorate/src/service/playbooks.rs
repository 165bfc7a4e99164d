//! Playbooks of a workspace: those that are for somebody, as overlays that can be woven.

use quorate_manifest::duration::Iso;
use quorate_manifest::playbook::load::written_at;
use quorate_manifest::playbook::shelf::{Book, Shelf};
use quorate_manifest::playbook::{Status, Weaving};
use quorate_manifest::timestamp;
use quorate_playbook::bind::{Binding, Subject};
use quorate_playbook::index::priority;
use quorate_playbook::weave::{Origin, Overlay, Place};

/// The playbooks that are for a subject, whatever their status.
pub(super) fn bound<'s>(shelf: &'s Shelf, subject: &Subject) -> Vec<&'s Book> {
    shelf.books.iter().filter(|book| Binding::of(&book.playbook).binds(subject).is_some()).collect()
}

/// The overlays that active playbooks are.
pub(super) fn overlays(books: &[&Book]) -> Vec<Overlay> {
    books.iter().filter(|book| book.playbook.status == Status::Active).map(|book| overlay(book)).collect()
}

fn overlay(book: &Book) -> Overlay {
    let playbook = &book.playbook;
    let written_ms = written_at(playbook).and_then(timestamp::read);
    let ttl = playbook.ttl.as_ref().and_then(|ttl| ttl.parse::<Iso>().ok());
    Overlay {
        id: playbook.slug.clone(),
        origin: Origin::Playbook,
        text: book.text().to_owned(),
        place: match (playbook.kind, &playbook.block) {
            (Weaving::BlockReplacement, Some(block)) => Place::Block(block.clone()),
            _ => Place::Added,
        },
        priority: priority(playbook),
        written_ms,
        expires_ms: written_ms.zip(ttl).map(|(at, ttl)| timestamp::after(at, ttl)),
    }
}
