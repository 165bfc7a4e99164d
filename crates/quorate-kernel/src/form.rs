//! The forms of answers, made ready once: as the member is shown them, and as its answer is held to them.

use std::sync::{Arc, LazyLock};

use quorate_manifest::form::Form;
use quorate_protocol::Json;
use quorate_protocol::answers::Schema;

/// One form.
pub(crate) struct Ready {
    /// What an answer is held to.
    pub(crate) form: Form,
    /// The JSON Schema.
    pub(crate) schema: Arc<Json>,
    /// The JSON Schema as it stands at the end of a prompt.
    pub(crate) text: String,
}

/// A form, made ready.
pub(crate) fn of(schema: Schema) -> &'static Ready {
    static ALL: LazyLock<Vec<(Schema, Ready)>> =
        LazyLock::new(|| Schema::ALL.map(|schema| (schema, ready(schema))).into());
    let found = ALL.iter().find(|(known, _)| *known == schema);
    &found.expect("every form is among all forms").1
}

fn ready(schema: Schema) -> Ready {
    let json = schema.json();
    Ready {
        form: Form::read(&json).expect("the built-in answer schemas use no other keywords than are held"),
        text: serde_json::to_string_pretty(&json).expect("a JSON value can be written"),
        schema: Arc::new(json),
    }
}
