"""Endpoints come and go; whatever a proxy sends leaves a picker as it was."""

import asyncio
import io
import json
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosmo import InputError
from cosmo.live.logs import Log
from cosmo.live.picker import ext_proc, grpc_calls
from cosmo.live.picker.endpoints import Place, arranged
from cosmo.live.picker.serve_picker import PickerCall
from cosmo.live.picker.sources import endpoint, endpoints_of, source_of
from cosmo.live.serving import Serving
from cosmo.live.sites import site_of_node
from cosmo.policy.registry import METHODS
from cosmo.policy.rules.run import RuleDispatcher
from cosmo.policy.trained import TRAINED
from live.nodes import play, until
from live.picker_scenes import Proxy, answered, destination, headers, picker, picker_config, quiet
from slow import computing

GROUP = picker_config().picker


def ends(*numbers, slots=None):
    return [endpoint(f"10.0.0.{number}:80", GROUP, slots) for number in numbers]


def addresses(places):
    return [each.endpoint.address.split(".")[3].split(":")[0] if each.present else "-"
            for each in places]  # fmt: skip


def test_who_stays_keeps_its_column_and_newcomers_take_free_ones():
    places, same = arranged([], [], ends(1, 2, 3))
    assert (addresses(places), same) == (["1", "2", "3"], True)
    places, same = arranged(places, [], ends(3, 1))
    assert (addresses(places), same) == (["1", "-", "3"], True)
    busy, _ = arranged(places, [1], ends(3, 1, 4))  # something is still under way to the old one
    assert addresses(busy) == ["1", "-", "3", "4"]
    places, _ = arranged(places, [], ends(3, 1, 4))
    assert addresses(places) == ["1", "4", "3"]
    places, _ = arranged(places, [], [*ends(1, 4), *ends(5, slots=8)])  # another size
    assert addresses(places) == ["1", "4", "-", "5"]


def test_columns_move_only_when_most_of_them_are_vacant():
    places, _ = arranged([], [], ends(*range(1, 12)))
    places, same = arranged(places, [], ends(*range(6, 12)))
    assert (len(places), same) == (11, True)
    places, same = arranged(places, [], ends(10, 11))
    assert (addresses(places), same) == (["10", "11"], False)


@given(st.lists(st.sets(st.integers(1, 30)), max_size=12), st.sets(st.integers(0, 9)))
def test_every_endpoint_has_one_place_whatever_came_before(steps, busy):
    places = []
    for wanted in steps:
        before = {each.endpoint.address: k for k, each in enumerate(places) if each.present}
        places, same = arranged(places, busy, ends(*wanted))
        here = [each.endpoint.address for each in places if each.present]
        assert sorted(here) == sorted(f"10.0.0.{number}:80" for number in wanted)
        vacant = len(places) - len(here)
        assert vacant <= max(4, len(here)) or not here
        if same:
            after = {each.endpoint.address: k for k, each in enumerate(places) if each.present}
            assert all(after[name] == before[name] for name in after.keys() & before.keys())


@pytest.mark.parametrize("name", [name for name in METHODS if name not in TRAINED])
def test_rules_keep_what_they_know_when_a_site_grows(name):
    few, more = (site_of_node(picker_config(), ends(*range(1, sns))) for sns in (4, 6))
    method = METHODS[name]()
    before, after = method.dispatcher(few), method.dispatcher(more)
    if not isinstance(before, RuleDispatcher):
        assert not after.take_over(before)
        return
    random = np.random.default_rng(1)
    arrays = list(_memory(before.state))
    for each in arrays:
        each[...] = random.random(each.shape) * 10
    assert after.take_over(before)
    for old, new in zip(arrays, _memory(after.state), strict=True):
        corner = tuple(slice(0, size) for size in old.shape)
        assert np.array_equal(new[corner], old)


