//! A process, measured from its start to its end.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::Failure;

/// The first argument of a process that measures itself.
pub(super) const INSIDE: &str = "__inside";

/// What a process took.
#[derive(Debug, Clone, Copy)]
pub(super) struct Took {
    /// From before it was started until it was gone.
    pub(super) wall: Duration,
    /// What it kept processors busy for, which others on the machine change less.
    pub(super) busy: Duration,
    /// The most memory that it had at once, in KiB.
    pub(super) peak_kib: u64,
    /// How it exited; -1 where a signal ended it.
    pub(super) code: i32,
}

/// Runs it to its end; what it says is dropped.
pub(super) fn run(command: &mut Command) -> Result<Took, Failure> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let child = command.spawn()?;
    let (status, usage) = wait(child.id())?;
    let wall = start.elapsed();
    let busy = duration(usage.ru_utime) + duration(usage.ru_stime);
    let peak_kib = u64::try_from(usage.ru_maxrss).unwrap_or(0);
    Ok(Took { wall, busy, peak_kib, code: ExitStatus::from_raw(status).code().unwrap_or(-1) })
}

/// Waits for a child; the standard library's way of it does not tell the memory.
#[expect(
    unsafe_code,
    reason = "only the system knows what a process used, and says it once, when it is gone"
)]
fn wait(pid: u32) -> Result<(i32, libc::rusage), Failure> {
    let mut status = 0;
    // SAFETY: zero is a valid value for each of the plain numbers that `rusage` is made of.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live values of ours that the call fills in, and no other thread waits for the child.
    let waited = unsafe { libc::wait4(pid.cast_signed(), &raw mut status, 0, &raw mut usage) };
    if waited < 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    Ok((status, usage))
}

fn duration(time: libc::timeval) -> Duration {
    let of = |number: i64| u64::try_from(number).unwrap_or(0);
    Duration::from_secs(of(time.tv_sec)) + Duration::from_micros(of(time.tv_usec))
}

/// Runs a command so many times and gives the medians. `prepare` comes before each, unmeasured; an exit with another
/// code than the expected ones is a failure.
pub(super) fn median(
    times: usize,
    expected: &[i32],
    mut prepare: impl FnMut() -> Result<Command, Failure>,
) -> Result<Took, Failure> {
    let mut walls = Vec::with_capacity(times);
    let mut busy = Vec::with_capacity(times);
    let mut peaks = Vec::with_capacity(times);
    for _ in 0..times {
        let mut command = prepare()?;
        let took = run(&mut command)?;
        if !expected.contains(&took.code) {
            return Err(format!("{command:?} exited with {}", took.code).into());
        }
        walls.push(took.wall);
        busy.push(took.busy);
        peaks.push(took.peak_kib);
    }
    Ok(Took { wall: middle(walls), busy: middle(busy), peak_kib: middle(peaks), code: 0 })
}

/// The median.
pub(super) fn middle<T: Ord + Copy>(mut all: Vec<T>) -> T {
    all.sort_unstable();
    all[all.len() / 2]
}

/// A command that runs in a directory.
pub(super) fn command(program: &Path, dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.current_dir(dir).args(arguments).env_remove("QUORATE_LEDGER");
    command
}

/// Measures a time in a process of its own (`inside.rs`).
pub(super) fn measure_inside(what: &str, dir: &Path) -> Result<Duration, Failure> {
    number_inside(what, dir).map(Duration::from_nanos)
}

/// The same of a number, which is in the unit of what is measured.
pub(super) fn number_inside(what: &str, dir: &Path) -> Result<u64, Failure> {
    let output = Command::new(std::env::current_exe()?).args([INSIDE, what]).arg(dir).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}
