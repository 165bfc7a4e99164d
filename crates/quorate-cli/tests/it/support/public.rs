//! The public example runtimes, each in a repository as its paths expect one.

#![allow(unreachable_pub, reason = "each test binary uses it")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::support::{CommandOutput, TestDir, finish};

/// Where a manifest is in its repository.
pub const MANIFEST: &str = ".runtime/swarm/multi-agent.yaml";

fn examples() -> Option<PathBuf> {
    let Some(dir) = std::env::var_os("QUORATE_CONFORMANCE_DIR") else {
        eprintln!("SKIPPED: QUORATE_CONFORMANCE_DIR is not set; the public runtimes are not run");
        return None;
    };
    Some(Path::new(&dir).join("examples/aip-48"))
}

/// A repository with an example where its paths expect it, and a `claude` that repeats its role.
pub fn copied_example(example: &str) -> Option<TestDir> {
    let text = std::fs::read(examples()?.join(example)).expect("an example");
    let place = TestDir::new();
    place.write("repo/.runtime/swarm/multi-agent.yaml", text);
    for role in ["reviewer", "migration-writer"] {
        let text = format!("---\nname: {role}\ntools: Read\n---\nYou are the {role} of this repository.\n");
        place.write(&format!("repo/.claude/agents/{role}.md"), text);
    }
    let claude = "#!/bin/sh\nprompt=$(cat)\nrole=$(printf '%s' \"$prompt\" | grep -o 'You are the [a-z-]* of this' | head -n 1 | cut -d' ' -f3-)\n\
                  printf '{\"type\":\"result\",\"is_error\":false,\"result\":\"Here is %s repository.\"}\\n' \"${role:-nobody of this}\"\n";
    place.write("bin/claude", claude);
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(place.path("bin/claude"), executable).expect("permissions");
    Some(place)
}

/// Runs our binary in a repository, with that `claude` in the path.
pub fn quorate(place: &TestDir, arguments: &[&str]) -> CommandOutput {
    let mut command = place.command_in("repo", arguments);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", place.path("bin").display()));
    finish(command.spawn().expect("the binary runs"))
}
