//! Defines a route of the API: its path, the types of what it takes and gives, and its function. The types determine the
//! parsing and the OpenAPI document, and the tables in `api/` determine the router, so that they cannot differ.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::Server;
use crate::failure::Failure;

/// The schemas of what routes take and of what they give.
pub(crate) struct Schemas {
    pub(crate) taken: SchemaGenerator,
    pub(crate) given: SchemaGenerator,
}

/// The methods that routes have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Post,
    Delete,
}

impl Method {
    /// As the OpenAPI document has it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Method::Get => "get",
            Method::Post => "post",
            Method::Delete => "delete",
        }
    }
}

/// The successful answer of a route.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) content_type: &'static str,
    pub(crate) about: &'static str,
    /// The schema of its body.
    pub(crate) schema: fn(&mut SchemaGenerator) -> Schema,
}

impl Answer {
    /// 200 with a value of a type as JSON.
    pub(crate) fn json<T: JsonSchema>(about: &'static str) -> Answer {
        Answer {
            status: StatusCode::OK,
            content_type: "application/json",
            about,
            schema: SchemaGenerator::subschema_for::<T>,
        }
    }

    /// 202 with a value of a type as JSON.
    pub(crate) fn accepted<T: JsonSchema>(about: &'static str) -> Answer {
        Answer { status: StatusCode::ACCEPTED, ..Answer::json::<T>(about) }
    }
}

/// A route that takes no query or no body.
#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

/// A request to a route.
pub(crate) struct Call<Q = Nothing, B = Nothing> {
    /// The parts of the path that are in braces.
    path: Parts,
    pub(crate) query: Q,
    pub(crate) body: B,
    pub(crate) headers: HeaderMap,
    /// The body as it came, which a repeated request must equal.
    pub(crate) bytes: Bytes,
}

impl<Q, B> Call<Q, B> {
    /// A part of the path.
    pub(crate) fn part(&self, name: &str) -> &str {
        self.path.get(name).map_or("", String::as_str)
    }
}

type Answered = Pin<Box<dyn Future<Output = Result<Response, Failure>> + Send>>;
type Parts = BTreeMap<String, String>;
type Respond = dyn Fn(Arc<Server>, Parts, &str, HeaderMap, Bytes) -> Result<Answered, Failure> + Send + Sync;

/// A route without its types.
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    about: &'static str,
    respond: Box<Respond>,
    answer: Answer,
    query_schema: fn(&mut SchemaGenerator) -> Schema,
    body_schema: fn(&mut SchemaGenerator) -> Schema,
    body_reference: fn(&mut SchemaGenerator) -> Schema,
}

impl Route {
    /// A route: its path with parts in braces, one sentence of what it does, and its function.
    pub(crate) fn new<Q, B, W>(
        method: Method,
        path: &'static str,
        about: &'static str,
        answer: Answer,
        call: fn(Arc<Server>, Call<Q, B>) -> W,
    ) -> Route
    where
        Q: DeserializeOwned + JsonSchema + 'static,
        B: DeserializeOwned + JsonSchema + 'static,
        W: Future<Output = Result<Response, Failure>> + Send + 'static,
    {
        Route {
            method,
            path,
            about,
            respond: Box::new(move |server, path, query, headers, bytes| {
                Ok(Box::pin(call(server, read(path, query, headers, bytes)?)))
            }),
            answer,
            query_schema: SchemaGenerator::root_schema_for::<Q>,
            body_schema: SchemaGenerator::root_schema_for::<B>,
            body_reference: SchemaGenerator::subschema_for::<B>,
        }
    }

    /// Whether a server that only shows things has it.
    pub(crate) fn is_for_reading(&self) -> bool {
        self.method == Method::Get
    }

    /// Answers a request.
    pub(crate) async fn respond(
        &self,
        server: Arc<Server>,
        path: Parts,
        query: Option<&str>,
        headers: HeaderMap,
        bytes: Bytes,
    ) -> Response {
        let quorate = server.quorate.clone();
        let answered = match (self.respond)(server, path, query.unwrap_or_default(), headers, bytes) {
            Ok(answered) => answered.await,
            Err(failure) => Err(failure),
        };
        answered.unwrap_or_else(|failure| failure.redacted(&quorate).into_response())
    }

