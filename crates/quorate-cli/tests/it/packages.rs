//! What `scripts/package` makes of the binary under test, unpacked and used as a person does who gets it.
//!
//! Needs what `scripts/services install packaging` installs, in the folder that `QUORATE_TEST_PACKAGING` names; without it
//! each test prints SKIPPED.
#![cfg(all(feature = "mcp", feature = "serve", feature = "postgres", feature = "http-witness"))]

mod action;
mod files;
mod npm;
mod wheel;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::TestDir;

const PACKAGING: &str = "QUORATE_TEST_PACKAGING";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// The folder with the tools.
fn tools() -> Option<PathBuf> {
    let folder = std::env::var_os(PACKAGING).map(PathBuf::from);
    if folder.is_none() {
        eprintln!("SKIPPED: packages (scripts/services install packaging prints {PACKAGING})");
    }
    folder
}

/// `scripts/package` with the binary under test.
fn script(arguments: &[&str]) -> Command {
    let mut command = Command::new(root().join("scripts/package"));
    command.args(arguments).args(["--binary", env!("CARGO_BIN_EXE_quorate")]);
    command
}

/// Packs into a folder of the place, and returns the packages.
fn pack(place: &TestDir, kind: &str) -> Vec<PathBuf> {
    let out = place.path("packages");
    let said = text(script(&[kind, "--out", out.to_str().unwrap()]).output().unwrap());
    let packages: Vec<PathBuf> = said.lines().map(PathBuf::from).collect();
    assert!(packages.iter().all(|package| package.starts_with(&out) && package.is_file()), "{said}");
    packages
}

/// The stdout of a command that must succeed.
fn text(output: Output) -> String {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    said
}

/// A command in a place, without the variables of these tests.
fn clean(place: &TestDir, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(place.root()).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", place.root());
    command
}

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}
