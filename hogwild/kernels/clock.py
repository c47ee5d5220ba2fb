"""What time it is, in compiled code."""

import time

from llvmlite import ir
from numba import types
from numba.core import cgutils

from hogwild.kernels.primitives import operation

MONOTONIC = getattr(time, "CLOCK_MONOTONIC", 1)  # another number on each system
WORD = ir.IntType(64)


@operation(time.monotonic_ns)
def nanoseconds(typing_context):  # type: ignore[no-untyped-def]
    """Nanoseconds of a clock that only goes forward (the system's `clock_gettime`)."""

    def emit(context, builder, signature, arguments):
        moment = cgutils.alloca_once(builder, ir.ArrayType(WORD, 2))  # seconds and nanoseconds
        number = ir.IntType(32)
        declared = ir.FunctionType(number, [number, moment.type])
        function = cgutils.get_or_insert_function(builder.module, declared, "clock_gettime")
        builder.call(function, [number(MONOTONIC), moment])
        seconds = builder.extract_value(builder.load(moment), 0)
        rest = builder.extract_value(builder.load(moment), 1)
        return builder.add(builder.mul(seconds, WORD(1_000_000_000)), rest)

    return types.int64(), emit
