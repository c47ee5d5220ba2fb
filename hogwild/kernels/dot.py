"""Inner products of a sparse row and dense weights, and additions of a row to weights.

Training spends most of its time here. LLVM compiles a plain loop to gathers of eight and two more
loops over the remainder. The processor mispredicts the end of each loop. Here four weights are
loaded one by one into a vector. The last three places are always visited: beyond the row's end the
value is 0. On AMD's Zen 5, with the data in a cache, an inner product takes 0.65 of the time, and
an addition 0.8 of it. It needs no gathers, which are slow on many processors.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from hogwild.kernels.primitives import operation

FLOAT, DOUBLE = ir.FloatType(), ir.DoubleType()
LANE, PLACE = ir.IntType(32), ir.IntType(64)
FOUR = ir.VectorType(FLOAT, 4)
FUSED = ("contract",)  # a multiplication and an addition may become one instruction


def _leave_as_it_is(loop: ir.Block) -> None:
    """Forbids LLVM to unroll a loop: what is left of four rounds would be one more loop."""
    module = loop.module
    disable = module.add_metadata([ir.MetaDataString(module, "llvm.loop.unroll.disable")])
    name = ir.values.MDValue(module, [disable], name=str(len(module.metadata)))
    name.operands = (name, disable)  # the first operand of a loop's name is itself
    loop.terminator.set_metadata("llvm.loop", name)


def _data(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    """The address of an array's first number."""
    return context.make_array(kind)(context, builder, array).data


def _visit(
    builder: Any, row: tuple[Any, ...], number: Any, visit: Callable[[list[Any], Any], None]
) -> Any:
    """Emits `visit(columns, values)` for four places of a row at a time, and for those left.

    `row`: the addresses of columns and values, and where the row begins and ends. Values are made
    to be of the type `number`.
    """
    columns, values, begin, end = row
    kind = ir.VectorType(number, 4)

    def columns_at(places):  # type: ignore[no-untyped-def]
        taken = [builder.load(builder.gep(columns, [place])) for place in places]
        return [builder.zext(column, PLACE) for column in taken]

    def widened(some, kind):  # type: ignore[no-untyped-def]
        return some if number == FLOAT else builder.fpext(some, kind)

    fours = builder.lshr(builder.sub(end, begin), PLACE(2))
    with cgutils.for_range(builder, fours) as loop:
        place = builder.add(begin, builder.shl(loop.index, PLACE(2)))
        four = builder.bitcast(builder.gep(values, [place]), FOUR.as_pointer())
        places = [builder.add(place, PLACE(lane)) for lane in range(4)]
        visit(columns_at(places), widened(builder.load(four, align=4), kind))
        body = builder.basic_block
    _leave_as_it_is(body)
    place = builder.add(begin, builder.shl(fours, PLACE(2)))
    last = builder.sub(end, PLACE(1))
    some, places = ir.Constant(kind, [0.0] * 4), []
    for lane in range(3):
        wanted = builder.add(place, PLACE(lane))
        inside = builder.icmp_unsigned("<", wanted, end)
        places.append(builder.select(inside, wanted, last))
        value = widened(builder.load(builder.gep(values, [places[-1]])), number)
        value = builder.select(inside, value, number(0.0))
        some = builder.insert_element(some, value, LANE(lane))
    visit(columns_at(places), some)


def _products(columns: Any, values: Any, weights: Any, squares: bool) -> Any:
    """numba's signature and code of some inner products, and of the squared length after them."""
    found = types.UniTuple(weights[0].dtype, len(weights) + squares)

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        kinds = signature.args
        row = [_data(context, builder, kinds[n], arguments[n]) for n in (0, 1)]
        begin, end = arguments[2:4]
        each = cgutils.unpack_tuple(builder, arguments[4])
        known = zip(kinds[4], each, strict=True)
        weights = [_data(context, builder, kind, array) for kind, array in known]
        number = context.get_value_type(found.dtype)
        four = ir.VectorType(number, 4)
        zeros = ir.Constant(four, [0.0] * 4)
        sums = [cgutils.alloca_once_value(builder, zeros) for _ in found]
        totals = [cgutils.alloca_once_value(builder, number(0.0)) for _ in found]

        def add(columns, some):  # type: ignore[no-untyped-def]
            for n, so_far in enumerate(sums):
                vector = some if n == len(weights) else zeros
                for lane, column in enumerate(columns if n < len(weights) else ()):
                    weight = builder.load(builder.gep(weights[n], [column]))
                    vector = builder.insert_element(vector, weight, LANE(lane))
                product = builder.fmul(vector, some, flags=FUSED)
                builder.store(builder.fadd(builder.load(so_far), product, flags=FUSED), so_far)

        with builder.if_then(builder.icmp_unsigned("<", begin, end), likely=True):
            _visit(builder, (*row, begin, end), number, add)
            kind = ir.FunctionType(number, [number, four])
            name = f"llvm.vector.reduce.fadd.v4{four.element.intrinsic_name}"
            reduce = cgutils.get_or_insert_function(builder.module, kind, name)
            for so_far, total in zip(sums, totals, strict=True):
                given = [number(-0.0), builder.load(so_far)]
                builder.store(builder.call(reduce, given, fastmath=("reassoc",)), total)
        made = [builder.load(total) for total in totals]
        return context.make_tuple(builder, found, made)

    return found(columns, values, types.uintp, types.uintp, weights), emit


