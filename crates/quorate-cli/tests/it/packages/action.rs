//! The action for GitHub that `scripts/package action` makes: its steps run as a runner runs them, with the archive from a server on
//! loopback.

use std::io::{BufReader, Write as _};
use std::net::TcpListener;
use std::process::Output;

use crate::support::REVISED;
use crate::support::http::read_request;

use super::*;

/// Serves a file, whatever is asked for.
fn serve(file: PathBuf) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            if read_request(&mut reader).is_some() {
                let bytes = std::fs::read(&file).unwrap();
                let head = format!(
                    "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                    bytes.len()
                );
                let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&bytes));
            }
        }
    });
    port
}

/// A step, with what a runner sets and the inputs that are given.
fn step(place: &TestDir, script: &str, path: &str, inputs: &[(&str, &str)]) -> Output {
    let action = place.path(&format!("packages/quorate-action-{}", env!("CARGO_PKG_VERSION")));
    let text = std::fs::read_to_string(action.join("action.yml")).unwrap();
    assert!(text.contains(&format!("'\"$GITHUB_ACTION_PATH/{script}\"'")), "{text}");
    let mut command = clean(place, action.join(script));
    command
        .current_dir(place.path("checkout"))
        .env("RUNNER_OS", "Linux")
        .env("RUNNER_TEMP", place.path("temp"));
    command.env("RUNNER_ARCH", if cfg!(target_arch = "aarch64") { "ARM64" } else { "X64" });
    command.env("GITHUB_PATH", place.path("path")).env("GITHUB_ACTIONS", "true");
    command.env("GITHUB_STEP_SUMMARY", place.path("summary.md")).env("GITHUB_TOKEN", "secret");
    if !path.is_empty() {
        command.env("PATH", format!("{path}:{}", std::env::var("PATH").unwrap()));
    }
    // Each input reaches the script by the variable that action.yml names.
    for line in text.lines().filter_map(|line| line.trim().strip_prefix("QUORATE_INPUT_")) {
        let (name, value) = line.split_once(": ").unwrap();
        let input = value.trim_start_matches("${{ inputs.").trim_end_matches(" }}");
        let given = inputs.iter().find(|(name, _)| *name == input).map_or("", |(_, value)| value);
        command.env(format!("QUORATE_INPUT_{name}"), given);
    }
    command.output().unwrap()
}

pub(super) fn installs_and_reviews(place: &TestDir, archive: &Path) {
    let port = serve(archive.to_owned());
    let out = place.path("packages");
    let url = format!("http://127.0.0.1:{port}/download");
    let mut command = Command::new(root().join("scripts/package"));
    text(command.args(["action", &url, "--out"]).arg(&out).output().unwrap());
    let folder = format!("packages/quorate-action-{}", env!("CARGO_PKG_VERSION"));
    let sums = place.read(&format!("{folder}/checksums.txt"));
    assert_eq!(sums.lines().count(), 1, "{sums}");
    assert!(sums.contains(&url) && sums.len() > 64, "{sums}");
    for folder in ["temp", "checkout/drafts"] {
        std::fs::create_dir_all(place.path(folder)).unwrap();
    }
    text(step(place, "install.sh", "", &[]));
    let path = place.read("path").trim().to_owned();
    assert!(Path::new(&path).join("quorate").is_file(), "{path}");

    let git = |arguments: &[&str]| {
        let mut command = clean(place, "git");
        command.current_dir(place.path("checkout")).args([
            "-c",
            "user.name=ada",
            "-c",
            "user.email=ada@example.org",
        ]);
        text(command.args(arguments).output().unwrap())
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["commit", "-q", "--allow-empty", "-m", "base"]);
    git(&["checkout", "-q", "-b", "change"]);
    place.write("checkout/drafts/a b.md", REVISED);
    place.write("checkout/notes.txt", "Too short to judge.\n");
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "change"]);
    git(&["checkout", "-q", "main"]);
    git(&["merge", "-q", "--no-ff", "-m", "merge", "change"]);
    let paths = "  drafts/**/*.md \n\n  \nposts/$(touch ran)/*.md\n";
    let reviewed = step(place, "review.sh", &path, &[("paths", paths)]);
    let said = String::from_utf8_lossy(&reviewed.stdout).into_owned();
    assert_eq!(reviewed.status.code(), Some(1), "{reviewed:?}");
    assert!(said.contains("\n::warning file=drafts/a b.md,title=council%3A REVISE"), "{said}");
    assert!(said.contains("no file of the repository matches `posts/$(touch ran)/*.md`"), "{said}");
    assert!(place.path("temp/quorate-reports/reviews.json").is_file());
    assert!(place.read("summary.md").contains("| REVISE | `drafts/a b.md` |"));
    let milder = step(place, "review.sh", &path, &[("paths", paths), ("fail-on", "hold")]);
    assert_eq!(milder.status.code(), Some(0), "{milder:?}");
    // A comment is for another event.
    let comment = step(place, "review.sh", &path, &[("paths", paths), ("comment", "true")]);
    assert!(String::from_utf8_lossy(&comment.stdout).contains("github_unusable"), "{comment:?}");
    let none = step(place, "review.sh", &path, &[("paths", "\n")]);
    assert_eq!(none.status.code(), Some(64), "{none:?}");
    assert!(!place.path("checkout/ran").exists());

    // Another archive at the same address.
    let forged = sums.replacen(|c: char| c.is_ascii_hexdigit(), "x", 1);
    place.write(&format!("{folder}/checksums.txt"), forged);
    let refused = step(place, "install.sh", "", &[]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stdout).contains("is not the archive"), "{refused:?}");
    assert_eq!(place.read("path").lines().count(), 1);
}
