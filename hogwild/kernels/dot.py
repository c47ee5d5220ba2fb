"""Inner products of a sparse row and dense weights, where training spends most of its time.

LLVM compiles a plain loop to gathers of eight and two more loops over the remainder. The processor
mispredicts the end of each loop. Here four weights are loaded one by one into a vector. The last
three places are always visited: beyond the row's end the value is 0. On AMD's Zen 5, with the data
in a cache, this takes 0.65 of the time. It needs no gathers, which are slow on many processors.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from hogwild.kernels.primitives import operation

FLOAT, LANE, PLACE = ir.FloatType(), ir.IntType(32), ir.IntType(64)
FOUR = ir.VectorType(FLOAT, 4)
FUSED = ("contract",)  # a multiplication and an addition may become one instruction


def _leave_as_it_is(loop: ir.Block) -> None:
    """Forbids LLVM to unroll a loop: what is left of four rounds would be one more loop."""
    module = loop.module
    disable = module.add_metadata([ir.MetaDataString(module, "llvm.loop.unroll.disable")])
    name = ir.values.MDValue(module, [disable], name=str(len(module.metadata)))
    name.operands = (name, disable)  # the first operand of a loop's name is itself
    loop.terminator.set_metadata("llvm.loop", name)


def _products(columns: Any, values: Any, weights: Any, squares: bool) -> Any:
    """numba's signature and code of some inner products, and of the squared length after them."""
    found = types.UniTuple(types.float32, len(weights) + squares)

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        def data(kind, array):  # type: ignore[no-untyped-def]
            return context.make_array(kind)(context, builder, array).data

        columns, values = (data(signature.args[n], arguments[n]) for n in (0, 1))
        begin, end = arguments[2:4]
        each = cgutils.unpack_tuple(builder, arguments[4])
        weights = [data(*known) for known in zip(signature.args[4], each, strict=True)]
        zeros = ir.Constant(FOUR, [0.0] * 4)
        sums = [cgutils.alloca_once_value(builder, zeros) for _ in found]
        totals = [cgutils.alloca_once_value(builder, FLOAT(0.0)) for _ in found]

        def add(places, some):  # type: ignore[no-untyped-def]
            taken = [builder.load(builder.gep(columns, [place])) for place in places]
            taken = [builder.zext(column, PLACE) for column in taken]
            for n, so_far in enumerate(sums):
                vector = some if n == len(weights) else zeros
                for lane, column in enumerate(taken if n < len(weights) else ()):
                    weight = builder.load(builder.gep(weights[n], [column]))
                    vector = builder.insert_element(vector, weight, LANE(lane))
                product = builder.fmul(vector, some, flags=FUSED)
                builder.store(builder.fadd(builder.load(so_far), product, flags=FUSED), so_far)

        with builder.if_then(builder.icmp_unsigned("<", begin, end), likely=True):
            fours = builder.lshr(builder.sub(end, begin), PLACE(2))
            with cgutils.for_range(builder, fours) as loop:
                place = builder.add(begin, builder.shl(loop.index, PLACE(2)))
                four = builder.bitcast(builder.gep(values, [place]), FOUR.as_pointer())
                places = [builder.add(place, PLACE(lane)) for lane in range(4)]
                add(places, builder.load(four, align=4))
                body = builder.basic_block
            _leave_as_it_is(body)
            place = builder.add(begin, builder.shl(fours, PLACE(2)))
            last = builder.sub(end, PLACE(1))
            some, places = zeros, []
            for lane in range(3):
                wanted = builder.add(place, PLACE(lane))
                inside = builder.icmp_unsigned("<", wanted, end)
                places.append(builder.select(inside, wanted, last))
                value = builder.load(builder.gep(values, [places[-1]]))
                value = builder.select(inside, value, FLOAT(0.0))
                some = builder.insert_element(some, value, LANE(lane))
            add(places, some)
            kind, name = ir.FunctionType(FLOAT, [FLOAT, FOUR]), "llvm.vector.reduce.fadd.v4f32"
            reduce = cgutils.get_or_insert_function(builder.module, kind, name)
            for so_far, total in zip(sums, totals, strict=True):
                given = [FLOAT(-0.0), builder.load(so_far)]
                builder.store(builder.call(reduce, given, fastmath=("reassoc",)), total)
        made = [builder.load(total) for total in totals]
        return context.make_tuple(builder, found, made)

    return found(columns, values, types.uintp, types.uintp, weights), emit


def _meaning(columns: Any, values: Any, begin: Any, end: Any, weights: Any) -> tuple[Any, ...]:
    row, taken = values[begin:end], columns[begin:end]
    return tuple(np.float32(row @ some[taken]) for some in weights)


@operation(_meaning)
def dots(typing_context, columns, values, begin, end, weights):  # type: ignore[no-untyped-def]
    """The sums of values[k] * weights[columns[k]] over `begin` <= k < `end`, for some weights."""
    return _products(columns, values, weights, squares=False)


@operation(
    lambda *given: (*_meaning(*given), np.float32(np.sum(given[1][slice(*given[2:4])] ** 2)))
)
def dots_and_square(typing_context, columns, values, begin, end, weights):  # type: ignore[no-untyped-def]
    """The same sums, and after them the sum of the squared values."""
    return _products(columns, values, weights, squares=True)
