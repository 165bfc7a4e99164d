//! Why an answer does not fit its schema, phrased for the member that gave it: in the words of JSON Schema, which models
//! know best.

use quorate_manifest::json_schema::{Bound, ErrorKind, SchemaError};
use quorate_protocol::Json;

/// An error's place, as a JSON pointer, and its description.
pub(super) fn describe(answer: &Json, misfit: &SchemaError) -> (String, String) {
    let place = misfit.pointer().to_string();
    let value = answer.pointer(&place).unwrap_or(&Json::Null);
    let what = message(value, misfit);
    (place, what)
}

/// The complaint about a list with too many entries.
pub(super) fn too_many(items: usize, most: usize) -> String {
    format!("it has {items} items, and at most {most} are allowed; keep those that matter most")
}

fn message(value: &Json, misfit: &SchemaError) -> String {
    match &misfit.kind {
        ErrorKind::Type(wanted) => {
            let types: Vec<_> = wanted.types.iter().map(|one| format!("\"{}\"", one.as_str())).collect();
            format!("{value} is not of type {}", types.join(" or "))
        }
        ErrorKind::NotInEnum(values) => {
            let values: Vec<_> = values.iter().map(Json::to_string).collect();
            format!("{value} is not one of {}", values.join(", "))
        }
        ErrorKind::MissingKey(key) => format!("\"{key}\" is a required property"),
        ErrorKind::UnknownKey { key, .. } => format!("\"{key}\" is not expected here"),
        ErrorKind::OutOfBounds(bound) => match bound {
            Bound::Least(least) => format!("{value} is less than the minimum of {least}"),
            Bound::Most(most) => format!("{value} is greater than the maximum of {most}"),
            Bound::MoreThan(more) => format!("{value} is not greater than {more}"),
            Bound::ShortestText(_) | Bound::FewestItems(_) | Bound::FewestKeys(_) => {
                format!("{value} is too short")
            }
            Bound::LongestText(_) => format!("{value} is too long"),
            Bound::MostItems(most) => too_many(value.as_array().map_or(0, Vec::len), *most),
        },
        ErrorKind::Pattern { pattern, .. } => format!("{value} does not match \"{pattern}\""),
        ErrorKind::Duplicate { first, second } => format!("items {first} and {second} are the same"),
        ErrorKind::NoMatch(ways) => {
            let ways: Vec<String> = ways.iter().map(|way| message(value, way)).collect();
            format!("it has to be otherwise in one of these: {}", ways.join("; or "))
        }
        ErrorKind::MultipleMatches | ErrorKind::Forbidden => format!("{value} is not allowed here"),
    }
}
