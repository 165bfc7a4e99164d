//! Why a tool failed, with a code. A request that cannot be fulfilled is a tool error, which clients show to the user or
//! the model; a call that does not fit the tool's schema is an error of the protocol.
//!
//! The text is complete, and names parameters where the command line has flags. Programs read `_meta` and `data`, since
//! clients check structured content against the tool's output schema even in errors.

use std::sync::{Arc, LazyLock};

use quorate::{Error, ErrorKind, Quorate};
use quorate_diagnostics::render::concise;
use quorate_diagnostics::render::machine::diagnostics_json;
use quorate_diagnostics::{Body, RefusalCode, codes};
use regex::{Captures, Regex};
use rmcp::model::{CallToolResult, ContentBlock, ErrorData, MetaObject};
use serde_json::{Value, json};

/// The key of a result's `_meta` that has `{code, message, help}`.
const META: &str = "quorate/error";

/// Why a tool failed. A job keeps it for later polls.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    code: &'static str,
    message: String,
    help: Option<String>,
    /// All diagnostics, if there are more than the first one.
    diagnostics: Option<Arc<Value>>,
    text: String,
    /// Whether the call does not fit the schema in `tools/list`.
    pub(super) malformed: bool,
}

impl Failure {
    /// A failure with one refusal.
    pub(super) fn new(code: RefusalCode, body: Body) -> Failure {
        Error::new(ErrorKind::Configuration, code, body).into()
    }

    /// An unusable argument.
    pub(super) fn usage(message: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure::new(codes::USAGE, Body::new(message).help(help))
    }

    /// The call does not fit the schema in `tools/list`.
    pub(super) fn malformed(message: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure { malformed: true, ..Failure::usage(message, help) }
    }

    /// The failure as a tool's result, with secrets redacted.
    pub(super) fn result(&self, quorate: &Quorate) -> CallToolResult {
        let mut result = CallToolResult::error(vec![ContentBlock::text(quorate.redact_text(&self.text))]);
        let mut meta = MetaObject::new();
        meta.insert(META.to_owned(), self.object(quorate));
        result.meta = Some(meta);
        result
    }

    /// The failure as an error of the protocol, with secrets redacted.
    pub(super) fn error(&self, quorate: &Quorate) -> ErrorData {
        let text = match &self.help {
            Some(help) => format!("{} ({help})", self.message),
            None => self.message.clone(),
        };
        ErrorData::invalid_params(quorate.redact_text(&text), Some(self.object(quorate)))
    }

    /// `{code, message, help}`, for programs.
    fn object(&self, quorate: &Quorate) -> Value {
        let mut object = json!({"code": self.code, "message": self.message, "help": self.help});
        if let Some(all) = &self.diagnostics {
            object["diagnostics"] = (**all).clone();
        }
        quorate.redact_json(object)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let report = error.report();
        let first = report.refusals.first();
        let count = report.refusals.len() + report.warnings.len();
        let places = report.refusals.iter().any(|refusal| refusal.body.place.is_some());
        let diagnostics = (count > 1 || places).then(|| {
            let mut all = diagnostics_json(report);
            with_parameter_names_json(&mut all);
            Arc::new(all)
        });
        Failure {
            code: first.map_or(codes::USAGE.as_str(), |refusal| refusal.code.as_str()),
            message: first.map_or_else(String::new, |refusal| with_parameter_names(&refusal.body.message)),
            help: first.and_then(|refusal| refusal.body.help.as_deref().map(with_parameter_names)),
            diagnostics,
            text: with_parameter_names(concise(report).trim_end()),
            malformed: false,
        }
    }
}

/// Flags of the command line that a parameter of tools corresponds to.
const FLAGS: &str = "by class conversation dry-run executor force jobs key made-by max-calls max-money max-tokens pattern phase \
    policy proposal reason request rounds sentinel-first since tier timeout topic trigger trying";

/// What [`with_parameter_names`] reads: a quoted command; the ledger's flag in quotes; or a flag, with the placeholder that
/// ends a quotation, as in `--rounds N`.
static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    let flag = r"(?<before>^|[^\w-])--(?<flag>[a-z]+(?:-[a-z]+)*)(?: [A-Z]+(?<end>[`\]\n]|$))?";
    Regex::new(&format!(r"`quorate\s[^`]*`|(?<ledger>`--ledger(?: [^`]*)?`)|{flag}"))
        .expect("a valid pattern")
});

/// Replaces flags in a text by parameters. Quoted commands, as in `quorate show --full`, stay.
pub(super) fn with_parameter_names(text: &str) -> String {
    let replaced = |found: &Captures<'_>| {
        let part = |name| found.name(name).map_or("", |part| part.as_str());
        match part("flag") {
            _ if !part("ledger").is_empty() => "`[ledger] path` in the server's quorate.toml".to_owned(),
            // A tool takes several keys.
            "key" => format!("{}keys{}", part("before"), part("end")),
            flag if FLAGS.split(' ').any(|known| known == flag) => {
                format!("{}{}{}", part("before"), flag.replace('-', "_"), part("end"))
            }
            _ => found[0].to_owned(),
        }
    };
    NAMED.replace_all(text, replaced).into_owned()
}

/// The same for every string of a JSON value.
pub(super) fn with_parameter_names_json(value: &mut Value) {
    match value {
        Value::String(text) => *text = with_parameter_names(text),
        Value::Array(all) => all.iter_mut().for_each(with_parameter_names_json),
        Value::Object(all) => all.values_mut().for_each(with_parameter_names_json),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_stand_in_the_place_of_flags() {
        for (text, told_as) in [
            (
                "it takes `--conversation FILE` [--phase PHASE] [--sentinel-first]",
                "it takes `conversation` [phase] [sentinel_first]",
            ),
            ("`--rounds` is for peer mode", "`rounds` is for peer mode"),
            ("`--made-by stan`: no operator", "`made_by stan`: no operator"),
            ("give it with `--key`", "give it with `keys`"),
            ("raise --max-calls, or wait", "raise max_calls, or wait"),
            ("`--phase PHASE --class CLASS` --by --by-name", "`phase PHASE class` by --by-name"),
            (
                "name a ledger with `--ledger`",
                "name a ledger with `[ledger] path` in the server's quorate.toml",
            ),
            ("or say `--ledger PATH`!", "or say `[ledger] path` in the server's quorate.toml!"),
            ("see `quorate show r1 --since 3` or `--since`", "see `quorate show r1 --since 3` or `since`"),
            (
                "the server has `--read-only` and --topical and a--topic and ---topic",
                "the server has `--read-only` and --topical and a--topic and ---topic",
            ),
            ("start it with `--manifest PATH`", "start it with `--manifest PATH`"),
        ] {
            assert_eq!(with_parameter_names(text), told_as);
        }
    }
}
