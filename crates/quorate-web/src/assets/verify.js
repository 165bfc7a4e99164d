// Checks proofs as docs/ledger-export.md specifies them, with WebCrypto alone. Throws Unreadable for a text that is not a
// proof, and Flaw for a proof that does not hold.

export class Unreadable extends Error {}
export class Flaw extends Error {}

const MAX_BYTES = 64 << 20;
const MAX_NOTE = 1 << 20;
const MAX_SIGNATURES = 100;
const MAX_DEPTH = 127;
const EXACT = 2 ** 53;
const LEAF_TYPE = "application/vnd.quorate.record-leaf.v1";
const VOUCHER_TYPE = "application/vnd.quorate.key-voucher.v1";
const PUBLIC = "quorate:ed25519:public:";
const STREAM = "ledger";
const HASH = /^[0-9a-f]{64}$/;
const RUN = /^r[0-9a-hjkmnp-tv-z]{12}$/;
const KEY_ID = /^[0-9a-f]{32}$/;
// The order of the group, and the encodings of its points of small order without the sign: with these keys one signature
// is valid for many messages, and browsers do not refuse all of them.
const ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;
const ONES = "f".repeat(60);
const SMALL = [
  "0".repeat(64),
  `01${"0".repeat(62)}`,
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
  ...["ec", "ed", "ee"].map((byte) => `${byte}${ONES}7f`),
];

function need(holds, what) {
  if (!holds) throw new Flaw(what);
}

// A failure of `work` means that the text is not a proof.
async function reading(work) {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Flaw) throw new Unreadable(`not a proof: ${error.message}`);
    throw error;
  }
}

// Bytes.

const bytesOf = (text) => new TextEncoder().encode(text);
const isSame = (one, two) => one.length === two.length && one.every((byte, at) => byte === two[at]);
export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
const unhex = (text) => Uint8Array.from(text.match(/../g) ?? [], (byte) => parseInt(byte, 16));

function joined(...parts) {
  const all = parts.map((part) => (typeof part === "string" ? bytesOf(part) : part));
  const bytes = new Uint8Array(all.reduce((length, part) => length + part.length, 0));
  all.reduce((at, part) => (bytes.set(part, at), at + part.length), 0);
  return bytes;
}

export async function sha256(...parts) {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", joined(...parts)));
}

const base64 = (bytes) => btoa(bytes.reduce((text, byte) => text + String.fromCharCode(byte), ""));

export function unbase64(text, length, what) {
  let bytes;
  try {
    bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  } catch {
    throw new Flaw(`${what} is no base64`);
  }
  need(base64(bytes) === text, `${what} is no canonical base64`);
  need(length === null || bytes.length === length, `${what} has another length`);
  return bytes;
}

// Text of bytes that must be UTF-8.
export function textOf(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Unreadable("it is not UTF-8");
  }
}

// Canonical JSON (RFC 8785).

function canonical(value, depth = 0) {
  if (typeof value === "string") need(value.isWellFormed(), "half a character");
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  need(depth < MAX_DEPTH, "it is nested too deeply");
  if (Array.isArray(value)) return `[${value.map((item) => canonical(item, depth + 1)).join(",")}]`;
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${canonical(key)}:${canonical(value[key], depth + 1)}`).join(",")}}`;
}

function parse(text, what) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Flaw(`${what} is no JSON`);
  }
  need(canonical(value) === text, `${what} is not canonical JSON`);
  return value;
}

export const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const isText = (value) => typeof value === "string";
const isTextOrNull = (value) => value === null || isText(value);
const isCount = (value) => Number.isInteger(value) && value >= 0 && value <= EXACT;
const isList = Array.isArray;

// The fields of an object that must have exactly these.
function fields(value, types, what) {
  const names = Object.keys(types);
  const has = isObject(value) && Object.keys(value).length === names.length;
  need(has && names.every((name) => Object.hasOwn(value, name)), `${what} has other fields than it should`);
  for (const name of names) need(types[name](value[name]), `\`${name}\` of ${what} is of another type`);
  return value;
}

const PROOF = { v: isCount, origin: isText, checkpoint: isText, keys: isList, records: isList, signers: isList };
const RECORD = { id: isText, index: isCount, head: isText, data: isTextOrNull, leaf_path: isList, signatures: isList };
const HEAD = { v: isCount, kind: isText, run: isText, n: isCount, at: isText, prev: isTextOrNull, data_sha256: isText };
const ENVELOPE = { payload: isText, payloadType: isText, signatures: isList };
const SIGNATURE = { keyid: isText, sig: isText };
const VOUCHER = { at: isText, by: isText, key: isText, signature: isText };

