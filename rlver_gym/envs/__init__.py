"""Gymnasium: the environment, its space, its endings."""
