//! A document: what an outcome says, apart from the medium that shows it. Each medium has one writer: text for terminals,
//! Markdown for pull requests, HTML for pages.
//!
//! A document holds foreign text (drafts, answers, names) unchanged. The writers make it harmless: no text can end its
//! element, colour the terminal, mention a person, or hide a character.

mod html;
mod markdown;
mod terminal;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use super::layout;

pub use super::layout::Tone;
pub use html::html_text;

/// Text on one line, in pieces with a tone.
///
/// ```
/// use quorate::view::{Text, Tone};
///
/// let verdict = Text::toned(Tone::Fair, "REVISE").and("  ").and(Text::code("draft.md"));
/// assert_eq!(verdict.plain(), "REVISE  draft.md");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Text(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    tone: Tone,
    text: String,
}

impl Text {
    /// One piece with a tone.
    pub fn toned(tone: Tone, text: impl Into<String>) -> Text {
        Text(vec![Piece { tone, text: text.into() }])
    }

    /// A name, or an outcome's word.
    pub fn strong(text: impl Into<String>) -> Text {
        Text::toned(Tone::Strong, text)
    }

    /// Secondary text.
    pub fn faint(text: impl Into<String>) -> Text {
        Text::toned(Tone::Faint, text)
    }

    /// A path, an id or a command.
    pub fn code(text: impl Into<String>) -> Text {
        Text::toned(Tone::Code, text)
    }

    /// Appends a text.
    #[must_use]
    pub fn and(mut self, text: impl Into<Text>) -> Text {
        self.0.extend(text.into().0);
        self
    }

    /// Whether it has no characters.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|piece| piece.text.is_empty())
    }

    /// Its characters, without tones.
    pub fn plain(&self) -> String {
        self.0.iter().map(|piece| piece.text.as_str()).collect()
    }

    /// Its pieces, written one after the other.
    fn written(&self, piece: impl Fn(Tone, &str) -> String) -> String {
        self.0.iter().map(|Piece { tone, text }| piece(*tone, text)).collect()
    }
}

/// `words` with the white space that surrounds `text`.
fn spaced(text: &str, words: &str) -> String {
    let inner = text.trim_matches(' ');
    let (before, after) = match text.split_once(inner) {
        Some((before, after)) if !inner.is_empty() => (before, after),
        _ => (text, ""),
    };
    format!("{before}{words}{after}")
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text::toned(Tone::Plain, text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text::toned(Tone::Plain, text)
    }
}

impl From<&String> for Text {
    fn from(text: &String) -> Text {
        Text::toned(Tone::Plain, text.as_str())
    }
}

/// A table. Columns without a value in any row are left out by [`Table::filled`].
///
/// ```
/// use quorate::view::{Doc, Table};
///
/// let mut doc = Doc::new();
/// let rows = [["skeptic", "", "2"], ["evidence", "", "1"]];
/// doc.table(Table::new(["member", "model", "calls"]).with_rows(rows).filled());
/// assert!(doc.markdown().contains("| skeptic | 2 |"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    headings: Vec<String>,
    rows: Vec<Vec<Text>>,
    /// Whether all columns but the first are numbers, which HTML and Markdown align to the right.
    is_numeric: bool,
}

impl Table {
    /// A table without rows.
    pub fn new<H: Into<String>>(headings: impl IntoIterator<Item = H>) -> Table {
        Table {
            headings: headings.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
            is_numeric: false,
        }
    }

    /// Aligns all columns but the first to the right where the medium can.
    #[must_use]
    pub fn numeric(self) -> Table {
        Table { is_numeric: true, ..self }
    }

    /// Adds a row, with a cell for each heading.
    pub fn row<T: Into<Text>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Adds rows.
    #[must_use]
    pub fn with_rows<T: Into<Text>, R: IntoIterator<Item = T>>(
        mut self,
        rows: impl IntoIterator<Item = R>,
    ) -> Table {
        for row in rows {
            self.row(row);
        }
        self
    }

