"""What several workers may do to one word at once without losing anything."""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from hogwild.kernels.compile import inline, kernel
from hogwild.kernels.primitives import U, operation, writable

SLOT = U(8)  # 64-bit words from one worker's counter to the next: a cache line each
LOOKS = 4_000_000  # at a word, a millisecond or so, before others are looked after
YIELD = 8192  # looks, some microseconds, after which whoever else wants the core gets it


# What these operations mean where nobody else is at work


def _replace_if(array: Any, index: Any, old: Any, new: Any) -> bool:
    same = bool(array[index] == old)
    if same:
        array[index] = new
    return same


def _add_to(array: Any, index: Any, amount: Any) -> Any:
    before = int(array[index])
    array[index] += amount
    return before


def _write_now(array: Any, index: Any, word: Any) -> None:
    array[index] = word


@operation(_replace_if)
def replace_if(typing_context, array, index, old, new):  # type: ignore[no-untyped-def]
    """Writes `new` to array[index] if `old` stands there; tells whether it did. One step."""

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        words, place, expected, replacement = arguments
        data = context.make_array(signature.args[0])(context, builder, words).data
        address = builder.gep(data, [place])
        found = builder.cmpxchg(address, expected, replacement, "acq_rel", "monotonic")
        return builder.extract_value(found, 1)

    return types.boolean(array, types.uintp, types.int64, types.int64), emit


@operation(_add_to)
def add_to(typing_context, array, index, amount):  # type: ignore[no-untyped-def]
    """Adds to array[index], and tells what stood there before. One step."""

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        words, place, increment = arguments
        data = context.make_array(signature.args[0])(context, builder, words).data
        return builder.atomic_rmw("add", builder.gep(data, [place]), increment, "acq_rel")

    return types.int64(array, types.uintp, types.int64), emit


@operation(lambda array, index: array[index])
def read_now(typing_context, array, index):  # type: ignore[no-untyped-def]
    """What stands at array[index] now, and all that its writer had written before."""

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.load_atomic(builder.gep(data, [arguments[1]]), "acquire", 8)

    return types.int64(array, types.uintp), emit


@operation(_write_now)
def write_now(typing_context, array, index, word):  # type: ignore[no-untyped-def]
    """Writes array[index]; whoever reads it sees all that was written before."""

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        builder.store_atomic(arguments[2], builder.gep(data, [arguments[1]]), "release", 8)
        return context.get_dummy_value()

    return types.void(array, types.uintp, types.int64), emit


@operation(lambda: None)
def let_others_go(typing_context):  # type: ignore[no-untyped-def]
    """Gives the core to whoever else wants it (the system's `sched_yield`)."""

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        declared = ir.FunctionType(ir.IntType(32), [])
        function = cgutils.get_or_insert_function(builder.module, declared, "sched_yield")
        builder.call(function, [])
        return context.get_dummy_value()

    return types.void(), emit


@inline
def look_until(words: Any, place: Any, wanted: Any, looks: Any) -> Any:
    """Looks at a word so many times, at most, until it is at least what is wanted; whether it is.

    Others that want the core get it meanwhile.
    """
    for look in range(looks):
        if read_now(words, place) >= wanted:
            return True
        if look % YIELD == YIELD - 1:
            let_others_go()
    return False


@kernel(types.void(writable(types.int64), types.uintp, types.int64))
def add(words: Any, place: Any, amount: Any) -> None:
    """Adds to a word, whoever else does."""
    add_to(words, place, amount)


@kernel(types.int64(writable(types.int64), types.uintp, types.uintp, types.uintp))
def claim_one(words: Any, first: Any, count: Any, start: Any) -> Any:
    """Makes 1 of a word that is 0, among so many: the next from `start` on, and round; -1 if none.

    Of several that try at once, each gets another.
    """
    for k in range(U(0), count):
        place = (start + k) % count
        if replace_if(words, first + place, 0, 1):
            return np.int64(place)
    return np.int64(-1)


@kernel(types.boolean(writable(types.int64), types.uintp, types.int64, types.int64))
def wait_for(words: Any, place: Any, wanted: Any, looks: Any) -> Any:
    """Looks at a word until it is at least what is wanted, for so long at most; whether it is."""
    return look_until(words, place, wanted, looks)


@kernel(types.boolean(writable(types.int64)))
def claim(word: Any) -> Any:
    """Makes 1 of the word if it is 0. Of several that try at once, one succeeds."""
    return replace_if(word, U(0), 0, 1)
