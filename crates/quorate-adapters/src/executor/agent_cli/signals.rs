//! How this process handles signals that are no request to end. A parent that ignores SIGCHLD passes that on: the system
//! then drops the exit codes of children and may reuse a child's id as soon as it ends. SIGXFSZ, which follows a write
//! beyond `ulimit -f`, ends a process without a message; if it survives, the write fails with an error.

use std::io;

/// Restores the default, under which an ended child stays until it is waited for. A program calls it once, before it
/// starts a process.
#[expect(unsafe_code, reason = "the standard library does not reach the disposition of a signal")]
pub(super) fn restore_sigchld() {
    // SAFETY: `SIG_DFL` installs no handler, so that no code of this program runs in a signal's context.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
    }
}

/// Makes a write beyond `ulimit -f` fail instead of ending this process. A handler and not `SIG_IGN`, since child
/// processes would inherit the latter.
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

/// Whether the parent of this process made it ignore SIGHUP, as `nohup` does.
pub(super) fn ignores_hangups() -> bool {
    is_ignored(libc::SIGHUP).unwrap_or(false)
}

fn is_ignored(signal: libc::c_int) -> io::Result<bool> {
    Ok(disposition(signal)?.sa_sigaction == libc::SIG_IGN)
}

/// Checks that ended children stay until they are waited for.
///
/// # Errors
/// When the system drops them: then neither their exit codes nor their ids are reliable.
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
    // SAFETY: without a new action the call only writes the present one, into a buffer of its size.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), now.as_mut_ptr()) };
    if asked != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has filled it, and zeroes are a valid value, too.
    Ok(unsafe { now.assume_init() })
}
