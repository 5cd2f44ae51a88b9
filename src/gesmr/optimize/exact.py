"""Programs that give the same bits in every process.

On a GPU XLA tries several algorithms for matrix products and convolutions and takes the fastest. Which that is depends
on what else the machine was doing, and algorithms round differently. Told to be deterministic it does not try.
"""

from functools import partial

import jax

from .. import _compilation

OPTIONS = {"xla_gpu_deterministic_ops": True, **_compilation.OPTIONS}
jit = partial(jax.jit, compiler_options=OPTIONS)
