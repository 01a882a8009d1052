"""Talk to a simulated person in ten lines: no key, no network, no GPU."""

import gymnasium as gym

import rlver_gym  # noqa: F401  registers the ids

env = gym.make("RLVER-Vanilla-v0", language="en")
observation, info = env.reset(seed=7)
print(observation)
while True:
    observation, reward, terminated, truncated, info = env.step("That sounds heavy. What happened then?")
    print(f"[{info['latent']['mood']:.0f}] {observation}")
    if terminated or truncated:
        break
print(f"reward {reward}, because: {info['stop_reason']}")
