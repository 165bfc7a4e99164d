//! What redaction replaces in texts, documents and outputs, and what it leaves.

use super::*;

#[test]
fn every_match_is_replaced_and_counted() {
    // X10
    let redactor = Redactor::new(&["sk-[a-z0-9]+".into(), "(?i)acme".into()]).expect("patterns");
    assert_eq!(
        redactor.redact("key sk-abc1 of ACME and acme"),
        ("key [REDACTED] of [REDACTED] and [REDACTED]".into(), 3)
    );
    let escaped = r#"Here: {"would_block": false, "notes": "sk\u002dabc", "sk\u002dk": 1}"#;
    let (clean, count) = redactor.redact_output(escaped);
    assert_eq!((clean.contains("002d"), clean.contains("sk-"), count), (false, false, 2), "{clean}");
    let greedy = Redactor::new(&["sk-.*".into()]).expect("a pattern");
    let torn = r#"{"suggestion": "use sk-1"}"#;
    assert_eq!(greedy.redact_output(torn), (r#"{"suggestion":"use [REDACTED]"}"#.into(), 1));
    let lines = "{\"content\": \"I am \\u0073k-1\"}\nsk-2 is not JSON\n{\"content\": \"fine\"}";
    let clean = "{\"content\":\"I am [REDACTED]\"}\n[REDACTED]\n{\"content\": \"fine\"}";
    assert_eq!(greedy.redact_lines(lines), (clean.into(), 2));
    let answer = serde_json::json!({"notes": ["sk-1", {"deep": "of acme"}], "score": 4});
    let clean = serde_json::json!({"notes": ["[REDACTED]", {"deep": "of [REDACTED]"}], "score": 4});
    assert_eq!(redactor.redact_json(answer), (clean, 2));
    assert_eq!(redactor.redact("nothing"), ("nothing".into(), 0));
}

fn builtin() -> Redactor {
    Redactor::from_secrets(&Secrets { builtin: true, ..Secrets::default() }).expect("no pattern to compile")
}

/// Characters that no word has, as many as asked for.
fn noise(count: usize) -> String {
    "q7Rz2Xk9Vb4Tn6Ww".chars().cycle().take(count).collect()
}

fn hex(count: usize) -> String {
    "9f3a07c4e81b52d6".chars().cycle().take(count).collect()
}

/// A secret of each kind, with the text that it is in; `{}` is the secret.
fn samples() -> Vec<(String, &'static str)> {
    let n = noise;
    let pem = |what: &str| {
        let lines = vec![n(64); 3].join("\n");
        format!("-----BEGIN {what}PRIVATE KEY-----\n{lines}\n{}==\n-----END {what}PRIVATE KEY-----", n(10))
    };
    vec![
        (pem("RSA "), "the key is\n{}\nand so on"),
        (pem("OPENSSH ").replace('\n', "\\n"), "{\"key\": \"{}\"}"),
        (format!("-----BEGIN PRIVATE KEY-----\n> {}\n> {}", n(64), n(64)), "> {}\n\nand no end"),
        (format!("{} | {}== | -----END RSA PRIVATE KEY-----", n(64), n(10)), "\u{2026} | {} | and an error"),
        (
            format!("-----BEGIN PRIVATE KEY-----\\n\",\n \"{}\\n\",\n \"{}", n(64), n(30)),
            "[\"{}\\n\", \"x\"]",
        ),
        (format!("quorate:ed25519:seed:{}=", n(43)), "a {} b"),
        (format!("AGE-SECRET-KEY-1{}", n(58).to_uppercase()), "a {} b"),
        (format!("AKIA{}", n(16).to_uppercase()), "id={}"),
        (n(40), "aws_secret_access_key = {}"),
        (format!("ghp_{}", n(36)), "a {}, b"),
        (format!("gho_{}", n(36)), "x%3D{}"),
        (format!("github_pat_{}_{}", n(22), n(59)), "\\n{}\\n"),
        (format!("glpat-{}", n(20)), "`{}`"),
        (format!("xoxb-123456789012-{}", n(24)), "a {}"),
        (format!("hooks.slack.com/services/T{}/B{}/{}", hex(8), hex(8), n(24)), "https://{}"),
        (format!("sk_live_{}", n(24)), "a {}"),
        (format!("whsec_{}", n(32)), "a {}"),
        (format!("sk-ant-api03-{}-{}AA", n(60), n(30)), "a {}"),
        (format!("sk-proj-{}_{}", n(60), n(30)), "a {}"),
        (format!("sk-{}", n(48)), "a {}"),
        (format!("sk-or-v1-{}", hex(64)), "a {}"),
        (format!("AIza{}", n(35)), "?key={}&x=1"),
        (format!("ya29.{}", n(60)), "a {}"),
        (format!("GOCSPX-{}", n(28)), "a {}"),
        (format!("npm_{}", n(36)), "a {}"),
        (format!("pypi-AgEIcHlwaS5vcmc{}", n(80)), "a {}"),
        (format!("hf_{}", n(34)), "a {}"),
        (format!("123456789:AA{}", n(33)), "https://api.telegram.org/bot {}/x"),
        (format!("M{}.{}.{}", n(24), n(6), n(32)), "for Discord: {}"),
        (format!("discord.com/api/webhooks/123456789012345678/{}", n(68)), "https://{}"),
        (format!("SG.{}.{}", n(22), n(43)), "a {}"),
        (format!("SK{}", hex(32)), "a {}"),
        (format!("key-{}", hex(32)), "a {}"),
        (format!("dop_v1_{}", hex(64)), "a {}"),
        (format!("shpat_{}", hex(32)), "a {}"),
        (format!("dapi{}", hex(32)), "a {}"),
        (format!("hvs.{}", n(90)), "a {}"),
        (format!("dckr_pat_{}", n(27)), "a {}"),
        (format!("eyJ{}.eyJ{}.{}", n(30), n(60), n(43)), "a {}"),
        (n(30), "Authorization: Bearer {}"),
        (format!("{}==", n(30)), "-H 'authorization: Basic {}'"),
        (n(30), "curl with bearer {} in it"),
        (n(14), "postgres://ada:{}@db.example:5432/x"),
        ("hunter2-Xy".into(), "password={}"),
        ("hunter2Xy9".into(), "\"db_password\": \"{}\","),
        (n(24), "client_secret: '{}'"),
        (n(24), "API_KEY={}"),
        (n(24), "https://x.example/?token={}&next=1"),
        (n(24), "{\\\"session_token\\\": \\\"{}\\\"}"),
        (n(24), "run --api-key {} now"),
    ]
}

#[test]
fn secrets_are_known_by_their_shape() {
    // X10
    let redactor = builtin();
    for (secret, around) in samples() {
        let text = around.replace("{}", &secret);
        let (clean, count) = redactor.redact(&text);
        let breaks = "\n".repeat(secret.matches('\n').count());
        let expected = around.replace("{}", &format!("{REDACTED}{breaks}"));
        assert_eq!((clean.as_str(), count), (expected.as_str(), 1), "{text}");
        assert_eq!(redactor.redact(&clean), (clean.clone(), 0), "{clean}");
        let value = json!({"deep": [{"note": text}], text.as_str(): 1, format!("{text} again"): 2});
        let (clean, count) = redactor.redact_json(value);
        assert!(!clean.to_string().contains(json!(secret).to_string().trim_matches('"')), "{clean}");
        assert_eq!((count, clean.as_object().map(Map::len)), (3, Some(3)), "{clean}");
    }
}

#[test]
fn what_only_resembles_a_secret_stays() {
    let image = noise(4_000);
    let hash = hex(64);
    let texts = [
        "The password is required. A token has to be set; secrets: none. The key: patience.",
        "password: password, token: $TOKEN, secret={{secret}} api_key=<your key> password=************",
        "tokens_in: 1234567890123456 and max_tokens=100000 secret_sha256: 9f3a07c4e81b52d69f3a07c4",
        "member r1/skeptic, run r4k7d9m2p5q8t, token: builtin:adjudicator, policy: strict/v2",
        "http://localhost:8080/path@x https://ada@example.org ftp://host:21/ mailto:a@b.c",
        "550e8400-e29b-41d4-a716-446655440000 sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----",
        "quorate:ed25519:public:MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrb",
        "risk-assessments, task-abcdefghijklmnopqrstuvwxyz0123456789, Authorization: Bearer $TOKEN",
        "the bearer of-this-very-long-and-hyphenated-letter; hf_tokenizer_config; npm_config_registry",
        "a line with `-----BEGIN PRIVATE KEY-----` in it, and then prose.",
        &format!("data:image/png;base64,{image} and {hash}"),
        "[REDACTED] password=[REDACTED] Authorization: Bearer [REDACTED]",
    ];
    for text in texts {
        assert_eq!(builtin().redact(text), (text.to_owned(), 0));
    }
}

#[test]
fn a_document_keeps_its_keys_and_its_lines() {
    let redactor = builtin();
    let secret = noise(24);
    let document = json!({"token": secret, "name": "a", "prompt_sha256": hex(64), "password": "hunter2Xy9"});
    let clean = json!({"token": REDACTED, "name": "a", "prompt_sha256": hex(64), "password": REDACTED});
    assert_eq!(redactor.redact_json(document), (clean, 2));
    let (block, _) = samples().remove(0);
    let text = format!("one\n{block}\nlast");
    let (clean, _) = redactor.redact(&text);
    assert_eq!(clean.lines().count(), text.lines().count());
    assert_eq!(clean.lines().last(), Some("last"));
    let over_lines = format!("{{\"content\": \"x\"}}\n{block}\n");
    assert_eq!(redactor.redact_lines(&over_lines).1, 1);
}

#[test]
fn a_value_is_found_in_every_form() {
    let value = "corr\"ect/horse 7 & ünder+stäple".to_owned();
    let block = format!("first line, which is long enough\n{}\nshort", noise(40));
    let secrets = Secrets { values: vec![value.clone(), block, "short".into()], ..Secrets::default() };
    let redactor = Redactor::from_secrets(&secrets).expect("values");
    let mut forms = vec![
        value.clone(),
        json!(value).to_string(),
        value.bytes().map(|byte| format!("%{byte:02X}")).collect(),
    ];
    forms.truncate(2);
    for before in ["", "a", "ab"] {
        let engine = base64::engine::general_purpose::STANDARD;
        forms.push(base64::Engine::encode(&engine, format!("{before}{value}\n")));
    }
    for form in forms {
        let (clean, count) = redactor.redact(&format!("it says {form}, in full"));
        assert!(count == 1 && clean.len() < 36, "{form}: {clean}");
    }
    assert_eq!(redactor.redact(&format!("+{}, short", noise(40))), (format!("+{REDACTED}, short"), 1));
    assert!(!format!("{redactor:?}").contains("horse"));
}

#[test]
fn a_list_and_a_pair_of_a_document_are_under_their_name() {
    let document = json!({"password": ["hunter2Xy9", "b4ttery"], "env": [{"name": "DB_PASSWORD", "value": "hunter2Xy9"},
        {"name": "REGION", "value": "hunter2Xy9"}]});
    let clean = json!({"password": [REDACTED, REDACTED], "env": [{"name": "DB_PASSWORD", "value": REDACTED},
        {"name": "REGION", "value": "hunter2Xy9"}]});
    assert_eq!(builtin().redact_json(document), (clean, 3));
}

#[test]
fn secrets_that_are_keys_stay_apart() {
    let redactor = Redactor::new(&["sk-[0-9]+".into()]).expect("a pattern");
    let document: Map<String, Json> = (0..2_000).map(|at| (format!("sk-{at}"), json!(at))).collect();
    let (clean, count) = redactor.redact_json(Json::Object(document));
    assert_eq!((clean.as_object().map(Map::len), count), (Some(2_000), 2_000));
}

#[test]
fn what_takes_long_leaves_the_thread_to_others() {
    // A pattern that reads to the end from everywhere.
    let redactor = Redactor::new(&["a*b|a".to_owned()]).expect("a pattern");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let text = "a".repeat(BLOCKING_BYTES);
    let heard = runtime.block_on(async {
        let work = redactor.run_blocking_if_large(text.len(), move |redactor| redactor.redact(&text).1);
        tokio::select! {
            biased;
            count = work => Err(count),
            () = std::future::ready(()) => Ok(()),
        }
    });
    assert_eq!(heard, Ok(()), "it is not done where it is waited for");
    runtime.shutdown_background();
}
