#!/usr/bin/env python3
"""Verifies the output of `quorate ledger export --format jsonl`, `quorate ledger prove` and `quorate report`, without Quorate.

Written from docs/ledger-export.md alone: the Python standard library, and `cryptography` for Ed25519.

    verify_ledger.py EXPORT [--key KEY]... [--signer PUBLIC]...
    verify_ledger.py --proof PROOF [--key KEY]... [--signer PUBLIC]...

KEY is a verifier's line (`name+hash+key`), a public key (`quorate:ed25519:public:...`) or a file of these, one a line.
It must come from another source than the verified file. Of a report it verifies the proof and the texts in it, and not the
page around them: `quorate ledger check-proof` compares that. Exit: 0 valid, 1 invalid, 2 unusable input.
"""

import argparse
import base64
import binascii
import contextlib
import datetime
import decimal
import hashlib
import io
import json
import math
import os
import re
import stat
import sys

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
except ImportError:
    print("verify_ledger: needs the package cryptography (Debian: python3-cryptography)", file=sys.stderr)
    sys.exit(2)

EXACT = 2**53
MAX_LINE = 64 << 20
MAX_NOTE = 1 << 20
MAX_SIGNATURES = 100
MAX_DEPTH = 127
PAYLOAD_TYPE = "application/vnd.quorate.record-leaf.v1"
VOUCHER_TYPE = "application/vnd.quorate.key-voucher.v1"
PUBLIC = "quorate:ed25519:public:"
# The stream of records about the ledger itself.
STREAM = "ledger"
HASH = re.compile(r"[0-9a-f]{64}")
REPORT = "<!doctype html>"
EMBEDDED = re.compile(r'<script type="application/octet-stream" id="proof">([^<]*)</script>')
EMBEDDED_TEXT = re.compile(r'<script type="application/octet-stream" class="text" data-input="(\d+)">([^<]*)</script>')
RUN = re.compile(r"r[0-9a-hjkmnp-tv-z]{12}")
KEY_ID = re.compile(r"[0-9a-f]{32}")
TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)\.(\d{3})Z", re.ASCII)
# Encodings of the points of small order, without the sign: with these keys one signature is valid for many messages.
SMALL = {
    bytes.fromhex(text)
    for text in [
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    ]
}


class Flaw(Exception):
    """A check failed."""


class Unreadable(Exception):
    """The input is unusable."""


def need(holds, what):
    if not holds:
        raise Flaw(what)


@contextlib.contextmanager
def reading(what):
    """Turns a failed check into unusable input: the input is no document of this kind."""
    try:
        yield
    except Flaw as flaw:
        raise Unreadable(f"{what}: {flaw}") from None
    except UnicodeError:
        raise Unreadable(f"{what}: it is not UTF-8") from None


# Canonical JSON (RFC 8785).


def integer(text):
    value = int(text)
    return value if abs(value) <= EXACT else float(value)


def constant(text):
    raise ValueError(f"{text} is no JSON")


def pairs(items):
    one = dict(items)
    if len(one) != len(items):
        raise ValueError("a key stands twice")
    return one


def number(value):
    if isinstance(value, int):
        return str(value)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    if value == 0:
        return "0"
    sign, digits, exponent = decimal.Decimal(repr(value)).normalize().as_tuple()
    digits = "".join(map(str, digits))
    length, point = len(digits), len(digits) + exponent
    if length <= point <= 21:
        text = digits + "0" * (point - length)
    elif 0 < point <= 21:
        text = digits[:point] + "." + digits[point:]
    elif -6 < point <= 0:
        text = "0." + "0" * -point + digits
    else:
        power = f"{point - 1:+d}"
        text = digits[0] + ("." + digits[1:] if length > 1 else "") + "e" + power
    return "-" * sign + text


def canonical(value, depth=0):
    if value is None or value is True or value is False:
        return json.dumps(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, (int, float)):
        return number(value)
    if depth == MAX_DEPTH:
        raise ValueError("it is nested too deeply")
    if isinstance(value, list):
        return "[" + ",".join(canonical(one, depth + 1) for one in value) + "]"
    keys = sorted(value, key=lambda key: key.encode("utf-16-be"))
    parts = (json.dumps(key, ensure_ascii=False) + ":" + canonical(value[key], depth + 1) for key in keys)
    return "{" + ",".join(parts) + "}"


