"""What kernels take: one signature, its types and no others."""

import pickle

import numpy as np
import pytest

from hogwild.kernels import averages, evaluate, exchange, order
from hogwild.kernels.averages import add_scaled
from hogwild.kernels.compile import Kernel
from hogwild.kernels.evaluate import squared_norm
from hogwild.kernels.order import shuffle
from hogwild.kernels.views import Clock, RowView, Shape, view
from hogwild.loops.shared import shared_loop
from hogwild.steps.sgd import sgd

KERNELS = [
    shared_loop(sgd("hinge", "inverse", False)),
    *(
        kernel
        for module in (averages, evaluate, exchange, order)
        for kernel in vars(module).values()
        if isinstance(kernel, Kernel)
    ),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_a_kernel_has_one_signature_and_other_types_are_refused(kernel):
    before = kernel.compiled.signatures
    assert len(before) == 1
    wide = np.ones(4)  # float64
    count = len(kernel.signature.args)
    for arguments in [(wide,) * count, (None,) * count, ((np.ones(4, np.float32),),) * count]:
        with pytest.raises(TypeError):
            kernel(*arguments)
    assert kernel.compiled.signatures == before


def test_so_it_is_where_no_folder_for_compiled_kernels_can_be_had(monkeypatch):
    monkeypatch.setattr("hogwild.kernels.compile.cache_folder", lambda: None)
    kernel = Kernel(squared_norm.function, squared_norm.signature, squared_norm.fast)
    assert kernel(np.ones(9, np.float32)) == 9
    with pytest.raises(TypeError):
        kernel(np.ones(9))


def test_arrays_of_another_type_order_or_without_leave_to_write_are_refused():
    with pytest.raises(TypeError):
        squared_norm(np.ones(8, np.float64))
    with pytest.raises(TypeError):
        squared_norm(np.ones(8, np.float32)[::2])
    frozen = np.ones(8, np.float32)
    frozen.flags.writeable = False
    assert squared_norm(frozen) == 8
    with pytest.raises(TypeError):
        add_scaled(frozen, 1.0, 1.0, 8, frozen)
    with pytest.raises(TypeError):
        shuffle(np.zeros(3, np.int64), 0, 1)


def test_a_view_has_numbers_of_the_right_type_and_inputs_that_cannot_be_written():
    ends = np.zeros(2, np.uint64), np.zeros(2, np.uint64)
    given = *ends, np.zeros(2, np.uint32), np.ones(2, np.float32)
    rows = view(RowView, *given, np.ones(2, np.float32))
    assert not any(field.flags.writeable for field in rows)
    assert all(field.flags.writeable for field in given)
    again = pickle.loads(pickle.dumps(rows))
    assert type(again) is RowView
    assert not any(field.flags.writeable for field in again)
    assert [type(field) for field in view(Clock, 3, 1)] == [float, float]
    assert {type(field) for field in view(Shape, 1, 0, 1)} == {np.uintp}
