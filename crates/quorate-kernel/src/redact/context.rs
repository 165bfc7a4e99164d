//! Secrets recognized by context: blocks, headers, URLs, cookies, command lines and files of credentials.

use std::ops::Range;

use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::{Engine as _, alphabet};

use super::shape::{base64, dashed, run, tilde, url};
use super::{Detector, Kind, assignment, plausibility};

/// The most bytes that are looked at before something is a secret.
pub(super) const MAX_LOOKAHEAD_BYTES: usize = 512;

/// What leads to each, and what finds it.
pub(super) const KINDS: &[Kind] = &[
    by_context("private key (PEM, PGP, OpenSSH)", &["-----BEGIN "], private_key),
    by_context("end of a private key", &["-----END "], end_of_key),
    by_context("private key (PuTTY)", &["Private-Lines: "], putty),
    by_context("JSON Web Token", &[".eyJ"], web_token),
    by_context("Discord bot token", &["."], discord),
    by_context("Authorization header", &["authorization"], header),
    by_context("bearer token", &["bearer"], bearer),
    by_context("credentials in a URL", &["://"], userinfo),
    by_context("signed URL", &["sig=", "signature="], signature),
    by_context("cookie", &["cookie:", "cookie\":", "cookie':"], cookie),
    by_context(
        "user and password on a command line",
        &["-u", "-su", "-sSu", "-ku", "--user", "--proxy-user"],
        command_line,
    ),
    by_context("login in base64", &["auth\"", "_auth", "_password"], login),
    by_context("password of a .netrc", &["password"], netrc),
    by_context("assignment of a secret", assignment::ANCHORS, assignment::find),
];

