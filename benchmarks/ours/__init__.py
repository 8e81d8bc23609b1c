"""Our side: flows of the public API with default options, each run as a command of its own."""
