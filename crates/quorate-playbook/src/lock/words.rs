//! The English that direction is read from: what negates, what diminishes, what keeps, and what divides clauses.
//!
//! Lists are divided by commas. Verbs stand in their base form; the grammar makes the others.

use super::grammar::ModifierKind;

/// Words and sequences that act on a trait's word, by what they do.
pub(super) const MODIFIERS: &[(ModifierKind, &str)] = &[
    (
        ModifierKind::Neutral,
        "not only, not just, not merely, not simply, not solely, not necessarily, not enough, not sure,
         not limited to, not wrong,
         not bad, not forbidden to, nothing wrong, no harm in, no shame in, why not, no matter, no doubt,
         no more than, not more than, no less than,
         no fewer than, no later than, not least, nothing but, whether or not, if not, or not,
         more often than not,
         less is more, other than, more or less, less than, nothing less, no wonder, no problem, no idea,
         no exception,
         no exceptions, do not worry and, hand over, take over, carry over, start over, all over,
         over and over, over time, over there,
         cut off, cut corners, cut and paste, save as, drop down, drop off, stop by, limit of, change of,
         leave open, no and, no or, never mind",
    ),
    (
        ModifierKind::Negator,
        "not, never, shant, aint, neither, nobody, none, nothing, hardly, rarely, seldom, barely, scarcely,
         no need, no longer, no reason, no point, no use, no room, no obligation, no duty, no excuse,
         no time, no one, no call, no justification,
         by no means, under no circumstances, in no way, at no time, no case, no cause, no right,
         nor should, no business",
    ),
    (
        ModifierKind::Determiner,
        "no, zero, less, fewer, devoid of, free of, free from, short on, low on, lacking, void of,
         little in the way of, empty of, nil",
    ),
    (
        ModifierKind::Preposition,
        "without, instead of, in place of, rather than, in lieu of, at expense of, at cost of, at price of,
         not being, minus, sans, anything but,
         to the exclusion of, to exclusion of, out of, not out of, to detriment of, as opposed to,
         where others use, as a substitute for, regardless of, irrespective of",
    ),
    (
        ModifierKind::Comparison,
        "over, above, ahead of, before, than, beat, beats, outweigh, outweighs, trump, trumps, outrank,
         outranks, precede, precedes, come before, comes before, more than",
    ),
    (
        ModifierKind::Verb,
        "skip, drop, omit, avoid, cut, cut out, cut down, ditch, lose, abandon, forgo, forego, stop, quit,
         cease, ignore, disregard, forget,
         forget about, neglect, overlook, suppress, disable, deactivate, override, overrule, suspend,
         relax, loosen, lower, reduce,
         minimise, minimize, weaken, waive, bypass, circumvent, evade, sidestep, dodge, discard, remove,
         delete, eliminate, erase, strip,
         shed, sacrifice, compromise, trade, swap, replace, change, alter, rewrite, redefine, withdraw,
         refuse, decline, reject,
         hold back, leave out, leave aside, leave behind, leave off, set aside, put aside, lay aside,
         push aside, cast aside, throw out,
         throw away, throw overboard, do away with, get rid of, dispense with, tone down, dial down,
         dial back, scale back, water down, ease off,
         ease up on, go easy on, go light on, hold off on, refrain, refrain from, abstain, abstain from,
         shy away, shy away from, steer clear of, stay away from,
         keep away from, move past, skimp, skimp on, cut back, cut back on, cut down on, give up,
         let go of, turn off, switch off, shut off,
         turn down, work around, get around, go around, go without, do without, pay no attention to, save,
         spare, hate, dislike, despise, resent, fail,
         hesitate, downplay, play down, dismiss, devalue, mute, silence, park, pause, postpone, shelve,
         undermine, violate, break, curb,
         ration, defy, prevent, forbid, ban, prohibit, lack, outgrow, betray, cost, step outside,
         step beyond, go beyond, put off,
         defer, abolish, banish, exclude, resist, decrease, diminish, dilute, degrade, tire of, mistrust,
         subordinate, trim, tune out, rule out,
         cancel, revoke, unlearn, put on hold, part with, depart from, deviate from, stray from,
         be sparing with, be stingy with, talk you out of",
    ),
    (
        ModifierKind::SeparableVerb,
        "leave, set, put, turn, switch, dial, tone, throw, lay, push, cast, shut, scale, hold, give, check,
         dial, take, bring, tune, crank, keep",
    ),
    (
        ModifierKind::Particle,
        "aside, out, off, down, away, back, on hold, behind, at door, to one side, on ice, on shelf,
         on back burner, to others, to sales team,
         to other team, to humans, to colleague, out of it, overboard, to yourself, to minimum, at minimum,
         to bare minimum, at bay, in check, to zero, in drawer,
         at home, in box, last, in last place",
    ),
    (
        ModifierKind::NegativePredicate,
        "irrelevant, optional, unnecessary, needless, pointless, useless, superfluous, redundant,
         dispensable, expendable, negotiable,
         secondary, tertiary, overrated, undesirable, unwelcome, unwanted, inappropriate, undesired,
         forbidden, prohibited, banned, off limits,
         off table, unimportant, immaterial, meaningless, worthless, wasted, weakness, liability, handicap,
         luxury, waste, distraction, nuisance,
         noise, burden, hindrance, obstacle, mistake, flaw, advisory, suggestion, nice to have, obsolete,
         outdated, overkill, void, off, disabled,
         suspended, inactive, on hold, out of place, out of scope, out of question, beside point, wrong,
         unacceptable, impermissible, disallowed,
         thing of past, unneeded, unprofessional, counterproductive, inefficient, childish, silly,
         for amateurs, for weak, up for discussion, relaxed,
         none of your business, excessive, extra, fluff, filler, ballast, dead weight, last,
         sign of weakness, naive, outmoded, a joke, bad idea,
         unhelpful, unproductive, against policy, against rules, intolerable, taboo, harmful, dangerous,
         negligible, minor, low priority, unwise, fault,
         improper, whatever, flexible, elastic, soft, loose, open to interpretation, someone else's job,
         not your job",
    ),
    (
        ModifierKind::NegativeVerb,
        "can wait, can go, may go, must go, has to go, have to go, should go, may wait, takes back seat,
         take back seat, taking back seat, comes second, come second,
         takes second place, take second place, comes last, come last, comes after, come after,
         gets in way, get in way, getting in way, gets you nowhere, get you nowhere,
         slows things, slow things, slows us, slow us, slows you, slow you, slows everything, wastes,
         wastes time, waste time, costs time, cost time, costs us, cost us,
         belongs elsewhere, gives way, give way, yields to, yield to, out of window, annoys, annoy,
         irritates, irritate, bores, bore, backfires, backfire,
         has no place, have no place, had no place, has no bearing, have no bearing, has no value,
         have no value, has no role, have no role, is for others,
         is for weak, stay out, stays out, ends here, end here, stops here, stop here, leads nowhere,
         lead nowhere, hurts sales, does more harm",
    ),
    (
        ModifierKind::PositivePredicate,
        "needed, necessary, required, important, essential, mandatory, appropriate, wanted, useful, worth,
         priority, goal,
         expected, called for, allowed, permitted, acceptable, fine, okay, ok, option, relevant, desirable,
         desired, valued, your job, your concern,
         your business, matter, matters, count, counts, apply, applies, belong, belongs, help, helps, pay,
         pays, pay off, binding, absolute, set in stone,
         sacred, part of, in force, in effect, in demand, on menu, a must, for you, point, right,
         good idea, excusable, justified, tolerated, tolerable, ever acceptable",
    ),
    (
        ModifierKind::Switch,
        "off, none, no, zero, 0, false, never, disabled, minimal, low, optional, out, nil, null,
         skip, omit, drop, inactive, cold",
    ),
    (
        ModifierKind::Keeper,
        "keep, stay, remain, preserve, maintain, retain, protect, uphold, guard, honour, honor, respect,
         sustain, ensure, guarantee,
         embrace, hold on to, stick to, stick with, adhere to, stand by, always, live up to",
    ),
];