const fn by_context(name: &'static str, anchors: &'static [&'static str], find: super::Detect) -> Kind {
    Kind { name, detector: Detector::Place(anchors, find) }
}

/// The length of a heading's name, `RSA PRIVATE KEY` or `PGP PRIVATE KEY BLOCK`, with the dashes behind it.
fn heading(rest: &str) -> Option<usize> {
    let name = run(&rest.as_bytes()[..rest.len().min(48)], |byte| {
        byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' '
    });
    let is_key = rest[..name].ends_with("PRIVATE KEY") || rest[..name].ends_with("PRIVATE KEY BLOCK");
    (is_key && rest[name..].starts_with("-----")).then_some(name + 5)
}

/// A key from its beginning: to its end, or as far as there are lines of it. What is read lies before the next heading.
fn private_key(text: &str, anchor: Range<usize>) -> Option<Range<usize>> {
    let body = anchor.end + heading(&text[anchor.end..])?;
    let inside = &text[body..];
    if let Some(next) = inside.find("-----").filter(|next| !inside[..*next].contains('"'))
        && let Some(end) = inside[next..].strip_prefix("-----END ").and_then(heading)
    {
        return Some(anchor.start..body + next + "-----END ".len() + end);
    }
    match lines(inside) {
        0 => None,
        length => Some(anchor.start..body + length),
    }
}

/// How far there are lines of a key, each of 16 characters or more: as they stand, quoted, or as strings of a program.
fn lines(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut end) = (0, 0);
    while at < bytes.len() {
        let rest = &bytes[at..];
        let between = match rest {
            [b'\\', b'n' | b'r', ..] => 2,
            [b'>' | b'|' | b'#' | b'*' | b'"' | b',', ..] => 1,
            [b'+', next, ..] if !base64(*next) => 1,
            [byte, ..] if byte.is_ascii_whitespace() => 1,
            _ => 0,
        };
        if between > 0 {
            at += between;
            continue;
        }
        let line = run(rest, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='));
        if line < 16 {
            break;
        }
        at += line;
        end = at;
    }
    end
}

/// A key whose beginning is missing: the lines before its end, of which all but the last are long. What is read lies
/// behind the heading before.
fn end_of_key(text: &str, anchor: Range<usize>) -> Option<Range<usize>> {
    let end = anchor.end + heading(&text[anchor.end..])?;
    let between = |one: char| one.is_ascii_whitespace() || matches!(one, '>' | '|' | '#' | '*' | '"' | ',');
    let of_key = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let (mut rest, mut first, mut long) = (&text[..anchor.start], None, false);
    loop {
        let mut line = rest.trim_end_matches(between);
        while let Some(shorter) = line.strip_suffix("\\n").or_else(|| line.strip_suffix("\\r")) {
            line = shorter.trim_end_matches(between);
        }
        let length = line.bytes().rev().take_while(|byte| of_key(byte)).count();
        if length == 0 || length < 16 && first.is_some() {
            break;
        }
        long |= length >= 16;
        rest = &line[..line.len() - length];
        first = Some(rest.len());
    }
    first.filter(|_| long).map(|first| first..end)
}

fn putty(text: &str, anchor: Range<usize>) -> Option<Range<usize>> {
    let rest = &text.as_bytes()[anchor.end..];
    let count = run(&rest[..rest.len().min(8)], |byte| byte.is_ascii_digit());
    match lines(&text[anchor.end + count..]) {
        0 => None,
        length => Some(anchor.end + count..anchor.end + count + length),
    }
}

/// A token of three parts. The anchor is where the second begins: no part has a dot, so that each is read once.
fn web_token(text: &str, anchor: Range<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let head = bytes[..anchor.start].iter().rev().take_while(|byte| dashed(**byte)).count();
    let head = &text[anchor.start - head..anchor.start];
    let start = head.find("eyJ").filter(|at| head.len() - at >= 13)? + anchor.start - head.len();
    let payload = run(&bytes[anchor.end..], dashed);
    let dot = anchor.end + payload;
    if payload < 10 || bytes.get(dot) != Some(&b'.') {
        return None;
    }
    let signature = run(&bytes[dot + 1..], dashed);
    (signature >= 10).then_some(start..dot + 1 + signature)
}

/// A bot's token: its number in base64, which begins with M, N or O, then a time, then a signature.
fn discord(text: &str, anchor: Range<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    if run(&bytes[anchor.end..bytes.len().min(anchor.end + 7)], dashed) != 6
        || bytes.get(anchor.end + 6) != Some(&b'.')
    {
        return None;
    }
    let head = bytes[..anchor.start].iter().rev().take(29).take_while(|byte| dashed(**byte)).count();
    let start = anchor.start - head;
    let last = anchor.end + 7;
    let tail = run(&bytes[last..], dashed);
    let is_bot = (24..=28).contains(&head) && matches!(bytes[start], b'M' | b'N' | b'O') && tail >= 27;
    (is_bot && plausibility::is_random(&[&text[start..last + tail]])).then_some(start..last + tail)
}

/// The part of an authorization header after its scheme: one value, or parameters of which one is random.
fn header(text: &str, anchor: Range<usize>) -> Option<Range<usize>> {
    const MAX_SCHEME_BYTES: usize = 32;
    let mut at = assignment::value_after_colon(text, anchor.end)
        .or_else(|| assignment::argument_after(text, anchor.end))?;
    let rest = &text[at..];
    let of_scheme = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let scheme = run(&rest.as_bytes()[..rest.len().min(MAX_SCHEME_BYTES)], of_scheme);
    if scheme > 0
        && rest.as_bytes()[0].is_ascii_alphabetic()
        && let Some(space) = space(&rest[scheme..])
    {
        at += scheme + space;
    }
    if begins_parameter(&text[at..])
        && let Some(span) = parameters(text, at)
    {
        return Some(span);
    }
    let span = value(text, at);
    let following = &text[span.start..span.end.min(span.start + MAX_LOOKAHEAD_BYTES)];
    (following.len() >= 8 && (is_random(following) || is_login(following))).then_some(span)
}

/// Whether a name and its value begin here. The signs at the end of base64 begin none.
fn begins_parameter(rest: &str) -> bool {
    let bytes = rest.as_bytes();
    let name = run(&bytes[..bytes.len().min(32)], |byte| byte.is_ascii_alphanumeric());
    name > 0
        && bytes.get(name) == Some(&b'=')
        && bytes.get(name + 1).is_some_and(|byte| *byte != b'=' && byte.is_ascii_graphic())
}

/// The parameters of a header in which one value is random, as in `Digest username="ada", response="…"`.
fn parameters(text: &str, at: usize) -> Option<Range<usize>> {
    let in_line = |byte: &u8| !byte.is_ascii_control();
    let length =
        text.as_bytes()[at..].iter().take(MAX_LOOKAHEAD_BYTES).take_while(|byte| in_line(byte)).count();
    let first = &text[at..plausibility::floor_char_boundary(text, at + length)];
    let values = first.split([',', ' ']).filter_map(|pair| pair.split_once('=')).map(|(_, value)| value);
    let mut values = values.map(|value| value.trim_matches(['"', '\'', '\\']));
    let is_secret = values.any(|value| value.len() >= 16 && is_random(value));
    is_secret.then(|| at..at + text[at..].bytes().take_while(|byte| in_line(byte)).count())
}

fn bearer(text: &str, anchor: Range<usize>) -> Option<Range<usize>> {
    let span = value(text, anchor.end + space(&text[anchor.end..])?);
    let following = &text[span.start..span.end.min(span.start + MAX_LOOKAHEAD_BYTES)];
    (following.len() >= 20 && is_random(following)).then_some(span)
}

fn is_random(said: &str) -> bool {
    plausibility::is_mixed(said) && !plausibility::is_words(said) && !plausibility::is_example(said)
}

/// The length of a space as headers and URLs write it, up to four of them.
fn space(rest: &str) -> Option<usize> {
    let mut length = 0;
    for _ in 0..4 {
        length += match rest.as_bytes()[length..] {
            [b' ' | b'\t' | b'+', ..] => 1,
            [b'%', b'2', b'0', ..] => 3,
            _ => break,
        };
    }
    (length > 0).then_some(length)
}

/// The value that starts here. Only where its first bytes are a secret is it read to its end.
fn value(text: &str, at: usize) -> Range<usize> {
    let rest = &text.as_bytes()[at..];
    let of_value = |byte| base64(byte) || tilde(byte);
    let first = &rest[..rest.len().min(MAX_LOOKAHEAD_BYTES)];
    let mut length = run(first, of_value);
    if length == MAX_LOOKAHEAD_BYTES && is_random(&text[at..at + length]) {
        length = run(rest, of_value);
    }
    at..at + length
}

/// The password before an `@`, or a random user name; not a placeholder.
fn userinfo(text: &str, anchor: Range<usize>) -> Option<Range<usize>> {
    let rest = &text[anchor.end..];
    let of_it = |byte: &u8| {
        byte.is_ascii_graphic() && !matches!(byte, b'/' | b'@' | b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\')
    };
    let mut length = rest.bytes().take(MAX_LOOKAHEAD_BYTES).take_while(of_it).count();
    if rest.as_bytes().get(length) != Some(&b'@') {
        return None;
    }
    // A password may have an `@` of its own: the last one before the path is before the host.
    let of_authority = |byte: &u8| of_it(byte) && !b"?#,;()[]&|".contains(byte) || *byte == b'@';
    let authority = rest.bytes().take(MAX_LOOKAHEAD_BYTES).skip(length).take_while(of_authority);
    if rest[..length].contains(':') {
        length += authority.enumerate().filter(|(_, byte)| *byte == b'@').last().map_or(0, |(at, _)| at);
    }
    let value = &rest[..length];
    let is_key = |user: &str| user.len() >= 20 && plausibility::is_generated(user);
    let (start, secret) = match value.split_once(':') {
        Some((user, _)) if is_key(user) => (0, true),
        Some((user, password)) => {
            (user.len() + 1, password.len() >= 3 && !plausibility::is_placeholder(password))
        }
        None => (0, is_key(value)),
    };
    secret.then_some(anchor.end + start..anchor.end + length)
}

/// The signature of a URL that gives access to what it names.
fn signature(text: &str, anchor: Range<usize>) -> Option<Range<usize>> {
    let name = text[..anchor.start].bytes().rev().take(16).take_while(|byte| dashed(*byte)).count();
    let before = text.as_bytes().get((anchor.start - name).checked_sub(1)?)?;
    let rest = &text.as_bytes()[anchor.end..];
    let length = run(&rest[..rest.len().min(MAX_LOOKAHEAD_BYTES)], |byte| url(byte) && byte != b'.');
    let is_signature = matches!(before, b'?' | b'&' | b';') && length >= 40;
    (is_signature && plausibility::is_random(&[&text[anchor.end..anchor.end + length]]))
        .then(|| anchor.end..anchor.end + run(rest, url))
}

/// All of a cookie header in which one value is random.
fn cookie(text: &str, anchor: Range<usize>) -> Option<Range<usize>> {
    let rest = &text[anchor.end..];
    let start = run(&rest.as_bytes()[..rest.len().min(4)], |byte| matches!(byte, b' ' | b'"' | b'\''));
    let in_line = |byte: &u8| !byte.is_ascii_control() && !matches!(byte, b'"' | b'\'' | b'\\' | b'<');
    let length = rest.bytes().skip(start).take(MAX_LOOKAHEAD_BYTES).take_while(in_line).count();
    let mut length = start + length;
    while !rest.is_char_boundary(length) {
        length -= 1;
    }
    let values = rest[start..length].split(';').filter_map(|pair| pair.split_once('='));
    let mut values = values.map(|(_, value)| value.trim());
    let random = values.any(|value| {
        value.len() >= 16
            && (plausibility::is_generated(value) || value.contains('%') && plausibility::is_mixed(value))
    });
    let end = || start + rest.bytes().skip(start).take_while(in_line).count();
    random.then(|| anchor.end + start..anchor.end + end())
}

/// The password of `curl -u user:password`, and of what takes it likewise.
fn command_line(text: &str, anchor: Range<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let programs = ["curl", "wget", "http", "Invoke-"];
    let mut from = anchor.start.saturating_sub(MAX_LOOKAHEAD_BYTES);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let begins = anchor.start > 0 && matches!(bytes[anchor.start - 1], b' ' | b'\t' | b'\n');
    if !begins || !programs.iter().any(|program| text[from..anchor.start].contains(program)) {
        return None;
    }
    let gap = run(&bytes[anchor.end..bytes.len().min(anchor.end + 8)], |byte| {
        matches!(byte, b' ' | b'=' | b'"' | b'\'' | b'\\')
    });
    let at = anchor.end + gap;
    let of_it = |byte: &u8| {
        !byte.is_ascii_whitespace() && !byte.is_ascii_control() && !matches!(byte, b'"' | b'\'' | b'\\')
    };
    let mut length = bytes[at..].iter().take(MAX_LOOKAHEAD_BYTES).take_while(|byte| of_it(byte)).count();
    while !text.is_char_boundary(at + length) {
        length -= 1;
    }
    let (user, password) = text[at..at + length].split_once(':')?;
    // Some services take a key as the user, with any password or none.
    if user.len() >= 16 && plausibility::is_generated(user) {
        return Some(at..at + length);
    }
    let is_one =
        !password.starts_with("//") && password.len() >= 3 && !plausibility::is_placeholder(password);
    is_one.then_some(at + user.len() + 1..at + length)
}

/// A user and a password in base64, as docker and npm keep them.
fn login(text: &str, anchor: Range<usize>) -> Option<Range<usize>> {
    let quoted = anchor.end - usize::from(text[..anchor.end].ends_with('"'));
    let at = assignment::value_after_colon(text, quoted)?;
    let rest = &text.as_bytes()[at..];
    let length = run(&rest[..rest.len().min(MAX_LOOKAHEAD_BYTES)], base64);
    let value = &text[at..at + length];
    let is_password = text[anchor].eq_ignore_ascii_case("_password");
    let secret = is_login(value) || is_password && length >= 8 && decoded(value).is_some();
    secret.then_some(at..at + length)
}

/// Whether it is base64 of a user, a colon and a password.
fn is_login(said: &str) -> bool {
    let login = decoded(said).filter(|_| said.len() <= MAX_LOOKAHEAD_BYTES);
    login.is_some_and(|login| {
        login.split_once(':').is_some_and(|(user, password)| !user.is_empty() && password.len() >= 3)
    })
}

/// The printable text that base64 stands for.
fn decoded(said: &str) -> Option<String> {
    const PADDING: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let engine = GeneralPurpose::new(&alphabet::STANDARD, PADDING);
    let text = String::from_utf8(engine.decode(said).ok()?).ok()?;
    (!text.is_empty() && !text.chars().any(char::is_control)).then_some(text)
}

/// The password of a machine, in words that white space parts.
fn netrc(text: &str, anchor: Range<usize>) -> Option<Range<usize>> {
    let mut from = anchor.start.saturating_sub(MAX_LOOKAHEAD_BYTES / 2);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let before = &text[from..anchor.start];
    let words: Vec<&str> = before.split_ascii_whitespace().rev().take(4).collect();
    let is_host = |host: &str| host.contains(['.', ':']) || host == "localhost";
    let of_machine = match words[..] {
        [_, "login", host, "machine"] | [host, "machine", ..] => is_host(host),
        [_, "login", "default", ..] => true,
        _ => false,
    };
    let rest = &text[anchor.end..];
    let gap = run(&rest.as_bytes()[..rest.len().min(32)], |byte| byte.is_ascii_whitespace());
    // A host without a dot may be a word of prose, so that the password has to look like one.
    let may_be_of_machine = matches!(words[..], [_, "login", _, "machine"]);
    if !(of_machine || may_be_of_machine) || gap == 0 || !before.ends_with(|c: char| c.is_ascii_whitespace())
    {
        return None;
    }
    let length =
        rest[gap..].bytes().take(MAX_LOOKAHEAD_BYTES).take_while(|byte| byte.is_ascii_graphic()).count();
    let password = &rest[gap..gap + length];
    let is_one = of_machine || plausibility::could_be_password(password);
    (is_one && length >= 3 && !plausibility::is_placeholder(password))
        .then_some(anchor.end + gap..anchor.end + gap + length)
}

/// What leads to each, and what finds it.
pub(super) const COMMAND_KINDS: &[Kind] = &[
    by_context("password on a command line", &["-p", "-a"], option),
    by_context("cookie on a command line", &["-b", "--cookie"], cookie_option),
    by_context("cookies of a program", &["cookies"], cookies),
    by_context("password of a statement", &["identified by"], statement),
    by_context("password of a .pgpass", &[":5432:", ":5433:", ":6432:"], pgpass),
    by_context("password of an Oracle URL", &["jdbc:oracle:"], oracle),
];

/// The bounded text before an option in its command; `None` if no option can begin here.
fn command<'t>(text: &'t str, anchor: &Range<usize>) -> Option<&'t [u8]> {
    let bytes = &text.as_bytes()[..anchor.start];
    if !matches!(bytes.last(), Some(b' ' | b'\t')) {
        return None;
    }
    let near = &bytes[bytes.len().saturating_sub(MAX_LOOKAHEAD_BYTES / 2)..];
    let from =
        near.iter().rposition(|byte| matches!(byte, b'\n' | b';' | b'|' | b'&')).map_or(0, |at| at + 1);
    Some(&near[from..])
}

