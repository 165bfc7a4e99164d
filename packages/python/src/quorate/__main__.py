"""``python -m quorate``: the program itself."""

from __future__ import annotations

import os
import sys

from ._errors import ProgramError
from ._program import program

try:
    path = program()
    os.execv(path, [path, *sys.argv[1:]])
except (ProgramError, OSError) as error:
    sys.exit(f"error: {error}")
