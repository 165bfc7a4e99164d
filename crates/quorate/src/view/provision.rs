//! Profiles: what an install or an uninstall has changed, and the states of installed ones.

use super::doc::{Doc, Entry, Text, Tone};
use crate::provision::{
    Drift, FileAction, FileReport, ProfileStatus, ProfilesStatus, ProvisionOutcome, State,
};

impl ProvisionOutcome {
    /// The changes of files, and their sum.
    pub fn doc(&self) -> Doc {
        let mut doc = Doc::new();
        let refused = self.report.has_refusals();
        if self.resumed && !refused && !self.dry_run {
            doc.line("Completed an interrupted run.");
        }
        let is_shown = |file: &&FileReport| file.action != FileAction::Keep || !file.notes.is_empty();
        doc.items(self.files.iter().filter(is_shown).map(|file| {
            let (word, tone) = action(file.action);
            let mut body = Doc::new();
            file.notes.iter().for_each(|note| body.line(note));
            diff(&mut body, &file.diff);
            Entry { line: file_line(Text::toned(tone, word), &file.dest, file.strategy), body }
        }));
        let profile = format!("{} {}", self.slug, self.version);
        let place = |word: &str| match self.target.as_str() {
            "." => String::new(),
            target => format!(" {word} {target}"),
        };
        doc.line(match &self.previous {
            _ if refused => "Nothing was written.".to_owned(),
            _ if self.idle => format!("{profile}: nothing to do."),
            _ if self.dry_run => "This is a dry run: nothing was written.".to_owned(),
            _ if self.uninstalls => format!("{profile} is uninstalled{}.", place("from")),
            Some(previous) => format!("{profile} is installed{}, after {previous}.", place("in")),
            None => format!("{profile} is installed{}.", place("in")),
        });
        doc
    }
}

impl ProfilesStatus {
    /// A line for each profile.
    pub fn list(&self) -> Doc {
        self.lines(|_, _| {})
    }

    /// The profiles with their files.
    pub fn doc(&self) -> Doc {
        self.lines(|profile, doc| {
            doc.items(profile.files.iter().map(|file| {
                let (word, tone) = match file.stands {
                    Drift::InPlace => ("in place", Tone::Good),
                    Drift::EditedAround => ("extended", Tone::Good),
                    Drift::Edited => ("edited", Tone::Bad),
                    Drift::Missing => ("missing", Tone::Absent),
                };
                let line = file_line(Text::toned(tone, word), &file.dest, file.strategy);
                let shared = match file.shared.as_slice() {
                    [] => String::new(),
                    others => format!(", shared with {}", others.join(" and ")),
                };
                let mut body = Doc::new();
                diff(&mut body, &file.diff);
                Entry { line: line.and(shared), body }
            }));
        })
    }

    fn lines(&self, more: impl Fn(&ProfileStatus, &mut Doc)) -> Doc {
        let mut doc = Doc::new();
        if self.profiles.is_empty() {
            doc.line("no profiles");
        }
        for profile in &self.profiles {
            let files = match profile.files.len() {
                1 => "1 file".to_owned(),
                count => format!("{count} files"),
            };
            let state = match (profile.state, profile.holds) {
                (State::Installing, _) => Text::toned(Tone::Bad, "an install was interrupted"),
                (State::Removing, _) => Text::toned(Tone::Bad, "an uninstall was interrupted"),
                (State::Installed, true) => Text::toned(Tone::Good, "in place"),
                (State::Installed, false) => Text::toned(Tone::Fair, "drifted"),
            };
            let name =
                Text::strong(&profile.slug).and(format!(" {}  ", profile.version)).and(format!("{files}, "));
            doc.line(name.and(state).and(format!(", from {}", profile.from)));
            more(profile, &mut doc);
        }
        doc
    }
}

fn file_line(word: Text, dest: &str, strategy: &str) -> Text {
    word.and("  ").and(Text::code(dest)).and("  ").and(Text::faint(format!("({strategy})")))
}

fn diff(doc: &mut Doc, text: &str) {
    if !text.is_empty() {
        doc.verbatim("diff", text);
    }
}

fn action(action: FileAction) -> (&'static str, Tone) {
    match action {
        FileAction::Create => ("create", Tone::Good),
        FileAction::PutBack => ("put back", Tone::Good),
        FileAction::Restore => ("restore", Tone::Good),
        FileAction::Change => ("change", Tone::Fair),
        FileAction::Permit => ("make executable", Tone::Fair),
        FileAction::Delete => ("delete", Tone::Bad),
        FileAction::Edited => ("edited", Tone::Bad),
        FileAction::Keep => ("keep", Tone::Faint),
        FileAction::Leave => ("leave", Tone::Faint),
    }
}
