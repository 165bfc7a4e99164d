//! Shapes of tokens: the anchor, and which bytes surround it. A check reads a bounded number of bytes before it decides, so
//! a text full of anchors costs time in proportion to its length.

use std::ops::Range;

use Segment::{Literal, Run};

use super::{Detector, Kind, plausibility};

/// A set of bytes.
pub(super) type ByteSet = fn(u8) -> bool;

/// The bytes of a token after or before its anchor.
#[derive(Clone, Copy)]
pub(super) enum Segment {
    Literal(&'static str),
    /// A minimum and maximum count of bytes of a set, matched greedily.
    Run(ByteSet, usize, usize),
}

/// The text after an anchor.
#[derive(Clone, Copy)]
pub(super) enum Body {
    /// This number of bytes of a set.
    One(ByteSet, usize),
    /// One piece after the other.
    Pieces(&'static [Segment]),
}

/// What may follow a token.
#[derive(Clone, Copy)]
pub(super) enum Boundary {
    /// Bytes of this set belong to the token.
    ExtendsWith(ByteSet),
    /// A byte of this set after it means that it is not a token.
    EndsBefore(ByteSet),
}

/// A token as its issuer writes it.
pub(super) struct Shape {
    pub(super) anchor: &'static str,
    /// The bytes of the token before the anchor: their set, the least and the most.
    pub(super) before: Option<(ByteSet, usize, usize)>,
    pub(super) body: Body,
    pub(super) end: Boundary,
}

impl Shape {
    /// The token whose anchor is at a place.
    pub(super) fn find(&self, text: &str, anchor: Range<usize>) -> Option<Range<usize>> {
        // The automaton ignores case, and issuers do not.
        if text[anchor.clone()] != *self.anchor {
            return None;
        }
        let bytes = text.as_bytes();
        let start = match self.before {
            None => anchor.start,
            Some((set, least, most)) => {
                let before = bytes[..anchor.start].iter().rev().take(most);
                let length = before.take_while(|byte| set(**byte)).count();
                (length >= least).then(|| anchor.start - length)?
            }
        };
        let least = self.body.end(bytes, anchor.end)?;
        if !(begins(text, start)
            || self.is_distinctive() && plausibility::is_generated(&text[anchor.end..least]))
        {
            return None;
        }
        // Only a token is read to its end.
        if !plausibility::is_random(&[&text[start..anchor.start], &text[anchor.end..least]]) {
            return None;
        }
        let end = match self.end {
            Boundary::ExtendsWith(set) => least + run(&bytes[least..], set),
            Boundary::EndsBefore(set) => {
                (!bytes.get(least).is_some_and(|byte| set(*byte))).then_some(least)?
            }
        };
        Some(start..end)
    }

    /// Whether the anchor is in no other word, so that a token begins with it behind any text.
    fn is_distinctive(&self) -> bool {
        let (length, sign) = (self.anchor.len(), |sign: u8| self.anchor.as_bytes().contains(&sign));
        self.before.is_none() && (length >= 4 && sign(b'_') || length >= 5 && sign(b'-'))
    }
}

impl Body {
    /// Where the body ends that starts here.
    fn end(self, bytes: &[u8], start: usize) -> Option<usize> {
        match self {
            Body::One(set, count) => piece(Segment::Run(set, count, count), bytes, start),
            Body::Pieces(all) => all.iter().try_fold(start, |at, one| piece(*one, bytes, at)),
        }
    }
}

fn piece(piece: Segment, bytes: &[u8], at: usize) -> Option<usize> {
    match piece {
        Segment::Literal(text) => bytes[at..].starts_with(text.as_bytes()).then(|| at + text.len()),
        Segment::Run(set, least, most) => {
            let length = bytes[at..].iter().take(most).take_while(|byte| set(**byte)).count();
            (length >= least).then(|| at + length)
        }
    }
}

/// Whether a token can begin here: after nothing that it could be the rest of. What is written by an escape, as in
/// `\n` or `%3D`, ends where the escape does. Telegram has `/bot` before its tokens.
fn begins(text: &str, at: usize) -> bool {
    match &text.as_bytes()[..at] {
        [.., b'\\', b'n' | b'r' | b't'] | [.., b'b', b'o', b't'] | [] => true,
        [.., b'%', a, b] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => true,
        [.., b'\\', b'u', a, b, c, d] if [a, b, c, d].iter().all(|digit| digit.is_ascii_hexdigit()) => true,
        [.., last] => !(last.is_ascii_alphanumeric() || *last == b'+'),
    }
}

/// How many of the first bytes are of a set.
pub(super) fn run(bytes: &[u8], of: ByteSet) -> usize {
    bytes.iter().take_while(|byte| of(**byte)).count()
}

pub(super) fn hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

pub(super) fn any_hex(byte: u8) -> bool {
    byte.is_ascii_hexdigit()
}

pub(super) fn digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

pub(super) fn capital(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'A'..=b'Z')
}

pub(super) fn small(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'z')
}