// The Merkle tree (RFC 9162, section 2.1).

function hashOf(text, what) {
  need(isText(text) && HASH.test(text), `${what} is no hash`);
  return unhex(text);
}

const ONE = Uint8Array.of(1);
const node = (left, right) => sha256(ONE, left, right);

export async function inclusion(leaf, index, size, path, root) {
  need(index >= 0n && index < size, `a tree of ${size} leaves has no leaf ${index}`);
  let [at, last, hashed] = [index, size - 1n, leaf];
  for (const other of path) {
    need(last > 0n, "the path is too long");
    if (at & 1n || at === last) {
      hashed = await node(other, hashed);
      for (; !(at & 1n) && at; last >>= 1n) at >>= 1n;
    } else {
      hashed = await node(hashed, other);
    }
    at >>= 1n;
    last >>= 1n;
  }
  need(last === 0n, "the path is too short");
  need(isSame(hashed, root), "it is not in the tree: the path leads to another root");
}

// Keys and signatures.

function isSmall(point) {
  const unsigned = Uint8Array.from(point);
  unsigned[31] &= 0x7f;
  return SMALL.includes(hex(unsigned));
}

function usable(key, what) {
  need(!isSmall(key), `${what} is no usable key`);
  return key;
}

async function isSigned(key, signature, message) {
  if (signature.length !== 64 || isSmall(key) || isSmall(signature.subarray(0, 32))) return false;
  if (BigInt(`0x${hex(signature.slice(32).reverse())}`) >= ORDER) return false;
  try {
    const imported = await crypto.subtle.importKey("raw", key, "Ed25519", false, ["verify"]);
    return await crypto.subtle.verify("Ed25519", imported, signature, message);
  } catch {
    return false;
  }
}

// Whether this browser can check: a signature of RFC 8032 holds, and for another message it does not.
export async function canCheck() {
  if (!globalThis.crypto?.subtle || !"".isWellFormed) return false;
  const key = unhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
  const signature = unhex(
    "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
  );
  return (await isSigned(key, signature, bytesOf(""))) && !(await isSigned(key, signature, bytesOf("x")));
}

function publicKey(text) {
  need(text.startsWith(PUBLIC), "a public key has another prefix");
  return usable(unbase64(text.slice(PUBLIC.length), 32, "a public key"), "a public key");
}

// The name of a public key: its fingerprint.
export const keyId = async (text) => hex((await sha256(text)).subarray(0, 16));

const isName = (name) => name !== "" && !/[\p{White_Space}+\0-\x1f]/u.test(name);

// A verifier's line (c2sp.org/signed-note), with the public key as a text.
export async function verifier(text) {
  const [, name, identity, encoded] = /^([^+]*)\+([^+]*)\+(.*)$/s.exec(text) ?? [];
  need(encoded !== undefined, "a verifier key is <name>+<hash>+<key>");
  const typed = unbase64(encoded, null, "a verifier's key");
  need(typed.length === 33 && typed[0] === 1, "a verifier's key is not Ed25519");
  need(isName(name), "a verifier has no name");
  const id = (await sha256(name, "\n", typed)).subarray(0, 4);
  need(hex(id) === identity, "a verifier's hash is of another key");
  const key = usable(typed.subarray(1), "a verifier's key");
  return { text, name, id, key, public: PUBLIC + base64(key) };
}

function checkTime(text) {
  const at = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(text) ? new Date(text) : NaN;
  need(Number.isFinite(+at) && at.toISOString() === text, "its time cannot be read");
}

const signedBytes = (kind, payload) => joined(`DSSEv1 ${kind.length} ${kind} ${payload.length} `, payload);

// Adds to a run's keys those that a keyring record vouches for, each by an earlier key.
async function addVouched(keys, data) {
  const vouchers = data.vouched;
  need(isList(vouchers) && vouchers.length > 0, "a keyring record vouches for no key");
  for (const voucher of vouchers) {
    const { at, by, key, signature: encoded } = fields(voucher, VOUCHER, "a voucher");
    need(KEY_ID.test(by), "a voucher's key is not a key's name");
    const added = publicKey(key);
    checkTime(at);
    const signature = unbase64(encoded, 64, "a voucher's signature");
    need(keys.has(by), `the key ${by} vouches for another, and it is not in the run's keyring`);
    const message = signedBytes(VOUCHER_TYPE, await sha256(canonical({ at, key })));
    need(await isSigned(keys.get(by), signature, message), "a voucher is not signed by its key");
    keys.set(await keyId(key), added);
  }
}

