"""The Helm chart and the manifests beside it fit the daemons that they run."""

import re
from pathlib import Path

import pytest
import yaml

import cosmo
from cosmo.live.config import load_config
from cosmo.live.picker import kubernetes
from live.charts import rendered
from live.nodes import play
from live.picker_scenes import picker

EXAMPLES = Path(__file__).parents[2] / "examples" / "live"
CHART = EXAMPLES / "helm"
EN = 'extends = "en"\nlisten = "0.0.0.0:7100"\nadmin = "0.0.0.0:7300"\n'


def kinds(documents):
    return {each["kind"]: each for each in documents}


def config_of(documents, file, tmp_path):
    text = kinds(documents)["ConfigMap"]["data"][file]
    (tmp_path / file).write_text(text)
    return load_config(tmp_path / file)


@pytest.mark.parametrize(
    ("values", "endpoints"),
    [
        ({}, "kubernetes:shop/web:8000"),
        ({"picker": {"service": "api", "servicePort": 80}}, "kubernetes:shop/api:80"),
        ({"picker": {"inferencePool": "models"}}, "inferencepool:shop/models"),
    ],
)
def test_the_pickers_file_is_one_and_names_what_the_values_say(values, endpoints, tmp_path):
    config = config_of(rendered(CHART, values), "picker.toml", tmp_path)
    assert (config.role, config.picker.endpoints) == ("picker", endpoints)
    assert kubernetes._SPEC.fullmatch(endpoints.partition(":")[2])


def test_values_reach_the_picker_and_its_pod(tmp_path):
    values = {
        "image": {"repository": "registry.example/cosmo", "tag": "9"},
        "picker": {
            "replicas": 3, "slots": 4, "method": "power-of-d:keep=6", "deadlineMs": 500,
            "more": "behaviour.drain_s = 2.0\nlimits.calls = 7",
        },
    }  # fmt: skip
    documents = rendered(CHART, values, release="mine", namespace="there")
    config = config_of(documents, "picker.toml", tmp_path)
    assert (config.method.use, config.picker.endpoint.slots) == ("power-of-d:keep=6", 4)
    assert (config.picker.deadline_ms, config.limits.calls) == (500.0, 7)
    deployment = kinds(documents)["Deployment"]
    assert deployment["spec"]["replicas"] == 3
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example/cosmo:9"
    assert {each["metadata"]["name"] for each in documents} == {"mine-picker"}
    assert {each["metadata"]["namespace"] for each in documents} == {"there"}
    assert rendered(CHART, {"picker": {"enabled": False}}) == []


def test_ports_probes_and_graces_are_those_of_the_daemons(tmp_path):
    daemons = {"en0": {"role": "en", "config": EN}}
    for documents, file in (
        (rendered(CHART), "picker.toml"),
        (rendered(CHART, {"picker": {"enabled": False}, "daemons": daemons}), "node.toml"),
    ):
        config, found = config_of(documents, file, tmp_path), kinds(documents)
        spec = found["Deployment"]["spec"]["template"]["spec"]
        [container] = spec["containers"]
        assert container["args"] == [config.role, "--config", f"/etc/cosmo/{file}"]
        ports = {each["name"]: each["containerPort"] for each in container["ports"]}
        assert ports["grpc"] == int(config.listen.rpartition(":")[2])
        assert ports["admin"] == int(config.admin.rpartition(":")[2])
        probes = [container["livenessProbe"], container["readinessProbe"]]
        probed = {(each.get("grpc") or each["tcpSocket"])["port"] for each in probes}
        [served] = found["Service"]["spec"]["ports"]
        assert probed == {ports["grpc"]} == {served["port"]}
        assert spec["terminationGracePeriodSeconds"] > config.behaviour.drain_s
        labels = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
        assert found["Service"]["spec"]["selector"] == labels
        assert found["Deployment"]["spec"]["selector"]["matchLabels"] == labels


def test_probes_name_services_that_a_picker_has():
    async def scene():
        async with picker() as serving:
            spec = kinds(rendered(CHART))["Deployment"]["spec"]["template"]["spec"]
            [container] = spec["containers"]
            for probe in ("livenessProbe", "readinessProbe"):
                assert container[probe]["grpc"]["service"] in serving.node.health()

    play(scene())


def test_the_chart_and_the_plain_manifest_allow_the_same():
    plain = kinds(yaml.safe_load_all((EXAMPLES / "picker.yaml").read_text()))
    assert kinds(rendered(CHART))["Role"]["rules"] == plain["Role"]["rules"]


def test_the_gateway_leads_to_the_pool_whose_picker_the_chart_installs():
    found = kinds(yaml.safe_load_all((EXAMPLES / "inference_pool.yaml").read_text()))
    pool, route, gateway = found["InferencePool"], found["HTTPRoute"], found["Gateway"]
    assert route["spec"]["parentRefs"][0]["name"] == gateway["metadata"]["name"]
    [behind] = route["spec"]["rules"][0]["backendRefs"]
    assert (behind["kind"], behind["name"]) == ("InferencePool", pool["metadata"]["name"])
    assert f"{behind['group']}/v1" == pool["apiVersion"]
    assert kubernetes._POOLS.startswith(f"/apis/{pool['apiVersion']}/")
    # What the picker reads of a pool is there, and the pool names the chart's own service.
    assert pool["spec"]["selector"]["matchLabels"]
    assert pool["spec"]["targetPorts"][0]["number"]
    values = {"picker": {"inferencePool": pool["metadata"]["name"]}}
    service = kinds(rendered(CHART, values))["Service"]
    asked = pool["spec"]["endpointPickerRef"]
    assert asked["name"] == service["metadata"]["name"]
    assert asked["port"]["number"] == service["spec"]["ports"][0]["port"]


def test_values_that_pages_and_manifests_set_are_the_charts_own():
    pages = [EXAMPLES.parents[1] / "docs" / "tasks" / "behind_envoy.md"]
    pages.append(EXAMPLES / "inference_pool.yaml")
    told = [found for page in pages for found in re.findall(r"--set ([\w.]+)=", page.read_text())]
    assert len(told) >= 4
    for path in told:
        value = yaml.safe_load((CHART / "values.yaml").read_text())
        for name in path.split("."):
            value = value[name]


def test_the_chart_is_of_this_version():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["apiVersion"], chart["appVersion"]) == ("v2", cosmo.__version__)
    assert rendered(CHART)[4]["kind"] == "Deployment"
    assert yaml.safe_load((CHART / "values.yaml").read_text())["image"]["tag"] == cosmo.__version__
