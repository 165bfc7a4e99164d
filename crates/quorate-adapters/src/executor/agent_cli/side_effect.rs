//! Describes the start of a command to a user who decides whether to trust the file that names it: the words, the
//! directory, the variables, and the workspace files that decide what runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use quorate_kernel::ports::executor::SideEffect;

/// The side effect of starting a command in `dir` with the variables `env`.
///
/// It includes each regular file below `dir` that a word names, as in `python3 score.py`, `python3 -m score`, `awk -fscore.awk`,
/// `--rules=rules.json` or, in a shell script, `cd bin && ./score.sh`: changing that file changes what runs.
pub(crate) fn of_command(command: &str, args: &[String], env: &[String], dir: &Path) -> SideEffect {
    let words = std::iter::once(command).chain(args.iter().map(String::as_str));
    let mut what = format!("run `{}`", words.clone().map(quoted).collect::<Vec<_>>().join(" "));
    if !env.is_empty() {
        what.push_str(&format!(" with {}", env.join(", ")));
    }
    let mut parts = BTreeSet::new();
    words.for_each(|word| collect_parts(word, MAX_NESTING, &mut parts));
    let from = folders(dir, &parts);
    let named = |part: &String| ENDINGS.map(|ending| format!("{part}{ending}"));
    let implied =
        IMPLIED.iter().filter(|(program, _)| parts.contains(*program)).map(|(_, file)| (*file).to_owned());
    let names: Vec<String> = parts.iter().flat_map(named).chain(implied).collect();
    let paths = from.iter().flat_map(|from| names.iter().filter_map(|name| file_below(dir, from, name)));
    let files: BTreeSet<PathBuf> = paths.filter(|path| path.is_file()).collect();
    SideEffect { what, files: files.into_iter().collect() }
}

/// The directories that relative names may start from: a script may change into those that it names, one after another.
fn folders(dir: &Path, parts: &BTreeSet<String>) -> BTreeSet<PathBuf> {
    let mut all = BTreeSet::from([dir.to_owned()]);
    for _ in 0..MAX_NESTING {
        let below = |from: &PathBuf| {
            let named: Vec<_> = parts.iter().filter_map(|part| file_below(dir, from, part)).collect();
            named.into_iter().filter(|path| path.is_dir())
        };
        let further: Vec<PathBuf> = all.iter().flat_map(below).collect();
        let room = MAX_FOLDERS.saturating_sub(all.len());
        all.extend(further.into_iter().take(room));
    }
    all
}

/// What interpreters add to a name: `python3 -m judge` runs `judge.py` or `judge/__main__.py`, `node judge` runs `judge.js`.
const ENDINGS: [&str; 9] =
    ["", ".py", ".js", ".mjs", ".cjs", ".rb", "/__main__.py", "/index.js", "/package.json"];
/// Files that programs read without being told.
const IMPLIED: [(&str, &str); 6] = [
    ("make", "Makefile"),
    ("make", "makefile"),
    ("make", "GNUmakefile"),
    ("just", "justfile"),
    ("npm", "package.json"),
    ("npx", "package.json"),
];

/// How many levels of quoted shell scripts are searched.
const MAX_NESTING: usize = 3;
/// How many folders that a script names are tried as its working directory.
const MAX_FOLDERS: usize = 16;

/// The parts of a word that could name a file: the word, its words if it is a shell script, and the text between any of a
/// shell's special characters.
fn collect_parts(word: &str, nesting: usize, parts: &mut BTreeSet<String>) {
    if word.is_empty() || !parts.insert(word.to_owned()) {
        return;
    }
    parts.extend(word.split_once('=').map(|(_, value)| value.to_owned()));
    // The value of a short option may follow it without a space: `-fjudge.awk`.
    let mut chars = word.chars();
    if chars.next() == Some('-')
        && chars.next().is_some_and(|option| option != '-')
        && !chars.as_str().is_empty()
    {
        parts.insert(chars.as_str().to_owned());
    }
    let signs = |c: char| c.is_whitespace() || ";&|<>()[]{}`$\"'=,:!#\\".contains(c);
    parts.extend(word.split(signs).filter(|part| !part.is_empty()).map(str::to_owned));
    if nesting > 0 {
        shell_words(word).iter().for_each(|inner| collect_parts(inner, nesting - 1, parts));
    }
}

