//! The report file of a run: one page with its content, its proof, and the script that checks it. It is readable without
//! scripts.
//!
//! The page is a function of the proof and the texts alone, so that `quorate ledger check-proof` can draw it again and
//! compare. The templates of documents, findings, positions and conclusions are those of the server's pages.

mod view;

pub(crate) use view::ProofFacts;

use std::sync::{Arc, LazyLock};

use askama::Template as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quorate::service::ledger::check_proof::{Embedded, ReportFormat};
use quorate::service::report_file::ReportFile;
use quorate_kernel::entropy::{sha256_hex, unhex};

use crate::assets::REPORT_CHECK;

/// The beginning of every report.
const BEGINS: &str = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\"";

const PROOF: &str = "<script type=\"application/octet-stream\" id=\"proof\">";
const TEXT: &str = "<script type=\"application/octet-stream\" class=\"text\" data-input=\"";
const GENERATOR: &str = "<meta name=\"generator\" content=\"";
const SCRIPT_END: &str = "</script>";

/// The style and the script of a report.
static STYLE: LazyLock<String> = LazyLock::new(|| {
    let style = compact(include_str!("assets/style.css"));
    // Blanks that separate nothing.
    [(": ", ":"), ("; ", ";"), (", ", ","), (" {", "{"), ("{ ", "{"), (" }", "}")]
        .iter()
        .fold(style, |style, (spaced, close)| style.replace(spaced, close))
});
static SCRIPT: LazyLock<String> = LazyLock::new(|| compact(REPORT_CHECK));

/// A source without indentation and lines that are comments. No text in it has several lines.
fn compact(source: &str) -> String {
    let lines = source.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The placeholder for the number of facts, which is known after drawing all of them.
const COUNT: &str = " data-facts=\"\"";

/// This program, as reports name it.
fn program() -> String {
    format!("Quorate {}", env!("CARGO_PKG_VERSION"))
}

/// How `quorate ledger check-proof` reads and draws reports.
pub const FORMAT: ReportFormat = ReportFormat { begins: BEGINS, embedded, draw };

/// Draws a report.
///
/// # Errors
/// The reason why it cannot be drawn.
pub fn draw(file: &ReportFile) -> Result<String, String> {
    let html = view::page(file).render().map_err(|error| error.to_string())?;
    // Quotes of texts are escaped, so these are the attributes.
    let facts = html.matches(" data-at=\"").count();
    Ok(html.replacen(COUNT, &format!(" data-facts=\"{facts}\""), 1))
}

/// The policy of a report: its own style and script, and nothing else.
fn policy() -> String {
    let hash = |text: &str| {
        let hash = unhex(&sha256_hex(text.as_bytes())).unwrap_or_default();
        format!("'sha256-{}'", STANDARD.encode(hash))
    };
    format!(
        "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        hash(&SCRIPT),
        hash(&STYLE)
    )
}

/// Extracts the embedded parts of a report. Drawing the report again proves that they are where a browser finds them.
fn embedded(html: &str) -> Result<Embedded, String> {
    let program = html.split_once(GENERATOR).and_then(|(_, rest)| rest.split_once('"'));
    let program = program.ok_or("it does not name the program that drew it")?.0.to_owned();
    let (_, rest) = html.split_once(PROOF).ok_or("it is not a report: it embeds no proof")?;
    let (proof, mut rest) = rest.split_once(SCRIPT_END).ok_or("its proof has no end")?;
    let proof = decoded(proof).ok_or("its proof is not the base64 of a text")?;
    let mut texts = Vec::new();
    while let Some((_, after)) = rest.split_once(TEXT) {
        let (input, after) = after.split_once("\">").ok_or("a text has no place")?;
        let (text, after) = after.split_once(SCRIPT_END).ok_or("a text has no end")?;
        let input = input.parse().map_err(|_| "a text's place is not a number")?;
        texts.push((input, Arc::from(decoded(text).ok_or("a text is not the base64 of a text")?)));
        rest = after;
    }
    Ok(Embedded { proof, texts, program, this_program: self::program() })
}

fn decoded(base64: &str) -> Option<String> {
    String::from_utf8(STANDARD.decode(base64).ok()?).ok()
}
