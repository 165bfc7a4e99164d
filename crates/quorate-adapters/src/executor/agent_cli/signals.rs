//! What this process was told to do with the end of a child. A parent that ignores SIGCHLD hands that on: the system then
//! drops the exit codes of children, and gives away a child's number the moment it ends, while we still take it for the
//! child's own.

use std::io;

/// Restores the default, under which a child that ended stays until it is waited for. A program calls it once, before it
/// starts anything.
#[expect(unsafe_code, reason = "the standard library does not reach the disposition of a signal")]
pub(super) fn restore() {
    // SAFETY: `SIG_DFL` installs no handler, so that no code of ours runs in a signal's context.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
    }
}

/// Checks that children which end stay until they are waited for.
///
/// # Errors
/// When the system drops them: then neither their exit codes nor their numbers can be relied on.
#[expect(unsafe_code, reason = "the standard library does not reach the disposition of a signal")]
pub(super) fn children_are_kept() -> io::Result<()> {
    let mut now = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action the call only writes the present one, for which there is room.
    let asked = unsafe { libc::sigaction(libc::SIGCHLD, std::ptr::null(), now.as_mut_ptr()) };
    if asked != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has filled it, and zeroes are a value of it, too.
    let now = unsafe { now.assume_init() };
    match now.sa_sigaction == libc::SIG_IGN || now.sa_flags & libc::SA_NOCLDWAIT != 0 {
        true => Err(io::Error::other("this process ignores SIGCHLD, so that it cannot wait for a command")),
        false => Ok(()),
    }
}
