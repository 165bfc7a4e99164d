//! A server that plays GitHub's API for one repository: it keeps comments and labels, and what it was asked.

use std::collections::BTreeMap;
use std::io::{BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::support::http::read_request;

pub(super) const TOKEN: &str = "ghs_16C7e42F292c6912E7710c838347Ae178B4a";
pub(super) const SHA: &str = "8ad3f7c1b2e94d05a6f7180c9be2d3415f60a7c8";
pub(super) const BOT: &str = "github-actions[bot]";

/// The repository's state.
#[derive(Default)]
pub(super) struct State {
    pub(super) pulls: Vec<Value>,
    /// The texts of the pull request by path.
    pub(super) texts: BTreeMap<String, Vec<u8>>,
    /// The paths that are links.
    pub(super) links: Vec<String>,
    /// The paths of links in place of folders: changed, but not texts.
    pub(super) folders: Vec<String>,
    /// The paths that the list of a commit's files lacks, since it is truncated.
    pub(super) unlisted: Vec<String>,
    /// How many changed files a pull request is said to have, where it is more than are listed.
    pub(super) changed_files: Option<usize>,
    /// How many entries a page has, in place of those asked for.
    pub(super) per_page: Option<usize>,
    /// Whether contents lack their last byte.
    pub(super) cuts_content: bool,
    /// How many of the next removals of a label are done, without a good answer.
    pub(super) unanswered_removals: usize,
    /// Whether the last answer is a page that is not the last.
    has_next: bool,
    pub(super) comments: Vec<Value>,
    /// How many of the next comments fail to be written.
    pub(super) failures: usize,
    /// Whether comments may not be written.
    pub(super) is_forbidden: bool,
    /// The `Retry-After` of a failure, in seconds.
    pub(super) retry_after: Option<u64>,
    /// How many of the next requests that change nothing have no answer yet.
    pub(super) failing_reads: usize,
    /// The method and the path of each request.
    pub(super) asked: Vec<String>,
    /// Number of reads of a pull request before it gets another commit.
    pub(super) reads_until_push: Option<usize>,
    /// Number of reads of a pull request before its answers stop.
    pub(super) reads_until_failure: Option<usize>,
    /// The login of the token's user.
    pub(super) login: String,
}

pub(super) struct Api {
    pub(super) port: u16,
    state: Arc<Mutex<State>>,
}

/// A pull request from a branch `launch` of this repository.
pub(super) fn pull(number: u64, from: &str) -> Value {
    json!({"number": number, "state": "open", "labels": [],
           "head": {"sha": SHA, "ref": "launch", "repo": {"full_name": from}}})
}

impl Api {
    pub(super) fn start() -> Api {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback is up");
        let port = listener.local_addr().expect("an address").port();
        let state = Arc::new(Mutex::new(State { login: BOT.to_owned(), ..State::default() }));
        let kept = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || serve(stream, &kept));
            }
        });
        Api { port, state }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has all comments be about an earlier commit.
    pub(super) fn age_comments(&self) {
        for comment in &mut self.state().comments {
            let body = comment["body"].as_str().expect("a body").replace(SHA, &"0".repeat(40));
            comment["body"] = json!(body);
        }
    }

    /// The requests that change something.
    pub(super) fn writes(&self) -> Vec<String> {
        self.state().asked.iter().filter(|asked| !asked.starts_with("GET ")).cloned().collect()
    }
}

fn serve(stream: TcpStream, state: &Mutex<State>) {
    let mut writer = stream.try_clone().expect("a socket can be cloned");
    let mut reader = BufReader::new(stream);
    while let Some((head, body)) = read_request(&mut reader) {
        let (status, answer) =
            answer(&head, &body, &mut state.lock().unwrap_or_else(PoisonError::into_inner));
        let (after, has_next) = {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            (state.retry_after, std::mem::take(&mut state.has_next))
        };
        let next = if has_next { "link: <http://127.0.0.1/next>; rel=\"next\"\r\n" } else { "" };
        let after = after
            .filter(|_| status >= 400)
            .map_or(String::new(), |after| format!("retry-after: {after}\r\n"));
        let head = format!("HTTP/1.1 {status} X\r\n{after}{next}content-length: {}\r\n\r\n", answer.len());
        if writer.write_all(head.as_bytes()).and_then(|()| writer.write_all(&answer)).is_err() {
            return;
        }
    }
}

/// Whether a number is the one of a path.
fn is(number: &Value, part: &str) -> bool {
    part.parse().is_ok_and(|part: u64| *number == part)
}

