//! Parses YAML to a tree, strictly: one document, no tags, anchors, aliases, merge keys or directives, unique keys, and
//! limits on depth and size.
//!
//! Reads the events of `granit-parser`, because only they carry the byte span of every key and tell
//! quoted from plain text. Plain scalars are resolved by YAML 1.2's core schema: `yes`, `no`, `on`, `off`, `y` and
//! `n` are text.

use std::collections::HashMap;
use std::ops::Range;

use granit_parser::{self as yaml, ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, StrInput};

use super::{Entry, Float, Kind, MAX_DEPTH, MAX_NODES, MAX_PROBLEMS, Node, Problem};

/// Larger mappings look keys up by hash; a linear search is faster in small ones, and most are small.
const HASH_THRESHOLD: usize = 16;

/// Parses one document. There is a tree even with problems, as long as its shape is clear.
pub fn parse(text: &str) -> (Option<Node>, Vec<Problem>) {
    let options = yaml::options! {
        disallow_directives: true,
        emit_unresolved_aliases: true,
        emit_comments: false,
        flow_nesting_limit: MAX_DEPTH + 1,
        block_nesting_limit: MAX_DEPTH + 1,
    };
    let parser = Parser::new_from_str_with_options(text, options);
    let mut reading = TreeBuilder { parser, end: text.len(), nodes: 0, problems: Vec::new() };
    let node = reading.document().ok();
    (node, reading.problems)
}

/// Parsing stopped; the reason is among the problems.
struct Aborted;

struct TreeBuilder<'t> {
    parser: Parser<'t, StrInput<'t>>,
    end: usize,
    nodes: usize,
    problems: Vec<Problem>,
}

impl<'t> TreeBuilder<'t> {
    fn document(&mut self) -> Result<Node, Aborted> {
        let mut root = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamStart | Event::DocumentEnd => {}
                Event::StreamEnd => break,
                Event::DocumentStart(..) if root.is_some() => {
                    let problem = Problem::new(self.range(span), "a second document begins here")
                        .help("keep one document per file, or drop the `---`");
                    return self.abort(problem);
                }
                Event::DocumentStart(..) => {
                    let (event, span) = self.next()?;
                    root = Some(self.node(event, span, 0)?);
                }
                _ => break,
            }
        }
        Ok(root.unwrap_or(Node::new(Kind::Null, 0..0)))
    }

    fn node(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result<Node, Aborted> {
        let range = self.range(span);
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return self.abort(Problem::new(range, format!("there are more than {MAX_NODES} values")));
        }
        self.refuse_properties(&event, &range)?;
        match event {
            Event::Scalar(text, ScalarStyle::Plain, ..) => {
                let kind = match resolve_plain(&text) {
                    Ok(kind) => kind,
                    Err(message) => {
                        self.add_problem(Problem::new(range.clone(), message))?;
                        Kind::Null
                    }
                };
                Ok(Node::new(kind, range))
            }
            Event::Scalar(text, ..) => Ok(Node::new(Kind::Str(text.into_owned()), range)),
            Event::SequenceStart(..) => {
                self.refuse_depth(depth, &range)?;
                self.sequence(range, depth)
            }
            Event::MappingStart(..) => {
                self.refuse_depth(depth, &range)?;
                self.mapping(range, depth)
            }
            _ => self.abort(alias_problem(range)),
        }
    }

    fn sequence(&mut self, start: Range<usize>, depth: usize) -> Result<Node, Aborted> {
        let mut items = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::SequenceEnd {
                let end = self.range(span).end;
                return Ok(Node::new(Kind::Seq(items), start.start..end.max(start.end)));
            }
            items.push(self.node(event, span, depth + 1)?);
        }
    }

    fn mapping(&mut self, start: Range<usize>, depth: usize) -> Result<Node, Aborted> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut begins = start.start;
        loop {
            let (event, span) = self.next()?;
            if event == Event::MappingEnd {
                let end = self.range(span).end;
                return Ok(Node::new(Kind::Map(entries), begins..end.max(start.end)));
            }
            let (key, key_span) = self.key(event, span)?;
            begins = begins.min(key_span.start);
            let (event, span) = self.next()?;
            let value = self.node(event, span, depth + 1)?;
            if entries.len() == HASH_THRESHOLD {
                places.extend(entries.iter().enumerate().map(|(at, entry)| (entry.key.clone(), at)));
            }
            let first = match entries.len() < HASH_THRESHOLD {
                true => entries.iter().position(|entry| entry.key == key),
                false => places.get(&key).copied(),
            };
            match first {
                Some(first) => {
                    let mut problem = Problem::new(key_span, format!("the key `{key}` is there twice"))
                        .help("keep one of the two");
                    problem.related = Some((entries[first].key_span.clone(), "first here".to_owned()));
                    self.add_problem(problem)?;
                }
                None => {
                    if entries.len() >= HASH_THRESHOLD {
                        places.insert(key.clone(), entries.len());
                    }
                    entries.push(Entry { key, key_span, value });
                }
            }
        }
    }

    fn key(&mut self, event: Event<'t>, span: Span) -> Result<(String, Range<usize>), Aborted> {
        let range = self.range(span);
        self.refuse_properties(&event, &range)?;
        match event {
            Event::Scalar(text, ScalarStyle::Plain, ..) if text == "<<" => {
                self.add_problem(
                    Problem::new(range.clone(), "merge keys are not read").help("write the keys out"),
                )?;
                Ok((text.into_owned(), range))
            }
            Event::Scalar(text, ..) if text.is_empty() || range.is_empty() => {
                self.abort(Problem::new(range, "a key without a name"))
            }
            Event::Scalar(text, ..) => Ok((text.into_owned(), range)),
            Event::Alias(_) | Event::UnresolvedAlias(_) => self.abort(alias_problem(range)),
            _ => self.abort(Problem::new(range, "a key is text, not a list or a mapping")),
        }
    }

    /// Refuses tags and anchors, since they change the meaning of a value at another place.
    fn refuse_properties(&mut self, event: &Event<'t>, range: &Range<usize>) -> Result<(), Aborted> {
        let (Event::Scalar(_, _, anchor, tag)
        | Event::SequenceStart(_, anchor, tag)
        | Event::MappingStart(_, anchor, tag)) = event
        else {
            return Ok(());
        };
        if let Some(tag) = tag {
            let problem = Problem::new(range.clone(), format!("the tag `{}` is not read", tag.original()));
            self.add_problem(problem.help("drop the tag; quote what is meant as text"))?;
        }
        if *anchor != 0 {
            let problem = Problem::new(range.clone(), "anchors are not read");
            self.add_problem(
                problem.help("drop the `&` and its name; write the value out where it is needed"),
            )?;
        }
        Ok(())
    }

    fn refuse_depth(&mut self, depth: usize, range: &Range<usize>) -> Result<(), Aborted> {
        if depth < MAX_DEPTH {
            return Ok(());
        }
        self.abort(depth_problem(range.clone()))
    }

    fn next(&mut self) -> Result<(Event<'t>, Span), Aborted> {
        match self.parser.next_event() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => {
                let problem = self.scan_problem(&error);
                self.abort(problem)
            }
            None => self.abort(Problem::new(self.end..self.end, "the file ends too early")),
        }
    }

    fn scan_problem(&self, error: &ScanError) -> Problem {
        let at = error.marker().byte_offset().unwrap_or(self.end).min(self.end);
        let info = error.info();
        if *error.kind() == ErrorKind::RecursionLimitExceeded {
            return depth_problem(at..at);
        }
        let problem = Problem::new(at..at, format!("this is no YAML: {}", info.trim_end_matches('.')));
        if info.contains("tab") {
            return problem.help("indent with spaces");
        }
        problem
    }

    fn range(&self, span: Span) -> Range<usize> {
        span.byte_range()
            .map_or(self.end..self.end, |range| range.start.min(self.end)..range.end.min(self.end))
    }

    fn add_problem(&mut self, problem: Problem) -> Result<(), Aborted> {
        self.problems.push(problem);
        if self.problems.len() < MAX_PROBLEMS { Ok(()) } else { Err(Aborted) }
    }

    fn abort<T>(&mut self, problem: Problem) -> Result<T, Aborted> {
        self.problems.push(problem);
        Err(Aborted)
    }
}