@pytest.mark.parametrize("name", ["cosmo-next", *(name for name in METHODS if name not in TRAINED)])
def test_what_a_rule_is_told_of_a_larger_site_stays_as_it_was_told(name):
    # A dispatcher that has seen nothing hands over nothing, whatever the site that it was made for.
    few, more = (site_of_node(picker_config(), ends(*range(1, sns))) for sns in (4, 6))
    method = METHODS[name]()
    after, fresh = method.dispatcher(more), method.dispatcher(more)
    if after.take_over(method.dispatcher(few)):
        for taken, made in zip(_arrays(after.state), _arrays(fresh.state), strict=True):
            assert np.array_equal(taken, made, equal_nan=True)


def _arrays(state):
    for value in state:
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, tuple):
            yield from _arrays(value)


def _memory(state):
    for field, value in zip(getattr(state, "_fields", ()), state, strict=True):
        if isinstance(value, np.ndarray) and value.flags.writeable:
            yield value
        elif isinstance(value, tuple) and field != "known":
            yield from _memory(value)


def test_a_watched_file_brings_and_takes_endpoints_and_counts_stay(tmp_path):
    async def scene():
        file = tmp_path / "endpoints"
        file.write_text("10.0.0.1:80\n10.0.0.2:80\n")
        async with (
            picker(f"file:{file}", picker__every_s=0.02) as serving,
            Proxy(serving.address) as proxy,
        ):
            node = serving.node
            held = [await proxy.ask(headers()) for _ in range(4)]
            assert node.core.open == [2, 2]
            file.write_text("10.0.0.2:80\n10.0.0.3:80\n10.0.0.4:80 slots=2\n")
            await until(lambda: len(node._columns) == 3, "others are there")
            # The one that has left still has requests; its column is not given away.
            assert node.core.open == [2, 2, 0, 0]
            own = node.core.runner._dispatcher.state.own.unanswered[0, 0]
            assert own.tolist() == [2, 2, 0, 0]
            firsts = [destination((await proxy.ask(headers()))[1])[0] for _ in range(5)]
            # By requests for each slot: one has none and one slot, the other none and two.
            assert sorted(firsts) == ["10.0.0.3:80"] * 2 + ["10.0.0.4:80"] * 3
            for stream, answer in held:
                await stream.write(answered(destination(answer)[0]))
                await stream.done_writing()
            await until(lambda: node.core.open[:2] == [0, 0], "the first ones have ended")
            file.write_text("nonsense\n")
            await until(lambda: "endpoints are not known" in serving.log._stream.getvalue(), "")
            assert len(node._columns) == 3
            file.write_text("")
            await until(lambda: not node._columns, "all have gone")
            assert await proxy.request() == 503

    play(scene())


def test_dns_gives_all_addresses_of_a_name(monkeypatch):
    async def scene():
        loop = asyncio.get_running_loop()
        told = [(2, 1, 6, "", ("10.0.0.2", 80)), (2, 1, 6, "", ("10.0.0.1", 80)),
                (10, 1, 6, "", ("fd00::1", 80, 0, 0))]  # fmt: skip

        async def resolved(host, port, **_):
            assert (host, port) == ("services.internal", 80)
            return told

        monkeypatch.setattr(loop, "getaddrinfo", resolved)
        source = source_of(picker_config("dns:services.internal:80", picker__every_s=0.01).picker)
        found = [each.address for each in await anext(source)]
        assert found == ["10.0.0.1:80", "10.0.0.2:80", "[fd00::1]:80"]
        told.pop()
        assert len(await anext(source)) == 2

    play(scene())


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("10.0.0.1:080", "10.0.0.1:80"),
        ("[FD00:0:0::1]:80", "[fd00::1]:80"),
        ("[0:0:0:0:0:0:0:1]:00080 slots=2", "[::1]:80"),
    ],
)
def test_addresses_are_written_as_a_proxy_writes_them(line, meant):
    assert [each.address for each in endpoints_of([line, meant], GROUP)] == [meant]


