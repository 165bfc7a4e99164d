//! What this process does on signals that are no request to end. A parent that ignores SIGCHLD hands that on: the system
//! then drops the exit codes of children, and gives away a child's number the moment it ends, while we still take it for the
//! child's own. SIGXFSZ, which comes with a write beyond `ulimit -f`, ends a process without a word; one that lives on gets an
//! error from the write, and says it.

use std::io;

/// Restores the default, under which a child that ended stays until it is waited for. A program calls it once, before it
/// starts anything.
#[expect(unsafe_code, reason = "the standard library does not reach the disposition of a signal")]
pub(super) fn restore_sigchld() {
    // SAFETY: `SIG_DFL` installs no handler, so that no code of ours runs in a signal's context.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
    }
}

/// Has a write beyond `ulimit -f` fail instead of ending this process. A handler and not `SIG_IGN`: what this process
/// starts does not inherit it.
#[expect(unsafe_code, reason = "the standard library does not reach the disposition of a signal")]
pub(super) fn survive_file_size_limit() {
    extern "C" fn nothing(_: libc::c_int) {}
    if is_ignored(libc::SIGXFSZ).unwrap_or(false) {
        return;
    }
    let handler: extern "C" fn(libc::c_int) = nothing;
    // SAFETY: the handler does nothing, which is safe in a signal's context.
    unsafe {
        libc::signal(libc::SIGXFSZ, handler as libc::sighandler_t);
    }
}

/// Whether the parent of this process had it ignore the end of its terminal, as `nohup` does.
pub(super) fn ignores_hangups() -> bool {
    is_ignored(libc::SIGHUP).unwrap_or(false)
}

fn is_ignored(signal: libc::c_int) -> io::Result<bool> {
    Ok(disposition(signal)?.sa_sigaction == libc::SIG_IGN)
}

/// Checks that children which end stay until they are waited for.
///
/// # Errors
/// When the system drops them: then neither their exit codes nor their numbers can be relied on.
pub(super) fn check_sigchld() -> io::Result<()> {
    let now = disposition(libc::SIGCHLD)?;
    match now.sa_sigaction == libc::SIG_IGN || now.sa_flags & libc::SA_NOCLDWAIT != 0 {
        true => Err(io::Error::other("this process ignores SIGCHLD, so that it cannot wait for a command")),
        false => Ok(()),
    }
}

#[expect(unsafe_code, reason = "the standard library does not reach the disposition of a signal")]
fn disposition(signal: libc::c_int) -> io::Result<libc::sigaction> {
    let mut now = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action the call only writes the present one, for which there is room.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), now.as_mut_ptr()) };
    if asked != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has filled it, and zeroes are a value of it, too.
    Ok(unsafe { now.assume_init() })
}