fn depth_problem(range: Range<usize>) -> Problem {
    Problem::new(range, format!("lists and mappings nest deeper than {MAX_DEPTH}"))
}

fn alias_problem(range: Range<usize>) -> Problem {
    Problem::new(range, "aliases are not read").help("write the value out")
}

/// Resolves a plain scalar by the core schema.
pub(super) fn plain_kind(text: &str) -> Option<Kind> {
    resolve_plain(text).ok()
}

fn resolve_plain(text: &str) -> Result<Kind, String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Kind::Null),
        "true" | "True" | "TRUE" => return Ok(Kind::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Kind::Bool(false)),
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Err(format!("`{text}` is not a usable number"));
    }
    let radix = match unsigned.get(..2) {
        Some("0x") if text == unsigned && digits(&unsigned[2..], 16) => Some((16, &unsigned[2..])),
        Some("0o") if text == unsigned && digits(&unsigned[2..], 8) => Some((8, &unsigned[2..])),
        _ if digits(unsigned, 10) => Some((10, text)),
        _ => None,
    };
    if let Some((radix, digits)) = radix {
        let value = i64::from_str_radix(digits, radix);
        return value.map(Kind::Int).map_err(|_| format!("`{text}` is too large a number"));
    }
    if !is_float(unsigned) {
        return Ok(Kind::Str(text.to_owned()));
    }
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(Kind::Float(Float { value, text: text.into() })),
        _ => Err(format!("`{text}` is too large a number")),
    }
}

fn digits(text: &str, radix: u32) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_digit(radix))
}

/// `1.5`, `1.`, `.5`, `1e3`; without a sign.
fn is_float(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fine = |part: &str| part.chars().all(|c| c.is_ascii_digit());
    fine(whole)
        && fine(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| digits(exponent.strip_prefix(['-', '+']).unwrap_or(exponent), 10))
}

#[cfg(test)]
mod tests;
