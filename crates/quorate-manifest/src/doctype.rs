//! Doctypes: the kinds of manifest files (M0), and the schema of each.

mod detect;
mod schema;

pub(crate) use detect::from_text;
pub use detect::{detect, from_name};
pub use schema::{compiled_schema, schema};

use quorate_diagnostics::codes::{self, RefusalCode};

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
    Operator,
    /// `role/v1`; the body is the role's text.
    Role,
    Council,
    Config,
}

impl Doctype {
    pub const ALL: [Doctype; 8] = [
        Doctype::Assembly,
        Doctype::Persona,
        Doctype::Playbook,
        Doctype::Runtime,
        Doctype::Operator,
        Doctype::Role,
        Doctype::Council,
        Doctype::Config,
    ];

    /// The name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Doctype::Assembly => "assembly",
            Doctype::Persona => "persona",
            Doctype::Playbook => "playbook",
            Doctype::Runtime => "runtime",
            Doctype::Operator => "operator",
            Doctype::Role => "role",
            Doctype::Council => "council",
            Doctype::Config => "quorate.toml",
        }
    }

    /// The value of the key `schema`; `None` for doctypes without that key.
    pub fn schema_id(self) -> Option<&'static str> {
        match self {
            Doctype::Assembly => Some("assembly.workspace/v1"),
            Doctype::Persona => Some("persona/v1"),
            Doctype::Playbook => Some("playbooks/v1"),
            Doctype::Runtime => Some("agentruntimes/v1"),
            Doctype::Role => Some("role/v1"),
            Doctype::Operator | Doctype::Council | Doctype::Config => None,
        }
    }

    /// The normative file name (M1); `None` if any name is allowed.
    pub fn file_name(self) -> Option<&'static str> {
        match self {
            Doctype::Assembly => Some("ASSEMBLY.md"),
            Doctype::Persona => Some("PERSONA.md"),
            Doctype::Operator => Some("OPERATOR.md"),
            Doctype::Council => Some("council.yaml"),
            Doctype::Config => Some("quorate.toml"),
            Doctype::Playbook | Doctype::Runtime | Doctype::Role => None,
        }
    }

    /// Whether the doctype follows from this file name: the normative name, or `council.yml`.
    pub fn is_named(self, name: &str) -> bool {
        self.file_name() == Some(name) || (self == Doctype::Council && COUNCIL_FILES.contains(&name))
    }

    /// The code of schema errors.
    pub fn invalid_code(self) -> RefusalCode {
        match self {
            Doctype::Assembly => codes::ASSEMBLY_WORKSPACE_INVALID,
            Doctype::Persona => codes::PERSONA_INVALID,
            Doctype::Playbook => codes::PLAYBOOK_INVALID,
            Doctype::Runtime => codes::RUNTIME_INVALID,
            Doctype::Operator | Doctype::Role => codes::OPERATOR_INVALID,
            Doctype::Council => codes::COUNCIL_INVALID,
            Doctype::Config => codes::HOST_INVALID,
        }
    }
}
