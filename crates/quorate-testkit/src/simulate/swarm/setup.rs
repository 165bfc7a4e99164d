//! What a seed determines before the first step: participants, people's messages, failures and crashes.

use quorate_kernel::ports::substrate::Keeps;
use quorate_kernel::turn::Policy;
use quorate_protocol::Name;

use crate::rng::Rng;

/// The names of participants. None is a prefix of another.
const NAMES: [&str; 8] = ["ana", "bo", "cy", "dee", "eli", "fay", "gus", "hal"];

/// A mention of no participant.
pub(super) const UNKNOWN_MENTION: &str = "@zed";
/// A trigger with this text makes a dispatcher fail.
pub(super) const BREAKS: &str = "!breaks";

/// The setup of a simulation.
pub(super) struct Setup {
    pub(super) seed: u64,
    pub(super) keeps: Keeps,
    /// The manifests that run over the conversation.
    pub(super) manifests: Vec<Manifest>,
    /// Messages before the first process starts.
    pub(super) before: Vec<Message>,
    /// Messages of people, each after a pause.
    pub(super) people: Vec<Vec<Message>>,
    /// The percentage of steps that fail.
    pub(super) failure_percent: u64,
    /// Whether steps fail at all, at random or by plan.
    pub(super) may_fail: bool,
    pub(super) failures: usize,
    /// The longest step, in milliseconds.
    pub(super) slowest_ms: u64,
}

#[derive(Debug)]
pub(super) struct Manifest {
    pub(super) id: Name,
    pub(super) roster: Vec<Name>,
    pub(super) policy: Policy,
    pub(super) dispatch: Dispatch,
    /// Whether the dispatcher asks an executor for each decision.
    pub(super) asks: bool,
    /// The number of concurrent processes.
    pub(super) processes: usize,
    /// Whether they share one ledger.
    pub(super) one_ledger: bool,
    /// Whether a process ends when idle, and is started again; else it waits.
    pub(super) comes_and_goes: bool,
    /// Whether a process continues after a failure of the substrate; else it ends, and is started again.
    pub(super) patient: bool,
    /// The number of crashes and interruptions.
    pub(super) deaths: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dispatch {
    Mention,
    /// All participants in turn, one round after a person's turn.
    RoundRobin,
    /// A random participant after a person's turn, another one at each call.
    Random,
}

pub(super) struct Message {
    /// The pause before it, in milliseconds.
    pub(super) after_ms: u64,
    pub(super) by: Name,
    pub(super) text: String,
}

impl Setup {
    pub(super) fn new(seed: u64) -> Setup {
        let mut rng = Rng::from_seed_and_name(seed, "swarm");
        let rng = &mut rng;
        let keeps = if rng.percent(20) { Keeps::Turns } else { Keeps::Stamps };
        let two = keeps == Keeps::Stamps && rng.percent(35);
        let shared = two && rng.percent(30);
        let size = |rng: &mut Rng| 1 + at_most(rng, 3);
        let (first, second) = (size(rng), size(rng));
        let start = if shared { first - 1 } else { first };
        let mut manifests = vec![manifest(rng, "one", &NAMES[..first], keeps)];
        if two {
            manifests.push(manifest(rng, "two", &NAMES[start..start + second], keeps));
        }
        if shared {
            // A participant of both manifests could be asked by either, so both must select alike.
            let (policy, dispatch) = (manifests[0].policy, Dispatch::Mention);
            for manifest_entry in &mut manifests {
                (manifest_entry.policy, manifest_entry.dispatch) = (policy, dispatch);
            }
        }
        let names: Vec<Name> =
            manifests.iter().flat_map(|manifest_entry| manifest_entry.roster.clone()).collect();
        let many = rng.percent(3);
        let before = if many { 100 + at_most(rng, 160) } else { at_most(rng, 4) };
        let before = (0..before).map(|at| saying(rng, &names, &format!("b{at}"), if many { 4 } else { 50 }));
        let before = before.collect();
        let people = (0..1 + at_most(rng, 2)).map(|writer| {
            let says = 1 + at_most(rng, 5);
            (0..says).map(|at| saying(rng, &names, &format!("h{writer}.{at}"), 85)).collect()
        });
        let people = people.collect();
        let failure_percent = [0, 2, 8, 20][at_most(rng, 3)];
        Setup {
            seed,
            keeps,
            manifests,
            before,
            people,
            failure_percent,
            may_fail: failure_percent > 0,
            failures: 5 + at_most(rng, 60),
            slowest_ms: [0, 20, 400][at_most(rng, 2)],
        }
    }

