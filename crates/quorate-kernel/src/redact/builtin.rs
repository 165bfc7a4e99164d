//! The kinds of secrets that are known by their shape. One pass over a text says which kinds may be in it; only those
//! are looked for. An expression has no open end: what follows it is taken by plain code, so that no text costs more
//! than time in proportion to its length.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

use regex::{Regex, RegexSet};

use super::likely;

/// What changes when other texts would be taken for secrets. It stands in the fingerprint of a run.
pub const VERSION: u32 = 1;

/// The shortest text in which there can be a secret of any kind.
const SHORTEST: usize = 12;
/// The longest value of an assignment that is looked at.
const LONGEST: usize = 512;

/// How a kind is told once its expression has matched.
enum Told {
    /// The match is the secret, and so is what follows it of these bytes. What stands before it must not go on in it.
    Token(fn(u8) -> bool),
    /// As [`Told::Token`], and nothing of these bytes may follow.
    Exact(fn(u8) -> bool),
    /// The match is the secret.
    Whole,
    /// The match ends the secret, the rest of whose length is said from what stands before; 0 is none.
    After(fn(&str) -> usize),
    /// The match leads up to the secret, whose length is said from the match and what follows; 0 is none.
    Next(fn(&str, &str) -> usize),
}

struct Kind {
    name: &'static str,
    pattern: &'static str,
    told: Told,
}

const fn kind(name: &'static str, pattern: &'static str, told: Told) -> Kind {
    Kind { name, pattern, told }
}

use Told::{After, Exact, Next, Token, Whole};

/// What each kind looks like. Blocks come first, then tokens, then what only its place gives away.
const KINDS: &[Kind] = &[
    kind(
        "private key (PEM, PGP, OpenSSH)",
        r#"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:(?:-{0,4}[^-"])*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|(?:(?:\\[nr]|[\s>|#*+]|"\s*[,+]?\s*")*[A-Za-z0-9+/=]{16,})+)"#,
        Whole,
    ),
    kind("end of a private key", r"-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----", After(key_lines)),
    kind("key of Quorate", r"quorate:ed25519:seed:[A-Za-z0-9+/_-]{32}", Token(base64)),
    kind("key of age", r"AGE-SECRET-KEY-1[0-9A-Z]{58}", Exact(alphanumeric)),
    kind("access key id of AWS", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}", Exact(alphanumeric)),
    kind(
        "secret key of AWS",
        r#"(?i-u:secret[_-]?(?:access[_-]?)?key(?:\\*["'`])?[ \t]{0,4}(?:=>|[:=])[ \t]{0,4}(?:\\*["'`])?)"#,
        Next(aws_secret),
    ),
    kind("token of GitHub", r"gh[pousr]_[A-Za-z0-9]{36}", Token(word)),
    kind("fine-grained token of GitHub", r"github_pat_[A-Za-z0-9_]{22}", Token(word)),
    kind(
        "token of GitLab",
        r"gl(?:pat|ptt|dt|rt|cbt|soat|ft|imt|agent|oas)-[A-Za-z0-9_-]{20}",
        Token(dotted),
    ),
    kind("token of Slack", r"(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{10}", Token(dashed)),
    kind(
        "webhook of Slack",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9_+-]{6,12}/[A-Za-z0-9/_+-]{20}",
        Token(path),
    ),
    kind("key of Stripe", r"(?:[sr]k_(?:live|test)_|whsec_)[A-Za-z0-9]{16}", Token(word)),
    kind("key of Anthropic", r"sk-ant-[A-Za-z0-9_-]{20}", Token(dashed)),
    kind("key of OpenAI", r"sk-(?:(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20}|[A-Za-z0-9]{32})", Token(dashed)),
    kind("key of OpenRouter", r"sk-or-v1-[0-9a-f]{64}", Token(dashed)),
    kind("key of Google", r"AIza[A-Za-z0-9_-]{35}", Exact(dashed)),
    kind("OAuth token of Google", r"ya29\.[A-Za-z0-9_-]{20}", Token(dotted)),
    kind("OAuth secret of Google", r"GOCSPX-[A-Za-z0-9_-]{28}", Token(dashed)),
    kind("token of npm", r"npm_[A-Za-z0-9]{36}", Token(word)),
    kind("token of PyPI", r"pypi-[A-Za-z0-9_-]{40}", Token(dashed)),
    kind("token of Hugging Face", r"hf_[A-Za-z0-9]{30}", Token(word)),
    kind("bot of Telegram", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}", Exact(dashed)),
    kind("bot of Discord", r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}", Token(dashed)),
    kind(
        "webhook of Discord",
        r"discord(?:app)?\.com/api/webhooks/[0-9]{15,21}/[A-Za-z0-9_-]{40}",
        Token(dashed),
    ),
    kind("key of SendGrid", r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16}", Token(dashed)),
    kind("key of Twilio", r"SK[0-9a-f]{32}", Exact(alphanumeric)),
    kind("key of Mailgun", r"key-[0-9a-f]{32}", Exact(alphanumeric)),
    kind("token of DigitalOcean", r"do[opr]_v1_[a-f0-9]{64}", Exact(alphanumeric)),
    kind("token of Shopify", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}", Exact(alphanumeric)),
    kind("token of Databricks", r"dapi[a-f0-9]{32}", Token(dashed)),
    kind("token of Vault", r"hv[sb]\.[A-Za-z0-9_-]{24}", Token(dotted)),
    kind("token of Docker", r"dckr_pat_[A-Za-z0-9_-]{24}", Token(dashed)),
    kind("JSON Web Token", r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}", Whole),
    kind(
        "Authorization header",
        r#"(?i-u:authorization(?:\\*["'`])?[ \t]{0,4}[:=][ \t]{0,4}(?:\\*["'`])?(?:(?:bearer|basic|token)(?:[ \t]|%20|\+){1,4})?)"#,
        Next(header),
    ),
    kind("bearer token", r"(?i-u:bearer[ \t]{1,4})", Next(bearer)),
    kind("password in a URL", r"[A-Za-z][A-Za-z0-9+.-]*://[A-Za-z0-9._%+~-]*:", Next(userinfo)),
    kind(
        "assignment of a secret",
        r#"(?i-u:(?:passw(?:or)?d|pwd|passphrase|secret|token|credentials?|(?:api|access|private|encryption|signing|master|account|auth|client|shared)[_-]?key)[A-Za-z0-9_-]{0,24}(?:\\*["'`])?(?:[ \t]{0,4}(?:=>|:=|==|[:=])[ \t]{0,4}|%3[Dd])(?:\\*["'`])?)"#,
        Next(assigned),
    ),
    kind(
        "secret on a command line",
        r"(?i-u:--?[a-z-]*(?:password|secret|token|api-key)[ \t]{1,4})",
        Next(assigned),
    ),
];

