"""Parsing and writing of svmlight text.

A number is w * 10^q with whole numbers w and q. If w <= 2^53 and |q| <= 22, w and 10^|q| are exact
doubles, and one division or multiplication rounds correctly (Clinger 1990). Other numbers need a
product of 128 bits (Lemire 2021, "Number Parsing at a Gigabyte per Second"). The caller parses the
few numbers that 128 bits leave undecided with a slower method.

Every text ends with a newline, so no loop has to check for the end. Every text also has `PADDING`
more bytes behind it, so eight bytes can be read at once anywhere. `at` is always an address, and
"where it ends" is 0 if there is no such thing. Functions take addresses because numba counts
references (atomically) whenever an array is passed on, which takes longer than parsing a number.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba.extending import intrinsic
from numba.types import Tuple, UniTuple, boolean, float32, float64, uint8, uint32, uint64, void

from hogwild.kernels.compile import always_inline, inline, kernel, seldom
from hogwild.kernels.primitives import U, readonly, trailing_zeros, writable

PADDING = 16
RUN, AHEAD = U(16), U(64)  # bytes that are copied at a time, and that are looked at
TAB, NEWLINE, RETURN, SPACE, COMMENT, PLUS, MINUS, POINT, COLON, COMMA = b"\t\n\r #+-.:,"
ZERO = ord("0")
SMALL_E = ord("e")
DIGITS = np.uint64(0x3030303030303030)
# A constant compiles faster than U(...)
NONE, ONE, NINE = U(0), U(1), U(9)
EXACT = U(1 << 53)

INDEX_DIGITS = 10  # 2^32 - 1 has ten
MANTISSA_DIGITS = 19  # as many as always fit into 64 bits
VALUE_DIGITS = 9  # enough for any float32
FEATURE_WIDTH = len(" 4294967295:-1.17549435e-38")
FLOAT32_LIMIT = 2.0**128 - 2.0**103  # what is below rounds to a finite float32

# With a mantissa from 1 to 2^64, all the results in this range are normal doubles.
LEAST_POWER, MOST_POWER = -300, 288


def _power_of_ten(power: int) -> tuple[int, int]:
    """A number of 128 bits and a binary exponent: their product is 10^power, rounded down."""
    over, under = 10 ** max(power, 0), 10 ** max(-power, 0)
    exponent = over.bit_length() - under.bit_length() - 128
    bits = (over << max(-exponent, 0)) // (under << max(exponent, 0))
    return (bits >> 1, exponent + 1) if bits >> 128 else (bits, exponent)


_TABLE = [_power_of_ten(power) for power in range(LEAST_POWER, MOST_POWER + 1)]
POWER_HIGH = np.array([bits >> 64 for bits, _ in _TABLE], np.uint64)
POWER_LOW = np.array([bits & (2**64 - 1) for bits, _ in _TABLE], np.uint64)
POWER_EXPONENT = np.array([exponent for _, exponent in _TABLE], np.int64)
NEGATIVE = 60  # places behind 10^k in the table is -10^k
TEN = np.array([sign * float(10**k) for sign in (1, -1) for k in range(NEGATIVE)])  # exact to 10^22
WHOLE_TEN = np.array([10**k for k in range(20)], np.uint64)

TEXT = readonly(uint8)
TEXTS = Tuple((TEXT, readonly(uint64), readonly(uint64)))  # and where in it each begins and ends


@intrinsic
def address_of(typing_context, array):
    """The address of an array's first element."""

    def emit(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.ptrtoint(data, ir.IntType(64))

    return uint64(array), emit


WORD = ir.IntType(64)


def _pointer(builder: Any, address: Any, bits: int) -> Any:
    return builder.inttoptr(address, ir.IntType(bits).as_pointer())


def _loading(kind: Any, bits: int) -> Any:
    @intrinsic
    def load(typing_context, at):
        def emit(context, builder, signature, arguments):
            return builder.load(_pointer(builder, arguments[0], bits), align=1)

        return kind(uint64), emit

    return load


byte_at = _loading(uint8, 8)  # the byte at an address
quad_at = _loading(uint32, 32)  # four bytes from an address on, the first one lowest
word_at = _loading(uint64, 64)  # eight bytes from an address on, the first one lowest


def _storing(kind: Any, bits: int) -> Any:
    @intrinsic
    def store(typing_context, at, value):
        def emit(context, builder, signature, arguments):
            builder.store(arguments[1], _pointer(builder, arguments[0], bits), align=1)
            return context.get_dummy_value()

        return void(uint64, kind), emit

    return store


put_byte = _storing(uint8, 8)  # writes a byte to an address


@intrinsic
def wide_product(typing_context, a, b):
    """The product of two 64-bit numbers, its upper and its lower half."""

    def emit(context, builder, signature, arguments):
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(number, wide) for number in arguments))
        halves = [builder.lshr(product, wide(64)), product]
        halves = [builder.trunc(half, ir.IntType(64)) for half in halves]
        return context.make_tuple(builder, signature.return_type, halves)

    return UniTuple(uint64, 2)(uint64, uint64), emit


