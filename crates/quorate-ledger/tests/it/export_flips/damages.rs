//! Structured damages of exports and proofs: fields that are absent, null or of another type; lines that are missing,
//! duplicated, moved or added. Counts and hash of the last line are updated, so that they do not reveal the damage.
#![allow(dead_code, reason = "each test binary uses some of it")]

use quorate_kernel::canonical;
use quorate_kernel::entropy::sha256_hex;
use serde_json::{Value, json};

/// A damaged document and its damage.
pub(crate) struct Damaged {
    pub(crate) what: String,
    pub(crate) text: String,
}

/// Every damage of an export.
pub(crate) fn damaged_exports(text: &str) -> Vec<Damaged> {
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let mut all = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        for (what, changed) in damaged_values(line, "") {
            let mut damaged = lines.clone();
            damaged[at] = changed;
            let fits = at + 1 < lines.len();
            all.push(Damaged { what: format!("line {at}: {what}"), text: written(&damaged, fits) });
        }
    }
    for (what, damaged) in damaged_lines(&lines) {
        all.push(Damaged {
            what: format!("{what}, with a last line that fits"),
            text: written(&damaged, true),
        });
        all.push(Damaged { what, text: written(&damaged, false) });
    }
    all.extend(damaged_texts(text));
    all.retain(|damaged| damaged.text != text);
    all
}

/// Every damage of a proof.
pub(crate) fn damaged_proofs(text: &str) -> Vec<Damaged> {
    let proof: Value = serde_json::from_str(text).expect("JSON");
    let damaged = damaged_values(&proof, "").into_iter();
    let damaged = damaged.map(|(what, changed)| Damaged { what, text: line_of(&changed) });
    damaged.chain(damaged_texts(text)).filter(|damaged| damaged.text != text).collect()
}

/// An export or a proof without any signature over a record, and with an updated last line.
pub(crate) fn unsigned(text: &str) -> String {
    let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    for line in &mut lines {
        if line.get("signers").is_some() {
            line["signers"] = json!([]);
        }
        if line.get("signatures").is_some() {
            line["signatures"] = json!([]);
        }
        for record in line.get_mut("records").and_then(Value::as_array_mut).into_iter().flatten() {
            record["signatures"] = json!([]);
        }
    }
    written(&lines, true)
}

/// The lines of an export as a text; optionally with a last line with correct counts and hash.
fn written(lines: &[Value], fits: bool) -> String {
    let mut text = String::new();
    let counted = |key: &str| lines.iter().filter(|line| line.get(key).is_some()).count();
    let signed =
        lines.iter().filter_map(|line| line.get("signatures")?.as_array()).map(Vec::len).sum::<usize>();
    for line in lines {
        match line.get("end").is_some() && fits {
            true => {
                let sha256 = sha256_hex(text.as_bytes());
                let end = json!({"bodies": counted("body"), "records": counted("head"), "sha256": sha256, "signatures": signed});
                text += &line_of(&json!({"end": end}));
            }
            false => text += &line_of(line),
        }
    }
    text
}

fn line_of(value: &Value) -> String {
    canonical::text(value).expect("it can be written") + "\n"
}

/// A value with one change at any depth.
fn damaged_values(value: &Value, path: &str) -> Vec<(String, Value)> {
    let mut all: Vec<(String, Value)> =
        others(value).into_iter().map(|other| (format!("{path} is {other}"), other)).collect();
    match value {
        Value::Object(object) => {
            let mut more = object.clone();
            more.insert("zzz".into(), Value::Null);
            all.push((format!("{path} has one more"), Value::Object(more)));
            for (key, inner) in object {
                let mut less = object.clone();
                less.remove(key);
                all.push((format!("{path}/{key} is absent"), Value::Object(less)));
                for (what, changed) in damaged_values(inner, &format!("{path}/{key}")) {
                    let mut other = object.clone();
                    other.insert(key.clone(), changed);
                    all.push((what, Value::Object(other)));
                }
            }
        }
        Value::Array(array) => {
            for (what, changed) in damaged_arrays(array) {
                all.push((format!("{path} {what}"), Value::Array(changed)));
            }
            // The rest of a long list is like its start.
            for (at, inner) in array.iter().enumerate().take(3) {
                for (what, changed) in damaged_values(inner, &format!("{path}/{at}")) {
                    let mut other = array.clone();
                    other[at] = changed;
                    all.push((what, Value::Array(other)));
                }
            }
        }
        _ => {}
    }
    all
}