/// The names of all kinds, in the order in which they are looked for.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|one| one.name)
}

/// The text without secrets, and how many there were; `None` where it has none.
pub(super) fn redact(text: &str) -> Option<(String, usize)> {
    // Compiled once in a process, and in one that has nothing to redact not at all.
    static COMPILED: OnceLock<Option<Shapes>> = OnceLock::new();
    if text.len() < SHORTEST {
        return None;
    }
    match COMPILED.get_or_init(|| Shapes::compile().ok()) {
        Some(shapes) => shapes.redact(text),
        // A test sees to it that they compile. Were it otherwise, nothing of the text would be safe to show.
        None => Some((super::without(text, &whole(text)), 1)),
    }
}

fn whole(text: &str) -> Vec<Range<usize>> {
    std::iter::once(0..text.len()).collect()
}

/// All kinds, compiled.
struct Shapes {
    any: RegexSet,
    /// Each by itself, from when it is first needed: most texts need none.
    each: Vec<OnceLock<Option<Regex>>>,
}

impl Shapes {
    fn compile() -> Result<Self, regex::Error> {
        Ok(Shapes {
            any: RegexSet::new(KINDS.iter().map(|one| one.pattern))?,
            each: KINDS.iter().map(|_| OnceLock::new()).collect(),
        })
    }

    fn redact(&self, text: &str) -> Option<(String, usize)> {
        let (mut clean, mut count) = (Cow::Borrowed(text), 0);
        for which in self.any.matches(text) {
            let kind = &KINDS[which];
            let shape = self.each[which].get_or_init(|| Regex::new(kind.pattern).ok());
            // It has compiled among the others.
            let spans = shape.as_ref().map_or_else(|| whole(&clean), |shape| spans(kind, shape, &clean));
            if !spans.is_empty() {
                count += spans.len();
                clean = Cow::Owned(super::without(&clean, &spans));
            }
        }
        (count > 0).then(|| (clean.into_owned(), count))
    }
}

/// Where the secrets of a kind stand.
fn spans(kind: &Kind, shape: &Regex, text: &str) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let mut at = 0;
    while let Some(found) = shape.find_at(text, at) {
        let Range { start, end } = found.range();
        let begins = match kind.told {
            Token(_) | Exact(_) => begins(text, start),
            Whole | After(_) | Next(_) => true,
        };
        let span = match kind.told {
            _ if !begins => None,
            Whole => Some(start..end),
            Token(goes_on) => Some(start..end + run(&text[end..], goes_on)),
            Exact(goes_on) => (run(&text[end..], goes_on) == 0).then_some(start..end),
            After(length) => match length(&text[at..start]) {
                0 => None,
                length => Some(start - length..end),
            },
            Next(length) => match length(found.as_str(), &text[end..]) {
                0 => None,
                length => Some(end..end + length),
            },
        };
        at = match (&span, &kind.told) {
            (Some(span), _) => span.end,
            (None, Whole | After(_) | Next(_)) => end,
            // Every token begins with a character of one byte.
            (None, Token(_) | Exact(_)) => start + 1,
        };
        spans.extend(span);
    }
    spans
}

