"""Matrix products have the same bits for any number of BLAS threads, on any kernel of OpenBLAS."""

import ast
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cosmo
from cosmo.policy.products import product

# What a kernel of OpenBLAS asks of the processor, by the names of Linux.
X86_KERNELS = {
    "Haswell": {"avx2", "fma"},
    "Zen": {"avx2", "fma"},  # builds without it take Haswell's, which is the same code
    "Sandybridge": {"avx"},
    "SkylakeX": {"avx512f", "avx512bw", "avx512dq", "avx512vl"},
    "Nehalem": {"sse4_2"},
}
ARM_KERNELS = {
    "ARMV8": {"asimd"},
    "NEOVERSEN1": {"asimd", "asimdhp", "asimddp"},
    "NEOVERSEV1": {"sve"},
}
KERNELS = ARM_KERNELS if platform.machine().lower() in ("aarch64", "arm64") else X86_KERNELS
SHAPES = [(4, 32), (10, 32), (32, 16), (16, 2), (64, 64), (96, 64), (64, 192), (64, 1), (300, 520)]
DIGEST = f"""
import hashlib
import numpy as np
from cosmo.policy.products import product

random, found = np.random.default_rng(0), hashlib.sha256()
for rows in (1, 2, 7, 49, 64, 257, 1024, 4096):
    for inputs, outputs in {SHAPES}:
        x = random.standard_normal((2, rows, inputs)).astype(np.float32)
        w = random.standard_normal((2, inputs, outputs)).astype(np.float32)
        found.update(product(x, w).tobytes())
print(found.hexdigest())
"""
# Products that may stay as they are: too small for a second thread, or not NumPy's.
ALLOWED = {
    "policy/products.py": "the product itself",
    "policy/networks.py": "the same networks under JAX",
    "policy/next/sn.py": "one row with ten numbers",
    "learn/next/worth.py": "ten by ten numbers",
    "learn/next/multi_node/kinds.py": "a number a node",
    "workload/arrivals.py": "a number a step",
    "measure/clairvoyant.py": "SciPy's sparse product, which has one thread",
}


def _processor_flags() -> set[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return set()
    flags = (line for line in lines if line.startswith(("flags", "Features")))  # x86, ARM
    return {flag for line in flags for flag in line.split()}


def _digest(kernel: str, threads: int) -> tuple[str, str]:
    """Of many products, and what OpenBLAS says about itself."""
    chosen = {
        "OPENBLAS_CORETYPE": kernel,
        "OPENBLAS_NUM_THREADS": str(threads),
        "OPENBLAS_VERBOSE": "2",
    }
    done = subprocess.run(
        [sys.executable, "-c", DIGEST],
        env=os.environ | chosen,
        capture_output=True,
        text=True,
        check=True,
    )
    said, digest = (done.stdout + done.stderr), done.stdout.split()[-1]
    return digest, said


@pytest.mark.parametrize("kernel", KERNELS)
def test_products_do_not_depend_on_threads(kernel):
    missing = KERNELS[kernel] - _processor_flags()
    if missing:
        pytest.skip(f"this {platform.machine()} processor has no {', '.join(sorted(missing))}")
    one, said = _digest(kernel, 1)
    if "Core: " not in said:
        pytest.skip("NumPy's BLAS is not an OpenBLAS with kernels to choose from")
    assert kernel == "Zen" or f"core: {kernel}".lower() in said.lower()
    two, _ = _digest(kernel, 2)
    assert one == two


def test_products_are_products():
    random = np.random.default_rng(1)
    for rows in (1, 3, 48, 49, 145, 600):
        for inputs, outputs in (*SHAPES, (9000, 3), (1200, 700), (8192, 1)):
            x, w = random.standard_normal((rows, inputs)), random.standard_normal((inputs, outputs))
            np.testing.assert_allclose(product(x, w), x @ w, rtol=1e-9, atol=1e-9)
    x, w = random.standard_normal((3, 1, 700, 96)), random.standard_normal((2, 96, 64))
    np.testing.assert_allclose(product(x, w), x @ w, rtol=1e-9, atol=1e-9)
    assert product(np.zeros((0, 96), np.float32), np.zeros((96, 64), np.float32)).shape == (0, 64)


def test_no_result_goes_through_another_product():
    """Whoever multiplies matrices in the package takes `product`, or stands in the list above."""
    names = {"dot", "vdot", "inner", "matmul", "tensordot"}
    root, found = Path(cosmo.__file__).parent, set()
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            operator = isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)
            called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            if operator or (called and node.func.attr in names):
                found.add(path.relative_to(root).as_posix())
    assert found == set(ALLOWED)