// The checkpoint: a signed note with the keys that signed it.
async function openCheckpoint(note, lines) {
  const known = await Promise.all(lines.map(verifier));
  need(bytesOf(note).length <= MAX_NOTE, "the note is too long");
  need(!/[\0-\x09\x0b-\x1f]/.test(note), "the note has a control character");
  const end = note.lastIndexOf("\n\n");
  need(end >= 0 && note.endsWith("\n") && end + 2 < note.length, "the note has no signatures");
  const [text, signatures] = [note.slice(0, end + 1), note.slice(end + 2, -1).split("\n")];
  need(signatures.length <= MAX_SIGNATURES, "the note has too many signatures");
  const by = new Set();
  for (const line of signatures) {
    const parts = line.split(" ");
    const isLine = parts.length === 3 && parts[0] === "\u2014" && isName(parts[1]);
    need(isLine, "a line of the note is not a signature");
    const data = unbase64(parts[2], null, "a signature of the note");
    const named = known.filter((key) => key.name === parts[1] && isSame(key.id, data.subarray(0, 4)));
    need(named.length > 0, "a signature of the note is of none of its keys");
    const checked = await Promise.all(named.map((key) => isSigned(key.key, data.subarray(4), bytesOf(text))));
    need(checked.includes(true), `the signature of ${parts[1]} does not verify`);
    by.add(named[checked.indexOf(true)].text);
  }
  const each = by.size === signatures.length && by.size === known.length;
  need(each, "the note's signatures are not those of its keys, one each");
  const said = text.slice(0, -1).split("\n");
  const isThree = said.length === 3 && said.every((line) => line !== "");
  need(isThree, "the checkpoint is not the three lines origin, size and root");
  const [origin, digits, encoded] = said;
  const isSize = /^(0|[1-9][0-9]{0,19})$/.test(digits) && BigInt(digits) < 2n ** 64n;
  need(isSize, "the checkpoint's size is not a number");
  const root = unbase64(encoded, 32, "the checkpoint's root");
  need(known.every((key) => key.name === origin), "a key signs for another log");
  return { origin, size: BigInt(digits), root, keys: known };
}

// Records.

async function checkRecord({ head, data, index, leaf_path: path, signatures }, seal, known) {
  const said = fields(parse(head, "its head"), HEAD, "its head");
  need(said.v === 1, `its version is ${said.v}, and this program reads 1`);
  checkTime(said.at);
  hashOf(said.data_sha256, "the hash of its data");
  need((said.n === 0) === (said.prev === null), "only the first record of a run may lack a predecessor");
  if (said.prev !== null) hashOf(said.prev, "its predecessor");
  const leaf = await sha256("\0", head);
  const hashes = path.map((hash) => hashOf(hash, "a hash of a path"));
  await inclusion(leaf, BigInt(index), seal.size, hashes, seal.root);
  const record = { ...said, leaf, index, data: null, signers: [] };
  if (data !== null) {
    need(hex(await sha256(data)) === said.data_sha256, "its data does not match the hash in its head");
    record.data = parse(data, "its data");
    need(isObject(record.data), "its data is not an object");
  }
  for (const envelope of signatures) {
    const signer = await checkEnvelope(envelope, leaf, known);
    const last = record.signers.at(-1);
    need(last === undefined || last < signer, "its signatures are not in the order of their keys");
    record.signers.push(signer);
  }
  return record;
}

async function checkEnvelope({ payload, payloadType: kind, signatures }, leaf, known) {
  need(kind === LEAF_TYPE, `an envelope has the payload type \`${kind}\``);
  need(payload === base64(leaf), "an envelope's payload is not the record's leaf");
  need(signatures.length === 1, "an envelope has not one signature");
  const { keyid, sig } = signatures[0];
  need(KEY_ID.test(keyid), "a signature's key is not a key's name");
  need(known.has(keyid), `it is signed by the key ${keyid}, whose public half is unknown`);
  const signature = unbase64(sig, 64, "a signature");
  const holds = await isSigned(known.get(keyid), signature, signedBytes(kind, leaf));
  need(holds, `the signature of the key ${keyid} does not verify`);
  return keyid;
}

// The signing rules in a run's first record: whether each record needs a signature, by whom, and the permitted keys.
async function ringOf({ n, kind, data }) {
  if (n !== 0 || kind !== "run.opened" || !isObject(data?.audit)) return null;
  const { audit } = data;
  const keys = new Map();
  for (const entry of isList(audit.keyring) ? audit.keyring.filter(isText) : []) {
    const text = entry.replace(/\n$/, "");
    try {
      keys.set(await keyId(text), publicKey(text));
    } catch (error) {
      if (!(error instanceof Flaw)) throw error;
    }
  }
  return { isRequired: audit.signing === "required", signer: isText(audit.signer) ? audit.signer : null, keys };
}

