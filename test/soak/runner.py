# SPDX-License-Identifier: GPL-3.0-or-later
"""The bash of the CLIs of a judged run: record what it is to run, and run it."""

import os
import sys

from recorder import record

record("bash", arguments=sys.argv[2:])
os.execv(sys.argv[1], ["bash", *sys.argv[2:]])
