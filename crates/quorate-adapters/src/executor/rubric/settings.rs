//! The block of a rubric executor: banned phrases and goals.

use std::path::{Path, PathBuf};

use quorate_kernel::ports::executor::{ConfigError, Settings};
use serde_json::Value;

use super::banned::BannedPhrases;
use quorate_kernel::entropy::sha256_hex;

use super::goals::Goals;
use crate::regular_file;

const KEYS: [&str; 3] = ["banned", "banned_defaults", "goals"];
/// The longest goals document that is read, in bytes.
const GOALS_CAP: u64 = 1024 * 1024;

/// The criteria from the settings.
#[derive(Debug)]
pub(super) struct Rubric {
    pub(super) banned: BannedPhrases,
    pub(super) goals: Option<Goals>,
    /// Path and hash of every file that the settings name.
    pub(super) file_hashes: Vec<(String, String)>,
    /// The goals document, if it is outside of the settings' directory.
    pub(super) outside_path: Option<PathBuf>,
}

///
/// # Errors
/// An unknown key, a value of the wrong kind, a pattern that does not compile, a goals document that cannot be read.
pub(super) fn read(settings: &Settings) -> Result<Rubric, ConfigError> {
    for key in settings.block.keys() {
        if !KEYS.contains(&key.as_str()) {
            return Err(unknown_key(key));
        }
    }
    // A key with a null value counts as absent.
    let value = |key: &str| settings.block.get(key).filter(|value| !value.is_null());
    let defaults = match value("banned_defaults") {
        None => true,
        Some(Value::Bool(on)) => *on,
        Some(_) => {
            return Err(ConfigError::for_key("banned_defaults", "`banned_defaults` must be true or false"));
        }
    };
    let phrases = value("banned").map_or(Ok(Vec::new()), phrases)?;
    let banned = BannedPhrases::new(defaults, &phrases).map_err(|bad| {
        ConfigError::for_key(
            "banned",
            format!("the banned pattern `{}` cannot be used: {}", bad.pattern, bad.reason),
        )
        .with_help("write a phrase as it is, or a regular expression between slashes")
    })?;
    let (mut file_hashes, mut outside_path) = (Vec::new(), None);
    let goals = match value("goals") {
        None => None,
        Some(Value::String(path)) => {
            let text = read_goals_text(&settings.dir, path)?;
            file_hashes.push((path.clone(), sha256_hex(text.as_bytes())));
            outside_path = regular_file::path_outside(&settings.dir, &settings.dir.join(path));
            Some(Goals::read(&text))
        }
        Some(_) => return Err(ConfigError::for_key("goals", "`goals` must be the path of a goals document")),
    };
    Ok(Rubric { banned, goals, file_hashes, outside_path })
}

fn phrases(value: &Value) -> Result<Vec<String>, ConfigError> {
    let refusal = || ConfigError::for_key("banned", "`banned` must be a list of strings");
    let list = value.as_array().ok_or_else(refusal)?;
    list.iter().map(|phrase| phrase.as_str().map(str::to_owned).ok_or_else(refusal)).collect()
}

fn read_goals_text(dir: &Path, path: &str) -> Result<String, ConfigError> {
    regular_file::read_text(&dir.join(path), GOALS_CAP).map_err(|error| {
        let reason = match error.kind() {
            std::io::ErrorKind::FileTooLarge => "it is over 1 MiB".to_owned(),
            _ => error.to_string(),
        };
        ConfigError::for_key("goals", format!("the goals document `{path}` cannot be read: {reason}"))
    })
}

fn unknown_key(key: &str) -> ConfigError {
    let error = ConfigError::for_unknown_key(key, format!("a rubric executor has no key `{key}`"));
    let nearest = KEYS.iter().min_by_key(|known| strsim::damerau_levenshtein(key, known));
    match nearest.filter(|known| strsim::damerau_levenshtein(key, known) <= 3) {
        Some(near) => error.with_help(format!("did you mean `{near}`?")),
        None => error.with_help("its keys are `banned`, `banned_defaults` and `goals`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn settings(block: Value) -> Settings {
        let block = block.as_object().cloned().unwrap_or_default();
        let timeout = std::time::Duration::from_secs(1);
        Settings {
            name: "rubric".into(),
            timeout,
            retries: 0,
            dir: std::env::temp_dir(),
            block,
            servers: Default::default(),
            prices: None,
        }
    }

    fn refused(block: Value) -> (Option<String>, String, String) {
        let error = read(&settings(block)).expect_err("refused");
        (error.key, error.message, error.help.unwrap_or_default())
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_nearest_known() {
        let (key, _, help) = refused(json!({"baned": []}));
        assert_eq!((key.as_deref(), help.as_str()), (Some("baned"), "did you mean `banned`?"));
        assert!(refused(json!({"temperature": 1})).2.contains("its keys are"));
    }

    #[test]
    fn values_of_the_wrong_kind_are_refused_by_key() {
        for (key, value) in [
            ("banned", json!("x")),
            ("banned", json!([1])),
            ("banned_defaults", json!("no")),
            ("goals", json!(1)),
        ] {
            let mut block = serde_json::Map::new();
            block.insert(key.into(), value);
            assert_eq!(refused(Value::Object(block)).0.as_deref(), Some(key));
        }
    }

    #[test]
    fn a_pattern_that_does_not_compile_is_named() {
        let (key, message, _) = refused(json!({"banned": ["fine", "/(/"]}));
        assert_eq!(key.as_deref(), Some("banned"));
        assert!(message.contains("`/(/`"), "{message}");
    }

    #[test]
    fn a_goals_document_is_read_relative_to_the_settings() {
        let dir = tempfile::tempdir().expect("a directory");
        #[expect(clippy::disallowed_methods, reason = "the test needs a goals document")]
        std::fs::write(dir.path().join("GOALS.md"), "# Goals\n\n- Make audits cheap\n").expect("written");
        let mut settings = settings(json!({"goals": "GOALS.md", "banned": null}));
        settings.dir = dir.path().to_owned();
        assert!(read(&settings).expect("read").goals.is_some());
        assert_eq!(refused(json!({"goals": "no-such-goals.md"})).0.as_deref(), Some("goals"));
    }
}
