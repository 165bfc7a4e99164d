//! What `convene` and `show` print of an assembly: the outcome, and why.

use quorate_diagnostics::render::Look;

use super::Format;
use crate::service::convene::plan::Plan;
use crate::service::convene::report::Report;

/// A report in a format. It ends with one line break.
pub fn report(report: &Report, format: Format, look: Look) -> String {
    let _ = look;
    match format {
        Format::Human | Format::Json | Format::Markdown | Format::Sarif | Format::Github => {
            format!("{:#}\n", report.json())
        }
    }
}

/// A plan in a format.
pub fn plan(plan: &Plan, format: Format, look: Look) -> String {
    let _ = (format, look);
    format!("{:#}\n", plan.json())
}
