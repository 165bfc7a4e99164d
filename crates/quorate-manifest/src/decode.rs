//! Decodes bytes to text: UTF-8, at most 1 MiB; drops a byte order mark.

use crate::tree::MAX_BYTES;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
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
pub fn decode(bytes: Vec<u8>) -> Result<String, Error> {
    if bytes.len() > MAX_BYTES {
        return Err(Error::TooLarge(bytes.len()));
    }
    let bytes = match bytes.strip_prefix(b"\xef\xbb\xbf") {
        Some(rest) => rest.to_vec(),
        None => bytes,
    };
    String::from_utf8(bytes).map_err(|error| Error::NotUtf8 {
        at: error.utf8_error().valid_up_to(),
        text: String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_utf8_of_bounded_length() {
        assert_eq!(decode(b"\xef\xbb\xbfa".to_vec()), Ok("a".to_owned()));
        assert_eq!(decode(Vec::new()), Ok(String::new()));
        assert_eq!(decode(vec![b'a', 0xff]), Err(Error::NotUtf8 { at: 1, text: "a\u{fffd}".to_owned() }));
        assert_eq!(decode(vec![b'a'; MAX_BYTES + 1]), Err(Error::TooLarge(MAX_BYTES + 1)));
        assert!(decode(vec![b'a'; MAX_BYTES]).is_ok());
    }
}
