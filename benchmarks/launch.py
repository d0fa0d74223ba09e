"""Starts a command from a tiny process, and reports how long it took and how much memory.

Linux counts the memory of the process that starts a command towards the command's peak. This one
loads next to nothing, so the peak is the command's own. It is run as a script, without `site`:

    python -I -S launch.py REPORT_FILE TIMEOUT_S COMMAND [ARGUMENT ...]
"""

from __future__ import annotations

import os
import signal
import sys
import time


def main() -> None:
    """Run the command, then report `exit_code seconds cpu_s peak_bytes timed_out`."""
    report, timeout_s, command = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
    timed_out = False
    start = time.perf_counter()
    child = os.posix_spawnp(command[0], command, os.environ)

    def give_up(*_: object) -> None:
        nonlocal timed_out
        timed_out = True
        os.kill(child, signal.SIGKILL)

    signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, timeout_s)
    _, status, usage = os.wait4(child, 0)
    seconds = time.perf_counter() - start
    signal.setitimer(signal.ITIMER_REAL, 0)
    # Kilobytes on Linux, bytes on macOS.
    peak_bytes = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    with open(report, "w") as file:  # noqa: PTH123 - pathlib would add megabytes
        exit_code = os.waitstatus_to_exitcode(status)
        cpu_s = usage.ru_utime + usage.ru_stime
        file.write(f"{exit_code} {seconds} {cpu_s} {peak_bytes} {int(timed_out)}")


if __name__ == "__main__":
    main()
