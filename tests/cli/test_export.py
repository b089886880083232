"""`cosmo export`; the exported networks are held against NumPy in integrations/test_onnx.py."""

from cosmo.policy.trained import shipped


def test_a_controller_whose_rule_decides_is_refused_in_one_line(cosmo, tmp_path):
    out = tmp_path / "networks"
    code, _, err = cosmo("export", str(shipped("cosmo-next")), "--out", str(out))
    assert code == 2
    assert "holds cosmo-next, of which a rule decides" in err
    assert len(err.strip().splitlines()) == 1
    assert not out.exists()
