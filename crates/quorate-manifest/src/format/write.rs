//! Puts a document together: two blanks for each step in, one blank after colons and dashes, no blanks at line ends,
//! never two empty lines in a row.

use super::lines::STEP;
use super::parts::{Aside, Block, Document, Piece, Remark, Text, Value};

/// The text of a document.
pub(super) fn write(document: &Document<'_>) -> String {
    let mut out = Out { text: String::new(), tight: true };
    if let Some((above, beside)) = &document.fence {
        out.remarks(above, 0);
        out.text.push_str("---");
        out.end(beside.as_ref());
        out.tight = true;
    }
    out.block(&document.block, 0, false);
    if let Some((beside, below)) = &document.end {
        out.text.push_str("...");
        out.end(beside.as_ref());
        out.remarks(below, 0);
    }
    out.text
}

struct Out {
    text: String,
    /// Whether no empty line may come next: at the beginning of something, and where it would become part of a value.
    tight: bool,
}

impl Out {
    /// A block, on the line of a dash or on lines of its own.
    fn block(&mut self, block: &Block<'_>, indent: usize, on_line: bool) {
        self.remarks(&block.head, indent);
        if block.head_gap && !block.head.is_empty() {
            self.gap(true);
        }
        for (at, piece) in block.pieces.iter().enumerate() {
            self.piece(piece, indent, on_line && at == 0);
        }
        self.remarks(&block.tail, indent);
    }

    fn piece(&mut self, piece: &Piece<'_>, indent: usize, on_line: bool) {
        if !on_line {
            self.remarks(&piece.lead, indent);
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
            Value::Block(block) if piece.key.is_none() && piece.beside.is_none() => {
                self.text.push(' ');
                self.block(block, indent + STEP, true);
            }
            Value::Block(block) => {
                self.end(piece.beside.as_ref());
                self.tight = true;
                self.block(block, indent + STEP, false);
            }
            Value::Text(text) => {
                match &text.above {
                    Some(above) => {
                        self.end(piece.beside.as_ref());
                        self.tight = true;
                        self.remarks(above, indent + STEP);
                        self.pad(indent + text.lines.first().map_or(STEP, |line| line.indent));
                    }
                    None => self.text.push(' '),
                }
                self.value(text, indent);
            }
            Value::Nothing => self.end(piece.beside.as_ref()),
        }
        self.remarks(&piece.below, indent + STEP);
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
        self.end(text.aside.as_ref());
        self.tight = text.keeps;
    }

    fn remarks(&mut self, remarks: &[Remark<'_>], indent: usize) {
        for remark in remarks {
            self.gap(remark.gap);
            self.pad(indent);
            self.text.push_str(remark.text);
            self.end(None);
        }
    }

    /// Ends a line, with the comment beside it.
    fn end(&mut self, aside: Option<&Aside<'_>>) {
        self.tight = false;
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
        if wanted && !self.tight {
            self.text.push('\n');
        }
        self.tight |= wanted;
    }

    fn pad(&mut self, indent: usize) {
        self.text.extend(std::iter::repeat_n(' ', indent));
    }
}
