"""A picker that hears of its endpoints' load: by scraping, from agents, on answers."""

import asyncio
import io
import math
import re
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import grpc
import pytest

from cosmo import InputError
from cosmo.live import wire
from cosmo.live.config import DOCUMENTS, changed_config, load_config
from cosmo.live.daemon import reload
from cosmo.live.logs import Log
from cosmo.live.peers import channel_of
from cosmo.live.readings import metric_names
from cosmo.live.serving import Serving
from cosmo.live.top import parsed
from live.certificates import Authority
from live.nodes import play, until
from live.picker_scenes import Proxy, answered, headers, picker, picker_config, quiet
from live.services import services, vllm_page

LSQ = {"method__use": "lsq:interval_ms=20", "expected__cycles": [1.0, 100.0]}
SOON = {"picker__scrape_ms": 5.0}


def agent_config(service, **fields):
    given = {name.replace("__", "."): value for name, value in fields.items()}
    told = {"listen": "127.0.0.1:0", "agent.url": f"http://{service.address}/metrics",
            "agent.read_ms": 5.0, "node.slots": 4, "method.use": "lsq:interval_ms=20",
            "behaviour.idle_ms": 1.0, "behaviour.most_updates_per_s": 1000.0}  # fmt: skip
    return changed_config(load_config("agent"), {**told, **given})


@asynccontextmanager
async def agents(made, **fields):
    """An agent beside each service."""
    async with AsyncExitStack() as stack:
        found = []
        for service in made:
            serving = Serving(agent_config(service, **fields), Log("a", "info", io.StringIO()))
            await serving.start()
            stack.push_async_callback(serving.stop, 0)
            found.append(serving)
        yield found


def listed(made, *words):
    """Endpoints with four slots each, and what else is said of each."""
    more = [f" {' '.join(each)}" if each else "" for each in zip(*words, strict=True)]
    more = more or [""] * len(made)
    return "static:" + ",".join(
        f"{each.address} slots=4{word}" for each, word in zip(made, more, strict=True)
    )


def cache(serving, service):
    return serving.node.core.caches[serving.node._columns[service.address]]


def knows(serving, service, requests):
    """Whether the picker takes an endpoint to have so many requests."""
    found = cache(serving, service)
    return found.source_ms == found.source_ms and found.numbers.tolist() == [requests]


def counted(serving, name, **labels):
    return serving.node.counters.get(name, **labels)


@pytest.mark.parametrize("inputs", ["scrape", "push"])
def test_requests_go_to_the_service_that_has_fewest_by_its_own_metrics(inputs):
    async def scene():
        async with AsyncExitStack() as stack:
            made = await stack.enter_async_context(services(3))
            told, words = {**LSQ, **SOON, "picker__inputs": inputs}, []
            if inputs == "push":
                beside = await stack.enter_async_context(agents(made))
                words = [[f"push={each.port}" for each in beside]]
            serving = await stack.enter_async_context(picker(listed(made, *words), **told))
            proxy = await stack.enter_async_context(Proxy(serving.address))
            for idle in range(3):
                for number, each in enumerate(made):
                    each.page = vllm_page(4, 0 if number == idle else 30)
                for number, each in enumerate(made):
                    known = 4.0 if number == idle else 34.0
                    await until(lambda e=each, k=known: knows(serving, e, k), "it is known")
                for _ in range(3):
                    assert (await proxy.request())[0] == made[idle].address
                await quiet(serving)
            samples = parsed(serving.admin.text())
            ages = [each.value for each in samples if each.name == "cosmo_status_age_seconds"]
            assert len(ages) == 3
            assert max(ages) < 60.0

    play(scene())


