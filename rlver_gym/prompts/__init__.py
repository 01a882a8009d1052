"""Prompts: jinja2 templates, strict and sandboxed, in English and Chinese; `render` gives a lazy `Prompt`."""

from rlver_gym.prompts.render import PROMPTS, prompt_version, render, stands_in_examples, unfenced

__all__ = ["PROMPTS", "prompt_version", "render", "stands_in_examples", "unfenced"]
