//! Classes as TypeScript interfaces.

use super::{Class, Field, Type};

const HEAD: &str = "// What commands print as JSON.
//
// Made from the schemas of `quorate schema`; CONTRIBUTING.md says how.
";

pub(super) fn module(classes: &[Class]) -> String {
    HEAD.to_owned() + &classes.iter().map(class).collect::<String>()
}

fn class(class: &Class) -> String {
    let about = comment(&class.about, "");
    let fields: String = class.fields.iter().map(field).collect();
    format!("\n{about}export interface {} {{\n{fields}}}\n", class.name)
}

fn field(field: &Field) -> String {
    let mark = if field.is_required { "" } else { "?" };
    format!("{}  readonly {}{mark}: {};\n", comment(&field.about, "  "), field.name, kind(&field.kind))
}

fn comment(text: &str, indent: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{indent}/** {} */\n", text.replace("*/", "* /")) }
}

fn kind(kind: &Type) -> String {
    match kind {
        Type::Text => "string".to_owned(),
        Type::Integer | Type::Number => "number".to_owned(),
        Type::Boolean => "boolean".to_owned(),
        Type::Null => "null".to_owned(),
        Type::Any => "unknown".to_owned(),
        Type::Object => "{ readonly [key: string]: unknown }".to_owned(),
        Type::Words(words) => words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" | "),
        Type::List(item) => match **item {
            Type::Either(_) | Type::Words(_) => format!("readonly ({})[]", self::kind(item)),
            _ => format!("readonly {}[]", self::kind(item)),
        },
        Type::Class(name) => name.clone(),
        Type::Either(forms) => forms.iter().map(self::kind).collect::<Vec<_>>().join(" | "),
    }
}
