//! The CLIs that are known by name. One file each builds the arguments, parses the output and sets up a judge.

pub(super) mod claude;
pub(super) mod codex;
pub(super) mod envelope;
pub(super) mod gemini;

use std::ffi::OsString;

use quorate_protocol::{Json, answers};

use super::call::AttemptFiles;
use super::judge::{Judge, JudgeConfig};
use super::tool_grants::ToolGrants;

/// Sorted by name.
pub const PRESETS: &[CliPreset] = &[claude::PRESET, codex::PRESET, gemini::PRESET, PRESET];

/// The preset of a participant without an executor, as in the public kernel.
pub const BARE_PRESET: &str = claude::PRESET.name;

/// How one CLI is called without a user at a terminal. Lists of flags are words with spaces between them.
#[derive(Debug)]
pub struct CliPreset {
    /// The value of the key `preset`.
    pub name: &'static str,
    /// The name of the executor that needs no table. It differs where a service over HTTP has the preset's name; the key
    /// `preset` takes both.
    pub executor: &'static str,
    /// The program, unless the block names another.
    pub(super) command: &'static str,
    /// How to install it, in one line.
    pub(super) install: &'static str,
    pub(super) output: OutputFormat,
    /// Whether it cannot be called without a model.
    pub(super) needs_model: bool,
    /// Whether it reads and writes files in addition to its streams.
    pub(super) uses_files: bool,
    /// Flags that `arguments` sets to values of its own; refused in `args`.
    pub(super) reserved_flags: &'static str,
    /// Flags without a value that `arguments` sets anyway; dropped from `args`.
    pub(super) implied_flags: &'static str,
    /// Flags that `arguments` sets if the manifest restricts tools; then they are refused in `args`.
    pub(super) tool_flags: &'static str,
    /// How it receives the MCP servers that a participant may use.
    pub(super) server_passing: ServerPassing,
    /// The schema in the form that the CLI takes; `None` if it cannot take this one.
    pub(super) schema: fn(answers::Schema, &Json) -> Option<Json>,
    /// The variable that keeps `@path` in a prompt from attaching files.
    pub(super) no_attachments: Option<&'static str>,
    /// How it is called as a judge; `None` for a CLI that has nothing to switch off.
    pub(super) judge: Option<&'static Judge>,
    /// Builds the arguments of one attempt.
    pub(super) arguments: fn(&ArgumentInputs<'_>) -> Vec<OsString>,
}

/// How a CLI receives MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerPassing {
    InFile,
    AsArguments,
    /// The CLI takes none from its caller.
    Unsupported,
}

/// The input of [`CliPreset::arguments`].
pub(super) struct ArgumentInputs<'a> {
    pub(super) model: Option<&'a str>,
    /// The arguments that the table adds.
    pub(super) extra_args: &'a [String],
    /// The JSON Schema of the answer in the CLI's form; `None` for a text answer, or if the CLI takes no schema.
    pub(super) schema: Option<&'a Json>,
    /// For a preset with `uses_files`.
    pub(super) files: Option<&'a AttemptFiles>,
    /// The tools and servers that the participant may use.
    pub(super) tool_grants: &'a ToolGrants<'a>,
    /// Only for a judge; `None` for a participant.
    pub(super) judge_config: Option<&'a JudgeConfig>,
}

impl ArgumentInputs<'_> {
    /// The arguments of a command without a preset: the table's, and the model as most CLIs take it.
    pub(super) fn plain_arguments(&self) -> Vec<OsString> {
        ArgumentBuilder::new(&[]).extra_args(self.extra_args).model("--model", self.model).list
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputFormat {
    Text,
    /// The result envelope of `claude --output-format json`.
    ClaudeJson,
    /// The events of `codex exec --json`.
    CodexJsonl,
    /// The envelope of `gemini --output-format json`.
    GeminiJson,
}

quorate_manifest::words!(OutputFormat {
    Text = "text",
    ClaudeJson = "claude-json",
    CodexJsonl = "codex-jsonl",
    GeminiJson = "gemini-json",
});

/// Why an output holds no reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReplyError {
    /// The command itself reports the reason.
    Reported(String),
    /// It does not have the promised format.
    Malformed,
    /// It has two different answers.
    Ambiguous,
}

