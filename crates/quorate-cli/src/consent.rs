//! The person at the terminal, who is asked whether to trust what a workspace would run or send.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::sync::Arc;

use super::render::paint::one_line as shown_line;
use quorate::service::redaction::CurrentRedactor;
use quorate::service::trust::{Consent, ConsentAnswer, Trust};

/// Asks where both ends of the conversation are a terminal, and nowhere else: an answer from a pipe is nobody's.
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

/// Waits until something was typed. Reading would wait on after Ctrl-C, since that is heard elsewhere; this ends with it.
fn wait_for_input() -> std::io::Result<()> {
    let stdin = std::io::stdin();
    rustix::event::poll(&mut [rustix::event::PollFd::new(&stdin, rustix::event::PollFlags::IN)], None)?;
    Ok(())
}
