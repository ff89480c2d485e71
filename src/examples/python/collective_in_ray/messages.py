"""One actor sends, another one receives: the messages of the document "Collective in Ray".

    python3 messages.py

A message has two ends. The document warns that one end alone waits for ever; here it waits as long as you say, and the error
names the rank that did not come.
"""

import ray
import torch

import col
import col.ray as collective

collective.register()  # for recv_ref, in the last step


@ray.remote
class Worker:
    def __init__(self, value):
        self.buffer = torch.full((10,), value)

    @ray.method(tensor_transport="COL")
    def get_buffer(self):
        return self.buffer

    def do_send(self, target_rank=0):
        collective.send(self.buffer, target_rank)
        return self.buffer[0].item()

    def do_recv(self, src_rank=0, timeout=None):
        collective.recv(self.buffer, src_rank, timeout=timeout)
        return self.buffer[0].item()

    def do_allreduce(self):
        collective.allreduce(self.buffer)
        return self.buffer[0].item()


@ray.remote(enable_tensor_transport=True)
class Reader:
    def first(self, tensor):
        return tensor[0].item()


def main():
    ray.init(include_dashboard=False)
    A, B = Worker.remote(1.0), Worker.remote(2.0)
    collective.declare_collective_group([A, B], options={"rank": [0, 1]})

    print("both ends:", *ray.get([A.do_send.remote(target_rank=1), B.do_recv.remote(src_rank=0)]))
    print("sum:", *ray.get([A.do_allreduce.remote(), B.do_allreduce.remote()]))
    received = A.recv_ref(B.get_buffer.remote())  # by the driver: it names both ends itself
    print("A has what B had:", ray.get(Reader.remote().first.remote(received)))
    try:
        ray.get(B.do_recv.remote(src_rank=0, timeout=0.5))
    except col.Timeout as error:
        print("one end alone:", str(error).splitlines()[-1])
    ray.shutdown()


if __name__ == "__main__":
    main()
