//! MCP over standard input and output, for one client; when it disconnects, everything that it started ends.
//!
//! Messages are lines. Unlike the library's transport, `LineTransport` answers invalid input: a line that is too long,
//! nested too deeply, or not JSON.

use std::io::Error;
use std::sync::Arc;

use quorate::{ErrorKind, error_chain};
use quorate_diagnostics::{Body, codes};
use rmcp::model::ServerJsonRpcMessage;
use rmcp::service::ServerInitializeError;
use rmcp::transport::{Transport, stdio_pipes};
use rmcp::{RoleServer, ServiceExt as _};
use serde::Serialize;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::{Connection, ServerState};
use crate::incoming::{self, InvalidMessage, MAX_MESSAGE_BYTES, Message};

/// Serves until standard input ends. Pending answers then get a few seconds.
///
/// # Errors
/// When the input is not MCP.
pub async fn serve(state: &Arc<ServerState>) -> Result<(), quorate::Error> {
    let (reader, writer) = stdio_pipes();
    match Connection(state.clone()).serve(LineTransport::new(reader, writer)).await {
        Ok(running) => {
            // The reason of the end does not matter.
            let _ = running.waiting().await;
            Ok(())
        }
        // A client that sent nothing gets no answer.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => {
            let body = Body::new(format!("the client does not speak MCP: {}", error_chain(&error)));
            let help = "`quorate mcp` is started by an MCP client; `--http` serves several";
            Err(quorate::Error::new(ErrorKind::Configuration, codes::MCP_UNUSABLE, body.help(help)))
        }
    }
}

/// The writer; `None` once it is closed.
type SharedWriter<W> = Arc<Mutex<Option<W>>>;

struct LineTransport<R, W> {
    read: BufReader<R>,
    /// The part of the next line read so far: `receive` may be dropped and called again.
    line: Vec<u8>,
    /// Whether the line is too long; the rest of it is discarded.
    is_oversized: bool,
    /// The pending answer to invalid input. Only one: a client that sends invalid input and does not read blocks its own
    /// further input.
    answering: Option<JoinHandle<()>>,
    out: SharedWriter<W>,
}

enum Line {
    Whole(Vec<u8>),
    TooLong,
    /// The input has ended.
    End,
}

impl<R: AsyncRead + Unpin + Send, W: AsyncWrite + Unpin + Send + 'static> LineTransport<R, W> {
    fn new(read: R, write: W) -> LineTransport<R, W> {
        LineTransport {
            read: BufReader::new(read),
            line: Vec::new(),
            is_oversized: false,
            answering: None,
            out: Arc::new(Mutex::new(Some(write))),
        }
    }

    /// Reads to the end of a line. Cancellation loses no data.
    async fn next(&mut self) -> Line {
        loop {
            let buffered = self.read.fill_buf().await.unwrap_or_default();
            let end = buffered.iter().position(|byte| *byte == b'\n');
            let part = &buffered[..end.unwrap_or(buffered.len())];
            let ended = buffered.is_empty();
            if self.line.len() + part.len() > MAX_MESSAGE_BYTES {
                self.is_oversized = true;
            }
            match self.is_oversized {
                true => self.line.clear(),
                false => self.line.extend_from_slice(part),
            }
            let read = part.len() + usize::from(end.is_some());
            self.read.consume(read);
            if end.is_none() && !ended {
                continue;
            }
            return match (std::mem::take(&mut self.is_oversized), std::mem::take(&mut self.line)) {
                (true, _) => Line::TooLong,
                (false, line) if ended && line.is_empty() => Line::End,
                (false, line) => Line::Whole(line),
            };
        }
    }
}

async fn write<W: AsyncWrite + Unpin>(out: &SharedWriter<W>, message: &impl Serialize) -> Result<(), Error> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    match &mut *out.lock().await {
        Some(out) => {
            out.write_all(&line).await?;
            out.flush().await
        }
        None => Err(Error::from(std::io::ErrorKind::NotConnected)),
    }
}

impl<R: AsyncRead + Unpin + Send, W: AsyncWrite + Unpin + Send + 'static> Transport<RoleServer>
    for LineTransport<R, W>
{
    type Error = Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Error>> + Send + 'static {
        let out = self.out.clone();
        async move { write(&out, &message).await }
    }

    async fn receive(&mut self) -> Option<Message> {
        loop {
            if let Some(answering) = &mut self.answering {
                // If the client no longer reads, its input will end as well.
                let _ = answering.await;
                self.answering = None;
            }
            let read = match self.next().await {
                Line::Whole(line) => incoming::parse(&line),
                Line::TooLong => Err(InvalidMessage::too_long()),
                Line::End => return None,
            };
            match read {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(invalid) => {
                    let out = self.out.clone();
                    let answer = invalid.answer();
                    // A task, so that dropping `receive` does not leave half an answer.
                    self.answering = Some(tokio::spawn(async move { drop(write(&out, &answer).await) }));
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Error> {
        drop(self.out.lock().await.take());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn every_line_that_is_no_message_is_answered_and_the_next_one_is_read() {
        let (mut client, server) = tokio::io::duplex(64 * 1024);
        let (read, write) = tokio::io::split(server);
        let mut lines = LineTransport::new(read, write);
        let talk = tokio::spawn(async move {
            let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
            client.write_all(b"nonsense\n\n").await.unwrap();
            client.write_all(br#"{"method":"ping","params":{"a":""#).await.unwrap();
            for _ in 0..=MAX_MESSAGE_BYTES / 65_536 {
                client.write_all(&[b'x'; 65_536]).await.unwrap();
            }
            client.write_all(b"\"},\"jsonrpc\":\"2.0\",\"id\":9}\n").await.unwrap();
            client.write_all(ping).await.unwrap();
            client.write_all(b"\r\n").await.unwrap();
            // The last line has no line feed.
            client.write_all(ping).await.unwrap();
            client.shutdown().await.unwrap();
            let mut output = String::new();
            client.read_to_string(&mut output).await.unwrap();
            output
        });
        for _ in 0..2 {
            assert!(matches!(lines.receive().await, Some(Message::Request(_))));
        }
        assert!(lines.receive().await.is_none());
        lines.close().await.unwrap();
        drop(lines);
        let answers: Vec<Value> =
            talk.await.unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let outline = |answer: &Value| (answer["id"].clone(), answer["error"]["code"].clone());
        let outlines: Vec<_> = answers.iter().map(outline).collect();
        assert_eq!(outlines, [(Value::Null, json!(-32700)), (Value::Null, json!(-32600))]);
    }
}
