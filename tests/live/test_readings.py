"""Pages of metrics of other people's servers, as states of service nodes; hostile ones, too."""

import asyncio
import base64
import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosmo import InputError
from cosmo.live.config import load_config
from cosmo.live.orca import NAMED, OrcaLoadReport
from cosmo.live.picker.endpoints import Endpoint
from cosmo.live.readings import load_reports
from cosmo.live.readings.metering import ImplausibleError, Meter, Reading
from cosmo.live.readings.metric_names import DOCUMENTS, load_names
from cosmo.live.readings.pages import Page
from cosmo.live.readings.scraper import FAILED, Scraper
from cosmo.live.readings.states import StatusMaker, state_of
from cosmo.live.realtime import RealClock
from cosmo.live.sites import site_of_node
from cosmo.node import IDLE, LATENCY, REQUESTS, STORAGE, WAIT, WORK
from cosmo.policy.registry import method
from cosmo.scenario.topology import Node
from live.nodes import play, until
from live.services import services, vllm_page

VLLM = """# HELP python_gc_objects_collected_total Objects collected during gc
# TYPE python_gc_objects_collected_total counter
python_gc_objects_collected_total{generation="0"} 8172.0
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a"} 3.0
vllm:num_requests_running{engine="1",model_name="a"} 2.0
vllm:num_requests_running{engine="0",model_name="b"} 100.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="a"} 4.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="a"} 0.25
# TYPE vllm:request_inference_time_seconds histogram
vllm:request_inference_time_seconds_bucket{le="+Inf",model_name="a"} {count}
vllm:request_inference_time_seconds_sum{model_name="a"} {busy}
vllm:request_inference_time_seconds_count{model_name="a"} {count}
# TYPE vllm:e2e_request_latency_seconds histogram
vllm:e2e_request_latency_seconds_bucket{le="+Inf",model_name="a"} {count}
vllm:e2e_request_latency_seconds_sum{model_name="a"} {spent}
vllm:e2e_request_latency_seconds_count{model_name="a"} {count}
"""
TRITON = """# TYPE nv_inference_pending_request_count gauge
nv_inference_pending_request_count{{model="m",version="1"}} {pending}
# TYPE nv_inference_request_success counter
nv_inference_request_success{{model="m",version="1"}} {count}
# TYPE nv_inference_compute_infer_duration_us counter
nv_inference_compute_infer_duration_us{{model="m",version="1"}} {busy}
# TYPE nv_inference_request_duration_us counter
nv_inference_request_duration_us{{model="m",version="1"}} {spent}
"""
RAY = """# TYPE ray_serve_replica_processing_queries gauge
ray_serve_replica_processing_queries{deployment="d",replica="r1"} 2.0
ray_serve_replica_processing_queries{deployment="d",replica="r2"} 1.0
ray_serve_replica_processing_queries{deployment="other",replica="r3"} 9.0
# TYPE ray_serve_deployment_queued_queries gauge
ray_serve_deployment_queued_queries{deployment="d",handle="h"} 5.0
"""
ENVOY = """# TYPE envoy_cluster_upstream_rq_active gauge
envoy_cluster_upstream_rq_active{envoy_cluster_name="local"} 6
envoy_cluster_upstream_rq_active{envoy_cluster_name="else"} 50
# TYPE envoy_cluster_upstream_rq_pending_active gauge
envoy_cluster_upstream_rq_pending_active{envoy_cluster_name="local"} 1
"""


def filled(page, **numbers):
    for name, value in numbers.items():
        page = page.replace(f"{{{name}}}", str(value))
    return page


def site(slots=4, storage=1000.0):
    node = Node(slots=slots, cycles_per_ms=1.0, storage_bytes=storage, queue_capacity=100)
    shape = Endpoint("127.0.0.1:1", node, 1000.0, 1000.0)
    return site_of_node(load_config("picker"), [shape])


def test_vllm_requests_are_added_up_over_engines_and_selected_by_label():
    meter = Meter(load_names("vllm"), {"model_name": "a"}, 8)
    first = meter.read(filled(VLLM, count=10, busy=5.0, spent=7.0), 0.0)
    assert (first.running, first.waiting, first.storage_share) == (5.0, 4.0, 0.25)
    assert math.isnan(first.service_ms)  # nothing has finished between two readings yet
    second = meter.read(filled(VLLM, count=14, busy=6.0, spent=10.0), 50.0)
    assert second.service_ms == pytest.approx(250.0)  # a second for four requests
    assert second.latency_ms == pytest.approx(750.0)


