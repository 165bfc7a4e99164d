//! Reads a document: headings, files, expectations.

use super::expect::Expectation;
use super::memory::Memory;

/// A document that was read.
#[derive(Debug, Clone)]
pub struct Document {
    /// Its tests, in order.
    pub tests: Vec<Test>,
}

/// One heading with what stands under it.
#[derive(Debug, Clone)]
pub struct Test {
    /// The heading.
    pub name: String,
    /// The heading's line.
    pub line: usize,
    /// The files, the document's shared ones included.
    pub files: Memory,
    /// What has to be said.
    pub expected: Vec<Expectation>,
    names: Vec<String>,
}

/// Why a document is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

/// A fenced block.
struct Block<'t> {
    line: usize,
    info: &'t str,
    text: String,
}

/// A heading with its blocks.
struct Section<'t> {
    name: &'t str,
    line: usize,
    blocks: Vec<Block<'t>>,
}

/// A file as a block gives it.
#[derive(Debug, Clone)]
struct File {
    name: String,
    /// `None` for a file that cannot be read.
    bytes: Option<Vec<u8>>,
}

impl Test {
    /// The files of a text that expects nothing: every block with a file name, under whatever heading.
    ///
    /// # Errors
    /// When a block cannot be understood.
    pub fn example(text: &str) -> Result<Test, Problem> {
        let sections = sections(text)?;
        let mut files = Vec::new();
        for block in sections.iter().flat_map(|section| &section.blocks) {
            files.extend(file(block, &[])?);
        }
        Ok(Test::new(&sections[0], files, Vec::new(), Vec::new()))
    }

    fn new(section: &Section<'_>, files: Vec<File>, named: Vec<String>, expected: Vec<Expectation>) -> Test {
        let mut memory = Memory::new();
        for file in &files {
            match &file.bytes {
                Some(bytes) => memory.put(&file.name, bytes.clone()),
                None => memory.put_unreadable(&file.name),
            }
        }
        let names = files.into_iter().map(|file| file.name).chain(named).collect();
        Test { name: section.name.to_owned(), line: section.line, files: memory, expected, names }
    }

    /// The names of the files that are there or named by `loads`.
    pub fn under_test(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }
}

impl Document {
    /// Reads a document.
    ///
    /// # Errors
    /// When a block or a line of an `expect` block cannot be understood.
    pub fn parse(text: &str) -> Result<Document, Problem> {
        let sections = sections(text)?;
        let expects = |section: &Section<'_>| section.blocks.iter().any(|block| block.info == "expect");
        let mut shared = Vec::new();
        let mut tests = Vec::new();
        for (index, section) in sections.iter().enumerate() {
            if index == 0 && !expects(section) {
                for block in &section.blocks {
                    shared.extend(file(block, &[])?);
                }
            } else if !section.blocks.is_empty() {
                tests.push(test(section, &shared)?);
            }
        }
        Ok(Document { tests })
    }
}

fn test(section: &Section<'_>, shared: &[File]) -> Result<Test, Problem> {
    let mut files = shared.to_vec();
    let mut named = Vec::new();
    let mut expected = None;
    for block in &section.blocks {
        if block.info == "expect" {
            expected = Some(expectations(block, &mut named)?);
        } else if let Some(file) = file(block, shared)? {
            files.retain(|known| known.name != file.name);
            files.push(file);
        }
    }
    let Some(expected) = expected else {
        return Err(Problem { line: section.line, message: "a test without an `expect` block".to_owned() });
    };
    Ok(Test::new(section, files, named, expected))
}

fn expectations(block: &Block<'_>, named: &mut Vec<String>) -> Result<Vec<Expectation>, Problem> {
    let mut expected = Vec::new();
    let mut clean = false;
    for (index, line) in block.text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        if let Some(file) = line.strip_prefix("loads ") {
            named.push(file.trim().to_owned());
        } else if line.trim() == "clean" {
            clean = true;
        } else if let Some(expectation) = Expectation::parse(line) {
            expected.push(expectation);
        } else {
            return Err(Problem { line: block.line + 1 + index, message: format!("not understood: {line}") });
        }
    }
    if clean == expected.is_empty() {
        return Ok(expected);
    }
    Err(Problem { line: block.line, message: "say `clean`, or what is expected, and not both".to_owned() })
}

/// The file that a block stands for; `None` for a block that is only there to be read by people.
fn file(block: &Block<'_>, shared: &[File]) -> Result<Option<File>, Problem> {
    let mut words = block.info.split_whitespace();
    let (Some(_language), Some(name)) = (words.next(), words.next()) else { return Ok(None) };
    let problem = |message: String| Problem { line: block.line, message };
    let mut text = block.text.clone();
    let mut bytes_of: fn(&str) -> Option<Vec<u8>> = |text| Some(text.as_bytes().to_vec());
    let mut readable = true;
    for word in words {
        match word {
            "above" => {
                let below = shared.iter().find(|file| file.name == name).and_then(|file| file.bytes.as_ref());
                let below = below.and_then(|bytes| std::str::from_utf8(bytes).ok());
                text.push_str(below.ok_or_else(|| problem(format!("no shared file `{name}`")))?);
            }
            "crlf" => text = text.replace('\n', "\r\n"),
            "bom" => text.insert(0, '\u{feff}'),
            "unterminated" => text.truncate(text.trim_end_matches(['\r', '\n']).len()),
            "escapes" => bytes_of = unescape,
            "unreadable" => readable = false,
            other => {
                let times = other.strip_prefix("times=").and_then(|count| count.parse().ok());
                text = text.repeat(times.ok_or_else(|| problem(format!("not understood: {other}")))?);
            }
        }
    }
    let bytes = bytes_of(&text).ok_or_else(|| problem("an escape that is none".to_owned()))?;
    Ok(Some(File { name: name.to_owned(), bytes: readable.then_some(bytes) }))
}

/// Replaces `\xHH` and `\u{H…}`; any other backslash stands for itself.
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
        } else {
            bytes.push(b'\\');
            rest = &rest[1..];
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    Some(bytes)
}

fn sections(text: &str) -> Result<Vec<Section<'_>>, Problem> {
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
                        return Err(Problem {
                            line: line_number,
                            message: "a block that never ends".to_owned(),
                        });
                    }
                }
            }
            let Some(section) = sections.last_mut() else {
                return Err(Problem { line: line_number, message: "a block above the title".to_owned() });
            };
            section.blocks.push(block);
        } else if line.starts_with('#') {
            let name = line.trim_start_matches('#').trim();
            sections.push(Section { name, line: line_number, blocks: Vec::new() });
        }
    }
    Ok(sections)
}
