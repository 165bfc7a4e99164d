//! The files of a workspace that need trust, and their states.

use std::path::Path;

use serde_json::json;

use super::Format;
use super::paint::one_line as shown_line;
use quorate::service::environment::Environment;
use quorate::service::paths::display_path;
use quorate::service::trust::decide::{Action, TrustChange};
use quorate::service::trust::requests::Inventory;

/// The files that need trust, with their states.
pub(crate) fn inventory(
    environment: &Environment,
    inventory: &Inventory,
    done: &TrustChange,
    format: Format,
) -> String {
    if format == Format::Json {
        return as_json(inventory, done);
    }
    let root = shown_line(&inventory.root.display().to_string());
    if inventory.files.is_empty() {
        return format!("nothing to trust: no file of {root} names a command, hook, server or address\n");
    }
    let mut out = String::new();
    for need in &inventory.requests {
        for side_effect in &need.acts {
            let line = format!("{}: {}", display_path(environment, &need.file), side_effect.what);
            out.push_str(&format!("{}\n", shown_line(&line)));
        }
    }
    for file in inventory.files.keys() {
        let state = if done.trusted.contains(file) { "trusted    " } else { "not trusted" };
        out.push_str(&format!("{state}  {}\n", shown_line(&display_path(environment, file))));
    }
    out.push_str(&match done.what {
        Action::Inspected => format!("hash {}\n", inventory.hash()),
        Action::Trusted => {
            "these files stay trusted until they change; `quorate trust --revoke` revokes trust\n".into()
        }
        Action::Revoked => format!("no file of {root} is trusted now\n"),
    });
    out
}

fn as_json(inventory: &Inventory, done: &TrustChange) -> String {
    let need = |need: &quorate::service::trust::TrustRequest| {
        let acts: Vec<&str> = need.acts.iter().map(|side_effect| side_effect.what.as_str()).collect();
        json!({"file": need.file, "acts": acts})
    };
    let file = |(path, sha256): (&std::path::PathBuf, &String)| json!({"file": path, "sha256": sha256, "trusted": done.trusted.contains(path)});
    format!(
        "{:#}\n",
        json!({
            "root": inventory.root,
            "hash": inventory.hash(),
            "needs": inventory.requests.iter().map(need).collect::<Vec<_>>(),
            "files": inventory.files.iter().map(file).collect::<Vec<_>>(),
        })
    )
}

/// A directory whose configuration is used, or no longer used, although another user owns it.
pub(crate) fn safe_directory(directory: &Path, is_revoked: bool, format: Format) -> String {
    let directory_text = shown_line(&directory.display().to_string());
    match (format, is_revoked) {
        (Format::Json, false) => format!("{:#}\n", json!({"safe_directory": directory})),
        (Format::Json, true) => format!("{:#}\n", json!({"revoked_safe_directory": directory})),
        (_, false) => {
            format!("configuration in {directory_text} counts from now on, although another user owns it\n")
        }
        (_, true) => format!("configuration in {directory_text} no longer counts if another user owns it\n"),
    }
}
