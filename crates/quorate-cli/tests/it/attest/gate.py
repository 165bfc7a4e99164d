"""A gate as a stranger would write it, over in-toto's and securesystemslib's packages: gate.py BUNDLE FILE KEY MAX_AGE [PROPERTY...].

Exits with 0 if a simple verification result, signed once by this key, says of these bytes that each property holds, and is no
older than MAX_AGE seconds.
"""

import base64
import datetime
import hashlib
import json
import sys

from cryptography.hazmat.primitives.serialization import load_pem_public_key
from google.protobuf import json_format
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.statement import Statement
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey

bundle_file, subject_file, key_file, max_age, *wanted = sys.argv[1:]
bundle = json.load(open(bundle_file))
assert bundle["mediaType"] == "application/vnd.dev.sigstore.bundle.v0.3+json", "another kind of bundle"
signed = bundle["dsseEnvelope"]
assert len(signed["signatures"]) == 1, "not one signature"
assert signed["payloadType"] == "application/vnd.in-toto+json", "another payload"

key = SSlibKey.from_crypto(load_pem_public_key(open(key_file, "rb").read()))
# A bundle names the key by its hint, and this library each signature.
spki = base64.b64decode("".join(open(key_file).read().splitlines()[1:-1]))
hint = base64.b64encode(hashlib.sha256(spki).digest()).decode()
assert bundle["verificationMaterial"]["publicKey"]["hint"] == hint, "another key"
envelope = Envelope.from_dict(
    {"payload": signed["payload"], "payloadType": signed["payloadType"],
     "signatures": [{"keyid": key.keyid, "sig": one["sig"]} for one in signed["signatures"]]})
envelope.verify([key], 1)

statement = json.loads(envelope.payload)
message = json_format.ParseDict(statement, statement_pb2.Statement())
Statement.copy_from_pb(message).validate()
assert statement["predicateType"] == "https://in-toto.io/attestation/svr/v0.2", "another kind of statement"
digest = hashlib.sha256(open(subject_file, "rb").read()).hexdigest()
assert digest in [subject["digest"]["sha256"] for subject in statement["subject"]], "another file"
predicate = statement["predicate"]
assert predicate["verifier"]["id"] == "urn:quorate:verifier:v1", "another verifier"
missing = [one for one in wanted if one not in predicate["properties"]]
assert not missing, f"not said: {missing}"
made = datetime.datetime.fromisoformat(predicate["timeCreated"].replace("Z", "+00:00"))
age = (datetime.datetime.now(datetime.timezone.utc) - made).total_seconds()
assert age <= float(max_age), f"it is {age:.0f} s old"
print("passes")
