"""What the chart renders, and the manifests beside it, by Kubernetes' own JSON schemas.

The wheel `kubernetes-validate` has them for kinds of Kubernetes itself; those of the Gateway API
and of its inference extension are in no registry that can be reached here.
"""

import pytest
import yaml

from live.charts import rendered
from live.test_chart import CHART, EN, EXAMPLES

VERSIONS = ("1.30", "1.37")


@pytest.mark.parametrize("version", VERSIONS)
def test_every_document_is_strictly_valid(version):
    validator = pytest.importorskip("kubernetes_validate")
    daemons = {"en0": {"role": "en", "config": EN}, "sn0": {"role": "sn", "config": EN}}
    documents = rendered(CHART, {"daemons": daemons})
    documents += yaml.safe_load_all((EXAMPLES / "picker.yaml").read_text())
    assert len(documents) == 6 + 2 * 3 + 6
    for each in documents:
        validator.validate(each, version, strict=True)
    documents[0]["metadata"]["nmae"] = "x"
    with pytest.raises(validator.ValidationError):
        validator.validate(documents[0], version, strict=True)
