//! Status: how what is installed stands to what is there.

use quorate_diagnostics::{Report, codes};

use super::files::{Files, Found, Trouble};
use super::not_installed;
use super::setup::{self, Error, Fact, Part, Setup, State, Store, look};
use super::share::Others;
use super::standing::Standing as Stands;
use crate::service::diff;
use crate::service::stop::ServiceError;

/// How a profile stands.
#[derive(Debug)]
pub struct Standing {
    /// The profile.
    pub slug: String,
    /// Its version.
    pub version: String,
    /// Where it came from.
    pub from: String,
    /// When it was installed.
    pub at: String,
    /// Whether what was begun is done.
    pub state: State,
    /// Its files.
    pub files: Vec<File>,
}

/// How a file stands.
#[derive(Debug)]
pub struct File {
    /// Which.
    pub dest: String,
    /// How it goes together with what was there.
    pub strategy: &'static str,
    /// How it stands.
    pub stands: Stands,
    /// The other profiles that have a part in it.
    pub shared: Vec<String>,
    /// Why it cannot be read, where it cannot.
    pub note: Option<String>,
    /// From what was installed to what is there.
    pub diff: String,
}

impl Standing {
    /// Whether all is as it was installed, as far as that is the profile's to say.
    pub fn holds(&self) -> bool {
        let whole = |file: &File| matches!(file.stands, Stands::InPlace | Stands::Beside);
        self.state == State::Installed && self.files.iter().all(whole)
    }

    /// What does not hold, as refusals.
    pub fn report(&self) -> Report {
        let mut report = Report::new();
        let again = format!("install it again, from {}, to put it right", self.from);
        if self.state != State::Installed {
            let what = if self.state == State::Installing { "install" } else { "uninstall" };
            let body = quorate_diagnostics::Body::new(format!("an {what} of {} was interrupted", self.slug));
            report.refuse(
                codes::PROFILE_DRIFT,
                body.help("run install or uninstall again; either completes it"),
            );
        }
        for file in &self.files {
            let what = match (file.stands, &file.note) {
                (_, Some(note)) => format!("{} {note}", file.dest),
                (Stands::Edited, None) => format!("{} was edited since it was installed", file.dest),
                (Stands::Missing, None) => format!("{} is missing", file.dest),
                (Stands::InPlace | Stands::Beside, None) => continue,
            };
            let help = match file.stands {
                Stands::Edited => format!("{again}; with `--force`, which keeps what was there"),
                _ => again.clone(),
            };
            report.refuse(codes::PROFILE_DRIFT, quorate_diagnostics::Body::new(what).help(help));
        }
        report
    }
}

/// How profiles stand: one, or all.
///
/// # Errors
/// When the one is not installed, or what is kept cannot be read.
pub fn status(files: &dyn Files, target: &str, slug: Option<&str>) -> Result<Vec<Standing>, ServiceError> {
    let setups = setup::all(files)?;
    if let Some(slug) = slug.filter(|slug| setups.iter().all(|setup| setup.slug != **slug)) {
        let installed: Vec<String> = setups.into_iter().map(|setup| setup.slug).collect();
        return Err(not_installed(slug, target, &installed));
    }
    let wanted = setups.into_iter().filter(|setup| slug.is_none_or(|slug| setup.slug == slug));
    wanted.map(|setup| Ok(of(files, setup)?)).collect()
}

fn of(files: &dyn Files, mut setup: Setup) -> Result<Standing, Error> {
    let store = Store::new(files, &setup.slug);
    let state = setup.state;
    setup.settle(files)?;
    let others = Others::of(files, &setup.slug)?;
    let mut told = Vec::new();
    for (dest, entry) in &setup.files {
        let Some(fact) = &entry.installed else { continue };
        told.push(file(files, &store, &others, (dest, &setup.at), fact)?);
    }
    let Setup { slug, version, from, at, .. } = setup;
    Ok(Standing { slug, version, from, at, state, files: told })
}

fn file(
    files: &dyn Files,
    store: &Store<'_>,
    others: &Others<'_>,
    (dest, at): (&str, &str),
    fact: &Fact,
) -> Result<File, Error> {
    let (found, note) = match look(files, dest) {
        Ok(found) => (found, None),
        Err(Error::Trouble { trouble: Trouble::Place(why), .. }) => (None, Some(why.to_owned())),
        Err(error) => return Err(error),
    };
    let stands = match note {
        Some(_) => Stands::Edited,
        None => Stands::of(store, fact, found.as_ref())?,
    };
    let shared = others.sharing(dest);
    // What another profile has set since is no edit.
    let below = match (stands, &found) {
        (Stands::Edited, Some(found)) if !shared.is_empty() => others.below(store, at, dest, fact, found)?,
        _ => None,
    };
    let stands = match below {
        Some(below) => match Stands::of(store, fact, Some(&below))? {
            Stands::InPlace => Stands::Beside,
            other => other,
        },
        None => stands,
    };
    let diff = match (stands, &found) {
        (Stands::Edited | Stands::Beside, Some(Found { bytes, .. })) => {
            diff::unified(dest, Some(&store.content(Part::Installed, &fact.text)?), Some(bytes))
        }
        _ => String::new(),
    };
    Ok(File { dest: dest.to_owned(), strategy: fact.strategy.word(), stands, shared, note, diff })
}
