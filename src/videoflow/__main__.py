"""`python -m videoflow` is the command `videoflow`."""

import sys

from videoflow.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
