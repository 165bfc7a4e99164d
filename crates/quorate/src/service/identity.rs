//! The name under which a person's decision is recorded: the given one, else Git's `user.name` and `user.email`.
//!
//! A checkout's Git configuration is untrusted. `git config` runs no command that it names, its includes are not read, and
//! its values are cleaned.

use std::path::Path;
use std::time::Duration;

use quorate_adapters::process;
use quorate_diagnostics::invisible::{first_invisible, is_invisible};
use quorate_diagnostics::{Body, codes};

use super::environment::Environment;
use super::error::{ExitClass, ServiceError};

/// The maximum length of a name, in characters.
const MAX_NAME_CHARS: usize = 200;

/// The deadline of a Git call.
const GIT_TIMEOUT: Duration = Duration::from_secs(5);

/// Git's scopes, nearest first. The user's own configuration may include files, for example for identities by directory.
const SCOPES: [[&str; 2]; 3] =
    [["--local", "--no-includes"], ["--global", "--includes"], ["--system", "--includes"]];

/// The decider's name: `by`, else the Git identity.
///
/// # Errors
/// If there is neither, or `by` is not a valid name.
#[crate::boxed]
pub async fn decider(environment: &Environment, by: Option<&str>) -> Result<String, ServiceError> {
    let refused = |message: &str, help: &str| {
        Err(ServiceError::new(ExitClass::Usage, codes::USAGE, Body::new(message).help(help)))
    };
    match by.map(str::trim) {
        Some("") => {
            refused("`--by` is empty", "pass the name of the person who decides, for example `--by \"Ada <ada@example.org>\"`")
        }
        Some(by)
            if by.chars().count() > MAX_NAME_CHARS
                || by.chars().any(char::is_control)
                || first_invisible(by).is_some() =>
        {
            refused(
                &format!(
                    "`--by` is not a name: it has line breaks, invisible characters, or more than {MAX_NAME_CHARS}"
                ),
                "pass the name of the person who decides on one line",
            )
        }
        Some(by) => Ok(by.to_owned()),
        None => match git_identity(&environment.directory).await {
            Some(name) => Ok(name),
            None => refused(
                "cannot record a decision without a name: `--by` is missing, and Git has no `user.name` here",
                "pass `--by NAME`, or set it once with `git config --global user.name NAME`",
            ),
        },
    }
}

/// `user.name <user.email>` as Git knows it in a directory.
async fn git_identity(directory: &Path) -> Option<String> {
    let (mut name, mut email) = (None, None);
    for scope in SCOPES {
        let command =
            ["git", "config", scope[0], scope[1], "--null", "--get-regexp", "^user\\.(name|email)$"];
        let command: Vec<String> = command.map(str::to_owned).into();
        // No repository, no such file, or no Git: try the next scope.
        let Ok(said) = process::run_command(&command, directory, String::new(), GIT_TIMEOUT).await else {
            continue;
        };
        let last = |key: &str| {
            said.split('\0')
                .rev()
                .find_map(|entry| entry.strip_prefix(key)?.strip_prefix('\n'))
                .and_then(sanitize)
        };
        name = name.or_else(|| last("user.name"));
        email = email.or_else(|| last("user.email"));
    }
    let name = name?;
    Some(match email {
        Some(email) => format!("{name} <{email}>"),
        None => name,
    })
}

/// A configuration value as one line without invisible characters or angle brackets, which delimit the address; `None` if
/// nothing remains.
fn sanitize(value: &str) -> Option<String> {
    let visible: String = value.chars().filter(|c| !is_invisible(*c) && !matches!(c, '<' | '>')).collect();
    let words: Vec<&str> = visible.split_whitespace().collect();
    let line: String = words.join(" ").chars().take(MAX_NAME_CHARS / 2).collect();
    (!line.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_a_checkout_becomes_one_line_that_is_seen() {
        assert_eq!(sanitize("Ada\u{200b} \u{1b}[2JLovelace\n<x>"), Some("Ada [2JLovelace x".to_owned()));
        assert_eq!(sanitize("\u{e0041}\u{202e} \t"), None);
        assert_eq!(sanitize(&"a".repeat(1000)).map(|line| line.len()), Some(MAX_NAME_CHARS / 2));
    }
}
