"""The document's program for several GPUs an actor, over stand-ins: meson.build runs this where they are built, and says where."""

import os

from test_documents import example


def test_over_stand_ins():
    folder, plugins = os.environ["STAND_INS"], os.environ["PLUGINS"]
    assert example(
        "multigpu.py", LD_LIBRARY_PATH=folder, COL_NCCL_LIBRARY=f"{folder}/libnccl.so.2", COL_PLUGIN_PATH=plugins,
        CUDA_VISIBLE_DEVICES="0,1,2,3", FAKE_GPU_DEVICES="4",
    ) == [
        "GPUs: cuda:0 cuda:0 (2 each)",
        "allreduce: [6.0, 6.0] [6.0, 6.0]",
        "broadcast: [5.0, 5.0] [5.0, 5.0]",
        "reduce: [20.0, 5.0] [5.0, 5.0]",
        "allgather: " + " ".join(["[[0.0, 1.0, 10.0, 11.0], [0.0, 1.0, 10.0, 11.0]]"] * 2),
        "reducescatter: [0.0, 4.0] [8.0, 12.0]",
        "message: 5.0 6.0",
    ]  # fmt: skip
