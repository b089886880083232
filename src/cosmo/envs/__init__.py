"""The world for other people's agents: PettingZoo and Gymnasium.

Importing this registers `cosmo/Dispatch-v0` and `cosmo/Update-v0` with Gymnasium;
`gymnasium.make("cosmo.envs:cosmo/Dispatch-v0")` imports it by itself.
"""

try:
    import gymnasium
    import pettingzoo
except ImportError as error:  # pragma: no cover
    from cosmo.errors import InputError

    raise InputError(
        f"cosmo.envs needs {error.name}; install it from a clone of the repository:"
        " pip install '.[envs]'"
    ) from None

from cosmo.envs.aec import ORACLE, CosmoAEC, aec
from cosmo.envs.parallel import CosmoParallel, parallel
from cosmo.envs.single import DispatchEnv, UpdateEnv
from cosmo.envs.vector import DispatchVectorEnv, UpdateVectorEnv
from cosmo.policy.outside import from_callable
from cosmo.policy.views import EnView, SnView

for _name, _kind in (("cosmo/Dispatch-v0", "Dispatch"), ("cosmo/Update-v0", "Update")):
    if _name not in gymnasium.registry:
        gymnasium.register(
            _name,
            entry_point=f"cosmo.envs.single:{_kind}Env",
            vector_entry_point=f"cosmo.envs.vector:{_kind}VectorEnv",
        )

__all__ = [
    "ORACLE",
    "CosmoAEC",
    "CosmoParallel",
    "DispatchEnv",
    "DispatchVectorEnv",
    "EnView",
    "SnView",
    "UpdateEnv",
    "UpdateVectorEnv",
    "aec",
    "from_callable",
    "parallel",
]
