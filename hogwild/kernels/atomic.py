"""Operations on a word that several workers may do at the same time."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from hogwild.kernels.compile import inline, kernel
from hogwild.kernels.primitives import U, operation, writable

SLOT = U(8)  # 64-bit words between the counters of two workers: a cache line
LOOKS = 4_000_000  # at a word (about a millisecond) until a worker checks whether to stop
YIELD = 8192  # looks (some microseconds) until another thread may have the core


# The same operations in Python, for one worker


def _replace_if(array, index, old, new):
    same = bool(array[index] == old)
    if same:
        array[index] = new
    return same


def _add_to(array, index, amount):
    before = int(array[index])
    array[index] += amount
    return before


def _at(emit: Callable[..., Any]) -> Callable[..., Any]:
    """numba's `emit` for one word of an array, given (builder, address, values...) -> result."""

    def emit_at(context, builder, signature, arguments):
        array, place, *values = arguments
        data = context.make_array(signature.args[0])(context, builder, array).data
        made = emit(builder, builder.gep(data, [place]), *values)
        return context.get_dummy_value() if signature.return_type == types.void else made

    return emit_at


@operation(_replace_if)
def replace_if(typing_context, array, index, old, new):  # type: ignore[no-untyped-def]
    """Writes `new` to array[index] if it holds `old`; returns whether it did. One step."""

    def emit(builder, address, expected, replacement):
        found = builder.cmpxchg(address, expected, replacement, "acq_rel", "monotonic")
        return builder.extract_value(found, 1)

    return types.boolean(array, types.uintp, types.int64, types.int64), _at(emit)


@operation(_add_to)
def add_to(typing_context, array, index, amount):  # type: ignore[no-untyped-def]
    """Adds to array[index], and returns what it held before. One step."""

    def emit(builder, address, amount):
        return builder.atomic_rmw("add", address, amount, "acq_rel")

    return types.int64(array, types.uintp, types.int64), _at(emit)


@operation(operator.getitem)
def read_now(typing_context, array, index):  # type: ignore[no-untyped-def]
    """Reads array[index]; all earlier writes of its writer are seen, too."""
    emit = _at(lambda builder, address: builder.load_atomic(address, "acquire", 8))
    return types.int64(array, types.uintp), emit


@operation(operator.setitem)
def write_now(typing_context, array, index, word):  # type: ignore[no-untyped-def]
    """Writes array[index]; a worker that reads it sees all earlier writes, too."""
    emit = _at(lambda builder, address, word: builder.store_atomic(word, address, "release", 8))
    return types.void(array, types.uintp, types.int64), emit


@operation(lambda: None)
def let_others_go(typing_context):  # type: ignore[no-untyped-def]
    """Gives the core to another thread that wants it (the system's `sched_yield`)."""

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        declared = ir.FunctionType(ir.IntType(32), [])
        function = cgutils.get_or_insert_function(builder.module, declared, "sched_yield")
        builder.call(function, [])
        return context.get_dummy_value()

    return types.void(), emit


@inline
def look_until(words, place, wanted, looks):
    """Looks at a word, at most `looks` times, until it is at least `wanted`; whether it is.

    Other threads may have the core meanwhile.
    """
    for look in range(looks):
        if read_now(words, place) >= wanted:
            return True
        if look % YIELD == YIELD - 1:
            let_others_go()
    return False


@kernel(types.void(writable(types.int64), types.uintp, types.int64))
def add(words, place, amount):
    """Adds to a word."""
    add_to(words, place, amount)


@kernel(types.int64(writable(types.int64), types.uintp, types.uintp, types.uintp))
def claim_one(words, first, count, start):
    """Sets a word that is 0 to 1, and returns its number; -1 if none of the `count` words is 0.

    The search begins at `start`, and goes on at the first word behind the last one. Workers that
    try at the same time get different words.
    """
    for k in range(U(0), count):
        place = (start + k) % count
        if replace_if(words, first + place, 0, 1):
            return np.int64(place)
    return np.int64(-1)


@kernel(types.boolean(writable(types.int64), types.uintp, types.int64, types.int64))
def wait_for(words, place, wanted, looks):
    """Looks at a word, at most `looks` times, until it is at least `wanted`; whether it is."""
    return look_until(words, place, wanted, looks)
