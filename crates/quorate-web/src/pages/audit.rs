//! `/audit`: verdicts by week and type, members' behaviour and agreement, producers with the drift of their verdicts as a
//! line, and cost.

use std::sync::Arc;

use askama::Template;
use quorate::audit::{Audit, Producer};

use super::chart::{Line, line};
use super::{Asked, Frame};
use crate::Server;
use crate::api::runs::{AuditQuery, load_audit};
use crate::failure::Failure;

#[derive(Template)]
#[template(path = "audit.html")]
pub(super) struct AuditPage {
    frame: Frame,
    since: String,
    artifact_type: String,
    /// The audit as HTML.
    audit: String,
    courses: Vec<Course>,
}

/// A producer's mean verdict by week.
struct Course {
    producer: String,
    line: Line,
    /// What the line shows, in a sentence.
    about: String,
}

/// The most producers with a line, those with the most reviews, and the most weeks of each, the newest ones.
const MAX_PRODUCERS: usize = 10;
const MAX_WEEKS: usize = 12;
/// The days of a week.
const WEEK: i64 = 7;

/// The page.
pub(super) async fn page(server: Arc<Server>, asked: Asked) -> Result<AuditPage, Failure> {
    let query: AuditQuery = asked.query()?;
    let (since, artifact_type) =
        (query.since.clone().unwrap_or_default(), query.artifact_type.clone().unwrap_or_default());
    let audit = load_audit(&server, query).await?;
    let flag = |name: &str, value: &str| match value {
        "" => String::new(),
        value => format!(" --{name} {value}"),
    };
    let command = format!("quorate audit{}{}", flag("since", &since), flag("type", &artifact_type));
    let json = format!("/api/v1/audit?{}", asked.query);
    let frame = Frame::new(&server, "Audit", "audit", command).with_json(json);
    Ok(AuditPage { frame, since, artifact_type, audit: audit.doc().html(), courses: courses(&audit) })
}

fn courses(audit: &Audit) -> Vec<Course> {
    let mut producers: Vec<&Producer> = audit.producers.iter().filter(|one| !one.weeks.is_empty()).collect();
    producers.sort_by_key(|producer| (std::cmp::Reverse(producer.all.reviews), &producer.producer));
    producers.into_iter().take(MAX_PRODUCERS).map(course).collect()
}

fn course(producer: &Producer) -> Course {
    let weeks = &producer.weeks[producer.weeks.len().saturating_sub(MAX_WEEKS)..];
    let values: Vec<Option<f64>> = match (weeks.first(), weeks.last()) {
        // A week without reviews interrupts the line; so do the weeks before the last ones.
        (Some(first), Some(last)) => {
            let first = first.monday.max(last.monday - WEEK * 51);
            let mean = |at: i64| weeks.iter().find(|week| week.monday == first + at * WEEK)?.all.mean_verdict;
            (0..=(last.monday - first) / WEEK).map(mean).collect()
        }
        _ => Vec::new(),
    };
    let about: Vec<String> = weeks
        .iter()
        .map(|week| {
            let mean = week.all.mean_verdict.map_or_else(|| "–".to_owned(), |mean| format!("{mean:.2}"));
            format!("{}: {mean} of {}", week.week, week.all.reviews)
        })
        .collect();
    let about = format!("Mean verdict by week, from HOLD at 0 to SHIP at 1. {}.", about.join("; "));
    Course { producer: producer.producer.clone(), line: line(&values), about }
}
