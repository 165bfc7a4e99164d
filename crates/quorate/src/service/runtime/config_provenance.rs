//! Names the `quorate.toml` that a failed lookup of a runtime has searched: the outermost one counts, and users
//! look into the nearest.

use std::path::Path;

use crate::service::environment::Environment;
use crate::service::error::ServiceError;
use crate::service::paths::{display_path, entry_exists};

/// The name of such a file. Help texts about missing settings name it.
pub(super) const FILE_NAME: &str = "quorate.toml";

/// Adds to each refusal that sends people to a `quorate.toml` which one was `read`, and which one, nearer to the
/// manifest's directory, was not.
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
            "the one that holds is {}, the outermost; {} is nearer and was not read",
            display_path(environment, read),
            display_path(environment, &nearer)
        ),
        None => format!("the one that holds is {}", display_path(environment, read)),
    };
    for refusal in &mut error.report.refusals {
        if let Some(help) = refusal.body.help.as_mut().filter(|help| help.contains(FILE_NAME)) {
            help.push_str("; ");
            help.push_str(&which);
        }
    }
    error
}