def _meaning(columns: Any, values: Any, begin: Any, end: Any, weights: Any) -> tuple[Any, ...]:
    row, taken = values[begin:end], columns[begin:end]
    return tuple(weights[0].dtype.type(row @ some[taken]) for some in weights)


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


@operation(
    lambda columns, values, begin, end, factor, out: np.add.at(
        out, columns[begin:end], factor * values[begin:end]
    )
)
def add_row(typing_context, columns, values, begin, end, factor, out):  # type: ignore[no-untyped-def]
    """out[columns[k]] += factor * values[k] for `begin` <= k < `end`; out decides the precision."""

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        begin, end, factor = arguments[2:5]
        given = zip(signature.args, arguments, strict=True)
        arrays = [_data(context, builder, *one) for n, one in enumerate(given) if n in (0, 1, 5)]
        number = context.get_value_type(out.dtype)
        factors = ir.Constant(ir.VectorType(number, 4), ir.Undefined)
        for lane in range(4):
            factors = builder.insert_element(factors, factor, LANE(lane))

        def add(columns, some):  # type: ignore[no-untyped-def]
            changes = builder.fmul(factors, some, flags=FUSED)
            # One after the other: a row may have a column twice
            for lane, column in enumerate(columns):
                place = builder.gep(arrays[2], [column])
                change = builder.extract_element(changes, LANE(lane))
                builder.store(builder.fadd(builder.load(place), change, flags=FUSED), place)

        with builder.if_then(builder.icmp_unsigned("<", begin, end), likely=True):
            _visit(builder, (*arrays[:2], begin, end), number, add)
        return context.get_dummy_value()

    return types.void(columns, values, types.uintp, types.uintp, out.dtype, out), emit


@operation(
    lambda columns, values, begin, end, slope, second, out: np.add.at(
        out.reshape(-1, 4),
        columns[begin:end],
        np.stack([slope + 0 * (x := values[begin:end]), 0 * x + second, second * x, 0 * x], 1)
        * x[:, None],
    )
)
def add_planes(typing_context, columns, values, begin, end, slope, second, out):  # type: ignore[no-untyped-def]
    """Adds (slope, second, second * x, 0) * x to the four numbers of the column of each value x."""

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        begin, end, slope, second = arguments[2:6]
        given = zip(signature.args, arguments, strict=True)
        arrays = [_data(context, builder, *one) for n, one in enumerate(given) if n in (0, 1, 6)]
        four = ir.VectorType(DOUBLE, 4)
        factors = ir.Constant(four, [0.0] * 4)
        for lane, factor in enumerate((slope, second)):
            factors = builder.insert_element(factors, factor, LANE(lane))
        with cgutils.for_range_slice(builder, begin, end, PLACE(1)) as (place, _):
            column = builder.zext(builder.load(builder.gep(arrays[0], [place])), PLACE)
            x = builder.fpext(builder.load(builder.gep(arrays[1], [place])), DOUBLE)
            third = builder.fmul(second, x)
            some = builder.insert_element(factors, third, LANE(2))
            each = ir.Constant(four, ir.Undefined)
            for lane in range(4):
                each = builder.insert_element(each, x, LANE(lane))
            numbers = builder.gep(arrays[2], [builder.shl(column, PLACE(2))])
            numbers = builder.bitcast(numbers, four.as_pointer())
            product = builder.fmul(some, each, flags=FUSED)
            total = builder.fadd(builder.load(numbers, align=8), product, flags=FUSED)
            builder.store(total, numbers, align=8)
        return context.get_dummy_value()

    double = types.float64
    return types.void(columns, values, types.uintp, types.uintp, double, double, out), emit
