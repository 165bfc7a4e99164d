//! A process whose lines are waited for.

#![allow(dead_code, reason = "the tests of each feature use some of it")]

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

const SOON: Duration = Duration::from_secs(20);

/// A process, and each line that it says on a stream.
pub(crate) struct Said {
    pub(crate) process: Child,
    pub(crate) stdout: Receiver<String>,
    stderr: Receiver<String>,
    /// Lines of standard error that were not waited for yet.
    said: Vec<String>,
}

impl Said {
    pub(crate) fn start(mut command: Command) -> Said {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = lines(process.stdout.take().unwrap());
        let stderr = lines(process.stderr.take().unwrap());
        Said { process, stdout, stderr, said: Vec::new() }
    }

    /// Waits for a line of standard error that has a text in it, whatever came before.
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
        let mut at = 0;
        loop {
            let is_next = at == self.said.len();
            if is_next {
                let line = self.stderr.recv_timeout(SOON);
                self.said.push(line.unwrap_or_else(|_| panic!("no line says {text:?}: {:?}", self.said)));
            }
            if self.said[at].contains(text) {
                return self.said.remove(at);
            }
            at += 1;
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Stops it; gives the lines of standard output that were not read yet.
    pub(crate) fn stop(mut self) -> Vec<String> {
        self.signal(Signal::TERM);
        assert!(self.process.wait().unwrap().success());
        self.stdout.iter().collect()
    }
}

fn lines(stream: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    receiver
}