    /// Its operation in the OpenAPI document.
    pub(crate) fn describe(&self, schemas: &mut Schemas) -> Value {
        let mut parameters: Vec<Value> = self
            .path
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
            .map(|name| {
                json!({"name": name, "in": "path", "required": true, "description": path_part(name), "schema": {"type": "string"}})
            })
            .collect();
        let query = (self.query_schema)(&mut schemas.taken).to_value();
        let required = query["required"].as_array().cloned().unwrap_or_default();
        for (name, schema) in query["properties"].as_object().into_iter().flatten() {
            let mut schema = schema.clone();
            let about = schema.as_object_mut().and_then(|schema| schema.remove("description"));
            parameters.push(json!({
                "name": name, "in": "query", "required": required.contains(&json!(name)),
                "description": about, "schema": schema,
            }));
        }
        if self.method == Method::Post {
            parameters.push(json!({
                "name": "Idempotency-Key", "in": "header", "required": false, "schema": {"type": "string", "minLength": 1, "maxLength": 200},
                "description": "Chosen by the client: a request that is repeated with the same key is answered as the first was, among the last 1,000 of the running server, and does nothing",
            }));
        }
        let answer = &self.answer;
        let problem = json!({
            "description": "It failed",
            "content": {"application/json": {"schema": schemas.given.subschema_for::<crate::failure::Problem>()}},
        });
        let mut operation = json!({
            "operationId": operation_id(self.method, self.path),
            "summary": self.about,
            "parameters": parameters,
            "responses": {
                answer.status.as_str(): {
                    "description": answer.about,
                    "content": {answer.content_type: {"schema": (answer.schema)(&mut schemas.given)}},
                },
                "default": problem,
            },
        });
        let body = (self.body_schema)(&mut schemas.taken);
        if self.method == Method::Post && body.get("properties").is_some() {
            operation["requestBody"] = json!({
                "required": true,
                "content": {"application/json": {"schema": (self.body_reference)(&mut schemas.taken)}},
            });
        }
        operation
    }
}

fn read<Q: DeserializeOwned, B: DeserializeOwned>(
    path: Parts,
    query: &str,
    headers: HeaderMap,
    bytes: Bytes,
) -> Result<Call<Q, B>, Failure> {
    let query = serde_urlencoded::from_str(query)
        .map_err(|error| Failure::usage(format!("the query: {error}"), SEE_SCHEMA))?;
    // A route that takes nothing accepts nothing.
    let text: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
    let mut source = serde_json::Deserializer::from_slice(text);
    let body = serde_path_to_error::deserialize(&mut source).map_err(|error| {
        let place = match error.path().to_string().as_str() {
            "." => "the body".to_owned(),
            place => format!("`{place}`"),
        };
        Failure::usage(format!("{place}: {}", error.into_inner()), SEE_SCHEMA)
    })?;
    source.end().map_err(|error| Failure::usage(format!("the body: {error}"), SEE_SCHEMA))?;
    Ok(Call { path, query, body, headers, bytes })
}

const SEE_SCHEMA: &str = "/api/v1/openapi.json has the schema of what this route takes";

fn path_part(name: &str) -> &'static str {
    match name {
        "run" => "The run's id, the beginning of it, or `latest`",
        "job" => "The job's id",
        "talk" => "The conversation's id, or that of its runtime if only one manifest has it",
        "slug" => "The playbook's slug",
        _ => "Its name",
    }
}

/// `get_runs_run_records` of `GET /api/v1/runs/{run}/records`.
fn operation_id(method: Method, path: &str) -> String {
    let words = path.trim_start_matches("/api/v1/").split(['/', '.']);
    let words: Vec<&str> = words.map(|word| word.trim_matches(['{', '}'])).collect();
    format!("{}_{}", method.word(), words.join("_"))
}
