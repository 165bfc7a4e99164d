//! The page of a request that failed. It needs no style sheet, which a reader without a session may not read.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;

use super::html_response;
use crate::failure::{Failure, Problem};

#[derive(Template)]
#[template(path = "refused.html")]
struct RefusedPage<'a> {
    status: StatusCode,
    problem: &'a Problem,
}

/// The failure as a page.
pub(crate) fn refused(failure: &Failure) -> Response {
    let page = RefusedPage { status: failure.status, problem: &failure.problem };
    let html = page.render().unwrap_or_else(|_| failure.problem.code.clone());
    html_response(failure.status, html)
}
