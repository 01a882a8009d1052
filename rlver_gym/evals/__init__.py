"""Looking at finished episodes: reports, benchmarks, judges."""