def parse(text, what):
    """Parses canonical JSON."""
    try:
        value = json.loads(text, parse_int=integer, parse_constant=constant, object_pairs_hook=pairs)
        same = canonical(value).encode() == text.encode()
    except (ValueError, OverflowError, RecursionError) as error:
        raise Flaw(f"{what} is no JSON: {error}") from None
    need(same, f"{what} is not canonical JSON")
    return value


def fields(value, types, what):
    """The fields of an object that must have exactly these."""
    need(type(value) is dict and value.keys() == types.keys(), f"{what} has other fields than it should")
    for key, kinds in types.items():
        one = value[key]
        need(type(one) in kinds and (type(one) is not int or one >= 0), f"`{key}` of {what} is of another type")
    return [value[key] for key in types]


def texts(values, what):
    need(all(type(one) is str for one in values), f"{what} has what is no text")
    return values


NONE = type(None)
TEXT, SOME_TEXT, COUNT, LIST = (str,), (str, NONE), (int,), (list,)
ENVELOPE = {"payload": TEXT, "payloadType": TEXT, "signatures": LIST}
SIGNATURE = {"keyid": TEXT, "sig": TEXT}


# The Merkle tree (RFC 9162, section 2.1).


def sha256(data):
    return hashlib.sha256(data).digest()


def leaf_of(head):
    return sha256(b"\0" + head)


def node(left, right):
    return sha256(b"\1" + left + right)


def hash_of(text, what):
    need(type(text) is str and HASH.fullmatch(text), f"{what} is no hash")
    return bytes.fromhex(text)


def path_of(values):
    return [hash_of(one, "a hash of a path") for one in values]


def inclusion(leaf, index, size, path, root):
    need(0 <= index < size, f"a tree of {size} leaves has no leaf {index}")
    at, last, hashed = index, size - 1, leaf
    for other in path:
        need(last > 0, "the path is too long")
        if at & 1 or at == last:
            hashed = node(other, hashed)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            hashed = node(hashed, other)
        at, last = at >> 1, last >> 1
    need(last == 0, "the path is too short")
    need(hashed == root, "it is not in the tree: the path leads to another root")


def consistency(old, old_root, new, new_root, path):
    need(0 < old <= new, "the smaller tree is no prefix")
    if old == new:
        need(not path and old_root == new_root, "the same size has another root")
        return
    if old & (old - 1) == 0:
        path = [old_root] + path
    need(path, "the consistency proof is empty")
    at, last = old - 1, new - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    older = newer = path[0]
    for other in path[1:]:
        need(last > 0, "the consistency proof is too long")
        if at & 1 or at == last:
            older, newer = node(other, older), node(other, newer)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            newer = node(newer, other)
        at, last = at >> 1, last >> 1
    need(last == 0, "the consistency proof is too short")
    need(older == old_root and newer == new_root, "the consistency proof leads to another root")


class Frontier:
    """Computes the root of leaves that are added one by one."""

    def __init__(self):
        self.size, self.peaks = 0, []

    def push(self, leaf):
        at = self.size
        while at & 1:
            leaf, at = node(self.peaks.pop(), leaf), at >> 1
        self.peaks.append(leaf)
        self.size += 1

    def root(self):
        if not self.peaks:
            return sha256(b"")
        hashed = self.peaks[-1]
        for left in reversed(self.peaks[:-1]):
            hashed = node(left, hashed)
        return hashed


# Keys and signatures.


def unbase64(text, length, what):
    try:
        data = base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise Flaw(f"{what} is no base64") from None
    need(base64.b64encode(data).decode() == text, f"{what} is no canonical base64")
    need(length is None or len(data) == length, f"{what} has another length")
    return data


def is_small(point):
    return point[:31] + bytes([point[31] & 0x7F]) in SMALL


def usable(key, what):
    need(not is_small(key), f"{what} is no usable key")
    return key


def signed(key, signature, message):
    if len(signature) != 64 or is_small(signature[:32]):
        return False
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
        return True
    except (InvalidSignature, ValueError):
        return False


def public_key(text):
    """The 32 bytes of `quorate:ed25519:public:...`."""
    need(text.startswith(PUBLIC), "a public key has another prefix")
    return usable(unbase64(text[len(PUBLIC) :], 32, "a public key"), "a public key")