@pytest.mark.parametrize(
    "line",
    ["fd00::1:80", "[10.0.0.1]:80", "[fe80::1%eth0]:80", "10.0.0.1:\uff18\uff10", "10.0.0.1:0",
     "10.0.0.1:70000", "10.0.0.1:\u00b2", "10.0.0.1:8_0", "x" * 5000, "10.0.0.1:80 slots=1e9"],
)  # fmt: skip
def test_what_is_no_address_is_refused_in_one_short_line(line):
    with pytest.raises(InputError) as refused:
        endpoints_of([line], GROUP)
    assert len(str(refused.value)) < 250


@pytest.mark.parametrize("source", ["dns:a:99999", "dns:a:0", "dns:a", "file:", "kubernetes:x"])
def test_a_source_that_cannot_be_is_refused_before_the_node_starts(source):
    with pytest.raises(InputError, match=r"picker\.endpoints"):
        source_of(picker_config(source).picker)


def test_files_that_are_none_are_said_and_the_next_good_one_is_taken(tmp_path):
    async def scene():
        pipe, file = tmp_path / "pipe", tmp_path / "endpoints"
        os.mkfifo(pipe)
        found = source_of(picker_config(f"file:{pipe}").picker)
        assert "not a regular file" in await anext(found)
        await found.aclose()
        found = source_of(picker_config(f"file:{file}", picker__every_s=0.01).picker)
        assert "No such file" in await anext(found)
        file.symlink_to("/dev/zero")
        assert "not a regular file" in await anext(found)
        file.unlink()
        for content, why in (
            (b"\xff\xfe", "UnicodeDecodeError"),
            (b"10.0.0.1:80\n" * 100_000, "larger than 1 MB"),
            (b"".join(b"10.0.%d.%d:80\n" % divmod(k, 250) for k in range(5000)), "more than 4096"),
        ):
            whole = tmp_path / "next"
            whole.write_bytes(content)
            whole.replace(file)
            assert why in await anext(found)
        whole.write_bytes(b"10.0.0.1:80\n" * 50_000)
        whole.replace(file)
        assert [each.address for each in await anext(found)] == ["10.0.0.1:80"]
        await found.aclose()

    play(scene())


def test_thousands_of_endpoints_can_all_be_replaced_at_once():
    many = [[endpoint(f"10.{k}.{n // 250}.{n % 250}:80", GROUP) for n in range(4096)]
            for k in (0, 1)]  # fmt: skip
    places, _ = arranged([], [], many[0])
    with computing() as taken:
        places, same = arranged(places, range(0, 4096, 2), many[1])
    assert taken.s < 2.0  # looking through all for each takes a minute
    assert len(places) == 4096 + 2048
    assert same


def test_an_outage_of_the_place_where_columns_were_counts_for_nobody():
    vacant = Place(ends(1)[0], False)
    places, _ = arranged([vacant], [], ends(2))
    assert addresses(places) == ["2"]


# Whatever a proxy sends.

TEXTS = st.one_of(
    st.sampled_from([b"", b"5", b"1e9", b"nan", b"-1", b"99999999999999999999", b"10S", b"\xff\0"]),
    st.binary(max_size=12),
)
KEYS = st.sampled_from([
    "x-cosmo-deadline-ms", "grpc-timeout", "x-request-timeout", "x-cosmo-demand-ms",
    "content-length", "x-cosmo-kind", ":status", "a",
])  # fmt: skip
PHASES = ["request_headers", "response_headers", "request_body", "response_body",
          "request_trailers", "response_trailers"]  # fmt: skip


