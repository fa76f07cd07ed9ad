"""The authority that signs for the played hosts, so that clients verify TLS as they do outside."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import certifi
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

HOSTS = ("youtube.com", "youtu.be", "googlevideo.com", "ytimg.com", "googleapis.com")
"""The hosts that are played, each with everything below it."""

CA_FILE, BUNDLE_FILE, LEAF_FILE = "ca.pem", "bundle.pem", "leaf.pem"
_AUTHORITY, _LEAF = "offline YouTube authority", "www.youtube.com"


def make_certificates(folder: Path) -> None:
    """
    Make in `folder` the authority's certificate, the bundle (certifi's and ours), and the leaf with its key.

    The authority's key is not kept.
    """
    ca_key, leaf_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca = _signed_by(ca_key, _AUTHORITY, ca_key, _authority_extensions())
    leaf = _signed_by(ca_key, _LEAF, leaf_key, _leaf_extensions())
    ca_pem = ca.public_bytes(Encoding.PEM)
    key_pem = leaf_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / CA_FILE).write_bytes(ca_pem)
    (folder / BUNDLE_FILE).write_bytes(Path(certifi.where()).read_bytes() + b"\n" + ca_pem)
    (folder / LEAF_FILE).touch(mode=0o600)
    (folder / LEAF_FILE).write_bytes(leaf.public_bytes(Encoding.PEM) + key_pem)


def _signed_by(
    ca_key: ec.EllipticCurvePrivateKey,
    name: str,
    key: ec.EllipticCurvePrivateKey,
    extensions: list[tuple[x509.ExtensionType, bool]],
) -> x509.Certificate:
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(_name(_AUTHORITY))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=3650))
        # Python 3.13 verifies strictly: both identifiers must be there
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical)
    return builder.sign(ca_key, hashes.SHA256())


def _authority_extensions() -> list[tuple[x509.ExtensionType, bool]]:
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    return [(x509.BasicConstraints(ca=True, path_length=0), True), (usage, True)]


def _leaf_extensions() -> list[tuple[x509.ExtensionType, bool]]:
    names = [x509.DNSName(name) for host in HOSTS for name in (host, f"*.{host}")]
    return [
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (x509.SubjectAlternativeName(names), False),
        (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False),
    ]


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
