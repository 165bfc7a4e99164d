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

/// Parses one document. Returns a tree even with problems, as long as its shape is clear.
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
        let problem = Problem::new(at..at, format!("invalid YAML: {}", info.trim_end_matches('.')));
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
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn reads(text: &str, expected: Value) {
        let (root, problems) = parse(text);
        assert_eq!(problems, [], "{text:?}");
        assert_eq!(root.expect("a tree").to_json(), expected, "{text:?}");
    }

    /// The problems, each with what is at its place.
    #[track_caller]
    fn refuses(text: &str, expected: &[(&str, &str)]) {
        let (_, problems) = parse(text);
        let seen: Vec<_> = problems.iter().map(|p| (&text[p.span.clone()], p.message.as_str())).collect();
        assert_eq!(seen.len(), expected.len(), "{text:?}: {seen:?}");
        for ((place, message), (expected_place, part)) in seen.iter().zip(expected) {
            assert_eq!(place, expected_place, "{text:?}: {seen:?}");
            assert!(message.contains(part), "{text:?}: {message}");
        }
    }

    #[test]
    fn scalars_have_the_kind_that_they_show() {
        reads("a: true\nb: False\nc: null\nd: ~\ne:\n", json!({"a": true, "b": false}));
        reads(
            "a: yes\nb: no\nc: on\nd: y\ne: \"true\"\n",
            json!({"a": "yes", "b": "no", "c": "on", "d": "y", "e": "true"}),
        );
        reads("a: 1\nb: -2\nc: 0x1F\nd: 0o17\ne: 010\n", json!({"a": 1, "b": -2, "c": 31, "d": 15, "e": 10}));
        reads("a: 1.0\nb: .5\nc: 1e3\nd: -1.\n", json!({"a": 1.0, "b": 0.5, "c": 1000.0, "d": -1.0}));
        reads(
            "a: 1.0.0\nb: 1_000\nc: 2026-11-20\nd: .\ne: 10m\n",
            json!({
                "a": "1.0.0", "b": "1_000", "c": "2026-11-20", "d": ".", "e": "10m"
            }),
        );
    }

    #[test]
    fn structure_comments_and_block_text() {
        reads(
            "# c\na:\n  - x\n  - y: 1 # c\n    z: [1, {b: 2}]\n",
            json!({"a": ["x", {"y": 1, "z": [1, {"b": 2}]}]}),
        );
        reads("a: |\n  one\n  two\nb: >\n  one\n  two\n", json!({"a": "one\ntwo\n", "b": "one two\n"}));
        reads("---\na: 1\n...\n", json!({"a": 1}));
        reads("a: 1\r\nb:\r\n  - x\r\n", json!({"a": 1, "b": ["x"]}));
        reads("", Value::Null);
        reads("# nothing\n", Value::Null);
    }

    #[test]
    fn places_are_bytes_of_the_text() {
        let text = "ä: ö\nlist:\n  - über: \"q\"\n";
        let Kind::Map(entries) = parse(text).0.expect("a tree").kind else { panic!("a mapping") };
        assert_eq!((&text[entries[0].key_span.clone()], &text[entries[0].value.span.clone()]), ("ä", "ö"));
        let Kind::Seq(items) = &entries[1].value.kind else { panic!("a list") };
        let Kind::Map(item) = &items[0].kind else { panic!("a mapping") };
        assert_eq!((&text[item[0].key_span.clone()], &text[item[0].value.span.clone()]), ("über", "\"q\""));
    }

    // M1
    #[test]
    fn what_acts_from_a_distance_is_refused() {
        refuses("a: 1\nb: 2\na: 3\n", &[("a", "`a` is there twice")]);
        refuses("a: !!str 1\n", &[("1", "tag `!!str`")]);
        refuses("a: &x 1\n", &[("1", "anchors")]);
        refuses("a: &x 1\nb: *x\n", &[("1", "anchors"), ("*x", "aliases")]);
        refuses("a: *x\n", &[("*x", "aliases")]);
        refuses("a:\n  <<: {b: 1}\n", &[("<<", "merge keys")]);
        refuses("a: 1\n---\nb: 1\n", &[("---", "second document")]);
        refuses("%YAML 1.2\n---\na: 1\n", &[("", "invalid YAML")]);
        refuses("? [a]\n: 1\n", &[("[", "a key is text")]);
        refuses(": 1\n", &[("", "without a name")]);
        refuses(
            "a: .inf\nb: 99999999999999999999\nc: 1e999\n",
            &[(".inf", ""), ("99999999999999999999", "large"), ("1e999", "large")],
        );
    }

    #[test]
    fn a_problem_that_leaves_the_shape_alone_leaves_the_tree() {
        let (root, problems) = parse("a: 1\na: 2\nb: 3\n");
        assert_eq!(problems.len(), 1);
        assert_eq!(root.expect("a tree").to_json(), json!({"a": 1, "b": 3}));
    }

    #[test]
    fn broken_text_is_refused_with_a_place() {
        for text in [
            "a: [1, 2\n",
            "a: \"x\n",
            "a: b: c\n",
            "a:\n\t- x\n",
            "- a\nb: 1\n",
            "a: 1\n b: 2\n",
            "\0",
            "a: \u{7}\n",
        ] {
            let (root, problems) = parse(text);
            assert!(root.is_none() && problems.len() == 1, "{text:?}: {problems:?}");
            assert!(problems[0].span.end <= text.len(), "{text:?}");
        }
    }

    #[test]
    fn abuse_ends_at_once() {
        let nested = |n: usize| "[".repeat(n) + &"]".repeat(n);
        assert!(parse(&nested(MAX_DEPTH)).0.is_some());
        refuses(&nested(MAX_DEPTH + 1), &[("[", "deeper")]);
        for text in ["[".repeat(100_000), "{a: ".repeat(100_000), "- ".repeat(100_000), "a: [".repeat(50_000)]
        {
            assert_eq!(parse(&text).1.len(), 1);
        }
        let block: String = (0..40).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
        assert_eq!(parse(&block).1.len(), 1);
        refuses(&format!("[{}]", "1,".repeat(MAX_NODES)), &[("1", "more than 20000")]);
        assert_eq!(parse(&"a: &a 1\n".repeat(5_000)).1.len(), MAX_PROBLEMS);
    }
}
