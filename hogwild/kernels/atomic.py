"""What several workers may do to one word at once without losing anything."""

from typing import Any

from numba import types
from numba.extending import intrinsic

from hogwild.kernels.compile import kernel
from hogwild.kernels.primitives import U, writable


@intrinsic
def replace_if(typing_context, array, index, old, new):  # type: ignore[no-untyped-def]
    """Writes `new` to array[index] if `old` stands there; tells whether it did. One step."""

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        words, place, expected, replacement = arguments
        data = context.make_array(signature.args[0])(context, builder, words).data
        address = builder.gep(data, [place])
        found = builder.cmpxchg(address, expected, replacement, "acq_rel", "monotonic")
        return builder.extract_value(found, 1)

    return types.boolean(array, types.uintp, types.int64, types.int64), emit


@kernel(types.boolean(writable(types.int64)))
def claim(word: Any) -> Any:
    """Makes 1 of the word if it is 0. Of several that try at once, one succeeds."""
    return replace_if(word, U(0), 0, 1)
