//! Signatures over records (D3): keys and their texts, the signed bytes, and which signatures count when. The vectors
//! of RFC 8032 are beside the keys, where messages other than leaves can be signed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quorate_ledger::merkle::{Hash, leaf};
use quorate_ledger::signing::{
    InvalidKey, InvalidSignature, KeyId, Keyring, KeyringEntry, KeyringError, PublicKey, RejectedSignature,
    SecretKey, Signature, SigningContext,
};

const OTHER: SigningContext = SigningContext::new("application/vnd.quorate.test");

fn key(seed: u8) -> SecretKey {
    SecretKey::from_seed(&[seed; 32])
}

fn record() -> Hash {
    leaf(b"{}")
}

#[test]
fn keys_read_back_from_their_texts() {
    // D3
    let made = SecretKey::generate();
    let text = made.to_text();
    assert_eq!(text.len(), "quorate:ed25519:seed:".len() + 44);
    for text in [text.as_str(), &format!("{}\n", *text)] {
        let read = SecretKey::from_text(text).unwrap();
        assert_eq!(read.public(), made.public());
        assert_eq!(read.to_text(), made.to_text());
    }
    let public = made.public();
    assert_eq!(PublicKey::from_text(&public.to_string()), Ok(public));
    assert_eq!(PublicKey::from_text(&format!("{public}\n")), Ok(public));
    assert_eq!(KeyId::from_text(&public.id().to_string()), Ok(public.id()));
    assert_ne!(SecretKey::generate().public(), public, "keys come from chance");
}

#[test]
fn texts_have_one_form() {
    // D3: files contain these texts from now on.
    let (seed, public) = (key(1), key(1).public());
    assert_eq!(&*seed.to_text(), "quorate:ed25519:seed:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=");
    assert_eq!(public.to_string(), "quorate:ed25519:public:iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w=");
    assert_eq!(public.id().to_string().len(), 32);
    let text = seed.to_text();
    let expected = "quorate:ed25519:seed:";
    let prefix = Err(InvalidKey::Prefix { expected });
    let bad = |text: &str| SecretKey::from_text(text).map(|_| ());
    assert_eq!(bad(""), prefix);
    assert_eq!(bad(&public.to_string()), prefix, "a public key is not a secret one");
    assert_eq!(bad(&text.to_uppercase()), prefix);
    assert_eq!(bad(&format!(" {}", *text)), prefix);
    let rest = ["", "\n\n", "\r\n", " "]
        .map(|end| format!("{}{end}", if end.is_empty() { expected } else { &text }));
    for text in rest {
        assert_eq!(bad(&text), Err(InvalidKey::Encoding), "{text:?}");
    }
    // The last letter has two unused bits. Set, they would make a second text of the same key.
    assert_eq!(bad(&text.replace("QE=", "QF=")), Err(InvalidKey::Encoding));
    assert_eq!(bad(&text.replace("QE=", "QEB")), Err(InvalidKey::Encoding), "33 bytes");
    assert_eq!(bad(&format!("{expected}{}", "-".repeat(44))), Err(InvalidKey::Encoding));
    assert_eq!(bad(&format!("{expected}{}", "A".repeat(1 << 20))), Err(InvalidKey::Encoding));
    for name in ["", "0", &"0".repeat(31), &"0".repeat(33), &"A".repeat(32), &"g".repeat(32), &"é".repeat(16)]
    {
        assert_eq!(KeyId::from_text(name), Err(InvalidKey::Name), "{name}");
    }
}

#[test]
fn no_secret_is_printed() {
    // D3
    let secret = SecretKey::generate();
    let text = secret.to_text();
    let encoded = text.rsplit(':').next().unwrap();
    let seed = STANDARD.decode(encoded).unwrap();
    let hexadecimal: String = seed.iter().map(|byte| format!("{byte:02x}")).collect();
    for printed in [format!("{secret:?}"), format!("{secret:#?}")] {
        assert!(printed.contains(&secret.public().to_string()));
        assert!(!printed.contains(encoded) && !printed.contains(&hexadecimal));
        assert!(!printed.contains(&format!("{seed:?}")) && !printed.contains("seed"));
    }
    let refused = SecretKey::from_text(&text[..text.len() - 2]).unwrap_err();
    assert!(!format!("{refused:?} {refused}").contains(&encoded[..8]));
}

#[test]
fn weak_and_impossible_public_keys_are_refused() {
    // D3: under a point of small order, one signature fits many messages.
    let identity = std::array::from_fn(|at| u8::from(at == 0));
    let order_two = std::array::from_fn(|at| match at {
        0 => 0xec,
        31 => 0x7f,
        _ => 0xff,
    });
    let no_point = std::array::from_fn(|at| if at == 0 { 2 } else { 0 });
    for bytes in [[0; 32], identity, order_two, no_point] {
        assert_eq!(PublicKey::from_bytes(&bytes), Err(InvalidKey::Point), "{bytes:?}");
    }
}