/// Whether a command has a word that begins so.
fn has_word(command: &[u8], word: &str) -> bool {
    let begins = |at: usize| at == 0 || !command[at - 1].is_ascii_alphanumeric();
    command.windows(word.len()).enumerate().any(|(at, one)| one == word.as_bytes() && begins(at))
}

/// The value of an option: `mysql` has it right behind, the others behind a blank.
fn option(text: &str, anchor: Range<usize>) -> Option<Range<usize>> {
    let command = command(text, &anchor)?;
    let gap = text[anchor.end..].bytes().take(4).take_while(|byte| *byte == b' ').count();
    let is_one = match (&text[anchor.clone()], gap) {
        ("-p", 0) => ["mysql", "mariadb"].iter().any(|word| has_word(command, word)),
        ("-p", _) => {
            has_word(command, "sshpass") || has_word(command, "login") && !has_word(command, "mysql")
        }
        ("-a", 1..) => has_word(command, "redis-cli"),
        _ => false,
    };
    is_one.then(|| assignment::password_at(text, anchor.end + gap)).flatten()
}

/// The cookie that `curl` sends, if a value in it is random. A file of cookies is not.
fn cookie_option(text: &str, anchor: Range<usize>) -> Option<Range<usize>> {
    if !has_word(command(text, &anchor)?, "curl") {
        return None;
    }
    let rest = &text.as_bytes()[anchor.end..];
    let gap = rest.iter().take(4).take_while(|byte| matches!(byte, b' ' | b'=' | b'"' | b'\'')).count();
    let quoted = gap > 0 && matches!(rest[gap - 1], b'"' | b'\'');
    let of_it = |byte: &&u8| {
        !byte.is_ascii_control() && !matches!(byte, b'"' | b'\'' | b'\\') && (quoted || **byte != b' ')
    };
    let length = rest[gap..].iter().take(MAX_LOOKAHEAD_BYTES).take_while(of_it).count();
    let at = anchor.end + gap;
    let command = &text[at..plausibility::floor_char_boundary(text, at + length)];
    let mut values = command.split(';').filter_map(|pair| pair.split_once('='));
    let found = values.any(|(_, value)| {
        value.len() >= 16 && plausibility::is_generated(value) && !plausibility::is_example(value)
    });
    (gap > 0 && found).then(|| at..at + command.len())
}

