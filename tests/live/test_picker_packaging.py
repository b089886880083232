"""What operators start a picker from fits the picker."""

from pathlib import Path

import yaml

from cosmo.live.config import load_config
from cosmo.live.picker import kubernetes
from live.nodes import play
from live.picker_scenes import picker

EXAMPLES = Path(__file__).parents[2] / "examples" / "live"
PICKER = EXAMPLES / "picker.yaml"


def test_the_manifest_fits_the_picker_it_runs(tmp_path):
    documents = {each["kind"]: each for each in yaml.safe_load_all(PICKER.read_text())}
    assert {each["metadata"]["name"] for each in documents.values()} == {"cosmo-picker"}
    assert {each["metadata"]["namespace"] for each in documents.values()} == {"shop"}
    file = tmp_path / "picker.toml"
    file.write_text(documents["ConfigMap"]["data"]["picker.toml"])
    config = load_config(file)
    assert config.role == "picker"
    [container] = documents["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["picker", "--config", "/etc/cosmo/picker.toml"]
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert ports == {
        "grpc": int(config.listen.rpartition(":")[2]),
        "admin": int(config.admin.rpartition(":")[2]),
    }
    [served] = documents["Service"]["spec"]["ports"]
    probes = [container[name]["grpc"] for name in ("livenessProbe", "readinessProbe")]
    assert {each["port"] for each in [served, *probes]} == {ports["grpc"]}
    allowed = {
        (group, resource)
        for rule in documents["Role"]["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    asked = {
        (path.split("/")[2] if path.startswith("/apis") else "", kind)
        for path, kind in (
            (kubernetes._SLICES, "endpointslices"),
            (kubernetes._POOLS, "inferencepools"),
            (kubernetes._PODS, "pods"),
        )
    }
    assert allowed == asked
    grace_s = documents["Deployment"]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    assert grace_s > config.behaviour.drain_s

    async def scene():
        async with picker() as serving:
            assert {each["service"] for each in probes} <= serving.node.health().keys()

    play(scene())