pub(super) fn alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

pub(super) fn word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

pub(super) fn dashed(byte: u8) -> bool {
    word(byte) || byte == b'-'
}

pub(super) fn dotted(byte: u8) -> bool {
    dashed(byte) || byte == b'.'
}

pub(super) fn tilde(byte: u8) -> bool {
    dotted(byte) || byte == b'~'
}

pub(super) fn path(byte: u8) -> bool {
    dashed(byte) || matches!(byte, b'/' | b'+')
}

pub(super) fn base64(byte: u8) -> bool {
    path(byte) || byte == b'='
}

pub(super) fn url(byte: u8) -> bool {
    base64(byte) || matches!(byte, b'.' | b'~' | b'%')
}

/// A token that begins with its anchor: at least `least` bytes of a set, and all that follow.
pub(super) const fn token(name: &'static str, anchor: &'static str, set: ByteSet, least: usize) -> Kind {
    let (body, end) = (Body::One(set, least), Boundary::ExtendsWith(set));
    Kind { name, detector: Detector::Shape(Shape { anchor, before: None, body, end }) }
}

/// A token that begins with its anchor and has an exact number of bytes of a set.
pub(super) const fn exact(name: &'static str, anchor: &'static str, set: ByteSet, length: usize) -> Kind {
    let (body, end) = (Body::One(set, length), Boundary::EndsBefore(set));
    Kind { name, detector: Detector::Shape(Shape { anchor, before: None, body, end }) }
}

/// A token of several pieces.
pub(super) const fn pieces(
    name: &'static str,
    anchor: &'static str,
    pieces: &'static [Segment],
    end: Boundary,
) -> Kind {
    Kind { name, detector: Detector::Shape(Shape { anchor, before: None, body: Body::Pieces(pieces), end }) }
}

/// A token with its anchor amid it: between `least` and `most` bytes of a set precede it.
pub(super) const fn amid(
    name: &'static str,
    (set, least, most): (ByteSet, usize, usize),
    anchor: &'static str,
    pieces: &'static [Segment],
    end: Boundary,
) -> Kind {
    let body = Body::Pieces(pieces);
    Kind { name, detector: Detector::Shape(Shape { anchor, before: Some((set, least, most)), body, end }) }
}

/// A token of PASETO: its footer may follow it.
const fn paseto(name: &'static str, anchor: &'static str) -> Kind {
    pieces(name, anchor, &[Run(dashed, 60, 60)], Boundary::ExtendsWith(dotted))
}