#[test]
fn a_signature_is_for_one_leaf_one_purpose_and_one_key() {
    // D3
    let (secret, public) = (key(1), key(1).public());
    let signature = secret.sign(SigningContext::RECORD, &record());
    let forged = Err(InvalidSignature::Forged);
    assert_eq!(public.verify(SigningContext::RECORD, &record(), &signature), Ok(()));
    assert_eq!(public.verify(OTHER, &record(), &signature), forged);
    assert_eq!(public.verify(SigningContext::RECORD, &leaf(b"other"), &signature), forged);
    assert_eq!(key(2).public().verify(SigningContext::RECORD, &record(), &signature), forged);
    for bit in 0..512 {
        let mut bytes = *signature.as_bytes();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(
            public.verify(SigningContext::RECORD, &record(), &Signature::from_bytes(bytes)),
            forged,
            "bit {bit}"
        );
    }
    for bit in (0..256).step_by(5) {
        let mut other = record();
        other[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(public.verify(SigningContext::RECORD, &other, &signature), forged, "bit {bit}");
    }
}

#[test]
fn what_is_signed_is_an_envelopes_payload() {
    // D3: DSSE's encoding, built by hand here and signed by another implementation.
    let signature = key(1).sign(SigningContext::RECORD, &record());
    let name = SigningContext::RECORD.name();
    let mut message = format!("DSSEv1 {} {name} 32 ", name.len()).into_bytes();
    message.extend(record());
    let plain = ed25519_dalek::VerifyingKey::from_bytes(key(1).public().as_bytes()).unwrap();
    let bytes = ed25519_dalek::Signature::from_bytes(signature.as_bytes());
    assert!(plain.verify_strict(&message, &bytes).is_ok());
    assert_eq!(
        name, "application/vnd.quorate.record-leaf.v1",
        "records signed under it have to keep verifying"
    );
}

#[test]
fn signatures_read_back_from_their_texts() {
    // D3
    let signature = key(1).sign(SigningContext::RECORD, &record());
    let text = signature.to_string();
    assert_eq!(Signature::from_text(&text), Ok(signature));
    let zeros = Signature::from_bytes([0; 64]);
    assert_eq!(
        key(1).public().verify(SigningContext::RECORD, &record(), &zeros),
        Err(InvalidSignature::Forged)
    );
    for bad in
        ["", "AAAA", &text[1..], &format!("{text}\n"), &"A".repeat(88), &"=".repeat(88), &"A".repeat(1 << 20)]
    {
        assert_eq!(Signature::from_text(bad), Err(InvalidSignature::Encoding));
    }
}

#[test]
fn a_keyring_says_which_signatures_count_and_why_not() {
    // D3, D9
    let bounded = KeyringEntry {
        public: key(1).public(),
        not_before_ms: Some(100),
        not_after_ms: Some(200),
        revoked_at_ms: Some(150),
    };
    let expiring = KeyringEntry { revoked_at_ms: None, public: key(2).public(), ..bounded };
    let mut ring = Keyring::new();
    let one = ring.insert(bounded).unwrap();
    let two = ring.insert(expiring).unwrap();
    let three = ring.insert(KeyringEntry::unbounded(key(3).public())).unwrap();
    let stranger = key(4).public().id();
    let early = |id| Err(RejectedSignature::NotYetValid { id, not_before_ms: 100 });
    let late = |id| Err(RejectedSignature::Expired { id, not_after_ms: 200 });
    let revoked = Err(RejectedSignature::Revoked { id: one, revoked_at_ms: 150 });
    for (id, at_ms, expected) in [
        (one, 99, early(one)),
        (one, 100, Ok(&bounded)),
        (one, 149, Ok(&bounded)),
        (one, 150, revoked),
        (one, 201, revoked),
        (two, 99, early(two)),
        (two, i64::MIN, early(two)),
        (two, 200, Ok(&expiring)),
        (two, 201, late(two)),
        (two, i64::MAX, late(two)),
        (stranger, 150, Err(RejectedSignature::UnknownKey { id: stranger })),
    ] {
        assert_eq!(ring.may_sign(id, at_ms), expected, "{id} at {at_ms}");
        let secret = if id == one { key(1) } else { key(2) };
        let signature = secret.sign(SigningContext::RECORD, &record());
        let verified = ring.may_sign(id, at_ms).ok();
        let verified = verified.map(|key| key.public.verify(SigningContext::RECORD, &record(), &signature));
        assert_eq!(verified, expected.ok().map(|_| Ok(())), "{id} at {at_ms}");
    }
    for at_ms in [i64::MIN, 0, i64::MAX] {
        let public = ring.may_sign(three, at_ms).unwrap().public;
        let others = key(2).sign(SigningContext::RECORD, &record());
        let forged = Err(InvalidSignature::Forged);
        assert_eq!(public.verify(SigningContext::RECORD, &record(), &others), forged);
        let elsewhere = key(3).sign(OTHER, &record());
        assert_eq!(public.verify(SigningContext::RECORD, &record(), &elsewhere), forged);
    }
}

#[test]
fn a_keyring_takes_a_key_once_and_with_times_that_agree() {
    // D9
    let mut ring = Keyring::new();
    let free = KeyringEntry::unbounded(key(1).public());
    let id = ring.insert(free).unwrap();
    assert_eq!(
        ring.insert(KeyringEntry { revoked_at_ms: Some(0), ..free }),
        Err(KeyringError::Duplicate { id })
    );
    let backwards = KeyringEntry {
        not_before_ms: Some(2),
        not_after_ms: Some(1),
        ..KeyringEntry::unbounded(key(2).public())
    };
    let id = key(2).public().id();
    assert_eq!(
        ring.insert(backwards),
        Err(KeyringError::EndsBeforeStart { id, not_before_ms: 2, not_after_ms: 1 })
    );
    let moment = KeyringEntry { not_after_ms: Some(2), ..backwards };
    assert_eq!(ring.insert(moment), Ok(id));
    assert!(ring.may_sign(id, 2).is_ok());
    assert!(ring.get(id).is_some() && ring.get(free.public.id()).is_some());
}