#[cfg(test)]
impl<'a> ArgumentInputs<'a> {
    /// For an answer that fits `schema`, without tools or files.
    fn structured(
        model: Option<&'a str>,
        extra: &'a [String],
        schema: &'a Json,
        granted: &'a ToolGrants<'a>,
    ) -> Self {
        ArgumentInputs {
            model,
            extra_args: extra,
            schema: Some(schema),
            files: None,
            tool_grants: granted,
            judge_config: None,
        }
    }
}

/// A list of arguments under construction.
pub(super) struct ArgumentBuilder {
    pub(super) list: Vec<OsString>,
}

impl ArgumentBuilder {
    pub(super) fn new(first: &[&str]) -> Self {
        ArgumentBuilder { list: first.iter().map(OsString::from).collect() }
    }

    pub(super) fn flag(mut self, flag: &str, value: impl Into<OsString>) -> Self {
        self.list.extend([OsString::from(flag), value.into()]);
        self
    }

    /// A flag and its value as one argument, for flags that would take more than one.
    pub(super) fn joined_flag(mut self, flag: &str, value: &str) -> Self {
        self.list.push(format!("{flag}={value}").into());
        self
    }

    fn model(self, flag: &str, model: Option<&str>) -> Self {
        match model {
            Some(model) => self.flag(flag, model),
            None => self,
        }
    }

    fn judge_config(mut self, config: Option<&JudgeConfig>) -> Self {
        self.list.extend(config.into_iter().flat_map(|config| config.arguments.iter().cloned()));
        self
    }

    fn extra_args(mut self, extra: &[String]) -> Self {
        self.list.extend(extra.iter().map(OsString::from));
        self
    }
}

/// The model that answered and the attempt's usage, as far as an output names them.
pub(super) type ModelAndUsage = (Option<String>, quorate_kernel::ports::executor::Usage);
/// For a CLI that takes the schema unchanged, or only knows that the answer must be JSON.
fn unchanged_schema(_: answers::Schema, schema: &Json) -> Option<Json> {
    Some(schema.clone())
}

fn count(value: &Json, key: &str) -> Option<u64> {
    value.get(key).and_then(Json::as_u64)
}

#[cfg(test)]
fn words(arguments: &[OsString]) -> Vec<&str> {
    arguments.iter().map(|argument| argument.to_str().unwrap()).collect()
}

const PRESET: CliPreset = CliPreset {
    name: "ollama",
    executor: "ollama-cli",
    command: "ollama",
    install: "see https://ollama.com/download",
    output: OutputFormat::Text,
    needs_model: true,
    uses_files: false,
    reserved_flags: "--format --model -m",
    implied_flags: "run --nowordwrap --hidethinking",
    tool_flags: "",
    server_passing: ServerPassing::Unsupported,
    schema: unchanged_schema,
    no_attachments: None,
    judge: None,
    arguments,
};

fn arguments(ask: &ArgumentInputs<'_>) -> Vec<OsString> {
    let mut first = vec!["run"];
    first.extend(ask.model);
    if ask.schema.is_some() {
        first.extend(["--format", "json"]);
    }
    first.extend(["--nowordwrap", "--hidethinking"]);
    ArgumentBuilder::new(&first).extra_args(ask.extra_args).list
}

#[cfg(test)]
mod tests {
    use super::{ArgumentInputs, Judge, PRESETS, ToolGrants, words};
    use serde_json::json;

    #[test]
    fn presets_are_sorted_and_unique() {
        assert!(PRESETS.windows(2).all(|pair| pair[0].name < pair[1].name));
    }

