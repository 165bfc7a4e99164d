//! Finds the reasoning that a model prints in the text of its answer, so that nothing in it is read as the answer (X4):
//! tags, the channels of raw harmony, and the block that a CLI prints. Tags inside the strings of a JSON object, and tags
//! that stand directly between quotation marks or backticks, are mentions. A mention in any other form counts as a tag.

use std::ops::Range;

use quorate_protocol::Json;

use super::object_len;

/// The names of reasoning tags, in any case, also behind a prefix such as `seed:`.
const TAGS: &str = "think|thinking|thought|thoughts|reasoning|antthinking|scratchpad|reflection|inner_monologue|\
    reasoning_content";
/// Marks with one spelling, in any case: the opening and the closing one.
const PAIRS: [(&str, &str); 6] = [
    ("<|think|>", "<|/think|>"),
    ("<|thinking_start|>", "<|thinking_end|>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|start_thinking|>", "<|end_thinking|>"),
    ("<|channel>thought", "<channel|>"),
    ("\u{25c1}think\u{25b7}", "\u{25c1}/think\u{25b7}"),
];
const UNFINISHED: &str = "the output ends within a thought; end the thought, then give the answer";
/// The longest attributes of a tag, and the longest header of a channel, in characters.
const MAX_HEADER: usize = 200;
/// How many braces that nothing closes are searched for their end, which keeps the time linear.
const MAX_OPEN_BRACES: usize = 64;

/// The notation of a thought. It ends only with the closing mark of its own kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tag {
        name: usize,
        square: bool,
    },
    Pair(usize),
    /// `Thinking...` up to `...done thinking.`
    Block,
    /// A channel of harmony that is not the final one.
    Channel,
}

enum Mark {
    Open(Kind),
    Close(Kind),
    /// The header of a channel, which is the answer or a thought.
    Channel {
        is_answer: bool,
    },
    /// The start of a message, with its role.
    Start,
    /// The end of a message; `starts_another` if the next one follows directly.
    End {
        starts_another: bool,
    },
}

/// The parts of an output that are not reasoning, in order. They can be empty.
///
/// # Errors
/// A complaint to quote in a re-prompt, if a thought does not end, or a reasoning tag stands in a broken JSON object.
pub(super) fn spoken(output: &str) -> Result<Vec<Range<usize>>, String> {
    if let Some(at) = after_bare_channels(output) {
        return at.map(|at| std::iter::once(at..output.len()).collect()).ok_or(UNFINISHED.to_owned());
    }
    let mut parts: Vec<Range<usize>> = Vec::new();
    let mut start = 0;
    let mut thought: Option<(Kind, usize)> = None;
    let mut has_final = false;
    // Up to here, the text is a balanced object that is not JSON.
    let mut broken_until = 0;
    let mut open_braces = 0;
    let mut at = 0;
    while let Some(offset) = output[at..].find(is_candidate) {
        at += offset;
        if output[at..].starts_with('{') {
            if thought.is_some() {
                at += 1;
            } else if let Some(length) = json_object_len(&output[at..]) {
                at += length;
            } else {
                if at >= broken_until && open_braces < MAX_OPEN_BRACES {
                    match object_len(&output[at..]) {
                        Some(length) => broken_until = at + length,
                        None => open_braces += 1,
                    }
                }
                at += 1;
            }
            continue;
        }
        let Some((mark, end)) = mark_at(output, at) else {
            at += output[at..].chars().next().map_or(1, char::len_utf8);
            continue;
        };
        if thought.is_none() && at < broken_until {
            return Err("a reasoning tag stands in a JSON object that cannot be read".to_owned());
        }
        match (thought, mark) {
            (None, Mark::Open(kind)) => {
                parts.push(start..at);
                thought = Some((kind, 1));
            }
            // Its opening tag was in the prompt, so everything before it is a thought.
            (None, Mark::Close(_)) => {
                parts.clear();
                start = end;
            }
            (Some((kind, depth)), Mark::Open(opened)) if kind == opened && kind != Kind::Block => {
                thought = Some((kind, depth + 1));
            }
            (Some((kind, depth)), Mark::Close(closed)) if kind == closed => {
                thought = (depth > 1).then_some((kind, depth - 1));
                start = end;
            }
            (None | Some((Kind::Channel, _)), Mark::Channel { is_answer }) => {
                if !has_final {
                    parts.clear();
                } else if thought.is_none() {
                    parts.push(start..at);
                }
                has_final |= is_answer;
                thought = (!is_answer).then_some((Kind::Channel, 1));
                start = end;
            }
            (Some((Kind::Channel, _)), Mark::Start | Mark::End { .. }) => {
                thought = None;
                start = end;
            }
            (None, Mark::End { starts_another: true }) if !has_final => {
                parts.clear();
                start = end;
            }
            (None, Mark::Start | Mark::End { .. }) => {
                parts.push(start..at);
                start = end;
            }
            (Some(_), _) => {}
        }
        at = end;
    }
    if thought.is_some() {
        return Err(UNFINISHED.to_owned());
    }
    parts.push(start..output.len());
    Ok(parts)
}