// Checks that a record follows those of its run before it; `runs` is what is known of each run.
async function follow(runs, record) {
  const before = runs.get(record.run);
  const ring = before ? before.ring : await ringOf(record);
  const opens = record.kind === "run.opened";
  const isOpening = opens ? record.n === 0 : record.n > 0 || !RUN.test(record.run);
  need(isOpening, "only the first record of a run may open it");
  const has = record.signers.length > 0;
  if (before) {
    need(record.n > before.n, `it follows record ${before.n} of its run`);
    const follows = record.n > before.n + 1 || record.prev === hex(before.leaf);
    need(follows, "it does not name its predecessor's hash");
    need(record.run === STREAM || has === before.has, "a run must be signed from its first record on, or not at all");
  }
  const isSeal = record.run === STREAM && record.kind === "checkpoint";
  need(!(isSeal && has), "a checkpoint must be signed by its note, not by an envelope");
  if (ring) {
    const isBy = record.n > 0 || ring.signer === null || record.signers.includes(ring.signer);
    need(isBy, `its run is signed by the key ${ring.signer}, but this record is not`);
    if (record.kind === "keyring" && record.data) await addVouched(ring.keys, record.data);
    const isListed = !ring.isRequired || record.signers.some((signer) => ring.keys.has(signer));
    need(isListed, "its run must be signed by a key of its keyring, but this record is not");
  }
  runs.set(record.run, { n: record.n, leaf: record.leaf, has, ring });
}

// Reads the fields of a proof and of all in it.
function readProof(text) {
  need(text.length <= MAX_BYTES && bytesOf(text).length <= MAX_BYTES, "it is too long");
  need(text.endsWith("\n"), "it has no line end: the file is truncated");
  const proof = fields(parse(text.slice(0, -1), "the proof"), PROOF, "the proof");
  need(proof.v === 1, `its version is ${proof.v}, and this program reads 1`);
  for (const record of proof.records) {
    const { leaf_path: path, signatures } = fields(record, RECORD, "a record");
    need(path.every(isText), "a path has an entry that is not text");
    for (const envelope of signatures) {
      for (const signature of fields(envelope, ENVELOPE, "an envelope").signatures) {
        fields(signature, SIGNATURE, "a signature");
      }
    }
  }
  need([...proof.keys, ...proof.signers].every(isText), "a list of keys has an entry that is not text");
  return proof;
}

// Checks a proof. `signers`, if not empty, are public keys one of which must have signed each record. Whether the keys of
// the checkpoint are the ledger's is not known from the proof: see `vouchedKey`.
export async function checkProof(text, signers = []) {
  const proof = await reading(() => readProof(text));
  need(proof.records.length > 0, "it contains no record");
  const seal = await openCheckpoint(proof.checkpoint, proof.keys);
  need(seal.origin === proof.origin, "its checkpoint is of another log");
  const listed = proof.signers;
  need(listed.every((key, at) => at === 0 || listed[at - 1] < key), "the signers are not sorted");
  const known = new Map();
  for (const key of [...signers, ...listed]) known.set(await keyId(key), publicKey(key));
  const asked = await Promise.all(signers.map(keyId));
  const [runs, used, records] = [new Map(), new Set(), []];
  for (const item of proof.records) {
    try {
      const record = await checkRecord(item, seal, known);
      need(item.id === `${record.run}/${record.n}`, "its head names another record");
      await follow(runs, record);
      const isAsked = !asked.length || record.run === STREAM || asked.some((key) => record.signers.includes(key));
      need(isAsked, "none of the required signers signed it");
      record.signers.forEach((signer) => used.add(signer));
      records.push(record);
    } catch (error) {
      throw error instanceof Flaw ? new Flaw(`${item.id}: ${error.message}`) : error;
    }
  }
  for (const key of listed) {
    const id = await keyId(key);
    need(used.has(id), `the key ${id} is listed as a signer, but signed nothing`);
  }
  return { ...seal, records };
}

// The fingerprint of the key of the checkpoint that the reader has from elsewhere: as a verifier's line, a public key, or
// this fingerprint. Without one, nothing is vouched for: a forger's file has a forger's key.
export async function vouchedKey({ keys }, given) {
  const ids = await Promise.all(keys.map((key) => keyId(key.public)));
  return ids.find((id, at) => [keys[at].text, keys[at].public, id].includes(given));
}
