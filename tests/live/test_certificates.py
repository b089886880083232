"""Who may talk to whom: mutual TLS with names."""

from pathlib import Path

import grpc
import pytest

from cosmo import InputError
from cosmo.live import wire
from cosmo.live.client import AsyncClient, Certificates
from cosmo.live.tasks import Fate
from live.certificates import Authority
from live.nodes import play, started, until

TASK = wire.Task(cycles=1.0, deadline_us=10**7)


def _tls(authority, name, allowed=()):
    certificate, key = authority.signed(name)
    return {
        "tls.certificate": str(certificate),
        "tls.key": str(key),
        "tls.authority": str(authority.authority),
        "tls.allowed": list(allowed),
    }


def _client(address, signer, trusted, name):
    certificate, key = signer.signed(name)
    return AsyncClient(
        address, certificates=Certificates(certificate, key, trusted.authority, "en0")
    )


def test_only_names_that_are_allowed_are_let_in(tmp_path):
    ours, theirs = Authority(tmp_path / "ours", "ours"), Authority(tmp_path / "theirs", "theirs")

    async def outcome(client):
        async with client:
            try:
                answer = await client.submit(b"x", deadline_ms=60_000.0, cycles=1.0)
                return answer.fate, answer.where
            except grpc.aio.AioRpcError as error:
                return error.code()

    async def scene():
        use = {"method.use": "all-offload"}
        sn = {**use, **_tls(ours, "sn0", ["en0"])}
        en = {**use, **_tls(ours, "en0", ["ue0"])}
        async with started("sn", sn) as there, started("en", en, [there.address]) as here:
            await until(lambda: here.node.connections[0].connected, "met")
            good = _client(here.address, ours, ours, "ue0")
            assert await outcome(good) == (Fate.DONE, "sn0")
            unlisted = _client(here.address, ours, ours, "ue1")
            assert await outcome(unlisted) == grpc.StatusCode.PERMISSION_DENIED
            stranger = _client(here.address, theirs, ours, "ue0")
            assert await outcome(stranger) == grpc.StatusCode.UNAVAILABLE
            assert await outcome(AsyncClient(here.address)) == grpc.StatusCode.UNAVAILABLE
            # An EN with a good certificate that is of another name.
            false = {**use, **_tls(ours, "ue0")}
            async with started("en", {**false, "name": "en0"}, [there.address]) as impostor:
                with pytest.raises(grpc.aio.AioRpcError) as error:
                    await impostor.node.connections[0].execute(TASK, 10.0)
                assert error.value.code() == grpc.StatusCode.PERMISSION_DENIED
                assert not impostor.node.connections[0].connected

    play(scene())


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_key_that_others_can_read_is_refused_unless_that_is_meant(tmp_path, mode):
    fields = _tls(Authority(tmp_path / "ours", "ours"), "sn0")
    Path(fields["tls.key"]).chmod(mode)

    async def scene():
        why = rf"tls.key = .*: others can read it \(mode {mode:04o}\); run chmod 600"
        with pytest.raises(InputError, match=why):
            async with started("sn", fields):
                pass
        async with started("sn", {**fields, "tls.shared_key": True}):
            pass

    play(scene())
