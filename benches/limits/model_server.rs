//! A server on loopback that answers each member of a council in the chat API at once, in a process of its own.

use std::convert::Infallible;
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::{Failure, process};

/// The argument of the process that is the server.
pub(super) const SERVE: &str = "model-server";
/// Below this path an answer begins and does not end.
pub(super) const HELD: &str = "/held";

pub(super) const DELIBERATION: &str = r#"{"would_block":false,"irreducible":false}"#;
pub(super) const ADJUDICATION: &str = r#"{"verdict":"SHIP","reasoning":"Nothing stands against it."}"#;
/// A name in the body that only the adjudicator's form has.
const ADJUDICATES: &[u8] = b"\"adjudication\"";
/// As long as a short token.
const DELTA_BYTES: usize = 4;

/// The running server; it ends with this value.
pub(super) struct ModelServer {
    child: Child,
    /// Without a path: `http://127.0.0.1:PORT`.
    pub(super) address: String,
}

impl ModelServer {
    /// Starts it.
    pub(super) fn start(dir: &Path) -> Result<ModelServer, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = command
            .args([process::INSIDE, SERVE])
            .arg(dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut address = String::new();
        let said = child.stdout.take().ok_or("the server has no output")?;
        BufReader::new(said).read_line(&mut address)?;
        Ok(ModelServer { child, address: format!("http://{}", address.trim()) })
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Is the server: says its address and answers until it is killed.
pub(super) fn serve() -> Result<Infallible, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept()?;
        // A client that goes away ends its thread.
        std::thread::spawn(move || answer_all(stream).ok());
    }
}

fn answer_all(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let [deliberation, adjudication] = [DELIBERATION, ADJUDICATION].map(reply);
    while let Some(request) = Request::read(&mut reader)? {
        if request.head.starts_with(&format!("POST {HELD}/")) {
            stream.write_all(&begun(&DELIBERATION[..DELTA_BYTES]))?;
            io::copy(&mut reader, &mut io::sink())?;
            return Ok(());
        }
        let adjudicates = request.body.windows(ADJUDICATES.len()).any(|bytes| bytes == ADJUDICATES);
        stream.write_all(if adjudicates { &adjudication } else { &deliberation })?;
    }
    Ok(())
}

/// A request as it came.
pub(super) struct Request {
    /// The request line and the headers.
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Request {
    /// Reads the next one of a connection; `None` at its end.
    pub(super) fn read(reader: &mut BufReader<impl Read>) -> io::Result<Option<Request>> {
        let (mut head, mut line, mut length) = (String::new(), String::new(), 0);
        loop {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
            head.push_str(&line);
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        Ok(Some(Request { head, body }))
    }
}

/// A whole response that says a text in as many events as a model would.
pub(super) fn reply(text: &str) -> Vec<u8> {
    let mut bytes = begun("");
    for at in (0..text.len()).step_by(DELTA_BYTES) {
        bytes.extend(delta(&text[at..text.len().min(at + DELTA_BYTES)]));
    }
    bytes.extend(event(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})));
    // More than a tenth of the prompt's bytes, or it would count as cut.
    let usage = json!({"prompt_tokens": 5000, "completion_tokens": 20});
    bytes.extend(event(&json!({"choices": [], "usage": usage})));
    bytes.extend(chunk("data: [DONE]\n\n"));
    bytes.extend(b"0\r\n\r\n");
    bytes
}

/// The start of a response.
fn begun(text: &str) -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    [head.as_bytes(), &delta(text)].concat()
}

fn delta(text: &str) -> Vec<u8> {
    event(&json!({"model": "m-1", "choices": [{"index": 0, "delta": {"content": text}}]}))
}

fn event(data: &Value) -> Vec<u8> {
    chunk(&format!("data: {data}\n\n"))
}

fn chunk(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}
