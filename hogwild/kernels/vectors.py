"""Vectors of float32 that stay in registers: rows of factors, and small sets of their numbers.

LLVM would compile a loop over a row to a chain of single additions, or read the row twice. Here a
row is one value: ``keep * p - go * q`` is three vector operations, and loaded numbers stay in
registers until they are stored. Widths are constants; LLVM splits vectors that are wider than the
machine's registers.
"""

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, models, register_model

LINE = 16  # float32 numbers in a cache line
FLOAT = ir.FloatType()
INT32 = ir.IntType(32)
FUSED = ("contract",)  # allows one instruction for a multiplication and an addition


class Vector(types.Type):  # type: ignore[misc]
    """`width` float32 numbers."""

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__(name=f"Vector({width})")


@register_model(Vector)
class VectorModel(models.PrimitiveModel):  # type: ignore[misc]
    """A vector is one of LLVM's."""

    def __init__(self, manager: Any, kind: Vector) -> None:
        super().__init__(manager, kind, ir.VectorType(FLOAT, kind.width))


def _spread(builder: Any, number: Any, width: int) -> Any:
    undefined = ir.Constant(ir.VectorType(FLOAT, width), ir.Undefined)
    single = builder.insert_element(undefined, number, INT32(0))
    return _shuffled(builder, single, undefined, [0] * width)


def _shuffled(builder: Any, a: Any, b: Any, places: list[int]) -> Any:
    mask = ir.Constant(ir.VectorType(INT32, len(places)), places)
    return builder.shuffle_vector(a, b, mask)


def _define(operation: Any, emit: Callable[[Any, Any, Any], Any]) -> None:
    """Defines an operation on two vectors, or on a vector and a number."""

    @infer_global(operation)
    class _Typing(AbstractTemplate):  # type: ignore[misc]
        def generic(self, args: Any, kws: Any) -> Any:
            vectors = [kind for kind in args if isinstance(kind, Vector)]
            if len(args) != 2 or not vectors:
                return None
            return signature(
                vectors[0], *(kind if isinstance(kind, Vector) else types.float32 for kind in args)
            )

    def lower(context: Any, builder: Any, sig: Any, values: Any) -> Any:
        width = sig.return_type.width
        wide = [
            value if isinstance(kind, Vector) else _spread(builder, value, width)
            for kind, value in zip(sig.args, values, strict=True)
        ]
        return emit(builder, *wide)

    for kinds in ((Vector, Vector), (Vector, types.float32), (types.float32, Vector)):
        lower_builtin(operation, *kinds)(lower)


_define(operator.add, lambda builder, a, b: builder.fadd(a, b, flags=FUSED))
_define(operator.sub, lambda builder, a, b: builder.fsub(a, b, flags=FUSED))
_define(operator.mul, lambda builder, a, b: builder.fmul(a, b, flags=FUSED))


def greater(a: Any, b: Any) -> Any:
    """The elementwise maximum of two vectors; b where a is NaN."""
    raise NotImplementedError("only in kernels")


def lesser(a: Any, b: Any) -> Any:
    """The elementwise minimum of two vectors; b where a is NaN."""
    raise NotImplementedError("only in kernels")


_define(greater, lambda builder, a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))
_define(lesser, lambda builder, a, b: builder.select(builder.fcmp_ordered("<", a, b), a, b))


def _address(context: Any, builder: Any, kind: Any, array: Any, place: Any, width: int) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    vector = ir.VectorType(FLOAT, width)
    return builder.bitcast(builder.gep(data, [place]), vector.as_pointer())


def _alignment(width: int) -> int:
    """The alignment of rows of this width, in bytes, in an array that begins on a cache line."""
    return 4 * min(LINE, width & -width)


@intrinsic(prefer_literal=True)
def load(typing_context, array, place, width):  # type: ignore[no-untyped-def]
    """The vector that begins at array[place], a multiple of its width."""
    size = width.literal_value

    def emit(context, builder, sig, values):  # type: ignore[no-untyped-def]
        address = _address(context, builder, sig.args[0], values[0], values[1], size)
        return builder.load(address, align=_alignment(size))

    return Vector(size)(array, types.uintp, width), emit


@intrinsic
def store(typing_context, array, place, vector):  # type: ignore[no-untyped-def]
    """Writes a vector to array[place:place + width]; place is a multiple of the width."""
    size = vector.width

    def emit(context, builder, sig, values):  # type: ignore[no-untyped-def]
        address = _address(context, builder, sig.args[0], values[0], values[1], size)
        builder.store(values[2], address, align=_alignment(size))
        return context.get_dummy_value()

    return types.void(array, types.uintp, vector), emit


@intrinsic
def total(typing_context, vector):  # type: ignore[no-untyped-def]
    """The sum of a vector's numbers, in the fastest order, which is always the same."""

    def emit(context, builder, sig, values):  # type: ignore[no-untyped-def]
        kind = ir.FunctionType(FLOAT, [FLOAT, values[0].type])
        name = f"llvm.vector.reduce.fadd.v{vector.width}f32"
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        start = ir.Constant(FLOAT, -0.0)
        return builder.call(function, [start, values[0]], fastmath=("reassoc",))

    return types.float32(vector), emit


def _of_values(emit: Callable[..., Any]) -> Any:
    """numba's `emit` for an operation on values, given (builder, values...) -> result."""
    return lambda context, builder, sig, values: emit(builder, *values)


@intrinsic(prefer_literal=True)
def spread(typing_context, number, width):  # type: ignore[no-untyped-def]
    """A vector of equal numbers."""
    size = width.literal_value
    emit = _of_values(lambda builder, number, _: _spread(builder, number, size))
    return Vector(size)(types.float32, width), emit


@intrinsic(prefer_literal=True)
def lane(typing_context, vector, place):  # type: ignore[no-untyped-def]
    """One number of a vector."""
    at = INT32(place.literal_value)
    emit = _of_values(lambda builder, vector, _: builder.extract_element(vector, at))
    return types.float32(vector, place), emit


@intrinsic
def joined(typing_context, a, b):  # type: ignore[no-untyped-def]
    """The numbers of `a`, then those of `b`."""
    places = list(range(2 * a.width))
    emit = _of_values(lambda builder, a, b: _shuffled(builder, a, b, places))
    return Vector(len(places))(a, b), emit


@intrinsic(prefer_literal=True)
def half(typing_context, vector, which):  # type: ignore[no-untyped-def]
    """The first half of a vector (0), or the second (1)."""
    size = vector.width // 2
    first = size * which.literal_value
    places = list(range(first, first + size))
    emit = _of_values(lambda builder, vector, _: _shuffled(builder, vector, vector, places))
    return Vector(size)(vector, which), emit


@intrinsic
def odd_lanes(typing_context, vector):  # type: ignore[no-untyped-def]
    """b, b, d, d of a, b, c, d."""
    places = [place | 1 for place in range(vector.width)]
    emit = _of_values(lambda builder, vector: _shuffled(builder, vector, vector, places))
    return vector(vector), emit


@intrinsic
def alternate(typing_context, a, b):  # type: ignore[no-untyped-def]
    """The first of `a`, the second of `b`, the third of `a`, ..."""
    places = [place + a.width * (place % 2) for place in range(a.width)]
    return a(a, b), _of_values(lambda builder, a, b: _shuffled(builder, a, b, places))