def _is_one_of(builder: Any, bytes_: Any, first: str, count: int) -> Any:
    """Which bytes are one of `count` characters that begin with the first."""
    kind = bytes_.type
    place = builder.sub(bytes_, kind([ord(first)] * kind.count))
    return builder.icmp_unsigned("<", place, kind([count] * kind.count))


def _bytes_from(builder: Any, address: Any, count: Any) -> Any:
    kind = ir.VectorType(ir.IntType(8), int(count))
    return builder.load(builder.inttoptr(address, kind.as_pointer()), align=1)


def _are_letters(builder: Any, text: Any) -> Any:
    small = builder.or_(text, text.type([ord(" ")] * text.type.count))
    return _is_one_of(builder, small, "a", 26)


@intrinsic
def word_bytes(typing_context, at):
    """Which of the AHEAD bytes from an address on are ASCII's letters, digits and underscores."""

    def emit(context, builder, signature, arguments):
        text = _bytes_from(builder, arguments[0], AHEAD)
        known = builder.or_(_are_letters(builder, text), _is_one_of(builder, text, "0", 10))
        known = builder.or_(known, _is_one_of(builder, text, "_", 1))
        return builder.bitcast(known, WORD)

    return uint64(uint64), emit


@intrinsic
def put_run(typing_context, at, out, folding):
    """Copies RUN bytes. Capital letters become small ones if `folding` is a blank's byte, not 0."""

    def emit(context, builder, signature, arguments):
        source, target, fold = arguments
        text = _bytes_from(builder, source, RUN)
        added = text.type(ir.Undefined)
        for k in range(int(RUN)):
            added = builder.insert_element(added, fold, ir.IntType(32)(k))
        none = text.type([0] * int(RUN))
        added = builder.select(_are_letters(builder, text), added, none)
        small = builder.or_(text, added)
        builder.store(small, builder.inttoptr(target, text.type.as_pointer()), align=1)
        return context.get_dummy_value()

    return void(uint64, uint64, uint8), emit


@always_inline
def digit_at(at):
    """The digit at an address; more than 9 if there is none."""
    return U(np.uint8(byte_at(at) - ZERO))


@always_inline
def digit_count(word):
    """How many digits a word (after `^ DIGITS`) begins with: 0 to 8."""
    others = (word + U(0x7676767676767676)) | word  # a digit is 0..9, all others are more
    return trailing_zeros(others & U(0x8080808080808080)) >> U(3)


@always_inline
def digits_value(word, count):
    """The whole number that the first `count` digits of a word (after `^ DIGITS`) make.

    No branch depends on the count: it varies, and a wrong guess costs the processor 15 cycles.
    """
    half = U(32) - (count << U(2))
    word = (word << half) << half  # zeros in front; two steps since a shift by 64 is undefined
    # combine neighbors: digits to pairs, pairs to fours, fours to the eight
    word = (word * U(10) + (word >> U(8))) & U(0x00FF00FF00FF00FF)
    word = (word * U(100) + (word >> U(16))) & U(0x0000FFFF0000FFFF)
    return (word * U(10000) + (word >> U(32))) & U(0x00000000FFFFFFFF)