def test_a_counter_that_starts_again_is_a_new_process_and_no_negative_time():
    meter = Meter(load_names("vllm"), {"model_name": "a"}, 8)
    meter.read(filled(VLLM, count=10, busy=5.0, spent=7.0), 0.0)
    meter.read(filled(VLLM, count=14, busy=6.0, spent=10.0), 50.0)
    again = meter.read(filled(VLLM, count=1, busy=0.1, spent=0.1), 100.0)
    assert again.service_ms == pytest.approx(250.0)


def test_triton_s_running_requests_follow_from_the_time_that_they_take():
    meter = Meter(load_names("triton"), {}, 8)
    page = TRITON.format
    meter.read(page(pending=0, count=10, busy=0, spent=0), 1000.0)
    found = meter.read(page(pending=0, count=30, busy=3_000_000, spent=4_000_000), 2000.0)
    assert found.running == pytest.approx(3.0)  # three seconds of work in one
    assert (found.service_ms, found.latency_ms) == (pytest.approx(150.0), pytest.approx(200.0))
    waits = meter.read(page(pending=2, count=30, busy=3_000_000, spent=4_000_000), 2050.0)
    assert (waits.running, waits.waiting) == (8.0, 2.0)  # nothing waits while a slot is idle


def test_ray_serve_s_replicas_of_one_deployment_are_one_service():
    found = Meter(load_names("ray-serve"), {"deployment": "d"}, 4).read(RAY, 0.0)
    assert (found.running, found.waiting) == (3.0, 5.0)


def test_an_envoy_cluster_s_requests_beyond_the_slots_wait():
    found = Meter(load_names("envoy"), {"envoy_cluster_name": "local"}, 4).read(ENVOY, 0.0)
    assert (found.running, found.waiting) == (6.0, 1.0)
    state = state_of(found, site(slots=4), 0)
    assert (state[IDLE], state[REQUESTS]) == (0.0, 7.0)


def test_the_state_of_a_reading_worked_out_by_hand():
    state = state_of(Reading(4.0, 2.0, 0.25, 100.0, 130.0), site(slots=4, storage=1000.0), 0)
    assert state[IDLE] == 0.0
    assert state[WAIT] == pytest.approx(50.0)  # two requests at four in 100 ms
    assert state[WORK] == pytest.approx(600.0)
    assert state[STORAGE] == pytest.approx(750.0)
    assert (state[REQUESTS], state[LATENCY]) == (6.0, 130.0)
    idle = state_of(Reading(1.0, 0.0, math.nan, math.nan, math.nan), site(slots=4), 0)
    assert idle[IDLE] == 3.0
    assert idle[WORK] == pytest.approx(site().tasks.mean_cycles)


def test_each_request_takes_the_least_storage_where_a_service_does_not_say():
    here = site(slots=4, storage=1e6)
    state = state_of(Reading(2.0, 1.0), here, 0)
    assert state[STORAGE] == pytest.approx(1e6 - 3.0 * here.reservation_floor_bytes)
    assert 0.0 < state[STORAGE] < 1e6


@pytest.mark.parametrize(
    ("page", "why"),
    [
        (vllm_page("NaN"), "nan: must be from 0"),
        (vllm_page(-1), "-1: must be from 0"),
        (vllm_page("+Inf"), "inf: must be from 0"),
        (vllm_page(1e9), "must be from 0 to 1e"),
        (vllm_page(1, "NaN"), "waiting = nan"),
        (vllm_page("many"), "no metrics"),
        ("", "vllm:num_requests_running: must be on the page"),
        ("<html>not here</html>", "must be on the page"),
        (vllm_page(1).replace("running gauge", "running counter"), "must be a gauge"),
        (vllm_page(1) * 2 + 'vllm:num_requests_running{a="b"} NaN\n', "nan"),
        ('vllm:num_requests_running{a="b\n', "no metrics"),
        ("vllm:num_requests_running 1\n" * 1001, "1001 samples"),
        ("vllm:num_requests_running{" + 'a="b",' * 300_000 + "} 1\n", "more than 1000 characters"),
    ],
)
def test_a_page_that_cannot_be_true_says_why_in_a_line(page, why):
    with pytest.raises(ImplausibleError, match=why) as caught:
        Meter(load_names("vllm"), {}, 4).read(page, 0.0)
    assert "\n" not in str(caught.value)


def test_what_is_not_asked_for_is_not_even_parsed():
    noise = 'other{le="broken 5\n' * 1000
    assert Meter(load_names("vllm"), {}, 4).read(noise + vllm_page(2, 1), 0.0)[:2] == (2.0, 1.0)