    /// A short conversation of one process, undisturbed except by plan.
    pub(super) fn brief(seed: u64) -> Setup {
        let mut setup = Setup::new(seed);
        setup.manifests.truncate(1);
        for manifest in &mut setup.manifests {
            (manifest.processes, manifest.deaths, manifest.asks) = (1, 0, seed.is_multiple_of(2));
        }
        setup.keeps = if seed.is_multiple_of(3) { Keeps::Turns } else { Keeps::Stamps };
        setup.before.truncate(3);
        setup.people.truncate(1);
        setup.people.iter_mut().for_each(|messages| messages.truncate(3));
        (setup.failure_percent, setup.may_fail) = (0, true);
        setup
    }

    /// The participants of all manifests.
    pub(super) fn names(&self) -> impl Iterator<Item = &Name> {
        self.manifests.iter().flat_map(|manifest| &manifest.roster)
    }
}

impl Manifest {
    /// Whether at most one process runs it at any time.
    pub(super) fn is_single_process(&self) -> bool {
        self.processes == 1
    }
}

fn manifest(rng: &mut Rng, id: &str, roster: &[&str], keeps: Keeps) -> Manifest {
    let dispatch = match rng.below(100) {
        0..70 => Dispatch::Mention,
        70..88 => Dispatch::RoundRobin,
        _ => Dispatch::Random,
    };
    let may_be_two = keeps == Keeps::Stamps && dispatch != Dispatch::Random;
    Manifest {
        id: id.into(),
        roster: roster.iter().map(|name| Name::from(*name)).collect(),
        policy: Policy {
            reentry: rng.percent(25),
            max_agent_turns: [1, 2, 3, 5, 8, 20][at_most(rng, 5)],
            window: [0, 1, 2, 5, 30][at_most(rng, 4)],
        },
        dispatch,
        asks: rng.percent(25),
        processes: 1 + usize::from(may_be_two && rng.percent(25)),
        one_ledger: rng.percent(50),
        comes_and_goes: rng.percent(40),
        patient: rng.percent(60),
        deaths: [0, 0, 2, 8][at_most(rng, 3)],
    }
}

/// A message that mentions a participant in `mentions` percent of cases.
fn saying(rng: &mut Rng, names: &[Name], text: &str, mentions: u64) -> Message {
    let mut text = text.to_owned();
    if rng.percent(mentions) {
        for _ in 0..=at_most(rng, 2) {
            text.push_str(&format!(" @{}", pick(rng, names)));
        }
    }
    if rng.percent(5) {
        text.push_str(&format!(" {UNKNOWN_MENTION}"));
    }
    if rng.percent(4) {
        text.push_str(&format!(" {BREAKS}"));
    }
    // `--as` takes any id.
    let author = if rng.percent(8) { pick(rng, names) } else { "user".into() };
    Message { after_ms: rng.below(6_000), by: author, text }
}

pub(super) fn pick(rng: &mut Rng, names: &[Name]) -> Name {
    names[at_most(rng, names.len() - 1)].clone()
}

/// A number from 0 to `most`.
pub(super) fn at_most(rng: &mut Rng, most: usize) -> usize {
    usize::try_from(rng.below(most as u64 + 1)).unwrap_or(0)
}