@seldom
def nearest(w, q):
    """The double nearest to w * 10^q, or NaN if 128 bits of the product do not decide."""
    if w <= EXACT and -22 <= q <= 22:
        if q < 0:
            return np.float64(np.int64(w)) / TEN[U(-q)]
        return np.float64(np.int64(w)) * TEN[U(q)]
    if w == NONE:
        return 0.0
    if q < LEAST_POWER or q > MOST_POWER:
        return np.nan
    power = U(q - LEAST_POWER)
    exponent = POWER_EXPONENT[power]
    while w < U(1 << 63):
        w <<= ONE
        exponent -= 1
    high, middle = wide_product(w, POWER_HIGH[power])
    carried, _ = wide_product(w, POWER_LOW[power])
    middle += carried
    high += U(middle < carried)
    # The true product is at least (high, middle) and less than two units of middle above it.
    drop = U(10) + (high >> U(63))
    rest = high & ((ONE << drop) - ONE)
    half = ONE << (drop - ONE)
    just_below = rest == half - ONE and middle == U(0xFFFFFFFFFFFFFFFF)
    if just_below or (rest == half and middle == NONE):
        return np.nan
    significand = (high >> drop) + U(rest >= half)
    # A double's exponent is biased by 1023 and its top bit (52) is left out; adding carries over.
    biased = U(exponent + np.int64(drop) + 128 + 1023 + 52)
    return np.uint64((biased << U(52)) + significand - U(1 << 52)).view(np.float64)


@seldom
def any_number(at):
    """A number in any form, and where it ends. NaN if this module cannot decide which."""
    negative = byte_at(at) == MINUS
    at += U(negative or byte_at(at) == PLUS)
    begin = at
    w = NONE
    q = 0
    kept = 0
    points = 0
    rounded_down = False
    while True:
        digit = digit_at(at)
        if digit > NINE:
            if byte_at(at) != POINT or points > 0:
                break
            points = 1
        elif kept < MANTISSA_DIGITS:
            w = w * U(10) + digit
            kept += w > NONE
            q -= points
        else:
            rounded_down |= digit > NONE
            q += 1 - points
        at += ONE
    if at - begin == U(points):
        return 0.0, NONE
    if byte_at(at) | 32 == SMALL_E:
        behind = at + ONE
        shrinks = byte_at(behind) == MINUS
        behind += U(shrinks or byte_at(behind) == PLUS)
        power = 0
        while digit_at(behind) <= NINE:
            if power < 100000:
                power = power * 10 + np.int64(digit_at(behind))
            behind += ONE
            at = behind
        q += -power if shrinks else power
    value = nearest(w, q)
    if rounded_down and nearest(w + ONE, q) != value:
        value = np.nan
    return -value if negative else value, at


@always_inline
def append_digits(at, w):
    """Appends the digits that begin at `at` to w, which may overflow; where they end."""
    count = U(8)
    while count == U(8):
        word = word_at(at) ^ DIGITS
        count = digit_count(word)
        w = w * WHOLE_TEN[count] + digits_value(word, count)
        at += count
    return w, at


@always_inline
def number(begin):
    """As `any_number`, but quick for digits, perhaps a point and more digits: nearly all."""
    # Two copies: the address of the digits must not depend on a computed sign.
    if byte_at(begin) == MINUS:
        return plain_number(begin, begin + ONE, U(NEGATIVE))
    return plain_number(begin, begin, NONE)