def check_time(text):
    """A time in the form of heads and vouchers."""
    match = TIME.fullmatch(text)
    need(match, "its time cannot be read")
    year, *rest = map(int, match.groups())
    try:
        # The calendar repeats every 400 years.
        datetime.datetime(2000 + year % 400, *rest[:5])
    except ValueError:
        raise Flaw("its time cannot be read") from None


def pae(kind, payload):
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload)


def add_vouched(keys, data):
    """Adds to a run's keys those that a keyring record vouches for, each by an earlier key."""
    vouchers = data.get("vouched")
    need(type(vouchers) is list and vouchers, "a keyring record vouches for no key")
    for voucher in vouchers:
        types = {"at": TEXT, "by": TEXT, "key": TEXT, "signature": TEXT}
        at, by, key, encoded = fields(voucher, types, "a voucher")
        need(KEY_ID.fullmatch(by), "a voucher's key is not a key's name")
        public = public_key(key)
        check_time(at)
        signature = unbase64(encoded, 64, "a voucher's signature")
        need(by in keys, f"the key {by} vouches for another, and it is not in the run's keyring")
        said = canonical({"at": at, "key": key}).encode()
        need(signed(keys[by], signature, pae(VOUCHER_TYPE, sha256(said))), "a voucher is not signed by its key")
        keys[key_id(key)] = public


def key_id(text):
    return sha256(text.encode())[:16].hex()


def is_name(name):
    return bool(name) and not any(one.isspace() or one == "+" or one < " " for one in name)


def verifier(text):
    """Name, id and key of a verifier's line (c2sp.org/signed-note)."""
    parts = text.split("+", 2)
    need(len(parts) == 3, "a verifier key is <name>+<hash>+<key>")
    name, identity, encoded = parts
    typed = unbase64(encoded, None, "a verifier's key")
    need(len(typed) == 33 and typed[0] == 1, "a verifier's key is not Ed25519")
    need(is_name(name), "a verifier has no name")
    need(sha256(name.encode() + b"\n" + typed)[:4].hex() == identity, "a verifier's hash is of another key")
    return name, identity, usable(typed[1:], "a verifier's key")


class Seal:
    """A checkpoint as a signed note (c2sp.org/signed-note, c2sp.org/tlog-checkpoint) with the keys that signed it."""

    def __init__(self, note, keys):
        self.keys = keys
        known = [verifier(key) for key in keys]
        need(len(note.encode()) <= MAX_NOTE, "the note is too long")
        need(not any(one < " " and one != "\n" for one in note), "the note has a control character")
        at = note.rfind("\n\n")
        need(at >= 0 and note.endswith("\n"), "the note has no signatures")
        text, lines = note[: at + 1], note[at + 2 : -1].split("\n")
        need(note[at + 2 :], "the note has no signatures")
        need(len(lines) <= MAX_SIGNATURES, "the note has too many signatures")
        by = set()
        for line in lines:
            parts = line.split(" ")
            need(len(parts) == 3 and parts[0] == "\u2014" and is_name(parts[1]), "a line of the note is not a signature")
            data = unbase64(parts[2], None, "a signature of the note")
            names = [one for one in known if one[0] == parts[1] and bytes.fromhex(one[1]) == data[:4]]
            need(names, "a signature of the note is of none of its keys")
            hits = [one for one in names if signed(one[2], data[4:], text.encode())]
            need(hits, f"the signature of {parts[1]} does not verify")
            by.add(hits[0])
        need(len(by) == len(lines) == len(known), "the note's signatures are not those of its keys, one each")
        lines = text[:-1].split("\n")
        need(len(lines) == 3 and all(lines), "the checkpoint is not the three lines origin, size and root")
        need(re.fullmatch("0|[1-9][0-9]{0,19}", lines[1]) and int(lines[1]) < 2**64, "the checkpoint's size is not a number")
        self.origin, self.size = lines[0], int(lines[1])
        self.root = unbase64(lines[2], 32, "the checkpoint's root")
        need(all(one[0] == self.origin for one in known), "a key signs for another log")

    def vouched(self, trusted):
        for text in self.keys:
            bare = PUBLIC + base64.b64encode(verifier(text)[2]).decode()
            if text in trusted or bare in trusted:
                return text
        return None


# Records.


