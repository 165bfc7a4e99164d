//! Parses a document: headings, files, expectations.

use quorate_manifest::loader::Refs;

use super::Expectation;
use super::ResolvedExpectation;
use super::{Content, Memory};

#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) tests: Vec<Test>,
}

/// A heading with its blocks.
#[derive(Debug, Clone)]
pub(crate) struct Test {
    pub(crate) name: String,
    pub(crate) line: usize,
    /// The files, including the document's shared ones.
    pub(crate) files: Memory,
    pub(crate) expected: Expected,
    /// The expected values of resolved manifests.
    pub(crate) resolved: Vec<ResolvedExpectation>,
    /// The names of the files, and whether the user names them.
    pub(crate) names: Vec<(String, bool)>,
}

/// The content of an `expect` block.
#[derive(Debug, Clone)]
pub(crate) struct Expected {
    pub(crate) diagnostics: Vec<Expectation>,
    /// Missing files that are requested.
    pub(crate) loads: Vec<String>,
    /// Files that must be skipped.
    pub(crate) skipped: Vec<String>,
    /// Whether refs are followed.
    pub(crate) refs: Refs,
}

struct Section<'t> {
    name: &'t str,
    line: usize,
    blocks: Vec<Block<'t>>,
}

impl Test {
    fn new(
        section: &Section<'_>,
        files: Vec<File>,
        expected: Expected,
        resolved: Vec<ResolvedExpectation>,
    ) -> Test {
        let mut memory = Memory::new();
        let mut names = Vec::new();
        for File { name, content, named } in files {
            if content != Content::Folder {
                names.push((name.clone(), named));
            }
            memory.put(&name, content);
        }
        Test { name: section.name.to_owned(), line: section.line, files: memory, expected, resolved, names }
    }
}

impl Document {
    /// Parses a document.
    ///
    /// # Errors
    /// When a block or a line of an `expect` or `resolved` block is invalid.
    pub(crate) fn parse(text: &str) -> Result<Document, ParseError> {
        let sections = sections(text)?;
        let expects = |section: &Section<'_>| section.blocks.iter().any(Block::is_expectation);
        let mut shared = Vec::new();
        let mut tests = Vec::new();
        for (index, section) in sections.iter().enumerate() {
            if index == 0 && !expects(section) {
                for block in &section.blocks {
                    let file = file(block, &shared)?;
                    shared.extend(file);
                }
            } else if !section.blocks.is_empty() {
                tests.push(test(section, &shared)?);
            }
        }
        Ok(Document { tests })
    }
}

impl Block<'_> {
    fn first_word(&self) -> &str {
        self.info.split_whitespace().next().unwrap_or_default()
    }

    fn is_expectation(&self) -> bool {
        self.first_word() == "expect"
    }
}

fn test(section: &Section<'_>, shared: &[File]) -> Result<Test, ParseError> {
    let mut files = shared.to_vec();
    let mut expected = None;
    let mut resolved = Vec::new();
    for block in &section.blocks {
        if block.is_expectation() {
            expected = Some(expectations(block)?);
        } else if block.first_word() == "resolved" {
            resolved.push(resolves(block)?);
        } else if let Some(file) = file(block, shared)? {
            files.retain(|earlier| earlier.name != file.name);
            files.push(file);
        }
    }
    let Some(expected) = expected else {
        return Err(ParseError {
            line: section.line,
            message: "a test without an `expect` block".to_owned(),
        });
    };
    Ok(Test::new(section, files, expected, resolved))
}

fn expectations(block: &Block<'_>) -> Result<Expected, ParseError> {
    let problem = |line: usize, message: String| ParseError { line, message };
    let refs = match block.info {
        "expect" => Refs::Followed,
        "expect no-refs" => Refs::ShapeOnly,
        info => return Err(problem(block.line, format!("not understood: {info}"))),
    };
    let mut expected = Expected { diagnostics: Vec::new(), loads: Vec::new(), skipped: Vec::new(), refs };
    let mut clean = false;
    for (index, line) in block.text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        if let Some(file) = line.strip_prefix("loads ") {
            expected.loads.push(file.trim().to_owned());
        } else if let Some(file) = line.strip_prefix("passes over ") {
            expected.skipped.push(file.trim().to_owned());
        } else if line.trim() == "clean" {
            clean = true;
        } else if let Some(expectation) = Expectation::parse(line) {
            expected.diagnostics.push(expectation);
        } else {
            return Err(problem(block.line + 1 + index, format!("not understood: {line}")));
        }
    }
    if clean == expected.diagnostics.is_empty() {
        return Ok(expected);
    }
    Err(problem(block.line, "say `clean`, or what is expected, and not both".to_owned()))
}

fn resolves(block: &Block<'_>) -> Result<ResolvedExpectation, ParseError> {
    let mut words = block.info.split_whitespace().skip(1);
    let (Some(path), None) = (words.next(), words.next()) else {
        return Err(ParseError { line: block.line, message: "write `resolved` and one file".to_owned() });
    };
    let lines = block.text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let mut resolves = ResolvedExpectation { path: path.to_owned(), fields: Vec::new() };
    for (index, line) in lines {
        let field = super::ExpectedField::parse(line).ok_or_else(|| ParseError {
            line: block.line + 1 + index,
            message: format!("not understood: {line}"),
        })?;
        resolves.fields.push(field);
    }
    Ok(resolves)
}

fn sections(text: &str) -> Result<Vec<Section<'_>>, ParseError> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let line_number = index + 1;
        let fence = line.len() - line.trim_start_matches('`').len();
        if fence >= 3 {
            let mut block = Block { line: line_number, info: line[fence..].trim(), text: String::new() };
            let closing = &line[..fence];
            loop {
                match lines.next() {
                    Some((_, inner)) if inner.trim_end() == closing => break,
                    Some((_, inner)) => {
                        block.text.push_str(inner);
                        block.text.push('\n');
                    }
                    None => {
                        return Err(ParseError {
                            line: line_number,
                            message: "a block that never ends".to_owned(),
                        });
                    }
                }
            }
            let Some(section) = sections.last_mut() else {
                return Err(ParseError { line: line_number, message: "a block above the title".to_owned() });
            };
            section.blocks.push(block);
        } else if line.starts_with('#') {
            let name = line.trim_start_matches('#').trim();
            sections.push(Section { name, line: line_number, blocks: Vec::new() });
        }
    }
    Ok(sections)
}

/// Why a document cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ParseError {
    pub(crate) line: usize,
    pub(crate) message: String,
}

pub(crate) struct Block<'t> {
    pub(crate) line: usize,
    pub(crate) info: &'t str,
    pub(crate) text: String,
}

#[derive(Debug, Clone)]
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) content: Content,
    /// Whether the user names it, instead of a directory that contains it.
    pub(crate) named: bool,
}

/// The file of a block; `None` for a block that is only an illustration.
pub(crate) fn file(block: &Block<'_>, shared: &[File]) -> Result<Option<File>, ParseError> {
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
