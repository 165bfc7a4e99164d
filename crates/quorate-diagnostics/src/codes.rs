//! The codes: one table that gives each its constant, its severity and its page.
//!
//! To add one: a line in the table below and a page under `codes/`. The page's first heading is the code, its first
//! paragraph says in one line what the code means, its first fenced block shows what triggers it, and the rest says
//! what to do.

use std::fmt;

/// The code of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RefusalCode(&'static str);

/// The code of a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WarningCode(&'static str);

/// Whether a diagnostic stops what was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// It stops.
    Refusal,
    /// It does not.
    Warning,
}

/// What there is to say about a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// The whole code, for example `quorate:syntax`.
    pub code: &'static str,
    /// Whether it stops.
    pub severity: Severity,
    /// The page, as Markdown.
    pub markdown: &'static str,
}

macro_rules! codes {
    (@code refusal $code:literal) => { RefusalCode($code) };
    (@code warning $code:literal) => { WarningCode($code) };
    (@type refusal) => { RefusalCode };
    (@type warning) => { WarningCode };
    (@severity refusal) => { Severity::Refusal };
    (@severity warning) => { Severity::Warning };
    ($($severity:ident $name:ident = $code:literal, $page:literal;)*) => {
        $(
            #[doc = include_str!(concat!("../codes/", $page))]
            pub const $name: codes!(@type $severity) = codes!(@code $severity $code);
        )*

        const PAGES: &[Page] = &[$(Page {
            code: $code,
            severity: codes!(@severity $severity),
            markdown: include_str!(concat!("../codes/", $page)),
        }),*];
    };
}

codes! {
    refusal SYNTAX = "quorate:syntax", "quorate/syntax.md";
    refusal COUNCIL_INVALID = "quorate:council_invalid", "quorate/council_invalid.md";
    refusal HOST_INVALID = "quorate:host_invalid", "quorate/host_invalid.md";
    refusal DURATION = "quorate:duration", "quorate/duration.md";
    refusal KIND_UNKNOWN = "quorate:kind_unknown", "quorate/kind_unknown.md";
    refusal EXECUTOR_INVALID = "quorate:executor_invalid", "quorate/executor_invalid.md";
    refusal RUNTIME_UNSUPPORTED = "quorate:runtime_unsupported", "quorate/runtime_unsupported.md";
    refusal PROMPT_MISSING = "quorate:prompt_missing", "quorate/prompt_missing.md";
    refusal PROMPT_UNREADABLE = "quorate:prompt_unreadable", "quorate/prompt_unreadable.md";
    refusal CONTEXT_MISSING = "quorate:context_missing", "quorate/context_missing.md";
    refusal CONTEXT_UNREADABLE = "quorate:context_unreadable", "quorate/context_unreadable.md";
    refusal PATTERN_INVALID = "quorate:pattern_invalid", "quorate/pattern_invalid.md";
    refusal CONFIG_MISSING = "quorate:config_missing", "quorate/config_missing.md";
    refusal CONFIG_UNREADABLE = "quorate:config_unreadable", "quorate/config_unreadable.md";
    refusal ARTIFACT_MISSING = "quorate:artifact_missing", "quorate/artifact_missing.md";
    refusal ARTIFACT_UNREADABLE = "quorate:artifact_unreadable", "quorate/artifact_unreadable.md";
    refusal ARTIFACT_BINARY = "quorate:artifact_binary", "quorate/artifact_binary.md";
    refusal ARTIFACT_TOO_LARGE = "quorate:artifact_too_large", "quorate/artifact_too_large.md";
    refusal RUN_UNKNOWN = "quorate:run_unknown", "quorate/run_unknown.md";
    refusal RUN_AMBIGUOUS = "quorate:run_ambiguous", "quorate/run_ambiguous.md";
    refusal RUN_OPEN = "quorate:run_open", "quorate/run_open.md";
    refusal RUN_DECIDED = "quorate:run_decided", "quorate/run_decided.md";
    refusal RUN_MOVED = "quorate:run_moved", "quorate/run_moved.md";
    refusal FINGERPRINT_CHANGED = "quorate:fingerprint_changed", "quorate/fingerprint_changed.md";
    refusal REPLAY_DIFFERS = "quorate:replay_differs", "quorate/replay_differs.md";
    refusal BODY_EVICTED = "quorate:body_evicted", "quorate/body_evicted.md";
    refusal LEDGER_CORRUPT = "quorate:ledger_corrupt", "quorate/ledger_corrupt.md";
    refusal LEDGER_UNAVAILABLE = "quorate:ledger_unavailable", "quorate/ledger_unavailable.md";
    refusal LOG_UNWRITABLE = "quorate:log_unwritable", "quorate/log_unwritable.md";
    refusal MODULARITY = "quorate:modularity", "quorate/modularity.md";
    refusal FILE_EXISTS = "quorate:file_exists", "quorate/file_exists.md";
    refusal USAGE = "quorate:usage", "quorate/usage.md";
    warning FIELD_WITHOUT_EFFECT = "quorate:field_without_effect", "quorate/field_without_effect.md";
    warning LOG_CORRUPT = "quorate:log_corrupt", "quorate/log_corrupt.md";
    warning LOG_TORN = "quorate:log_torn", "quorate/log_torn.md";
    warning LOG_BEHIND = "quorate:log_behind", "quorate/log_behind.md";
    warning LEDGER_SET_ASIDE = "quorate:ledger_set_aside", "quorate/ledger_set_aside.md";
    warning WATCH_UNREADABLE = "quorate:watch_unreadable", "quorate/watch_unreadable.md";
}