@always_inline
def plain_number(begin, first, sign):
    """The number whose digits begin at `first`."""
    w = digit_at(first)
    if w > NINE:
        return any_number(begin)
    at = first + ONE
    if digit_at(at) <= NINE:  # rarely so, and then nearly always: better guessed than counted
        w, at = append_digits(at, w)
    places = NONE
    if byte_at(at) == POINT:
        fraction = at + ONE
        w, at = append_digits(fraction, w)
        places = at - fraction
    exponent = byte_at(at) | 32 == SMALL_E
    if exponent or at - first > U(MANTISSA_DIGITS) + U(places > NONE):
        return any_number(begin)
    if w > EXACT:
        value = nearest(w, -np.int64(places))
        return -value if sign > NONE else value, at
    return np.float64(np.int64(w)) / TEN[places + sign], at


@always_inline
def after_blanks(at):
    while byte_at(at) == SPACE or byte_at(at) == TAB:
        at += ONE
    return at


@always_inline
def after_line(at):
    """Where the next line begins, if only a comment or nothing is left of this one; else 0."""
    if byte_at(at) == RETURN:
        at += ONE
    elif byte_at(at) == COMMENT:
        while byte_at(at) != NEWLINE:
            at += ONE
    return at + ONE if byte_at(at) == NEWLINE else NONE


@always_inline
def labels_at(begin, several, y, place):
    """Labels with commas between them, from y[place] on: where they end, and how many there are.

    0 where they are none. With `several`, a line may have none.
    """
    at, count = begin, NONE
    while True:
        negative = byte_at(at) == MINUS
        first = at + U(negative or byte_at(at) == PLUS)
        label, behind = plain_number(at, first, U(NEGATIVE) * U(negative))
        if behind == NONE or not np.isfinite(label):
            return NONE, count
        if several and count == NONE and byte_at(behind) == COLON:
            return begin, count
        y[place + count] = label
        count += ONE
        if byte_at(behind) != COMMA:
            return behind if byte_at(behind) <= SPACE else NONE, count
        if not several:
            return NONE, count
        at = behind + ONE


# indptr, indices, values, label_ends, labels
PARSED = Tuple([writable(kind) for kind in (uint64, uint32, float32, uint64, float64)])


@kernel(
    UniTuple(uint64, 6)(
        TEXT, uint64, uint64, uint64, boolean, boolean, PARSED, UniTuple(uint64, 3)
    ),
    fast=False,
)
def parse_lines(text, begin, end, base, labelled, several, arrays, known):
    """Parses the lines text[begin:end], and stops before one that is wrong or too hard to read.

    Appends to arrays (indptr, indices, values, label_ends, labels) that have room enough. `known`
    says how many rows, non-zeros and labels they hold. Returns where it stopped, how many rows,
    non-zeros and labels there are now, how many lines it passed, and how many columns they need.
    """
    indptr, indices, values, label_ends, y = arrays
    row, kept, labels_kept = known
    start = address_of(text)
    line = start + begin
    found = lines = columns = NONE
    while line < start + end:
        at = after_blanks(line)
        behind = after_line(at)
        if behind != NONE:
            line = behind
            lines += ONE
            continue
        if labelled:
            behind, found = labels_at(at, several, y, labels_kept)
            if behind == NONE:
                break
            at = after_blanks(behind)
        k = kept
        lowest = base
        while digit_at(at) <= NINE:
            word = word_at(at) ^ DIGITS
            count = digit_count(word)
            index = digits_value(word, count)
            behind = at + count
            if count == U(8):
                index, behind = append_digits(behind, index)
                if behind - at > U(INDEX_DIGITS) or index >= U(1 << 32):
                    break
            if byte_at(behind) != COLON or index < lowest:
                break
            value, behind = number(behind + ONE)
            if behind == NONE or byte_at(behind) > SPACE or not abs(value) < FLOAT32_LIMIT:
                break
            indices[k] = index - base
            values[k] = value
            k += ONE
            lowest = index + ONE
            at = after_blanks(behind)
        behind = after_line(at)
        if behind == NONE:
            break
        line = behind
        lines += ONE
        row += ONE
        kept = k
        indptr[row] = kept
        labels_kept += found
        label_ends[row] = labels_kept
        columns = columns if columns > lowest - base else lowest - base
    return line - start, row, kept, labels_kept, lines, columns