/// Words that may begin a clause of their own after `and` or a comma.
pub(super) const STARTERS: &str = "
    be, is, use, ask, offer, say, tell, give, show, add, write, answer, reply, respond, check, send, make,
    let, put, lead, start, open, close,
    end, then, instead, so, you, we, they, it, he, she, i, please, always, never, dont, explain, thank,
    greet, apologise, apologize,
    acknowledge, admit, state, quote, link, cite, name, note, mention, propose, suggest, recommend,
    summarise, summarize, confirm, report,
    escalate, forward, hand, help, prefer, favour, favor, prioritise, prioritize, choose, pick, take,
    bring, speak, talk, sound, act,
    listen, wait, remember, try, focus, follow, finish, return, point, move, go, get, do, call, treat,
    welcome, invite, include, provide,
    lower, mark, build, warm, promise, verify, share, sign, assume, expect, look, read, show, express, put,
    politely, kindly, warmly, gently,
    honestly, there, this, that, these, those, nothing, nobody, everyone, everybody, only, just, even, if,
    when, while, because, as, since,
    who, which, what, however, still, yet, otherwise, also, afterwards, later, first, second, third,
    finally, must, may, can, should";

/// Words that begin a subordinate clause.
pub(super) const SUBORDINATES: &str = "
    if, when, whenever, while, because, unless, until, since, although, though, where, wherever, before,
    after, once, what, why, how, whereas, till, even";

