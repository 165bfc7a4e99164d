//! Parses a document: headings, files, expectations.

use quorate_manifest::loader::Refs;

use super::block::{Block, ParseError};
use super::expect::Expectation;
use super::file::{File, file};
use super::memory::{Content, Memory};
use super::resolved::ResolvedExpectation;

#[derive(Debug, Clone)]
pub struct Document {
    pub tests: Vec<Test>,
}

/// A heading with its blocks.
#[derive(Debug, Clone)]
pub struct Test {
    pub name: String,
    pub line: usize,
    /// The files, including the document's shared ones.
    pub files: Memory,
    pub expected: Expected,
    /// The expected values of resolved manifests.
    pub resolved: Vec<ResolvedExpectation>,
    /// The names of the files, and whether the user names them.
    pub(super) names: Vec<(String, bool)>,
}

/// The content of an `expect` block.
#[derive(Debug, Clone)]
pub struct Expected {
    pub diagnostics: Vec<Expectation>,
    /// Missing files that are requested.
    pub loads: Vec<String>,
    /// Files that must be skipped.
    pub skipped: Vec<String>,
    /// Whether refs are followed.
    pub refs: Refs,
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
    pub fn parse(text: &str) -> Result<Document, ParseError> {
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
        let field = super::resolved::ExpectedField::parse(line).ok_or_else(|| ParseError {
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