@pytest.mark.parametrize(
    ("page", "result"),
    [
        (vllm_page("NaN"), "implausible"),
        (vllm_page(-3), "implausible"),
        ("nothing of the kind", "implausible"),
        (None, "failed"),
    ],
)
def test_an_endpoint_with_a_broken_page_is_silent_and_still_served(page, result):
    async def scene():
        async with services(2) as made, picker(
            listed(made), **LSQ, **SOON, picker__inputs="scrape", behaviour__silent_ms=50.0,
            behaviour__heartbeat_ms=50.0,
        ) as serving, Proxy(serving.address) as proxy:  # fmt: skip
            for each in made:
                each.page = vllm_page(4, 30)
            await until(lambda: all(knows(serving, e, 34.0) for e in made), "both are known")
            if page is None:
                made[0].answers.clear()  # slower than anybody waits
            else:
                made[0].page = page
            await until(lambda: math.isnan(cache(serving, made[0]).source_ms), "it is silent")
            name = made[0].address
            assert counted(serving, "scrapes_total", sn=name, result=result) >= 1
            implausible = counted(serving, "implausible_messages_total", sn=name)
            assert (implausible >= 1) == (result != "failed")
            # Nothing is known of it, so that it is the better choice by own requests alone.
            assert (await proxy.request())[0] == name
            made[0].answers.set()
            made[0].page = vllm_page(4, 1)
            await until(lambda: knows(serving, made[0], 5.0), "it is heard of again")

    play(scene())


def test_a_huge_page_is_cut_off_and_counted():
    async def scene():
        async with services(1) as [service]:
            service.raw = b"HTTP/1.1 200 OK\r\n\r\n" + b"vllm:num_requests_running 1\n" * 400_000
            told = {**LSQ, **SOON, "picker__inputs": "scrape"}
            async with picker(listed([service]), **told) as serving:
                failed = {"sn": service.address, "result": "failed"}
                await until(lambda: counted(serving, "scrapes_total", **failed), "it is too long")
                assert math.isnan(cache(serving, service).source_ms)

    play(scene())


def test_inputs_are_mixed_and_the_newest_status_counts():
    async def scene():
        async with services(2) as made, agents(made[:1]) as [agent]:
            words = [[f"push={agent.port}", f"scrape={made[1].port}"]]
            told = {**LSQ, **SOON, "picker__inputs": ["scrape", "push"]}
            async with picker(listed(made, *words), **told) as serving:
                for each in made:
                    each.page = vllm_page(2)
                await until(lambda: all(knows(serving, e, 2.0) for e in made), "both are known")
                first, second = (each.address for each in made)
                assert counted(serving, "scrapes_total", sn=first, result="read") == 0
                assert counted(serving, "scrapes_total", sn=second, result="read") > 0
                core, column = serving.node.core, serving.node._columns[second]
                core.heard(column, serving.clock.now() - 10_000.0, [99.0])  # of before
                assert core.caches[column].numbers.tolist() == [2.0]

    play(scene())


def test_an_agent_that_is_not_there_does_not_wipe_out_what_is_scraped():
    async def scene():
        async with services(1) as [service]:
            words = [[f"scrape={service.port} push=1"]]
            told = {**LSQ, "picker__inputs": ["scrape", "push"], "picker__scrape_ms": 10_000.0}
            async with picker(listed([service], *words), **told) as serving:
                core, silenced = serving.node.core, []
                before = core.silence
                core.silence = lambda sn, silent: (silenced.append(sn), before(sn, silent))
                core.heard(0, serving.clock.now(), [3.0])
                await until(lambda: len(silenced) > 2, "the agent was called again and again")
                assert knows(serving, service, 3.0)

    play(scene())


# Agents.


