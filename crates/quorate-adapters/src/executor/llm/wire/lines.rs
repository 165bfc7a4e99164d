//! The framing of a stream: bytes to lines, and lines to server-sent events.

use crate::executor::llm::fault::{Fault, FaultKind};

/// How many bytes a line, and the data of one event, has at most. The last event of some wires repeats the whole answer,
/// with escapes.
pub const MAX_EVENT_BYTES: usize = 8 << 20;

/// Splits bytes into lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pending: Vec<u8>,
    /// The last line ended with CR: an LF that comes next belongs to it.
    skip_line_feed: bool,
    past_first: bool,
}

impl Lines {
    /// The next line without its end, and `bytes` without the line. `None` where no line ends in `bytes`, which are kept.
    ///
    /// # Errors
    /// When the line is too long or is not UTF-8.
    pub(super) fn next_line(&mut self, bytes: &mut &[u8]) -> Result<Option<String>, Fault> {
        if let [first, rest @ ..] = bytes
            && std::mem::take(&mut self.skip_line_feed)
            && *first == b'\n'
        {
            *bytes = rest;
        }
        let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        let (line, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
        if self.pending.len() + line.len() > MAX_EVENT_BYTES {
            return Err(Fault::new(
                FaultKind::TooLarge,
                format!("a line is longer than {MAX_EVENT_BYTES} bytes"),
            ));
        }
        self.pending.extend_from_slice(line);
        *bytes = rest;
        let [end, rest @ ..] = rest else { return Ok(None) };
        *bytes = rest;
        self.skip_line_feed = *end == b'\r';
        self.take_line().map(Some)
    }

    /// What came after the last line end; `None` where nothing did.
    ///
    /// # Errors
    /// When it is not UTF-8.
    pub(super) fn last_line(&mut self) -> Result<Option<String>, Fault> {
        if self.pending.is_empty() { Ok(None) } else { self.take_line().map(Some) }
    }

    fn take_line(&mut self) -> Result<String, Fault> {
        let line = String::from_utf8(std::mem::take(&mut self.pending))
            .map_err(|_| Fault::new(FaultKind::Malformed, "a line is not UTF-8"))?;
        match std::mem::replace(&mut self.past_first, true) {
            true => Ok(line),
            false => Ok(line.strip_prefix('\u{feff}').unwrap_or(&line).to_owned()),
        }
    }
}

/// Puts lines together to events.
#[derive(Debug, Default)]
pub(super) struct Events {
    name: String,
    data: Option<String>,
}

/// What a line led to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// A comment, or an event without data: the server is alive.
    Comment,
    Event {
        name: String,
        data: String,
    },
    /// A line that belongs to no event stream.
    Stray,
}

impl Events {
    /// Takes a line without its end. An event without data is a sign of life.
    ///
    /// # Errors
    /// When the data of an event is too long.
    pub(super) fn take_line(&mut self, line: &str) -> Result<Option<Item>, Fault> {
        if line.is_empty() {
            let name = std::mem::take(&mut self.name);
            return Ok(match self.data.take() {
                Some(data) => Some(Item::Event { name, data }),
                None => (!name.is_empty()).then_some(Item::Comment),
            });
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "" => return Ok(Some(Item::Comment)),
            "event" => value.clone_into(&mut self.name),
            "data" | " data" => match &mut self.data {
                None => self.data = Some(value.to_owned()),
                Some(data) if data.len() + value.len() < MAX_EVENT_BYTES => {
                    data.push('\n');
                    data.push_str(value);
                }
                Some(_) => {
                    let said = format!("an event is longer than {MAX_EVENT_BYTES} bytes");
                    return Err(Fault::new(FaultKind::TooLarge, said));
                }
            },
            "id" | "retry" => {}
            _ => return Ok(Some(Item::Stray)),
        }
        Ok(None)
    }
}
