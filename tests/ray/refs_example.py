"""The program in docs/ray.md."""

import ray
import torch

import col.ray as collective

collective.register()  # before the class: its decorator asks Ray for the transport


@ray.remote
class Worker:
    def __init__(self, value):
        self.buffer = torch.full((10,), value)

    @ray.method(tensor_transport="COL")
    def get_buffer(self):
        return self.buffer


@ray.remote(enable_tensor_transport=True)  # only takes tensors: no method of it says so
class Reader:
    def largest(self, tensor):
        return tensor.max().item()


def main():
    A, B = Worker.remote(1.0), Worker.remote(2.0)
    collective.create_collective_group([A, B])
    collective.allreduce_refs([A.get_buffer.remote(), B.get_buffer.remote()])  # both buffers hold the sum
    copy_on_A = A.recv_ref(B.get_buffer.remote())  # a tensor on A with what B's holds
    print("sum:", ray.get(Reader.remote().largest.remote(copy_on_A)))
    collective.destroy_collective_group()


if __name__ == "__main__":
    main()