/// The first random value of a table of cookies.
fn cookies(text: &str, anchor: Range<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let at = assignment::value_after_colon(text, anchor.end)?;
    if bytes.get(at) != Some(&b'{') {
        return None;
    }
    let inside = &bytes[at..bytes.len().min(at + MAX_LOOKAHEAD_BYTES)];
    let inside = &inside[..inside.iter().position(|byte| *byte == b'}').unwrap_or(inside.len())];
    let mut from = 0;
    // Between marks, every string in turn.
    while let Some(open) = inside[from..].iter().position(|byte| matches!(byte, b'"' | b'\'')) {
        let start = from + open + 1;
        let length = inside[start..].iter().position(|byte| *byte == inside[start - 1])?;
        let command = text.get(at + start..at + start + length)?;
        if command.len() >= 16 && plausibility::is_generated(command) && !plausibility::is_example(command) {
            return Some(at + start..at + start + length);
        }
        from = start + length + 1;
    }
    None
}

fn statement(text: &str, anchor: Range<usize>) -> Option<Range<usize>> {
    let gap = text[anchor.end..].bytes().take(16).take_while(u8::is_ascii_whitespace).count();
    (gap > 0).then(|| assignment::password_at(text, anchor.end + gap)).flatten()
}

/// The last of the five fields of a line, `host:port:database:user:password`.
fn pgpass(text: &str, anchor: Range<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let of_host = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'*');
    let host = bytes[..anchor.start].iter().rev().take(MAX_LOOKAHEAD_BYTES / 2).take_while(of_host).count();
    let begins = !bytes[..anchor.start - host].last().is_some_and(u8::is_ascii_graphic);
    let mut at = anchor.end;
    for _ in ["database", "user"] {
        let of_field = |byte: &&u8| byte.is_ascii_graphic() && !matches!(byte, b':' | b'/' | b'"' | b'\'');
        let length = bytes[at..].iter().take(64).take_while(of_field).count();
        if length == 0 || bytes.get(at + length) != Some(&b':') {
            return None;
        }
        at += length + 1;
    }
    (host > 0 && begins).then(|| assignment::password_at(text, at)).flatten()
}

