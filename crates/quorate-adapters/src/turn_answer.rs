//! The key `answer` of a participant's config: in which form its executor answers in a conversation.

use quorate_kernel::ports::executor::ConfigError;
use quorate_protocol::answers::Schema;

const TEXT: &str = "text";
const JSON: &str = "json";

/// Reads it; a text by default.
///
/// # Errors
/// When there is no such form.
pub(crate) fn parse(written: Option<&str>) -> Result<Schema, ConfigError> {
    match written {
        None | Some(TEXT) => Ok(Schema::PlainText),
        Some(JSON) => Ok(Schema::Turn),
        Some(other) => Err(ConfigError::for_key("answer", format!("there is no answer `{other}`")).with_help(
            "`text`: what is printed is what is said; `json`: an object with `content`, `meta` and `stateUpdate`",
        )),
    }
}

/// The name of a form; that of a text for what is not a turn's.
#[cfg(feature = "nats")]
pub(crate) fn name(schema: Schema) -> &'static str {
    match schema {
        Schema::Turn => JSON,
        _ => TEXT,
    }
}
