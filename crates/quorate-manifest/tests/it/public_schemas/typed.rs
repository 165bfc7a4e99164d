//! What a schema accepts, its type can hold.

use quorate_manifest::assembly::Assembly;
use quorate_manifest::doctype::Doctype;
use quorate_manifest::operator::Operator;
use quorate_manifest::persona::Persona;
use quorate_manifest::playbook::Playbook;
use quorate_manifest::runtime::Runtime;
use quorate_manifest::tree::{Node, typed};

/// Reads a tree that fits its schema into its type.
pub(crate) fn fills_its_type(doctype: Doctype, root: &Node) {
    let read = match doctype {
        Doctype::Assembly => typed::<Assembly>(root).map(drop),
        Doctype::Persona => typed::<Persona>(root).map(drop),
        Doctype::Playbook => typed::<Playbook>(root).map(drop),
        Doctype::Runtime => typed::<Runtime>(root).map(drop),
        Doctype::Operator => typed::<Operator>(root).map(drop),
        Doctype::Role | Doctype::Council | Doctype::Host => return,
    };
    if let Err(error) = read {
        panic!("the schema accepts what the type cannot hold: {error}\n{}", root.to_json());
    }
}
