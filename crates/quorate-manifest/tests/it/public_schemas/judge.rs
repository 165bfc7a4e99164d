//! Judges a document in four ways: with Quorate's reader and [`Form`], with a full validator on the public schema, with the
//! same validator on the published schema, and as a user's file.

use std::collections::{BTreeMap, HashSet};

use jsonschema::Validator;
use quorate_diagnostics::{Refusal, codes};
use quorate_manifest::capabilities::NoCapabilities;
use quorate_manifest::doctype::{self, Doctype};
use quorate_manifest::document;
use quorate_manifest::json_schema::{CompiledSchema, ErrorKind, SchemaError};
use quorate_manifest::loader::{Loader, Options, ReadResult};
use quorate_manifest::tree::{Kind, Node};
use quorate_manifest::workspace::{Memory, WorkspacePath};
use serde_json::Value;

use super::change::shrunk;
use super::deviations::{Deviation, reverted};
use super::text::{Style, read, without_nulls};
use super::typed::fills_its_type;

/// The maximum number of differences to show.
const SHOWN: usize = 6;

/// Judges documents of one doctype and counts the results.
pub(crate) struct Judge {
    doctype: Doctype,
    form: &'static CompiledSchema,
    ours: Validator,
    public: Option<Validator>,
    /// The number of documents that Quorate accepted.
    pub(crate) accepted: usize,
    /// The number of documents that Quorate refused.
    pub(crate) refused: usize,
    deviations: BTreeMap<&'static str, Count>,
    /// Descriptions of the differences.
    said: HashSet<String>,
    differences: Vec<String>,
}

/// The counts of a deviation.
#[derive(Debug, Default, Clone, Copy)]
struct Count {
    /// The number of documents with it.
    met: usize,
    /// The number of them that Quorate accepts and the public schema refuses.
    decided: usize,
    /// The number of those without another deviation.
    alone: usize,
}

/// The pairs of validators that must agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Validators {
    /// Quorate's reader, and the public schema on the document without deviations.
    UsAndPublic,
    /// Quorate's reader, and the validator on the published schema.
    UsAndOurSchema,
    /// The form and the validator, both on unchanged JSON.
    FormAndValidator,
}

/// A document and the variants that other validators get.
struct Case<'d> {
    document: &'d Value,
    /// Without keys that have no value.
    bare: Value,
    /// Without deviations.
    undone: Value,
    deviations: Vec<Deviation>,
}

impl Case<'_> {
    fn new(doctype: Doctype, document: &Value) -> Case<'_> {
        let bare = without_nulls(document);
        let (undone, mut deviations) = reverted(doctype, &bare);
        if bare != *document {
            deviations.push(Deviation::NullIsAbsent);
        }
        Case { document, bare, undone, deviations }
    }
}

impl Judge {
    /// A judge of a doctype; without a public schema only Quorate's own validators are compared.
    pub(crate) fn new(doctype: Doctype, public: Option<&Value>) -> Judge {
        let ours = doctype::schema(doctype).expect("a doctype with a schema");
        Judge {
            doctype,
            form: doctype::compiled_schema(doctype).expect("a doctype with a schema"),
            ours: validator(&ours),
            public: public.map(|schema| validator(&with_plain_digits(schema))),
            accepted: 0,
            refused: 0,
            deviations: BTreeMap::new(),
            said: HashSet::new(),
            differences: Vec::new(),
        }
    }

    /// The number of judged documents.
    pub(crate) fn judged(&self) -> usize {
        self.accepted + self.refused
    }

