//! The strategies that edit texts. `append` adds a block at the end of a text, and finds, replaces and removes it again.
//!
//! `merge-json-deep` merges JSON into JSON, and removes it again. Both edit the text: unchanged parts keep their order and
//! spacing, and new parts follow the style of their surroundings.
//!
//! Objects are merged key by key, and arrays get each missing item once. Other values that differ are replaced by the
//! profile's.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::time::Duration;

use quorate_manifest::tree::{Entry, Kind, Node, Problem, json};
use similar::{Change, ChangeTag, TextDiff};

use super::EditPolicy;

/// Merges a profile's JSON into a target. A target that already has all of it stays unchanged.
///
/// # Errors
/// If one of the two is not JSON.
pub(super) fn merge_json(target: &str, profile: &str) -> Result<String, InvalidJson> {
    let into = json::parse(target).map_err(InvalidJson::Target)?;
    let from = json::parse(profile).map_err(InvalidJson::Profile)?;
    let style = Style::of(target, &into);
    let mut merging = Merger { profile, style, edits: Edits::new(target) };
    merging.node(&into, &from);
    Ok(merging.edits.apply())
}

/// Which of two texts is not JSON.
#[derive(Debug)]
pub(super) enum InvalidJson {
    Target(Problem),
    Profile(Problem),
}

struct Merger<'t> {
    profile: &'t str,
    style: Style,
    edits: Edits<'t>,
}

impl Merger<'_> {
    fn node(&mut self, into: &Node, from: &Node) {
        match (&into.kind, &from.kind) {
            (Kind::Map(have), Kind::Map(brought)) => {
                let by_key = by_key(have);
                let mut new = Vec::new();
                for entry in brought {
                    match by_key.get(entry.key.as_str()) {
                        Some(there) => self.node(&there.value, &entry.value),
                        None => new.push(SourceValue::member(self.profile, entry)),
                    }
                }
                self.edits.add(into, &new, &self.style);
            }
            (Kind::Seq(have), Kind::Seq(brought)) => {
                let mut seen: HashSet<String> = have.iter().map(canonical_text).collect();
                let lacking = brought.iter().filter(|item| seen.insert(canonical_text(item)));
                let new: Vec<SourceValue<'_>> =
                    lacking.map(|item| SourceValue::item(self.profile, item)).collect();
                self.edits.add(into, &new, &self.style);
            }
            _ if canonical_text(into) == canonical_text(from) => {}
            _ => self.edits.replace(into, &SourceValue::item(self.profile, from), &self.style),
        }
    }
}

/// The rest of a text after removing a profile's JSON.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Removal {
    /// The text; `None` if the file did not exist before and nothing is left of it.
    pub text: Option<String>,
    /// A sentence for each value that was kept because the user has changed it.
    pub left: Vec<String>,
    /// A sentence for each value that was removed although the user has changed it.
    pub lost: Vec<String>,
}

/// Removes from `current` the values by which `installed` differs from `base`. Values that were changed since stay, unless
/// `policy` overrides that. All other values stay.
///
/// # Errors
/// If the current text is not JSON. The other two were JSON when they were installed.
pub(super) fn remove_json(
    current: &str,
    base: Option<&str>,
    installed: &str,
    policy: EditPolicy,
) -> Result<Removal, InvalidJson> {
    let now = json::parse(current).map_err(InvalidJson::Target)?;
    let after = json::parse(installed).map_err(InvalidJson::Profile)?;
    let nothing = match after.kind {
        Kind::Seq(_) => "[]",
        _ => "{}",
    };
    let base_text = base.unwrap_or(nothing);
    let before = json::parse(base_text).map_err(InvalidJson::Profile)?;
    let mut taking =
        Remover { base: base_text, policy, edits: Edits::new(current), left: Vec::new(), lost: Vec::new() };
    let emptied = taking.node(&now, Some(&before), &after, "");
    let Remover { edits, left, lost, .. } = taking;
    let text = (!emptied || base.is_some()).then(|| edits.apply());
    Ok(Removal { text, left, lost })
}

struct Remover<'t> {
    base: &'t str,
    policy: EditPolicy,
    edits: Edits<'t>,
    left: Vec<String>,
    lost: Vec<String>,
}

