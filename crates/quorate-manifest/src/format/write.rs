//! Writes a document: two blanks for each level, one blank after colons and dashes, no trailing blanks, never two empty
//! lines in a row.

use super::cst::{Block, Comment, Item, Root, Text, TrailingComment, Value};
use super::lines::INDENT;

/// The text of a document.
pub(super) fn write(document: &Root<'_>) -> String {
    let mut out = Writer { text: String::new(), no_gap_next: true };
    if let Some((above, beside)) = &document.fence {
        out.comments(above, 0);
        out.text.push_str("---");
        out.end(beside.as_ref());
        out.no_gap_next = true;
    }
    out.block(&document.block, 0, false);
    if let Some((beside, below)) = &document.end {
        out.text.push_str("...");
        out.end(beside.as_ref());
        out.comments(below, 0);
    }
    out.text
}

struct Writer {
    text: String,
    /// Whether an empty line is not allowed next: at the start of a block, or if it would become part of a value.
    no_gap_next: bool,
}

impl Writer {
    /// Writes a block, on the line of a dash or on new lines.
    fn block(&mut self, block: &Block<'_>, indent: usize, on_line: bool) {
        self.comments(&block.head, indent);
        if block.head_gap && !block.head.is_empty() {
            self.gap(true);
        }
        for (at, piece) in block.items.iter().enumerate() {
            self.item(piece, indent, on_line && at == 0);
        }
        self.comments(&block.tail, indent);
    }

    fn item(&mut self, piece: &Item<'_>, indent: usize, on_line: bool) {
        if !on_line {
            self.comments(&piece.lead, indent);
            self.gap(piece.gap);
            self.pad(indent);
        }
        match piece.key {
            Some(key) => {
                self.text.push_str(key.text);
                self.text.push(':');
            }
            None => self.text.push('-'),
        }
        match &piece.value {
            Value::Block(block) if piece.key.is_none() && piece.trailing.is_none() => {
                self.text.push(' ');
                self.block(block, indent + INDENT, true);
            }
            Value::Block(block) => {
                self.end(piece.trailing.as_ref());
                self.no_gap_next = true;
                self.block(block, indent + INDENT, false);
            }
            Value::Text(text) => {
                match &text.above {
                    Some(above) => {
                        self.end(piece.trailing.as_ref());
                        self.no_gap_next = true;
                        self.comments(above, indent + INDENT);
                        self.pad(indent + text.lines.first().map_or(INDENT, |line| line.indent));
                    }
                    None => self.text.push(' '),
                }
                self.value(text, indent);
            }
            Value::Nothing => self.end(piece.trailing.as_ref()),
        }
        self.comments(&piece.below, indent + INDENT);
    }

    fn value(&mut self, text: &Text<'_>, indent: usize) {
        for (at, line) in text.lines.iter().enumerate() {
            if at > 0 {
                self.text.push('\n');
                if !line.text.is_empty() {
                    self.pad(indent + line.indent);
                }
            }
            self.text.push_str(line.text);
        }
        self.end(text.trailing.as_ref());
        self.no_gap_next = text.keeps_blank_lines;
    }

    fn comments(&mut self, remarks: &[Comment<'_>], indent: usize) {
        for remark in remarks {
            self.gap(remark.gap);
            self.pad(indent);
            self.text.push_str(remark.text);
            self.end(None);
        }
    }

    /// Ends a line, with the comment beside it.
    fn end(&mut self, aside: Option<&TrailingComment<'_>>) {
        self.no_gap_next = false;
        let Some(aside) = aside else { return self.text.push('\n') };
        self.text.push_str(aside.space);
        let begin = self.text.rfind('\n').map_or(0, |at| at + 1);
        let column = self.text[begin..].chars().count();
        self.text.push_str(aside.text);
        self.text.push('\n');
        for line in &aside.below {
            self.pad(column);
            self.text.push_str(line);
            self.text.push('\n');
        }
    }

    fn gap(&mut self, wanted: bool) {
        if wanted && !self.no_gap_next {
            self.text.push('\n');
        }
        self.no_gap_next |= wanted;
    }

    fn pad(&mut self, indent: usize) {
        self.text.extend(std::iter::repeat_n(' ', indent));
    }
}