/// Whether a token can begin here: after nothing that it could be the rest of. What is written by an escape, as in
/// `\n` or `%3D`, ends where the escape does.
fn begins(text: &str, at: usize) -> bool {
    let before = &text.as_bytes()[..at];
    match before {
        [.., b'\\', b'n' | b'r' | b't'] | [] => true,
        [.., b'%', a, b] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => true,
        [.., b'\\', b'u', a, b, c, d] if [a, b, c, d].iter().all(|one| one.is_ascii_hexdigit()) => true,
        [.., last] => !(last.is_ascii_alphanumeric() || *last == b'+'),
    }
}

/// How many of the first bytes are of a kind.
fn run(text: &str, of: fn(u8) -> bool) -> usize {
    text.bytes().take_while(|byte| of(*byte)).count()
}

fn alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn dashed(byte: u8) -> bool {
    word(byte) || byte == b'-'
}

fn dotted(byte: u8) -> bool {
    dashed(byte) || byte == b'.'
}

fn path(byte: u8) -> bool {
    dashed(byte) || matches!(byte, b'/' | b'+')
}

fn base64(byte: u8) -> bool {
    path(byte) || byte == b'='
}

/// What stands in a header, a URL or an unquoted value.
fn visible(byte: u8) -> bool {
    base64(byte)
        || matches!(byte, b'.' | b'~' | b'!' | b'@' | b'#' | b'$' | b'%' | b'^' | b'&' | b'*' | b'?' | b':')
}

/// The lines of a key whose first ones are missing: all but the last are long.
fn key_lines(before: &str) -> usize {
    let between = |one: char| one.is_ascii_whitespace() || matches!(one, '>' | '|' | '#' | '*' | '"' | ',');
    let (mut rest, mut first) = (before, None);
    let mut lines = 0;
    loop {
        let mut text = rest.trim_end_matches(between);
        while let Some(shorter) = text.strip_suffix("\\n").or_else(|| text.strip_suffix("\\r")) {
            text = shorter.trim_end_matches(between);
        }
        let line = text
            .bytes()
            .rev()
            .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='));
        let line = line.count();
        let is_last = lines == 0 && first.is_none();
        if line == 0 || line < 16 && !is_last {
            break;
        }
        rest = &text[..text.len() - line];
        lines += usize::from(line >= 16);
        first = Some(rest.len());
    }
    first.filter(|_| lines > 0).map_or(0, |first| before.len() - first)
}

fn aws_secret(_: &str, rest: &str) -> usize {
    let length = run(rest, base64);
    if length == 40 && likely::mixed(&rest[..length]) { length } else { 0 }
}

fn header(_: &str, rest: &str) -> usize {
    let length = run(rest, |byte| base64(byte) || matches!(byte, b'.' | b'~'));
    if length >= 8 && likely::mixed(&rest[..length]) { length } else { 0 }
}

fn bearer(_: &str, rest: &str) -> usize {
    let length = run(rest, |byte| base64(byte) || matches!(byte, b'.' | b'~'));
    if length >= 20 && likely::mixed(&rest[..length]) { length } else { 0 }
}

/// The password before an `@`; a placeholder is none.
fn userinfo(_: &str, rest: &str) -> usize {
    let length =
        rest.bytes().take(LONGEST).take_while(|byte| visible(*byte) && !matches!(byte, b'/' | b'@')).count();
    let password = &rest[..length];
    let ends = rest.as_bytes().get(length) == Some(&b'@');
    if ends && length >= 3 && !likely::placeholder(password) { length } else { 0 }
}

/// The value that is assigned to a name, where it is likely to be a secret.
fn assigned(name: &str, rest: &str) -> usize {
    if likely::no_secret_by_name(name) {
        return 0;
    }
    let quoted = name.ends_with(['"', '\'', '`']);
    let goes_on = |byte: &u8| match quoted {
        true => visible(*byte) || matches!(byte, b'(' | b')' | b'{' | b'}' | b'|' | b';' | b','),
        false => visible(*byte) && *byte != b'&',
    };
    let length = rest.bytes().take(LONGEST).take_while(goes_on).count();
    let value = rest[..length].trim_end_matches(['.', ',', ':', ';', '!', '?', '*']);
    let least = if likely::names_a_password(name) { 8 } else { 16 };
    if value.len() >= least && likely::secret(value) { value.len() } else { 0 }
}

/// Whether a string is a secret for the key that it stands under, in a document.
pub(super) fn is_value_of(key: &str, value: &str) -> bool {
    let named = likely::names_a_secret(key) && !value.contains(char::is_whitespace);
    let line = || format!("{key}=\"{value}\"");
    named && redact(&line()).is_some()
}
