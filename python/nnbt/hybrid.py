"""Builder of bandwidth on device `hybrid`: CPU and GPU share one window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nnbt.workload import Workload


def bandwidth(bench: Any) -> Workload:
    raise NotImplementedError
