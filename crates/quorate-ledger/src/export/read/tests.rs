//! Lines as they are read: whole, of UTF-8, and not longer than what is held in memory.

use super::*;

fn line(bytes: &[u8], number: u64) -> Result<Option<String>, InvalidExport> {
    next_line(&mut &*bytes, &mut Sha256::new(), number)
}

#[test]
fn a_line_has_an_end_and_is_text() {
    assert_eq!(line(b"one\ntwo\n", 1).unwrap().as_deref(), Some("one"));
    assert_eq!(line(b"", 2).unwrap(), None);
    for bytes in [&b"cut"[..], b"\xff\n"] {
        assert!(matches!(line(bytes, 1), Err(InvalidExport::NotAnExport(_))), "its first line is no header");
        assert!(matches!(line(bytes, 2), Err(InvalidExport::InvalidLine { line: 2, .. })));
    }
}

#[test]
fn a_line_is_read_up_to_64_mebibytes() {
    const MOST: usize = 64 * 1024 * 1024;
    let mut bytes = vec![b' '; MOST + 1];
    bytes[MOST - 1] = b'\n';
    assert_eq!(line(&bytes, 2).unwrap().map(|line| line.len()), Some(MOST - 1));
    bytes[MOST - 1] = b' ';
    bytes[MOST] = b'\n';
    let longer = line(&bytes, 2).unwrap_err().to_string();
    assert!(longer.contains("longer than lines that are read"), "{longer}");
}
