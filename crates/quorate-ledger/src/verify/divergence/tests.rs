//! Which divergences are kept, in which order, and how they are named.

use super::{Divergence, Findings, Kind, MAX_KEPT, Part};

fn at(part: Part, seq: u64) -> Divergence {
    Divergence::new(Kind::Changed, part, "it differs").at_seq(seq)
}

#[test]
fn a_record_is_reported_once_and_everything_else_each_time() {
    let mut findings = Findings::default();
    for divergence in
        [at(Part::Record, 3), at(Part::Record, 3), at(Part::Signature, 3), at(Part::Signature, 3)]
    {
        findings.add(divergence);
    }
    assert_eq!(findings.count, 3);
    assert!(findings.has_record_at(3) && !findings.has_record_at(2) && !findings.has_record_at(4));
    // Records whose places are unknown are different ones.
    for _ in 0..2 {
        findings.add(Divergence::new(Kind::Removed, Part::Record, "it is not there"));
    }
    let (kept, count) = findings.into_parts();
    assert_eq!((kept.len(), count), (5, 5));
}

#[test]
fn the_first_ones_by_place_are_kept_and_all_are_counted() {
    let mut findings = Findings::default();
    for seq in (1..=MAX_KEPT as u64 + 7).rev() {
        findings.add(at(Part::Signature, seq));
    }
    let (kept, count) = findings.into_parts();
    assert_eq!(count, MAX_KEPT as u64 + 7);
    let seqs: Vec<u64> = kept.iter().filter_map(|kept| kept.seq).collect();
    assert_eq!(seqs, (1..=MAX_KEPT as u64).collect::<Vec<_>>());
}

#[test]
fn a_divergence_names_what_it_is_about() {
    let named = |divergence: Divergence| (divergence.record(), divergence.to_string());
    let whole = Divergence::new(Kind::Cut, Part::Log, "it is gone");
    assert_eq!(named(whole.clone()), (None, "cut: log: it is gone".to_owned()));
    assert_eq!(named(whole.clone().of_run("r1")).0.as_deref(), Some("r1"));
    let record = whole.at_record("r1", 3).at_seq(7);
    assert_eq!(
        named(record.clone().up_to_seq(9)),
        (Some("r1/3".to_owned()), "cut: log r1/3 at places 7 to 9: it is gone".to_owned())
    );
    for until in [6, 7] {
        assert_eq!(record.clone().up_to_seq(until).last_seq, None, "one place is no stretch");
    }
    let kinds = [Kind::Changed, Kind::Removed, Kind::Reordered, Kind::Cut, Kind::Inserted];
    assert_eq!(kinds.map(Kind::as_str), ["changed", "removed", "reordered", "cut", "inserted"]);
    let parts = [
        (Part::Record, "record"),
        (Part::Signature, "signature"),
        (Part::Checkpoint, "checkpoint"),
        (Part::Witness, "witness"),
        (Part::LocalCheckpoint, "kept checkpoint"),
        (Part::Tree, "tree"),
        (Part::Body, "body"),
        (Part::Input, "input"),
        (Part::Index, "index"),
        (Part::Log, "log"),
        (Part::LogIndex, "log index"),
        (Part::Conversation, "conversation"),
    ];
    for (part, word) in parts {
        assert_eq!(part.as_str(), word);
    }
}
