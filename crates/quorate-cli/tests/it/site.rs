//! The site that `scripts/docs` makes of `docs/` and of the binary under test.
//!
//! Needs what `scripts/services install docs` installs, in the folder that `QUORATE_TEST_DOCS` names; without it each test
//! prints SKIPPED.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use regex::Regex;
use serde_json::Value;

use crate::support::{QUORATE, TestDir};

const DOCS: &str = "QUORATE_TEST_DOCS";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

fn is_installed() -> bool {
    let is_installed = std::env::var_os(DOCS).is_some();
    if !is_installed {
        eprintln!("SKIPPED: the documentation site (scripts/services install docs prints {DOCS})");
    }
    is_installed
}

/// Makes the site of a checkout.
fn make(checkout: &Path, out: &Path) -> Output {
    let mut script = Command::new(checkout.join("scripts/docs"));
    script.args(["--binary", QUORATE, "--out"]).arg(out).output().unwrap()
}

/// The files of a folder, by their path in it.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for path in next.read_dir().unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                found.insert(name, std::fs::read(path).unwrap());
            }
        }
    }
    found
}

fn text<'s>(site: &'s BTreeMap<String, Vec<u8>>, page: &str) -> &'s str {
    let bytes = site.get(page).unwrap_or_else(|| panic!("no page {page}"));
    std::str::from_utf8(bytes).unwrap()
}

fn matches<'t>(pattern: &str, text: &'t str) -> Vec<&'t str> {
    Regex::new(pattern).unwrap().captures_iter(text).map(|found| found.get(1).unwrap().as_str()).collect()
}

/// Names below `Commands:` in a command's help, or those of all groups.
fn commands(place: &TestDir, above: &[&str]) -> Vec<String> {
    let help = place.run(&[above, &["--help"]].concat()).assert_code(0).stdout;
    let options = help.find("\nOptions:").expect("options");
    let names = matches(r"(?m)^  ([a-z][a-z-]+)(?:  |$)", &help[..options]);
    names.into_iter().filter(|name| *name != "help").map(str::to_owned).collect()
}

/// The names of all fields, but those that a condition asks for.
fn fields(schema: &Value, names: &mut BTreeSet<String>) {
    match schema {
        Value::Object(keys) => {
            for (key, below) in keys.iter().filter(|(key, _)| !["if", "not"].contains(&key.as_str())) {
                match below {
                    Value::Object(properties) if key == "properties" => {
                        names.extend(properties.keys().cloned());
                        properties.values().for_each(|property| fields(property, names));
                    }
                    _ => fields(below, names),
                }
            }
        }
        Value::Array(parts) => parts.iter().for_each(|part| fields(part, names)),
        _ => {}
    }
}

/// The arguments of `quorate schema` for each schema, and the page about it.
fn schemas(place: &TestDir) -> Vec<(Vec<String>, String)> {
    let list = |arguments: &[&str]| {
        let said = place.run(arguments).assert_code(0).stdout;
        let rows = said.lines().map(|line| line.split_once(' ').expect("two columns"));
        rows.map(|(name, rest)| (name.to_owned(), rest.trim().to_owned())).collect::<Vec<_>>()
    };
    let mut all = Vec::new();
    for (name, identity) in list(&["schema"]).into_iter().filter(|(name, _)| name != "answer") {
        let folder = if identity.starts_with("quorate.") && identity != name { "output" } else { "fields" };
        let page = format!("reference/{folder}/{}.html", name.replace('.', "-"));
        all.push((vec!["schema".to_owned(), name], page));
    }
    for (name, _) in list(&["schema", "answer"]) {
        let page = format!("reference/answers/{name}.html");
        all.push((vec!["schema".to_owned(), "answer".to_owned(), name], page));
    }
    all
}

