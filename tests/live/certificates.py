"""Certificates for tests, made on the spot."""

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

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
        """(certificate, key) of a name or an IP address."""
        key = ec.generate_private_key(ec.SECP256R1())
        try:
            named = x509.IPAddress(ip_address(name))
        except ValueError:
            named = x509.DNSName(name)
        names = x509.SubjectAlternativeName([named])
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

    def fields(self, name):
        """The fields of `tls` for a node of this name, by their names in a test's arguments."""
        certificate, key = self.signed(name)
        given = {"certificate": certificate, "key": key, "authority": self.authority}
        return {f"tls__{field}": str(value) for field, value in given.items()}

    def server(self, name):
        """For a server that wants certificates of its callers."""
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.load_cert_chain(*self.signed(name))
        made.load_verify_locations(self.authority)
        made.verify_mode = ssl.CERT_REQUIRED
        return made


def _named(name):
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _pem(certificate):
    return certificate.public_bytes(serialization.Encoding.PEM)