fn damaged_arrays(array: &[Value]) -> Vec<(&'static str, Vec<Value>)> {
    let with = |change: &dyn Fn(&mut Vec<Value>)| {
        let mut other = array.to_vec();
        change(&mut other);
        other
    };
    vec![
        ("is reversed", with(&|all| all.reverse())),
        ("lacks its first", with(&|all| drop(all.drain(..1.min(all.len()))))),
        ("lacks its last", with(&|all| drop(all.pop()))),
        ("has its first twice", with(&|all| all.extend(array.first().cloned()))),
        ("has null besides", with(&|all| all.push(Value::Null))),
        ("has a text besides", with(&|all| all.push(json!("x")))),
    ]
}

/// Replacements for a value.
fn others(value: &Value) -> Vec<Value> {
    let mut all =
        vec![Value::Null, json!(true), json!(0), json!(-1), json!(1.5), json!(""), json!([]), json!({})];
    match value {
        Value::String(text) => {
            all.extend(
                [text.to_uppercase(), format!("{text} "), format!("{text}\n"), format!("x{text}")]
                    .map(Value::from),
            );
            all.extend(text.char_indices().nth(1).map(|(at, _)| json!(text[at..])));
        }
        Value::Number(number) => {
            let number = number.as_i64().expect("small");
            all.extend([
                json!(number + 1),
                json!(number - 1),
                json!(1_u64 << 53),
                json!(number as f64 + 0.5),
            ]);
            all.push(json!(number.to_string()));
        }
        _ => {}
    }
    all.retain(|other| other != value);
    all
}

/// Lines that are missing, duplicated, moved, from another export, or added.
fn damaged_lines(lines: &[Value]) -> Vec<(String, Vec<Value>)> {
    let mut all = Vec::new();
    for at in 0..lines.len() {
        let mut less = lines.to_vec();
        let line = less.remove(at);
        all.push((format!("line {at} is missing"), less.clone()));
        let mut twice = lines.to_vec();
        twice.insert(at, line.clone());
        all.push((format!("line {at} stands twice"), twice));
        for to in [0, 1, at + 1, less.len().saturating_sub(1), less.len()] {
            let mut moved = less.clone();
            moved.insert(to.min(less.len()), line.clone());
            all.push((format!("line {at} stands at {to}"), moved));
        }
        for more in [json!({}), json!(null), json!([]), json!({"body": sha256_hex(b""), "text": ""})] {
            let mut added = lines.to_vec();
            added.insert(at, more.clone());
            all.push((format!("{more} before line {at}"), added));
        }
        let mut cut = lines[..at].to_vec();
        cut.extend(lines.last().cloned());
        all.push((format!("all from line {at} on is missing"), cut));
        let mut late = lines[..1].to_vec();
        late.extend_from_slice(&lines[at..]);
        all.push((format!("all up to line {at} is missing"), late));
    }
    let empty = json!({"path": [], "root": sha256_hex(b""), "size": 0});
    let mut from = lines.to_vec();
    from[0]["from"] = empty;
    all.push(("it starts after nothing".to_owned(), from));
    all
}

/// Other texts for the same values, and additional content.
fn damaged_texts(text: &str) -> Vec<Damaged> {
    let changes = [
        ("a mark at its beginning", format!("\u{feff}{text}")),
        ("a blank at its beginning", format!(" {text}")),
        ("a line end at its beginning", format!("\n{text}")),
        ("a line end at its end", format!("{text}\n")),
        ("a blank at its end", format!("{text} ")),
        ("no line end at its end", text.trim_end().to_owned()),
        ("line ends of Windows", text.replace('\n', "\r\n")),
        ("blanks after commas", text.replace(",\"", ", \"")),
        ("itself behind it", format!("{text}{text}")),
        ("an escaped letter", text.replacen("\"root\"", "\"\\u0072oot\"", 1)),
        ("a key twice", text.replacen('{', "{\"origin\":\"x\",", 1)),
        (
            "another version",
            text.replace("\"quorate_export\":1", "\"quorate_export\":2").replace("\"v\":1}", "\"v\":2}"),
        ),
    ];
    let changes = changes.into_iter().filter(|(_, changed)| changed != text);
    changes.map(|(what, text)| Damaged { what: what.to_owned(), text }).collect()
}