impl Remover<'_> {
    /// Removes the installed parts of a value. Returns whether nothing else is left of it.
    fn node(&mut self, now: &Node, before: Option<&Node>, after: &Node, path: &str) -> bool {
        let canonical = canonical_text(now);
        match before {
            // The installation did not change it, or it was restored since.
            Some(before)
                if canonical_text(before) == canonical_text(after) || canonical == canonical_text(before) =>
            {
                return false;
            }
            None if canonical == canonical_text(after) => return true,
            _ => {}
        }
        match (&now.kind, before.map(|node| &node.kind), &after.kind) {
            (Kind::Map(entries), None | Some(Kind::Map(_)), Kind::Map(_)) => {
                return self.object(now, entries, before, after, path);
            }
            (Kind::Seq(items), None | Some(Kind::Seq(_)), Kind::Seq(_)) => {
                return self.array(now, items, before, after, path);
            }
            _ => {}
        }
        let changed = canonical != canonical_text(after);
        // If the kind of the whole document has changed, all of it belongs to the user.
        if changed && (self.policy == EditPolicy::Protect || path.is_empty()) {
            self.left.push(format!("`{}` was changed since and stays", display_path(path)));
            return false;
        }
        if changed {
            self.lost.push(format!("`{path}` was changed since and is removed"));
        }
        if let Some(before) = before {
            self.edits.put(now.span.clone(), self.base[before.span.clone()].to_owned());
        }
        before.is_none()
    }

    fn object(
        &mut self,
        now: &Node,
        entries: &[Entry],
        before: Option<&Node>,
        after: &Node,
        path: &str,
    ) -> bool {
        let (had, put) = (by_key(before.map_or(&[], Node::entries)), by_key(after.entries()));
        let mut out = Vec::new();
        for (at, entry) in entries.iter().enumerate() {
            let Some(put) = put.get(entry.key.as_str()) else { continue };
            let had = had.get(entry.key.as_str()).map(|entry| &entry.value);
            let path = if path.is_empty() { entry.key.clone() } else { format!("{path}.{}", entry.key) };
            if self.node(&entry.value, had, &put.value, &path) && had.is_none() {
                out.push(at);
            }
        }
        self.remove_items(now, before, &out)
    }

    fn array(&mut self, now: &Node, items: &[Node], before: Option<&Node>, after: &Node, path: &str) -> bool {
        let had_items: HashSet<String> =
            before.map_or(&[][..], Node::items).iter().map(canonical_text).collect();
        let put: HashSet<String> = after.items().iter().map(canonical_text).collect();
        let mut sought: HashSet<&String> = put.iter().filter(|item| !had_items.contains(*item)).collect();
        let mut out = Vec::new();
        let mut others = 0;
        // Additions are at the end, so the last of equal items is ours.
        for (at, item) in items.iter().enumerate().rev() {
            let item = canonical_text(item);
            if sought.remove(&item) {
                out.push(at);
            } else if !had_items.contains(&item) && !put.contains(&item) {
                others += 1;
            }
        }
        out.reverse();
        if !sought.is_empty() && others > 0 {
            let text =
                format!("`{}` lacks an item that was added; if it was edited, it stays", display_path(path));
            self.left.push(text);
        }
        self.remove_items(now, before, &out)
    }

    /// Removes items from an object or array, and returns whether it is empty now.
    fn remove_items(&mut self, now: &Node, before: Option<&Node>, out: &[usize]) -> bool {
        if out.is_empty() {
            return false;
        }
        let all = now.entries().len().max(now.items().len());
        if out.len() < all {
            self.edits.remove(now, out);
            return false;
        }
        let bare = match (before, &now.kind) {
            (Some(before), _) if before.entries().is_empty() && before.items().is_empty() => {
                &self.base[before.span.clone()]
            }
            (_, Kind::Seq(_)) => "[]",
            _ => "{}",
        };
        self.edits.put(now.span.clone(), bare.to_owned());
        true
    }
}

fn display_path(path: &str) -> &str {
    if path.is_empty() { "the whole" } else { path }
}

fn by_key(entries: &[Entry]) -> HashMap<&str, &Entry> {
    entries.iter().map(|entry| (entry.key.as_str(), entry)).collect()
}

