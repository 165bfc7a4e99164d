//! The runner's own failures.

use quorate_manifest::capabilities::NoCapabilities;

use super::run;

const COUNCIL: &str = "\
# Title

```yaml council.yaml
deliberators:
  - {id: a, prompt: builtin:skeptic}
  - {id: b, prompt: p.md}
  - {id: c, prompt: builtin:strategy}
adjudicator: {prompt: builtin:adjudicator}
```

```markdown p.md
# P
```

## One

";

const PERSONAS: &str = "\
# Title

```markdown personas/a/PERSONA.md
---
schema: persona/v1
name: aa
title: A
description: A.
version: 1.0.0
tags: [x]
---
Text.
```

```markdown personas/b/PERSONA.md
---
schema: persona/v1
name: bb
title: B from A
description: B.
version: 1.0.0
extends: ../a/PERSONA.md
---
```

## One

";

#[track_caller]
fn check_all(document: &str, rest: &str, expected: &[&str]) {
    let failures = run("d.md", &format!("{document}{rest}"), &NoCapabilities);
    assert_eq!(failures.len(), expected.len(), "{failures:#?}");
    for (failure, part) in failures.iter().zip(expected) {
        assert!(failure.contains(part), "{failure}");
    }
}

#[track_caller]
fn check(rest: &str, expected: &[&str]) {
    check_all(COUNCIL, rest, expected);
}

#[test]
fn what_is_expected_and_comes_is_fine() {
    check("```expect\nclean\n```\n", &[]);
    check(
        "```yaml council.yaml above\nx: 1\n```\n```expect\nrefuses quorate:council_invalid at council.yaml:1:1 in x saying not a key\n```\n",
        &[],
    );
    check(
        "```markdown p.md unreadable\n```\n```expect\nrefuses quorate:prompt_unreadable at council.yaml:3\n```\n",
        &[],
    );
    check("```markdown p.md escapes\n\\xff\n```\n```expect\nrefuses quorate:prompt_unreadable\n```\n", &[]);
}

#[test]
fn what_is_missing_or_unexpected_fails() {
    check("```expect\nwarns quorate:log_torn\n```\n", &["d.md:15: One\n  missing"]);
    check(
        "```yaml council.yaml above\nx: 1\n```\n```expect\nclean\n```\n",
        &["not expected: refusal[quorate:council_invalid] at council.yaml:1:1"],
    );
    check(
        "```yaml council.yaml above\nx: 1\n```\n```expect\nrefuses quorate:council_invalid at council.yaml:2\n```\n",
        &["missing"],
    );
    check("```expect\nrefuses quorate:nonsense\n```\n", &["unknown code quorate:nonsense"]);
}

#[test]
fn a_document_that_says_nothing_clear_fails() {
    check("```expect\n```\n", &["say `clean`"]);
    check("```expect\nrefuse quorate:syntax\n```\n", &["d.md:18: not understood"]);
    check("```expect no-files\nclean\n```\n", &["d.md:17: not understood: expect no-files"]);
    check("```resolved council.yaml\nx\n```\n```expect\nclean\n```\n", &["d.md:18: not understood: x"]);
    check("```resolved\n```\n```expect\nclean\n```\n", &["one file"]);
    check("```yaml council.yaml upside-down\n```\n```expect\nclean\n```\n", &["not understood: upside-down"]);
    check("```yaml council.yaml above=q.md\n```\n```expect\nclean\n```\n", &["no shared file `q.md`"]);
    check("```yaml council.yaml\n```\n", &["without an `expect`"]);
    check("```expect\nclean\n", &["never ends"]);
    check("", &["no test"]);
}

#[test]
fn every_manifest_of_the_workspace_is_checked() {
    let check = |rest, expected: &[&str]| check_all(PERSONAS, rest, expected);
    check("```expect\nclean\n```\n", &[]);
    check(
        "```markdown personas/c/PERSONA.md above=personas/b/PERSONA.md\nera: now\n```\n```expect\nrefuses persona_invalid at personas/c/PERSONA.md:2 in era\n```\n",
        &[],
    );
    // A diagnostic in the shared parent of two views is reported once.
    check(
        "```markdown personas/a/PERSONA.md above\nera: now\n```\n```markdown personas/c/PERSONA.md above=personas/b/PERSONA.md\n```\n```expect\nrefuses persona_invalid at personas/a/PERSONA.md:2\n```\n",
        &[],
    );
    check("```markdown README.md\n# A\n```\n```expect\npasses over README.md\nclean\n```\n", &[]);
    check(
        "```expect\npasses over personas/a/PERSONA.md\nclean\n```\n",
        &["not passed over: personas/a/PERSONA.md"],
    );
    check(
        "```markdown README.md named\n# A\n```\n```expect\nrefuses quorate:syntax at README.md:1\n```\n",
        &[],
    );
    check("```text x.txt\n```\n```expect\npasses over x.txt\nclean\n```\n", &["not passed over"]);
}

#[test]
fn what_comes_of_a_chain_is_compared() {
    let resolved =
        |lines: &str| format!("```resolved personas/b/PERSONA.md\n{lines}\n```\n```expect\nclean\n```\n");
    let check = |lines: &str, expected: &[&str]| check_all(PERSONAS, &resolved(lines), expected);
    check(
        "title = \"B from A\" from personas/b/PERSONA.md\ntags = [\"x\"] from personas/a/PERSONA.md\navatar absent\nbody = \"Text.\\n\"\nchain = [\"personas/a/PERSONA.md\", \"personas/b/PERSONA.md\"]",
        &[],
    );
    check("tags[0] = \"x\"\ntags[] = [\"x\"] from personas/a/PERSONA.md", &[]);
    check("title = \"B\"", &["title is \"B from A\""]);
    check("tags absent", &["tags is [\"x\"]"]);
    check("era = \"now\"", &["era is absent"]);
    check("tags = [\"x\"] from personas/b/PERSONA.md", &["tags comes from personas/a/PERSONA.md"]);
    check_all(PERSONAS, "```resolved x.md\na = 1\n```\n```expect\nclean\n```\n", &["x.md is not a manifest"]);
}
