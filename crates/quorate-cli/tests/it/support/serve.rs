//! `quorate serve`, started for a test, and requests to it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::TestDir;

/// A running server.
pub struct Served {
    process: Child,
    pub authority: String,
    /// The path of the link that begins a session.
    pub link: String,
    pub token: String,
}

/// A response.
pub struct Answered {
    pub status: u16,
    /// The status line and the headers, in lower case.
    pub head: String,
    pub body: String,
}

impl Answered {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines.filter(|(key, _)| *key == name).map(|(_, value)| value).next()
    }
}

impl Served {
    pub fn start(place: &TestDir, arguments: &[&str]) -> Served {
        Served::start_by(place.command(&[&["serve"], arguments].concat()))
    }

    /// Starts it by a command that a test has changed.
    pub fn start_by(mut command: Command) -> Served {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
        let text = |key: &str| said[key].as_str().unwrap().to_owned();
        let url = text("url");
        Served {
            process,
            link: text("link").strip_prefix(&url).unwrap().to_owned(),
            authority: url.strip_prefix("http://").unwrap().to_owned(),
            token: text("token"),
        }
    }

    /// A request with these headers and no others than `Host` and the length.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answered {
        let mut stream = self.open(method, path, headers, body);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let head = head.lines().map(lower_name).collect::<Vec<_>>().join("\n");
        Answered { status, head, body: body.to_owned() }
    }

    /// Sends a request, and leaves the response to the caller.
    pub fn open(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.authority).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut request = format!("{method} {path} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            request.push_str(&format!("Host: {}\r\n", self.authority));
        }
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str(&format!("Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len()));
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    /// A request of a program that has the token.
    pub fn get(&self, path: &str) -> Answered {
        self.send("GET", path, &[("Authorization", &self.bearer())], "")
    }

    pub fn post(&self, path: &str, body: &Value) -> Answered {
        let headers = [("Authorization", &*self.bearer()), ("Content-Type", "application/json")];
        self.send("POST", path, &headers, &body.to_string())
    }

    pub fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    /// The cookie of a session that the link begins.
    pub fn cookie(&self) -> String {
        let answered = self.send("GET", &self.link, &[], "");
        assert_eq!(answered.status, 303, "{}", answered.body);
        answered.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
    }

    /// The result of a job.
    pub fn finish(&self, job: &str) -> Value {
        let ended = self.get(&format!("/api/v1/jobs/{job}?wait_ms=50000"));
        assert_eq!(ended.status, 200, "{}", ended.body);
        let status = ended.json();
        assert_eq!(status["done"], true, "{status}");
        status["result"].clone()
    }

    /// Interrupts it, and returns its exit code.
    pub fn interrupt(mut self) -> Option<i32> {
        kill_process(Pid::from_child(&self.process), Signal::INT).unwrap();
        self.process.wait().unwrap().code()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A header's line with its name in lower case.
fn lower_name(line: &str) -> String {
    match line.split_once(": ") {
        Some((name, value)) => format!("{}: {value}", name.to_lowercase()),
        None => line.to_owned(),
    }
}
