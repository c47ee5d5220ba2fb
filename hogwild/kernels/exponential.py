"""exp and log(1 + x) in plain arithmetic, which LLVM can vectorize.

The system's functions take one number at a time, and K heads need K calls for each row.
"""

import numpy as np
from llvmlite import ir
from numba import types

from hogwild.kernels.compile import inline
from hogwild.kernels.primitives import operation

LOG2_E = 1.4426950408889634
LN_2 = 0.6931471805599453
LEAST, MOST = -708.0, 709.0  # outside, exp is not a normal double


@operation(lambda power: 2.0 ** int(power))
def power_of_two(typing_context, power):  # type: ignore[no-untyped-def]
    """2^power, for an integer from -1022 to 1023: only the exponent bits of a double are set."""

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        word = ir.IntType(64)
        biased = builder.add(builder.sext(arguments[0], word), word(1023))
        return builder.bitcast(builder.shl(biased, word(52)), ir.DoubleType())

    return types.float64(types.int32), emit


@inline
def exp(x):
    """exp(x) with a relative error of 1e-13, for -708 to 709; 2^n times a Taylor sum around 0."""
    x = min(max(x, LEAST), MOST)
    n = np.floor(x * LOG2_E + 0.5)
    r = x - n * LN_2  # at most ln(2) / 2
    s = r * r
    even = 1 / 40320 + s * (1 / 3628800 + s * (1 / 479001600))
    even = 1.0 + s * (0.5 + s * (1 / 24 + s * (1 / 720 + s * even)))
    odd = 1 / 362880 + s * (1 / 39916800)
    odd = r * (1.0 + s * (1 / 6 + s * (1 / 120 + s * (1 / 5040 + s * odd))))
    return power_of_two(np.int32(n)) * (even + odd)


@inline
def log1p(x):
    """log(1 + x) for x from 0 to 1, with a relative error of 1e-10: 2 artanh(x / (2 + x))."""
    z = x / (2.0 + x)
    s = z * z
    tail = 1 / 11 + s * (1 / 13 + s * (1 / 15 + s * (1 / 17 + s / 19)))
    return 2.0 * z * (1.0 + s * (1 / 3 + s * (1 / 5 + s * (1 / 7 + s * (1 / 9 + s * tail)))))
