//! Work in a child process before it becomes the program.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Runs `step` in the child, between fork and exec.
#[expect(unsafe_code, reason = "the standard library has no safe way to act between fork and exec")]
pub(super) fn in_child(command: &mut Command, step: impl FnMut() -> io::Result<()> + Send + Sync + 'static) {
    // SAFETY: the closures that are passed here (by `Launch::spawn`, `bind_to_parent` and the guard's start) only make
    // system calls: they neither allocate nor take a lock, which a child of a process with threads must not do before exec.
    unsafe {
        command.pre_exec(step);
    }
}
