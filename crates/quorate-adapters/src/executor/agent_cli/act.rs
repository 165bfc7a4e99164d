//! What starting a command means for a person who decides whether to trust the file that names it: the words that are
//! started, where, with which variables, and the files of the workspace that decide what happens.

use std::path::{Path, PathBuf};

use quorate_kernel::ports::executor::SideEffect;

/// The act of starting a command in `dir` with the variables `env`.
///
/// A word that names a regular file below `dir` belongs to it, as in `python3 score.py` or `--rules=rules.json`: who can
/// change that file can change what is run.
pub(crate) fn start(command: &str, args: &[String], env: &[String], dir: &Path) -> SideEffect {
    let words = std::iter::once(command).chain(args.iter().map(String::as_str));
    let mut what = format!("run `{}`", words.clone().map(quoted).collect::<Vec<_>>().join(" "));
    if !env.is_empty() {
        what.push_str(&format!(" with {}", env.join(", ")));
    }
    let values = words.flat_map(|word| [Some(word), word.split_once('=').map(|(_, value)| value)]).flatten();
    let mut files: Vec<PathBuf> = values.filter_map(|word| below(dir, word)).collect();
    files.sort();
    files.dedup();
    SideEffect { what, files }
}

/// A word as it can be told from its neighbours.
fn quoted(word: &str) -> String {
    match word.is_empty() || word.contains(|c: char| c.is_whitespace() || c == '\'') {
        true => format!("{word:?}"),
        false => word.to_owned(),
    }
}

/// The regular file below `dir` that a word names.
fn below(dir: &Path, word: &str) -> Option<PathBuf> {
    let path = std::path::absolute(dir.join(word)).ok()?;
    let lexically = path.components().all(|part| part != std::path::Component::ParentDir);
    let dir = std::path::absolute(dir).ok()?;
    (lexically && path.starts_with(&dir) && path.is_file()).then_some(path)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make files")]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_shown_and_the_files_among_them_named() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["judge.sh", "rules.json", "other"] {
            std::fs::write(dir.path().join(name), "x").unwrap();
        }
        let args = ["--rules=rules.json", "a b", "../etc/passwd", "--fast"].map(str::to_owned);
        let act = start("./judge.sh", &args, &["KEY".to_owned()], dir.path());
        assert_eq!(act.what, "run `./judge.sh --rules=rules.json \"a b\" ../etc/passwd --fast` with KEY");
        let names: Vec<_> = act.files.iter().filter_map(|file| file.file_name()?.to_str()).collect();
        assert_eq!(names, ["judge.sh", "rules.json"]);
    }
}