class Record:
    """A record that is in a tree."""

    def __init__(self, head, data, index, path, envelopes, size, root, known):
        value = parse(head, "its head")
        types = {"v": COUNT, "kind": TEXT, "run": TEXT, "n": COUNT, "at": TEXT, "prev": SOME_TEXT, "data_sha256": TEXT}
        version, self.kind, self.run, self.n, self.at, self.prev, data_sha256 = fields(value, types, "its head")
        need(version == 1, f"its version is {version}, and this program reads 1")
        need(self.n >= 0, "its number is negative")
        check_time(self.at)
        hash_of(data_sha256, "the hash of its data")
        need((self.n == 0) == (self.prev is None), "only the first record of a run may lack a predecessor")
        if self.prev is not None:
            hash_of(self.prev, "its predecessor")
        self.leaf = leaf_of(head.encode())
        inclusion(self.leaf, index, size, path_of(path), root)
        self.data = None
        if data is not None:
            need(sha256(data.encode()).hex() == data_sha256, "its data does not match the hash in its head")
            self.data = parse(data, "its data")
            need(type(self.data) is dict, "its data is not an object")
        self.signers = []
        for envelope in envelopes:
            signer = self.check_envelope(envelope, known)
            need(not self.signers or self.signers[-1] < signer, "its signatures are not in the order of their keys")
            self.signers.append(signer)

    def check_envelope(self, envelope, known):
        payload, kind, signatures = fields(envelope, ENVELOPE, "an envelope")
        need(kind == PAYLOAD_TYPE, f"an envelope has the payload type `{kind}`")
        need(payload == base64.b64encode(self.leaf).decode(), "an envelope's payload is not the record's leaf")
        need(len(signatures) == 1, "an envelope has not one signature")
        signer, encoded = fields(signatures[0], SIGNATURE, "a signature")
        need(KEY_ID.fullmatch(signer), "a signature's key is not a key's name")
        need(signer in known, f"it is signed by the key {signer}, whose public half is unknown")
        signature = unbase64(encoded, 64, "a signature")
        need(signed(known[signer], signature, pae(kind, self.leaf)), f"the signature of the key {signer} does not verify")
        return signer

    def ring(self):
        """From the run's first record: whether each record must be signed, by whom, and the permitted keys."""
        if self.n != 0 or self.kind != "run.opened" or self.data is None:
            return None
        audit = self.data.get("audit")
        if type(audit) is not dict:
            return None
        keys = {}
        for text in audit.get("keyring") if type(audit.get("keyring")) is list else []:
            with contextlib.suppress(Flaw):
                if type(text) is str:
                    text = text.removesuffix("\n")
                    keys[key_id(text)] = public_key(text)
        signer = audit.get("signer")
        return audit.get("signing") == "required", signer if type(signer) is str else None, keys


class Course:
    """Checks the order of records."""

    def __init__(self, gaps, whole):
        """`gaps`: records of a run may be missing between others. `whole`: each run starts with its first record."""
        self.gaps, self.whole, self.runs = gaps, whole, {}

    def take(self, record):
        before = self.runs.get(record.run)
        ring = record.ring() if before is None else before[3]
        need(before is not None or record.n == 0 or not self.whole, "earlier records of its run are missing")
        opens = record.kind == "run.opened"
        need(record.n == 0 if opens else record.n > 0 or not RUN.fullmatch(record.run), "only the first record of a run may open it")
        if before is not None:
            n, leaf, has_signers, _ = before
            need(record.n > n, f"it follows record {n} of its run")
            need(self.gaps or record.n == n + 1, f"the preceding record {n + 1} of its run is missing")
            need(record.n > n + 1 or record.prev == leaf.hex(), "it does not name its predecessor's hash")
            same = record.run == STREAM or bool(record.signers) == has_signers
            need(same, "a run must be signed from its first record on, or not at all")
        sealed = record.run == STREAM and record.kind == "checkpoint"
        need(not (sealed and record.signers), "a checkpoint must be signed by its note, not by an envelope")
        if ring is not None:
            required, signer, keys = ring
            said = record.n > 0 or signer is None or signer in record.signers
            need(said, f"its run is signed by the key {signer}, but this record is not")
            if record.kind == "keyring" and record.data is not None:
                add_vouched(keys, record.data)
            hit = not required or any(signer in keys for signer in record.signers)
            need(hit, "its run must be signed by a key of its keyring, but this record is not")
        self.runs[record.run] = (record.n, record.leaf, bool(record.signers), ring)


