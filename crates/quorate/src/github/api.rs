//! Requests to GitHub's REST API. The size of answers is bounded; redirects are refused, since they would receive the token.

use std::collections::BTreeMap;
use std::time::Duration;

use quorate_adapters::http::{self, Redirects};
use quorate_diagnostics::{Body, codes};
use reqwest::header::HeaderMap;
use reqwest::{Client, Method, Response, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use url::Url;

use super::event_unusable;
use crate::service::artifact;
use crate::service::error::Error;
use crate::service::redaction::Variables;

const TIMEOUT: Duration = Duration::from_secs(60);

/// The waits before each retry, unless GitHub asks for a longer one.
pub(super) const TRY_AGAIN_AFTER: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(4), Duration::from_secs(16)];
/// The longest wait that GitHub may ask for; a job has little more time.
const MAX_WAIT: Duration = Duration::from_secs(120);
/// The largest accepted answer, in bytes.
const MAX_BYTES: u64 = 16 << 20;
const PER_PAGE: usize = 100;
/// The most pages of a list; GitHub itself lists up to 3,000 files.
const MAX_PAGES: usize = 30;

/// The API, as a repository's job uses it.
pub(super) struct Api {
    client: Client,
    base: Url,
    token: String,
    /// `owner/name`.
    pub(super) repository: String,
}

#[derive(Deserialize)]
pub(super) struct Pull {
    pub(super) number: u64,
    pub(super) head: Head,
    #[serde(default)]
    pub(super) labels: Vec<Label>,
    /// How many files it changes; a list of pull requests does not say.
    pub(super) changed_files: Option<usize>,
}

#[derive(Deserialize)]
pub(super) struct Head {
    pub(super) sha: String,
    /// `None` once a fork is deleted.
    pub(super) repo: Option<Repository>,
}

#[derive(Deserialize)]
pub(super) struct Repository {
    pub(super) full_name: String,
}

#[derive(Deserialize)]
pub(super) struct Label {
    pub(super) name: String,
}

#[derive(Deserialize)]
pub(super) struct File {
    pub(super) filename: String,
    pub(super) status: String,
    /// The hash of its content; `None` for some that cannot be shown.
    pub(super) sha: Option<String>,
}

/// The files of a commit.
#[derive(Deserialize)]
pub(super) struct Tree {
    pub(super) tree: Vec<TreeEntry>,
    /// Whether some are not listed.
    #[serde(default)]
    pub(super) truncated: bool,
}

#[derive(Deserialize)]
pub(super) struct TreeEntry {
    pub(super) path: String,
    /// Git's mode: `100644` and `100755` are files, `040000` is a folder, `120000` a link, `160000` another repository.
    pub(super) mode: String,
    #[serde(default)]
    pub(super) sha: String,
    /// In bytes; `None` for folders.
    pub(super) size: Option<usize>,
}

#[derive(Deserialize)]
pub(super) struct Comment {
    pub(super) id: u64,
    pub(super) body: Option<String>,
    pub(super) user: Option<User>,
}

#[derive(Deserialize)]
pub(super) struct User {
    pub(super) login: String,
}

/// A failed request.
pub(super) struct RequestFailure {
    pub(super) error: Error,
    /// The least time after which a retry may succeed; `None` if it cannot.
    retry: Option<Duration>,
    /// Whether GitHub answered 404.
    is_missing: bool,
}

impl RequestFailure {
    /// Waits before another try.
    ///
    /// # Errors
    /// If no retry is left.
    pub(super) async fn wait(self, mut times: impl Iterator<Item = Duration>) -> Result<(), Error> {
        match self.retry.filter(|time| *time <= MAX_WAIT).zip(times.next()) {
            Some((least, time)) => {
                tokio::time::sleep(time.max(least)).await;
                Ok(())
            }
            None => Err(self.error),
        }
    }
}