@pytest.mark.parametrize("name", DOCUMENTS.preset_names())
def test_every_preset_is_complete(name):
    names = load_names(name)
    assert names.description
    assert names.path.startswith("/")


def test_names_of_one_s_own_come_from_a_file(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('running = ["my_requests"]\npath = "/stats"\n')
    assert Meter(load_names(str(file)), {}, 2).read("my_requests 2\n", 0.0).running == 2.0
    file = tmp_path / "bad.toml"
    file.write_text('waiting = ["my_queue"]\n')
    with pytest.raises(InputError, match="running: must name a metric"):
        load_names(str(file))
    with pytest.raises(InputError, match="no such preset or file"):
        load_names("vlm")


@pytest.mark.parametrize("use", ["lsq", "power-of-d", "aov-gap", "in-flight:hot_ms=50", "jbt"])
def test_any_method_s_statuses_can_be_made_of_a_reading(use):
    made, here = method(use), site(storage=1e9)
    busy, idle = (
        StatusMaker(made, here).numbers(0, state_of(Reading(running, waiting), here, 0), 0.0)
        for running, waiting in ((4.0, 90.0), (0.0, 0.0))
    )
    assert len(busy) == len(idle) == made.carries
    assert busy != idle


WORDS = st.sampled_from(
    ["vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc", "{", "}",
     'engine="0"', "# TYPE ", " gauge", " counter", " histogram", " ", "\n", "1", "-1", "1e999",
     "NaN", "_total", "_bucket", 'le="+Inf"', "0.5", ",", "=", '"', "\\"]
)  # fmt: skip


@given(st.lists(st.one_of(WORDS, st.text(max_size=5)), max_size=40).map("".join))
def test_whatever_a_page_says_is_a_plausible_reading_or_refused(page):
    try:
        found = Meter(load_names("vllm"), {}, 4).read(page, 0.0)
    except ImplausibleError:
        return
    state = state_of(found, site(), 0)
    assert np.isfinite(state).all()
    assert (state >= 0.0).all()
    assert state[IDLE] <= 4.0


@given(
    st.sampled_from([b"TEXT ", b"JSON ", b"BIN ", b""]),
    st.one_of(
        st.binary(max_size=60),
        st.binary(max_size=40).map(base64.b64encode),
        st.recursive(
            st.one_of(
                st.none(),
                st.floats(),
                st.text(max_size=5),
                st.sampled_from([1, 10**400, -(10**400)]),
            ),
            lambda inner: st.dictionaries(
                st.sampled_from(["named_metrics", "cpu_utilization", "num_requests_waiting"]), inner
            ),
        ).map(lambda told: json.dumps(told).encode()),
    ),
)
def test_whatever_a_load_report_says_is_a_plausible_reading_or_refused(form, content):
    try:
        report = load_reports.report_of({b"endpoint-load-metrics": form + content})
        told = load_reports.reported_state(report)
        reading = load_reports.reading_of(report, load_names("vllm"), 4, 1)
    except ImplausibleError:
        return
    assert told is None or np.isfinite(told).all()
    assert reading is None or (state_of(reading, site(), 0) >= 0.0).all()


# Pages over HTTP.


async def fetched(raw, most=1000):
    async with services(1) as [service]:
        service.raw = raw
        page = Page(f"http://{service.address}/metrics", most)
        try:
            return await page.text()
        finally:
            page.close()


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\nabcde",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabcde",
    ],
)
def test_a_page_is_read_however_it_is_framed(raw):
    async def scene():
        assert await fetched(raw) == "abcde"

    play(scene())


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1001, "more than 1000 bytes"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 999999999999\r\n\r\n" + b"x" * 2000, "more than"),
        (b"HTTP/1.1 503 Busy\r\n\r\n", "status 503"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc", "not whole"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: -9\r\n\r\nabc", "not whole"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", "not whole"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "no HTTP"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 100_000 + b"\r\n\r\n", "too long"),
        (b"", "closed"),
    ],
)
def test_an_answer_that_is_no_page_is_an_error_in_a_line(raw, why):
    async def scene():
        with pytest.raises(OSError, match=why):
            await fetched(raw)

    play(scene())


def test_pages_are_read_over_one_connection_and_over_a_new_one_when_it_is_gone():
    async def scene():
        async with services(1) as [service]:
            page = Page(f"http://{service.address}/metrics", 1000)
            service.page = "one"
            assert await page.text() == "one"
            first = page._open
            assert await page.text() == "one"
            assert page._open is first
            service.raw = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 3\r\n\r\ntwo"
            assert await page.text() == "two"
            service.raw = None
            assert await page.text() == "one"
            page.close()

    play(scene())


