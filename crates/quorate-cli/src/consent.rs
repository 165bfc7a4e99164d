//! Asks the person at the terminal whether to trust the files of a workspace that run or send something.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::sync::Arc;

use super::render::paint::one_line as shown_line;
use quorate::service::redaction::CurrentRedactor;
use quorate::service::trust::{Consent, ConsentAnswer, Trust};

/// Asks only if input and output are terminals: an answer from a pipe is not a person's.
pub(super) fn asking_at_terminal(trust: Trust, redacted: CurrentRedactor) -> Trust {
    match std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        true => trust.with_consent(Arc::new(TerminalPrompt { redactor: redacted })),
        false => trust,
    }
}

struct TerminalPrompt {
    redactor: CurrentRedactor,
}

impl Consent for TerminalPrompt {
    fn ask(&self, lines: &[String]) -> std::io::Result<ConsentAnswer> {
        anstream::eprintln!("This workspace is not trusted. Its files would:");
        for line in lines {
            anstream::eprintln!("  {}", shown_line(&self.redactor.redact_text(line)));
        }
        anstream::eprint!("Trust them until they change? [y]es, [o]nce, [N]o: ");
        std::io::stderr().flush()?;
        wait_for_input()?;
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer)?;
        Ok(match answer.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => ConsentAnswer::Always,
            "o" | "once" => ConsentAnswer::Once,
            _ => ConsentAnswer::No,
        })
    }
}

/// Waits for input. A blocking read would not end at Ctrl-C, which another thread handles; this wait does.
fn wait_for_input() -> std::io::Result<()> {
    let stdin = std::io::stdin();
    rustix::event::poll(&mut [rustix::event::PollFd::new(&stdin, rustix::event::PollFlags::IN)], None)?;
    Ok(())
}