def test_an_agent_tells_only_when_its_updater_decides_to():
    async def scene():
        bits = {"method__use": "in-flight:hot_ms=100", "behaviour__refresh_ms": 1e6}
        async with (
            services(1) as [service],
            agents([service], **bits) as [agent],
            picker(
                listed([service], [f"push={agent.port}"]), picker__inputs="push", **bits
            ) as serving,
        ):
            await until(lambda: serving.node.inputs._heard[0].agent.connected, "they have met")
            until_read = counted(agent, "metric_reads_total", result="read") + 20
            await until(
                lambda: counted(agent, "metric_reads_total", result="read") > until_read, "20 more"
            )
            assert agent.node.core.updates == 0  # nothing to tell: it is not hot
            service.page = vllm_page(4, 100)
            await until(lambda: cache(serving, service).numbers.tolist() == [0.0]
                        and cache(serving, service).sequence >= 0, "it is hot")  # fmt: skip
            sent = agent.node.core.updates
            read = counted(agent, "metric_reads_total", result="read")
            await until(
                lambda: counted(agent, "metric_reads_total", result="read") > read + 20, "20 more"
            )
            assert agent.node.core.updates == sent  # it still is

    play(scene())


def test_an_agent_whose_service_cannot_be_read_is_silent_and_comes_back():
    async def scene():
        calm = {"behaviour__silent_ms": 100.0}
        async with (
            services(1) as [service],
            agents([service], **calm) as [agent],
            picker(
                listed([service], [f"push={agent.port}"]), **LSQ, picker__inputs="push"
            ) as serving,
            Proxy(serving.address) as proxy,
        ):
            service.page = vllm_page(3)
            await until(lambda: knows(serving, service, 3.0), "it is known")
            service.page = vllm_page("NaN")
            await until(lambda: math.isnan(cache(serving, service).source_ms), "it is silent")
            assert counted(agent, "metric_reads_total", result="implausible") >= 1
            assert await proxy.request() == [service.address]
            service.page = vllm_page(2)
            await until(lambda: knows(serving, service, 2.0), "it is heard of again")

    play(scene())


async def refused(agent, name, **fields):
    """The status by which an agent turns a picker of this name away."""
    config = picker_config(name=name, **fields)
    async with channel_of(config, agent.address, "agents") as channel:
        call = channel.stream_stream(
            wire.WATCH, wire.FromEn.SerializeToString, wire.FromSn.FromString
        )()
        await call.write(wire.FromEn(hello=wire.Hello(boot=1, name=name, version=1, carries=1)))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call.read()
        return caught.value.code()


def test_an_agent_takes_no_picker_before_it_can_read_its_service():
    async def scene():
        async with services(1) as [service]:
            service.page = "not ready"
            async with agents([service]) as [agent]:
                assert await refused(agent, "a") == grpc.StatusCode.UNAVAILABLE

    play(scene())


def test_a_status_is_as_old_as_the_reading_that_it_was_made_of():
    async def scene():
        calm = {"behaviour__refresh_ms": 0.0, "behaviour__silent_ms": 60_000.0}
        async with (
            services(1) as [service],
            agents([service], **calm) as [agent],
            picker(
                listed([service], [f"push={agent.port}"]), **LSQ, picker__inputs="push"
            ) as serving,
        ):
            await until(lambda: knows(serving, service, 0.0), "it is known")
            [peer] = [each for each in agent.node.core.peers if each.here]
            await until(lambda: peer.acknowledged_ms > 0.0, "the agent knows that")
            service.answers.clear()  # no further reading
            asked = service.asked
            await until(lambda: service.asked > asked, "the next one hangs")
            since_ms, sent = serving.clock.now(), agent.node.core.updates
            await until(lambda: serving.clock.now() > since_ms + 1000.0, "a second has passed")
            assert agent.node.core.updates > sent + 3
            assert cache(serving, service).source_ms < since_ms + 500.0

    play(scene())


def test_pickers_come_by_any_name_up_to_as_many_as_the_agent_expects():
    async def scene():
        async with services(1) as [service], agents([service], agent__pickers=2) as [agent]:
            one = {**LSQ, "picker__inputs": "push"}
            where = listed([service], [f"push={agent.port}"])
            async with picker(where, **one, name="a") as first:
                async with picker(where, **one, name="b") as second:
                    for each in (first, second):
                        await until(lambda e=each: knows(e, service, 0.0), "it is known")
                    assert await refused(agent, "c") == grpc.StatusCode.PERMISSION_DENIED
                async with picker(where, **one, name="c") as third:
                    await until(lambda: knows(third, service, 0.0), "it has the place of another")

    play(scene())


