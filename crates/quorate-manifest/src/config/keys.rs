//! `[keys]`: the key that signs records, the keyring, and which records are signed (D3).

use super::{KeySource, Keys};
use crate::assembly::audit::Signing;
use crate::secret_key;
use crate::tree::{Field, Kind};

const HELP: &str = "write the source of the key: {file = \"path\"}, {env = \"VARIABLE\"} or {command = [\"program\", \"argument\"]}";

/// Reads `[keys]`.
pub(super) fn read(field: &Field<'_>) -> Keys {
    let Some(mut fields) = field.fields() else { return Keys::default() };
    let signing = fields.optional("signing").and_then(|field| Some((source(&field)?, field.place())));
    let keyring = fields.optional("keyring").and_then(|f| Some((f.non_blank_text()?.to_owned(), f.place())));
    let sign = fields.optional("sign").and_then(|field| {
        let word = field.non_blank_text()?;
        let found = Signing::ALL.into_iter().find(|signing| signing.as_str() == word);
        if found.is_none() {
            field.invalid_with(
                format!("`{}` is `{word}`; it has to be required, optional or none", field.path()),
                "`sign` is for reviews and runtimes; assemblies have `audit.signing`",
            );
        }
        found
    });
    fields.finish();
    Keys { signing, keyring, sign: sign.unwrap_or(Signing::None) }
}

fn source(field: &Field<'_>) -> Option<KeySource> {
    if let Kind::Str(_) = field.kind() {
        // The text may be the key itself: do not quote it.
        field.invalid_with(format!("`{}` has to be a table, not text", field.path()), HELP);
        return None;
    }
    let mut fields = field.fields()?;
    let file = fields.optional("file").and_then(|field| text(&field));
    let env = fields.optional("env").and_then(|field| {
        let name = text(&field)?;
        if name.starts_with("QUORATE_") && !name.ends_with("_KEY") {
            let message = format!("executors pass the variable `{name}` to members, but it has a secret");
            field.invalid_with(
                message,
                "use the variable QUORATE_SIGNING_KEY, or a name without the prefix QUORATE_",
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
    if secret_key::is_in(text) {
        field.invalid_with(format!("`{}` is a secret key; it does not belong here", field.path()), HELP);
        return None;
    }
    Some(text.to_owned())
}
