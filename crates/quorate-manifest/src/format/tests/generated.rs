//! Formatting of generated texts: any valid YAML parses to the same tree afterwards.

use proptest::prelude::*;

use super::super::{Order, format, format_yaml, frontmatter};
use crate::format;
use crate::tree::{Kind, Node, yaml};

const ORDER: Order = Order::new(&[
    ("", "a b c d"),
    ("a", "d c b a"),
    ("b", "d c b a"),
    ("a[]", "b a"),
    ("b[]", "b a"),
    ("d[]", "b a"),
    ("a.b", "c a"),
    ("b.a", "c a"),
    ("c.a", "c a"),
    ("a[].c", "b d"),
    ("b[].a", "b d"),
]);

/// The value of a key or a dash.
#[derive(Debug, Clone)]
enum Value {
    /// Text behind a key; `@` stands for the indentation of its further lines.
    Text(String),
    /// Text on a line of its own.
    Below(String),
    Map(Vec<(Surroundings, &'static str, Value)>),
    List(Vec<(Surroundings, Value)>),
}

/// What stands around an entry.
#[derive(Debug, Clone)]
struct Surroundings {
    /// Empty lines, or comments with how deep they stand, above.
    above: Vec<Option<usize>>,
    /// The blanks behind the colon or dash.
    blanks: usize,
    /// Whether a comment is beside the text, or beside the key.
    beside: bool,
    /// Comments below all of it.
    below: Vec<Option<usize>>,
}

/// How a text is written.
#[derive(Debug, Clone, Copy)]
struct Style {
    step: usize,
    list: usize,
    crlf: bool,
}

struct Writer {
    out: String,
    style: Style,
    comments: usize,
}

impl Writer {
    fn comment(&mut self) {
        self.comments += 1;
        let text = if self.comments.is_multiple_of(5) { "- item" } else { "word" };
        self.out.push_str(&format!("# {text} {}", self.comments));
    }

    fn lines(&mut self, lines: &[Option<usize>]) {
        for line in lines {
            if let Some(column) = line {
                self.pad(*column);
                self.comment();
            }
            self.out.push('\n');
        }
    }

    fn pad(&mut self, indent: usize) {
        self.out.push_str(&" ".repeat(indent));
    }

    fn value(&mut self, value: &Value, around: &Surroundings, indent: usize, dash: bool) {
        let deeper = indent + self.style.step;
        let text = |text: &str| text.replace('@', &" ".repeat(deeper));
        match value {
            Value::Text(written) => {
                self.pad(around.blanks);
                self.out.push_str(&text(written));
                self.beside(around.beside && !written.starts_with(['|', '>']));
            }
            Value::Below(written) => {
                self.beside(around.beside);
                self.pad(deeper);
                self.out.push_str(&text(written));
                self.out.push('\n');
            }
            Value::Map(entries) if dash && !around.beside => {
                self.pad(around.blanks);
                self.map(entries, indent + 1 + around.blanks, true);
            }
            Value::Map(entries) => {
                self.beside(around.beside);
                self.map(entries, deeper, false);
            }
            Value::List(items) => {
                self.beside(around.beside);
                let indent = indent + if dash { self.style.step } else { self.style.list };
                for (around, value) in items {
                    self.lines(&around.above);
                    self.pad(indent);
                    self.out.push('-');
                    self.value(value, around, indent, true);
                    self.lines(&around.below);
                }
            }
        }
    }

    fn map(&mut self, entries: &[(Surroundings, &'static str, Value)], indent: usize, on_line: bool) {
        for (at, (around, key, value)) in entries.iter().enumerate() {
            if at > 0 || !on_line {
                self.lines(&around.above);
                self.pad(indent);
            }
            self.out.push_str(key);
            self.out.push(':');
            self.value(value, around, indent, false);
            self.lines(&around.below);
        }
    }

    fn beside(&mut self, comment: bool) {
        if comment {
            self.out.push_str("  ");
            self.comment();
        }
        self.out.push('\n');
    }
}

fn written(entries: &[(Surroundings, &'static str, Value)], style: Style) -> String {
    let mut writing = Writer { out: String::new(), style, comments: 0 };
    writing.map(entries, 0, false);
    if style.crlf { writing.out.replace('\n', "\r\n") } else { writing.out }
}

fn around() -> impl Strategy<Value = Surroundings> {
    let lines = || prop::collection::vec(prop::option::weighted(0.6, 0..7_usize), 0..3);
    let sparse = || prop_oneof![3 => Just(Vec::new()), 1 => lines()];
    (sparse(), 1..4_usize, prop::bool::weighted(0.2), sparse())
        .prop_map(|(above, blanks, beside, below)| Surroundings { above, blanks, beside, below })
}

fn text() -> impl Strategy<Value = Value> {
    let texts = [
        "1",
        "x y",
        "\"q # no\"",
        "'s'",
        "~",
        "",
        "[p, q]",
        "{ p: 1,q: [2] }",
        "x\n@y\n\n@  z",
        "'x  \n@ y'",
        "\"x \\\n@  y\"",
        "[p,  \n\n\n@q\n@]",
        "{p: \"r\n\n\n@s\",\n@q: 1}",
        "[ # within\n@p]",
        "[p,\n@q\n]",
        "|\n@x\n@  y  \n\n@z",
        ">-\n@x\n\n@# z\n",
        "|+\n@x\n\n",
        "|+\n\n",
        "|",
        "|-\n\n@x\n@ \n\n",
        ">2\n@ x",
        "|1-\n@x",
        "äö",
    ];
    let below = ["x", "x\n@y", "\"x\n@  y\"", "[p,\n@ q]", "|\n@x"];
    prop_oneof![
        5 => prop::sample::select(texts.to_vec()).prop_map(|text| Value::Text(text.to_owned())),
        1 => prop::sample::select(below.to_vec()).prop_map(|text| Value::Below(text.to_owned())),
    ]
}

fn entries<S: Strategy<Value = Value> + Clone + 'static>(
    value: S,
) -> impl Strategy<Value = Vec<(Surroundings, &'static str, Value)>> {
    let keys = prop::sample::subsequence(vec!["a", "b", "c", "d", "\"e f\"", "g"], 1..5).prop_shuffle();
    keys.prop_flat_map(move |keys| {
        let entries: Vec<_> = keys.into_iter().map(|key| (around(), Just(key), value.clone())).collect();
        entries
    })
}

fn value() -> impl Strategy<Value = Value> + Clone {
    text().boxed().prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            2 => entries(inner.clone()).prop_map(Value::Map),
            2 => prop::collection::vec((around(), inner), 1..4).prop_map(Value::List),
        ]
    })
}

fn style() -> impl Strategy<Value = Style> {
    (prop::sample::select(vec![2, 4]), prop::sample::select(vec![0, 2, 4]), any::<bool>())
        .prop_map(|(step, list, crlf)| Style { step, list, crlf })
}

/// The value with the keys of each mapping sorted.
fn sorted(node: &Node) -> String {
    match &node.kind {
        Kind::Map(entries) => {
            let mut entries: Vec<_> =
                entries.iter().map(|entry| format!("{}: {}", entry.key, sorted(&entry.value))).collect();
            entries.sort();
            format!("{{{}}}", entries.join(", "))
        }
        Kind::Seq(items) => format!("{:?}", items.iter().map(sorted).collect::<Vec<_>>()),
        kind => format!("{kind:?}"),
    }
}

/// Each comment with what is before it in its line, but for indentation and spacing.
fn beside(text: &str) -> Vec<(String, &str)> {
    let parts = text.lines().filter_map(|line| line.split_once('#'));
    let mut parts: Vec<_> =
        parts.map(|(before, comment)| (before.replace([' ', '-'], ""), comment)).collect();
    parts.sort_unstable();
    parts
}

fn keys(node: &Node) -> Vec<&str> {
    let Kind::Map(entries) = &node.kind else { return Vec::new() };
    entries.iter().map(|entry| entry.key.as_str()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_formatted_says_the_same(entries in entries(value()), style in style(), markdown in any::<bool>()) {
        let text = written(&entries, style);
        let (root, problems) = yaml::parse(&text);
        let Some(root) = root.filter(|_| problems.is_empty()) else {
            prop_assert!(format(&text, &ORDER).is_err());
            return Ok(());
        };
        let Ok(Some(formatted)) = format_yaml(&text, &ORDER) else { panic!("it is left alone: {text}") };
        let again = yaml::parse(&formatted).0.expect("it still is");

        prop_assert_eq!(sorted(&root), sorted(&again), "{}", formatted);
        prop_assert_eq!(format::comments_of(&text), format::comments_of(&formatted), "{}", formatted);
        prop_assert_eq!(&format(&formatted, &ORDER).expect("it still is"), &formatted);

        prop_assert_eq!(beside(&text), beside(&formatted), "{}", formatted);
        if !text.contains(['|', '>', '"', '\'']) {
            prop_assert!(!formatted.contains("\n\n\n") && !formatted.contains(" \n"), "{}", formatted);
        }

        let order: Vec<_> = ["a", "b", "c", "d"].into_iter().filter(|key| keys(&root).contains(key)).collect();
        prop_assert_eq!(&keys(&again)[..order.len()], &order[..]);
        if markdown {
            let wrapped = format!("---\n{text}---\nText\r\n\r\n");
            prop_assert_eq!(frontmatter(&wrapped, &ORDER), Ok(format!("---\n{formatted}---\nText\r\n")));
        }
    }
}
