//! Canonical key order and spacing of manifests. Comments move with their entries, and the content does not change: if the
//! result does not parse as the same tree with the same comments, the text is returned unchanged.
//!
//! `read` splits a text along its tree, `arrange` orders the parts, `write` joins them, and `check` compares the result
//! with the text. Texts of values are moved and indented, never rewritten.

mod arrange;
mod check;
mod cst;
mod lines;
pub mod order;
pub mod orders;
mod read;
mod write;

use std::borrow::Cow;

use crate::frontmatter;
use crate::tree::{Problem, yaml};

pub use order::Order;

/// The schema comment of editors, which has an effect only at the top of a file.
const MODELINE: &str = "# yaml-language-server:";

/// Formats YAML.
///
/// # Errors
/// The text is not valid YAML.
pub fn format(text: &str, order: &Order) -> Result<String, Vec<Problem>> {
    let plain = text.trim_start_matches(BOM);
    let formatted =
        format_yaml(plain, order).map_err(|problems| shift_problems(problems, text.len() - plain.len()))?;
    Ok(formatted.unwrap_or_else(|| text.to_owned()))
}

/// Formats the YAML frontmatter of Markdown. Of the Markdown, only the final line breaks change.
///
/// # Errors
/// The text has no frontmatter, or it is not valid YAML.
pub fn frontmatter(text: &str, order: &Order) -> Result<String, Vec<Problem>> {
    let plain = text.trim_start_matches(BOM);
    let dropped = text.len() - plain.len();
    let parts = frontmatter::split(plain).map_err(|problem| shift_problems(vec![problem], dropped))?;
    let formatted = format_yaml(&plain[parts.yaml.clone()], order)
        .map_err(|problems| shift_problems(problems, dropped + parts.yaml.start))?;
    let Some(formatted) = formatted else { return Ok(text.to_owned()) };

    let mut out = String::with_capacity(text.len());
    let above = plain[..parts.yaml.start].lines().map(str::trim_end);
    for line in above.filter(|line| !line.is_empty()) {
        out.push_str(line);
        out.push('\n');
    }
    out.push_str(&formatted);
    out.push_str("---\n");
    out.push_str(&one_line_break(&plain[parts.body]));
    Ok(out)
}

const BOM: char = '\u{feff}';

/// The formatted text; `None` if the text has to stay unchanged.
fn format_yaml(text: &str, order: &Order) -> Result<Option<String>, Vec<Problem>> {
    let (root, problems) = yaml::parse(text);
    if root.is_none() || !problems.is_empty() {
        return Err(problems);
    }
    let text = text.replace("\r\n", "\n");
    // YAML treats a lone carriage return as a line break, but editors differ.
    if text.contains('\r') {
        return Ok(None);
    }
    let (Some(root), _) = yaml::parse(&text) else { return Ok(None) };
    let formatted = read::document(&text, &root).map(|mut document| {
        arrange::arrange(&mut document.block, order);
        write::write(&document)
    });
    Ok(formatted.filter(|formatted| check::is_equivalent(&text, &root, formatted)))
}

/// The body with exactly one final line break, the first of the present ones.
fn one_line_break(body: &str) -> Cow<'_, str> {
    let text = body.trim_end_matches(['\r', '\n']);
    let breaks = &body[text.len()..];
    match breaks.find('\n') {
        _ if text.is_empty() => "".into(),
        Some(at) => body[..text.len() + at + 1].into(),
        None => format!("{text}\n").into(),
    }
}

/// Problems of a part of a text, with spans in the whole text.
fn shift_problems(mut problems: Vec<Problem>, by: usize) -> Vec<Problem> {
    for problem in &mut problems {
        let related = problem.related.iter_mut().map(|(span, _)| span);
        for span in related.chain([&mut problem.span]) {
            *span = span.start + by..span.end + by;
        }
    }
    problems
}

#[cfg(test)]
mod tests;