def check_form(envelopes):
    """Checks that each record has the fields of an envelope, with any values."""
    for envelope in envelopes:
        _, _, signatures = fields(envelope, ENVELOPE, "an envelope")
        for one in signatures:
            fields(one, SIGNATURE, "a signature")


def known_signers(listed, given):
    need(all(one < two for one, two in zip(listed, listed[1:])), "the signers are not sorted")
    return {key_id(text): public_key(text) for text in [*given, *listed]}


def no_idle(listed, used):
    for text in listed:
        need(key_id(text) in used, f"the key {key_id(text)} is listed as a signer, but signed nothing")


def named(value, names):
    """The hashes in a record: each string of its data of 64 hexadecimal digits in lower case."""
    if type(value) is str:
        if HASH.fullmatch(value):
            names.add(value)
    elif type(value) is list:
        for one in value:
            named(one, names)
    elif type(value) is dict:
        for one in value.values():
            named(one, names)
    return names


# Proofs and exports.


def verify_proof(text, trusted, signers):
    """The findings of a valid proof."""
    with reading("it is no proof"):
        need(len(text.encode()) <= MAX_LINE, "it is too long")
        need(text.endswith("\n"), "it has no line end: the file is truncated")
        types = {"v": COUNT, "origin": TEXT, "checkpoint": TEXT, "keys": LIST, "records": LIST, "signers": LIST}
        version, origin, note, keys, records, listed = fields(parse(text[:-1], "the proof"), types, "the proof")
        need(version == 1, f"its version is {version}, and this program reads 1")
        types = {"id": TEXT, "index": COUNT, "head": TEXT, "data": SOME_TEXT, "leaf_path": LIST, "signatures": LIST}
        records = [fields(one, types, "a record") for one in records]
        for *_, path, envelopes in records:
            texts(path, "a path")
            check_form(envelopes)
        texts(keys, "the list of keys")
        texts(listed, "the list of signers")
    need(records, "it contains no record")
    seal = Seal(note, keys)
    need(seal.origin == origin, "its checkpoint is of another log")
    known, asked = known_signers(listed, signers), {key_id(one) for one in signers}
    course, used = Course(gaps=True, whole=False), set()
    for name, index, head, data, path, envelopes in records:
        try:
            record = Record(head, data, index, path, envelopes, seal.size, seal.root, known)
            need(name == f"{record.run}/{record.n}", "its head names another record")
            course.take(record)
            hit = not asked or record.run == STREAM or asked.intersection(record.signers)
            need(hit, "none of the required signers signed it")
        except Flaw as flaw:
            raise Flaw(f"{name}: {flaw}") from None
        used.update(record.signers)
    no_idle(listed, used)
    return vouch(seal, trusted, f"{len(records)} records of {origin}, in a tree of {seal.size}")


def verify_report(html, trusted, signers):
    """The findings of a report whose proof is valid, and whose texts are those that its run was about."""
    with reading("it is no report"):
        embedded = EMBEDDED.findall(html)
        need(len(embedded) == 1, "it has not one proof")
        proof = unbase64(embedded[0], None, "its proof").decode()
    found = verify_proof(proof, trusted, signers)
    first, *later = json.loads(proof)["records"]
    # The end of a run restates its first record, whose data reports leave out.
    ends = [json.loads(one["data"] or "{}") for one in later if json.loads(one["head"])["kind"] == "run.ended"]
    opened = json.loads(first["data"] or "null") or (ends[-1].get("opened") if ends else None)
    inputs = opened.get("inputs") if type(opened) is dict else None
    for place, encoded in EMBEDDED_TEXT.findall(html):
        one = inputs[int(place)] if type(inputs) is list and int(place) < len(inputs) else None
        digest = sha256(unbase64(encoded, None, "a text")).hex()
        need(type(one) is dict and one.get("sha256") == digest, f"text {place} differs from the run's input")
    return f"{found}; the page around it was not compared"


def vouch(seal, trusted, found):
    need(seal is not None, "nobody signed the checkpoint, so nothing is proven")
    key = seal.vouched(trusted)
    need(key, f"it holds against {', '.join(seal.keys)}, but that key is not trusted: give it with --key if you have it from elsewhere")
    return f"{found}, signed by {key}"


