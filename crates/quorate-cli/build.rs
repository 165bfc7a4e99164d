//! What `quorate --version --verbose` says of the build: the target, and the commit that the sources are of; and how the
//! program of development builds is linked.

#![expect(clippy::disallowed_methods, reason = "a build script reads its environment, and asks git")]

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The commit, where the sources have no git beside them.
const COMMIT: &str = "QUORATE_BUILD_COMMIT";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={COMMIT}");
    println!("cargo::rustc-env=QUORATE_TARGET={}", env::var("TARGET").unwrap_or_default());
    println!("cargo::rustc-env=QUORATE_COMMIT={}", commit().unwrap_or_default());
    if is_development() && env::var("TARGET").is_ok_and(|target| target.ends_with("-linux-gnu")) {
        // Tests start the program some ten thousand times: at a fixed address half of each start is saved, which is relocation.
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}

fn is_development() -> bool {
    env::var("PROFILE").is_ok_and(|profile| profile == "debug")
}

/// The commit that a packager names; else that of a published crate; else, in optimised builds, git's.
fn commit() -> Option<String> {
    env::var(COMMIT).ok().filter(|named| is_hash(named)).or_else(published).or_else(checked_out)
}

/// What `cargo publish` wrote into the crate.
fn published() -> Option<String> {
    let text = fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let (_, rest) = text.split_once("\"sha1\"")?;
    rest.split('"').nth(1).filter(|hash| is_hash(hash)).map(str::to_owned)
}

/// `HEAD`, with `-modified` where files differ from it. A development build is not asked: each commit would build it again.
fn checked_out() -> Option<String> {
    if is_development() {
        return None;
    }
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    // The repository may be one that merely contains a copy of the sources.
    git(&["ls-files", "--error-unmatch", "Cargo.toml"])?;
    for file in ["HEAD", "index", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", file])?;
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    let head = git(&["rev-parse", "HEAD"]).filter(|hash| is_hash(hash))?;
    let modified = !git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    Some(if modified { format!("{head}-modified") } else { head })
}

fn is_hash(text: &str) -> bool {
    text.len() >= 7 && text.chars().all(|c| c.is_ascii_hexdigit())
}