@st.composite
def messages(draw):
    made = ext_proc.ProcessingRequest()
    phase = draw(st.sampled_from(PHASES))
    part = getattr(made, phase)
    part.SetInParent()
    if phase.endswith("headers"):
        for key, value in draw(st.lists(st.tuples(KEYS, TEXTS), max_size=5)):
            part.headers.headers.add(key=key, raw_value=value)
        part.end_of_stream = draw(st.booleans())
    elif phase.endswith("body"):
        part.body, part.end_of_stream = draw(st.binary(max_size=9)), draw(st.booleans())
    made.protocol_config.response_body_mode = draw(st.integers(0, 6))
    made.observability_mode = draw(st.booleans())
    entry = made.attributes.add(key="x")
    address = draw(st.sampled_from(["", "10.0.0.1:80", "10.0.0.9:9", "nonsense"]))
    entry.value.fields[ext_proc.UPSTREAM].string_value = address
    if draw(st.booleans()):
        hint = made.metadata_context.filter_metadata.add(key=ext_proc.SUBSET_NAMESPACE)
        value = hint.value.fields[ext_proc.SUBSET]
        if draw(st.booleans()):
            value.string_value = draw(st.sampled_from(["10.0.0.1:80", ",,", ""]))
        else:
            value.number_value = 3.0
    return made.SerializeToString()


class _Stream:
    """A stream that remembers what was sent."""

    heard_s = 1.0

    def __init__(self):
        self.here_ended, self.sent, self.connection = False, [], self

    def start(self, block):
        pass

    def send(self, data):
        self.sent.append(data)

    def end(self, block):
        self.here_ended = True


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.one_of(messages(), st.binary(max_size=20))), max_size=15
    )
)
def test_any_messages_leave_a_picker_as_it_was(said):
    async def scene():
        serving = Serving(picker_config(), Log("p", "warning", io.StringIO()))
        node = serving.node
        node.take_endpoints(ends(1, 2, 3))
        timers = len(serving.clock._heap)
        calls = [PickerCall(_Stream(), node) for _ in range(3)]
        for number, content in said:
            if not calls[number].stream.here_ended:
                calls[number].received(grpc_calls.message(content), False)
        for call in calls:
            if not call.stream.here_ended:
                call.received(b"", True)
            call.closed()
        assert (node.in_flight, node.core.open, node.budget.held) == (0, [0, 0, 0], 0)
        live = [each for each in serving.clock._heap if each[2].call is not None]
        assert len(live) == timers
        await serving.stop(0)

    play(scene())


@pytest.mark.parametrize("name", ["in-flight", "power-of-d", "cosmo-next"])
def test_a_method_begins_without_a_fault(name):
    async def scene():
        async with picker(method__use=name) as serving:
            assert serving.node.core.runner.faults == 0

    play(scene())


def test_task_numbers_beyond_31_bits_cost_nothing():
    async def scene():
        async with picker() as serving, Proxy(serving.address) as proxy:
            serving.node.core._numbers = 2**31 + 12345
            for _ in range(5):
                assert len(await proxy.request()) == 3
            await quiet(serving)

    play(scene())


def test_envoys_configuration_is_written_for_a_picker(cosmo, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "picker.toml").write_text(
        'extends = "picker"\n[picker]\nendpoints = "static:10.0.0.1:80,10.0.0.2:80"\n'
    )
    code, _, err = cosmo("live", "config", "--for", "envoy", "--picker", "picker.toml", "--shadow")
    assert code == 0, err
    told = json.loads((tmp_path / "nodes" / "envoy.json").read_text())
    [services, _] = told["static_resources"]["clusters"]
    assert len(services["load_assignment"]["endpoints"][0]["lb_endpoints"]) == 2
    for arguments, why in (
        (["--for", "nginx"], "--for = 'nginx': must be nodes or envoy"),
        (["--for", "envoy", "--picker", "en"], "role = 'en': must be 'picker'"),
        (["--for", "envoy", "--listen", "8080"], "listen = '8080': must look like"),
    ):
        code, _, err = cosmo("live", "config", *arguments)
        assert code == 2
        assert why in err


def test_the_first_endpoints_make_a_site_of_their_own():
    async def scene():
        async with picker("static:10.0.0.1:80 slots=2,10.0.0.2:80 slots=3") as serving:
            core = serving.node.core
            assert core.site.sn.slots.tolist() == [2, 3]
            assert addresses(core.places) == ["1", "2"]
            assert core.runner.site is core.site

    play(scene())
