"""How fast videoflow moves video, as ratios to floors and peers measured in the same run.

`python -m benchmarks` is the one command. This file imports nothing, since peers run in environments of their
own.
"""
