#!/bin/sh
# Makes the certificates of the tests, which are valid for a hundred years. The keys protect
# nothing: they are known to everybody. They are files because not every machine has openssl.
set -eu
cd "$(dirname "$0")"
key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1.key" 2>/dev/null; }
sign() { # NAME EXTENSIONS
    key "$1"
    openssl req -new -key "$1.key" -subj "/CN=brigade test $1" |
        openssl x509 -req -CA ca.pem -CAkey ca.key -CAcreateserial -days 36500 -out "$1.pem" \
            -extfile /dev/fd/3 3<<EOF
basicConstraints = critical, CA:FALSE
$2
EOF
}
for name in ca other; do
    key $name
    openssl req -x509 -new -key $name.key -days 36500 -subj "/CN=brigade test $name" \
        -addext "basicConstraints = critical, CA:TRUE" -out $name.pem
done
sign server "subjectAltName = IP:127.0.0.1"
sign client "extendedKeyUsage = clientAuth"
rm -f ca.key other.key ca.srl
