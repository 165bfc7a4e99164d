//! The person at the terminal, who is asked whether a playbook is to be woven.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use crate::cli::workflow::neutral;
use crate::service::playbook::gate::{Answer, Asked, Shut};

/// Whoever sits there.
pub(super) struct Person {
    /// Who it is.
    pub(super) name: String,
}

impl Asked for Person {
    fn ask(&mut self, shown: &str) -> Result<Answer, Shut> {
        if !std::io::stdin().is_terminal() {
            let help = "run it in a terminal; what cannot be asked for there can be voted on with `--gate governance`";
            return Err(Shut::new("nobody is there to be asked: standard input is no terminal", help));
        }
        anstream::eprintln!("{}", neutral(shown));
        let yes = line("Weave it from now on? [y/N] ")?;
        let yes = matches!(yes.trim().to_ascii_lowercase().as_str(), "y" | "yes");
        let why = line("Why? (a line, or nothing) ")?;
        Ok(Answer { yes, why: why.trim().to_owned(), by: self.name.clone() })
    }
}

fn line(question: &str) -> Result<String, Shut> {
    anstream::eprint!("{question}");
    let mut answer = String::new();
    let read = std::io::stderr().flush().and_then(|()| std::io::stdin().lock().read_line(&mut answer));
    match read {
        Ok(_) => Ok(answer),
        Err(error) => Err(Shut::new(format!("the answer cannot be read: {error}"), "try again")),
    }
}
