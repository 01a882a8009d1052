"""Where text comes from: an endpoint, the embedded engine, a script, a recording."""

from rlver_gym.backends.base import Backend, Generation, SamplingConfig, network
from rlver_gym.backends.registry import make_backend
from rlver_gym.backends.scripted import ScriptedBackend

__all__ = ["Backend", "Generation", "SamplingConfig", "ScriptedBackend", "make_backend", "network"]
