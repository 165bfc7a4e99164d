//! `--force` on shared files: which parts it removes, and which it keeps.

use super::*;

#[test]
fn force_takes_only_what_the_profile_brought_out_of_shared_files() {
    let (dir, files) = place();
    done(put(&files, &first(), REAL));
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("README.md", "# Edited\n");
    let settings =
        "{\n\t\"mode\": \"plan\",\n\t\"allow\": [\n\t\t\"ls\",\n\t\t\"rm\"\n\t],\n\t\"mine\": 1\n}";
    write(".claude/settings.json", settings);
    write(".gitignore", "*.log\ntarget/*\nmine/\n");
    write(".mcp.json", "no JSON at all");
    write(".claude/hooks/check.sh", "exit 7\n");
    let edited = theirs(dir.path());
    assert_eq!(codes_of(&out(&files, REAL).unwrap()), ["quorate:profile_drift"]);
    assert_eq!(theirs(dir.path()), edited);
    let outcome = done(out(&files, FORCED));
    let after = theirs(dir.path());
    let text = |name: &str| String::from_utf8(after[name].as_ref().unwrap().0.clone()).unwrap();
    assert_eq!(
        text(".claude/settings.json"),
        "{\n\t\"mode\": \"ask\",\n\t\"allow\": [\n\t\t\"rm\"\n\t],\n\t\"mine\": 1\n}"
    );
    assert_eq!(text(".gitignore"), "*.log\ntarget/*\nmine/\n", "an edited line belongs to the user");
    assert_eq!(text(".mcp.json"), "no JSON at all");
    assert_eq!(text(".claude/hooks/check.sh"), "exit 7\n");
    let outcome_file =
        outcome.files.iter().find(|outcome_file| outcome_file.dest == ".claude/settings.json").unwrap();
    assert_eq!(outcome_file.notes[0], "`mode` was changed since and is removed");
    let aside = outcome_file.notes[1].strip_prefix("the earlier content is kept as ").unwrap();
    assert_eq!(std::fs::read_to_string(dir.path().join(aside)).unwrap(), settings);
}

#[test]
fn force_takes_lines_that_still_stand_out_of_what_was_appended() {
    for (now, left) in
        [("top\na\nx\nmine\nzz\n", Some("top\nmine\nzz\n")), ("a\nx\n", None), ("other\n", Some("other\n"))]
    {
        let dir = tempfile::tempdir().unwrap();
        let files = TargetDir::open(dir.path()).unwrap();
        done(put(&files, &package("1", vec![piece("lines", Strategy::Append, "a\nx\nz\n")]), REAL));
        let path = dir.path().join("lines");
        std::fs::write(&path, now).unwrap();
        done(out(&files, FORCED));
        assert_eq!(std::fs::read_to_string(&path).ok().as_deref(), left, "{now}");
    }
}