/// Words that are no content of their own.
pub(super) const FUNCTIONS: &str = "
    the, a, an, to, be, being, been, is, are, was, were, of, in, for, with, your, our, their, its, his,
    her, my, this, that, these, those, any, all, every,
    each, such, too, so, very, ever, even, just, really, simply, only, also, have, has, had, having, do,
    does, did, doing, need, needs, must, should, can,
    could, may, might, will, would, shall, you, we, they, i, it, he, she, them, him, us, me, about, on, at,
    by, from, as, like, try, trying,
    tries, want, please, make, sure, and, or, nor, both, either, if, there, here, then, more, most, much,
    many, some, little, bit, quite, somewhat, fairly,
    out, up, yourself, ought, used, let, lets, sound, sounding, feel, feeling, act, acting, appear, seem,
    show, showing, unnecessary, needless, other, usual,
    overly, always, any, anything, everything, therefore, thus, sounds, resembles, resembling, kind, sort,
    form, trace, hint, touch, kinds, sorts, forms,
    traces, own, again, ok, say, bother, bothering, waste, time, worry, worrying, think, expect, spend,
    take, care, attempt, attempts, think, believe, assume, mind, part,
    parts, exceed, display, displaying, express, expressing, permit, allow, allowed, using, use, offer,
    offering, give, giving, provide, providing";

/// Words that a sequence is found across: `be a bit cold`.
pub(super) const FILLERS: &str = "
    the, a, an, your, our, their, his, her, its, my, any, some, very, really, bit, little, quite, so, more,
    rather, somewhat, just, simply,
    slightly, fairly, too, all, such, completely, totally, entirely, utterly, extremely, pretty, as,
    openly, quietly, gladly, slowly, merely, usual, whole,
    even, ever, actually, deliberately, perfectly, always, again, that, strictly, truly, longer, these,
    this, known, ok, also, flatly, right, only, fully, no-op, small, tiny";

/// After these a sentence does not end, whatever stands there.
pub(super) const CONTINUING: &str =
    "the, a, an, your, our, their, its, my, any, every, of, to, without, all, be";

/// Forms of `to be` and what stands in its place.
pub(super) const COPULAS: &str = "
    is, are, was, were, be, been, being, become, becomes, became, seem, seems, get, gets, got, considered,
    deemed, treated, as, isnt, arent, wasnt, werent, feel, feels,
    ok, count, counts, turn, turns, becoming, getting, called, labelled, stay, stays, remain, remains";

/// Those a text talks about; what it says of them is no advice.
pub(super) const THIRD_PARTIES: &str = "
    user, users, customer, customers, caller, callers, client, clients, they, he, she, somebody, someone,
    person, people, anybody, anyone, visitor, member, guest, guests,
    page, answer, reply, sender, author, partner, vendor, supplier";

/// What others do before they get something, with a `to` that follows: `asks you to skip the greeting`.
pub(super) const ASK: &str = "ask, asks, asked, want, wants, tell, tells, request, requests, demand,
    demands, beg, begs, try, tries, invite, invites, urge, urges";

/// What points at the lines that follow, and is no object of its own.
pub(super) const POINTERS: &str = "following, follows, below, listed";

/// What else does, where the line has nothing else.
pub(super) const POINTED_AT: &str = "list, items, points, entries, things, next, topics, elements";

/// Nouns that a `to` belongs to, so that it does not begin a purpose: `drop the attempt to be warm`.
pub(super) const NOUNS_TO: &str = "
    attempt, attempts, effort, efforts, urge, need, duty, habit, temptation, promise, obligation, pressure,
    requirement, instinct, tendency, desire,
    wish, rule, reflex, impulse, trying, supposed, expected, required, obliged, bound, asked, told, have,
    want, ought, commitment, instructions, instruction, reason, going,
    try, tries, hesitate, fail, failing, fails, refuse, forget, forgetting, neglect, neglecting, not,
    right, time, way, chance, afraid, used, allowed, permitted, how";

/// Forms that no rule makes: base, then the others; a form in `-ing` is one of the present.
pub(super) const IRREGULAR: &[(&str, &str)] = &[
    ("be", "being"),
    ("lie", "lying, lied, lies"),
    ("make", "making, made"),
    ("tell", "told"),
    ("hide", "hid, hidden, hiding"),
    ("bend", "bent"),
    ("leave", "left, leaving"),
    ("lose", "lost, losing"),
    ("forget", "forgot, forgotten, forgetting"),
    ("keep", "kept"),
    ("withhold", "withheld"),
    ("throw", "threw, thrown"),
    ("give", "gave, given, giving"),
    ("forbid", "forbade, forbidden"),
    ("override", "overrode, overridden, overriding"),
    ("break", "broke, broken"),
    ("forgo", "forgone"),
    ("withdraw", "withdrew, withdrawn"),
    ("hold", "held"),
    ("get", "got, getting"),
    ("take", "took, taken"),
    ("swear", "swore, sworn"),
    ("speak", "spoke, spoken"),
    ("write", "wrote, written"),
    ("lay", "laid"),
    ("mislead", "misled"),
    ("rewrite", "rewrote, rewritten"),
    ("do", "doing, did, done"),
    ("go", "going, went, gone"),
    ("pay", "paid"),
    ("say", "said"),
    ("build", "built"),
];

/// What may stand for the `be` of a phrase.
pub(super) const BE_FORMS: &str = "be, being, sound, sounding, act, acting, stay, staying, remain, remaining,
    become, becoming, appear, appearing, seem, seeming, turn, turning, behave, write, writing";
