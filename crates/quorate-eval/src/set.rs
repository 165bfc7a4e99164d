//! Sets of labelled texts: JSON Lines, CSV, Markdown files with a label, and the forms of promptfoo and Inspect.
//!
//! A label never becomes part of the text: it is taken out of the front matter of a Markdown file.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a text deserves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Label {
    Ship,
    Revise,
    Hold,
    /// It must not be published as it is; whether a revision would help is not said.
    Block,
}

impl Label {
    /// The label of a word, in any case.
    pub fn read(word: &str) -> Option<Label> {
        Some(match &*word.trim().to_lowercase() {
            "ship" | "pass" => Label::Ship,
            "revise" => Label::Revise,
            "hold" => Label::Hold,
            "block" | "stop" | "fail" => Label::Block,
            _ => return None,
        })
    }

    /// Whether a good judge stops the text.
    pub fn stops(self) -> bool {
        self != Label::Ship
    }
}

/// Where the text of a row is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file, relative to the set.
    Path(String),
    Text(String),
}

/// A defect that the label names.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelledDefect {
    /// Words of the text.
    pub quote: String,
    #[serde(default)]
    pub kind: Option<String>,
}

/// A labelled text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub id: String,
    pub source: Source,
    pub artifact_type: Option<String>,
    pub label: Label,
    pub defects: Vec<LabelledDefect>,
    /// Rows that resemble each other: versions of one text, texts of one author. Each row is its own cluster by default.
    pub cluster: String,
    /// Its line in the set, from 1.
    pub line: usize,
}

/// Why a set is refused, at a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SetError {
    /// From 1.
    pub line: usize,
    pub message: String,
}

fn refused(line: usize, message: impl Into<String>) -> SetError {
    SetError { line, message: message.into() }
}

/// Reads JSON Lines: `{"id": …, "path" or "text": …, "type"?, "label": …, "defects"?: [{"quote": …, "kind"?}], "cluster"?}`. Rows of
/// promptfoo (`vars`, `assert`) and of Inspect (`input`, `target`) are read as well.
///
/// # Errors
/// At the first line that is not a row, and at an id that an earlier line has.
pub fn from_json_lines(text: &str) -> Result<Vec<Row>, SetError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let rows = lines.map(|(at, line)| {
        let object: Map<String, Value> = serde_json::from_str(line)
            .map_err(|error| refused(at + 1, format!("this is not a JSON object: {error}")))?;
        row(at + 1, object)
    });
    with_own_ids(rows.collect::<Result<_, _>>()?)
}

/// Reads CSV with a header: `path` or `text`, `label`, and `id`, `type` and `cluster` where they are known. promptfoo's
/// `__expected` is read as the label.
///
/// # Errors
/// As [`from_json_lines`].
pub fn from_csv(text: &str) -> Result<Vec<Row>, SetError> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::Headers).from_reader(text.as_bytes());
    let unreadable = |error: csv::Error| {
        let line = error.position().map_or(1, |position| position.line() as usize);
        refused(line, format!("this is not CSV: {error}"))
    };
    let names = reader.headers().map_err(unreadable)?.clone();
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(unreadable)?;
        let line = record.position().map_or(1, |position| position.line() as usize);
        let cells = names.iter().zip(&record).filter(|(_, cell)| !cell.is_empty());
        let mut object: Map<String, Value> =
            cells.map(|(name, cell)| (name.to_owned(), Value::from(cell))).collect();
        if let Some(expected) = object.remove("__expected") {
            object.insert("label".to_owned(), expected);
        }
        rows.push(row(line, object)?);
    }
    with_own_ids(rows)
}

