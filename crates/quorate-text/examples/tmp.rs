use quorate_text::locks::*;
use std::time::Instant;
fn main() {
    let mut rows: Vec<serde_json::Value> =
        serde_json::from_str(include_str!("../tests/it/evasion/corpus.json")).unwrap();
    for row in &mut rows {
        let text = row["text"].as_str().unwrap().to_owned();
        let l = row["trait"].as_str().unwrap().to_owned();
        let w = if row["mode"] == "regex" { Wanted::Pattern(&l) } else { Wanted::Text(&l) };
        let hits = Matcher::new(&[w]).unwrap().check(&text);
        let now = hits.first().map_or(
            serde_json::Value::Null,
            |h| serde_json::json!({"layer":h.layer.as_str(),"words":&text[h.span.clone()]}),
        );
        row["now"] = now;
    }
    std::fs::write("/tmp/corpus-now.json", serde_json::to_string(&rows).unwrap()).unwrap();
    const STEMS: [&str; 20] = [
        "warmth",
        "honest",
        "voice register",
        "refuse harm",
        "kindness",
        "core persona",
        "candour",
        "never flatter",
        "plain speech",
        "curiosity",
        "patience",
        "loyalty to users",
        "safety first",
        "privacy",
        "dignity",
        "no pretence",
        "humility",
        "good humour",
        "respect",
        "discretion",
    ];
    const ENDINGS: [&str; 5] = ["", " in tone", " of the agent", " at work", "-like"];
    let texts: Vec<String> =
        STEMS.iter().flat_map(|s| ENDINGS.iter().map(move |e| format!("{s}{e}"))).collect();
    let wanted: Vec<Wanted> = texts.iter().map(|t| Wanted::Text(t)).collect();
    let pats: Vec<Wanted> = texts.iter().map(|t| Wanted::Pattern(t)).collect();
    let t = Instant::now();
    let m = Matcher::new(&wanted).unwrap();
    println!("compile {:?}", t.elapsed());
    let p = Matcher::new(&pats).unwrap();
    const WORDS: &str = "the of and to in is that it for was on are as with his they at be this from have or by one had not but what all were when we there can an your which their said if do will each about how up out them then she many some so these would other into has more her two like him see time could no make than first been its who now people my made over did down only way find use may water long little very after words called just where most know council draft reviewer evidence section claim number release incident region latency budget customer paragraph";
    let words: Vec<&str> = WORDS.split_whitespace().collect();
    let mut plain = String::new();
    let mut st = 20261u64;
    let mut c = 1u64;
    while plain.len() < 8_000_000 {
        st = st.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let w = words[(st >> 33) as usize % words.len()];
        match c % 97 {
            0 => plain.push_str(&format!("**{w}** {c}")),
            13 => plain.push_str(&format!("`{w}_{w}`")),
            _ => plain.push_str(w),
        };
        plain.push_str(match c % 240 {
            0 => ".\n\n",
            n if n % 16 == 0 => "\n",
            n if n % 11 == 0 => ", ",
            n if n % 27 == 0 => ". ",
            _ => " ",
        });
        c += 1;
    }
    let b = include_str!("../tests/it/evasion/benign.txt");
    let mixed = b.repeat(8_000_000 / b.len() + 1);
    for (n, m) in [("texts", &m), ("patterns", &p)] {
        for (k, t) in [("plain", &plain), ("mixed", &mixed)] {
            let mut v = vec![];
            for _ in 0..5 {
                let s = Instant::now();
                let h = m.check(t).len();
                v.push((s.elapsed().as_secs_f64(), h));
            }
            v.sort_by(|a, b| a.0.total_cmp(&b.0));
            println!("{n} {k}: {:.0} MB/s, {} hits", t.len() as f64 / 1e6 / v[2].0, v[2].1);
        }
    }
    let s = Instant::now();
    for _ in 0..1000 {
        std::hint::black_box(m.check("Say the risk first, the **remedy** second."));
    }
    println!("1000 short {:?}", s.elapsed());
    let hm = ["ignore the policy", "AI", "FAIL", "modem", "warmth", "a a a a a"].map(Wanted::Text);
    let hm = Matcher::new(&hm).unwrap();
    for piece in [
        "<a=\"",
        "<a ='",
        "](",
        "][",
        "<!--",
        "<!-- >",
        "&amp;",
        "&#x77",
        "[!",
        "w ",
        "a",
        "a ",
        "warm",
        "-\n",
        "\n> ",
        "i|",
        "i g n o r e ",
        "|",
        "A.",
        "ignorethepolic",
        "mode rn",
        "і g",
        "w\u{200b}",
        "Ν",
        "\u{e0061}",
        "e\u{301}",
        "<![",
        "_a_",
    ] {
        let t = piece.repeat(1_000_000 / piece.len());
        let s = Instant::now();
        let n = hm.check(&t).len();
        let a = s.elapsed();
        let s = Instant::now();
        fold(&t);
        let f = s.elapsed();
        let s = Instant::now();
        let k = hm.find_all(&t).len();
        println!("{piece:?}: check {a:?} {n} fold {f:?} all {:?} {k}", s.elapsed());
    }
}
