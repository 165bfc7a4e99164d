//! The regular expressions of the schemas, in ECMA-262 syntax as in JSON Schema, each with a description for messages.

#[derive(Debug, Clone, Copy)]
pub(crate) struct Pattern {
    pub(crate) text: &'static str,
    /// The text after "it has to be" in messages.
    pub(crate) says: &'static str,
}

macro_rules! patterns {
    ($($name:ident = $text:literal, $says:literal;)*) => {
        $(pub(crate) const $name: &str = $text;)*

        pub(crate) const ALL: &[Pattern] = &[$(Pattern { text: $text, says: $says }),*];
    };
}

patterns! {
    KEBAB = "^[a-z][a-z0-9-]*[a-z0-9]$",
        "lower-case letters, digits and dashes, beginning with a letter and not ending with a dash";
    SOMETHING = r"[^\s]",
        "some text";
    DELIBERATOR = "^[A-Za-z0-9_-]+$",
        "letters, digits, dashes and underscores";
    WORD = "^[a-z][a-z0-9-]*$",
        "lower-case letters, digits and dashes, beginning with a letter";
    PARTICIPANT = "^[a-z][a-z0-9_-]*$",
        "lower-case letters, digits, dashes and underscores, beginning with a letter";
    BLOCK = r"^[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*)*$",
        "lower-case names joined by dots";
    VERSION = r"^[0-9]+\.[0-9]+\.[0-9]+(-[A-Za-z0-9.-]+)?$",
        "a version like 1.0.0";
    PERSONA_VERSION = r"^\d+\.\d+\.\d+(?:[-+][a-zA-Z0-9.-]+)?$",
        "a version like 1.0.0";
    LANGUAGE = "^[a-z]{2,3}(-[A-Z][a-zA-Z0-9]+)*(-[A-Z]{2})?(-[a-zA-Z0-9]+)*$",
        "a language tag like en or fr-FR";
    ASSEMBLY_PATH = r"^(\.\./([^\s]+/)?|\./[^\s]+/)ASSEMBLY\.md$",
        "the relative path of another ASSEMBLY.md, beginning with ./ or ../";
    PERSONA_PATH = r"^(\.{1,2}/)[^\s]+PERSONA\.md$",
        "the relative path of a PERSONA.md in a folder, beginning with ./ or ../";
    CONSUMER = r"^(ws://(operators|companies|workspaces|skills)/[a-z][a-z0-9-]*(/[a-z][a-z0-9-]*)*|\.\./[^\s]+)$",
        "ws://operators/<slug>, ws://companies/<slug>, ws://workspaces/<slug>, ws://skills/<slug> or a path that begins with ../";
    PERSONA_CONSUMER = r"^(ws://(operators|skills|assemblies/[a-z0-9-]+|personas)/[^\s]+|\.\./[^\s]+)$",
        "ws://operators/<slug>, ws://skills/<slug>, ws://personas/<slug>, ws://assemblies/<slug>/<member> or a path that begins with ../";
    REDIRECT = r"^(ws://(personas|operators|skills)/[^\s]+|\.{1,2}/[^\s]+)$",
        "ws://personas/<slug>, ws://operators/<slug>, ws://skills/<slug> or a relative path";
    IDENTITY = "^ws://identities/[a-z][a-z0-9-]*(/[a-z][a-z0-9-]*)*$",
        "ws://identities/<slug>";
    ANY_IDENTITY = r"^ws://identities/[^\s]+$",
        "ws://identities/<slug>";
    OPERATOR = "^ws://operators/[a-z][a-z0-9-]*(/[a-z][a-z0-9-]*)*$",
        "ws://operators/<slug>";
    WORK = "^ws://workspaces/[a-z][a-z0-9-]*(/[a-z][a-z0-9-]*)*$",
        "ws://workspaces/<slug>";
    PERSONA = "^ws://personas/[a-z][a-z0-9-]*(/[a-z][a-z0-9-]*)*$",
        "ws://personas/<slug>";
    ANY_PERSONA = r"^ws://personas/[^\s]+$",
        "ws://personas/<slug>";
    STRATEGY = "^(working-memory|recent-messages|digest|last-message-only|children-outputs|custom:[A-Za-z0-9_./:-]+)$",
        "working-memory, recent-messages, digest, last-message-only, children-outputs or custom:<id>";
    HEURISTIC = "^(every-n-messages|on-mode-change|manual|periodic|custom:[A-Za-z0-9_./:-]+)$",
        "every-n-messages, on-mode-change, manual, periodic or custom:<id>";
    RETENTION = "^(forever|days:[1-9][0-9]*)$",
        "forever or days:<n>";
    OVERLAY_TTL = r"^P(\d+Y)?(\d+M)?(\d+W)?(\d+D)?(T(\d+H)?(\d+M)?(\d+S)?)?$",
        "a duration like P14D or PT12H";
    TTL = r"^P(?:\d+Y)?(?:\d+M)?(?:\d+W)?(?:\d+D)?(?:T(?:\d+H)?(?:\d+M)?(?:\d+S)?)?$",
        "a duration like P30D or PT12H";
}
