"""`python -m videoflow` is the command `videoflow`.

Used where the console script is not on the path. It refuses nothing itself.
"""

import sys

from videoflow.cli import main

if __name__ == "__main__":
    sys.exit(main())
