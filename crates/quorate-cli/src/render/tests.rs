//! The formats of diagnostics and errors.

use quorate_diagnostics::Body;
use quorate_diagnostics::codes;

use super::*;

#[test]
fn diagnostics_in_every_format() {
    let mut report = Diagnostics::new();
    assert_eq!(diagnostics(&report, Format::Markdown, TextOptions::default()), "");
    report.refuse(codes::USAGE, Body::new("no `file` was named"));
    let render = |format| diagnostics(&report, format, TextOptions::default());
    assert_eq!(render(Format::Human), "refusal[quorate:usage]: no `file` was named\n\n");
    assert_eq!(render(Format::Markdown), "```text\nrefusal[quorate:usage] no `file` was named\n```\n");
    assert!(render(Format::Json).starts_with("{\"diagnostics\":["));
    assert!(render(Format::Sarif).contains("\"version\": \"2.1.0\""));
    assert!(render(Format::Github).starts_with("::error "));
}