    /// Removes the columns that are empty in all rows.
    #[must_use]
    pub fn filled(mut self) -> Table {
        let is_filled =
            |at: usize| self.rows.iter().any(|row| row.get(at).is_some_and(|cell| !cell.is_empty()));
        let keep: Vec<bool> = (0..self.headings.len()).map(is_filled).collect();
        let mut at = keep.iter();
        self.headings.retain(|_| *at.next().unwrap_or(&true));
        for row in &mut self.rows {
            let mut at = keep.iter();
            row.retain(|_| *at.next().unwrap_or(&true));
        }
        self
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// An entry of a list, with blocks below its line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Entry {
    /// Its line.
    pub line: Text,
    /// What belongs to it.
    pub body: Doc,
}

impl<T: Into<Text>> From<T> for Entry {
    fn from(line: T) -> Entry {
        Entry { line: line.into(), body: Doc::new() }
    }
}

/// The longest quote of a problem, in characters.
const MAX_QUOTE_CHARS: usize = 300;

/// A problem of a text: its place, and what is wrong there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The text's name.
    pub file: String,
    /// The text; a terminal shows the line of the place if it has the text.
    pub text: Option<Arc<str>>,
    /// The place in the text, in bytes; `None` if the quote does not occur there.
    pub span: Option<Range<usize>>,
    /// Line and column, from 1, in characters.
    pub at: Option<(u64, u64)>,
    /// The words.
    pub quote: String,
    /// The tone of the underline.
    pub tone: Tone,
    /// What is wrong, with at least one entry.
    pub issues: Vec<Issue>,
}

/// What is wrong at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// In a sentence.
    pub text: String,
    /// Its weight, and the members that raised it.
    pub by: Text,
    /// How to mend it.
    pub fix: Option<String>,
}

impl Problem {
    fn short_quote(&self) -> String {
        layout::truncate(&layout::one_line(&self.quote), MAX_QUOTE_CHARS)
    }