    /// Judges a document in all ways.
    pub(crate) fn judge(&mut self, document: &Value) {
        let style = if self.judged().is_multiple_of(3) { Style::Json } else { Style::Emitted };
        let case = Case::new(self.doctype, document);
        let (text, root) = read(document, &case.bare, style);
        let misfits = self.form.errors(&root);
        let accepted = misfits.is_empty();
        if accepted {
            self.accepted += 1;
            fills_its_type(self.doctype, &root);
        } else {
            self.refused += 1;
            self.check_messages(&text, &root, &misfits);
        }
        self.count(&case, accepted);
        for between in [Validators::UsAndPublic, Validators::UsAndOurSchema, Validators::FormAndValidator] {
            if self.differences.len() < SHOWN && self.differ(between, &case, accepted) {
                let again = |smaller: &Value| {
                    let case = Case::new(self.doctype, smaller);
                    let accepted = self.form.is_valid(&read(smaller, &case.bare, Style::Json).1);
                    self.differ(between, &case, accepted)
                };
                let difference = self.difference(between, &shrunk(document, again));
                if !self.differences.contains(&difference) {
                    self.differences.push(difference);
                }
            }
        }
    }

    fn count(&mut self, case: &Case<'_>, accepted: bool) {
        let Some(public) = self.public.as_ref().filter(|_| !case.deviations.is_empty()) else { return };
        let decided = accepted && !public.is_valid(case.document);
        for deviation in &case.deviations {
            let count = self.deviations.entry(deviation.description()).or_default();
            count.met += 1;
            count.decided += usize::from(decided);
            count.alone += usize::from(decided && case.deviations.len() == 1);
        }
    }

    /// Whether two validators differ on a document; `accepted` is the result of Quorate's reader.
    fn differ(&self, between: Validators, case: &Case<'_>, accepted: bool) -> bool {
        match between {
            Validators::UsAndPublic => {
                self.public.as_ref().is_some_and(|public| public.is_valid(&case.undone) != accepted)
            }
            Validators::UsAndOurSchema => self.ours.is_valid(&case.bare) != accepted,
            Validators::FormAndValidator => {
                self.form.is_valid(case.document) != self.ours.is_valid(case.document)
            }
        }
    }

    fn difference(&self, between: Validators, document: &Value) -> String {
        let case = Case::new(self.doctype, document);
        let ours = match between {
            Validators::FormAndValidator => self.form.errors(document),
            _ => self.form.errors(&read(document, &case.bare, Style::Json).1),
        };
        let (validator, judged) = match (between, &self.public) {
            (Validators::UsAndPublic, Some(public)) => (public, &case.undone),
            (Validators::FormAndValidator, _) => (&self.ours, document),
            _ => (&self.ours, &case.bare),
        };
        let ours: Vec<String> =
            ours.iter().map(|misfit| format!("{} {:?}", misfit.pointer(), misfit.kind)).collect();
        let theirs: Vec<String> =
            validator.iter_errors(judged).map(|error| format!("{} {error}", error.instance_path())).collect();
        format!("{between:?} differ on {document}\n  we:        {ours:?}\n  validator: {theirs:?}")
    }