/// `jdbc:oracle:thin:user/password@…`
fn oracle(text: &str, anchor: Range<usize>) -> Option<Range<usize>> {
    let rest = &text.as_bytes()[anchor.end..];
    let rest = &rest[..rest.len().min(MAX_LOOKAHEAD_BYTES)];
    let driver = rest.iter().take(8).position(|byte| *byte == b':')? + 1;
    let of_it =
        |byte: &&u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'@' | b'"' | b'\'' | b'<' | b'\\');
    let user = rest[driver..].iter().take_while(of_it).count();
    let start = driver + user + 1;
    if user == 0 || rest.get(start - 1) != Some(&b'/') {
        return None;
    }
    let length = rest[start..].iter().take_while(of_it).count();
    let password = &text[anchor.end + start..anchor.end + start + length];
    let is_one =
        length >= 3 && rest.get(start + length) == Some(&b'@') && !plausibility::is_placeholder(password);
    is_one.then(|| anchor.end + start..anchor.end + start + length)
}

/// The longest line that is read as a row, in bytes. People write shorter rows.
const MAX_LINE_BYTES: usize = 4096;
/// The longest table_header that is read as a name, in bytes.
const MAX_HEADER_BYTES: usize = 40;

/// The cells that are likely to be secrets. A table ends at the first line without its sign.
pub(super) fn spans(text: &str) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let mut table: Option<Header<'_>> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let is_row = table.as_ref().is_some_and(|table_header| line.contains(table_header.sign));
        if line.len() > MAX_LINE_BYTES || !is_row {
            table = Some(line).filter(|line| line.len() <= MAX_LINE_BYTES).and_then(table_header);
            continue;
        }
        let Some(table_header) = &table else { continue };
        let cells: Vec<Range<usize>> = cells(line, table_header.sign).collect();
        if cells.len() != table_header.columns {
            continue;
        }
        let secrets = table_header
            .names
            .iter()
            .filter(|(column, name)| assignment::is_cell_of(name, &line[cells[*column].clone()]));
        spans.extend(secrets.map(|(column, _)| start + cells[*column].start..start + cells[*column].end));
    }
    spans
}