    /// `path:line:column`, or the path alone.
    fn place(&self) -> String {
        match self.at {
            Some((line, column)) => format!("{}:{line}:{column}", self.file),
            None => self.file.clone(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Block {
    Title(Text),
    Heading(Text),
    Line(Text),
    Prose(String),
    Facts(Vec<(String, Text)>),
    Table(Table),
    List { is_ordered: bool, entries: Vec<Entry> },
    Problem(Problem),
    Conclusion(Conclusion),
    Section { is_indented: bool },
    Passage(String),
    Verbatim { language: &'static str, text: String },
    Tree(Vec<Entry>),
    Fold(Text, Doc),
    Diagram(String),
}

/// A whole document that ends with its verdict on a terminal, and begins with it elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conclusion {
    /// The verdict with its reason.
    pub headline: Text,
    /// The subject, the run and its cost.
    pub run: Text,
    /// What follows the verdict on a terminal: a person's decision, and the next commands.
    pub next: Doc,
    /// For terminals: documents with their most lines, of which the first that fits is shown, or the last.
    pub bodies: Vec<(usize, Doc)>,
    /// For other media.
    pub page: Doc,
}

impl Conclusion {
    /// The document for other media than terminals.
    fn document(&self) -> Doc {
        let mut doc = Doc::new();
        doc.title(self.headline.clone());
        doc.line(self.run.clone());
        doc.append(self.page.clone());
        doc
    }
}

/// A document, built from top to bottom.
///
/// ```
/// use quorate::view::{Doc, Text};
///
/// let mut doc = Doc::new();
/// doc.title(Text::strong("REVISE").and("  draft.md"));
/// doc.heading("Notes");
/// doc.items(["no source for the main claim"]);
/// assert_eq!(doc.text(Default::default()), "REVISE  draft.md\n\nNotes\n  - no source for the main claim\n");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Doc(Vec<Block>);

impl Doc {
    /// An empty document.
    pub fn new() -> Doc {
        Doc::default()
    }

    /// A line for each text; `otherwise` without any.
    pub fn of_lines<T: Into<Text>>(lines: impl IntoIterator<Item = T>, otherwise: &str) -> Doc {
        let mut doc = Doc(lines.into_iter().map(|line| Block::Line(line.into())).collect());
        if doc.is_empty() {
            doc.line(otherwise);
        }
        doc
    }

    /// A table; `otherwise` without rows.
    pub fn of_table(table: Table, otherwise: &str) -> Doc {
        let mut doc = Doc::new();
        match table.is_empty() {
            true => doc.line(otherwise),
            false => doc.table(table),
        }
        doc
    }

    /// Whether it shows nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The title of the document.
    pub fn title(&mut self, text: impl Into<Text>) {
        self.0.push(Block::Title(text.into()));
    }

    /// A heading. The blocks after it belong to it, until the next heading.
    pub fn heading(&mut self, text: impl Into<Text>) {
        self.0.push(Block::Heading(text.into()));
    }

    /// A line, which is wrapped if it is too long. Lines that follow each other form a paragraph of lines.
    pub fn line(&mut self, text: impl Into<Text>) {
        self.0.push(Block::Line(text.into()));
    }

    /// A text with paragraphs and lists, such as an answer; nothing if it is blank.
    pub fn prose(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !text.trim().is_empty() {
            self.0.push(Block::Prose(text));
        }
    }

    /// Facts, each with a label; nothing without facts.
    pub fn facts<L: Into<String>, T: Into<Text>>(&mut self, facts: impl IntoIterator<Item = (L, T)>) {
        let facts: Vec<_> = facts.into_iter().map(|(label, text)| (label.into(), text.into())).collect();
        if !facts.is_empty() {
            self.0.push(Block::Facts(facts));
        }
    }

    /// A table; nothing without rows.
    pub fn table(&mut self, table: Table) {
        if !table.is_empty() {
            self.0.push(Block::Table(table));
        }
    }

    /// A list; nothing without entries.
    pub fn items<E: Into<Entry>>(&mut self, entries: impl IntoIterator<Item = E>) {
        self.list(false, entries);
    }

    /// A numbered list; nothing without entries.
    pub fn numbered<E: Into<Entry>>(&mut self, entries: impl IntoIterator<Item = E>) {
        self.list(true, entries);
    }

    fn list<E: Into<Entry>>(&mut self, is_ordered: bool, entries: impl IntoIterator<Item = E>) {
        let entries: Vec<Entry> = entries.into_iter().map(Into::into).collect();
        if !entries.is_empty() {
            self.0.push(Block::List { is_ordered, entries });
        }
    }

    /// Foreign text of several lines, set apart from Quorate's own words; nothing if it is blank.
    pub fn passage(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !text.trim().is_empty() {
            self.0.push(Block::Passage(text));
        }
    }

    /// A problem of a text.
    pub fn problem(&mut self, problem: Problem) {
        self.0.push(Block::Problem(problem));
    }

    /// The whole document, with a verdict.
    pub fn concluded(conclusion: Conclusion) -> Doc {
        Doc(vec![Block::Conclusion(conclusion)])
    }

    /// Begins a section without a heading, which is indented on a terminal.
    pub fn begin_section(&mut self) {
        self.0.push(Block::Section { is_indented: true });
    }

    /// Ends the section of the last heading: what follows belongs to the whole document.
    pub fn end_section(&mut self) {
        self.0.push(Block::Section { is_indented: false });
    }

    /// Lines that keep their breaks and spaces, such as a diff or a configuration.
    pub fn verbatim(&mut self, language: &'static str, text: impl Into<String>) {
        self.0.push(Block::Verbatim { language, text: text.into() });
    }

    /// A tree: entries with the entries below them, connected by lines.
    pub fn tree(&mut self, entries: impl IntoIterator<Item = Entry>) {
        self.0.push(Block::Tree(entries.into_iter().collect()));
    }

    /// A document that a reader opens by its summary; a terminal shows it below the summary.
    pub fn fold(&mut self, summary: impl Into<Text>, doc: Doc) {
        self.0.push(Block::Fold(summary.into(), doc));
    }

    /// A Mermaid diagram, which only Markdown shows; nothing if it is empty.
    pub fn diagram(&mut self, text: String) {
        if !text.is_empty() {
            self.0.push(Block::Diagram(text));
        }
    }

    /// Appends the blocks of another document.
    pub fn append(&mut self, doc: Doc) {
        self.0.extend(doc.0);
    }
}
