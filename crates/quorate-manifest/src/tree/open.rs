//! Opens a file as a tree, with a diagnostic for each possible failure. Decodes bytes to text: UTF-8, at most 1 MiB, without a
//! byte order mark.

use std::path::Path;
use std::sync::Arc;

use quorate_diagnostics::codes::{self, RefusalCode};
use quorate_diagnostics::{Body, Place, Report};
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use super::reader::{Field, SourceFile};
use super::{MAX_BYTES, Node, Problem, toml, yaml};
use crate::Loaded;
use crate::json_schema::CompiledSchema;
use crate::workspace::{Source, SourceError};

/// The syntax of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Yaml,
    Toml,
}

/// A parsed file and its diagnostics.
#[derive(Debug)]
pub struct ParsedFile {
    /// The text with its diagnostics.
    pub source_file: SourceFile,
    /// `None` if the text cannot be parsed; then there is a refusal.
    pub root: Option<Node>,
    /// SHA-256 of the bytes, in hexadecimal.
    pub sha256: String,
}

impl ParsedFile {
    /// Validates and reads the file, as [`SourceFile::read`].
    pub fn read<T: DeserializeOwned>(
        &self,
        schema: &CompiledSchema,
        check: impl FnOnce(&Field<'_>),
    ) -> Option<T> {
        self.source_file.read(self.root.as_ref()?, schema, check)
    }
}

/// Loads the value that `read` makes of a file's fields; it reports what is wrong with them.
pub(crate) fn load<T>(
    source: &dyn Source,
    (path, shown): (&Path, &str),
    format: Format,
    invalid: RefusalCode,
    read: impl FnOnce(&ParsedFile) -> Option<T>,
) -> Loaded<T> {
    let opened = match open(source, path, shown, format, invalid) {
        Ok(opened) => opened,
        Err(report) => return Loaded { value: None, report },
    };
    let value = read(&opened);
    let report = opened.source_file.into_report();
    debug_assert!(value.is_some() || report.has_refusals(), "no value and no refusal");
    Loaded { value: value.filter(|_| !report.has_refusals()), report }
}

/// Reads and parses a file. `invalid` is the code of its schema errors.
///
/// # Errors
/// A report with the reason why the file cannot be read.
pub fn open(
    source: &dyn Source,
    path: &Path,
    shown: &str,
    format: Format,
    invalid: RefusalCode,
) -> Result<ParsedFile, Report> {
    let bytes = source.read(path).map_err(|error| report_unreadable(shown, &error))?;
    let sha256 = sha256_hex(&bytes);
    let (text, decode_error) = decode_as_far_as_possible(bytes);
    let document = SourceFile::new(shown, Arc::clone(&text), invalid);
    let (root, problems) = match (decode_error, format) {
        (Some(problem), _) => (None, vec![problem]),
        (None, Format::Yaml) => yaml::parse(&text),
        (None, Format::Toml) => toml::parse(&text),
    };
    problems.into_iter().for_each(|problem| document.refuse_syntax(problem));
    Ok(ParsedFile { source_file: document, root, sha256 })
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("it has {0} bytes, more than the maximum of {MAX_BYTES}")]
    TooLarge(usize),
    #[error("it is not UTF-8 text (byte {at} does not fit)")]
    NotUtf8 {
        /// The offset of the first invalid byte, and of its replacement character in `text`.
        at: usize,
        /// The text with U+FFFD for invalid bytes.
        text: String,
    },
}

/// # Errors
/// The bytes are not UTF-8, or there are more than [`MAX_BYTES`].
pub fn decode(bytes: Vec<u8>) -> Result<String, DecodeError> {
    if bytes.len() > MAX_BYTES {
        return Err(DecodeError::TooLarge(bytes.len()));
    }
    let bytes = match bytes.strip_prefix(b"\xef\xbb\xbf") {
        Some(rest) => rest.to_vec(),
        None => bytes,
    };
    String::from_utf8(bytes).map_err(|error| DecodeError::NotUtf8 {
        at: error.utf8_error().valid_up_to(),
        text: String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

/// The text of bytes, with U+FFFD for invalid ones, and what is wrong with them.
pub(crate) fn decode_as_far_as_possible(bytes: Vec<u8>) -> (Arc<str>, Option<Problem>) {
    match decode(bytes) {
        Ok(text) => (text.into(), None),
        Err(error) => {
            let message = format!("the file cannot be read: {error}");
            let (at, text) = match error {
                DecodeError::NotUtf8 { at, text } => (at, text),
                DecodeError::TooLarge(_) => (0, String::new()),
            };
            (text.into(), Some(Problem::new(at..at, message)))
        }
    }
}

/// SHA-256 in hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    const FIGURES: &[u8; 16] = b"0123456789abcdef";
    let figure = |half: u8| char::from(FIGURES[usize::from(half)]);
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        text.extend([figure(byte >> 4), figure(byte & 15)]);
    }
    text
}

fn report_unreadable(shown: &str, error: &SourceError) -> Report {
    let mut report = Report::new();
    let place = Place { file: shown.into(), span: 0..0, path: String::new() };
    match error {
        SourceError::Missing => {
            let body = Body::new(format!("the file `{shown}` does not exist")).at(place);
            report.refuse(
                codes::CONFIG_MISSING,
                body.help("check the path, or leave it out to use the defaults"),
            );
        }
        SourceError::Unreadable(_) => {
            let body = Body::new(format!("`{shown}` cannot be read: {error}")).at(place);
            report.refuse(codes::CONFIG_UNREADABLE, body);
        }
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_utf8_of_bounded_length() {
        assert_eq!(decode(b"\xef\xbb\xbfa".to_vec()), Ok("a".to_owned()));
        assert_eq!(decode(Vec::new()), Ok(String::new()));
        assert_eq!(
            decode(vec![b'a', 0xff]),
            Err(DecodeError::NotUtf8 { at: 1, text: "a\u{fffd}".to_owned() })
        );
        assert_eq!(decode(vec![b'a'; MAX_BYTES + 1]), Err(DecodeError::TooLarge(MAX_BYTES + 1)));
        assert!(decode(vec![b'a'; MAX_BYTES]).is_ok());
    }
}
