#!/bin/sh
# Makes the authority and the certificates of the TLS tests: for this machine, and for another one. The keys guard nothing.
set -eu
cd "$(dirname "$0")"
key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"; }
key authority.key
openssl req -x509 -new -key authority.key -subj "/CN=Test authority" -days 36500 -out authority.pem \
    -addext "basicConstraints=critical,CA:TRUE" -addext "keyUsage=critical,keyCertSign"
key server.key
openssl req -new -key server.key -subj "/CN=Test server" -out server.csr
certificate() {
    printf 'basicConstraints=CA:FALSE\nsubjectAltName=%s\nextendedKeyUsage=serverAuth\n' "$2" > extensions
    openssl x509 -req -in server.csr -CA authority.pem -CAkey authority.key -days 36500 -extfile extensions -out "$1"
}
certificate server.pem IP:127.0.0.1,DNS:localhost
certificate elsewhere.pem DNS:elsewhere.example
rm -f server.csr extensions authority.key authority.srl
