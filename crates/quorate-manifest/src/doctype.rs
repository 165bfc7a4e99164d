//! Doctypes: the kinds of manifest files, how the doctype of a file is detected (M0: by its `schema`, then its name, then its
//! keys), and the JSON Schema (2020-12) of each, generated from the Rust types of the manifests.

use std::sync::OnceLock;

use quorate_diagnostics::codes::{self, RefusalCode};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

use crate::json_schema::CompiledSchema;
use crate::tree::Node;
use crate::{assembly, config, council, operator, pattern, persona, playbook, runtime};

/// The accepted names of a council file.
pub const COUNCIL_FILES: [&str; 2] = ["council.yaml", "council.yml"];

/// The kind of a manifest file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Doctype {
    /// `assembly.workspace/v1`.
    Assembly,
    /// `persona/v1`.
    Persona,
    /// `playbooks/v1`.
    Playbook,
    /// `agentruntimes/v1`.
    Runtime,
    /// `OPERATOR.md`: an agent that playbooks and overlays are for.
    Operator,
    /// `role/v1`; the body is the role's text.
    Role,
    /// `council.yaml`.
    Council,
    /// `quorate.toml`.
    Config,
}

words!(Doctype {
    Assembly = "assembly",
    Persona = "persona",
    Playbook = "playbook",
    Runtime = "runtime",
    Operator = "operator",
    Role = "role",
    Council = "council",
    Config = "quorate.toml",
});

impl Doctype {
    /// The value of the key `schema`, the normative file name, and the code of schema errors.
    const fn facts(self) -> (Option<&'static str>, Option<&'static str>, RefusalCode) {
        use codes::{COUNCIL_INVALID, HOST_INVALID, OPERATOR_INVALID, PERSONA_INVALID, PLAYBOOK_INVALID};
        let assembly_invalid = codes::ASSEMBLY_WORKSPACE_INVALID;
        match self {
            Doctype::Assembly => (Some("assembly.workspace/v1"), Some("ASSEMBLY.md"), assembly_invalid),
            Doctype::Persona => (Some("persona/v1"), Some("PERSONA.md"), PERSONA_INVALID),
            Doctype::Playbook => (Some("playbooks/v1"), None, PLAYBOOK_INVALID),
            Doctype::Runtime => (Some("agentruntimes/v1"), None, codes::RUNTIME_INVALID),
            Doctype::Operator => (None, Some("OPERATOR.md"), OPERATOR_INVALID),
            Doctype::Role => (Some("role/v1"), None, OPERATOR_INVALID),
            Doctype::Council => (None, Some("council.yaml"), COUNCIL_INVALID),
            Doctype::Config => (None, Some("quorate.toml"), HOST_INVALID),
        }
    }

    /// The value of the key `schema`; `None` for doctypes without that key.
    pub fn schema_id(self) -> Option<&'static str> {
        self.facts().0
    }

    /// The normative file name (M1); `None` if any name is allowed.
    pub fn file_name(self) -> Option<&'static str> {
        self.facts().1
    }

    /// The code of schema errors.
    pub fn invalid_code(self) -> RefusalCode {
        self.facts().2
    }

    /// Whether the doctype follows from this file name: the normative name, or `council.yml`.
    pub fn is_named(self, name: &str) -> bool {
        self.file_name() == Some(name) || (self == Doctype::Council && COUNCIL_FILES.contains(&name))
    }
}

/// The doctype of a parsed file; `None` if neither `schema`, name nor keys determine it.
pub fn detect(name: &str, root: &Node) -> Option<Doctype> {
    from_schema(root).or_else(|| from_name(name)).or_else(|| from_keys(root))
}

/// By the file's name alone.
pub fn from_name(name: &str) -> Option<Doctype> {
    Doctype::ALL.into_iter().find(|doctype| doctype.is_named(name))
}

/// The doctype by a `schema:` line among the first 200 lines, for a text that cannot be parsed.
pub(crate) fn from_text(text: &str) -> Option<Doctype> {
    let declared = |line: &str| {
        let value = line.strip_prefix("schema:")?.trim().trim_matches(['"', '\'']).to_owned();
        Doctype::ALL.into_iter().find(|doctype| doctype.schema_id() == Some(&value))
    };
    text.lines().take(200).find_map(declared)
}

fn from_schema(root: &Node) -> Option<Doctype> {
    let schema = root.text_of("schema")?;
    Doctype::ALL.into_iter().find(|doctype| doctype.schema_id() == Some(schema))
}

fn from_keys(root: &Node) -> Option<Doctype> {
    let has = |key| root.key(key).is_some();
    if has("targets") || has("selector") {
        Some(Doctype::Playbook)
    } else if has("participants") {
        Some(Doctype::Runtime)
    } else if has("deliberators") {
        Some(Doctype::Council)
    } else {
        None
    }
}

/// The schema of a doctype; `None` for roles, which have only a body.
pub fn schema(doctype: Doctype) -> Option<Value> {
    Some(match doctype {
        Doctype::Assembly => generate::<assembly::Assembly>(),
        Doctype::Persona => generate::<persona::Persona>(),
        Doctype::Playbook => generate::<playbook::Playbook>(),
        Doctype::Runtime => generate::<runtime::Runtime>(),
        Doctype::Operator => generate::<operator::Operator>(),
        Doctype::Council => generate::<council::schema::Council>(),
        Doctype::Config => generate::<config::Configuration>(),
        Doctype::Role => return None,
    })
}

/// The schema of a doctype, compiled once for validation.
pub fn compiled_schema(doctype: Doctype) -> Option<&'static CompiledSchema> {
    static SCHEMAS: [OnceLock<Option<CompiledSchema>>; Doctype::ALL.len()] = [const { OnceLock::new() }; 8];
    SCHEMAS[doctype as usize].get_or_init(|| schema(doctype).as_ref().map(compile)).as_ref()
}

/// The schema of a part of a file, compiled.
pub fn compiled<T: JsonSchema>() -> CompiledSchema {
    compile(&generate::<T>())
}

fn compile(schema: &Value) -> CompiledSchema {
    CompiledSchema::parse(schema).expect("generated schemas use only supported keywords")
}

fn generate<T: JsonSchema>() -> Value {
    let mut schema =
        SchemaGenerator::new(SchemaSettings::draft2020_12()).into_root_schema_for::<T>().to_value();
    clean_up(&mut schema);
    schema
}

/// Adds `patternErrorMessage` to each pattern, and removes Rust-specific formats and defaults.
fn clean_up(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if let Some(text) = object.get("pattern").and_then(Value::as_str).and_then(pattern_description) {
                object.insert("patternErrorMessage".to_owned(), Value::from(text));
            }
            let is_rust_format = |format: &Value| matches!(format.as_str(), Some("uint8" | "uint32"));
            if object.get("format").is_some_and(is_rust_format) {
                object.remove("format");
            }
            object.remove("default");
            object.values_mut().for_each(clean_up);
        }
        Value::Array(items) => items.iter_mut().for_each(clean_up),
        _ => {}
    }
}

fn pattern_description(text: &str) -> Option<&'static str> {
    pattern::ALL.iter().find(|pattern| pattern.text == text).map(|pattern| pattern.says)
}
