"""How many files this process may open, and needs: a connection is one, in a server of the same process another.

The soft limit is raised when the system lets it be; where that is not enough, the run is refused before it begins.
"""

from __future__ import annotations

import resource

from agentx.errors import BadInput
from agentx.replayer.plan import Load

SPARE = 64  # files beside connections: standard streams, results, libraries, the loop's own


def files_needed(connections: int, *, embedded: bool = False) -> int:
    return connections * (2 if embedded else 1) + SPARE


def check_files(load: Load, workers: int, *, embedded: bool) -> None:
    """Raise the soft limit as far as this load needs. Raises BadInput where the system does not allow so many.

    Each session in a closed loop is counted as one request in flight; what an open loop will need is not known.
    """
    count = min((each for each in (load.sessions, load.requests) if each is not None), default=0)
    share = -(-count // workers)
    here = count if embedded else 0  # the server's ends, where workers have the others
    needed = files_needed(share, embedded=embedded) if workers == 1 else files_needed(max(share, here))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        fit = max(1, (hard - SPARE) // (2 if embedded else 1))
        raise BadInput(
            f"{count:,} requests in flight need about {needed:,} open files, and this process may open {hard:,}",
            hint=f"ulimit -Hn {needed}, which root must allow; or load.requests: {fit}",
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