@inline
def put_text(at, blob, begin, end):
    """Copies a text; where it ends."""
    for k in range(begin, end):
        put_byte(at, blob[k])
        at += U(1)
    return at


@inline
def shortest(x):
    """The fewest digits that are read as the float32 x > 0: whole numbers w and q of w * 10^q.

    Three powers of two get a digit more: their shortest neighbour is not their nearest.
    """
    leading = np.int64(np.floor(np.log10(np.float64(x))))
    w = 0.0
    q = leading
    for digits in range(VALUE_DIGITS):
        q = leading - digits
        # This is rounded, and w may be one off; what is read back decides.
        w = np.rint(np.float64(x) / TEN[U(q)] if q >= 0 else np.float64(x) * TEN[U(-q)])
        if np.float32(nearest(np.uint64(w), q)) == x:
            break
    whole = np.uint64(w)
    while whole % np.uint64(10) == np.uint64(0):
        whole //= np.uint64(10)
        q += 1
    return whole, q


@inline
def digits_of(whole):
    """How many digits a whole number has."""
    width = U(1)
    while width < U(WHOLE_TEN.size) and whole >= WHOLE_TEN[width]:
        width += U(1)
    return width


@inline
def put_whole(at, whole, width):
    """Writes a whole number with `width` digits; where they end."""
    for k in range(U(0), U(width)):
        put_byte(at + U(width) - U(1) - k, ZERO + whole % np.uint64(10))
        whole //= np.uint64(10)
    return at + U(width)


@inline
def put_value(at, value):
    """Writes a float32 as short as it can be read back; where it ends."""
    if np.signbit(value):
        put_byte(at, MINUS)
        at += ONE
    if value == np.float32(0):
        return put_whole(at, NONE, ONE)
    w, q = shortest(abs(value))
    width = digits_of(w)
    exponent = q + np.int64(width) - 1
    scientific = exponent < -4 or exponent >= 10
    if q >= 0 and not scientific:
        return put_whole(at, w * WHOLE_TEN[U(q)], width + U(q))
    # a point behind the first digit, or where it belongs
    places = width - ONE if scientific else U(-q)
    at = put_whole(at, w // WHOLE_TEN[places], max(width, places + ONE) - places)
    if places > NONE:
        put_byte(at, POINT)
        at = put_whole(at + ONE, w % WHOLE_TEN[places], places)
    if scientific:
        put_byte(at, SMALL_E)
        at += ONE
        if exponent < 0:
            put_byte(at, MINUS)
            at += ONE
        size = U(abs(exponent))
        at = put_whole(at, size, digits_of(size))
    return at


# indptr, indices, values
ROWS = Tuple((readonly(uint64), readonly(uint32), readonly(float32)))


@kernel(UniTuple(uint64, 2)(writable(uint8), ROWS, uint64, uint64, uint64, TEXTS), fast=False)
def format_lines(out, rows, begin, end, base, labels):
    """Writes the rows begin:end as lines, and stops before one whose columns do not ascend.

    `labels` are the texts of the labels one after the other, where each of them begins and ends,
    and the number of each row's label (nothing: no labels). Returns the length of what was written
    and the row where it stopped.
    """
    indptr, indices, values = rows
    texts, label_ends, label_of = labels
    start = address_of(out)
    at = start
    for row in range(U(begin), U(end)):
        line = at
        if label_of.size > 0:
            which = label_of[row - U(begin)]
            at = put_text(at, texts, label_ends[which], label_ends[which + U(1)])
        lowest = np.uint64(0)
        for k in range(indptr[row], indptr[row + U(1)]):
            if indices[k] < lowest:
                return line - start, row
            lowest = np.uint64(indices[k]) + np.uint64(1)
            if at > line or label_of.size > 0:
                put_byte(at, SPACE)
                at += U(1)
            index = np.uint64(indices[k]) + base
            at = put_whole(at, index, digits_of(index))
            put_byte(at, COLON)
            at = put_value(at + U(1), values[k])
        put_byte(at, NEWLINE)
        at += U(1)
    return at - start, U(end)