#[test]
fn the_site_has_everything_and_loads_nothing_from_elsewhere() {
    if !is_installed() {
        return;
    }
    let place = TestDir::new();
    let made = make(&root(), &place.path("site"));
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let index = place.path("site/index.html");
    assert_eq!(String::from_utf8(made.stdout).unwrap().trim_end(), index.to_str().unwrap());
    let site = files(&place.path("site"));

    // What is written by hand.
    let summary = std::fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    for page in matches(r"\]\(([^)]+)\.md\)", &summary) {
        let page = page.trim_start_matches("../");
        text(&site, &format!("{page}.html"));
        text(&site, &format!("{page}.md"));
    }
    assert!(text(&site, "start.html").contains(r#"<p class="file">announcement.md</p>"#));

    // What is generated from the binary.
    for name in commands(&place, &[]) {
        let page = text(&site, &format!("reference/commands/{name}.html"));
        for below in commands(&place, &[&name]) {
            assert!(page.contains(&format!(">quorate {name} {below}</a></h2>")), "{name} {below}");
        }
    }
    let schemas = schemas(&place);
    assert!(schemas.len() > 20, "{schemas:?}");
    for (arguments, page) in schemas {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut names = BTreeSet::new();
        fields(&place.run(&arguments).assert_code(0).json(), &mut names);
        assert!(!names.is_empty(), "{page}");
        let page_text = text(&site, &page);
        for name in names {
            assert!(page_text.contains(&format!("<code>{name}</code></a></dt>")), "{page}: {name}");
        }
    }
    let codes = place.run(&["explain"]).assert_code(0).stdout;
    for (code, severity) in codes.lines().map(|line| {
        let mut words = line.split_whitespace();
        (words.next().unwrap(), words.next().unwrap())
    }) {
        if severity == "outcome" {
            assert!(text(&site, "reference/codes.html").contains(&format!("<code>{code}</code>")), "{code}");
            continue;
        }
        let file = format!("/{}.html", code.trim_start_matches("quorate:"));
        let mut pages = site.keys().filter(|page| page.starts_with("reference/codes/"));
        assert!(pages.any(|page| page.ends_with(&file)), "{code}");
    }

    // It opens from a disk.
    let loaded = r#"<(?:script|link|img|source|iframe)\b[^>]*?\b(?:src|href|srcset)="((?:https?:)?//[^"]*)"#;
    for page in site.keys().filter(|page| page.ends_with(".html")) {
        assert_eq!(matches(loaded, text(&site, page)), [] as [&str; 0], "{page}");
    }
    assert!(site.keys().any(|file| file.starts_with("searchindex-")), "the search index is missing");

    // What language models read.
    let llms = text(&site, "llms.txt");
    assert!(llms.starts_with("# Quorate\n\n> "), "{llms}");
    let linked = matches(r"(?m)^- \[[^\]]+\]\(([^)]+)\): \S", llms);
    assert!(linked.len() > 100, "{llms}");
    linked.into_iter().for_each(|page| assert!(text(&site, page).contains("# "), "{page}"));

    assert!(make(&root(), &place.path("again")).status.success());
    assert!(files(&place.path("again")) == site, "another run makes another site");
}

/// A checkout with the pages, and with what makes a site of them.
fn checkout() -> TestDir {
    let place = TestDir::new();
    for folder in ["docs", "scripts/docs_site"] {
        for (name, bytes) in files(&root().join(folder)) {
            place.write(&format!("{folder}/{name}"), bytes);
        }
    }
    std::fs::copy(root().join("scripts/docs"), place.path("scripts/docs")).unwrap();
    place
}

#[test]
fn a_page_that_the_contents_leave_out_is_refused() {
    if !is_installed() {
        return;
    }
    let place = checkout();
    place.write("docs/more/extra.md", "# More\n");
    let contents = place.read("docs/SUMMARY.md").replace("(start.md)", "(begin.md)");
    // Generated pages are out of scope here.
    place.write("docs/SUMMARY.md", contents.replace("<!-- generated -->\n", ""));
    let refused = make(place.root(), &place.path("site"));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("docs/SUMMARY.md does not list docs/more/extra.md"), "{said}");
    assert!(said.contains("docs/SUMMARY.md lists docs/begin.md, which does not exist"), "{said}");
    assert!(!place.path("site").exists());
}

#[test]
fn a_link_that_leads_nowhere_is_refused() {
    if !is_installed() {
        return;
    }
    let place = checkout();
    for name in files(&place.path("docs")).into_keys().filter(|name| name.ends_with(".md")) {
        std::fs::remove_file(place.path("docs").join(name)).unwrap();
    }
    place.write("docs/SUMMARY.md", "# Pages\n\n- [One](one.md)\n");
    let refused = |page: &str| {
        place.write("docs/one.md", format!("# One\n\n{page}\n"));
        let made = make(place.root(), &place.path("site"));
        assert_eq!(made.status.code(), Some(1), "{page}");
        String::from_utf8(made.stderr).unwrap()
    };
    assert!(refused("[a](two.md)").contains("docs/one.md links to two.md"));
    assert!(refused("[a](../../passwd)").contains("docs/one.md links to ../../passwd"));
    assert!(refused("[a](one.md#two)").contains("one.html#two: no such anchor"));
    assert!(refused("![a](https://example.org/a.png)").contains("loaded from elsewhere"));
    assert!(refused("A <b> that does not end.").contains("unclosed HTML tag"));
    place.write("docs/one.md", "# One & `two`: three?\n\n[a](#one--two-three) `[b](c)` {{#include d}}\n");
    let made = make(place.root(), &place.path("site"));
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    // A folder with other files is not replaced.
    place.write("mine/notes.txt", "kept");
    assert_eq!(make(place.root(), &place.path("mine")).status.code(), Some(1));
    assert_eq!(place.read("mine/notes.txt"), "kept");
}

#[test]
fn a_wrong_command_line_is_64() {
    for arguments in [&["--nope"][..], &["--out"], &["--binary", ""]] {
        let said = Command::new(root().join("scripts/docs")).args(arguments).output().unwrap();
        assert_eq!(said.status.code(), Some(64), "{arguments:?}");
        assert!(String::from_utf8(said.stderr).unwrap().starts_with("scripts/docs [--binary FILE]"));
    }
}