/// What each looks like.
pub(super) const KINDS: &[Kind] = &[
    token("Quorate key", "quorate:ed25519:seed:", base64, 32),
    exact("age key", "AGE-SECRET-KEY-1", capital, 58),
    paseto("PASETO (v1, local)", "v1.local."),
    paseto("PASETO (v2, local)", "v2.local."),
    paseto("PASETO (v3, local)", "v3.local."),
    paseto("PASETO (v4, local)", "v4.local."),
    paseto("PASETO (v1, public)", "v1.public."),
    paseto("PASETO (v2, public)", "v2.public."),
    paseto("PASETO (v3, public)", "v3.public."),
    paseto("PASETO (v4, public)", "v4.public."),
    // Clouds
    exact("AWS access key id", "AKIA", capital, 16),
    exact("AWS temporary access key id", "ASIA", capital, 16),
    exact("AWS bearer token", "ABIA", capital, 16),
    exact("AWS context credential", "ACCA", capital, 16),
    token("Amazon Bedrock key", "ABSK", base64, 100),
    token("Amazon Bedrock short-term key", "bedrock-api-key-", base64, 20),
    pieces(
        "Amazon MWS token",
        "amzn.mws.",
        &[Run(hex, 8, 8), Literal("-"), Run(dashed, 27, 27)],
        Boundary::EndsBefore(word),
    ),
    amid("Azure AD secret", (tilde, 4, 4), "Q~", &[Run(tilde, 31, 34)], Boundary::EndsBefore(alphanumeric)),
    amid(
        "Azure DevOps token",
        (alphanumeric, 76, 76),
        "AZDO",
        &[Run(alphanumeric, 4, 4)],
        Boundary::EndsBefore(alphanumeric),
    ),
    amid(
        "Azure AI key",
        (alphanumeric, 52, 52),
        "JQQJ99",
        &[Run(alphanumeric, 26, 26)],
        Boundary::EndsBefore(alphanumeric),
    ),
    token("Google API key", "AIza", dashed, 35),
    token("Google OAuth token", "ya29.", dotted, 20),
    token("Google OAuth secret", "GOCSPX-", dashed, 28),
    token("Google refresh token", "1//0", dashed, 40),
    exact("Alibaba Cloud access key", "LTAI", alphanumeric, 20),
    exact("Tencent Cloud secret id", "AKID", alphanumeric, 32),
    exact("DigitalOcean token", "dop_v1_", hex, 64),
    exact("DigitalOcean OAuth token", "doo_v1_", hex, 64),
    exact("DigitalOcean refresh token", "dor_v1_", hex, 64),
    pieces(
        "Cloudflare origin key",
        "v1.0-",
        &[Run(hex, 24, 24), Literal("-"), Run(hex, 100, 146)],
        Boundary::ExtendsWith(hex),
    ),
    token("Cloudflare user token", "cfut_", word, 40),
    token("Cloudflare account token", "cfat_", word, 40),
    token("Cloudflare key", "cfk_", word, 37),
    token("Fly.io token", "fo1_", dashed, 40),
    token("Fly.io macaroon (fm1r)", "fm1r_", base64, 60),
    token("Fly.io macaroon (fm1a)", "fm1a_", base64, 60),
    token("Fly.io macaroon (fm2)", "fm2_", base64, 60),
    token("Render key", "rnd_", alphanumeric, 28),
    token("Heroku key", "HRKU-", dashed, 36),
    token("Netlify token", "nfp_", alphanumeric, 36),
    token("Scalingo token", "tk-us-", dashed, 48),
    token("Vercel blob token", "vercel_blob_rw_", word, 30),
    token("Vercel token", "vcp_", alphanumeric, 24),
    token("Tailscale key", "tskey-", dashed, 20),
    token("OpenShift token", "sha256~", dashed, 43),
    token("Pulumi token", "pul-", hex, 40),
    amid(
        "Terraform token",
        (alphanumeric, 14, 14),
        ".atlasv1.",
        &[Run(base64, 60, 70)],
        Boundary::ExtendsWith(base64),
    ),
    token("Vault service token", "hvs.", dotted, 24),
    token("Vault batch token", "hvb.", dotted, 24),
    token("Vault recovery token", "hvr.", dotted, 24),
    pieces(
        "Doppler token",
        "dp.",
        &[Run(small, 2, 5), Literal("."), Run(dotted, 40, 80)],
        Boundary::ExtendsWith(alphanumeric),
    ),
    pieces(
        "1Password secret key",
        "A3-",
        &[Run(capital, 6, 6), Literal("-"), Run(capital_dashed, 27, 29)],
        Boundary::EndsBefore(dashed),
    ),
    token("1Password service token", "ops_eyJ", base64, 100),
    // Code, builds and packages
    token("GitHub token", "ghp_", word, 36),
    token("GitHub OAuth token", "gho_", word, 36),
    token("GitHub user token", "ghu_", word, 36),
    token("GitHub installation token", "ghs_", word, 36),
    token("GitHub refresh token", "ghr_", word, 36),
    token("GitHub fine-grained token", "github_pat_", word, 22),
    token("GitLab token", "glpat-", dotted, 20),
    token("GitLab trigger token", "glptt-", dotted, 20),
    token("GitLab deploy token", "gldt-", dotted, 20),
    token("GitLab runner token", "glrt-", dotted, 20),
    token("GitLab job token", "glcbt-", dotted, 20),
    token("GitLab SCIM token", "glsoat-", dotted, 20),
    token("GitLab feed token", "glft-", dotted, 20),
    token("GitLab mail token", "glimt-", dotted, 20),
    token("GitLab agent token", "glagent-", dotted, 20),
    token("GitLab OAuth secret", "gloas-", dotted, 20),
    token("GitLab feature flag token", "glffct-", dotted, 20),
    token("GitLab registration token", "GR1348941", dashed, 20),
    token("Atlassian token", "ATATT3", base64, 60),
    token("Bitbucket access token", "ATCTT3", base64, 60),
    token("Bitbucket app password", "ATBB", alphanumeric, 32),
    token("npm token", "npm_", word, 36),
    token("PyPI token", "pypi-", dashed, 40),
    token("RubyGems key", "rubygems_", hex, 48),
    exact("crates.io token", "cio", alphanumeric, 32),
    exact("NuGet key", "oy2", small, 43),
    token("Clojars token", "CLOJARS_", small, 60),
    token("Docker token", "dckr_pat_", dashed, 24),
    token("Docker organization token", "dckr_oat_", dashed, 24),
    exact("Artifactory key", "AKCp", alphanumeric, 69),
    exact("Artifactory reference token", "cmVmd", alphanumeric, 59),
    token("Buildkite agent token", "bkua_", alphanumeric, 40),
    token("Buildkite cluster token", "bkct_", alphanumeric, 40),
    token("Buildkite job token", "bkaj_", alphanumeric, 40),
    token("CircleCI token", "CCIPAT_", dashed, 40),
    token("CircleCI project token", "CCIPRJ_", dashed, 40),
    token("SonarQube user token", "squ_", alphanumeric, 40),
    token("SonarQube project token", "sqp_", alphanumeric, 40),
    token("SonarQube badge token", "sqb_", alphanumeric, 40),
    token("SonarQube analysis token", "sqa_", alphanumeric, 40),
    token("Sourcegraph token", "sgp_", word, 40),
    token("Octopus Deploy key", "API-", capital, 26),
    token("Prefect key", "pnu_", alphanumeric, 36),
    pieces(
        "Harness token",
        "pat.",
        &[
            Run(dashed, 22, 22),
            Literal("."),
            Run(alphanumeric, 24, 24),
            Literal("."),
            Run(alphanumeric, 20, 20),
        ],
        Boundary::EndsBefore(alphanumeric),
    ),
    token("Infracost key", "ico-", alphanumeric, 32),
    // Models
    token("Anthropic key", "sk-ant-", dashed, 20),
    token("OpenAI project key", "sk-proj-", dashed, 20),
    token("OpenAI service key", "sk-svcacct-", dashed, 20),
    token("OpenAI session key", "sess-", alphanumeric, 40),
    token("OpenAI admin key", "sk-admin-", dashed, 20),
    pieces("OpenAI key", "sk-", &[Run(alphanumeric, 32, 32)], Boundary::ExtendsWith(dashed)),
    token("OpenRouter key", "sk-or-v1-", dashed, 48),
    token("Langfuse key", "sk-lf-", dashed, 32),
    token("Hugging Face token", "hf_", alphanumeric, 30),
    token("Hugging Face organization token", "api_org_", alphanumeric, 34),
    token("Groq key", "gsk_", alphanumeric, 40),
    token("xAI key", "xai-", alphanumeric, 60),
    token("Replicate token", "r8_", alphanumeric, 36),
    token("Perplexity key", "pplx-", alphanumeric, 40),
    token("NVIDIA key", "nvapi-", dashed, 50),
    token("Cerebras key", "csk-", alphanumeric, 40),
    token("Fireworks key", "fw_", alphanumeric, 22),
    token("ElevenLabs key", "sk_", hex, 48),
    token("Firecrawl key", "fc-", hex, 32),
    token("Tavily key", "tvly-", dashed, 28),
    token("Jina key", "jina_", word, 50),
    token("E2B key", "e2b_", hex, 40),
    pieces(
        "LangSmith key",
        "lsv2_",
        &[Run(small, 2, 2), Literal("_"), Run(hex, 32, 32), Literal("_"), Run(hex, 10, 10)],
        Boundary::ExtendsWith(alphanumeric),
    ),
];

