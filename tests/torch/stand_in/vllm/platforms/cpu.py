class CpuPlatform:
    device_type = "cpu"
    dist_backend = "gloo"

    @classmethod
    def get_device_communicator_cls(cls):
        return "vllm.distributed.device_communicators.cpu_communicator.CpuCommunicator"


class OtherCpuPlatform(CpuPlatform):
    other = True


class Gpu:
    device_type = "cuda"