/// A canonical text: equal for two values if and only if they differ at most in spacing and in the order of keys.
fn canonical_text(node: &Node) -> String {
    let mut text = String::new();
    write_canonical(node, &mut text);
    text
}

fn write_canonical(node: &Node, text: &mut String) {
    match &node.kind {
        Kind::Null => text.push_str("null"),
        Kind::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Kind::Int(value) => text.push_str(&value.to_string()),
        Kind::Float(value) => text.push_str(&value.text),
        Kind::Str(value) => text.push_str(&format!("{value:?}")),
        Kind::Seq(items) => {
            text.push('[');
            for item in items {
                write_canonical(item, text);
                text.push(',');
            }
            text.push(']');
        }
        Kind::Map(entries) => {
            let mut sorted: Vec<&Entry> = entries.iter().collect();
            sorted.sort_by(|a, b| a.key.cmp(&b.key));
            text.push('{');
            for entry in sorted {
                text.push_str(&format!("{:?}:", entry.key));
                write_canonical(&entry.value, text);
                text.push(',');
            }
            text.push('}');
        }
    }
}

/// The formatting of a text.
struct Style {
    /// The indentation of a level.
    unit: String,
    newline: &'static str,
    /// Whether the root has its values on separate lines.
    multiline: bool,
}

impl Style {
    /// Detects the formatting of a text. An empty text gets two spaces and a line for each value.
    fn of(text: &str, root: &Node) -> Style {
        let first = root.entries().first().map(|entry| entry.key_span.start);
        let first = first.or_else(|| root.items().first().map(|item| item.span.start));
        let lead = first.map(|first| &text[root.span.start..first]);
        let unit = lead.and_then(|lead| lead.rsplit_once('\n')).map(|(_, indent)| indent);
        Style {
            unit: unit.filter(|unit| !unit.is_empty()).unwrap_or("  ").to_owned(),
            newline: if text.contains("\r\n") { "\r\n" } else { "\n" },
            multiline: lead.is_none_or(|lead| lead.contains('\n')),
        }
    }
}

/// A value of the profile's text.
struct SourceValue<'t> {
    text: &'t str,
    key: Option<&'t str>,
    node: &'t Node,
}

impl<'t> SourceValue<'t> {
    fn member(text: &'t str, entry: &'t Entry) -> Self {
        SourceValue { text, key: Some(&text[entry.key_span.clone()]), node: &entry.value }
    }

    fn item(text: &'t str, node: &'t Node) -> Self {
        SourceValue { text, key: None, node }
    }

    /// The value in a style. `indent` is the indentation of its first line. A value on a single line stays on one.
    fn render(&self, style: &Style, indent: &str, broken: bool) -> String {
        let mut out = self.key.map(|key| format!("{key}: ")).unwrap_or_default();
        let written = &self.text[self.node.span.clone()];
        let held: Vec<SourceValue<'_>> = self
            .node
            .entries()
            .iter()
            .map(|entry| SourceValue::member(self.text, entry))
            .chain(self.node.items().iter().map(|item| SourceValue::item(self.text, item)))
            .collect();
        if held.is_empty() || !written.contains('\n') {
            out.push_str(written);
            return out;
        }
        let (open, close) = (&written[..1], &written[written.len() - 1..]);
        let inner = format!("{indent}{}", style.unit);
        let items: Vec<String> = held.iter().map(|one| one.render(style, &inner, broken)).collect();
        let newline = style.newline;
        out.push_str(&match broken {
            true => {
                let items: Vec<String> = items.into_iter().map(|item| format!("{inner}{item}")).collect();
                format!("{open}{newline}{}{newline}{indent}{close}", items.join(&format!(",{newline}")))
            }
            false => format!("{open}{}{close}", items.join(", ")),
        });
        out
    }
}

/// Edits that are collected and applied at once. They do not overlap, except that a later edit may cover earlier ones.
struct Edits<'t> {
    text: &'t str,
    /// The offsets of the lines.
    lines: Vec<usize>,
    edits: Vec<(Range<usize>, String)>,
}

impl<'t> Edits<'t> {
    fn new(text: &'t str) -> Self {
        let behind = text.match_indices('\n').map(|(at, newline)| at + newline.len());
        Edits { text, lines: std::iter::once(0).chain(behind).collect(), edits: Vec::new() }
    }