/// The length of the JSON object that a text begins with. Objects are in each other 128 deep at most, which bounds the time.
pub(super) fn json_object_len(text: &str) -> Option<usize> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Json>();
    values.next()?.ok()?;
    Some(values.byte_offset())
}

/// Where the final channel begins, if an output begins with the channel names of harmony whose marks the server removed:
/// `analysis…assistantfinal…`. `Some(None)` if there is no final channel.
fn after_bare_channels(output: &str) -> Option<Option<usize>> {
    const FINAL: &str = "assistantfinal";
    let text = output.trim_start();
    let text = text.strip_prefix("assistant").unwrap_or(text);
    let rest = ["analysis", "commentary"].iter().find_map(|name| text.strip_prefix(name))?;
    let at = output.find(FINAL).map(|at| at + FINAL.len());
    // A sentence that begins with the word continues after a space.
    let is_channel = rest.starts_with(|next: char| next.is_uppercase() || matches!(next, '\n' | '\r' | '{'));
    (at.is_some() || is_channel).then_some(at)
}

/// Whether a JSON object or a mark can begin with this character.
fn is_candidate(character: char) -> bool {
    matches!(character, '{' | '<' | '[' | '\u{25c1}' | '.' | '\u{2026}' | 'T' | 't' | 'D' | 'd')
}

/// The mark that stands at this place, and where it ends.
fn mark_at(text: &str, at: usize) -> Option<(Mark, usize)> {
    let rest = &text[at..];
    let (mark, length) = match rest.chars().next()? {
        '<' | '\u{25c1}' => {
            pair(rest).or_else(|| channel(text, at)).or_else(|| tag(rest, false)).filter(|found| {
                let before = text[..at].chars().next_back();
                let after = rest[found.1..].chars().next();
                let is_pair = |(open, close)| before == Some(open) && after == Some(close);
                ![('`', '`'), ('"', '"'), ('\'', '\''), ('\u{201c}', '\u{201d}')].into_iter().any(is_pair)
            })
        }
        '[' => {
            tag(rest, true).filter(|found| !text[..at].ends_with('`') || !rest[found.1..].starts_with('`'))
        }
        _ => block(text, at),
    }?;
    Some((mark, at + length))
}

fn pair(rest: &str) -> Option<(Mark, usize)> {
    PAIRS.iter().enumerate().find_map(|(number, (open, close))| {
        let kind = Kind::Pair(number);
        let is = |mark: &str| without_prefix(rest, mark).is_some();
        is(open)
            .then_some((Mark::Open(kind), open.len()))
            .or_else(|| is(close).then_some((Mark::Close(kind), close.len())))
    })
}

