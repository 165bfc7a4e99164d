//! Names the `quorate.toml` that a failed lookup has read. Quorate reads the outermost file, and users tend to look into
//! the nearest.

use std::path::Path;

use crate::service::environment::Environment;
use crate::service::error::ServiceError;
use crate::service::paths::{display_path, entry_exists};

/// The name of the file, which help texts about missing settings contain.
pub(super) const FILE_NAME: &str = "quorate.toml";

/// Adds the path of the `quorate.toml` that was `read`, and of a nearer one that was not, to the help of each refusal that
/// mentions the file.
pub(super) fn explain(
    mut error: ServiceError,
    environment: &Environment,
    read: Option<&Path>,
    dir: &Path,
) -> ServiceError {
    let Some(read) = read else { return error };
    let nearer = dir.ancestors().map(|dir| dir.join(FILE_NAME)).find(|path| entry_exists(path));
    let which = match nearer.filter(|path| path != read) {
        Some(nearer) => format!(
            "Quorate reads {}, the outermost one, and not {}",
            display_path(environment, read),
            display_path(environment, &nearer)
        ),
        None => format!("Quorate reads {}", display_path(environment, read)),
    };
    for refusal in &mut error.report.refusals {
        if let Some(help) = refusal.body.help.as_mut().filter(|help| help.contains(FILE_NAME)) {
            help.push_str("; ");
            help.push_str(&which);
        }
    }
    error
}
