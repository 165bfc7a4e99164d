//! Tokens of clouds, code hosting, builds, packages and models, by their issuers' documented shape.

use super::kind::{Detector, Kind};
use super::shape::Segment::{Literal, Run};
use super::shape::{
    Body, Boundary, ByteSet, Segment, Shape, alphanumeric, base64, capital, dashed, dotted, hex, small,
    tilde, word,
};

/// A token that begins with its anchor: at least so many bytes of a set, and what follows of it.
pub(super) const fn token(name: &'static str, anchor: &'static str, set: ByteSet, least: usize) -> Kind {
    let (body, end) = (Body::One(set, least), Boundary::ExtendsWith(set));
    Kind { name, detector: Detector::Shape(Shape { anchor, before: None, body, end }) }
}

/// A token that begins with its anchor and has exactly so many bytes of a set.
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

/// A token with its anchor amid it: at least and at most so many bytes of a set are before.
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
