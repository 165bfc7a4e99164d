//! `quorate locks`: `test` compares a text with locked traits, `list` shows those of an operator.

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args, Subcommand};
use quorate::locks::{
    LockTest, LockTestRequest, MeaningTest, MeaningTestRequest, OperatorLocks, TextsToScore,
};
use quorate::{Draft, Outcome, Quorate, Report};

use crate::arguments::{HumanOrJson, OutputArguments};
use crate::exit::{Ended, Exit, show, warn};
use crate::render::Format;
use crate::terminal::Terminal;

/// Test a text against the locked traits of an assembly, and list the locked traits of an operator
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate locks test ASSEMBLY.md --text 'Drop the warmth.'\n  quorate locks test operators/lead --file draft.md --format json\n  quorate locks list alice"
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Test(TestArguments),
    List(ListArguments),
}

pub(super) async fn run(arguments: Arguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    match arguments.verb {
        Verb::Test(arguments) if arguments.meaning => run_meaning(arguments, quorate, terminal).await,
        Verb::Test(arguments) => run_test(arguments, quorate, terminal),
        Verb::List(ListArguments { operator, root, shape }) => {
            let locks = shape.apply(quorate).operator_locks(&operator, root.as_deref());
            show(locks.map(Outcome::from), OperatorLocks::doc, terminal)
        }
    }
}

/// List the locked traits of an operator: a playbook that violates one is neither accepted nor woven
///
/// These are the built-in ones, those of quorate.toml, and those of the operator and its persona, each with its meaning and
/// its number of words and phrases; --format json has the words.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  quorate locks list alice\n  quorate locks list alice --format json")]
struct ListArguments {
    /// The operator: its folder's name in operators/, or a ws:// ref
    #[arg(value_name = "OPERATOR")]
    operator: String,
    /// The workspace, or the tenant's folder in it
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    #[command(flatten)]
    shape: OutputArguments,
}

/// Test a text against the locked traits of an assembly, and show each hit with its place and method
///
/// For each hit it shows how far the text had to be normalized for the trait to match: `as-given` not at all, `folded`,
/// `unmarked`, `skeleton` and `set-apart` more and more, `regex` and `regex-folded` by a pattern. Nothing is recorded.
///
/// With --meaning, the executor of `[meaning]` or the `[embedder]` of quorate.toml compares the text with each trait, and each
/// score is shown. Given files of examples, lines such as `{"text": "Release it today.", "violates": true}`, it shows the scores
/// with their labels, the wrong decisions at the threshold in use, and the threshold with the fewest. The texts are sent to the model,
/// so the workspace needs trust.
///
/// Exits with 0 with or without hits, with 4 if the assembly or the text is missing, and with 5 if one of them is
/// unusable or a text cannot be compared.
#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("material").required(true).args(["text", "file", "examples"])),
    after_help = "Examples:\n  quorate locks test ASSEMBLY.md --text 'Drop the warmth.'\n  quorate locks test operators/lead --file draft.md\n  git show HEAD:draft.md | quorate locks test ASSEMBLY.md --file - --format json\n  quorate locks test ASSEMBLY.md --meaning --text 'Release it today.'\n  quorate locks test ASSEMBLY.md --meaning examples.jsonl"
)]
struct TestArguments {
    /// The ASSEMBLY.md, its directory, or the name of its directory in assemblies/
    #[arg(value_name = "ASSEMBLY.md")]
    path: PathBuf,
    /// The text
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// The file with the text; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Compare by meaning, and show scores
    #[arg(long)]
    meaning: bool,
    /// Files of examples, a JSON object a line with `text` and `violates`
    #[arg(value_name = "EXAMPLES", requires = "meaning")]
    examples: Vec<PathBuf>,
    /// The assembly's workspace
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
    format: HumanOrJson,
}

fn run_test(arguments: TestArguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    let text = draft(arguments.text, arguments.file);
    let request = LockTestRequest { assembly: arguments.path, root: arguments.root, text };
    let tested = quorate.test_locks(request)?;
    warn_people(&tested.warnings, terminal);
    show(Ok(tested.into()), LockTest::doc, terminal)
}

async fn run_meaning(arguments: TestArguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    let TestArguments { path, text, file, examples, root, .. } = arguments;
    let texts = match examples.is_empty() {
        true => TextsToScore::One(draft(text, file)),
        false => TextsToScore::Examples(examples),
    };
    let tested = quorate.test_meaning(MeaningTestRequest { assembly: path, root, texts }).await?;
    warn_people(&tested.warnings, terminal);
    let has_failed = tested.failure.is_some();
    let shown = show(Ok(tested.into()), MeaningTest::doc, terminal)?;
    Ok(if has_failed { Exit::UNUSABLE } else { shown })
}

/// Prints warnings that the JSON of an outcome contains.
fn warn_people(warnings: &Report, terminal: &Terminal) {
    if terminal.format == Format::Human {
        warn(warnings, terminal);
    }
}

fn draft(text: Option<String>, file: Option<PathBuf>) -> Draft {
    match (text, file) {
        (Some(text), _) => Draft::Text { name: "text".to_owned(), text },
        (None, Some(file)) if file != Path::new("-") => Draft::File(file),
        (None, _) => Draft::from("-"),
    }
}
