//! Asks the person at the terminal whether a playbook may be woven, or may touch a locked trait.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use crate::workflow::status_text;
use quorate::service::playbook::gate::{Answer, Approver, GateClosed};

pub(super) struct TerminalApprover {
    /// Recorded as the approver.
    pub(super) name: String,
    pub(super) question: Question,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    /// Whether a playbook may be woven.
    Weave,
    /// Whether it may touch a locked trait; the reason was given before.
    Except,
}

impl Question {
    fn text(self) -> &'static str {
        match self {
            Question::Weave => "Weave it from now on? [y/N] ",
            Question::Except => "Let this text touch it? [y/N] ",
        }
    }

    fn no_terminal_help(self) -> &'static str {
        match self {
            Question::Weave => {
                "run it in a terminal; what cannot be asked for there can be voted on with `--gate governance`"
            }
            Question::Except => "run it in a terminal, with the proposal in a file",
        }
    }
}

impl Approver for TerminalApprover {
    fn ask(&mut self, text: &str) -> Result<Answer, GateClosed> {
        if !std::io::stdin().is_terminal() {
            let help = self.question.no_terminal_help();
            return Err(GateClosed::new("cannot ask for approval: standard input is not a terminal", help));
        }
        anstream::eprintln!("{}", status_text(text));
        let yes = prompt_line(self.question.text())?;
        let yes = matches!(yes.trim().to_ascii_lowercase().as_str(), "y" | "yes");
        let reason = match self.question {
            Question::Weave => prompt_line("Why? (a line, or nothing) ")?,
            Question::Except => String::new(),
        };
        Ok(Answer { yes, why: reason.trim().to_owned(), by: self.name.clone() })
    }
}

fn prompt_line(question: &str) -> Result<String, GateClosed> {
    anstream::eprint!("{question}");
    let mut answer = String::new();
    let read = std::io::stderr().flush().and_then(|()| std::io::stdin().lock().read_line(&mut answer));
    match read {
        Ok(_) => Ok(answer),
        Err(error) => Err(GateClosed::new(format!("the answer cannot be read: {error}"), "try again")),
    }
}
