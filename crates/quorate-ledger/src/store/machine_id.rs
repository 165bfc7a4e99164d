//! Which directory of which machine this is.

use std::path::Path;

use quorate_kernel::entropy;

#[cfg(target_os = "linux")]
use crate::files;

/// An identifier of a directory on this machine since its start: processes with the same one also have the
/// same locks. Without any such identifier it is different each time.
pub(super) fn machine_id(dir: &Path) -> String {
    stable_machine_id(dir).unwrap_or_else(|| entropy::run_id().to_string())
}

#[cfg(target_os = "linux")]
fn stable_machine_id(dir: &Path) -> Option<String> {
    use std::io::Read as _;
    use std::os::unix::fs::MetadataExt as _;
    let mut boot = String::new();
    files::open(Path::new("/proc/sys/kernel/random/boot_id")).ok()?.read_to_string(&mut boot).ok()?;
    let there = files::open(dir).ok()?.metadata().ok()?;
    Some(entropy::sha256_hex(format!("{boot}{}/{}", there.dev(), there.ino()).as_bytes()))
}

#[cfg(not(target_os = "linux"))]
fn stable_machine_id(_: &Path) -> Option<String> {
    None
}
