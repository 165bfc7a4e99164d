//! The report file of a run: its proof, its texts, and the script that checks them and draws the page from them. Without
//! scripts the page shows the run's document, and states that nothing was checked.
//!
//! The file is a function of the proof and the texts alone, so that `quorate ledger check-proof` can make it again and compare.

use std::sync::{Arc, LazyLock};

use askama::Template;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quorate::ledger::VerifiedProof;
use quorate::reports::{Embedded, ReportFile, ReportFormat, hex, sha256_hex, unhex};
use quorate::runs::Recorded;
use quorate::view::Extent;

use crate::assets::{REPORT, compact, compact_style};

/// The beginning of every report.
const BEGINS: &str = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\"";

const PROOF: &str = "<script type=\"application/octet-stream\" id=\"proof\">";
const TEXT: &str = "<script type=\"application/octet-stream\" class=\"text\" data-input=\"";
const GENERATOR: &str = "<meta name=\"generator\" content=\"";
const SCRIPT_END: &str = "</script>";

/// The style of a report.
static STYLE: LazyLock<String> = LazyLock::new(|| compact_style(include_str!("assets/style.css")));

/// What a report permits: its own style and script, and nothing else. `$SCRIPT` stands for the hash of the script, which
/// compares the policy with this text.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    format!(
        "default-src 'none'; script-src 'sha256-$SCRIPT'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        hash(&STYLE)
    )
});
/// The script. `$EMBEDDED` stands for the hash of the proof and the texts, which it also compares.
static SCRIPT: LazyLock<String> =
    LazyLock::new(|| compact(REPORT).replace("$POLICY", &POLICY).replace("export ", ""));

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
    let doc = file.content.report.as_ref().map(|report| match report {
        Recorded::Review(review) => review.doc(Extent::Full),
        Recorded::Decision(decision) => decision.doc(Extent::Full),
    });
    let embed = |text: &str| STANDARD.encode(text);
    let embedded: Vec<String> =
        [embed(&file.proof)].into_iter().chain(file.texts.iter().map(|text| embed(&text.text))).collect();
    let script = SCRIPT.replace("$EMBEDDED", &hash(&embedded.join("\n")));
    let page = ReportPage {
        policy: POLICY.replace("$SCRIPT", &hash(&script)),
        program: program(),
        style: &STYLE,
        script,
        document: doc.map(|doc| doc.html()).unwrap_or_default(),
        proof: embed(&file.proof),
        texts: file.texts.iter().map(|text| (text.input, embed(&text.text))).collect(),
    };
    page.render().map_err(|error| error.to_string())
}

#[derive(Template)]
#[template(path = "report.html")]
struct ReportPage {
    policy: String,
    program: String,
    style: &'static str,
    script: String,
    /// What a reader without scripts gets, as HTML.
    document: String,
    proof: String,
    texts: Vec<(usize, String)>,
}

/// The SHA-256 of a text as a policy writes it.
fn hash(text: &str) -> String {
    STANDARD.encode(unhex(&sha256_hex(text.as_bytes())).unwrap_or_default())
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

/// The root that a proof's checkpoint names, in hexadecimal digits.
pub(crate) fn root(proven: &VerifiedProof) -> String {
    hex(&proven.tree.root)
}

/// Whether a proof leaves out the data of a record.
pub(crate) fn omits_data(proven: &VerifiedProof) -> bool {
    proven.records.iter().any(|record| record.data.is_none())
}
