//! The pages, one file and one template each. Everything that is written into a page passes `escape`.

mod assembly_run;
pub(crate) mod audit;
mod chart;
pub(crate) mod compare;
mod document;
pub(crate) mod escape {
    //! The escaper of all templates. It shows control and direction characters, so that no text can look like another.

    use std::fmt::{self, Write};

    use askama::filters::{Escaper, Html};
    use quorate_diagnostics::invisible::escape_invisible_except;

    /// The escaper of all templates.
    #[derive(Debug, Clone, Copy, Default)]
    pub(crate) struct Visible;

    impl Escaper for Visible {
        fn write_escaped_str<W: Write>(&self, dest: W, string: &str) -> fmt::Result {
            Html.write_escaped_str(dest, &escape_invisible_except(string, |c| matches!(c, '\n' | '\t')))
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn what_text_brings_stays_text() {
            let shown = |text: &str| {
                let mut html = String::new();
                Visible.write_escaped_str(&mut html, text).unwrap();
                html
            };
            assert_eq!(
                shown("<b onclick='x'>&\"</b>"),
                "&#60;b onclick=&#39;x&#39;&#62;&#38;&#34;&#60;/b&#62;"
            );
            assert_eq!(shown("a\tb\nc"), "a\tb\nc");
            for hostile in ["a\u{202e}b", "a\u{1b}[31mb", "a\u{0}b", "a\u{200b}b"] {
                let html = shown(hostile);
                assert!(html.starts_with('a') && html.ends_with('b') && html.len() > hostile.len(), "{html}");
                assert!(html.chars().all(|c| !c.is_control()), "{html:?}");
            }
        }
    }
}
pub(crate) mod ledger;
mod live_run;
mod playbooks;
mod review_run;
pub(crate) mod runs;
mod talks;
mod wording {
    //! Words that several pages show.

    pub(crate) use quorate::view::wording::{digit_groups, instant, minute};

    /// A verdict or outcome: its word, and a shape besides its colour.
    pub(crate) struct Mark {
        pub(crate) word: String,
        /// The name of its style.
        pub(crate) class: &'static str,
        pub(crate) shape: &'static str,
    }

    impl Mark {
        /// The mark of a verdict, a vote or a status of the records; `None` for an undecided run.
        pub(crate) fn of(word: Option<&str>) -> Mark {
            let word = word.unwrap_or("open").to_uppercase();
            let (class, shape) = match word.as_str() {
                "SHIP" | "PASS" | "DONE" | "YES" => ("good", "●"),
                "REVISE" | "ABSTAIN" => ("fair", "◆"),
                "HOLD" | "FAIL" | "REFUSED" | "NO" => ("bad", "■"),
                "OPEN" => ("open", "○"),
                _ => ("none", "▲"),
            };
            Mark { word, class, shape }
        }
    }

    /// A word of a record, for people: `round1_block` is `round1 block`.
    pub(crate) fn plain(word: &str) -> String {
        word.replace('_', " ")
    }
}

use std::collections::BTreeMap;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use quorate_diagnostics::codes;
use serde::de::DeserializeOwned;

use crate::failure::{Failure, Problem};
use crate::{Server, assets};
use live_run::LiveView;

/// The response of a page.
type Shown = Pin<Box<dyn Future<Output = Response> + Send>>;

/// What a page is asked for.
pub(crate) struct Asked {
    /// The parts of the path that are in braces.
    pub(crate) path: BTreeMap<String, String>,
    /// The query as it was sent.
    pub(crate) query: String,
}

impl Asked {
    /// A part of the path.
    fn part(&self, name: &str) -> String {
        self.path.get(name).cloned().unwrap_or_default()
    }

