"""The command line: one file per command; each parses, validates, makes one call and renders.

Used by the console script through `main`. It refuses to be imported by anything else.
"""


def main() -> int:
    """Runs the command line of this process; Ctrl-C while it is still being loaded ends it, too.

    Returns:
        The exit status.
    """
    try:
        from videoflow.cli.app import main as run

        return run()
    except KeyboardInterrupt:
        return 130
