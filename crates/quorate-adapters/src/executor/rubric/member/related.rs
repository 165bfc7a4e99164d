//! Words that belong to a subject though they do not name it, so that a persona that speaks of tax hears of deductions.

use crate::stem::stem;

/// A subject, by words that name it, and the words that belong to it.
const SUBJECTS: &[(&str, &str)] = &[
    ("tax taxation", "deduct deduction deductible irs vat refund"),
    (
        "legal law counsel",
        "lawsuit sue lawyer attorney contract liability compliance regulation regulatory copyright trademark licence license",
    ),
    (
        "medical medication clinical clinician health",
        "dose dosage diagnose diagnosis symptom prescribe prescription pill antidepressant ibuprofen doctor",
    ),
    (
        "financial finance cfo fiscal",
        "invest investment stock loan mortgage budget cost spend price revenue cash margin",
    ),
    ("budget cost spending", "budget cost spend price expense cash euro dollar eur usd"),
    (
        "security ciso infosec",
        "vulnerability breach encrypt encryption password credential secret token attacker authentication auth exploit",
    ),
    ("privacy", "gdpr consent personal tracking anonymise anonymize retention"),
    (
        "architecture cto technical",
        "service database latency coupling migration api schema scaling downtime rollback",
    ),
    ("operations coo operational", "on-call oncall incident runbook staffing capacity rollout rota"),
    ("emergency crisis", "ambulance 911 112 999 danger"),
    ("brand branding", "logo slogan tagline positioning tone"),
    ("visual design", "colour color typography layout contrast image photo font"),
];

/// The stems of the words that belong to a subject which a stem names.
pub(super) fn of(named: &str) -> Vec<&'static str> {
    let names = |(names, _): &&(&str, &str)| names.split(' ').any(|name| stem(name) == named);
    let words = SUBJECTS.iter().filter(names).flat_map(|(_, words)| words.split(' '));
    words.map(stem).filter(|word| *word != named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_found_by_their_stems() {
        assert!(of(stem("taxes")).contains(&"refund"));
        assert!(of(stem("budgets")).contains(&"cost"));
        assert!(of("nothing").is_empty());
    }
}
