//! The key `cli`: the name of a preset, or the path of an AIP-45 manifest (`AGENT-CLI.md`).
//!
//! An AIP-45 manifest describes a CLI that speaks a protocol for a whole session. Quorate starts a CLI for one prompt
//! on stdin, so it reads only `bin`, `bin_args`, `models.default`, and the `bin_args_template` of the option `model`.
//! If `bin` is the program of a preset, the preset replaces `bin_args`. For any other CLI that speaks `acp` or `mcp`,
//! `bin_args` start its server, which takes no plain prompt; the block must set `args`.

#![cfg_attr(test, expect(clippy::disallowed_methods, reason = "the tests write manifests"))]

use std::path::{Path, PathBuf};

use quorate_kernel::ports::executor::ConfigError;
use quorate_manifest::{frontmatter, tree};
use quorate_protocol::Json;
use serde_json::json;

use super::super::presets::{PRESETS, Preset};
use super::{find_preset, preset_names};
use crate::block::quoted_list;
use crate::regular_file;

const KEY: &str = "cli";
/// The longest manifest that is read, in bytes.
const MAX_MANIFEST_BYTES: u64 = 1 << 20;
/// The placeholder for the model's name in a template.
const MODEL_PLACEHOLDER: &str = "{value}";

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cli {
    /// The preset of that name, or of the manifest's `bin`.
    pub(super) preset: Option<&'static str>,
    pub(super) command: Option<String>,
    /// Its arguments for one prompt; `None` if neither preset nor manifest gives them.
    pub(super) args: Option<Vec<String>>,
    /// The model unless the block names another.
    pub(super) model: Option<String>,
    pub(super) path: Option<PathBuf>,
    /// The arguments that set the model, with [`MODEL_PLACEHOLDER`] in the model's place.
    model_args: Option<Vec<String>>,
}

impl Cli {
    /// Reads the key's value; a path is relative to `dir`.
    pub(super) fn resolve(written: &str, dir: &Path) -> Result<Self, ConfigError> {
        let is_path = written.contains('/') || Path::new(written).extension().is_some();
        if !is_path {
            let preset = find_preset(KEY, written)?.name;
            return Ok(Cli {
                preset: Some(preset),
                command: None,
                args: None,
                model: None,
                path: None,
                model_args: None,
            });
        }
        let path = dir.join(written);
        let refuse = |problem: String| {
            ConfigError::for_key(KEY, format!("`{}` {problem}", path.display())).with_help(format!(
                "name the AIP-45 manifest of a CLI by its path, or one of {}",
                quoted_list(&preset_names())
            ))
        };
        let text =
            regular_file::read_text(&path, MAX_MANIFEST_BYTES).map_err(|error| match error.kind() {
                std::io::ErrorKind::FileTooLarge => {
                    refuse(format!("is larger than {} MiB", MAX_MANIFEST_BYTES >> 20))
                }
                _ => refuse(format!("cannot be read: {error}")),
            })?;
        let yaml = frontmatter::split(&text)
            .map_err(|problem| refuse(format!("is no manifest: {}", problem.message)))?;
        let (node, problems) = tree::yaml::parse(&text[yaml.yaml]);
        match (node, problems.into_iter().next()) {
            (Some(node), None) => Cli::from_manifest(&node.to_json(), &path).map_err(refuse),
            (_, problem) => Err(refuse(
                problem.map_or("is empty".to_owned(), |problem| format!("is no YAML: {}", problem.message)),
            )),
        }
    }

    /// Reads the keys of a manifest that apply here.
    fn from_manifest(manifest: &Json, path: &Path) -> Result<Self, String> {
        let text =
            |pointer: &str| manifest.pointer(pointer).and_then(Json::as_str).filter(|text| !text.is_empty());
        let bin = text("/bin").ok_or("has no `bin`, which names the program")?;
        let protocol = text("/protocol").ok_or("has no `protocol`")?;
        let has_command = |preset: &&Preset| bin.rsplit('/').next() == Some(preset.command);
        let preset = PRESETS.iter().find(has_command);
        let model_args = match manifest.pointer("/options") {
            None => None,
            Some(options) => options
                .as_array()
                .into_iter()
                .flatten()
                .find(|option| option.get("id").is_some_and(|id| id == "model"))
                .and_then(|option| option.get("bin_args_template"))
                .map(|template| texts("bin_args_template", Some(template)))
                .transpose()?,
        };
        let bin_args = texts("bin_args", manifest.pointer("/bin_args"))?;
        let takes_prompts = protocol == "proprietary";
        let passes_models = preset.is_some() || model_args.is_some();
        Ok(Cli {
            preset: preset.map(|preset| preset.name),
            command: Some(resolve_bin(bin, path)),
            args: (preset.is_none() && takes_prompts).then_some(bin_args),
            model: text("/models/default").filter(|_| passes_models).map(str::to_owned),
            path: Some(path.to_owned()),
            model_args: model_args.filter(|_| preset.is_none()),
        })
    }

