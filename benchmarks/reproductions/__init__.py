"""Published results as experiments that can fail: `python -m benchmarks.reproductions` writes docs/reproductions.md."""
