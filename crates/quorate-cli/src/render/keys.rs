//! The output of `quorate keys`: names and public halves only.

use quorate_diagnostics::render::TextOptions;
use quorate_ledger::keys::KeyPurpose;
use quorate_ledger::signing::KeyId;
use serde_json::{Value, json};

use super::layout::table;
use super::layout::{Paint, finish, one_line};
use super::wording::{instant, minute};
use crate::arguments::HumanOrJson;
use quorate::service::keys::change::{InitResult, KeyInfo, Rotation, Vouch};
use quorate::service::keys::{KeyEntry, KeyList, KeyState};

/// How much of a key's id is shown, in characters.
const SHORT: usize = 12;

/// All keys: a table, or `{"keys": […], "unsigned", "keyring"}`.
pub(crate) fn list(all: &KeyList, format: HumanOrJson, options: TextOptions) -> String {
    if format == HumanOrJson::Json {
        let keys: Vec<Value> = all.keys.iter().map(object).collect();
        let object = json!({"keys": keys, "keyring": all.keyring, "unsigned": all.unsigned});
        return format!("{object:#}\n");
    }
    let mut out = String::new();
    if !all.keys.is_empty() {
        let rows = all.keys.iter().map(row).collect();
        out = table(&["key", "signs", "state", "until", "who", "where"], rows, 0, options.width);
        out.push('\n');
    }
    out.push_str(&match &all.unsigned {
        Some(reason) => format!("Records are not signed: {}.\n", one_line(reason)),
        None => format!("The keyring is {}.\n", one_line(&all.keyring)),
    });
    finish(&out, options)
}

/// `{id, public, signs: "checkpoints"|"records"|null, state, label, from, not_before, not_after, revoked_at}`.
fn object(key: &KeyEntry) -> Value {
    let entry = key.entry.as_ref();
    let time = |at: Option<i64>| at.map(instant);
    json!({
        "id": key.public.id().to_string(),
        "public": key.public.to_string(),
        "signs": key.purpose.map(signs),
        "state": key.state.word(),
        "label": key.label,
        "from": key.from,
        "not_before": time(entry.and_then(|entry| entry.not_before_ms)),
        "not_after": time(entry.and_then(|entry| entry.not_after_ms)),
        "revoked_at": time(entry.and_then(|entry| entry.revoked_at_ms)),
    })
}

fn row(key: &KeyEntry) -> Vec<String> {
    let state = match key.state {
        KeyState::Unlisted => "not in the keyring".to_owned(),
        state => state.word().replace('_', " "),
    };
    let paint = if key.state == KeyState::Usable { Paint::Good } else { Paint::Absent };
    let entry = key.entry.as_ref();
    let until = entry.and_then(|entry| entry.revoked_at_ms.into_iter().chain(entry.not_after_ms).min());
    vec![
        Paint::Strong.on(&short(key.public.id())),
        key.purpose.map_or_else(String::new, |purpose| signs(purpose).to_owned()),
        paint.on(&state),
        until.map_or_else(String::new, minute),
        key.label.as_deref().map_or_else(String::new, one_line),
        key.from.as_deref().map_or_else(String::new, one_line),
    ]
}

fn signs(purpose: KeyPurpose) -> &'static str {
    match purpose {
        KeyPurpose::Ledger => "checkpoints",
        KeyPurpose::Signing => "records",
    }
}

fn short(id: KeyId) -> String {
    id.to_string().chars().take(SHORT).collect()
}

/// The result of `init`, and what to do next.
pub(crate) fn init(done: &InitResult, keyring: &str, format: HumanOrJson) -> String {
    if format == HumanOrJson::Json {
        let key_json = |key: &KeyInfo| json!({"id": key.id.to_string(), "from": key.from, "new": key.new});
        let object = json!({
            "ledger": key_json(&done.ledger), "signing": key_json(&done.signing),
            "keyring": keyring, "added": done.added,
        });
        return format!("{object:#}\n");
    }
    let line = |key: &KeyInfo, signs: &str| {
        let word = if key.new { "new   " } else { "exists" };
        format!("{word}  {}  signs {signs}: {}\n", short(key.id), one_line(&key.from))
    };
    let (word, help) = match done.added {
        true => ("added ", "Commit the keyring. Copy the secret keys to a backup, and to no other place.\n"),
        false => ("exists", ""),
    };
    format!(
        "{}{}{word}  {}  to the keyring: {}\n{help}",
        line(&done.ledger, "checkpoints"),
        line(&done.signing, "records"),
        short(done.signing.id),
        one_line(keyring),
    )
}

/// The old and the new key.
pub(crate) fn rotate(done: &Rotation, keyring: &str, format: HumanOrJson) -> String {
    if format == HumanOrJson::Json {
        let object = json!({
            "signs": signs(done.purpose), "old": done.old.map(|old| old.to_string()), "new": done.new.to_string(),
        });
        return format!("{object:#}\n");
    }
    let new = short(done.new);
    let Some(old) = done.old.map(short) else {
        return format!(
            "{new} signs {} from now on. No earlier key vouches for it: send the new key to everyone who verifies the ledger.\n",
            signs(done.purpose)
        );
    };
    let after = match done.purpose {
        KeyPurpose::Ledger => {
            "Signatures of the old key stay valid, and it vouches for the new one.\n".to_owned()
        }
        KeyPurpose::Signing => {
            let counts = match done.revoked_at_ms {
                None => "Signatures of the old key stay valid.".to_owned(),
                Some(at_ms) => format!(
                    "The old key is revoked: its signatures from {} on are invalid, and it does not vouch for the new one.",
                    instant(at_ms)
                ),
            };
            format!("{counts} Commit {}.\n", one_line(keyring))
        }
    };
    format!("{new} follows {old} and signs {}.\n{after}", signs(done.purpose))
}

/// The vouching and the vouched key.
pub(crate) fn vouch(done: &Vouch, keyring: &str, format: HumanOrJson) -> String {
    if format == HumanOrJson::Json {
        return format!("{:#}\n", json!({"by": done.by.to_string(), "key": done.key.to_string()}));
    }
    let (voucher, key) = (short(done.by), short(done.key));
    format!(
        "{voucher} vouches for {key}, which can continue the runs that {voucher} signs. Commit {}.\n",
        one_line(keyring)
    )
}

/// The revoked key, and the time of its revocation.
pub(crate) fn revoke(id: KeyId, at_ms: i64, keyring: &str, format: HumanOrJson) -> String {
    if format == HumanOrJson::Json {
        return format!("{:#}\n", json!({"id": id.to_string(), "revoked_at": instant(at_ms)}));
    }
    let (id, at) = (short(id), instant(at_ms));
    format!("{id} is revoked: its signatures from {at} on are invalid. Commit {}.\n", one_line(keyring))
}
