//! Tokens of services for messaging, payment, data, monitoring and work, by their issuers' documented shape.

use super::kind::Kind;
use super::shape::Segment::{Literal, Run};
use super::shape::{
    Boundary, alphanumeric, any_hex, base64, capital, dashed, digit, dotted, hex, path, small, url, word,
};
use super::vendors::{amid, exact, pieces, token};

/// What each looks like.
pub(super) const KINDS: &[Kind] = &[
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