def test_an_agent_with_implausible_messages_is_not_believed_and_its_service_is_still_used():
    async def scene():
        async with (
            services(1) as [service],
            agents([service]) as [agent],
            picker(
                listed([service], [f"push={agent.port}"]), **LSQ, picker__inputs="push"
            ) as serving,
            Proxy(serving.address) as proxy,
        ):
            await until(lambda: knows(serving, service, 0.0), "it is known")
            [out] = [each.out for each in agent.node._states if each.out is not None]
            out.put_nowait(wire.FromSn(status=wire.Status(sequence=10**5, numbers=[float("nan")])))
            counter, sn = "implausible_messages_total", service.address
            await until(lambda: counted(serving, counter, sn=sn) == 1, "it is implausible")
            await until(
                lambda: math.isnan(cache(serving, service).source_ms), "nothing is believed of it"
            )
            assert await proxy.request() == [service.address]

    play(scene())


def test_an_agent_runs_no_task_and_needs_a_method_that_sends():
    async def scene():
        async with services(1) as [service]:
            for use, why in (("in-flight", "sends no statuses"), ("piggyback", "ride on results")):
                with pytest.raises(InputError, match=why):
                    async with agents([service], method__use=use):
                        pass
            async with agents([service]) as [agent]:
                assert agent.node.handlers()[0].service_name() == "cosmo.live.v1.Sn"
                assert agent.node.in_flight == 0

    play(scene())


def test_an_agent_and_a_picker_with_certificates(tmp_path):
    tls = Authority(tmp_path / "ca", "authority").fields

    async def scene():
        async with services(1) as [service], agents([service], **tls("agents")) as [agent]:
            where, one = (
                listed([service], [f"push={agent.port}"]),
                {**LSQ, "picker__inputs": "push"},
            )
            named = {**one, "picker__agent_name": "agents"}
            async with picker(where, **named, **tls("picker0")) as serving:
                await until(lambda: knows(serving, service, 0.0), "it is known")
            denied = await refused(agent, "else", **tls("picker0"))
            assert denied == grpc.StatusCode.PERMISSION_DENIED

    play(scene())


def test_pickers_that_share_a_name_are_said_once():
    async def scene():
        async with services(1) as [service], agents([service], agent__pickers=2) as [agent]:
            where = listed([service], [f"push={agent.port}"])
            told = {**LSQ, "picker__inputs": "push", "name": "twin"}
            log, line = agent.log._stream, "several nodes have one name, and take turns here"
            async with picker(where, **told) as serving:
                await until(lambda: knows(serving, service, 0.0), "the first is told")
            async with picker(where, **told):  # a restart is none
                await until(lambda: log.getvalue().count("en connected") >= 2, "another start")
                assert line not in log.getvalue()
                async with picker(where, **told):
                    await until(lambda: log.getvalue().count("en connected") > 6, "they take turns")
            assert log.getvalue().count(line) == 1

    play(scene())


# Answers.


def test_load_reports_on_answers_are_statuses_that_ride():
    async def scene():
        async with (
            picker("static:10.0.0.1:80 slots=4", **LSQ) as serving,
            Proxy(serving.address) as proxy,
        ):
            for report, known in (
                ("TEXT named_metrics.num_requests_waiting=3", 7.0),
                ("JSON {\"application_utilization\": 0.5}", 2.0),
                ("TEXT named_metrics.num_requests_waiting=NaN", 2.0),  # not believed
            ):  # fmt: skip
                stream, _ = await proxy.ask(headers())
                answer = answered("10.0.0.1:80")
                answer.response_headers.headers.headers.add(
                    key="endpoint-load-metrics", raw_value=report.encode()
                )
                await stream.write(answer)
                await stream.read()
                await stream.done_writing()
                assert serving.node.core.caches[0].numbers.tolist() == [known]
            await quiet(serving)
            for result, count in (("read", 2), ("implausible", 1)):
                found = {"sn": "10.0.0.1:80", "result": result}
                assert counted(serving, "load_reports_total", **found) == count

    play(scene())