    /// Checks that each refusal names the file that contains the error, with a message and a place.
    fn check_messages(&mut self, text: &str, root: &Node, misfits: &[SchemaError]) {
        // Checks each message once.
        if !misfits.iter().any(|misfit| self.said.insert(format!("{misfit:?}"))) {
            return;
        }
        // Layers are never TOML; the messages are the same.
        let name = self.doctype.file_name().filter(|name| !name.ends_with(".toml")).unwrap_or("it.md");
        let file = if name.ends_with(".yaml") { text.to_owned() } else { format!("---\n{text}\n---\n") };
        let workspace = Memory::new().with(name, file);
        let loader = Loader::new(&workspace, &NoCapabilities, Options::default());
        let ReadResult::Document(document) =
            loader.read(&WorkspacePath::new(name).expect("a name"), self.doctype)
        else {
            panic!("the file is there");
        };
        let refusals = &document.report.refusals;
        // A misspelt key is refused in addition to the schema's errors (M3).
        let slips = document::misspelt(self.doctype, root).len();
        assert_eq!(refusals.len(), misfits.len() + slips, "each misfit is one refusal\n{text}");
        // Only errors of the whole manifest have no path.
        let whole = |misfit: &&SchemaError| {
            misfit.path.is_empty()
                && !matches!(misfit.kind, ErrorKind::MissingKey(_) | ErrorKind::UnknownKey { .. })
        };
        let unpathed = refusals
            .iter()
            .filter(|refusal| refusal.body.place.as_ref().is_none_or(|place| place.path.is_empty()));
        assert_eq!(unpathed.count(), misfits.iter().filter(whole).count(), "{refusals:?}\n{text}");
        // A file that is not a mapping is refused before its schema is checked.
        let manifest = matches!(root.kind, Kind::Map(_) | Kind::Null);
        for Refusal { code, body } in refusals {
            let place = body.place.as_ref().expect("a place");
            let placed = document.text.get(place.span.clone()).is_some();
            let coded = *code == if manifest { self.doctype.invalid_code() } else { codes::SYNTAX };
            let said = [Some(&body.message), body.help.as_ref()];
            let well_said = said.into_iter().flatten().all(|sentence| is_sentence(sentence));
            if !(placed && coded && well_said) && self.differences.len() < SHOWN {
                self.differences.push(format!("unclear message: {body:?}\n{text}"));
            }
        }
    }

    /// Prints the counts, and fails on any difference.
    pub(crate) fn agree(&self) {
        let name = self.doctype.as_str();
        println!("{name}: {} documents, {} accepted, {} refused", self.judged(), self.accepted, self.refused);
        for (says, Count { met, decided, alone }) in &self.deviations {
            println!("  {says:<28} met {met:>5}, decided {decided:>5}, alone {alone:>5}");
        }
        assert!(self.differences.is_empty(), "{name}\n{}", self.differences.join("\n"));
    }

    /// Like [`Judge::agree`]; also fails if too few documents were judged.
    pub(crate) fn conclude(&self) {
        self.agree();
        let name = self.doctype.as_str();
        for deviation in Deviation::ALL
            .into_iter()
            .filter(|deviation| self.public.is_some() && deviation.concerns(self.doctype))
        {
            let count = self.deviations.get(deviation.description()).copied().unwrap_or_default();
            assert!(count.alone > 0, "{name}: nothing shows what {deviation:?} does");
        }
        let share = |part: usize| part * 100 / self.judged();
        assert!(share(self.accepted) >= 15, "{name}: only {} accepted", self.accepted);
        assert!(share(self.refused) >= 15, "{name}: only {} refused", self.refused);
    }
}

pub(crate) fn validator(schema: &Value) -> Validator {
    // `format` is an annotation (M2).
    let options = jsonschema::draft202012::options().should_validate_formats(false);
    options.build(schema).expect("a schema that the validator knows")
}

/// The schema with `[0-9]` for `\d` in its patterns. To ECMA-262 they are the same; in a pattern with a look-ahead the
/// validator takes the digits of all scripts for `\d`.
pub(crate) fn with_plain_digits(schema: &Value) -> Value {
    match schema {
        Value::Object(entries) => Value::Object(
            entries
                .iter()
                .map(|(key, value)| match value {
                    Value::String(pattern) if key == "pattern" => {
                        (key.clone(), Value::from(pattern.replace("\\d", "[0-9]")))
                    }
                    other => (key.clone(), with_plain_digits(other)),
                })
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(with_plain_digits).collect()),
        other => other.clone(),
    }
}

/// Whether a text is one line without empty placeholders.
fn is_sentence(text: &str) -> bool {
    let mut outside = String::new();
    for (at, part) in text.split('`').enumerate() {
        outside.push_str(if at % 2 == 0 {
            part
        } else if part.is_empty() {
            " , "
        } else {
            "x"
        });
    }
    let holes = ["  ", " ,", " ;", " :", "be not", "be or"];
    !holes.iter().any(|hole| outside.contains(hole))
        && !text.contains('\n')
        && text.trim() == text
        && !text.is_empty()
}
