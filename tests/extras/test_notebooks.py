"""What a run shows in a notebook, with a real kernel: `make test-extras`."""

import os
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent.parent

TRAIN = """
import sys
{before}
import hogwild
from hogwild.data.synthetic import rcv1
rows, _ = rcv1(2000, 1000)
result = hogwild.train(rows, solver="sgd", epochs=300, tol=0, verbose=1)
"""
HIDE_RICH = "sys.modules['rich'] = None"


def messages(code: str) -> list[tuple[str, Any]]:
    """The kinds and contents of what a kernel shows for a cell."""
    manager = pytest.importorskip("jupyter_client.manager")
    paths = [str(REPOSITORY), os.environ.get("PYTHONPATH", "")]
    kernel, client = manager.start_new_kernel(
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    )
    got: list[tuple[str, Any]] = []
    try:
        reply = client.execute_interactive(
            code, timeout=120, output_hook=lambda one: got.append((one["msg_type"], one["content"]))
        )
        assert reply["content"]["status"] == "ok", reply["content"]
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)
    return got


@pytest.mark.parametrize("before", ["", HIDE_RICH], ids=["rich", "plain"])
def test_progress_has_an_output_of_its_own_that_is_empty_at_the_end(before: str) -> None:
    pytest.importorskip("rich")
    got = messages(TRAIN.format(before=before))
    printed = "".join(content["text"] for kind, content in got if kind == "stream")
    assert "\r" not in printed
    assert "\x1b" not in printed
    assert "epoch 2 of at most" not in printed
    assert ": 2,000 rows, 1,000 columns" in printed

    shown = [content for kind, content in got if kind in ("display_data", "update_display_data")]
    kinds = [kind for kind, _ in got]
    assert kinds.count("display_data") == 1
    assert kinds.index("display_data") < kinds.index("stream")
    assert len({content["transient"]["display_id"] for content in shown}) == 1
    texts = [content["data"]["text/plain"] for content in shown]
    assert any("epoch" in text and " of at most 300" in text for text in texts)
    by_rich = [content for content in shown if "<pre" in content["data"].get("text/html", "")]
    assert len(by_rich) == (0 if before else len(shown) - 1)
    assert shown[-1]["data"] == {"text/plain": "", "text/html": ""}
