"""A Gymnasium package in which the other side of the conversation is a person.

A simulated user with a latent mood is the environment; a policy talks to them and is paid once, at the end, by how that
person feels. Importing registers `RLVER-Vanilla-v0`, `RLVER-Challenging-v0` and `RLVER-Curriculum-v0`, and changes
nothing else.
"""

from rlver_gym import errors
from rlver_gym.backends import Backend, Generation, SamplingConfig, ScriptedBackend, make_backend, network
from rlver_gym.envs.curriculum import Curriculum
from rlver_gym.envs.registration import register as _register
from rlver_gym.envs.session import Session, SessionSettings
from rlver_gym.types import Appraisal, Episode, Message, Scenario, StopReason, Turn, Usage
from rlver_gym.users.library import load_personas
from rlver_gym.users.persona import Persona
from rlver_gym.version import __version__

_register()

__all__ = [
    "Appraisal",
    "Backend",
    "Curriculum",
    "Episode",
    "Generation",
    "Message",
    "Persona",
    "SamplingConfig",
    "Scenario",
    "ScriptedBackend",
    "Session",
    "SessionSettings",
    "StopReason",
    "Turn",
    "Usage",
    "__version__",
    "errors",
    "load_personas",
    "make_backend",
    "network",
]
