//! The type of a schema can represent every document that the schema accepts.

use quorate_manifest::assembly::Assembly;
use quorate_manifest::doctype::Doctype;
use quorate_manifest::operator::Operator;
use quorate_manifest::persona::Persona;
use quorate_manifest::playbook::Playbook;
use quorate_manifest::runtime::Runtime;
use quorate_manifest::tree::{Node, from_node};

/// Reads a tree that fits its schema into its type.
pub(crate) fn fills_its_type(doctype: Doctype, root: &Node) {
    let read = match doctype {
        Doctype::Assembly => from_node::<Assembly>(root).map(drop),
        Doctype::Persona => from_node::<Persona>(root).map(drop),
        Doctype::Playbook => from_node::<Playbook>(root).map(drop),
        Doctype::Runtime => from_node::<Runtime>(root).map(drop),
        Doctype::Operator => from_node::<Operator>(root).map(drop),
        Doctype::Role | Doctype::Council | Doctype::Config => return,
    };
    if let Err(error) = read {
        panic!("the schema accepts what the type cannot hold: {error}\n{}", root.to_json());
    }
}
