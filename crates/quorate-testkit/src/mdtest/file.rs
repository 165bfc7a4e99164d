//! The file of a block, modified by the words after its name.

use super::block::{Block, ParseError};
use super::memory::Content;

#[derive(Debug, Clone)]
pub(super) struct File {
    pub(super) name: String,
    pub(super) content: Content,
    /// Whether the user names it, instead of a directory that contains it.
    pub(super) named: bool,
}

/// The file of a block; `None` for a block that is only an illustration.
pub(super) fn file(block: &Block<'_>, shared: &[File]) -> Result<Option<File>, ParseError> {
    let mut words = block.info.split_whitespace();
    let (Some(_language), Some(name)) = (words.next(), words.next()) else { return Ok(None) };
    let problem = |message: String| ParseError { line: block.line, message };
    let mut text = block.text.clone();
    let mut bytes_of: fn(&str) -> Option<Vec<u8>> = |text| Some(text.as_bytes().to_vec());
    let mut instead = None;
    let mut named = false;
    for word in words {
        match word {
            "above" => text = merge_over(&text, name, shared).map_err(problem)?,
            "crlf" => text = text.replace('\n', "\r\n"),
            "bom" => text.insert(0, '\u{feff}'),
            "unterminated" => text.truncate(text.trim_end_matches(['\r', '\n']).len()),
            "escapes" => bytes_of = unescape,
            "unreadable" => instead = Some(Content::Unreadable),
            "outside" => instead = Some(Content::Outside),
            "folder" => instead = Some(Content::Folder),
            "named" => named = true,
            option => {
                if let Some(base_name) = option.strip_prefix("above=") {
                    text = merge_over(&text, base_name, shared).map_err(problem)?;
                } else {
                    let times = option.strip_prefix("times=").and_then(|count| count.parse().ok());
                    text = text.repeat(times.ok_or_else(|| problem(format!("not understood: {option}")))?);
                }
            }
        }
    }
    let bytes = bytes_of(&text).ok_or_else(|| problem("an invalid escape".to_owned()))?;
    let content = instead.unwrap_or(Content::Bytes(bytes));
    Ok(Some(File { name: name.to_owned(), content, named }))
}

/// A text on top of a shared file; if that has frontmatter, on top of its keys.
fn merge_over(text: &str, base_name: &str, shared: &[File]) -> Result<String, String> {
    let file = shared.iter().find(|file| file.name == base_name);
    let base = match file.map(|file| &file.content) {
        Some(Content::Bytes(bytes)) => std::str::from_utf8(bytes).ok(),
        _ => None,
    }
    .ok_or_else(|| format!("no shared file `{base_name}`"))?;
    Ok(match base.strip_prefix("---\n") {
        Some(keys) => format!("---\n{text}{keys}"),
        None => format!("{text}{base}"),
    })
}

/// Replaces `\xHH`, `\u{H…}` and `\{TEXT*N}` (N times the text); any other backslash is literal.
fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("\\x") {
            bytes.push(u8::from_str_radix(after.get(..2)?, 16).ok()?);
            rest = &after[2..];
        } else if let Some(after) = rest.strip_prefix("\\u{") {
            let (digits, after) = after.split_once('}')?;
            let c = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
            bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            rest = after;
        } else if let Some(after) = rest.strip_prefix("\\{") {
            let (repeated, after) = after.split_once('}')?;
            let (text, times) = repeated.rsplit_once('*')?;
            bytes.extend(text.repeat(times.parse().ok()?).into_bytes());
            rest = after;
        } else {
            bytes.push(b'\\');
            rest = &rest[1..];
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    Some(bytes)
}