def test_load_reports_are_heard_of_whomever_an_observing_proxy_has_chosen():
    async def scene():
        both = "10.0.0.1:80", "10.0.0.2:80"
        where = ",".join(f"{each} slots=4" for each in both)
        async with picker(f"static:{where}", **LSQ) as serving, Proxy(serving.address) as proxy:
            for address, waiting in zip(both, (3, 5), strict=True):
                answer = answered(address)
                answer.response_headers.headers.headers.add(
                    key="endpoint-load-metrics",
                    raw_value=f"TEXT named_metrics.num_requests_waiting={waiting}".encode(),
                )
                await proxy.show(answer)
            await quiet(serving)
            for address, requests in zip(both, (7.0, 9.0), strict=True):
                assert cache(serving, SimpleNamespace(address=address)).numbers[0] == requests

    play(scene())


# Files.


def test_inputs_need_a_method_that_goes_by_them():
    async def scene():
        with pytest.raises(
            InputError, match=r"picker\.inputs: method\.use = 'in-flight' goes by no"
        ):
            async with picker(picker__inputs="scrape"):
                pass
        with pytest.raises(InputError, match="metrics = 'vlm': no such preset"):
            async with picker(picker__metrics="vlm"):
                pass
        with pytest.raises(InputError, match="must be IP:PORT"):
            async with picker("static:10.0.0.1:80 push=70000"):
                pass

    play(scene())


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("agent.url", "", "agent.url: must be given for an agent"),
        ("agent.url", "ftp://x", r"agent\.url"),
        ("agent.url", "http://x:99999/", r"agent\.url"),
        ("agent.url", "http://:80/", r"agent\.url"),
        ("agent.url", "http://[::1/", r"agent\.url"),
        ("agent.read_ms", 1.0, r"agent\.read_ms"),
        ("agent.pickers", 0, r"agent\.pickers"),
        ("picker.inputs", ["none"], r"picker\.inputs"),
        ("picker.scrape_port", 65536, r"picker\.scrape_port"),
    ],
)
def test_what_an_agent_s_file_must_not_say(field, value, why):
    with pytest.raises(InputError, match=why):
        changed_config(load_config("agent"), {field: value})


