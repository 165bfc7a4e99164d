//! The display capabilities of standard error, derived from its environment.

use crate::environment;
use std::io::IsTerminal as _;

use indicatif::ProgressDrawTarget;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Screen {
    /// No terminal.
    Off,
    /// A terminal that cannot move its cursor: a line for each event.
    Lines,
    /// A terminal whose lines can be redrawn.
    Live(Glyphs),
}

/// The characters that a terminal can display.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Glyphs {
    Unicode,
    Ascii,
}

impl Screen {
    pub(super) fn of_stderr(watched: bool) -> Screen {
        if !watched {
            return Screen::Off;
        }
        let variable = |name| environment::variable(name).filter(|value| !value.is_empty());
        let locale = variable("LC_ALL").or_else(|| variable("LC_CTYPE")).or_else(|| variable("LANG"));
        Screen::of_terminal(variable("TERM").as_deref(), locale.as_deref())
    }

    fn glyphs(self) -> Glyphs {
        match self {
            Screen::Live(glyphs) => glyphs,
            Screen::Off | Screen::Lines => Glyphs::Ascii,
        }
    }

    /// The screen of a terminal with this `TERM` and this locale.
    fn of_terminal(term: Option<&str>, locale: Option<&str>) -> Screen {
        let unicode = cfg!(windows)
            || locale
                .map(str::to_ascii_lowercase)
                .is_some_and(|name| name.contains("utf-8") || name.contains("utf8"));
        match term {
            Some("dumb") => Screen::Lines,
            Some("linux") => Screen::Live(Glyphs::Ascii),
            _ if unicode => Screen::Live(Glyphs::Unicode),
            _ => Screen::Live(Glyphs::Ascii),
        }
    }
}

/// The target of live progress.
pub(super) fn stderr() -> ProgressDrawTarget {
    ProgressDrawTarget::stderr()
}

impl Glyphs {
    /// The characters of standard output; Unicode if it is not a terminal, so that files look the same everywhere.
    pub(crate) fn of_stdout() -> Glyphs {
        match std::io::stdout().is_terminal() {
            true => Screen::glyphs(Screen::of_stderr(true)),
            false => Glyphs::Unicode,
        }
    }

    /// The frames of a spinner; the last one is for standstill.
    pub(super) fn spinner(self) -> &'static str {
        match self {
            Glyphs::Unicode => "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ ",
            Glyphs::Ascii => "|/-\\ ",
        }
    }

    /// The cells of a bar: done, current, to do.
    pub(super) fn bar(self) -> &'static str {
        match self {
            Glyphs::Unicode => "█▌░",
            Glyphs::Ascii => "=> ",
        }
    }

    /// Marks a valid answer.
    pub(super) fn success(self) -> &'static str {
        match self {
            Glyphs::Unicode => "✓",
            Glyphs::Ascii => "+",
        }
    }

    /// Marks a missing answer.
    pub(super) fn failure(self) -> &'static str {
        match self {
            Glyphs::Unicode => "✗",
            Glyphs::Ascii => "x",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_differ() {
        assert_eq!(Screen::of_stderr(false), Screen::Off);
        assert_eq!(Screen::of_terminal(Some("dumb"), Some("en_GB.UTF-8")), Screen::Lines);
        assert_eq!(
            Screen::of_terminal(Some("xterm-256color"), Some("en_GB.UTF-8")),
            Screen::Live(Glyphs::Unicode)
        );
        assert_eq!(Screen::of_terminal(Some("linux"), Some("en_GB.UTF-8")), Screen::Live(Glyphs::Ascii));
        #[cfg(not(windows))]
        assert_eq!(Screen::of_terminal(None, Some("C")), Screen::Live(Glyphs::Ascii));
    }
}