# Load reports.


def binary(**fields):
    return base64.b64encode(OrcaLoadReport(**fields).SerializeToString())


@pytest.mark.parametrize(
    "headers",
    [
        {b"endpoint-load-metrics": b"TEXT named_metrics.kv_cache_usage_perc=0.4, "
                                   b"named_metrics.num_requests_waiting=3"},
        {b"endpoint-load-metrics": b'JSON {"named_metrics": {"kv_cache_usage_perc": 0.4, '
                                   b'"num_requests_waiting": 3}}'},
        {b"endpoint-load-metrics": b"BIN " + binary(
            named_metrics={"kv_cache_usage_perc": 0.4, "num_requests_waiting": 3})},
        {b"endpoint-load-metrics-bin": binary(
            named_metrics={"kv_cache_usage_perc": 0.4, "num_requests_waiting": 3}).rstrip(b"=")},
    ],
)  # fmt: skip
def test_a_load_report_says_the_same_in_every_form(headers):
    report = load_reports.report_of(headers)
    reading = load_reports.reading_of(report, load_names("vllm"), 4, 1)
    assert (reading.running, reading.waiting) == (4.0, 3.0)  # what waits, waits for slots
    assert reading.storage_share == pytest.approx(0.4)


def test_a_report_without_named_metrics_goes_by_utilization():
    report = load_reports.report_of({b"endpoint-load-metrics": b"TEXT application_utilization=1.5"})
    reading = load_reports.reading_of(report, load_names("vllm"), 4, 0)
    assert (reading.running, reading.waiting) == (4.0, 2.0)
    assert load_reports.report_of({b":status": b"200"}) is None
    nothing = load_reports.report_of({b"endpoint-load-metrics": b"TEXT eps=0.0"})
    assert load_reports.reading_of(nothing, load_names("vllm"), 4, 0) is None


def test_a_report_of_a_service_node_is_its_state():
    state = dict.fromkeys(NAMED, 0.0) | {"idle_slots": 2.0, "work_cycles": 70.0, "tasks": 5.0}
    report = load_reports.report_of(
        {b"endpoint-load-metrics-bin": binary(
            named_metrics={f"cosmo.{name}": value for name, value in state.items()})}
    )  # fmt: skip
    told = load_reports.reported_state(report)
    assert np.array(told)[[IDLE, WORK, REQUESTS]].tolist() == [2.0, 70.0, 5.0]
    del report["named_metrics.cosmo.tasks"]
    with pytest.raises(ImplausibleError, match="all of cosmo's"):
        load_reports.reported_state(report)


@pytest.mark.parametrize(
    "content",
    [
        b"TEXT cpu_utilization=NaN",
        b"TEXT cpu_utilization=-1",
        b"TEXT cpu_utilization",
        b"TEXT \xff=1",
        b'JSON {"cpu_utilization": 1e400}',
        b'JSON {"named_metrics": [1, 2]}',
        b'JSON {"named_metrics": {"a": "b"}}',
        b"JSON " + b"[" * 10_000,
        b"JSON 5",
        b"BIN @@@@",
        b"BIN AAAA",
        b"YAML a: b",
        b"",
        b"TEXT " + b"a=1," * 5000,
        b"TEXT " + b",".join(b"a%d=1" % k for k in range(300)),
    ],
)
def test_a_load_report_that_cannot_be_read_is_implausible(content):
    with pytest.raises(ImplausibleError):
        load_reports.report_of({b"endpoint-load-metrics": content})


@pytest.mark.parametrize("part", ["page", "meter", "heard"])
def test_whatever_goes_wrong_with_a_page_the_next_one_is_asked_for(part):
    async def scene():
        clock, pages, results, readings = RealClock(asyncio.get_running_loop()), [], [], []

        def fail_first(whose):
            if whose == part and len(pages) == 1:
                raise RuntimeError("nobody has thought of this")

        class Source:
            async def text(self):
                pages.append(0)
                fail_first("page")
                return ""

            def close(self):
                pass

        def read(text, made_ms):
            fail_first("meter")
            return Reading(1.0)

        def heard(reading, made_ms):
            fail_first("heard")
            readings.append(reading)

        scraper = Scraper(Source(), SimpleNamespace(read=read), clock, 5.0, 1e6)
        scraper.begin(heard, lambda result, why: results.append(result), lambda: None)
        await until(lambda: readings, "a page was read")
        assert results[0] == FAILED
        await scraper.close()
        clock.close()

    play(scene())
