//! Looks answers up in one file or in a folder: by the invocation's id (`r1/skeptic`), then its step (`r1`; in a folder
//! `r1/_`), then its member (`skeptic`), then `_`.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

use quorate_kernel::ports::executor::{ConfigError, Failure, Invocation};
use quorate_protocol::Json;

use super::answer::{Answer, is_instruction};
use crate::regular_file;

const EXTENSIONS: [&str; 3] = ["json", "txt", "md"];

/// The longest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 20;

pub(super) enum Source {
    /// Read once, by key; a list holds one answer for each attempt.
    File { path: PathBuf, answers: BTreeMap<String, Vec<Answer>> },
    /// Read at each invocation.
    Folder(PathBuf),
}

impl Source {
    /// Opens the path of the key `path`.
    pub(super) fn open(path: &Path) -> Result<Self, ConfigError> {
        let refuse = |problem: String| ConfigError::for_key("path", problem);
        let meta = path
            .metadata()
            .map_err(|error| refuse(format!("`{}` cannot be read: {error}", path.display())))?;
        if meta.is_dir() {
            return Ok(Source::Folder(path.to_owned()));
        }
        let text = regular_file::read_text(path, MAX_FILE_BYTES)
            .map_err(|error| refuse(format!("`{}` cannot be read: {error}", path.display())))?;
        let answers =
            read_file(&text).map_err(|problem| refuse(format!("`{}`: {problem}", path.display())))?;
        Ok(Source::File { path: path.to_owned(), answers })
    }

    pub(super) fn answer(&self, invocation: &Invocation) -> Result<Answer, Failure> {
        match self {
            Source::File { path, answers } => {
                let keys = [&*invocation.id, &invocation.step, &invocation.member, "_"];
                let found = keys.iter().find_map(|key| answers.get(*key));
                let attempt = invocation.attempt.saturating_sub(1) as usize;
                found
                    .and_then(|answers| answers.get(attempt).or(answers.last()))
                    .cloned()
                    .ok_or_else(|| missing(path, &keys.map(str::to_owned)))
            }
            Source::Folder(folder) => in_folder(folder, invocation),
        }
    }
}

fn read_file(text: &str) -> Result<BTreeMap<String, Vec<Answer>>, String> {
    let json: Json = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let Json::Object(entries) = json else { return Err("it must hold one JSON object".into()) };
    entries
        .into_iter()
        .map(|(key, value)| {
            let read = match &value {
                Json::Array(attempts) if !attempts.is_empty() => attempts.iter().map(Answer::read).collect(),
                single => Answer::read(single).map(|answer| vec![answer]),
            };
            read.map(|answers| (key.clone(), answers)).map_err(|problem| format!("`{key}`: {problem}"))
        })
        .collect()
}

fn in_folder(folder: &Path, invocation: &Invocation) -> Result<Answer, Failure> {
    let names = [
        invocation.id.to_string(),
        format!("{}/_", invocation.step),
        invocation.member.to_string(),
        "_".into(),
    ];
    let inside =
        |name: &&String| Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    for name in names.iter().filter(inside) {
        for stem in [format!("{name}.{}", invocation.attempt), name.clone()] {
            for extension in EXTENSIONS {
                let path = folder.join(format!("{stem}.{extension}"));
                if path.exists() && regular_file::path_outside(folder, &path).is_some() {
                    let path = path.display();
                    return Err(Failure::failed(format!("`{path}` leads out of its folder by a link")));
                }
                match regular_file::read_text(&path, MAX_FILE_BYTES) {
                    Ok(text) => return read_one(&path, extension, text),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => {
                        return Err(Failure::failed(format!("`{}` cannot be read: {error}", path.display())));
                    }
                }
            }
        }
    }
    Err(missing(folder, &names))
}

/// Returns a file verbatim, so that broken JSON can be scripted too; only an instruction is interpreted.
fn read_one(path: &Path, extension: &str, text: String) -> Result<Answer, Failure> {
    if extension == "json"
        && let Ok(value) = serde_json::from_str::<Json>(&text)
        && value.as_object().is_some_and(is_instruction)
    {
        return Answer::read(&value)
            .map_err(|problem| Failure::failed(format!("`{}`: {problem}", path.display())));
    }
    Ok(if extension == "json" { Answer::verbatim(text) } else { Answer::plain_text(text) })
}

fn missing(place: &Path, names: &[String]) -> Failure {
    let names = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    Failure::failed(format!("`{}` has no answer under any of {names}", place.display()))
}
