//! The same CLIs as tools that write drafts: what `quorate init wiring` has them do.

use super::*;

/// Has Claude Code write a draft in a project, and gives the texts of its requests.
fn claude_writes(place: &TestDir, clis: &Path, arguments: &[&str]) -> Vec<String> {
    let model = Model::start();
    let own = Path::new(env!("CARGO_BIN_EXE_quorate")).parent().expect("a folder");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([own.to_owned()].into_iter().chain(std::env::split_paths(&path)));
    let draft = place.path("repo/drafts/launch_blog_post.md");
    let prompt = format!("{}{}", model::ASKS_TO_WRITE, draft.display());
    let output = Command::new(clis.join("node_modules/.bin/claude"))
        .args(["--print", &prompt, "--permission-mode", "acceptEdits"])
        .args(arguments)
        .current_dir(place.path("repo"))
        .env_clear()
        .env("PATH", path.expect("a path"))
        .env("HOME", place.path("home"))
        .env("ANTHROPIC_API_KEY", "dummy")
        .env("ANTHROPIC_BASE_URL", model.url())
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{output:?}");
    assert!(draft.is_file());
    std::fs::remove_file(draft).expect("it was written");
    model.take().into_iter().map(|asked| asked.text).collect()
}

fn project() -> TestDir {
    let place = TestDir::new();
    place.write("home/.keep", "");
    place.run(&["init", "council", "repo"]).assert_code(0);
    place
}

#[test]
fn claude_is_shown_the_brief_of_what_it_wrote() {
    alone("wired::claude_is_shown_the_brief_of_what_it_wrote", |clis| {
        let shown =
            |requests: &[String]| requests.iter().any(|text| text.contains("launch_blog_post.md: REVISE: "));
        let place = project();
        assert!(!shown(&claude_writes(&place, clis, &[])));
        // In the project.
        place.run_in("repo", &["init", "wiring", "claude"]).assert_code(0);
        let requests = claude_writes(&place, clis, &[]);
        assert!(shown(&requests), "{requests:?}");
        assert!(requests.iter().any(|text| text.contains("mcp__quorate__council_review")));
        // The skills are for people: the model is not told of them.
        assert!(!requests.iter().any(|text| text.contains("council-review")));
        place.run_in("repo", &["init", "wiring", "claude", "--remove"]).assert_code(0);
        assert!(!shown(&claude_writes(&place, clis, &[])));
        // As a plugin.
        place.run(&["init", "wiring", "claude-plugin", "plugin"]).assert_code(0);
        let plugin = place.path("plugin");
        let plugin = plugin.to_str().expect("a path");
        let requests = claude_writes(&place, clis, &["--plugin-dir", plugin]);
        assert!(shown(&requests), "{requests:?}");
        assert!(requests.iter().any(|text| text.contains("quorate__council_review")));
        let validate = Command::new(clis.join("node_modules/.bin/claude"))
            .args(["plugin", "validate", "--strict", plugin])
            .env("HOME", place.path("home"))
            .output()
            .expect("it runs");
        assert!(validate.status.success(), "{validate:?}");
    });
}
