"""What `agentx --help` and `import agentx` cost over a bare Python: best of several starts, in seconds.

python benchmarks/start_up.py
"""

from __future__ import annotations

import subprocess
import sys
import time

TRIES = 9


def best(*arguments: str) -> float:
    times = []
    for _ in range(TRIES):
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    bare = best("-c", "pass")
    print(f"bare Python       {bare:.3f} s")
    for name, arguments in (("import agentx", ("-c", "import agentx")), ("agentx --help", ("-m", "agentx", "--help"))):
        print(f"{name:17} {best(*arguments) - bare:+.3f} s")


if __name__ == "__main__":
    main()
