//! Parses TOML to a tree.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Entry, Float, Kind, MAX_DEPTH, MAX_NODES, MAX_PROBLEMS, Node, Problem};

/// Parses a document. Returns a tree if and only if it finds no problem.
pub fn parse(text: &str) -> (Option<Node>, Vec<Problem>) {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut reading = TreeBuilder { nodes: 0, problems: Vec::new() };
    reading.problems.extend(errors.iter().take(MAX_PROBLEMS).map(|error| syntax(error, text.len())));
    if !reading.problems.is_empty() {
        return (None, reading.problems);
    }
    let span = table.span();
    let root = reading.table(table.get_ref(), span, 0);
    (reading.problems.is_empty().then_some(root), reading.problems)
}

fn syntax(error: &toml::de::Error, end: usize) -> Problem {
    let span = error.span().unwrap_or(end..end);
    if error.message().contains("duplicate key") {
        return Problem::new(span, "this key is there twice").help("keep one of the two");
    }
    Problem::new(span, format!("invalid TOML: {}", error.message().trim_end_matches('.')))
}

struct TreeBuilder {
    nodes: usize,
    problems: Vec<Problem>,
}

impl TreeBuilder {
    fn table(&mut self, table: &DeTable<'_>, span: Range<usize>, depth: usize) -> Node {
        let mut entries: Vec<Entry> = table
            .iter()
            .map(|(key, value)| Entry {
                key: key.get_ref().clone().into_owned(),
                key_span: key.span(),
                value: self.value(value, depth + 1),
            })
            .collect();
        entries.sort_by_key(|entry| entry.key_span.start);
        Node::new(Kind::Map(entries), span)
    }

    fn value(&mut self, value: &Spanned<DeValue<'_>>, depth: usize) -> Node {
        let span = value.span();
        self.nodes += 1;
        if self.nodes > MAX_NODES || depth > MAX_DEPTH {
            if self.problems.is_empty() {
                let message =
                    format!("there are more than {MAX_NODES} values, or they nest deeper than {MAX_DEPTH}");
                self.problems.push(Problem::new(span.clone(), message));
            }
            return Node::new(Kind::Null, span);
        }
        let kind = match value.get_ref() {
            DeValue::Boolean(value) => Kind::Bool(*value),
            DeValue::String(value) => Kind::Str(value.clone().into_owned()),
            DeValue::Datetime(value) => Kind::Str(value.to_string()),
            DeValue::Integer(value) => match i64::from_str_radix(value.as_str(), value.radix()) {
                Ok(value) => Kind::Int(value),
                Err(_) => self.unusable_number(&span),
            },
            DeValue::Float(value) => match value.as_str().parse::<f64>() {
                Ok(number) if number.is_finite() => {
                    Kind::Float(Float { value: number, text: value.as_str().into() })
                }
                _ => self.unusable_number(&span),
            },
            DeValue::Array(items) => {
                Kind::Seq(items.iter().map(|item| self.value(item, depth + 1)).collect())
            }
            DeValue::Table(table) => return self.table(table, span, depth),
        };
        Node::new(kind, span)
    }

    fn unusable_number(&mut self, span: &Range<usize>) -> Kind {
        self.problems.push(Problem::new(span.clone(), "this number cannot be used here"));
        Kind::Null
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_have_their_places() {
        let text = "ledger = \"x.db\"\n\n[executors.claude]\nkind = \"agent-cli\"\nargs = [\"--print\"]\n";
        let (root, problems) = parse(text);
        assert_eq!(problems, []);
        let Kind::Map(entries) = root.unwrap().kind else { panic!("a table") };
        assert_eq!(&text[entries[0].key_span.clone()], "ledger");
        assert_eq!(&text[entries[0].value.span.clone()], "\"x.db\"");
        let Kind::Map(executors) = &entries[1].value.kind else { panic!("a table") };
        assert_eq!(&text[executors[0].key_span.clone()], "claude");
        let Kind::Map(claude) = &executors[0].value.kind else { panic!("a table") };
        assert_eq!(claude[0].key, "kind");
        assert_eq!(claude[1].value.to_json(), serde_json::json!(["--print"]));
    }

    #[test]
    fn every_problem_has_a_place() {
        for (text, quoted) in [
            ("a = 1\na = 2\n", "a"),
            ("a = 99999999999999999999\n", "99999999999999999999"),
            ("a = inf\n", "inf"),
            ("a = \n", ""),
        ] {
            let (root, problems) = parse(text);
            assert!(root.is_none(), "{text}");
            assert_eq!(&text[problems[0].span.clone()], quoted, "{text}: {problems:?}");
        }
    }

    #[test]
    fn deep_nesting_is_a_problem_and_no_crash() {
        let deep = format!("a = {}{}", "[".repeat(60), "]".repeat(60));
        assert!(parse(&deep).0.is_none());
        let absurd = format!("a = {}", "[".repeat(100_000));
        assert!(!parse(&absurd).1.is_empty());
    }
}
