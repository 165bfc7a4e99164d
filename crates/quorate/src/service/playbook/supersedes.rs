//! Claims in `supersedes` without effect, reported by `check` and where prompts are composed.

use quorate_diagnostics::Body;
use quorate_manifest::playbook::PlaybookFile;
use quorate_manifest::playbook::{Playbook, Status};
use quorate_playbook::index::priority;
use quorate_playbook::supersede::{NoEffect, Supersessions};

use super::catalogue::Catalogue;

/// The messages about claims of a playbook that have no effect.
pub fn ineffective_claims(catalogue: &Catalogue, playbook: &Playbook) -> Vec<Body> {
    let claims = claims(catalogue, playbook);
    let mut bodies = Vec::new();
    for other in playbook.supersedes.iter().flatten() {
        let why = match catalogue.book(other) {
            None => NoEffect::Unknown,
            // The superseded playbook is archived.
            Some(book) if book.playbook.status == Status::Archived => continue,
            Some(_) => match claims.check(&playbook.slug, other) {
                Ok(()) => continue,
                Err(why) => why,
            },
        };
        let help = match why {
            NoEffect::Unknown => "run `quorate playbook list` to see the available playbooks",
            NoEffect::Mutual => "remove the claim from one of them, or archive one",
            NoEffect::Governed => "promote it with `--gate governance`",
        };
        let message = format!("`{}` supersedes `{other}` without effect: {why}", playbook.slug);
        bodies.push(Body::new(message).help(help));
    }
    bodies
}

/// The active playbook that supersedes one that is about to become active.
pub fn replacement<'c>(catalogue: &'c Catalogue, playbook: &Playbook) -> Option<&'c str> {
    let claims = claims(catalogue, playbook);
    let names = |book: &&PlaybookFile| {
        let active = &book.playbook;
        active.status == Status::Active
            && active.supersedes.iter().flatten().any(|slug| *slug == playbook.slug)
            && claims.check(&active.slug, &playbook.slug).is_ok()
    };
    catalogue.books.iter().find(names).map(|book| &*book.playbook.slug)
}

/// The claims of all unarchived playbooks, and of one.
fn claims<'p>(catalogue: &'p Catalogue, playbook: &'p Playbook) -> Supersessions<'p> {
    let playbooks = catalogue.books.iter().map(|book| &book.playbook);
    let playbooks =
        playbooks.filter(|candidate| candidate.status != Status::Archived && candidate.slug != playbook.slug);
    let claims_of = |playbook: &'p Playbook| {
        (playbook.slug.as_str(), priority(playbook), playbook.supersedes.as_deref().unwrap_or_default())
    };
    Supersessions::new(playbooks.chain([playbook]).map(claims_of))
}