    /// Replaces the text of a span, with all earlier edits inside it.
    fn put(&mut self, at: Range<usize>, text: String) {
        self.edits.push((at, text));
    }

    /// Replaces a value by another.
    fn replace(&mut self, node: &Node, with: &SourceValue<'_>, style: &Style) {
        let indent = self.indent(node.span.start).to_owned();
        let broken = style.multiline;
        self.put(node.span.clone(), with.render(style, &indent, broken));
    }

    /// Adds items at the end of an object or an array.
    fn add(&mut self, holder: &Node, new: &[SourceValue<'_>], style: &Style) {
        if new.is_empty() {
            return;
        }
        let spans = spans(holder);
        let (Some(first), Some(last)) = (spans.first(), spans.last()) else {
            return self.fill(holder, new, style);
        };
        let before = &self.text[holder.span.start..first.start];
        let broken = before.contains('\n');
        let indent = if broken { self.indent(first.start).to_owned() } else { String::new() };
        let between = if broken { format!(",{}{indent}", style.newline) } else { ", ".to_owned() };
        let text: String =
            new.iter().map(|item| format!("{between}{}", item.render(style, &indent, broken))).collect();
        self.edits.push((last.end..last.end, text));
    }

    /// Adds items to an empty object or array.
    fn fill(&mut self, holder: &Node, new: &[SourceValue<'_>], style: &Style) {
        let open = &self.text[holder.span.start..=holder.span.start];
        let close = &self.text[holder.span.end - 1..holder.span.end];
        let outer = self.indent(holder.span.start).to_owned();
        let text = if style.multiline {
            let (newline, indent) = (style.newline, format!("{outer}{}", style.unit));
            let items: Vec<String> =
                new.iter().map(|item| format!("{indent}{}", item.render(style, &indent, true))).collect();
            format!("{open}{newline}{}{newline}{outer}{close}", items.join(&format!(",{newline}")))
        } else {
            let items: Vec<String> = new.iter().map(|one| one.render(style, "", false)).collect();
            format!("{open}{}{close}", items.join(", "))
        };
        self.put(holder.span.clone(), text);
    }

    /// Removes some, but not all, items of an object or an array; `out` is sorted.
    fn remove(&mut self, holder: &Node, out: &[usize]) {
        let spans = spans(holder);
        let mut at = 0;
        while at < spans.len() {
            if out.binary_search(&at).is_err() {
                at += 1;
                continue;
            }
            let start = at;
            while at < spans.len() && out.binary_search(&at).is_ok() {
                at += 1;
            }
            // With the comma before it; at the beginning, with the one after it.
            let range = match (start, spans.get(at)) {
                (0, Some(next)) => spans[0].start..next.start,
                (0, None) => return,
                _ => spans[start - 1].end..spans[at - 1].end,
            };
            self.put(range, String::new());
        }
    }

    /// The indentation of the line at an offset.
    fn indent(&self, at: usize) -> &'t str {
        let line = self.lines[self.lines.partition_point(|begin| *begin <= at) - 1];
        let rest = &self.text[line..];
        let end = rest.find(|c| c != ' ' && c != '\t').unwrap_or(rest.len());
        if rest.starts_with('\u{feff}') { "" } else { &rest[..end] }
    }

    /// The text with all edits made.
    fn apply(mut self) -> String {
        // A replacement that ends where an insertion begins comes first.
        let mut text = String::with_capacity(self.text.len());
        let mut at = 0;
        for (range, new) in &self.effective_edits() {
            text.push_str(&self.text[at..range.start]);
            text.push_str(new);
            at = range.end;
        }
        text.push_str(&self.text[at..]);
        text
    }
}

impl Edits<'_> {
    /// The edits that no later one covers, in the order of their places.
    fn effective_edits(&mut self) -> Vec<(Range<usize>, String)> {
        let mut edits: Vec<_> = std::mem::take(&mut self.edits).into_iter().enumerate().collect();
        edits.sort_by_key(|(made, (range, _))| (range.start, Reverse(range.end), Reverse(*made)));
        // The open spans that may cover the next one. They are nested, so there are few.
        let mut open: Vec<(usize, usize)> = Vec::new();
        edits.retain(|(made, (range, _))| {
            open.retain(|(_, end)| *end >= range.start);
            let covered = open.iter().any(|(later, end)| later > made && *end >= range.end);
            open.push((*made, range.end));
            !covered
        });
        let mut edits: Vec<_> = edits.into_iter().map(|(_, edit)| edit).collect();
        edits.sort_by_key(|(range, _)| (range.start, range.end));
        edits
    }
}