fn answer(head: &str, body: &[u8], state: &mut State) -> (u16, Vec<u8>) {
    let json = |value: Value| (200, value.to_string().into_bytes());
    let refuse = |status: u16, why: &str| (status, json!({"message": why}).to_string().into_bytes());
    let line = head.lines().next().unwrap_or_default();
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    state.asked.push(format!("{method} {path}"));
    if !head.to_lowercase().contains(&format!("authorization: bearer {}", TOKEN.to_lowercase())) {
        return refuse(401, "Bad credentials");
    }
    if method == "GET" && state.failing_reads > 0 {
        state.failing_reads -= 1;
        return refuse(503, "Unavailable");
    }
    let Some(rest) = path.strip_prefix("/repos/ada/blog/") else { return refuse(404, "Not Found") };
    let parts: Vec<&str> = rest.split('/').collect();
    let per_page = state.per_page.unwrap_or(100);
    let number = query.split('&').find_map(|pair| pair.strip_prefix("page=")).unwrap_or("1");
    let number: usize = number.parse().unwrap_or(1);
    let mut is_last = true;
    let mut page = |all: &[Value]| {
        is_last = all.len() <= number * per_page;
        Value::Array(all.iter().skip((number - 1) * per_page).take(per_page).cloned().collect())
    };
    let text = |body: &[u8]| serde_json::from_slice::<Value>(body).unwrap_or_default()["body"].clone();
    match (method, &parts[..]) {
        ("GET", ["pulls"]) => {
            let owner = query.split('&').find_map(|pair| pair.strip_prefix("head=")).unwrap_or_default();
            let owner = owner.split("%3A").next().unwrap_or_default();
            let of_owner = |pull: &&Value| {
                pull["head"]["repo"]["full_name"]
                    .as_str()
                    .is_some_and(|name| name.split('/').next() == Some(owner))
            };
            let found = page(&state.pulls.iter().filter(of_owner).cloned().collect::<Vec<_>>());
            state.has_next = !is_last;
            json(found)
        }
        ("GET", ["pulls", _]) if state.reads_until_failure == Some(0) => refuse(503, "Unavailable"),
        ("GET", ["pulls", number]) => {
            state.reads_until_failure = state.reads_until_failure.map(|reads| reads - 1);
            let mut pull = state.pulls.iter().find(|pull| is(&pull["number"], number)).cloned();
            if let (Some(left), Some(pull)) = (&mut state.reads_until_push, &mut pull) {
                match left.checked_sub(1) {
                    Some(rest) => *left = rest,
                    None => pull["head"]["sha"] = json!("0".repeat(40)),
                }
            }
            if let (Some(count), Some(pull)) = (state.changed_files, &mut pull) {
                pull["changed_files"] = json!(count);
            }
            pull.map_or_else(|| refuse(404, "Not Found"), json)
        }
        ("GET", ["pulls", _, "files"]) => {
            let file = |(at, path): (usize, &String)| json!({"filename": path, "status": "modified", "sha": at.to_string()});
            let texts = state.texts.keys().chain(&state.folders);
            let found = page(&texts.enumerate().map(file).collect::<Vec<_>>());
            state.has_next = !is_last;
            json(found)
        }
        ("GET", ["git", "trees", sha]) => {
            let is_link = |path: &String| state.links.contains(path) || state.folders.contains(path);
            let mode = |path: &String| if is_link(path) { "120000" } else { "100644" };
            let size = |path: &String| state.texts.get(path).map(Vec::len);
            let entry =
                |path: &String| json!({"path": path, "mode": mode(path), "type": "blob", "size": size(path)});
            let all = state.texts.keys().chain(&state.folders);
            if query.contains("recursive") {
                let listed = all.filter(|path| !state.unlisted.contains(path));
                let is_truncated = !state.unlisted.is_empty();
                return json(
                    json!({"tree": listed.map(entry).collect::<Vec<_>>(), "truncated": is_truncated}),
                );
            }
            // The hash of a folder is its path.
            let above = if *sha == SHA { String::new() } else { format!("{}/", sha.replace(':', "/")) };
            let mut entries = Vec::new();
            for path in all {
                let Some(below) = path.strip_prefix(&above) else { continue };
                match below.split_once('/') {
                    Some((folder, _)) => {
                        let sha = format!("{above}{folder}").replace('/', ":");
                        entries.push(json!({"path": folder, "mode": "040000", "type": "tree", "sha": sha}));
                    }
                    None => {
                        let mut entry = entry(path);
                        entry["path"] = json!(below);
                        entries.push(entry);
                    }
                }
            }
            json(json!({"tree": entries, "truncated": false}))
        }
        ("GET", ["git", "blobs", at]) => {
            let text = at.parse().ok().and_then(|at| state.texts.values().nth(at));
            let cut = usize::from(state.cuts_content);
            text.map_or_else(|| refuse(404, "Not Found"), |text| (200, text[..text.len() - cut].to_vec()))
        }
        ("GET", ["issues", _, "comments"]) => {
            let found = page(&state.comments);
            state.has_next = !is_last;
            json(found)
        }
        ("POST" | "PATCH", ["issues", ..]) if state.is_forbidden => {
            refuse(403, "Resource not accessible by integration")
        }
        ("POST", ["issues", _, "comments"]) if state.failures > 0 => {
            state.failures -= 1;
            refuse(502, "Server Error")
        }
        ("POST", ["issues", _, "comments"]) => {
            let id = state.comments.len() + 1;
            state.comments.push(json!({"id": id, "user": {"login": state.login}, "body": text(body)}));
            json(state.comments[id - 1].clone())
        }
        ("PATCH", ["issues", "comments", id]) => {
            match state.comments.iter_mut().find(|comment| is(&comment["id"], id)) {
                Some(comment) => {
                    comment["body"] = text(body);
                    json(comment.clone())
                }
                None => refuse(404, "Not Found"),
            }
        }
        ("DELETE", ["issues", number, "labels", name]) => {
            let mut is_there = false;
            for pull in state.pulls.iter_mut().filter(|pull| is(&pull["number"], number)) {
                let labels = pull["labels"].as_array_mut().expect("labels");
                is_there |= labels.iter().any(|label| label["name"] == **name);
                labels.retain(|label| label["name"] != **name);
            }
            if state.unanswered_removals > 0 {
                state.unanswered_removals -= 1;
                return refuse(502, "Server Error");
            }
            if is_there { json(json!([])) } else { refuse(404, "Label does not exist") }
        }
        // What the pull request's own workflow has uploaded: a verdict of its own.
        ("GET", ["actions", ..]) => json(json!({"reviews": [{"verdict": "SHIP"}]})),
        _ => refuse(404, "Not Found"),
    }
}