    #[test]
    fn a_plain_command_gets_its_arguments_and_its_model() {
        let extra_args = ["--print".to_owned()];
        let (schema, granted) = (json!({}), ToolGrants::default());
        let ask = ArgumentInputs::structured(Some("m"), &extra_args, &schema, &granted);
        assert_eq!(words(&ask.plain_arguments()), ["--print", "--model", "m"]);
    }

    fn judge(name: &str) -> &'static Judge {
        PRESETS.iter().find(|preset| preset.name == name).and_then(|preset| preset.judge).expect("a preset")
    }

    #[test]
    fn a_version_without_a_needed_flag_is_refused_with_those_that_were_tried() {
        // X15
        let judge = judge("claude");
        let all = judge.required_flags.replace(' ', " <x>\n  ");
        let inspected = judge.inspect("claude", "2.1.197 (Claude Code)\n", &all, &[]).unwrap();
        assert!(inspected.tried && inspected.detail.contains("tools of a judge: none"), "{inspected:?}");
        let newer = judge.inspect("claude", "2.9.0 (Claude Code)", &all, &["Read".into()]).unwrap();
        assert!(!newer.tried && newer.detail.contains("tried with `2.1.197`"), "{newer:?}");
        assert!(newer.detail.contains("tools of a judge: Read"), "{newer:?}");
        let without_flag = all.replace("--safe-mode", "--safe-modes");
        let failure = judge.inspect("claude", "1.0.3", &without_flag, &[]).unwrap_err().to_string();
        for part in ["1.0.3 does not know `--safe-mode`", "tried with `2.1.197`"] {
            assert!(failure.contains(part), "{failure}");
        }
        assert!(judge.inspect("claude", "an answer", &all, &[]).is_err());
    }

    #[test]
    fn arguments_that_open_what_a_judge_does_not_have_are_refused() {
        let refuses = |judge: &Judge, args: &[&str]| {
            judge.check_args(&args.iter().map(ToString::to_string).collect::<Vec<_>>()).is_err()
        };
        let [claude, codex, gemini] = ["claude", "codex", "gemini"].map(judge);
        assert!(refuses(claude, &["--mcp-config=x"]) && refuses(claude, &["--allowedTools", "Bash"]));
        assert!(!refuses(claude, &["--effort", "high", "--settings=login.json"]));
        for args in [
            &["-c", "mcp_servers.x.command=\"sh\""][..],
            &["--config=features.shell_tool=true"],
            &["-cweb_search=live"],
            &["-c= tools.view_image=true"],
            &["--enable", "shell_tool"],
        ] {
            assert!(refuses(codex, args), "{args:?}");
        }
        assert!(!refuses(codex, &["-c", "model_reasoning_effort=\"high\""]));
        assert!(refuses(gemini, &["--yolo"]) && !refuses(gemini, &["--debug"]));
    }
}

#[cfg(test)]
mod ollama_tests {
    use super::arguments;
    use crate::executor::agent_cli::presets::{ArgumentInputs, words};
    use crate::executor::agent_cli::tool_grants::ToolGrants;
    use serde_json::json;

    #[test]
    fn the_model_comes_first() {
        let extra = ["--keepalive".to_owned(), "5m".to_owned()];
        let (schema, granted) = (json!({}), ToolGrants::default());
        let ask = ArgumentInputs::structured(Some("llama3.2"), &extra, &schema, &granted);
        let expected =
            ["run", "llama3.2", "--format", "json", "--nowordwrap", "--hidethinking", "--keepalive", "5m"];
        assert_eq!(words(&arguments(&ask)), expected);
        let ask = ArgumentInputs { schema: None, extra_args: &[], ..ask };
        assert_eq!(words(&arguments(&ask)), ["run", "llama3.2", "--nowordwrap", "--hidethinking"]);
    }
}
