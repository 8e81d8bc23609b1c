"""Other ways to move the same items through the same three processes, each in a small file.

They run in environments of the benchmarks' own, made by `python -m benchmarks.setup`, and import
`benchmarks.work` alone of what is here. Each does what its library is best at, and loses nothing where the
library allows that.
"""