/// The words of a script as a shell splits them, quotes removed.
fn shell_words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None | Some('"'), '\\') => word.extend(chars.next()),
            (None, c) if c.is_whitespace() || ";&|<>()`".contains(c) => words.push(std::mem::take(&mut word)),
            (_, c) => word.push(c),
        }
    }
    words.push(word);
    words
}

/// A word, quoted where a reader could not see its ends.
fn quoted(word: &str) -> String {
    match word.is_empty() || word.contains(|c: char| c.is_whitespace() || c == '\'') {
        true => format!("{word:?}"),
        false => word.to_owned(),
    }
}

/// The path of a word relative to `from`, if it is below `dir`.
fn file_below(dir: &Path, from: &Path, word: &str) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for part in std::path::absolute(from.join(word)).ok()?.components() {
        match part {
            std::path::Component::ParentDir => drop(path.pop()),
            part => path.push(part),
        }
    }
    path.starts_with(std::path::absolute(dir).ok()?).then_some(path)
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
        let side_effect = of_command("./judge.sh", &args, &["KEY".to_owned()], dir.path());
        assert_eq!(
            side_effect.what,
            "run `./judge.sh --rules=rules.json \"a b\" ../etc/passwd --fast` with KEY"
        );
        let names: Vec<_> = side_effect.files.iter().filter_map(|file| file.file_name()?.to_str()).collect();
        assert_eq!(names, ["judge.sh", "rules.json"]);
    }

    #[test]
    fn files_that_an_interpreter_finds_by_a_shorter_name_belong_to_it() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("pkg")).unwrap();
        for name in ["judge.py", "score.awk", "tool.js", "pkg/__main__.py", "Makefile"] {
            std::fs::write(dir.path().join(name), "x").unwrap();
        }
        for (command, files) in [
            ("python3 -m judge", "judge.py"),
            ("python3 pkg", "__main__.py"),
            ("awk -fscore.awk", "score.awk"),
            ("node tool", "tool.js"),
            ("node ./tool", "tool.js"),
            ("make score", "Makefile"),
        ] {
            let mut words = command.split(' ').map(str::to_owned);
            let (program, args) = (words.next().unwrap(), words.collect::<Vec<_>>());
            let side_effect = of_command(&program, &args, &[], dir.path());
            let names: Vec<_> =
                side_effect.files.iter().filter_map(|file| file.file_name()?.to_str()).collect();
            assert_eq!(names, [files], "{command}");
        }
    }

    #[test]
    fn the_files_that_a_text_for_a_shell_names_belong_to_it() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("bin/sub")).unwrap();
        for name in ["x.sh", "bin/y.sh", "bin/sub/z.sh", "a b.sh", "other.sh"] {
            std::fs::write(dir.path().join(name), "x").unwrap();
        }
        for (text, file) in [
            ("exec ./x.sh -q", "x.sh"),
            ("sh<x.sh", "x.sh"),
            ("set -e; . ./x.sh && echo", "x.sh"),
            ("A=$(./x.sh)", "x.sh"),
            ("echo `./x.sh`", "x.sh"),
            ("bash -c 'sh -c \"./x.sh -q\"'", "x.sh"),
            ("FILE=./x.sh sh", "x.sh"),
            ("cd bin && ./y.sh", "y.sh"),
            ("cd bin; sh ../x.sh", "x.sh"),
            ("cd bin && cd sub && ./z.sh", "z.sh"),
            ("cd bin;cd sub;exec ./z.sh", "z.sh"),
            ("sh './a b.sh'", "a b.sh"),
            ("sh ./a\\ b.sh", "a b.sh"),
        ] {
            let side_effect = of_command("sh", &["-c".to_owned(), text.to_owned()], &[], dir.path());
            let names: Vec<_> =
                side_effect.files.iter().filter_map(|file| file.file_name()?.to_str()).collect();
            assert_eq!(names, [file], "{text}");
        }
        assert!(
            of_command("sh", &["-c".to_owned(), "cd ..; ls".to_owned()], &[], dir.path()).files.is_empty()
        );
    }
}