/// The spans of the items of an object or an array: members with their keys, or elements.
fn spans(holder: &Node) -> Vec<Range<usize>> {
    let members = holder.entries().iter().map(|entry| entry.key_span.start..entry.value.span.end);
    members.chain(holder.items().iter().map(|item| item.span.clone())).collect()
}

/// The time limit of the line search; after it, the search may miss lines.
const DIFF_TIMEOUT: Duration = Duration::from_millis(500);

/// The addition that appends a block to a text; `None` if the text already contains the block as whole lines.
pub(super) fn addition(text: &str, block: &str) -> Option<String> {
    if contains_block(text, block) {
        return None;
    }
    let separator = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    Some(format!("{separator}{block}"))
}

/// Whether a text contains a block as whole lines.
fn contains_block(text: &str, block: &str) -> bool {
    let block = block.trim_end_matches(['\n', '\r']);
    if block.is_empty() {
        return true;
    }
    text.match_indices(block).any(|(at, _)| {
        let rest = &text[at + block.len()..];
        (at == 0 || text[..at].ends_with('\n'))
            && (rest.is_empty() || rest.starts_with('\n') || rest.starts_with("\r\n"))
    })
}

/// The position of the addition, if it is still present: the last match, since it was added at the end.
pub(super) fn find_addition(text: &str, added: &str) -> Option<usize> {
    text.rfind(added)
}

/// The text without the addition; `None` if the addition is gone.
pub(super) fn remove_addition(text: &str, added: &str) -> Option<String> {
    let at = find_addition(text, added)?;
    let (before, after) = (&text[..at], &text[at + added.len()..]);
    // Also removes the separating line break, unless that would join two lines.
    let joined =
        added.starts_with('\n') && !before.is_empty() && !after.is_empty() && !after.starts_with('\n');
    let separator = if joined { "\n" } else { "" };
    Some(format!("{before}{separator}{after}"))
}

/// The text without the remaining lines of an edited addition; edited and inserted lines stay. `installed` is the text
/// right after the addition. `None` if no such line remains.
pub(super) fn remove_added_lines(text: &str, installed: &str, added: &str) -> Option<String> {
    let at = find_addition(installed, added)?;
    // By lines, not bytes: a line break that separates the block also ends another author's line.
    let lead = added.len() - added.trim_start_matches('\n').len();
    let first = installed[..at + lead].split_inclusive('\n').count();
    let ours = first..first + added[lead..].split_inclusive('\n').count();
    let diff = TextDiff::configure().timeout(DIFF_TIMEOUT).diff_lines(installed, text);
    let stands = |change: &Change<&str>| {
        change.tag() == ChangeTag::Equal && change.old_index().is_some_and(|line| ours.contains(&line))
    };
    let now = || diff.iter_all_changes().filter(|change| change.tag() != ChangeTag::Delete);
    now()
        .any(|change| stands(&change))
        .then(|| now().filter(|change| !stands(change)).map(|change| change.value()).collect())
}

/// The text with the addition replaced by another block, and the new addition.
pub(super) fn replace_addition(text: &str, added: &str, old: &str, block: &str) -> Option<(String, String)> {
    let at = find_addition(text, added)?;
    let (before, after) = (&text[..at], &text[at + added.len()..]);
    let separator = added.strip_suffix(old).unwrap_or_default();
    let joined = !after.is_empty() && !after.starts_with('\n') && !block.ends_with('\n');
    let added = format!("{separator}{block}{}", if joined { "\n" } else { "" });
    Some((format!("{before}{added}{after}"), added))
}

