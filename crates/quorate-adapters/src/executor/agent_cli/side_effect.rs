//! Describes the start of a command to a user who decides whether to trust the file that names it: the words, the
//! variables, and the files that the words name.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use quorate_kernel::ports::executor::SideEffect;

/// The side effect of starting a command, found below `dir`, in `cwd` with the variables `env`.
///
/// It includes the program, if `command` is a relative path or a path below `dir`, and each argument that is the path of a regular file in `cwd` or below
/// it: changing that file changes what runs. The words are in the file that a user trusts. Files that a program reads or
/// starts of its own accord are not included, nor those that a text for a shell names.
pub(crate) fn of_command(
    command: &str,
    args: &[String],
    env: &[String],
    dir: &Path,
    cwd: &Path,
) -> SideEffect {
    let words = std::iter::once(command).chain(args.iter().map(String::as_str));
    let mut what = format!("run `{}`", words.map(quoted).collect::<Vec<_>>().join(" "));
    if !env.is_empty() {
        what.push_str(&format!(" with {}", env.join(", ")));
    }
    // A checkout cannot change an absolute program outside of it.
    let is_own = |path: &PathBuf| !Path::new(command).is_absolute() || path.starts_with(dir);
    let program = command.contains('/').then(|| dir.join(command)).filter(is_own);
    let climbs = |arg: &&String| Path::new(arg).components().any(|part| part == Component::ParentDir);
    let below = args.iter().filter(|arg| !climbs(arg)).map(|arg| cwd.join(arg));
    let named = below.filter(|path| path.starts_with(cwd));
    let files: BTreeSet<_> = program.into_iter().chain(named).filter(|path| path.is_file()).collect();
    SideEffect { what, files: files.into_iter().collect() }
}

/// A word, quoted where a reader could not see its ends.
fn quoted(word: &str) -> String {
    match word.is_empty() || word.contains(|c: char| c.is_whitespace() || c == '\'') {
        true => format!("{word:?}"),
        false => word.to_owned(),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make files")]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_shown_and_the_files_among_them_named() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        for name in ["judge.sh", "rules.json", "other", "sub/score.py"] {
            std::fs::write(dir.path().join(name), "x").unwrap();
        }
        for (words, shown, files) in [
            (
                "./judge.sh|a b|/etc/passwd|--fast",
                "run `./judge.sh \"a b\" /etc/passwd --fast`",
                &["judge.sh"][..],
            ),
            (
                "python3|sub/score.py|rules.json",
                "run `python3 sub/score.py rules.json`",
                &["rules.json", "score.py"],
            ),
            // A name without a `/` is searched on the PATH.
            ("other", "run `other`", &[]),
            ("./missing|sub", "run `./missing sub`", &[]),
            // Nothing outside: a checkout cannot change it.
            ("/usr/bin/env|sub/../../etc/passwd", "run `/usr/bin/env sub/../../etc/passwd`", &[]),
            // Only the program and whole arguments.
            ("sh|-c|./judge.sh -q", "run `sh -c \"./judge.sh -q\"`", &[]),
            ("python3|-m|judge", "run `python3 -m judge`", &[]),
            ("jq|--rules=rules.json", "run `jq --rules=rules.json`", &[]),
        ] {
            let mut words = words.split('|').map(str::to_owned);
            let (command, args) = (words.next().unwrap(), words.collect::<Vec<_>>());
            let side_effect = of_command(&command, &args, &[], dir.path(), dir.path());
            let names: Vec<_> =
                side_effect.files.iter().filter_map(|file| file.file_name()?.to_str()).collect();
            assert_eq!((side_effect.what.as_str(), names.as_slice()), (shown, files));
        }
        let with = of_command("sh", &[], &["KEY".to_owned()], dir.path(), dir.path());
        assert_eq!(with.what, "run `sh` with KEY");
    }
}
