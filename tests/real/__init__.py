"""Tests against a real language model, small enough for two cores: run with `pytest -m real`."""
