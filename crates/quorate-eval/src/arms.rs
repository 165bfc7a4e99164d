//! What is compared: ways to judge a text, from one call to a whole council.

use std::fmt;
use std::str::FromStr;

/// A way to judge a text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Arm {
    /// One call with one prompt that asks for everything.
    Single(String),
    /// The majority of several such calls.
    Repeat(String, u32),
    /// The first answers of the council, without an adjudicator.
    Vote,
    /// A council: the workspace's, or that of a file.
    Council(Option<String>),
    /// The council, whose members do not read each other before round 2.
    RoundTwoAlone,
    /// Another arm, which is asked only where a screen does not decide alone.
    Cascade(String, Box<Arm>),
    /// A program that is asked as one judge.
    Command(Vec<String>),
}

/// The most calls of [`Arm::Repeat`].
pub const MAX_REPEATS: u32 = 99;

/// Why a text names no arm.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArmError {
    #[error("`{0}` is not an arm: write {FORMS}")]
    Unknown(String),
    #[error("`{0}` lacks {1}: write {2}")]
    Missing(String, &'static str, &'static str),
    #[error(
        "`{0}` repeats an even number of times or more than {MAX_REPEATS} times: name an odd number, so that there is a majority"
    )]
    Repeats(String),
}

/// The forms of arms.
const FORMS: &str = "single:EXECUTOR, repeat:EXECUTOR:K, vote, council, council:FILE, round2-alone, cascade:SCREEN,ARM or command:PROGRAM";

impl FromStr for Arm {
    type Err = ArmError;

    fn from_str(text: &str) -> Result<Arm, ArmError> {
        let missing = |what, form| ArmError::Missing(text.to_owned(), what, form);
        let (name, rest) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let rest = rest.map(str::trim);
        let filled = rest.filter(|rest| !rest.is_empty());
        match (name.trim(), rest) {
            ("vote", None) => Ok(Arm::Vote),
            ("round2-alone", None) => Ok(Arm::RoundTwoAlone),
            ("council", None) => Ok(Arm::Council(None)),
            ("council", Some(_)) => filled
                .map(|file| Arm::Council(Some(file.to_owned())))
                .ok_or(missing("a file", "council:FILE")),
            ("single", _) => filled
                .map(|name| Arm::Single(name.to_owned()))
                .ok_or(missing("an executor", "single:EXECUTOR")),
            ("repeat", _) => {
                // An executor may be an address, which has colons.
                let (executor, times) = filled
                    .and_then(|rest| rest.rsplit_once(':'))
                    .filter(|(executor, _)| !executor.is_empty())
                    .ok_or(missing("an executor or a number", "repeat:EXECUTOR:K"))?;
                let times: u32 = times.parse().map_err(|_| missing("a number", "repeat:EXECUTOR:K"))?;
                match times % 2 == 1 && times <= MAX_REPEATS {
                    true => Ok(Arm::Repeat(executor.to_owned(), times)),
                    false => Err(ArmError::Repeats(text.to_owned())),
                }
            }
            ("cascade", _) => {
                let (screen, arm) = filled
                    .and_then(|rest| rest.split_once(','))
                    .filter(|(screen, _)| !screen.is_empty())
                    .ok_or(missing("a screen or an arm", "cascade:SCREEN,ARM"))?;
                Ok(Arm::Cascade(screen.trim().to_owned(), Box::new(arm.trim().parse()?)))
            }
            ("command", _) => {
                let words: Vec<String> =
                    filled.unwrap_or_default().split_whitespace().map(str::to_owned).collect();
                match words.is_empty() {
                    true => Err(missing("a program", "command:PROGRAM")),
                    false => Ok(Arm::Command(words)),
                }
            }
            _ => Err(ArmError::Unknown(text.to_owned())),
        }
    }
}

impl fmt::Display for Arm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Arm::Single(executor) => write!(f, "single:{executor}"),
            Arm::Repeat(executor, times) => write!(f, "repeat:{executor}:{times}"),
            Arm::Vote => f.write_str("vote"),
            Arm::Council(None) => f.write_str("council"),
            Arm::Council(Some(file)) => write!(f, "council:{file}"),
            Arm::RoundTwoAlone => f.write_str("round2-alone"),
            Arm::Cascade(screen, arm) => write!(f, "cascade:{screen},{arm}"),
            Arm::Command(words) => write!(f, "command:{}", words.join(" ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arm_is_written_as_it_is_read() {
        for text in [
            "single:claude",
            "single:http://localhost:8080/v1",
            "repeat:claude:5",
            "repeat:http://localhost:8080/v1:3",
            "vote",
            "council",
            "council:other/council.yaml",
            "round2-alone",
            "cascade:rubric,council",
            "cascade:tiny,repeat:claude:3",
            "command:./judge.sh --fast",
        ] {
            let arm: Arm = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(arm.to_string(), text);
        }
    }

    #[test]
    fn a_mistake_is_named() {
        for (text, said) in [
            ("", "is not an arm"),
            ("votes", "is not an arm"),
            ("vote:claude", "is not an arm"),
            ("single", "lacks an executor"),
            ("single:", "lacks an executor"),
            ("council:", "lacks a file"),
            ("repeat:claude", "lacks an executor or a number"),
            ("repeat:claude:many", "lacks a number"),
            ("repeat:claude:4", "an even number"),
            ("repeat:claude:0", "an even number"),
            ("repeat:claude:101", "more than 99"),
            ("cascade:rubric", "lacks a screen or an arm"),
            ("cascade:rubric,vot", "`vot` is not an arm"),
            ("command:  ", "lacks a program"),
        ] {
            let error = text.parse::<Arm>().expect_err(text).to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
