"""Models that are copied to several GPUs. Here there is one copy."""

from . import hooks


def install(torch):
    nn = torch.nn

    def wrapper(kind):
        class Parallel(nn.Module):
            def __init__(self, module, *args, **kwargs):
                super().__init__()
                self.module = module
                hooks.train["parallel"] = kind

            def forward(self, *args, **kwargs):
                return self.module(*args, **kwargs)

            def no_sync(self):
                from .cuda import _Anything

                return _Anything()

        return Parallel

    data, distributed = wrapper("dp"), wrapper("ddp")
    data.__name__, distributed.__name__ = "DataParallel", "DistributedDataParallel"
    nn.DataParallel = nn.parallel.DataParallel = data
    nn.parallel.DistributedDataParallel = distributed
    nn.parallel.data_parallel.DataParallel = data if hasattr(nn.parallel.data_parallel, "DataParallel") else data
    import sys

    module = sys.modules.get("torch.nn.parallel.distributed")
    if module is not None:
        module.DistributedDataParallel = distributed
