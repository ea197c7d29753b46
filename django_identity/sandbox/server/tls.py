"""TLS for the sandbox: by given files, or by an authority that it makes itself."""

import datetime
import ipaddress
import ssl
from collections.abc import Collection
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA_FILE = "sandbox-ca.pem"
CHAIN_FILE = "sandbox.pem"
_LIFETIME = datetime.timedelta(days=90)
_LEFT_AT_LEAST = datetime.timedelta(days=1)
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


def context(certificate: Path, key: Path | None = None) -> ssl.SSLContext:
    """Return what a server needs to prove its name.

    Raises:
        OSError: the files cannot be read, or do not belong together.
    """
    for path in filter(None, (certificate, key)):
        path.open("rb").close()  # its error names the file; OpenSSL's does not
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.load_cert_chain(certificate, key)
    return made


def self_made(folder: Path, names: Collection[str]) -> ssl.SSLContext:
    """Return a context for this machine and ``names``, by an authority of the sandbox's own.

    The authority's certificate is in ``folder`` as ``CA_FILE``. Files of an earlier start are used
    again, if they are for the same names and stay valid for a day. The authority's key is kept
    nowhere.
    """
    named = list(dict.fromkeys([*_THIS_MACHINE, *filter(None, names)]))
    folder.mkdir(parents=True, exist_ok=True)
    chain, authority = folder / CHAIN_FILE, folder / CA_FILE
    if not (chain.exists() and authority.exists() and _serves(chain, named)):
        _make(chain, authority, named)
    return context(chain)


def _serves(chain: Path, names: list[str]) -> bool:
    """Return whether the certificate in ``chain`` is for ``names`` and valid long enough."""
    certificate = x509.load_pem_x509_certificate(chain.read_bytes())
    found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    now = datetime.datetime.now(datetime.UTC)
    is_valid = now + _LEFT_AT_LEAST < certificate.not_valid_after_utc
    return is_valid and set(map(_alternative, names)) <= set(found)


def _make(chain: Path, authority: Path, names: list[str]) -> None:
    """Write a new authority's certificate, and a key and certificate for ``names``."""
    ca_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    ca_name, name = _named("Sandbox Identity test authority"), _named("Sandbox Identity")
    ca = (
        _builder(ca_name, ca_name, ca_key.public_key(), ca_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(ca_key, SHA256())
    )
    certificate = (
        _builder(name, ca_name, key.public_key(), ca_key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(list(map(_alternative, names))), critical=False)
        .sign(ca_key, SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    chain.touch(mode=0o600)
    chain.write_bytes(certificate.public_bytes(Encoding.PEM) + private)
    authority.write_bytes(ca.public_bytes(Encoding.PEM))


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    issuer_key: ec.EllipticCurvePrivateKey,
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    issued_by = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        .add_extension(issued_by, critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
