//! `quorate --version --verbose`: the details of this build.

use std::ffi::OsString;

/// The features that a build can have or lack, and whether this one has them.
const FEATURES: [(&str, bool); 7] = [
    ("http-witness", cfg!(feature = "http-witness")),
    ("mcp", cfg!(feature = "mcp")),
    ("metrics", cfg!(feature = "metrics")),
    ("nats", cfg!(feature = "nats")),
    ("otel", cfg!(feature = "otel")),
    ("postgres", cfg!(feature = "postgres")),
    ("serve", cfg!(feature = "serve")),
];

/// Whether a command line that asks for the version also asks for its details.
pub(crate) fn is_verbose(words: impl Iterator<Item = OsString>) -> bool {
    words.skip(1).take_while(|word| word != "--").any(|word| {
        let word = word.to_string_lossy();
        let is_short = word.strip_prefix('-').is_some_and(|letters| {
            !letters.is_empty() && letters.chars().all(|letter| matches!(letter, 'v' | 'V'))
        });
        word == "--verbose" || (is_short && word.contains('v'))
    })
}

/// The version and one line for each detail, `<name>: <value>`.
pub(crate) fn details() -> String {
    let features: Vec<&str> = FEATURES.iter().filter(|(_, has)| *has).map(|(name, _)| *name).collect();
    let features = if features.is_empty() { "none".to_owned() } else { features.join(", ") };
    let commit = Some(env!("QUORATE_COMMIT")).filter(|commit| !commit.is_empty()).unwrap_or("unknown");
    let build = if cfg!(debug_assertions) { "development" } else { "optimised" };
    format!(
        "{}\ncommit: {commit}\ntarget: {}\nfeatures: {features}\nbuild: {build}",
        env!("CARGO_PKG_VERSION"),
        env!("QUORATE_TARGET"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_are_asked_for_in_any_place_and_form() {
        let asked = |line: &str| is_verbose(line.split_whitespace().map(OsString::from));
        for line in [
            "quorate --version --verbose",
            "quorate --verbose --version",
            "quorate -V -v",
            "quorate -vV",
            "quorate -Vvv",
            "quorate review --version -v",
        ] {
            assert!(asked(line), "{line}");
        }
        for line in
            ["quorate --version", "quorate -V", "quorate --version -- -v", "-v --version", "quorate -V -"]
        {
            assert!(!asked(line), "{line}");
        }
    }
}
