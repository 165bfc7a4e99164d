//! What playbooks say that they supersede, where it comes to nothing: said by `check`, and where prompts are composed.

use quorate_diagnostics::Body;
use quorate_manifest::playbook::catalog::PlaybookFile;
use quorate_manifest::playbook::{Playbook, Status};
use quorate_playbook::index::priority;
use quorate_playbook::supersede::{Claims, Idle};

use super::catalogue::Catalogue;

/// What a playbook names in `supersedes` to no effect, in words.
pub fn ineffective_claims(catalogue: &Catalogue, playbook: &Playbook) -> Vec<Body> {
    let claims = claims(catalogue, playbook);
    let mut bodies = Vec::new();
    for other in playbook.supersedes.iter().flatten() {
        let why = match catalogue.book(other) {
            None => Idle::Unknown,
            // What it has taken the place of is archived.
            Some(book) if book.playbook.status == Status::Archived => continue,
            Some(_) => match claims.holds(&playbook.slug, other) {
                Ok(()) => continue,
                Err(why) => why,
            },
        };
        let help = match why {
            Idle::Unknown => "`quorate playbook list` shows those that there are",
            Idle::Mutual => "take it out of one of them, or archive one",
            Idle::Governed => "have it promoted with `--gate governance`",
        };
        let message = format!("`{}` supersedes `{other}`, to no effect: {why}", playbook.slug);
        bodies.push(Body::new(message).help(help));
    }
    bodies
}

/// The active playbook that takes the place of one that is to become active.
pub fn replacement<'c>(catalogue: &'c Catalogue, playbook: &Playbook) -> Option<&'c str> {
    let claims = claims(catalogue, playbook);
    let names = |book: &&PlaybookFile| {
        let active = &book.playbook;
        active.status == Status::Active
            && active.supersedes.iter().flatten().any(|one| *one == playbook.slug)
            && claims.holds(&active.slug, &playbook.slug).is_ok()
    };
    catalogue.books.iter().find(names).map(|book| &*book.playbook.slug)
}

/// The claims of all that are not archived, and of one.
fn claims<'p>(catalogue: &'p Catalogue, playbook: &'p Playbook) -> Claims<'p> {
    let standing = catalogue.books.iter().map(|book| &book.playbook);
    let standing = standing.filter(|one| one.status != Status::Archived && one.slug != playbook.slug);
    let of =
        |one: &'p Playbook| (one.slug.as_str(), priority(one), one.supersedes.as_deref().unwrap_or_default());
    Claims::of(standing.chain([playbook]).map(of))
}