/// Merging and removing, byte for byte.
#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn merged(target: &str, profile: &str, expected: &str) {
        let done = merge_json(target, profile).expect("JSON");
        assert_eq!(done, expected);
        assert_eq!(merge_json(&done, profile).expect("JSON"), done, "a second time changes nothing");
        let taken = remove_json(&done, Some(target), &done, EditPolicy::Protect).expect("JSON");
        assert_eq!(
            canonical_text(&json::parse(&taken.text.expect("a text")).expect("JSON")),
            canonical_text(&json::parse(target).expect("JSON"))
        );
        assert_eq!(taken.left, Vec::<String>::new());
    }

    #[test]
    fn objects_are_merged_in_the_way_of_the_target() {
        merged(
            "{\n    \"b\": 1,\n    \"a\": {\"x\": [1, 2]}\n}\n",
            "{\"a\": {\"x\": [2, 3, 3], \"y\": true}, \"c\": {\n \"d\": [\n1]}, \"b\": 1.0}",
            "{\n    \"b\": 1.0,\n    \"a\": {\"x\": [1, 2, 3], \"y\": true},\n    \"c\": {\n        \"d\": [\n            1\n        ]\n    }\n}\n",
        );
        merged("{}", "{\"a\": 1}", "{\n  \"a\": 1\n}");
        merged("{\"a\": {}}", "{\"a\": {\"b\": 1}, \"c\": [\n]}", "{\"a\": {\"b\": 1}, \"c\": [\n]}");
        merged("{\r\n\t\"a\": []\r\n}\r\n", "{\"a\": [1]}", "{\r\n\t\"a\": [\r\n\t\t1\r\n\t]\r\n}\r\n");
    }

    #[test]
    fn the_profile_wins_on_everything_else() {
        merged(
            "{\"a\": {\"b\": 1}, \"c\": null}",
            "{\"a\": [1], \"c\": {\"d\": 1}}",
            "{\"a\": [1], \"c\": {\"d\": 1}}",
        );
        merged("[1]", "[\"1\"]", "[1, \"1\"]");
        merged("{\"a\": \"x\"}", "{\"a\": null}", "{\"a\": null}");
        merged("{\"\\u0061\": 1}", "{\"a\": 1}", "{\"\\u0061\": 1}");
    }

    #[test]
    fn invalid_json_is_reported_by_its_side() {
        assert!(matches!(merge_json("{", "{}"), Err(InvalidJson::Target(_))));
        assert!(matches!(merge_json("{}", "{"), Err(InvalidJson::Profile(_))));
        assert!(matches!(remove_json("{", None, "{}", EditPolicy::Protect), Err(InvalidJson::Target(_))));
    }

    #[test]
    fn edits_of_others_stay_when_it_is_taken_out() {
        let base = "{\n  \"env\": {\"A\": \"1\"},\n  \"allow\": [\"x\"],\n  \"mode\": \"ask\"\n}\n";
        let profile = "{\"env\": {\"B\": \"2\"}, \"allow\": [\"y\", \"z\"], \"mode\": \"auto\", \"hooks\": {\"p\": {\"q\": 1}}}";
        let installed = merge_json(base, profile).expect("JSON");
        let edited = installed
            .replace("\"z\"]", "\"z\", \"mine\"]")
            .replace("{\"A\": \"1\", ", "{\"A\": \"9\", \"M\": \"m\", ");
        let taken = remove_json(&edited, Some(base), &installed, EditPolicy::Protect).expect("JSON");
        assert_eq!(
            taken.text.as_deref(),
            Some(
                "{\n  \"env\": {\"A\": \"9\", \"M\": \"m\"},\n  \"allow\": [\"x\", \"mine\"],\n  \"mode\": \"ask\"\n}\n"
            )
        );
        assert_eq!(taken.left, Vec::<String>::new());
        assert_eq!(
            remove_json(&installed, Some(base), &installed, EditPolicy::Protect)
                .expect("JSON")
                .text
                .as_deref(),
            Some(base)
        );
    }

    #[test]
    fn later_changes_stay_and_are_reported() {
        let installed =
            merge_json("{\"a\": 1}", "{\"a\": 2, \"b\": 3, \"c\": [1, 2], \"d\": {\"e\": 1, \"f\": 2}}")
                .expect("JSON");
        let edited = "{\"a\": 5, \"b\": 4, \"c\": [1, 7], \"d\": {\"e\": 1, \"f\": 3}}";
        let taken = remove_json(edited, Some("{\"a\": 1}"), &installed, EditPolicy::Protect).expect("JSON");
        assert_eq!(taken.text.as_deref(), Some("{\"a\": 5, \"b\": 4, \"c\": [7], \"d\": {\"f\": 3}}"));
        assert_eq!(taken.left.len(), 4, "{:?}", taken.left);
        let again =
            remove_json("{\"a\": 1}", Some("{\"a\": 1}"), &installed, EditPolicy::Protect).expect("JSON");
        assert_eq!(
            again,
            Removal { text: Some("{\"a\": 1}".to_owned()), left: Vec::new(), lost: Vec::new() }
        );
    }

    #[test]
    fn nothing_is_left_of_a_file_that_was_not_there() {
        let installed = "{\"a\": {\"b\": [1]}, \"c\": 2}";
        assert_eq!(remove_json(installed, None, installed, EditPolicy::Protect).expect("JSON").text, None);
        assert_eq!(
            remove_json("{\"c\": 2, \"a\": {\"b\": [1]}}", None, installed, EditPolicy::Protect)
                .expect("JSON")
                .text,
            None
        );
        let taken =
            remove_json("{\"a\": {\"b\": [1], \"mine\": 1}, \"c\": 2}", None, installed, EditPolicy::Protect)
                .expect("JSON");
        assert_eq!(taken.text.as_deref(), Some("{\"a\": {\"mine\": 1}}"));
    }

    #[test]
    fn force_removes_changed_values_and_nothing_of_the_users() {
        let base = "{\"a\": 1, \"o\": {\"p\": 1}}";
        let profile = "{\"a\": 2, \"b\": 3, \"c\": [1, 2], \"d\": {\"e\": 1, \"f\": 2}, \"o\": {\"q\": 1}}";
        let installed = merge_json(base, profile).expect("JSON");
        let edited = "{\"a\": 5, \"mine\": 1, \"b\": {\"x\": 1}, \"c\": [1, 7], \"d\": {\"e\": 9, \"f\": 2, \"g\": 3}, \
                      \"o\": {\"p\": 4, \"q\": 1}}";
        let taken = remove_json(edited, Some(base), &installed, EditPolicy::Override).expect("JSON");
        let left = "{\"a\": 1, \"mine\": 1, \"c\": [7], \"d\": {\"g\": 3}, \"o\": {\"p\": 4}}";
        assert_eq!(taken.text.as_deref(), Some(left));
        assert_eq!(taken.left, ["`c` lacks an item that was added; if it was edited, it stays"]);
        assert_eq!(
            taken.lost,
            ["a", "b", "d.e"].map(|path| format!("`{path}` was changed since and is removed"))
        );
        // The whole file is the profile's: it is removed.
        let taken = remove_json("{\"x\": {\"y\": 2}}", None, "{\"x\": {\"y\": 1}}", EditPolicy::Override)
            .expect("JSON");
        assert_eq!((taken.text, taken.lost.len()), (None, 1));
        // A value of another kind has no parts to compare.
        let taken = remove_json("[1]", Some("{}"), "{\"x\": 1}", EditPolicy::Override).expect("JSON");
        assert_eq!((taken.text.as_deref(), taken.left.len(), taken.lost.len()), (Some("[1]"), 1, 0));
    }

    /// Several megabytes on one line, in which every value changes: a quadratic algorithm would take minutes.
    #[test]
    fn large_texts_are_merged_and_taken_out_in_a_time_that_grows_with_them() {
        const KEYS: usize = 50_000;
        let text = |value: &str| {
            let entries: Vec<String> = (0..KEYS).map(|at| format!("\"key-{at:06}\": {value}")).collect();
            format!("{{{}}}", entries.join(", "))
        };
        let more = text("{\"b\": [2]}").replace("key-", "new-");
        let started = tokio::time::Instant::now();
        let replaced = merge_json(&text("{\"a\": 1}"), &text("[1, {}]")).expect("JSON");
        assert_eq!(replaced, text("[1, {}]"));
        let added = merge_json(&replaced, &more).expect("JSON");
        let taken = remove_json(&added, Some(&replaced), &added, EditPolicy::Protect).expect("JSON");
        assert_eq!(taken.text.as_deref(), Some(&*replaced));
        // Every other member goes.
        let halves = (0..KEYS).filter(|at| at % 2 == 0).map(|at| format!("\"key-{at:06}\": [1, {{}}]"));
        let half = format!("{{{}}}", halves.collect::<Vec<_>>().join(", "));
        let taken = remove_json(&replaced, Some(&half), &replaced, EditPolicy::Protect).expect("JSON");
        assert_eq!(
            taken.text.map(|text| canonical_text(&json::parse(&text).expect("JSON"))
                == canonical_text(&json::parse(&half).expect("JSON"))),
            Some(true)
        );
        assert!(started.elapsed() < std::time::Duration::from_secs(60), "{:?}", started.elapsed());
    }

    #[test]
    fn what_is_put_into_a_place_takes_what_was_put_there_before() {
        let mut edits = Edits::new("abcdefgh");
        for (at, text) in
            [(1..2, "B"), (6..7, "G"), (3..3, "+"), (3..5, "DE"), (0..3, "X"), (7..7, "!"), (3..5, "de")]
        {
            edits.put(at, text.to_owned());
        }
        assert_eq!(edits.apply(), "XdefG!h");
    }
}

