"""The simulated user: who it is, how its mood moves, how it appraises and answers."""