def lines_of(stream, digest):
    """Number, text, and hash of the text before it, line by line."""
    count = 0
    while line := stream.readline(MAX_LINE + 1):
        count += 1
        before = digest.copy()
        digest.update(line)
        try:
            need(len(line) <= MAX_LINE, "it exceeds the maximum length of a line")
            need(line.endswith(b"\n"), "it has no line end: the file is truncated")
            yield count, line[:-1].decode(), before.hexdigest()
        except (Flaw, UnicodeDecodeError) as flaw:
            # Only the first line identifies an export.
            kind = Unreadable if count == 1 else Flaw
            raise kind(f"line {count}: {flaw}") from None


class Export:
    """The state of a verification of an export."""

    def __init__(self, text, signers):
        types = {
            "quorate_export": COUNT, "origin": TEXT, "size": COUNT, "root": TEXT, "note": SOME_TEXT, "keys": LIST,
            "signers": LIST, "runs": (list, NONE), "from": (dict, NONE),
        }
        with reading("it is no export"):
            header = parse(text, "it")
            version, self.origin, self.size, root, note, keys, self.listed, self.runs, begin = fields(header, types, "it")
            need(version == 1, f"its version is {version}, and this program reads 1")
            texts(keys, "the list of keys")
            texts(self.listed, "the list of signers")
            texts(self.runs or [], "the list of runs")
            if begin is not None:
                begin = fields(begin, {"size": COUNT, "root": TEXT, "path": LIST}, "`from`")
                texts(begin[2], "the path of `from`")
        self.root = hash_of(root, "its root")
        self.seal = None
        if note is not None:
            self.seal = Seal(note, keys)
            same = (self.seal.origin, self.seal.size, self.seal.root) == (self.origin, self.size, self.root)
            need(same, "its checkpoint is of another log or another tree")
        else:
            need(not keys, "it has keys, but no signed note")
        self.seq = 0
        if begin is not None:
            self.seq, old_root, path = begin
            consistency(self.seq, hash_of(old_root, "the root of `from`"), self.size, self.root, path_of(path))
        if self.runs is not None:
            need(self.runs, "it is of no run")
            units = [one.encode() for one in self.runs]
            need(all(one < two for one, two in zip(units, units[1:])), "its runs are not sorted")
        self.known, self.asked = known_signers(self.listed, signers), {key_id(one) for one in signers}
        self.course, self.used, self.names = Course(gaps=False, whole=begin is None), set(), []
        self.frontier = Frontier() if self.runs is None and begin is None else None
        self.records = self.bodies = self.signatures = 0

    def take(self, text, before):
        """Adds a line; returns whether it was the last one."""
        value = parse(text, "it")
        if type(value) is dict and "head" in value:
            self.record(value)
        elif type(value) is dict and "body" in value:
            self.body(value)
        else:
            self.end(value, before)
            return True
        return False

    def record(self, value):
        types = {"seq": COUNT, "head": TEXT, "data": SOME_TEXT, "path": LIST, "signatures": LIST}
        seq, head, data, path, envelopes = fields(value, types, "it")
        record = Record(head, data, seq - 1, path, envelopes, self.size, self.root, self.known)
        try:
            need(seq > self.seq and (self.runs is not None or seq == self.seq + 1), f"it is at place {seq} after place {self.seq}")
            need(self.runs is None or record.run in self.runs, "its run is not among the runs of the export")
            hit = record.run == STREAM or not self.asked or not record.signers or self.asked.intersection(record.signers)
            need(hit, "none of the required signers signed it")
            self.course.take(record)
        except Flaw as flaw:
            raise Flaw(f"{record.run}/{record.n}: {flaw}") from None
        self.seq, self.records = seq, self.records + 1
        self.signatures += len(record.signers)
        self.used.update(record.signers)
        if self.frontier:
            self.frontier.push(record.leaf)
        self.names = sorted(named(record.data, set()))

    def body(self, value):
        name, text = fields(value, {"body": TEXT, "text": TEXT}, "it")
        need(sha256(text.encode()).hex() == name, "the text does not match its hash")
        need(name in self.names, "the record before it does not name this text, or the texts are out of order")
        self.names = self.names[self.names.index(name) + 1 :]
        self.bodies += 1

    def end(self, value, before):
        (end,) = fields(value, {"end": (dict,)}, "the last line")
        types = {"records": COUNT, "bodies": COUNT, "signatures": COUNT, "sha256": TEXT}
        *counts, digest = fields(end, types, "the last line")
        ours = [self.records, self.bodies, self.signatures]
        need(counts == ours, "the totals in the last line are wrong: lines were removed or added")
        need(digest == before, "the last line belongs to another file")
        if self.runs is None:
            need(self.seq == self.size, f"the checkpoint covers {self.size} records, but there are {self.seq}")
        if self.frontier:
            need(self.frontier.root() == self.root, "the records do not lead to the checkpoint's root")
        no_idle(self.listed, self.used)


