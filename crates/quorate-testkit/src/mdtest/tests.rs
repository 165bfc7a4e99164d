//! The runner fails where it should.

use super::run;

const DOCUMENT: &str = "\
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

#[track_caller]
fn check(rest: &str, expected: &[&str]) {
    let failures = run("d.md", &format!("{DOCUMENT}{rest}"));
    assert_eq!(failures.len(), expected.len(), "{failures:#?}");
    for (failure, part) in failures.iter().zip(expected) {
        assert!(failure.contains(part), "{failure}");
    }
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
    check("```expect\nrefuses quorate:nonsense\n```\n", &["there is no code quorate:nonsense"]);
}

#[test]
fn a_document_that_says_nothing_clear_fails() {
    check("```expect\n```\n", &["say `clean`"]);
    check("```expect\nrefuse quorate:syntax\n```\n", &["d.md:18: not understood"]);
    check("```yaml council.yaml upside-down\n```\n```expect\nclean\n```\n", &["not understood: upside-down"]);
    check("```yaml council.yaml\n```\n", &["without an `expect`"]);
    check("```expect\nclean\n", &["never ends"]);
    check("", &["no test"]);
}
