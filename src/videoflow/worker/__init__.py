"""One task process: a pure core in an I/O shell."""
