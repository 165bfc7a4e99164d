//! The CLIs that are known by name: one file each, with how its arguments are built and what its output means.

pub(super) mod claude;
pub(super) mod codex;
pub(super) mod gemini;
mod ollama;

use std::ffi::OsString;

use quorate_protocol::Json;

use super::files::AnswerFiles;
use super::output::Output;

/// All presets, sorted.
pub const PRESETS: &[Preset] = &[claude::PRESET, codex::PRESET, gemini::PRESET, ollama::PRESET];

/// The preset of a participant that says nothing more, as the public kernel has it.
pub const BARE: &str = claude::PRESET.name;

/// How one CLI is called without a person in front of it.
#[derive(Debug)]
pub struct Preset {
    /// The name, for the key `preset`.
    pub name: &'static str,
    /// The program, unless the table names another.
    pub(super) command: &'static str,
    /// What it prints.
    pub(super) output: Output,
    /// Whether it cannot be called without one.
    pub(super) needs_model: bool,
    /// Whether it reads and writes files beside its streams.
    pub(super) wants_files: bool,
    /// Flags that `arguments` sets to values of its own; refused in `args`.
    pub(super) own_flags: &'static [&'static str],
    /// Flags without a value that `arguments` sets anyway; dropped from `args`.
    pub(super) implied: &'static [&'static str],
    /// The arguments of one attempt.
    pub(super) arguments: fn(&Ask<'_>) -> Vec<OsString>,
}

/// What the arguments are made of.
pub(super) struct Ask<'a> {
    /// The model, where one is named.
    pub(super) model: Option<&'a str>,
    /// The arguments that the table adds.
    pub(super) extra: &'a [String],
    /// The JSON Schema of the answer.
    pub(super) schema: &'a Json,
    /// The files, for a preset that wants them.
    pub(super) files: Option<&'a AnswerFiles>,
}

impl Ask<'_> {
    /// The arguments of a command without a preset: those of the table, and the model as most CLIs want it.
    pub(super) fn plain(&self) -> Vec<OsString> {
        Arguments::of(&[]).extra(self.extra).model("--model", self.model).list
    }
}

/// A list of arguments under construction.
struct Arguments {
    list: Vec<OsString>,
}

impl Arguments {
    fn of(first: &[&str]) -> Self {
        Arguments { list: first.iter().map(OsString::from).collect() }
    }

    fn flag(mut self, flag: &str, value: impl Into<OsString>) -> Self {
        self.list.extend([OsString::from(flag), value.into()]);
        self
    }

    fn model(self, flag: &str, model: Option<&str>) -> Self {
        match model {
            Some(model) => self.flag(flag, model),
            None => self,
        }
    }

    fn extra(mut self, extra: &[String]) -> Self {
        self.list.extend(extra.iter().map(OsString::from));
        self
    }
}

/// A count in an envelope.
fn count(value: &Json, key: &str) -> Option<u64> {
    value.get(key).and_then(Json::as_u64)
}

#[cfg(test)]
fn words(arguments: &[OsString]) -> Vec<&str> {
    arguments.iter().map(|argument| argument.to_str().unwrap()).collect()
}

#[cfg(test)]
mod tests {
    use super::{Ask, PRESETS, words};
    use serde_json::json;

    #[test]
    fn presets_are_sorted_and_unique() {
        assert!(PRESETS.windows(2).all(|pair| pair[0].name < pair[1].name));
    }

    #[test]
    fn a_plain_command_gets_its_arguments_and_its_model() {
        let extra = ["--print".to_owned()];
        let ask = Ask { model: Some("m"), extra: &extra, schema: &json!({}), files: None };
        assert_eq!(words(&ask.plain()), ["--print", "--model", "m"]);
    }
}
