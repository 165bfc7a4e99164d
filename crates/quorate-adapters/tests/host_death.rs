//! What is left when our own process dies (X6): nothing, however it dies. Each test starts this same binary again as a
//! host that asks a hostile command, ends the host in its way, and watches the process table.
//!
//! The binary has no test harness, so that it can be a host.

#![expect(clippy::disallowed_methods, reason = "processes and their time are what is tested")]

#[expect(dead_code, reason = "the other test binary uses the rest")]
#[path = "it/cli_scripts/cli_script.rs"]
mod script;

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use script::{CliScript, count_processes};

/// Two seconds between being asked and being killed, and a little room for a busy machine.
const LIMIT: Duration = Duration::from_millis(3_000);

const TESTS: &[(&str, fn())] = &[
    ("a_killed_host_leaves_nothing", a_killed_host_leaves_nothing),
    ("a_terminated_host_leaves_nothing", a_terminated_host_leaves_nothing),
    ("a_host_that_exits_in_the_middle_leaves_nothing", a_host_that_exits_in_the_middle_leaves_nothing),
    ("the_guard_keeps_no_output_open", the_guard_keeps_no_output_open),
    ("the_guard_goes_with_its_host", the_guard_goes_with_its_host),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["host", how, script] => host(how, script),
        _ if arguments.contains(&"--list") => list(arguments.contains(&"--ignored")),
        _ => run(&arguments),
    }
}

/// The part of the harness's protocol that test runners use.
fn list(ignored_alone: bool) {
    for (name, _) in TESTS.iter().filter(|_| !ignored_alone) {
        println!("{name}: test");
    }
}

fn run(arguments: &[&str]) {
    let filter = arguments.iter().find(|argument| !argument.starts_with('-'));
    let chosen = |name: &str| match filter {
        Some(filter) if arguments.contains(&"--exact") => name == *filter,
        Some(filter) => name.contains(filter),
        None => true,
    };
    for (name, test) in TESTS.iter().filter(|(name, _)| chosen(name)) {
        test();
        println!("test {name} ... ok");
    }
}

/// Is a host: asks one command, whose marker it prints, and is gone when the answer would come.
fn host(how: &str, script: &str) {
    let script = CliScript::new(script);
    println!("{}", script.marker);
    match how {
        "exits" => script::runtime().block_on(async {
            let asked = script.invoke("prompt", Duration::from_secs(60));
            let _ = tokio::time::timeout(Duration::from_millis(500), asked).await;
            std::process::exit(0);
        }),
        _ => {
            let _ = script.ask_within("prompt", Duration::from_secs(60));
        }
    }
}

/// A host that runs, and the marker of what it started.
struct Host {
    child: Child,
    marker: String,
}

impl Host {
    /// Starts a host and waits until its command has at least `grown` processes.
    fn start(how: &str, script: &str, grown: usize) -> Host {
        let mut child = Command::new(std::env::current_exe().expect("this binary"))
            .args(["host", how, script])
            .stdout(Stdio::piped())
            .spawn()
            .expect("this binary runs");
        let mut marker = String::new();
        let mut byte = [0];
        let stdout = child.stdout.as_mut().expect("it is piped");
        while stdout.read(&mut byte).expect("it prints its marker") == 1 && byte[0] != b'\n' {
            marker.push(char::from(byte[0]));
        }
        let host = Host { child, marker };
        within(LIMIT, "the script did not start", || count_processes(&host.marker) >= grown);
        host
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// Waits for the host's end and for that of all it had started.
    fn assert_nothing_is_left(mut self) {
        self.child.wait().expect("it is ours");
        within(LIMIT, "processes are left", || count_processes(&self.marker) == 0);
    }
}

fn a_killed_host_leaves_nothing() {
    for (script, grown) in
        [("hangs", 1), ("ignores_term", 2), ("leaves_a_nameless_session", 1), ("forks_a_tree", 8)]
    {
        let host = Host::start("asks", script, grown);
        host.signal(Signal::KILL);
        host.assert_nothing_is_left();
    }
}

fn a_terminated_host_leaves_nothing() {
    let host = Host::start("asks", "forks_a_tree", 8);
    host.signal(Signal::TERM);
    host.assert_nothing_is_left();
}

fn a_host_that_exits_in_the_middle_leaves_nothing() {
    Host::start("exits", "forks_a_tree", 8).assert_nothing_is_left();
}

fn the_guard_keeps_no_output_open() {
    let mut host = Host::start("asks", "ignores_term", 2);
    host.signal(Signal::KILL);
    let killed = Instant::now();
    let mut rest = Vec::new();
    host.child.stdout.take().expect("it is piped").read_to_end(&mut rest).expect("it ends");
    assert!(killed.elapsed() < Duration::from_secs(1), "{:?}", killed.elapsed());
    host.assert_nothing_is_left();
}

fn the_guard_goes_with_its_host() {
    let host = Host::start("asks", "hangs", 1);
    let guards = guards_of(host.child.id());
    assert_eq!(guards.len(), 1);
    host.signal(Signal::KILL);
    host.assert_nothing_is_left();
    within(LIMIT, "the guard is left", || !std::path::Path::new(&format!("/proc/{}", guards[0])).exists());
}

fn guards_of(host: u32) -> Vec<u32> {
    let children = std::fs::read_dir(format!("/proc/{host}/task")).expect("it runs").flatten();
    children
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|children| children.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .filter_map(|child| child.parse().ok())
        .collect()
}

#[track_caller]
fn within(limit: Duration, otherwise: &str, holds: impl Fn() -> bool) {
    let stop = Instant::now() + limit;
    while !holds() {
        assert!(Instant::now() < stop, "{otherwise}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
