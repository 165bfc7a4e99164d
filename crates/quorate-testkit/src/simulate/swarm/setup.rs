//! What a seed decides before the first step: who takes part, what people say and when, what fails and who dies.

use quorate_kernel::ports::substrate::Keeps;
use quorate_kernel::turn::Policy;
use quorate_protocol::Name;

use crate::rng::Rng;

/// The names that manifests draw from. None is the beginning of another.
const NAMES: [&str; 8] = ["ana", "bo", "cy", "dee", "eli", "fay", "gus", "hal"];

/// Whoever is mentioned by this is nobody.
pub(super) const NOBODY: &str = "@zed";
/// A dispatcher that meets this in a trigger fails.
pub(super) const BREAKS: &str = "!breaks";

/// A simulation, as its seed has it.
pub(super) struct Setup {
    pub(super) seed: u64,
    /// What the substrate keeps.
    pub(super) keeps: Keeps,
    /// Who runs over the conversation.
    pub(super) manifests: Vec<Manifest>,
    /// What is there when the first process starts.
    pub(super) before: Vec<Message>,
    /// What people say, each after a pause.
    pub(super) people: Vec<Vec<Message>>,
    /// How many steps of a hundred fail.
    pub(super) failure_percent: u64,
    pub(super) failures: usize,
    /// The longest that a step takes, in milliseconds.
    pub(super) slowest_ms: u64,
}

#[derive(Debug)]
pub(super) struct Manifest {
    pub(super) id: Name,
    pub(super) roster: Vec<Name>,
    pub(super) policy: Policy,
    pub(super) dispatch: Dispatch,
    /// How many processes run it at once.
    pub(super) processes: usize,
    /// Whether they record in one ledger.
    pub(super) one_ledger: bool,
    /// Whether a process ends when there is nothing to do, and is started again; else it waits.
    pub(super) comes_and_goes: bool,
    /// Whether a process goes on after trouble with the substrate; else it ends, and is started again.
    pub(super) patient: bool,
    /// How many processes die, and how many are interrupted.
    pub(super) deaths: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dispatch {
    Mention,
    /// Everybody in turn, once round after a person's turn.
    RoundRobin,
    /// Whoever chance names after a person's turn, somebody else at each call.
    Random,
}

/// Something that somebody says.
pub(super) struct Message {
    /// After this pause, in milliseconds.
    pub(super) after_ms: u64,
    pub(super) by: Name,
    pub(super) text: String,
}

impl Setup {
    pub(super) fn new(seed: u64) -> Setup {
        let mut chance = Rng::from_seed_and_name(seed, "swarm");
        let chance = &mut chance;
        let keeps = if chance.percent(20) { Keeps::Turns } else { Keeps::Stamps };
        let two = keeps == Keeps::Stamps && chance.percent(35);
        let shared = two && chance.percent(30);
        let size = |chance: &mut Rng| 1 + at_most(chance, 3);
        let (first, second) = (size(chance), size(chance));
        let from = if shared { first - 1 } else { first };
        let mut manifests = vec![manifest(chance, "one", &NAMES[..first], keeps)];
        if two {
            manifests.push(manifest(chance, "two", &NAMES[from..from + second], keeps));
        }
        if shared {
            // Whom one of them would ask and the other would not could be asked by either.
            let (policy, dispatch) = (manifests[0].policy, Dispatch::Mention);
            for one in &mut manifests {
                (one.policy, one.dispatch) = (policy, dispatch);
            }
        }
        let names: Vec<Name> = manifests.iter().flat_map(|one| one.roster.clone()).collect();
        let many = chance.percent(3);
        let before = if many { 100 + at_most(chance, 160) } else { at_most(chance, 4) };
        let before =
            (0..before).map(|at| saying(chance, &names, &format!("b{at}"), if many { 4 } else { 50 }));
        let before = before.collect();
        let people = (0..1 + at_most(chance, 2)).map(|writer| {
            let says = 1 + at_most(chance, 5);
            (0..says).map(|at| saying(chance, &names, &format!("h{writer}.{at}"), 85)).collect()
        });
        let people = people.collect();
        let failure_percent = [0, 2, 8, 20][at_most(chance, 3)];
        Setup {
            seed,
            keeps,
            manifests,
            before,
            people,
            failure_percent,
            failures: 5 + at_most(chance, 60),
            slowest_ms: [0, 20, 400][at_most(chance, 2)],
        }
    }

    /// Everybody who takes part in a manifest.
    pub(super) fn names(&self) -> impl Iterator<Item = &Name> {
        self.manifests.iter().flat_map(|one| &one.roster)
    }
}

impl Manifest {
    /// Whether one process at most runs it at any time.
    pub(super) fn is_single_process(&self) -> bool {
        self.processes == 1
    }
}

fn manifest(chance: &mut Rng, id: &str, roster: &[&str], keeps: Keeps) -> Manifest {
    let dispatch = match chance.below(100) {
        0..70 => Dispatch::Mention,
        70..88 => Dispatch::RoundRobin,
        _ => Dispatch::Random,
    };
    let may_be_two = keeps == Keeps::Stamps && dispatch != Dispatch::Random;
    Manifest {
        id: id.into(),
        roster: roster.iter().map(|name| Name::from(*name)).collect(),
        policy: Policy {
            reentry: chance.percent(25),
            max_agent_turns: [1, 2, 3, 5, 8, 20][at_most(chance, 5)],
            window: [0, 1, 2, 5, 30][at_most(chance, 4)],
        },
        dispatch,
        processes: 1 + usize::from(may_be_two && chance.percent(25)),
        one_ledger: chance.percent(50),
        comes_and_goes: chance.percent(40),
        patient: chance.percent(60),
        deaths: [0, 0, 2, 8][at_most(chance, 3)],
    }
}

/// Somebody says something that mentions somebody, so many times in a hundred.
fn saying(chance: &mut Rng, names: &[Name], text: &str, mentions: u64) -> Message {
    let mut text = text.to_owned();
    if chance.percent(mentions) {
        for _ in 0..=at_most(chance, 2) {
            text.push_str(&format!(" @{}", pick(chance, names)));
        }
    }
    if chance.percent(5) {
        text.push_str(&format!(" {NOBODY}"));
    }
    if chance.percent(4) {
        text.push_str(&format!(" {BREAKS}"));
    }
    // `--as` takes any id.
    let by = if chance.percent(8) { pick(chance, names) } else { "user".into() };
    Message { after_ms: chance.below(6_000), by, text }
}

pub(super) fn pick(chance: &mut Rng, names: &[Name]) -> Name {
    names[at_most(chance, names.len() - 1)].clone()
}

/// A number from 0 to this one.
pub(super) fn at_most(chance: &mut Rng, most: usize) -> usize {
    usize::try_from(chance.below(most as u64 + 1)).unwrap_or(0)
}