impl Api {
    /// The API with the job's token.
    ///
    /// # Errors
    /// If the token or the repository is missing, or if the address must not receive the token.
    pub(super) fn of_job(variables: &Variables) -> Result<Api, Error> {
        let get = |name: &str| variables.get(name).filter(|value| !value.trim().is_empty());
        let need =
            |name: &str| get(name).ok_or_else(|| event_unusable(format!("the variable {name} is not set")));
        let (token, repository) = (need("GITHUB_TOKEN")?, need("GITHUB_REPOSITORY")?.to_owned());
        let address = get("GITHUB_API_URL").unwrap_or("https://api.github.com");
        let base: Url = address
            .parse()
            .map_err(|error| event_unusable(format!("cannot parse GITHUB_API_URL {address}: {error}")))?;
        if base.cannot_be_a_base() || base.scheme() != "https" && !http::is_loopback(&base) {
            return Err(event_unusable(format!("GITHUB_API_URL is not an https address: {address}")));
        }
        let client = http::client(&base, None, Redirects::Refused).map_err(event_unusable)?;
        Ok(Api { client, base, token: token.trim().to_owned(), repository })
    }

    /// The open pull requests of a branch, given as `owner:branch`.
    pub(super) async fn pulls_from(&self, head: &str) -> Result<Vec<Pull>, Error> {
        self.list(&["pulls"], &[("state", "open"), ("head", head)]).await
    }

    pub(super) async fn pull(&self, number: u64) -> Result<Pull, Error> {
        self.object(Method::GET, self.address(&["pulls", &number.to_string()]), None).await
    }

    /// The changed files of a pull request.
    pub(super) async fn files(&self, number: u64) -> Result<Vec<File>, Error> {
        self.list(&["pulls", &number.to_string(), "files"], &[]).await
    }

    /// The files of a commit; incomplete in a large repository.
    pub(super) async fn files_of_commit(&self, sha: &str) -> Result<Tree, Error> {
        let mut url = self.address(&["git", "trees", sha]);
        url.query_pairs_mut().append_pair("recursive", "1");
        self.object(Method::GET, url, None).await
    }

    /// The entries of a folder, or of a commit's root.
    pub(super) async fn folder(&self, sha: &str) -> Result<Tree, Error> {
        self.object(Method::GET, self.address(&["git", "trees", sha]), None).await
    }

    /// The content with a hash.
    pub(super) async fn blob(&self, sha: &str) -> Result<Vec<u8>, Error> {
        let url = self.address(&["git", "blobs", sha]);
        // One byte above the limit is enough to refuse the artifact.
        let raw = "application/vnd.github.raw+json";
        let request =
            ApiRequest { accept: raw, most: artifact::MAX_BYTES + 1, ..ApiRequest::new(Method::GET, url) };
        self.send(&request).await.map(|answer| answer.bytes)
    }

    pub(super) async fn comments(&self, number: u64) -> Result<Vec<Comment>, Error> {
        self.list(&["issues", &number.to_string(), "comments"], &[]).await
    }

    /// Adds a comment without retries: GitHub may have added it although no answer arrived.
    pub(super) async fn add_comment(&self, number: u64, body: &str) -> Result<Comment, RequestFailure> {
        let url = self.address(&["issues", &number.to_string(), "comments"]);
        let body = Some(json!({"body": body}));
        let answer = self.send_once(&ApiRequest { body, ..ApiRequest::new(Method::POST, url) }).await?;
        answer.parsed().map_err(|error| RequestFailure { error, retry: None, is_missing: false })
    }

    pub(super) async fn edit_comment(&self, id: u64, body: &str) -> Result<Comment, Error> {
        let url = self.address(&["issues", "comments", &id.to_string()]);
        self.object(Method::PATCH, url, Some(json!({"body": body}))).await
    }