fn capital_dashed(byte: u8) -> bool {
    capital(byte) || byte == b'-'
}

/// What each looks like.
pub(super) const SERVICE_KINDS: &[Kind] = &[
    // Talk
    token("Slack app configuration token", "xoxa-", dashed, 10),
    token("Slack bot token", "xoxb-", dashed, 10),
    token("Slack export token", "xoxe-", dashed, 10),
    token("Slack session token", "xoxo-", dashed, 10),
    token("Slack user token", "xoxp-", dashed, 10),
    token("Slack refresh token", "xoxr-", dashed, 10),
    token("Slack legacy token", "xoxs-", dashed, 10),
    token("Slack browser token", "xoxc-", dashed, 10),
    token("Slack cookie", "xoxd-", url, 10),
    token("Slack configuration token", "xoxe.xox", dotted, 20),
    token("Slack app token", "xapp-", dashed, 10),
    pieces(
        "Slack webhook",
        "hooks.slack.com/",
        &[Run(small, 8, 9), Literal("/"), Run(path, 28, 80)],
        Boundary::ExtendsWith(path),
    ),
    pieces(
        "Discord webhook",
        "discord.com/api/webhooks/",
        &[Run(digit, 15, 21), Literal("/"), Run(dashed, 40, 100)],
        Boundary::ExtendsWith(dashed),
    ),
    pieces(
        "Discord webhook (old host)",
        "discordapp.com/api/webhooks/",
        &[Run(digit, 15, 21), Literal("/"), Run(dashed, 40, 100)],
        Boundary::ExtendsWith(dashed),
    ),
    amid("Telegram bot token", (digit, 8, 10), ":AA", &[Run(dashed, 33, 33)], Boundary::ExtendsWith(dashed)),
    amid(
        "Microsoft Teams webhook",
        (dashed, 1, 63),
        ".webhook.office.com/webhookb2/",
        &[
            Run(url_at, 60, 80),
            Literal("/IncomingWebhook/"),
            Run(alphanumeric, 32, 32),
            Literal("/"),
            Run(dashed, 36, 36),
        ],
        Boundary::ExtendsWith(dashed),
    ),
    exact("Twilio key", "SK", any_hex, 32),
    pieces(
        "SendGrid key",
        "SG.",
        &[Run(dashed, 16, 32), Literal("."), Run(dashed, 16, 43)],
        Boundary::ExtendsWith(dashed),
    ),
    token("Discord session token", "mfa.", dashed, 84),
    exact("Mailgun key", "key-", any_hex, 32),
    amid("Mailchimp key", (hex, 32, 32), "-us", &[Run(digit, 1, 2)], Boundary::EndsBefore(alphanumeric)),
    token("Brevo key", "xkeysib-", dashed, 64),
    token("Brevo SMTP key", "xsmtpsib-", dashed, 64),
    pieces(
        "Resend key",
        "re_",
        &[Run(alphanumeric, 8, 8), Literal("_"), Run(alphanumeric, 22, 26)],
        Boundary::ExtendsWith(alphanumeric),
    ),
    // Money
    token("Stripe secret key", "sk_live_", word, 16),
    token("Stripe test key", "sk_test_", word, 16),
    token("Stripe restricted key", "rk_live_", word, 16),
    token("Stripe restricted test key", "rk_test_", word, 16),
    token("Stripe webhook secret", "whsec_", base64, 16),
    token("Square token", "EAAA", dashed, 56),
    token("Square access token", "sq0atp-", dashed, 22),
    token("Square secret", "sq0csp-", dashed, 40),
    pieces(
        "Braintree token",
        "access_token$production$",
        &[Run(small, 16, 16), Literal("$"), Run(hex, 32, 32)],
        Boundary::ExtendsWith(hex),
    ),
    pieces(
        "Braintree sandbox token",
        "access_token$sandbox$",
        &[Run(small, 16, 16), Literal("$"), Run(hex, 32, 32)],
        Boundary::ExtendsWith(hex),
    ),
    pieces(
        "Plaid access token",
        "access-",
        &[Run(small, 7, 11), Literal("-"), Run(hex, 8, 8), Literal("-"), Run(hex_dashed, 27, 27)],
        Boundary::EndsBefore(alphanumeric),
    ),
    pieces(
        "Plaid secret",
        "secret-",
        &[Run(small, 7, 11), Literal("-"), Run(hex, 8, 8), Literal("-"), Run(hex_dashed, 27, 27)],
        Boundary::EndsBefore(alphanumeric),
    ),
    token("Razorpay key", "rzp_live_", alphanumeric, 14),
    token("Razorpay test key", "rzp_test_", alphanumeric, 14),
    token("Flutterwave key", "FLWSECK", dashed, 12),
    token("Shippo live token", "shippo_live_", any_hex, 40),
    token("Shippo test token", "shippo_test_", any_hex, 40),
    exact("EasyPost key", "EZAK", alphanumeric, 54),
    exact("EasyPost test key", "EZTK", alphanumeric, 54),
    token("Duffel live token", "duffel_live_", base64, 43),
    token("Duffel test token", "duffel_test_", base64, 43),
    token("Paddle key", "pdl_live_apikey_", word, 26),
    token("GoCardless token", "live_", dashed, 40),
    exact("Shopify access token", "shpat_", any_hex, 32),
    exact("Shopify custom app token", "shpca_", any_hex, 32),
    exact("Shopify private app token", "shppa_", any_hex, 32),
    exact("Shopify shared secret", "shpss_", any_hex, 32),
    exact("Shopify theme token", "shptka_", any_hex, 32),
    // Data
    token("Supabase token", "sbp_", hex, 40),
    token("Supabase OAuth token", "sbp_oauth_", hex, 40),
    token("Supabase experimental token", "sbp_v0_", hex, 40),
    token("Supabase secret key", "sb_secret_", dashed, 20),
    token("PlanetScale password", "pscale_pw_", dotted_equals, 32),
    token("PlanetScale token", "pscale_tkn_", dotted_equals, 32),
    token("PlanetScale OAuth token", "pscale_oauth_", dotted_equals, 32),
    exact("Databricks token", "dapi", hex, 32),
    exact("Databricks OAuth secret", "dose", hex, 32),
    token("dbt token", "dbtc_", dashed, 30),
    token("dbt user token", "dbtu_", dashed, 30),
    token("Neon key", "napi_", alphanumeric, 40),
    token("Neon password", "npg_", alphanumeric, 12),
    token("MongoDB Atlas secret", "mdb_sa_sk_", dashed, 30),
    exact("ClickHouse Cloud secret", "4b1d", alphanumeric, 38),
    pieces(
        "Airtable token",
        "pat",
        &[Run(alphanumeric, 14, 14), Literal("."), Run(hex, 64, 64)],
        Boundary::EndsBefore(alphanumeric),
    ),
    pieces(
        "Yandex Cloud token",
        "t1.",
        &[Run(base64, 8, 400), Literal("."), Run(base64, 86, 88)],
        Boundary::ExtendsWith(base64),
    ),
    token("Yandex Cloud key", "AQVN", dashed, 35),
    pieces("Dropbox token", "sl.", &[Run(dotted_equals, 130, 130)], Boundary::ExtendsWith(dotted_equals)),
    token("Contentful token", "CFPAT-", dashed, 40),
    // Watching
    token("New Relic user key", "NRAK-", capital, 27),
    token("New Relic insert key", "NRII-", dashed, 32),
    token("New Relic browser key", "NRJS-", hex, 19),
    amid("New Relic license key", (small, 36, 36), "NRAL", &[], Boundary::EndsBefore(alphanumeric)),
    token("Grafana Cloud token", "glc_", base64, 32),
    pieces(
        "Grafana service account token",
        "glsa_",
        &[Run(alphanumeric, 32, 32), Literal("_"), Run(any_hex, 8, 8)],
        Boundary::ExtendsWith(alphanumeric),
    ),
    token("Grafana key", "eyJrIjoi", base64, 60),
    token("Sentry organization token", "sntrys_", base64, 60),
    token("Sentry user token", "sntryu_", hex, 64),
    pieces(
        "Dynatrace token",
        "dt0c01.",
        &[Run(alphanumeric, 24, 24), Literal("."), Run(alphanumeric, 64, 64)],
        Boundary::ExtendsWith(alphanumeric),
    ),
    pieces(
        "Dynatrace platform token",
        "dt0s",
        &[Run(digit, 2, 2), Literal("."), Run(alphanumeric, 8, 24), Literal("."), Run(alphanumeric, 64, 64)],
        Boundary::ExtendsWith(alphanumeric),
    ),
    pieces(
        "LaunchDarkly SDK key",
        "sdk-",
        &[Run(hex, 8, 8), Literal("-"), Run(hex_dashed, 27, 27)],
        Boundary::EndsBefore(alphanumeric),
    ),
    pieces(
        "LaunchDarkly access token",
        "api-",
        &[Run(hex, 8, 8), Literal("-"), Run(hex_dashed, 27, 27)],
        Boundary::EndsBefore(alphanumeric),
    ),
    pieces(
        "LaunchDarkly mobile key",
        "mob-",
        &[Run(hex, 8, 8), Literal("-"), Run(hex_dashed, 27, 27)],
        Boundary::EndsBefore(alphanumeric),
    ),
    amid("MaxMind key", (word, 36, 36), "_mmk", &[], Boundary::EndsBefore(word)),
    // Work
    token("Linear key", "lin_api_", alphanumeric, 40),
    token("Linear OAuth token", "lin_oauth_", alphanumeric, 40),
    token("Linear webhook secret", "lin_wh_", alphanumeric, 30),
    token("Notion token", "ntn_", alphanumeric, 40),
    token("Notion secret", "secret_", alphanumeric, 43),
    token("Figma token", "figd_", dashed, 40),
    token("Figma OAuth token", "figo_", dashed, 40),
    token("Figma OAuth token (organization)", "figoh_", dashed, 40),
    token("Figma refresh token", "figor_", dashed, 40),
    pieces(
        "Postman key",
        "PMAK-",
        &[Run(hex, 24, 24), Literal("-"), Run(hex, 34, 34)],
        Boundary::ExtendsWith(alphanumeric),
    ),
    pieces(
        "Postman collection key",
        "PMAT-",
        &[Run(alphanumeric, 26, 26)],
        Boundary::ExtendsWith(alphanumeric),
    ),
    pieces(
        "HubSpot token (na1)",
        "pat-na",
        &[Run(digit, 1, 1), Literal("-"), Run(hex, 8, 8), Literal("-"), Run(hex_dashed, 27, 27)],
        Boundary::EndsBefore(alphanumeric),
    ),
    pieces(
        "HubSpot token (eu1)",
        "pat-eu",
        &[Run(digit, 1, 1), Literal("-"), Run(hex, 8, 8), Literal("-"), Run(hex_dashed, 27, 27)],
        Boundary::EndsBefore(alphanumeric),
    ),
    token("Typeform token", "tfp_", dotted_equals, 40),
    token("ReadMe key", "rdme_", small, 60),
    token("Frame.io token", "fio-u-", base64, 60),
    token("Adobe secret", "p8e-", alphanumeric, 32),
    token("Intra 42 secret", "s-s4t2", dashed, 64),
    pieces(
        "Asana token",
        "2/",
        &[Run(digit, 15, 17), Literal("/"), Run(digit, 15, 17), Literal(":"), Run(hex, 32, 32)],
        Boundary::EndsBefore(alphanumeric),
    ),
    pieces(
        "Asana personal token",
        "1/",
        &[Run(digit, 15, 17), Literal(":"), Run(hex, 32, 32)],
        Boundary::EndsBefore(alphanumeric),
    ),
    pieces(
        "Mapbox temporary token",
        "tk.eyJ",
        &[Run(dashed, 40, 200), Literal("."), Run(dashed, 20, 30)],
        Boundary::ExtendsWith(dashed),
    ),
    pieces(
        "Mapbox secret token",
        "sk.eyJ",
        &[Run(dashed, 40, 200), Literal("."), Run(dashed, 20, 30)],
        Boundary::ExtendsWith(dashed),
    ),
    pieces("Facebook access token", "EAA", &[Run(alphanumeric, 80, 80)], Boundary::ExtendsWith(alphanumeric)),
    amid("Facebook app token", (digit, 15, 16), "|", &[Run(dashed, 27, 27)], Boundary::ExtendsWith(dashed)),
];

fn dotted_equals(byte: u8) -> bool {
    dotted(byte) || byte == b'='
}

fn hex_dashed(byte: u8) -> bool {
    hex(byte) || byte == b'-'
}

fn url_at(byte: u8) -> bool {
    dashed(byte) || byte == b'@'
}
