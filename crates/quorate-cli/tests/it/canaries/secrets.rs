//! Canaries: secrets of many kinds that are made from a seed and mean nothing, and a search for them in whatever form they
//! may have come out.

#![allow(unreachable_pub, reason = "it is a part of a test")]

use std::collections::HashMap;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// How many kinds there are.
pub const KINDS: usize = 25;
/// As many bytes of a form are enough to know it.
const WINDOW: usize = 12;

/// One secret.
#[derive(Debug, Clone)]
pub struct Canary {
    /// As it is in a text, with what gives it away where that is its place.
    pub text: String,
    /// The unique part.
    pub core: String,
}

/// Chance from a seed (SplitMix64).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn of(&mut self, alphabet: &[u8], count: usize) -> String {
        let one = |chance: &mut Chance| {
            let at = chance.next() % alphabet.len() as u64;
            char::from(alphabet[usize::try_from(at).expect("it is below the length")])
        };
        (0..count).map(|_| one(self)).collect()
    }

    /// Letters and digits, of both of which there are some.
    fn noise(&mut self, count: usize) -> String {
        const ALL: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
        let head = self.of(b"0123456789", 1) + &self.of(b"ABCDEFGHKLMNPQ", 2) + &self.of(b"23456789", 1);
        head + &self.of(ALL, count - 4)
    }

    fn hex(&mut self, count: usize) -> String {
        self.of(b"0123456789abcdef", count)
    }

    fn capitals(&mut self, count: usize) -> String {
        self.of(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", count)
    }
}

/// As many as asked for, the kinds by turns.
pub fn make(seed: u64, count: usize) -> Vec<Canary> {
    let mut chance = Chance(seed);
    (0..count).map(|at| one(at % KINDS, &mut chance)).collect()
}

fn one(kind: usize, chance: &mut Chance) -> Canary {
    let core = match kind {
        0 => chance.capitals(16),
        14 | 15 => chance.hex(32),
        17 => chance.noise(64),
        1 => chance.noise(40),
        18 => chance.noise(20),
        _ => chance.noise(36),
    };
    let mut noise = |count| chance.noise(count);
    let text = match kind {
        0 => format!("AKIA{core}"),
        1 => format!("aws_secret_access_key = {core}"),
        2 => format!("ghp_{core}"),
        3 => format!("gho_{core}"),
        4 => format!("github_pat_{}_{core}{}", noise(22), noise(23)),
        5 => format!("glpat-{core}"),
        6 => format!("xoxb-123456789012-{core}"),
        7 => format!("https://hooks.slack.com/services/T0{}/B0{}/{core}", noise(8), noise(8)),
        8 => format!("sk_live_{core}"),
        9 => format!("sk-ant-api03-{core}-{}AA", noise(50)),
        10 => format!("sk-proj-{core}_{}", noise(30)),
        11 => format!("AIza{}", &core[..35]),
        12 => format!("ya29.{core}{}", noise(30)),
        13 => format!("npm_{core}"),
        14 => format!("SK{core}"),
        15 => format!("shpat_{core}"),
        16 => format!("pypi-AgEIcHlwaS5vcmc{core}{}", noise(40)),
        17 => {
            let (first, last) = (noise(64), noise(30));
            format!(
                "-----BEGIN RSA PRIVATE KEY-----\n{first}\n{core}\n{last}==\n-----END RSA PRIVATE KEY-----"
            )
        }
        18 => format!("postgres://ada:{core}@db.example:5432/shop"),
        19 => format!("hf_{core}"),
        20 => format!("123456789:AA{}", &core[..33]),
        21 => format!("SG.{}.{core}{}", noise(22), noise(7)),
        22 => format!("eyJ{}.eyJ{core}.{}", noise(24), noise(43)),
        23 => format!("Authorization: Bearer {core}"),
        _ => format!("password: \"{core}\""),
    };
    Canary { core: core[..core.len().min(33)].to_owned(), text }
}

/// Finds whole or partial canaries: verbatim, in base64 or percent-encoded.
pub struct Search {
    windows: HashMap<[u8; WINDOW], usize>,
}

impl Search {
    pub fn new(canaries: &[Canary]) -> Search {
        let mut windows = HashMap::new();
        for (at, canary) in canaries.iter().enumerate() {
            for form in forms(&canary.core) {
                // Windows start in the middle, so that half a secret is also found.
                for window in form.as_bytes().windows(WINDOW) {
                    windows.insert(window.try_into().expect("it is as long"), at);
                }
            }
        }
        Search { windows }
    }

    /// Which canaries are in a text.
    pub fn of(&self, text: &[u8]) -> Vec<usize> {
        let key = |window: &[u8]| self.windows.get::<[u8; WINDOW]>(window.try_into().ok()?).copied();
        let mut found: Vec<usize> = text.windows(WINDOW).filter_map(key).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Which are in files below a directory, or in their names; what is in `spared` is not looked at.
    pub fn below(&self, dir: &Path, spared: &Path, found: &mut Vec<(String, Vec<usize>)>) {
        for entry in std::fs::read_dir(dir).expect("a directory").flatten() {
            let path = entry.path();
            if path == spared {
                continue;
            }
            let mut here = self.of(entry.file_name().as_encoded_bytes());
            match path.is_dir() {
                true => self.below(&path, spared, found),
                false => here.extend(self.of(&std::fs::read(&path).unwrap_or_default())),
            }
            if !here.is_empty() {
                found.push((path.display().to_string(), here));
            }
        }
    }
}

fn forms(core: &str) -> Vec<String> {
    let percent = core.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let encoded = (0..3).map(|offset| {
        let text = STANDARD.encode([&vec![0; offset][..], core.as_bytes()].concat());
        text[4..text.len() - 4].to_owned()
    });
    [core.to_owned(), percent].into_iter().chain(encoded).collect()
}