impl RefusalCode {
    /// The whole code.
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl WarningCode {
    /// The whole code.
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for RefusalCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0)
    }
}

impl fmt::Display for WarningCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0)
    }
}

impl Severity {
    /// `refusal` or `warning`, as every rendering says it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Severity::Refusal => "refusal",
            Severity::Warning => "warning",
        }
    }
}

impl Page {
    /// The page's first paragraph: what the code means, in one line.
    pub fn summary(&self) -> &'static str {
        self.markdown.lines().skip(1).find(|line| !line.trim().is_empty()).unwrap_or_default()
    }
}

/// Every code, in the order of the table.
pub fn all() -> &'static [Page] {
    PAGES
}

/// The page of a code. The prefix `quorate:` may be left out.
pub fn explain(code: &str) -> Option<Page> {
    let bare = code.trim();
    PAGES.iter().copied().find(|page| page.code == bare || page.code.strip_prefix("quorate:") == Some(bare))
}

/// The code that was most probably meant, if any comes near.
pub fn nearest(code: &str) -> Option<&'static str> {
    let bare = code.trim().trim_start_matches("quorate:");
    PAGES
        .iter()
        .map(|page| {
            let candidate = page.code.trim_start_matches("quorate:");
            (strsim::jaro_winkler(bare, candidate), page.code)
        })
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, code)| code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_says_what_when_and_what_to_do() {
        for page in all() {
            let code = page.code;
            assert_eq!(page.markdown.lines().next(), Some(format!("# {code}").as_str()), "{code}");
            assert!(page.summary().ends_with('.') && page.summary().len() > 20, "{code}: {}", page.summary());
            assert_eq!(page.markdown.matches("```").count() % 2, 0, "{code}: an open fence");
            assert!(page.markdown.contains("\n```"), "{code}: no example");
            assert!(page.markdown.contains("\nWhat to do: "), "{code}: does not say what to do");
        }
    }

    #[test]
    fn codes_are_unique_and_found_with_and_without_prefix() {
        for (index, page) in all().iter().enumerate() {
            assert!(all()[..index].iter().all(|other| other.code != page.code), "{}", page.code);
            assert_eq!(explain(page.code), Some(*page));
            assert_eq!(explain(page.code.trim_start_matches("quorate:")), Some(*page));
        }
        assert_eq!(explain("quorate:nonsense"), None);
    }

    #[test]
    fn a_slip_of_the_finger_is_recognised() {
        assert_eq!(nearest("quorate:council_invlid"), Some("quorate:council_invalid"));
        assert_eq!(nearest("artefact_missing"), Some("quorate:artifact_missing"));
        assert_eq!(nearest("zzz"), None);
    }
}
