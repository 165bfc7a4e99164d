//! Parses JSON (RFC 8259) to a tree: a single value, with all spans, so that callers can edit a part of the text. A duplicate
//! key is a problem, since parsers differ in which one they use. The depth is limited; the caller limits the size.

use std::ops::Range;

use super::{Entry, Float, Kind, Node, Problem};

/// The maximum nesting of arrays and objects.
pub const MAX_DEPTH: usize = 128;

/// Reads a text.
///
/// # Errors
/// The first syntax error.
pub fn parse(text: &str) -> Result<Node, Problem> {
    let mut reader = Reader { text, at: 0 };
    // Editors on Windows write a byte order mark.
    if text.starts_with('\u{feff}') {
        reader.at = '\u{feff}'.len_utf8();
    }
    let node = reader.value(0)?;
    reader.skip_whitespace();
    match reader.peek() {
        None => Ok(node),
        Some(_) => Err(reader.unexpected("the end of the text")),
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_whitespace(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn unexpected(&self, wanted: &str) -> Problem {
        let found = self.text[self.at..].chars().next();
        let end = self.at + found.map_or(0, char::len_utf8);
        match found {
            None => Problem::new(self.at..end, format!("the text ends where {wanted} should be")),
            Some('/') => Problem::new(self.at..end, format!("there is `/` where {wanted} should be"))
                .help("JSON has no comments"),
            Some(found) => Problem::new(self.at..end, format!("there is {found:?} where {wanted} should be")),
        }
    }

    fn expect(&mut self, byte: u8, wanted: &str) -> Result<(), Problem> {
        self.skip_whitespace();
        if self.peek() != Some(byte) {
            return Err(self.unexpected(wanted));
        }
        self.at += 1;
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<Node, Problem> {
        self.skip_whitespace();
        let start = self.at;
        if depth > MAX_DEPTH {
            return Err(Problem::new(start..start + 1, format!("it nests deeper than {MAX_DEPTH} levels")));
        }
        let kind = match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => Kind::Str(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.word("true", Kind::Bool(true))?,
            Some(b'f') => self.word("false", Kind::Bool(false))?,
            Some(b'n') => self.word("null", Kind::Null)?,
            _ => return Err(self.unexpected("a value")),
        };
        Ok(Node::new(kind, start..self.at))
    }

    fn word(&mut self, word: &str, kind: Kind) -> Result<Kind, Problem> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.unexpected("a value"));
        }
        self.at += word.len();
        Ok(kind)
    }

    /// Reads a comma-separated list up to a closing bracket.
    fn comma_separated(
        &mut self,
        close: u8,
        mut one: impl FnMut(&mut Self) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        self.at += 1;
        self.skip_whitespace();
        if self.peek() == Some(close) {
            self.at += 1;
            return Ok(());
        }
        loop {
            one(self)?;
            self.skip_whitespace();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(found) if found == close => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(self.unexpected(&format!("`,` or `{}`", char::from(close)))),
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Kind, Problem> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut seen = std::collections::HashMap::new();
        self.comma_separated(b'}', |reader| {
            reader.skip_whitespace();
            let start = reader.at;
            if reader.peek() != Some(b'"') {
                return Err(reader.unexpected("a key in quotes"));
            }
            let key = reader.string()?;
            let key_span = start..reader.at;
            if let Some(first) = seen.insert(key.clone(), key_span.clone()) {
                return Err(duplicate_key(&key, key_span, first));
            }
            reader.expect(b':', "`:`")?;
            let value = reader.value(depth + 1)?;
            entries.push(Entry { key, key_span, value });
            Ok(())
        })?;
        Ok(Kind::Map(entries))
    }

    fn array(&mut self, depth: usize) -> Result<Kind, Problem> {
        let mut items = Vec::new();
        self.comma_separated(b']', |reader| {
            items.push(reader.value(depth + 1)?);
            Ok(())
        })?;
        Ok(Kind::Seq(items))
    }

    fn string(&mut self) -> Result<String, Problem> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err(Problem::new(start..start + 1, "this text in quotes does not end")),
                Some(b'"') => break,
                Some(b'\\') => self.at += 2,
                Some(0..=0x1f) => return Err(self.unexpected("the rest of a text in quotes")),
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        let span = start..self.at;
        let read = self.text.get(span.clone()).map(serde_json::from_str);
        match read {
            Some(Ok(text)) => Ok(text),
            _ => Err(Problem::new(span, "this text in quotes has an escape that means nothing")),
        }
    }

    fn number(&mut self) -> Result<Kind, Problem> {
        let start = self.at;
        while matches!(self.peek(), Some(b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9')) {
            self.at += 1;
        }
        let text = &self.text[start..self.at];
        let bad = || Problem::new(start..start + text.len(), format!("`{text}` is not a valid number"));
        // Only to check the syntax of the number.
        let number: serde_json::Number = serde_json::from_str(text).map_err(|_| bad())?;
        if let Some(whole) = number.as_i64() {
            return Ok(Kind::Int(whole));
        }
        let value = text.parse::<f64>().ok().filter(|value| value.is_finite()).ok_or_else(bad)?;
        Ok(Kind::Float(Float { value, text: text.into() }))
    }
}

fn duplicate_key(key: &str, span: Range<usize>, first: Range<usize>) -> Problem {
    let mut problem =
        Problem::new(span, format!("the key `{key}` is there twice")).help("keep one of the two");
    problem.related = Some((first, "first here".to_owned()));
    problem
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_what_serde_json_reads() {
        for text in [
            "{}",
            " [ ] ",
            r#"{"a": [1, -2.5e3, "é\n\u00e9\ud83d\ude00", true, false, null], "b": {"": 9007199254740993}}"#,
            "\"\\\"\\\\\"",
            "\t{\r\n\"a\" : 1 }\n",
        ] {
            assert_eq!(parse(text).map(|node| node.to_json()), Ok(serde_json::from_str(text).expect(text)));
        }
    }

    #[test]
    fn what_says_an_integer_is_one() {
        let text = "[7.0, 1e3, -0.0, 7.00000000000000000001, 1e300]";
        let exact = parse(text).map(|node| node.to_exact_json());
        assert_eq!(exact, Ok(serde_json::json!([7, 1000, 0, "7.00000000000000000001", "1e300"])));
        let typed = parse(text).map(|node| crate::tree::deserialize::from_node(&node));
        assert_eq!(typed, Ok(Ok(serde_json::json!([7, 1000, 0, 7.0, 1e300]))));
    }

    #[test]
    fn it_says_where_it_cannot_go_on() {
        for (text, at, says) in [
            ("", 0, "a value"),
            ("{\"a\": 1,}", 8, "a key in quotes"),
            ("[1 2]", 3, "`,` or `]`"),
            ("{\"a\" 1}", 5, "`:`"),
            ("{} x", 3, "the end"),
            ("// c\n{}", 0, "a value"),
            ("\"a", 0, "does not end"),
            ("\"\\x\"", 0, "escape"),
            ("\"\\", 0, "does not end"),
            ("\"\\é\"", 0, "escape"),
            ("[01]", 1, "not a valid number"),
            ("[1e999]", 1, "not a valid number"),
            ("{\"a\": 1, \"a\": 2}", 9, "twice"),
            ("[nul]", 1, "a value"),
        ] {
            let problem = parse(text).expect_err(text);
            assert!(problem.message.contains(says), "{text}: {}", problem.message);
            assert_eq!(problem.span.start, at, "{text}");
        }
        assert!(parse(&"[".repeat(100_000)).is_err());
        assert!(parse(&("[".repeat(MAX_DEPTH) + &"]".repeat(MAX_DEPTH))).is_ok());
    }

    #[test]
    fn places_are_those_of_the_text() {
        let text = r#"{"a": [1, "x"]}"#;
        let node = parse(text).expect("JSON");
        let a = &node.entry("a").expect("a").value;
        assert_eq!(&text[a.span.clone()], r#"[1, "x"]"#);
        assert_eq!(&text[a.items()[1].span.clone()], r#""x""#);
    }
}