#[cfg(test)]
mod append_tests {
    use super::*;

    #[test]
    fn a_block_is_added_as_whole_lines_and_only_once() {
        assert_eq!(addition("", "x\n").as_deref(), Some("x\n"));
        assert_eq!(addition("a\n", "x\n").as_deref(), Some("x\n"));
        assert_eq!(addition("a", "x\n").as_deref(), Some("\nx\n"));
        assert_eq!(addition("a\nx", "x\n"), None);
        assert_eq!(addition("a\nx\r\nb\n", "x\n"), None);
        assert_eq!(addition("max\n", "x\n").as_deref(), Some("x\n"));
        assert_eq!(addition("a\n", ""), None);
    }

    #[test]
    fn an_addition_is_removed_from_any_surrounding_text() {
        for (before, block) in [("", "x\n"), ("a\n", "x\ny"), ("a", "x\n")] {
            let added = addition(before, block).expect("it is not there");
            let after = format!("{before}{added}");
            assert_eq!(remove_addition(&after, &added).as_deref(), Some(before));
            let more = format!("top\n{after}\nbottom\n");
            assert_eq!(remove_addition(&more, &added), Some(format!("top\n{before}\nbottom\n")));
        }
        assert_eq!(remove_addition("a\nx\nb\n", "\nx\n").as_deref(), Some("a\nb\n"));
        assert_eq!(remove_addition("a\n", "x\n"), None);
    }