struct Header<'t> {
    sign: char,
    columns: usize,
    /// The columns that name a secret.
    names: Vec<(usize, &'t str)>,
}

fn table_header(line: &str) -> Option<Header<'_>> {
    let sign = ['|', '\t', ';', ','].into_iter().find(|sign| line.contains(*sign))?;
    let cells: Vec<&str> = cells(line, sign).map(|cell| &line[cell]).collect();
    if cells.iter().any(|cell| cell.len() > MAX_HEADER_BYTES) {
        return None;
    }
    let names = cells.iter().enumerate().filter(|(_, name)| is_name(name) && assignment::names_kind(name));
    let names: Vec<(usize, &str)> = names.map(|(column, name)| (column, *name)).collect();
    (!names.is_empty()).then_some(Header { sign, columns: cells.len(), names })
}

/// Whether a cell has words alone, as names have.
fn is_name(cell: &str) -> bool {
    cell.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'_' | b'-' | b'.'))
}

/// The cells of a line without what encloses them.
fn cells(line: &str, sign: char) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    line.split(sign).map(move |cell| {
        let start = at;
        at += cell.len() + sign.len_utf8();
        let enclosing = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '*');
        let start = start + cell.len() - cell.trim_start_matches(enclosing).len();
        start..start + cell.trim_matches(enclosing).len()
    })
}