    pub(super) async fn remove_label(&self, number: u64, name: &str) -> Result<(), Error> {
        let url = self.address(&["issues", &number.to_string(), "labels", name]);
        let mut times = TRY_AGAIN_AFTER.into_iter();
        let mut tried = false;
        loop {
            match self.send_once(&ApiRequest::new(Method::DELETE, url.clone())).await {
                Ok(_) => return Ok(()),
                // An earlier attempt removed the label, and its answer was lost.
                Err(failure) if failure.is_missing && tried => return Ok(()),
                Err(failure) => failure.wait(&mut times).await?,
            }
            tried = true;
        }
    }

    /// An address below the repository's.
    fn address(&self, path: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push("repos").extend(self.repository.split('/')).extend(path);
        }
        url
    }

    /// All pages of a list.
    async fn list<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<Vec<T>, Error> {
        let mut all = Vec::new();
        for page in 1..=MAX_PAGES {
            let mut url = self.address(path);
            url.query_pairs_mut()
                .extend_pairs(query)
                .append_pair("per_page", &PER_PAGE.to_string())
                .append_pair("page", &page.to_string());
            let answer = self.send(&ApiRequest::new(Method::GET, url)).await?;
            let found: Vec<T> = answer.parsed()?;
            let is_last = found.len() < PER_PAGE && !answer.has_next;
            all.extend(found);
            if is_last {
                return Ok(all);
            }
        }
        Err(failed(format!("GitHub lists more than {} entries of {}", MAX_PAGES * PER_PAGE, path.join("/"))))
    }

    async fn object<T: DeserializeOwned>(
        &self,
        method: Method,
        url: Url,
        body: Option<Value>,
    ) -> Result<T, Error> {
        self.send(&ApiRequest { body, ..ApiRequest::new(method, url) }).await?.parsed()
    }

    /// Sends an idempotent request, and retries it after a transient failure.
    async fn send(&self, request: &ApiRequest) -> Result<Answer, Error> {
        let mut times = TRY_AGAIN_AFTER.into_iter();
        loop {
            match self.send_once(request).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure.wait(&mut times).await?,
            }
        }
    }

    async fn send_once(&self, request: &ApiRequest) -> Result<Answer, RequestFailure> {
        let ApiRequest { method, url, accept, body, most } = request;
        let what = format!("{method} {}", url.path());
        let mut request = self
            .client
            .request(method.clone(), url.clone())
            .timeout(TIMEOUT)
            .bearer_auth(&self.token)
            .header("accept", *accept)
            .header("x-github-api-version", "2022-11-28");
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let not_sent = |error: reqwest::Error| RequestFailure {
            // A request that cannot be built cannot succeed later.
            retry: (!error.is_builder()).then_some(Duration::ZERO),
            error: failed(format!("{what}: {}", http::error_chain(&error.without_url()))),
            is_missing: false,
        };
        let mut response = request.send().await.map_err(not_sent)?;
        let (status, wait) = (response.status(), named_wait(response.headers()));
        let has_next = text_of(response.headers(), "link").is_some_and(|link| link.contains("rel=\"next\""));
        let bytes = read(&mut response, *most).await.map_err(not_sent)?;
        if status.is_success() {
            return Ok(Answer { path: url.path().to_owned(), bytes, has_next });
        }
        let said = serde_json::from_slice::<Value>(&bytes).ok();
        let said = said.as_ref().and_then(|said| said["message"].as_str()).unwrap_or_default();
        Err(RequestFailure {
            error: failed(format!("{what}: GitHub answers {} {said}", status.as_u16())),
            retry: wait.or_else(|| {
                let is_transient = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
                is_transient.then_some(Duration::ZERO)
            }),
            is_missing: status == StatusCode::NOT_FOUND,
        })
    }
}

struct ApiRequest {
    method: Method,
    url: Url,
    accept: &'static str,
    body: Option<Value>,
    /// How many bytes of the answer are read.
    most: u64,
}

impl ApiRequest {
    /// A request without a body, for an answer in JSON.
    fn new(method: Method, url: Url) -> ApiRequest {
        ApiRequest { method, url, accept: JSON, body: None, most: MAX_BYTES }
    }
}