/// Reads a Markdown file whose front matter has `label:`, and may have `id:`, `type:` and `cluster:`. `path` is its id and cluster
/// where it has none. These lines are not part of the text.
///
/// # Errors
/// If there is no label, or it is unknown.
pub fn from_markdown(path: &str, text: &str) -> Result<Row, SetError> {
    let mut object = Map::from_iter([("id".to_owned(), Value::from(path))]);
    let mut kept = String::with_capacity(text.len());
    let mut is_front_matter = text.starts_with("---\n") || text.starts_with("---\r\n");
    let mut last_line = 1;
    for (at, line) in text.split_inclusive('\n').enumerate() {
        if is_front_matter && at > 0 {
            if line.trim_end() == "---" {
                is_front_matter = false;
            } else if let Some((key, value)) = line.split_once(':')
                && ["label", "id", "type", "cluster"].contains(&key)
            {
                let value = value.trim().trim_matches(['"', '\'']);
                object.insert(key.to_owned(), value.into());
                last_line = at + 1;
                continue;
            }
        }
        kept.push_str(line);
    }
    // A front matter that had nothing else is gone with its lines.
    let kept = kept.strip_prefix("---\n---\n").map_or(kept.as_str(), str::trim_start).to_owned();
    object.insert("text".to_owned(), kept.into());
    let mut row = row(last_line, object)?;
    row.line = last_line;
    Ok(row)
}

/// A set to start from, as JSON Lines: 20 short texts, of which ten have a labelled defect.
pub const STARTER: &str = include_str!("starter.jsonl");

fn with_own_ids(rows: Vec<Row>) -> Result<Vec<Row>, SetError> {
    let mut ids = BTreeSet::new();
    match rows.iter().find(|row| !ids.insert(&row.id)) {
        Some(row) => Err(refused(row.line, format!("an earlier line has the id `{}`", row.id))),
        None => Ok(rows),
    }
}

fn row(line: usize, mut object: Map<String, Value>) -> Result<Row, SetError> {
    from_other_tools(&mut object);
    let mut text = |key: &str| match object.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(Value::Number(number)) if key == "id" => Ok(Some(number.to_string())),
        Some(_) => Err(refused(line, format!("`{key}` is not a text"))),
    };
    let id = text("id")?.unwrap_or_else(|| line.to_string());
    let source = match (text("path")?, text("text")?) {
        (Some(path), None) => Source::Path(path),
        (None, Some(text)) => Source::Text(text),
        (None, None) => return Err(refused(line, "the row has neither `path` nor `text`")),
        (Some(_), Some(_)) => return Err(refused(line, "the row has both `path` and `text`")),
    };
    let word = text("label")?.ok_or_else(|| refused(line, "the row has no `label`"))?;
    let label = Label::read(&word).ok_or_else(|| {
        refused(line, format!("`{word}` is not a label: write ship, revise, hold or block"))
    })?;
    let (artifact_type, cluster) = (text("type")?, text("cluster")?);
    let defects = match object.remove("defects") {
        None | Some(Value::Null) => Vec::new(),
        Some(listed) => serde_json::from_value(listed)
            .map_err(|error| refused(line, format!("`defects` is not a list of {{quote, kind}}: {error}")))?,
    };
    if let Some(unknown) = object.keys().next() {
        return Err(refused(line, format!("the row has the unknown key `{unknown}`")));
    }
    Ok(Row {
        cluster: cluster.unwrap_or_else(|| id.clone()),
        id,
        source,
        artifact_type,
        label,
        defects,
        line,
    })
}

