//! The version of a preset's CLI. The program is run once with `--version`, and again when its file changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::OnceCell;

use super::call::{self, Termination};
use super::clock;
use super::spawn::Launch;

const TIMEOUT: Duration = Duration::from_secs(10);
/// The longest line that counts as a version, in bytes.
const MAX_BYTES: usize = 64;

type Key = (PathBuf, u64, Option<SystemTime>);
type VersionCell = Arc<OnceCell<Option<String>>>;

static VERSIONS: Mutex<BTreeMap<Key, VersionCell>> = Mutex::new(BTreeMap::new());

/// The known version of a program.
pub(super) fn cached(program: &Path) -> Option<String> {
    cell(program)?.get()?.clone()
}

/// Asks for the version unless it is known.
pub(super) async fn probe(launch: Launch) {
    let Some(cell) = cell(&launch.program) else { return };
    let ask = async {
        let launch = Launch { arguments: vec!["--version".into()], ..launch };
        let ended = call::run(Arc::new(launch), Arc::from(""), clock::now() + TIMEOUT).await.ok()?;
        match ended.termination {
            Termination::Exited(status) if status.success() => parse(&String::from_utf8_lossy(&ended.stdout)),
            _ => None,
        }
    };
    cell.get_or_init(|| ask).await;
}

fn cell(program: &Path) -> Option<VersionCell> {
    let file = program.metadata().ok()?;
    let key = (program.to_owned(), file.len(), file.modified().ok());
    let mut known = VERSIONS.lock().unwrap_or_else(PoisonError::into_inner);
    Some(Arc::clone(known.entry(key).or_default()))
}

/// The version in an output: one short line that holds a number with a dot. A program that does not know the flag may
/// print anything.
fn parse(printed: &str) -> Option<String> {
    let line = printed.trim();
    let plain = |character: char| character.is_ascii_graphic() && !"{}[]\"<>".contains(character);
    let numbered = line
        .split(|character: char| !(character.is_ascii_digit() || character == '.'))
        .any(|word| word.contains('.') && word.starts_with(|first: char| first.is_ascii_digit()));
    let fits = line.len() <= MAX_BYTES && line.chars().all(|character| character == ' ' || plain(character));
    (fits && numbered).then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_version_is_one_short_line_with_a_number() {
        for (printed, expected) in [
            ("2.1.197 (Claude Code)\n", Some("2.1.197 (Claude Code)")),
            ("codex-cli 0.169.0", Some("codex-cli 0.169.0")),
            ("0.61.0\n", Some("0.61.0")),
            ("", None),
            ("unknown option", None),
            ("{\"score\": 1.5}", None),
            ("1.0\n2.0", None),
            ("1.0 \u{202e}", None),
        ] {
            assert_eq!(parse(printed).as_deref(), expected, "{printed}");
        }
        assert_eq!(parse(&format!("1.0 {}", "x".repeat(80))), None);
    }
}
