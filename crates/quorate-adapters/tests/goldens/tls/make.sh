#!/bin/sh
# Makes the authority and the certificate of the TLS tests. The keys guard nothing.
set -eu
cd "$(dirname "$0")"
key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"; }
key authority.key
openssl req -x509 -new -key authority.key -subj "/CN=Test authority" -days 36500 -out authority.pem \
    -addext "basicConstraints=critical,CA:TRUE" -addext "keyUsage=critical,keyCertSign"
key server.key
openssl req -new -key server.key -subj "/CN=Test server" -out server.csr
printf 'basicConstraints=CA:FALSE\nsubjectAltName=IP:127.0.0.1,DNS:localhost\nextendedKeyUsage=serverAuth\n' > extensions
openssl x509 -req -in server.csr -CA authority.pem -CAkey authority.key -days 36500 -extfile extensions -out server.pem
rm -f server.csr extensions authority.key authority.srl
