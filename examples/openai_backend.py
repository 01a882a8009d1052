"""Let a chat model play the user, and another (or the same) the policy, on any OpenAI-compatible endpoint.

    OPENAI_BASE_URL=http://localhost:8000/v1 python examples/openai_backend.py MODEL
    OPENAI_API_KEY=... python examples/openai_backend.py gpt-4.1-mini --policy openai:gpt-4.1

Without a model the embedded user and the scripted listener play, so that the example runs anywhere.
"""

import argparse
import asyncio

from rlver_gym.envs.registration import make_env
from rlver_gym.policies.registry import make_policy
from rlver_gym.rollouts.metrics import summary
from rlver_gym.rollouts.runner import plan, run_many
from rlver_gym.types import Episode


async def main(model: str | None, policy: str, episodes: int) -> None:
    """Play some episodes side by side and print what they came to."""
    env = make_env("RLVER-Vanilla-v0", backend=f"openai:{model}" if model else "embedded", language="en")
    player = make_policy(policy)
    scenarios = plan(env.scenario, env.people, episodes=episodes, seed=0)
    played: list[Episode] = []
    async for episode in run_many(player, scenarios, env.new_session, concurrency=4):
        moods = " ".join(str(mood) for mood in episode.moods)
        print(f"{episode.persona_name:20} {moods:40} {episode.stop_reason}")
        played.append(episode)
    await player.aclose()
    await env.backend.aclose()
    print(summary(played, seconds=sum(episode.seconds for episode in played)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?")
    parser.add_argument("--policy", default="listener")
    parser.add_argument("--episodes", type=int, default=8)
    arguments = parser.parse_args()
    asyncio.run(main(arguments.model, arguments.policy, arguments.episodes))
