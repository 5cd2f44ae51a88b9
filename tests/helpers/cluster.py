"""A real Ray cluster of two nodes, on this machine."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

NODE: dict[str, Any] = {"num_cpus": 3, "object_store_memory": 10**8}


class Nodes:
    """A head and another node, each with CPUs for more actors than there will be."""

    def __init__(self):
        from ray.cluster_utils import Cluster  # noqa: PLC0415

        self.directory = tempfile.mkdtemp(prefix="g", dir="/tmp")  # short: there are sockets in it
        head = {**NODE, "temp_dir": self.directory, "include_dashboard": False}
        Path(self.directory, "ray").mkdir()
        with pytest.MonkeyPatch.context() as patch:
            # Where it notes its address: in Ray's usual directory, tests beside this one would find and join it
            patch.setenv("RAY_TMPDIR", self.directory)
            self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.address = self.cluster.address
        self.add()

    def add(self) -> None:
        self.other = self.cluster.add_node(**NODE)
        self.cluster.wait_for_nodes()

    def kill(self) -> None:
        self.cluster.remove_node(self.other, allow_graceful=False)

    def close(self) -> None:
        self.cluster.shutdown()
        shutil.rmtree(self.directory, ignore_errors=True)