/// The answer to a successful request.
struct Answer {
    /// The path of the requested address.
    path: String,
    bytes: Vec<u8>,
    /// Whether the list has another page.
    has_next: bool,
}

/// How long GitHub asks to wait: <https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api>.
fn named_wait(headers: &HeaderMap) -> Option<Duration> {
    let number = |name| text_of(headers, name)?.parse::<u64>().ok();
    let until_reset = || {
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_secs());
        let reset = number("x-ratelimit-reset").filter(|_| number("x-ratelimit-remaining") == Some(0));
        Some(reset?.saturating_sub(now) + 1)
    };
    number("retry-after").or_else(until_reset).map(Duration::from_secs)
}

fn text_of<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

const JSON: &str = "application/vnd.github+json";

impl Answer {
    /// The value in an answer of at most [`MAX_BYTES`] bytes.
    fn parsed<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let Answer { path, bytes, .. } = self;
        if bytes.len() as u64 >= MAX_BYTES {
            return Err(failed(format!("GitHub's answer to {path} is longer than {MAX_BYTES} bytes")));
        }
        serde_json::from_slice(bytes)
            .map_err(|error| failed(format!("cannot read GitHub's answer to {path}: {error}")))
    }
}

/// Reads the first bytes of an answer.
async fn read(response: &mut Response, most: u64) -> Result<Vec<u8>, reqwest::Error> {
    let mut bytes: Vec<u8> = Vec::new();
    while (bytes.len() as u64) < most
        && let Some(chunk) = response.chunk().await?
    {
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

pub(super) fn failed(what: String) -> Error {
    let help = "run `quorate explain quorate:github_failed` to see what the job needs";
    Error::configuration(codes::GITHUB_FAILED, Body::new(what).help(help))
}

pub(super) struct CommitFiles<'a> {
    api: &'a Api,
    commit: &'a str,
    listed: BTreeMap<String, TreeEntry>,
    /// Whether the list is complete.
    pub(super) is_complete: bool,
    /// The entries of folders, by their hashes.
    folders: BTreeMap<String, Vec<TreeEntry>>,
}

impl<'a> CommitFiles<'a> {
    pub(super) async fn of(api: &'a Api, commit: &'a str) -> Result<CommitFiles<'a>, Error> {
        let tree = api.files_of_commit(commit).await?;
        let listed = tree.tree.into_iter().map(|entry| (entry.path.clone(), entry)).collect();
        Ok(CommitFiles { api, commit, listed, is_complete: !tree.truncated, folders: BTreeMap::new() })
    }

    /// The listed paths.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.listed.keys().map(String::as_str)
    }

    /// The entry at a path; `None` if it does not exist or lies behind a link.
    pub(super) async fn find(&mut self, path: &str) -> Result<Option<&TreeEntry>, Error> {
        if self.is_complete || self.listed.contains_key(path) {
            return Ok(self.listed.get(path));
        }
        let mut folder = self.commit.to_owned();
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        for part in above.split('/') {
            if part.is_empty() {
                continue;
            }
            match self.entry(&folder, part).await? {
                Some(entry) if entry.mode == FOLDER => folder = entry.sha.clone(),
                _ => return Ok(None),
            }
        }
        self.entry(&folder, name).await
    }

    async fn entry(&mut self, folder: &str, name: &str) -> Result<Option<&TreeEntry>, Error> {
        if !self.folders.contains_key(folder) {
            let entries = self.api.folder(folder).await?.tree;
            self.folders.insert(folder.to_owned(), entries);
        }
        Ok(self.folders.get(folder).and_then(|entries| entries.iter().find(|entry| entry.path == name)))
    }
}

const FOLDER: &str = "040000";

impl TreeEntry {
    pub(super) fn is_file(&self) -> bool {
        matches!(&*self.mode, "100644" | "100755")
    }
}
