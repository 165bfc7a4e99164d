//! Canonical key order and spacing of manifests. Comments stay where they belong, and what a file says stays as it is:
//! a result that would not read as the same tree with the same comments is dropped, and the text stands as it was.
//!
//! `read` takes a text apart along its tree, `arrange` orders the parts, `write` puts them together again, `check` holds
//! the result against the text. Texts of values are moved and indented, never rewritten.

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

/// What editors put before everything else to find a schema; it has no effect anywhere below.
const MODELINE: &str = "# yaml-language-server:";

/// Formats YAML.
///
/// # Errors
/// When the text is no YAML that can be read.
pub fn format(text: &str, order: &Order) -> Result<String, Vec<Problem>> {
    let plain = text.trim_start_matches(BOM);
    let formatted =
        format_yaml(plain, order).map_err(|problems| shift_problems(problems, text.len() - plain.len()))?;
    Ok(formatted.unwrap_or_else(|| text.to_owned()))
}

/// Formats the YAML frontmatter of Markdown. The Markdown stays as it is, but for the line break at its end.
///
/// # Errors
/// When there is no frontmatter, or it is no YAML that can be read.
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

/// The text formatted; `None` where it has to stand as it is.
fn format_yaml(text: &str, order: &Order) -> Result<Option<String>, Vec<Problem>> {
    let (root, problems) = yaml::parse(text);
    if root.is_none() || !problems.is_empty() {
        return Err(problems);
    }
    let text = text.replace("\r\n", "\n");
    // A lone carriage return ends lines too, and no editor agrees on what it looks like.
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

/// The body with exactly one line break at its end, the first of those that are there.
fn one_line_break(body: &str) -> Cow<'_, str> {
    let text = body.trim_end_matches(['\r', '\n']);
    let breaks = &body[text.len()..];
    match breaks.find('\n') {
        _ if text.is_empty() => "".into(),
        Some(at) => body[..text.len() + at + 1].into(),
        None => format!("{text}\n").into(),
    }
}

/// Problems of a part of a text, with their places in the whole.
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