/// Gives rows of promptfoo and Inspect the keys of ours. What else they have is not read.
fn from_other_tools(object: &mut Map<String, Value>) {
    let own = if object.contains_key("input") && object.contains_key("target") {
        let own = [
            ("text", object.remove("input")),
            ("label", object.remove("target")),
            ("id", object.remove("id")),
        ];
        let cluster = object.get("metadata").and_then(|metadata| metadata.get("cluster")).cloned();
        own.into_iter().chain([("cluster", cluster)]).collect::<Vec<_>>()
    } else if let Some(Value::Object(vars)) = object.get("vars") {
        let asserted = object.get("assert").and_then(Value::as_array).and_then(|all| all.first());
        let label = asserted.and_then(|assertion| assertion.get("value")).cloned();
        let keys = ["id", "path", "text", "type", "cluster"];
        let own = keys.into_iter().map(|key| (key, vars.get(key).cloned()));
        own.chain([("label", label)]).collect()
    } else {
        return;
    };
    let own = own.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    *object = own.collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(rows: Result<Vec<Row>, SetError>) -> Row {
        let mut rows = rows.expect("the set is valid");
        assert_eq!(rows.len(), 1);
        rows.remove(0)
    }

    #[test]
    fn every_form_gives_the_same_row() {
        let forms = [
            from_json_lines(r#"{"id": "a", "text": "Ten.", "label": "Ship", "cluster": "c"}"#),
            from_json_lines(
                "\n\n{\"id\": \"a\", \"input\": \"Ten.\", \"target\": \"ship\", \"metadata\": {\"cluster\": \"c\", \"x\": 1}}\n",
            ),
            from_json_lines(
                r#"{"vars": {"id": "a", "text": "Ten.", "cluster": "c"}, "assert": [{"type": "equals", "value": "ship"}]}"#,
            ),
            from_csv("id,text,label,cluster\na,Ten.,ship,c\n"),
            from_csv("id,text,__expected,cluster\na,Ten.,SHIP,c\n"),
            from_markdown("a", "---\nlabel: ship\ncluster: c\n---\nTen.").map(|row| vec![row]),
        ];
        for (at, form) in forms.into_iter().enumerate() {
            let row = only(form);
            assert_eq!((&*row.id, row.label, &*row.cluster), ("a", Label::Ship, "c"), "form {at}");
            assert_eq!(row.source, Source::Text("Ten.".to_owned()), "form {at}");
        }
    }

    #[test]
    fn the_starter_set_is_valid_and_quotes_its_texts() {
        let rows = from_json_lines(STARTER).expect("a set");
        assert_eq!((rows.len(), rows.iter().filter(|row| row.label.stops()).count()), (20, 10));
        for row in rows {
            let Source::Text(text) = &row.source else { panic!("{} has a path", row.id) };
            assert_eq!(row.label.stops(), !row.defects.is_empty(), "{}", row.id);
            assert!(row.defects.iter().all(|defect| text.contains(&defect.quote)), "{}", row.id);
        }
    }

    #[test]
    fn defects_paths_and_defaults() {
        let row = only(from_json_lines(
            r#"{"path": "a.md", "label": "block", "type": "post", "defects": [{"quote": "best", "kind": "boast"}, {"quote": "ever"}]}"#,
        ));
        assert_eq!((row.id.as_str(), row.cluster.as_str(), row.line), ("1", "1", 1));
        assert_eq!(
            (row.source, row.artifact_type.as_deref()),
            (Source::Path("a.md".to_owned()), Some("post"))
        );
        assert_eq!((row.defects.len(), row.defects[1].kind.as_ref()), (2, None));
        assert!(row.label.stops() && !Label::Ship.stops());
    }

    #[test]
    fn a_label_is_taken_out_of_a_file() {
        let row =
            from_markdown("a.md", "---\ntitle: T\nlabel: hold\n---\n# T\n\nlabel: ship\n").expect("a row");
        assert_eq!(row.source, Source::Text("---\ntitle: T\n---\n# T\n\nlabel: ship\n".to_owned()));
        assert_eq!((row.label, row.line), (Label::Hold, 3));
    }

    #[test]
    fn a_refused_row_names_its_line() {
        for (text, line, said) in [
            ("{\"text\": \"a\", \"label\": \"ship\"}\nnonsense", 2, "not a JSON object"),
            ("[1]", 1, "not a JSON object"),
            ("{\"text\": \"a\"}", 1, "no `label`"),
            ("{\"label\": \"ship\"}", 1, "neither `path` nor `text`"),
            ("{\"text\": \"a\", \"path\": \"b\", \"label\": \"ship\"}", 1, "both"),
            ("{\"text\": \"a\", \"label\": \"good\"}", 1, "`good` is not a label"),
            ("{\"text\": 1, \"label\": \"ship\"}", 1, "`text` is not a text"),
            ("{\"text\": \"a\", \"label\": \"ship\", \"lable\": \"x\"}", 1, "unknown key `lable`"),
            ("{\"text\": \"a\", \"label\": \"ship\", \"defects\": [\"x\"]}", 1, "`defects`"),
            (
                "{\"id\": \"x\", \"text\": \"a\", \"label\": \"ship\"}\n{\"id\": \"x\", \"text\": \"b\", \"label\": \"ship\"}",
                2,
                "an earlier line has the id `x`",
            ),
        ] {
            let error = from_json_lines(text).expect_err(text);
            assert_eq!(error.line, line, "{text}: {error}");
            assert!(error.message.contains(said), "{text}: {error}");
        }
        assert_eq!(from_csv("text,label\na,ship\nb\n").expect_err("too few cells").line, 3);
        assert!(from_markdown("a.md", "# No label\n").is_err());
    }
}