def test_the_files_of_the_page_for_operators_are_files(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "tasks" / "behind_envoy.md").read_text()
    found = dict(re.findall(r"^```toml\n# (\w+\.toml)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    assert len(found) == 6
    for name, text in found.items():
        (tmp_path / name).write_text(text)
        documents = DOCUMENTS if "extends" in text else metric_names.DOCUMENTS
        documents.load(tmp_path / name)


def test_endpoints_that_go_take_their_statuses_with_them():
    async def scene():
        async with services(2) as made:
            told = {**LSQ, **SOON, "picker__inputs": "scrape"}
            async with picker(listed(made), **told) as serving:
                for each in made:
                    each.page = vllm_page(2)
                await until(lambda: all(knows(serving, e, 2.0) for e in made), "both are known")
                node = serving.node
                node.take_endpoints([each.endpoint for each in node.core.places[1:]])
                gone = made[0].asked
                assert list(node.inputs._heard) == [1]
                assert math.isnan(node.core.caches[0].source_ms) or not node.core.is_open(0)
                await until(lambda: made[1].asked > 3, "the other is still read")
                assert made[0].asked <= gone + 1
                assert f'sn="{made[0].address}"' not in serving.admin.text()

    play(scene())


def test_endpoints_and_what_is_asked_of_them_can_change_while_a_picker_runs():
    async def scene():
        async with (
            services(2) as made,
            picker(listed(made)) as serving,
            Proxy(serving.address) as proxy,
        ):
            use = {"method.use": LSQ["method__use"]}
            scraped = {**use, "picker.inputs": "scrape", "picker.scrape_ms": 5.0}
            assert await proxy.request()  # in-flight
            made[0].page, made[1].page = vllm_page(9), vllm_page(1)
            changed = changed_config(serving.config, scraped)
            reload(serving, lambda: changed)
            assert serving.config == changed
            await until(lambda: all(map(math.isfinite, ages(serving, made))), "both are read")
            assert (await proxy.request())[0] == made[1].address
            for fields, why in (
                ({"picker.metrics": "vlm"}, "metrics = 'vlm': no such preset"),
                ({"picker.endpoints": "eds:x"}, "must look like HOST:PORT/CLUSTER"),
                ({"picker.ranked": 1, "method.use": "in-flight"}, "goes by no statuses"),
            ):
                wrong = changed_config(changed, fields)
                reload(serving, lambda wrong=wrong: wrong)
                assert why in serving.log._stream.getvalue()
            assert serving.config == changed
            made[0].page = vllm_page(3)
            await until(lambda: knows(serving, made[0], 3.0), "it is still read")
            one = changed_config(changed, {"picker.endpoints": listed(made[:1])})
            reload(serving, lambda: one)
            await until(lambda: list(serving.node.inputs._heard) == [0], "one is left")
            assert await proxy.request() == [made[0].address]
            unheard = {"picker.inputs": "none", "method.use": "in-flight"}
            reload(serving, lambda: changed_config(one, unheard))
            await until(lambda: math.isnan(cache(serving, made[0]).source_ms), "it is forgotten")
            gone = made[0].asked
            await asyncio.sleep(0.05)
            assert made[0].asked <= gone + 1

    play(scene())


def test_what_agents_have_said_stays_if_something_else_of_the_table_changes():
    async def scene():
        async with (
            services(1) as made,
            agents(made) as [agent],
            picker(listed(made, [f"push={agent.port}"]), **LSQ, picker__inputs="push") as serving,
        ):
            await until(lambda: knows(serving, made[0], 0.0), "it is known")
            changed = changed_config(serving.config, {"picker.ranked": 1, "picker.shed": True})
            reload(serving, lambda: changed)
            assert serving.config == changed
            assert knows(serving, made[0], 0.0)
            renamed = changed_config(changed, {"picker.agent_name": "agents"})
            reload(serving, lambda: renamed)  # by certificates, which are for another channel
            assert not knows(serving, made[0], 0.0)
            await until(lambda: knows(serving, made[0], 0.0), "it is heard again")
            assert serving.log._stream.getvalue().count("sn connected") == 2

    play(scene())


def ages(serving, made):
    return [cache(serving, each).source_ms for each in made]


def test_a_picker_that_went_by_no_statuses_can_change_to_a_method_that_does():
    async def scene():
        async with services(2) as made, AsyncExitStack() as stack:
            where = listed(made, [f"scrape={each.port}" for each in made])
            serving = await stack.enter_async_context(picker(where, **SOON))
            proxy = await stack.enter_async_context(Proxy(serving.address))
            assert await proxy.request()
            assert not any(each.asked for each in made)  # in-flight
            changed = changed_config(
                serving.config, {name.replace("__", "."): value for name, value in LSQ.items()}
            )
            reload(serving, lambda: changed)
            made[0].page = vllm_page(9)
            await until(lambda: knows(serving, made[0], 9.0), "it is read")
            assert (await proxy.request())[0] == made[1].address
            again = changed_config(changed, {"method.use": "power-of-d:numbers=4"})
            reload(serving, lambda: again)
            assert "its statuses have 4 numbers, and the other nodes expect 1" in (
                serving.log._stream.getvalue()
            )
            assert serving.config.method.use == changed.method.use

    play(scene())
