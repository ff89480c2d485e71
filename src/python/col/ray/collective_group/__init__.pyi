"""Made by theirs.py: modules whose names are Ray's, and the classes of groups col's."""

from . import base_collective_group as base_collective_group
from . import cuda_stream as cuda_stream
from . import nccl_collective_group as nccl_collective_group
from . import nccl_util as nccl_util
from . import torch_gloo_collective_group as torch_gloo_collective_group