    /// The query.
    fn query<Q: DeserializeOwned>(&self) -> Result<Q, Failure> {
        serde_urlencoded::from_str(&self.query)
            .map_err(|error| Failure::usage(format!("the query: {error}"), "go to the page without a query"))
    }
}

/// A page without its types.
pub(crate) struct Page {
    pub(crate) path: &'static str,
    pub(crate) show: Box<dyn Fn(Arc<Server>, Asked) -> Shown + Send + Sync>,
}

/// A page; its failure is a page that says it.
fn page<T, W>(path: &'static str, fill: fn(Arc<Server>, Asked) -> W) -> Page
where
    T: Template,
    W: Future<Output = Result<T, Failure>> + Send + 'static,
{
    let show = move |server: Arc<Server>, asked| -> Shown {
        Box::pin(async move { respond(&server, fill(server.clone(), asked).await) })
    };
    Page { path, show: Box::new(show) }
}

/// A page of several templates, or a file to save.
fn response<W>(path: &'static str, answer: fn(Arc<Server>, Asked) -> W) -> Page
where
    W: Future<Output = Result<Response, Failure>> + Send + 'static,
{
    let show = move |server: Arc<Server>, asked| -> Shown {
        Box::pin(async move {
            answer(server.clone(), asked).await.unwrap_or_else(|failure| failed(&server, failure))
        })
    };
    Page { path, show: Box::new(show) }
}

/// All pages, besides the link that begins a session.
pub(crate) fn all() -> Vec<Page> {
    vec![
        page("/", runs::page),
        response("/runs/{run}", runs::run_page),
        page("/runs/{run}/proof", ledger::proof_page),
        response("/runs/{run}/report.html", ledger::report_file),
        page("/verify", |server, _| ready(ledger::verify_page(&server))),
        page("/runs/{run}/live", live_run::page),
        page("/compare", compare::page),
        page("/talks", talks::page),
        page("/talks/{talk}", talks::talk_page),
        page("/playbooks", playbooks::page),
        page("/playbooks/{slug}", playbooks::playbook_page),
        page("/audit", audit::page),
        page("/ledger", ledger::page),
    ]
}

/// What the frame around every page shows.
pub(crate) struct Frame {
    title: String,
    /// The page of the navigation that this belongs to.
    here: &'static str,
    /// The route that gives the same as JSON.
    json: Option<String>,
    /// The command that shows the same.
    command: String,
    is_read_only: bool,
    style: String,
    script: String,
    live: String,
    icon: String,
}

impl Frame {
    fn new(server: &Server, title: impl Into<String>, here: &'static str, command: String) -> Frame {
        Frame {
            title: title.into(),
            here,
            json: None,
            command,
            is_read_only: server.read_only,
            style: assets::url("style.css"),
            script: assets::url("app.js"),
            live: assets::url("live.js"),
            icon: assets::url("icon.svg"),
        }
    }

    fn with_json(self, json: String) -> Frame {
        Frame { json: Some(json), ..self }
    }
}

/// A page as a response; a failure as a page that says it.
fn respond(server: &Server, page: Result<impl Template, Failure>) -> Response {
    match page.map(|page| page.render()) {
        Ok(Ok(html)) => html_response(StatusCode::OK, html),
        Ok(Err(error)) => {
            refused(&Failure::new(StatusCode::INTERNAL_SERVER_ERROR, codes::USAGE, error.to_string(), ""))
        }
        Err(failure) => failed(server, failure),
    }
}

fn failed(server: &Server, failure: Failure) -> Response {
    refused(&failure.redacted(&server.quorate))
}

fn html_response(status: StatusCode, html: String) -> Response {
    (status, [(CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response()
}

#[derive(Template)]
#[template(path = "refused.html")]
struct RefusedPage<'a> {
    status: StatusCode,
    problem: &'a Problem,
    style: String,
}

/// The failure as a page.
pub(crate) fn refused(failure: &Failure) -> Response {
    let style = assets::url("style.css");
    let page = RefusedPage { status: failure.status, problem: &failure.problem, style };
    let html = page.render().unwrap_or_else(|_| failure.problem.code.clone());
    html_response(failure.status, html)
}

/// What a page shows besides the report.
struct Surroundings {
    /// How far an open run is.
    live: Option<LiveView>,
    /// Whether a process works on it: an open run, or an incomplete one that is resumed.
    is_driven: bool,
    /// The decided run before it on the same artifact.
    previous: Option<String>,
}