    /// The arguments that set the model; `None` without a template.
    pub(super) fn model_args(&self, model: &str) -> Option<Vec<String>> {
        let template = self.model_args.as_ref()?;
        Some(template.iter().map(|arg| arg.replace(MODEL_PLACEHOLDER, model)).collect())
    }

    /// What answers depend on: everything that was read from the manifest.
    pub(super) fn fingerprint(&self) -> Json {
        json!({"preset": self.preset, "command": self.command, "args": self.args, "model": self.model,
               "model_args": self.model_args})
    }
}

/// A program with a `/` is relative to its manifest.
fn resolve_bin(bin: &str, path: &Path) -> String {
    let folder = path.parent().unwrap_or(Path::new(""));
    if bin.contains('/') { folder.join(bin).to_string_lossy().into_owned() } else { bin.to_owned() }
}

fn texts(key: &str, value: Option<&Json>) -> Result<Vec<String>, String> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(Vec::new()) };
    let wrong = || format!("has a `{key}` that is no list of texts");
    let items = value.as_array().ok_or_else(wrong)?;
    items.iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(frontmatter: &str) -> Result<Cli, ConfigError> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("AGENT-CLI.md"), format!("---\n{frontmatter}\n---\nText\n")).unwrap();
        Cli::resolve("AGENT-CLI.md", dir.path())
    }

    #[test]
    fn a_name_is_a_preset() {
        let cli = Cli::resolve("codex", Path::new("/")).unwrap();
        assert_eq!((cli.preset, cli.command), (Some("codex"), None));
        let error = Cli::resolve("codxe", Path::new("/")).unwrap_err();
        assert_eq!(
            (error.key.as_deref(), error.help.as_deref()),
            (Some("cli"), Some("did you mean `codex`?"))
        );
    }

    #[test]
    fn a_cli_that_a_preset_knows_is_called_as_the_preset_has_it() {
        let cli =
            read("bin: gemini\nbin_args: [--acp]\nprotocol: proprietary\nmodels: {default: m}").unwrap();
        assert_eq!(
            (cli.preset, cli.command.as_deref(), cli.args.as_ref()),
            (Some("gemini"), Some("gemini"), None)
        );
        assert_eq!((cli.model.as_deref(), cli.model_args("m")), (Some("m"), None));
    }

    #[test]
    fn any_other_is_called_with_its_arguments_unless_they_start_a_server() {
        let options =
            "options:\n  - id: model\n    type: string\n    bin_args_template: [\"-m={value}\", run]";
        let cli = read(&format!("bin: talk\nbin_args: [--plain]\nprotocol: proprietary\n{options}")).unwrap();
        assert_eq!(cli.args.as_deref(), Some(&["--plain".to_owned()][..]));
        assert_eq!(cli.model_args("x"), Some(vec!["-m=x".to_owned(), "run".to_owned()]));
        for protocol in ["acp", "mcp"] {
            let cli = read(&format!("bin: hermes\nbin_args: [acp]\nprotocol: {protocol}")).unwrap();
            assert_eq!((cli.args, cli.model), (None, None));
        }
    }

    #[test]
    fn a_program_with_a_slash_is_beside_the_manifest() {
        assert_eq!(resolve_bin("bin/talk", Path::new("/srv/cli/AGENT-CLI.md")), "/srv/cli/bin/talk");
        assert_eq!(resolve_bin("/opt/talk", Path::new("/srv/cli/AGENT-CLI.md")), "/opt/talk");
    }

    #[test]
    fn what_is_no_manifest_says_so() {
        for (frontmatter, says) in [
            ("protocol: acp", "no `bin`"),
            ("bin: x", "no `protocol`"),
            ("bin: x\nprotocol: acp\nbin_args: acp", "no list of texts"),
            ("bin: [", "no YAML"),
        ] {
            let error = read(frontmatter).unwrap_err();
            assert!(error.message.contains(says), "{error:?}");
        }
        assert!(
            Cli::resolve("gone/AGENT-CLI.md", Path::new("/")).unwrap_err().message.contains("cannot be read")
        );
    }
}
