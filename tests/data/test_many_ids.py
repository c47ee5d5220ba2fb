"""Ids by the million."""

from pathlib import Path

import numpy as np
import pytest

from hogwild.data.ids import UNKNOWN
from hogwild.data.ratings_files import load_ratings


@pytest.mark.slow
def test_ten_million_different_ids_of_text(tmp_path: Path) -> None:
    path, count, step = tmp_path / "many.csv", 10_000_000, 500_000
    with path.open("w") as file:
        for first in range(0, count, step):
            file.writelines(f"user-{k},i{k % 1000},{k % 10}\n" for k in range(first, first + step))
    ratings = load_ratings(path)
    path.unlink()
    assert ratings.shape == (count, 1000)
    assert (ratings.user_ids[0], ratings.user_ids[count - 1]) == ("user-0", f"user-{count - 1}")
    assert np.array_equal(ratings.users, np.arange(count))
    assert ratings.user_ids.codes_of(["user-1234567", "user-x"]).tolist() == [1_234_567, UNKNOWN]
