"""Certificates for tests, made on the spot."""

from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


class Authority:
    """Signs certificates for names, and writes them into a folder."""

    def __init__(self, folder, name):
        folder.mkdir()
        self.folder, self._key = folder, ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        own = self._builder(self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.authority = folder / "authority.pem"
        self.authority.write_bytes(_pem(own.sign(self._key, hashes.SHA256())))

    def _builder(self, subject, key):
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
        )

    def signed(self, name):
        """(certificate, key) of a name."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.DNSName(name)])
        made = self._builder(_named(name), key).add_extension(names, critical=False)
        certificate, private = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        certificate.write_bytes(_pem(made.sign(self._key, hashes.SHA256())))
        private.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        private.chmod(0o600)
        return certificate, private


def _named(name):
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _pem(certificate):
    return certificate.public_bytes(serialization.Encoding.PEM)
