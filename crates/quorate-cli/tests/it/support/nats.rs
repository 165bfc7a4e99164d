//! NATS servers of a test's own. `scripts/services install nats` prints the folder that `QUORATE_TEST_NATS` takes.

#![allow(dead_code, reason = "the tests of each feature use some of it")]

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::wait_until;

const SOON: Duration = Duration::from_secs(20);
const USERS: &str = include_str!("nats.conf");

/// A server, or several that are one cluster.
pub(crate) struct Nats {
    nodes: Vec<Node>,
    _folder: TempDir,
}

struct Node {
    program: String,
    port: u16,
    configuration: PathBuf,
    process: Child,
}

impl Nats {
    /// Starts a server without JetStream; prints SKIPPED and returns `None` without the program.
    pub(crate) fn start() -> Option<Nats> {
        Nats::start_nodes(1, |_, _, _| String::new())
    }

    /// Starts some that keep streams, as one cluster if there are several.
    pub(crate) fn with_streams(count: usize) -> Option<Nats> {
        Nats::start_nodes(count, |folder, at, routes| {
            let store = folder.join(format!("store-{at}"));
            let streams = format!("jetstream {{store_dir: {store:?}, sync_interval: always}}\n");
            if routes.len() == 1 {
                return streams;
            }
            let listed: Vec<String> = routes.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
            format!(
                "{streams}server_name: n{at}\ncluster {{name: test, listen: \"127.0.0.1:{}\", routes: [{}]}}\n",
                routes[at],
                listed.join(", ")
            )
        })
    }

    /// Starts one with users of its own.
    pub(crate) fn with_users(users: &str) -> Option<Nats> {
        Nats::start_configured(1, |_, _, _| users.to_owned())
    }

    fn start_nodes(count: usize, more: impl Fn(&Path, usize, &[u16]) -> String) -> Option<Nats> {
        Nats::start_configured(count, |folder, at, routes| format!("{USERS}{}", more(folder, at, routes)))
    }

    fn start_configured(count: usize, text: impl Fn(&Path, usize, &[u16]) -> String) -> Option<Nats> {
        let Ok(installed) = std::env::var("QUORATE_TEST_NATS") else {
            eprintln!("SKIPPED: QUORATE_TEST_NATS names no folder (scripts/services install nats)");
            return None;
        };
        let folder = TempDir::with_prefix("quorate-nats-").expect("a folder");
        let routes: Vec<u16> = (0..count).map(|_| free_port()).collect();
        let node = |at: usize| {
            let configuration = folder.path().join(format!("{at}.conf"));
            std::fs::write(&configuration, text(folder.path(), at, &routes)).expect("a file");
            let (program, port) = (format!("{installed}/bin/nats-server"), free_port());
            let process = spawn(&program, port, &configuration);
            Node { program, port, configuration, process }
        };
        let nats = Nats { nodes: (0..count).map(node).collect(), _folder: folder };
        nats.nodes.iter().for_each(Node::wait);
        Some(nats)
    }

    pub(crate) fn url(&self) -> String {
        let urls = self.nodes.iter().map(|node| format!("nats://ada:s3cret@127.0.0.1:{}", node.port));
        urls.collect::<Vec<_>>().join(",")
    }

    pub(crate) fn port(&self) -> u16 {
        self.nodes[0].port
    }

    pub(crate) fn crash(&mut self) {
        self.crash_node(0);
    }

    pub(crate) fn start_again(&mut self) {
        self.start_node_again(0);
    }

    pub(crate) fn crash_node(&mut self, at: usize) {
        let process = &mut self.nodes[at].process;
        process.kill().unwrap();
        process.wait().unwrap();
    }

    pub(crate) fn start_node_again(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        node.process = spawn(&node.program, node.port, &node.configuration);
        node.wait();
    }
}

impl Node {
    fn wait(&self) {
        wait_until(SOON, "NATS answers", || TcpStream::connect(("127.0.0.1", self.port)).is_ok());
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        (0..self.nodes.len()).for_each(|at| self.crash_node(at));
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn spawn(program: &str, port: u16, configuration: &Path) -> Child {
    Command::new(program)
        .args(["-a", "127.0.0.1", "-p", &port.to_string(), "-c"])
        .arg(configuration)
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts")
}