/// `<think>`, `</think>`, `<think effort="low">`; with square brackets in capitals, as models write them, and for `think` in
/// any case.
fn tag(rest: &str, square: bool) -> Option<(Mark, usize)> {
    let inner = &rest[1..];
    let (inner, is_closing) = inner.strip_prefix('/').map_or((inner, false), |inner| (inner, true));
    let length = inner
        .find(|letter: char| !letter.is_ascii_alphanumeric() && !matches!(letter, ':' | '_' | '-'))
        .unwrap_or(inner.len());
    let (full_name, after) = inner.split_at(length);
    let bare_name = full_name.rsplit(':').next()?;
    let name = TAGS.split('|').position(|tag| tag.eq_ignore_ascii_case(bare_name))?;
    let kind = Kind::Tag { name, square };
    let end = match square {
        true => {
            // Those of `think` and `thinking`, which are the first.
            let is_mark = full_name.to_ascii_uppercase() == full_name || name < 2;
            (is_mark && after.starts_with(']') && !after.starts_with("](")).then_some(1)?
        }
        false => {
            let head = head(after);
            let end = head.find(['>', '<', '{']).filter(|end| head[*end..].starts_with('>'))?;
            let attributes = &head[..end];
            if attributes.ends_with('/')
                || !(attributes.is_empty() || attributes.starts_with(char::is_whitespace))
            {
                return None;
            }
            end + 1
        }
    };
    let mark = if is_closing { Mark::Close(kind) } else { Mark::Open(kind) };
    Some((mark, rest.len() - after.len() + end))
}

/// The marks of harmony.
fn channel(text: &str, at: usize) -> Option<(Mark, usize)> {
    const MESSAGE: &str = "<|message|>";
    let rest = &text[at..];
    if let Some(after) = without_prefix(rest, "<|channel|>") {
        let head = head(after);
        let header = head.find(MESSAGE).map_or("", |end| &head[..end]);
        let length =
            rest.len() - after.len() + if header.is_empty() { 0 } else { header.len() + MESSAGE.len() };
        return Some((Mark::Channel { is_answer: first_word(header) == "final" }, length));
    }
    if without_prefix(rest, MESSAGE).is_some() {
        // The prompt, or the server, had the beginning of the header.
        let before = text[..at].trim_end();
        let is_answer = before.is_empty() || ["final", "assistant"].iter().any(|name| before.ends_with(name));
        return Some((Mark::Channel { is_answer }, MESSAGE.len()));
    }
    if let Some(after) = without_prefix(rest, "<|start|>") {
        let role = after.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(after.len());
        return Some((Mark::Start, rest.len() - after.len() + role));
    }
    let after = ["<|end|>", "<|return|>", "<|call|>"].iter().find_map(|mark| without_prefix(rest, mark))?;
    let starts_another = without_prefix(after.trim_start(), "<|start|>").is_some();
    Some((Mark::End { starts_another }, rest.len() - after.len()))
}

/// The lines that a CLI prints around a thought.
fn block(text: &str, at: usize) -> Option<(Mark, usize)> {
    let rest = &text[at..];
    let begins_line = || is_blank(text[..at].rsplit('\n').next().unwrap_or_default());
    let ends_line = |after: &str| is_blank(after.split('\n').next().unwrap_or_default());
    if let Some(after) = without_prefix(rest, "thinking").and_then(without_dots) {
        return (begins_line() && ends_line(after))
            .then_some((Mark::Open(Kind::Block), rest.len() - after.len()));
    }
    let dots = without_dots(rest);
    let after = without_prefix(dots.unwrap_or(rest), "done thinking")?;
    let after = after.strip_prefix('.').unwrap_or(after);
    let is_line = dots.is_some() || begins_line() && ends_line(after);
    is_line.then_some((Mark::Close(Kind::Block), rest.len() - after.len()))
}

fn without_dots(text: &str) -> Option<&str> {
    without_prefix(text, "...").or_else(|| without_prefix(text, "\u{2026}"))
}

/// Whether a piece of a line shows nothing: white space, control characters, and sequences that colour it.
fn is_blank(piece: &str) -> bool {
    let mut characters = piece.chars().peekable();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' && characters.next_if_eq(&'[').is_some() {
            characters.by_ref().find(|character| ('\u{40}'..='\u{7e}').contains(character));
        } else if !character.is_whitespace() && !character.is_control() {
            return false;
        }
    }
    true
}

fn without_prefix<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let is_prefix = text.get(..prefix.len())?.eq_ignore_ascii_case(prefix);
    is_prefix.then(|| &text[prefix.len()..])
}

fn first_word(text: &str) -> &str {
    text.trim_start().split(|letter: char| !letter.is_ascii_alphanumeric()).next().unwrap_or_default()
}

fn head(text: &str) -> &str {
    &text[..text.char_indices().nth(MAX_HEADER).map_or(text.len(), |(at, _)| at)]
}