def verify_export(stream, trusted, signers):
    """The findings of a valid export."""
    export, ended = None, False
    for count, text, before in lines_of(stream, hashlib.sha256()):
        try:
            need(not ended, "something follows the last line")
            if export is None:
                export = Export(text, signers)
            else:
                ended = export.take(text, before)
        except Flaw as flaw:
            raise Flaw(f"line {count}: {flaw}") from None
        except UnicodeEncodeError:
            raise Flaw(f"line {count}: it has half a character") from None
    if export is None:
        raise Unreadable("it is empty")
    need(ended, "its last line is missing: the file is truncated")
    found = f"{export.records} of {export.size} records of {export.origin}, {export.bodies} texts, {export.signatures} signatures"
    return vouch(export.seal, trusted, found)


# The command line.


def given_keys(values):
    """Verifiers' lines and public keys, from arguments or from files."""
    keys = []
    for value in values:
        lines = [value]
        with reading(ascii(value)):
            if os.path.isfile(value):
                with open(value, encoding="utf-8") as file:
                    lines = [line.strip() for line in file if line.strip()]
                need(lines, "it is empty")
            for line in lines:
                public_key(line) if line.startswith(PUBLIC) else verifier(line)
                keys.append(line)
    return keys


def batch(path):
    """Many documents, one JSON object in a line, for tests. Prints for each `holds`, `unusable`, or the failed check."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            one = json.loads(line)
            try:
                if "inclusion" in one:
                    leaf, index, size, path, root = one["inclusion"]
                    inclusion(hash_of(leaf, "a leaf"), index, size, path_of(path), hash_of(root, "a root"))
                elif "consistency" in one:
                    old, old_root, new, new_root, path = one["consistency"]
                    consistency(old, hash_of(old_root, "a root"), new, hash_of(new_root, "a root"), path_of(path))
                elif "canonical" in one:
                    parse(base64.b64decode(one["canonical"]).decode(), "it")
                elif "proof" in one:
                    text = base64.b64decode(one["proof"]).decode()
                    verify_proof(text, one["keys"], one["signers"])
                else:
                    stream = io.BytesIO(base64.b64decode(one["export"]))
                    verify_export(stream, one["keys"], one["signers"])
                print("holds")
            except Flaw as flaw:
                print(ascii(str(flaw)))
            except (Unreadable, UnicodeError):
                print("unusable")
    return 0


def regular(path):
    """Opens a regular file: reading a pipe might wait forever."""
    opened = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise Unreadable(f"{ascii(path)} is no regular file")
    return os.fdopen(opened, "rb")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("export", nargs="?", metavar="EXPORT")
    what.add_argument("--proof", metavar="PROOF", help="a proof, or a report with one in it")
    what.add_argument("--batch", metavar="FILE", help=argparse.SUPPRESS)
    parser.add_argument("--key", action="append", default=[], help="a key that you have from elsewhere")
    parser.add_argument("--signer", action="append", default=[], help="a key of which one has to have signed")
    arguments = parser.parse_args()
    if arguments.batch:
        return batch(arguments.batch)
    try:
        trusted = given_keys(arguments.key)
        signers = given_keys(arguments.signer)
        if not all(one.startswith(PUBLIC) for one in signers):
            raise Unreadable("a signer is a public key")
        if arguments.proof:
            with regular(arguments.proof) as file:
                data = file.read(4 * MAX_LINE)
            with reading("it is no proof"):
                text = data.decode()
            verify = verify_report if text.startswith(REPORT) else verify_proof
            found = verify(text, trusted, signers)
        else:
            with regular(arguments.export) as file:
                found = verify_export(file, trusted, signers)
    except Flaw as flaw:
        print(f"does not hold: {flaw}")
        return 1
    except (Unreadable, OSError) as error:
        print(f"verify_ledger: {error}", file=sys.stderr)
        return 2
    print(f"holds: {found}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
