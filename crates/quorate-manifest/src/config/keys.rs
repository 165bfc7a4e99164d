//! `[keys]`: which key signs records, whose signatures count, and what is signed (D3).

use super::{KeySource, Keys};
use crate::assembly::audit::Signing;
use crate::keyring::is_secret;
use crate::tree::{Field, Kind};

const HELP: &str = "write where the key comes from: {file = \"path\"}, {env = \"VARIABLE\"} or {command = [\"program\", \"argument\"]}";

/// Reads `[keys]`.
pub(super) fn read(field: &Field<'_>) -> Keys {
    let Some(mut fields) = field.fields() else { return Keys::default() };
    let signing = fields.optional("signing").and_then(|field| Some((source(&field)?, field.place())));
    let keyring = fields.optional("keyring").and_then(|f| Some((f.non_blank_text()?.to_owned(), f.place())));
    let sign = fields.optional("sign").and_then(|field| {
        let word = field.non_blank_text()?;
        let found = Signing::ALL.into_iter().find(|one| one.as_str() == word);
        if found.is_none() {
            field.invalid_with(
                format!("`{}` is `{word}`; it has to be required, optional or none", field.path()),
                "records of reviews and runtimes are signed as it says, those of assemblies as `audit.signing` does",
            );
        }
        found
    });
    fields.finish();
    Keys { signing, keyring, sign: sign.unwrap_or(Signing::None) }
}

fn source(field: &Field<'_>) -> Option<KeySource> {
    if let Kind::Str(_) = field.kind() {
        // It may be the key itself.
        field.invalid_with(format!("`{}` has to be a table, not text", field.path()), HELP);
        return None;
    }
    let mut fields = field.fields()?;
    let file = fields.optional("file").and_then(|field| text(&field));
    let env = fields.optional("env").and_then(|field| {
        let name = text(&field)?;
        if name.starts_with("QUORATE_") && !name.ends_with("_KEY") {
            let message = format!("members get to see the variable `{name}`, and this one holds a secret");
            field.invalid_with(
                message,
                "call it QUORATE_SIGNING_KEY, or by a name without QUORATE_ before it",
            );
        }
        Some(name)
    });
    let command = fields.optional("command").and_then(|field| {
        let words: Option<Vec<String>> = field.list()?.iter().map(text).collect();
        let words = words?;
        if words.is_empty() {
            field.invalid_with("`command` names no command", HELP);
        }
        (!words.is_empty()).then_some(words)
    });
    fields.finish();
    match (file, env, command) {
        (Some(file), None, None) => Some(KeySource::File(file)),
        (None, Some(env), None) => Some(KeySource::Env(env)),
        (None, None, Some(command)) => Some(KeySource::Command(command)),
        _ => {
            field.invalid_with(format!("`{}` needs one of `file`, `env` and `command`", field.path()), HELP);
            None
        }
    }
}

fn text(field: &Field<'_>) -> Option<String> {
    let text = field.non_blank_text()?;
    if is_secret(text) {
        field.invalid_with(format!("`{}` is a secret key; it does not belong here", field.path()), HELP);
        return None;
    }
    Some(text.to_owned())
}
