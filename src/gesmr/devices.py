"""Many devices: which they are, and how one run is sharded over them.

Between generations every device holds some of the genes of all members. Making children then needs nothing from the
others: fitness and rates are the same replicate, so every device selects the same parents, and noise is a function of
its place. To be evaluated children must be whole: one exchange (all-to-all) turns some genes of all children into all
genes of some, and their values, one number each, are gathered. Rows on every device instead would need all parents sent
to all devices, for each an amount that does not shrink with their number.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from . import _checks, noise

REPLICATED = PartitionSpec()  # on every device


def mesh_of(devices: Any) -> Mesh | None:
    """The mesh of one axis that `devices` stands for; None for None."""
    if devices is None:
        return None
    there, axis = jax.devices(), "devices"
    chosen: list[Any]
    if isinstance(devices, Mesh):
        if len(devices.axis_names) != 1:
            raise ValueError(f"devices must be a Mesh of one axis, got the axes {devices.axis_names}")
        chosen, axis = list(devices.devices.flat), devices.axis_names[0]
    elif isinstance(devices, int | np.integer) and not isinstance(devices, bool):
        if not 1 <= devices <= len(there):
            hint = '; jax.config.update("jax_num_cpu_devices", n) at the start makes a CPU look like n of them'
            raise ValueError(
                f"devices must be from 1 to {len(there)}, as many as JAX has here, got {_checks.show(devices)}"
                + (hint if there[0].platform == "cpu" else "")
            )
        chosen = there[: int(devices)]
    elif isinstance(devices, str) and devices == "all":
        chosen = there
    elif isinstance(devices, Sequence) and devices and all(isinstance(one, jax.Device) for one in devices):
        if len(set(devices)) < len(devices):
            raise ValueError("devices must differ from each other, got one of them twice")
        chosen = list(devices)
    else:
        raise TypeError(
            'devices must be a number of devices, "all", a list of jax devices or a Mesh of one axis, got '
            f"{_checks.show(devices)}"
        )
    idle = set(range(jax.process_count())) - {device.process_index for device in chosen}
    if idle:  # it would wait for ever
        raise ValueError(f'devices must include some of every process ("all" does), got none of process {min(idle)}')
    return Mesh(np.array(chosen), (axis,))


@dataclass(frozen=True)
class Shards:
    """One run over the devices of a mesh. Hashable, so that compiled programs can be named by it."""

    mesh: Mesh
    num_genes: int

    @property
    def count(self) -> int:
        return self.mesh.size

    @property
    def axis(self) -> str:
        return self.mesh.axis_names[0]

    @property
    def columns(self) -> int:
        """How many genes a device holds. If d does not divide evenly, the last device is padded with zeros."""
        return -(-self.num_genes // self.count)

    @property
    def by_gene(self) -> PartitionSpec:
        """How a population `f[N+1, d]` is sharded: by gene."""
        return PartitionSpec(None, self.axis)

    def per_gene(self, tree: Any) -> Any:
        """How a pytree is sharded whose leaves are single numbers or one number per gene, such as bounds."""
        return jax.tree.map(lambda x: PartitionSpec(self.axis) if np.ndim(x) else REPLICATED, tree)

    def batch(self, size: int | None, rows: int) -> int | None:
        """The size of a batch of which every device evaluates `size` rows, at most `rows`."""
        return None if size is None else min(size * self.count, rows)

    def share(self, rows: int) -> int:
        """How many of `rows` rows each device evaluates."""
        return -(-rows // self.count)

    # within a program of many devices

    def map(self, function: Callable, in_specs: Any, out_specs: Any) -> Callable:
        """`function` mapped over the devices, each with its own part of the arguments (`jax.shard_map`)."""
        return jax.shard_map(function, mesh=self.mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)

    def run(self, part: Callable, ga: Any, population: Array, *rest: Any) -> tuple[Array, Any]:
        """`part(ga, population, *rest)` as every device computes it: of a population it has the genes it holds, of a
        GA's bounds those of these genes, of all else everything. What `part` returns is a pair of the same kind.
        """
        specs = self._specs(ga), self.by_gene, *[REPLICATED] * len(rest)
        return self.map(part, specs, (self.by_gene, REPLICATED))(ga, population, *rest)

    @property
    def genes(self) -> noise.Genes:
        """The genes that this device holds."""
        return noise.Genes(lax.axis_index(self.axis).astype(jnp.uint32) * np.uint32(self.columns), self.num_genes)

    def sharded(self, objective: Callable) -> Callable:
        """`objective` for rows of which every device holds some genes: each evaluates a share of the rows.

        All shares are of one size, the last filled up with copies of the last row.
        """

        def values(rows: Array) -> Any:
            n = rows.shape[0]
            share = self.share(n)
            filled = jnp.pad(rows, ((0, share * self.count - n), (0, 0)), mode="edge")
            mine = lax.all_to_all(filled, self.axis, split_axis=0, concat_axis=1, tiled=True)
            found = objective(mine[:, : self.num_genes])
            for shape in map(jnp.shape, jax.tree.leaves(found)):
                if shape != (share,):
                    raise ValueError(f"objective must return one value per candidate, ({share},), got {shape}")
            return jax.tree.map(lambda found: lax.all_gather(found, self.axis, tiled=True)[:n], found)

        return values

    def gather(self, population: Array) -> Array:
        """The population with all its genes, on every device."""
        return lax.all_gather(population, self.axis, axis=1, tiled=True)[:, : self.num_genes]

    # to the devices and back

    def shard(self, rows: Any, *, donate: bool = False) -> Array:
        """Rows `f[n, d]` sharded over the devices by gene. Copied, unless `donate` gives their memory away."""
        return _put(self._padded(rows), NamedSharding(self.mesh, self.by_gene), donate)

    def place(self, ga: Any) -> Any:
        """A GA on the devices, as `run` takes it."""
        return jax.tree.map(self._put, ga, self._specs(ga))

    def shard_genes(self, tree: Any) -> Any:
        """Arrays `[d]` of a pytree sharded over the devices as the genes are; numbers stay as they are."""
        along = NamedSharding(self.mesh, PartitionSpec(self.axis))
        return jax.tree.map(lambda x: _put(self._padded(x), along) if np.ndim(x) else x, tree)

    def replicate(self, tree: Any) -> Any:
        """The arrays of a pytree on every device."""
        return replicate(tree, self.mesh)

    def _specs(self, ga: Any) -> Any:
        """How a GA is sharded: one number per gene in its bounds by gene, all else not at all."""
        in_bounds = jax.tree_util.GetAttrKey("bounds")

        def spec(path: tuple, leaf: Any) -> PartitionSpec:
            return PartitionSpec(self.axis) if path[0] == in_bounds and np.ndim(leaf) else REPLICATED

        return jax.tree_util.tree_map_with_path(spec, ga)

    def _put(self, x: Any, spec: PartitionSpec) -> Any:
        """An array on the devices; what is no array stays as it is."""
        if not isinstance(x, jax.Array | np.ndarray):
            return x
        return _put(x if spec == REPLICATED else self._padded(x), NamedSharding(self.mesh, spec))

    def row(self, population: Array, index: int) -> np.ndarray:
        """A whole member `f[d]`, in every process."""
        return np.asarray(_row(population, np.int32(index), NamedSharding(self.mesh, REPLICATED)))[: self.num_genes]

    def rows(self, population: Array) -> np.ndarray | None:
        """All members `f[N+1, d]`, in the first process if there are several; None in the others."""
        if self.processes == 1:
            return np.asarray(population)[:, : self.num_genes]
        rows = (self.row(population, i) for i in range(population.shape[0]))  # one at a time: devices may be full
        if is_first(self):
            return np.stack(list(rows))
        for _ in rows:  # all take part
            pass
        return None

    @property
    def processes(self) -> int:
        return _processes(self.mesh)

    def _padded(self, x: Any) -> Any:
        """Zeros in the place of genes that do not exist."""
        missing = self.count * self.columns - x.shape[-1]
        if missing == 0:
            return x
        by_axis = [(0, 0)] * (np.ndim(x) - 1) + [(0, missing)]
        return jnp.pad(x, by_axis) if isinstance(x, jax.Array) else np.pad(x, by_axis)


def replicate(tree: Any, mesh: Mesh) -> Any:
    """The arrays of a pytree on every device."""
    placed = NamedSharding(mesh, REPLICATED)
    return jax.tree.map(lambda x: _put(x, placed) if isinstance(x, jax.Array | np.ndarray) else x, tree)


def shard_seeds(tree: Any, mesh: Mesh, *, donate: bool = False) -> Any:
    """A pytree of arrays `[S, ...]` over the devices, filled up to as many seeds for each with copies of the last."""
    placed = NamedSharding(mesh, PartitionSpec(mesh.axis_names[0]))

    def filled(x: Any) -> Array:
        missing = -x.shape[0] % mesh.size
        more = [x, jnp.repeat(x[-1:], missing, axis=0)]
        return _put(jnp.concatenate(more) if missing else x, placed, donate)

    return jax.tree.map(filled, tree)


def _put(x: Any, sharding: NamedSharding, donate: bool = True) -> Array:
    """`x` on the devices of `sharding`: every process has all of it and puts its own parts, or it is there already."""
    if sharding.is_fully_addressable or jnp.issubdtype(x.dtype, jax.dtypes.extended):
        return jax.device_put(x, sharding, may_alias=donate)
    if isinstance(x, jax.Array) and not x.is_fully_addressable:
        moved = x if x.sharding.is_equivalent_to(sharding, x.ndim) else _moved(x, sharding)
        return moved if donate else jnp.copy(moved)
    host = np.asarray(x)
    return jax.make_array_from_callback(host.shape, sharding, lambda index: host[index])


def _moved(x: Array, sharding: NamedSharding) -> Array:
    return jax.jit(lambda x: x, out_shardings=sharding)(x)


@partial(jax.jit, static_argnums=2)
def _row(population: Array, index: Any, replicate: NamedSharding) -> Array:
    return lax.with_sharding_constraint(population[index], replicate)


# several processes


def is_first(shards: Shards | None) -> bool:
    """Whether this is the one process of a run that writes and prints."""
    return shards is None or jax.process_index() == 0


def _processes(mesh: Mesh) -> int:
    return len({device.process_index for device in mesh.devices.flat})


def broadcast(value: float, shards: Shards | None) -> float:
    """The first process's `value`, in every process: clocks differ, decisions must not."""
    if shards is None or shards.processes == 1:
        return value
    return float(_broadcast(np.float64(value).view(np.uint64)).view(np.float64))


def broadcast_integer(value: int, mesh: Mesh) -> int:
    """The first process's integer below 2⁶⁴, in every process."""
    return value if _processes(mesh) == 1 else int(_broadcast(np.uint64(value)))


def _broadcast(word: Any) -> np.uint64:
    from jax.experimental import multihost_utils  # noqa: PLC0415  it takes time to import, and few need it

    halves = np.array([int(word) >> 32, int(word) & 0xFFFFFFFF], np.uint32)  # JAX may not have 64 bits
    high, low = np.asarray(multihost_utils.broadcast_one_to_all(halves)).tolist()
    return np.uint64(high << 32 | low)
