//! Members that are shell scripts, and the processes that they leave.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses some of it")]

use super::TestDir;

/// Answers as a member of any step, and says who it is in `$member` and in which step in `$step`.
pub const ANSWER: &str = r#"
answer() {
    case "$step" in
        adjudicate) echo '{"verdict": "SHIP", "reasoning": "Nothing stands against it."}' ;;
        *) echo '{"would_block": false, "irreducible": false}' ;;
    esac
}
"#;

const ROLE_SCRIPT: &str = r#"
mkdir -p prompts
prompt=prompts/$$
cat > "$prompt"
member=$(sed -n 's/^You are `\([a-z_]*\)`\..*/\1/p' "$prompt" | tail -n 1)
case "$(grep '^You are `' "$prompt" | tail -n 1)" in
    *"round 1"*) step=r1 ;;
    *"round 2"*) step=r2 ;;
    *) step=adjudicate ;;
esac
echo "$step/$member" >> calls
"#;

impl TestDir {
    /// A place where a shell script is every member: it reads its prompt into `prompts/`, notes in `calls` who was
    /// asked, and then does what `body` says. `settings` are further lines of the executor's table.
    pub fn shell(body: &str, settings: &str) -> TestDir {
        let place = TestDir::with("draft.md", "The meeting moved to Tuesday at ten.\n");
        place.write(
            "quorate.toml",
            format!("[defaults]\nexecutor = \"shell\"\n[executors.shell]\nkind = \"agent-cli\"\ncommand = \"sh\"\nargs = [\"member.sh\"]\n{settings}\n"),
        );
        place.member(body);
        place
    }

    /// Puts another script in place.
    pub fn member(&self, body: &str) {
        self.write("member.sh", format!("{ROLE_SCRIPT}{ANSWER}{body}\n"));
    }

    /// Who was asked, in order.
    pub fn calls(&self) -> Vec<String> {
        std::fs::read_to_string(self.path("calls")).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// All prompts that members read.
    pub fn prompts(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.path("prompts")).expect("members were asked").flatten();
        files.map(|file| std::fs::read_to_string(file.path()).expect("a prompt is text")).collect()
    }
}

/// How many processes have this word on their command line.
pub fn running_processes(word: &str) -> usize {
    processes_with(word).len()
}

/// How many processes have exactly this command line.
pub fn running_commands(line: &[&str]) -> usize {
    let wanted: String = line.iter().map(|part| format!("{part}\0")).collect();
    let processes = std::fs::read_dir("/proc").expect("Linux").flatten();
    let is_it = |path: std::path::PathBuf| {
        std::fs::read(path.join("cmdline")).is_ok_and(|line| line == wanted.as_bytes())
    };
    processes.filter(|one| is_it(one.path())).count()
}

/// Kills the processes that have this word on their command line.
pub fn kill(word: &str) {
    for pid in processes_with(word) {
        // It may have ended by itself.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

fn processes_with(word: &str) -> Vec<rustix::process::Pid> {
    let processes = std::fs::read_dir("/proc").expect("Linux").flatten();
    let has_it = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|part| part == word.as_bytes())
    };
    let numbers = processes.filter_map(|one| one.file_name().to_str()?.parse().ok());
    numbers.filter(has_it).filter_map(rustix::process::Pid::from_raw).collect()
}
