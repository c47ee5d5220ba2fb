"""The few machine operations that numba has no name for, and the array types that kernels take.

All indices are unsigned; `U` makes them. A signed index makes numba test for negative values, which
can make a kernel four times slower.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.extending import _Intrinsic

from hogwild.kernels.compile import inline

U = np.uintp
TWO32 = 4294967296.0
LINE = U(16)  # 4-byte numbers in a cache line


def readonly(scalar: Any) -> types.Array:
    """The type of an input: contiguous, and possibly not writeable."""
    return types.Array(scalar, 1, "C", readonly=True)


def writable(scalar: Any) -> types.Array:
    """The type of an output: contiguous and writeable."""
    return types.Array(scalar, 1, "C")


class _Operation(_Intrinsic):  # type: ignore[misc]
    """An instruction of the machine; called from Python, it runs its `meaning`."""

    meaning: Callable[..., Any]

    def __call__(self, *arguments: Any) -> Any:
        return self.meaning(*arguments)


def operation(meaning: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """Makes an instruction of what types and emits it (as for numba's `intrinsic`)."""

    def make(definition: Callable[..., Any]) -> Any:
        made = _Operation(definition.__name__, definition)
        made.meaning = meaning
        made._register()
        return made

    return make


@operation(lambda array, index: None)
def prefetch(typing_context, array, index):  # type: ignore[no-untyped-def]
    """Asks for the cache line of array[index], into all caches. Any index is harmless.

    Not the hint for data that is used once: on AMD it gains nothing, on Intel it costs a factor of
    two to six, since such lines are dropped before they are used.
    """

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte = ir.IntType(8).as_pointer()
        flag = ir.IntType(32)
        declared = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        function = cgutils.get_or_insert_function(builder.module, declared, "llvm.prefetch.p0")
        address = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        # to read (0), into all caches (3), and data, not code (1)
        builder.call(function, [address, flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.void(array, types.uintp), emit


@operation(lambda number: np.float32(number).view(np.uint32))
def bits_of(typing_context, number):  # type: ignore[no-untyped-def]
    """The 32 bits of a float32, as they are."""

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.bitcast(arguments[0], ir.IntType(32))

    return types.uint32(types.float32), emit


@operation(lambda word: (int(word) & -int(word)).bit_length() - 1 if word else 64)
def trailing_zeros(typing_context, word):  # type: ignore[no-untyped-def]
    """How many bits lie below the lowest bit that is set; 64 if none is."""

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.cttz(arguments[0], ir.IntType(1)(0))

    return types.uint64(types.uint64), emit


@operation(lambda word: int(word).bit_count())
def ones_in(typing_context, word):  # type: ignore[no-untyped-def]
    """How many bits are set."""

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), emit


@inline
def scramble(seed):
    """SplitMix64's output function (Steele, Lea, Flood 2014): a well mixed word for any input."""
    word = np.uint64(seed)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@inline
def random_word(seed, counter):
    """The word number `counter` of the sequence that `seed` names, 64 random bits: no state."""
    return scramble(np.uint64(seed) + np.uint64(counter) * np.uint64(0x9E3779B97F4A7C15))


@inline
def random_share(word):
    """A number from 0 up to, but not, 1, from the upper half of a random word."""
    return np.float64(word >> np.uint64(32)) / TWO32


@inline
def random_below(word, limit):
    """A whole number below `limit` < 2^32, from the upper half of a random word (Lemire 2019)."""
    return ((word >> np.uint64(32)) * np.uint64(limit)) >> np.uint64(32)