    #[test]
    fn unchanged_lines_of_an_addition_are_removed_and_other_lines_stay() {
        let cases = [
            ("a\n", "x\ny\nz\n", "a\nx\nyy\nz\n", Some("a\nyy\n")),
            ("a\n", "x\ny\n", "a\nx\nmine\ny\n", Some("a\nmine\n")),
            // The same line existed before and is not the added one.
            ("x\n", "x\ny\n", "x\nb\ny\n", Some("x\nb\n")),
            ("a", "\nx\ny\n", "top\na\nx\n", Some("top\na\n")),
            ("a\n", "x\n", "a\nxx\n", None),
            ("a\n", "x\n", "a\n", None),
        ];
        for (before, added, now, left) in cases {
            let installed = format!("{before}{added}");
            assert_eq!(remove_added_lines(now, &installed, added).as_deref(), left, "{now}");
        }
    }

    #[test]
    fn a_new_version_replaces_the_last_one_in_its_place() {
        let (text, added) = replace_addition("a\nx\nb\n", "x\n", "x\n", "y").expect("it is there");
        assert_eq!((text.as_str(), added.as_str()), ("a\ny\nb\n", "y\n"));
        let (text, added) = replace_addition("a\nx\n", "\nx\n", "x\n", "yy\n").expect("it is there");
        assert_eq!((text.as_str(), added.as_str()), ("a\nyy\n", "\nyy\n"));
        assert_eq!(remove_addition(&text, &added).as_deref(), Some("a"));
    }
}
