//! The URL map: the routes of the API and the pages.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{DefaultBodyLimit, FromRequest as _, RawPathParams, RawQuery, Request};
use axum::http::header::CONNECTION;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, delete, get, post};
use quorate::input::MAX_DRAFT_BYTES;
use quorate_diagnostics::codes;
use tokio::sync::mpsc::UnboundedSender;

use crate::endpoint::{Method, Route};
use crate::failure::Failure;
use crate::guard::{self, Guard, OPEN};
use crate::pages::Asked;
use crate::{Server, api, assets, openapi, pages};

/// The largest body: a text of the maximum size, escaped, and the other fields.
const MAX_BODY_BYTES: usize = 2 * MAX_DRAFT_BYTES as usize + 64 * 1024;

/// The routes of the API, without those that change something if the server is read-only.
pub(crate) fn api(read_only: bool) -> Vec<Route> {
    let mut all = api::routes();
    for more in [
        api::runs::routes(),
        api::ledger::routes(),
        api::actions::routes(),
        api::talks::routes(),
        api::playbooks::routes(),
    ] {
        all.extend(more);
    }
    all.retain(|route| !read_only || route.is_for_reading());
    all
}

/// Everything that is served. `used` is told the secret of the next link once one was used.
pub(crate) fn router(server: &Arc<Server>, guard: &Arc<Guard>, used: UnboundedSender<String>) -> Router {
    let (mut router, routes) = (Router::new(), api(server.read_only));
    server.openapi.get_or_init(|| openapi::document(&routes));
    for route in routes {
        router = router.route(route.path, api_route(Arc::new(route), server));
    }
    for page in pages::all() {
        let (server, show) = (server.clone(), Arc::new(page.show));
        let answer = async move |path: Result<RawPathParams, RawPathParamsRejection>,
                                 RawQuery(query): RawQuery| match path {
            Ok(path) => show(server, Asked { path: parts(&path), query: query.unwrap_or_default() }).await,
            Err(malformed) => pages::refused(&malformed_path(&malformed)),
        };
        router = router.route(page.path, get(answer));
    }
    let guard = guard.clone();
    let open = move |RawQuery(query): RawQuery| async move {
        guard::begin_session(&guard, &used, &query.unwrap_or_default())
    };
    router
        // A preview of the link must not use it up: axum answers HEAD as GET.
        .route(OPEN, get(open).head(|uri: Uri| async move { method_not_allowed(&uri) }))
        .route("/assets/{hash}/{name}", get(asset))
        .fallback(|uri: Uri| async move { not_found(&uri) })
        .method_not_allowed_fallback(|uri: Uri| async move { method_not_allowed(&uri) })
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
}

async fn asset(path: Result<RawPathParams, RawPathParamsRejection>) -> Response {
    match path {
        Ok(path) => assets::get(&parts(&path)),
        Err(malformed) => pages::refused(&malformed_path(&malformed)),
    }
}

fn api_route(route: Arc<Route>, server: &Arc<Server>) -> MethodRouter {
    let (method, server) = (route.method, server.clone());
    let answer = move |path: Result<RawPathParams, RawPathParamsRejection>,
                       RawQuery(query): RawQuery,
                       headers: HeaderMap,
                       request: Request| async move {
        let read = match path {
            Ok(path) => body(request, server.deadlines.body).await.map(|body| (parts(&path), body)),
            Err(malformed) => Err(malformed_path(&malformed)),
        };
        match read {
            Ok((parts, body)) => route.respond(server, parts, query.as_deref(), headers, body).await,
            Err(failure) => {
                let mut response = failure.into_response();
                // The rest of the request is not read.
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                response
            }
        }
    };
    match method {
        Method::Get => get(answer),
        Method::Post => post(answer),
        Method::Delete => delete(answer),
    }
}

/// The body of a request, which must arrive in time.
async fn body(request: Request, deadline: Duration) -> Result<Bytes, Failure> {
    match tokio::time::timeout(deadline, Bytes::from_request(request, &())).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(refused)) => Err(Failure::new(
            refused.status(),
            codes::ARTIFACT_TOO_LARGE,
            refused.body_text(),
            format!("a body has at most {MAX_BODY_BYTES} bytes; name a file of the workspace with `path`"),
        )),
        Err(_) => Err(Failure::new(
            StatusCode::REQUEST_TIMEOUT,
            codes::REQUEST_INCOMPLETE,
            format!("the body did not arrive within {} s", deadline.as_secs_f64()),
            "send the whole body at once",
        )),
    }
}

fn malformed_path(rejection: &RawPathParamsRejection) -> Failure {
    Failure::usage(
        format!("the path: {}", rejection.body_text()),
        "escape the UTF-8 bytes of a name: `%C3%BC` is ü",
    )
}

/// The parts of a path that are in braces.
fn parts(path: &RawPathParams) -> BTreeMap<String, String> {
    path.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn not_found(uri: &Uri) -> Response {
    let help = "`/` is the list of runs; /api/v1/openapi.json lists the routes of the API";
    let failure = Failure::new(
        StatusCode::NOT_FOUND,
        codes::USAGE,
        format!("there is nothing at {}", uri.path()),
        help,
    );
    match uri.path().starts_with("/api/") {
        true => failure.into_response(),
        false => pages::refused(&failure),
    }
}

fn method_not_allowed(uri: &Uri) -> Response {
    Failure::new(
        StatusCode::METHOD_NOT_ALLOWED,
        codes::USAGE,
        format!("{} has no such method", uri.path()),
        "/api/v1/openapi.json lists the routes; with `--read-only` those that change something do not exist",
    )
    .into_response()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_route_is_there_twice_and_those_for_reading_change_nothing() {
        let all = api(false);
        let names: BTreeSet<_> = all.iter().map(|route| (route.method.word(), route.path)).collect();
        assert_eq!(names.len(), all.len());
        assert!(api(true).iter().all(|route| route.method == Method::Get));
        assert!(api(true).len() < all.len());
    }
}
