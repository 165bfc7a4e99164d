//! A sample report for the tests of every format.

use std::sync::Arc;

use crate::{Body, Place, Report, codes};

/// The source of the report.
pub(super) const TEXT: &str = "a: 1\r\nlonger: {ä: 2, ä: 3}\r\n";

pub(super) fn report() -> Report {
    let place = |part: &str, last: bool| {
        let start = if last { TEXT.rfind(part) } else { TEXT.find(part) }.expect("a part of the text");
        Place {
            file: Arc::from("council.yaml"),
            span: start..start + part.len(),
            path: "longer.ä".to_owned(),
        }
    };
    let mut report = Report::new();
    report.add_source("council.yaml", TEXT);
    let second = place("ä", true);
    report.warn(codes::FIELD_WITHOUT_EFFECT, Body::new("nothing reads \u{1b}[31m this").at(second.clone()));
    report.refuse(
        codes::SYNTAX,
        Body::new("the key `ä` is there twice").at(second).related(place("ä", false), "first here"),
    );
    report.refuse(
        codes::COUNCIL_INVALID,
        Body::new("`id` is missing")
            .at(Place { path: String::new(), ..place("a", false) })
            .help("add `id`: a name"),
    );
    report.refuse(codes::USAGE, Body::new("no file was named"));
    report
}
