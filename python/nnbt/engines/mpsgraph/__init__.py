"""Engine `mpsgraph`: convolutions through Apple's MPSGraph, on GPU and Neural Engine."""

from nnbt.engines.mpsgraph import conv
from nnbt.spec.cell import Cell, Engine
from nnbt.spec.conv import ANE_DTYPES, GPU_DTYPES

ENGINE = Engine(
    "mpsgraph",
    "Apple's MPSGraph, on GPU and Neural Engine",
    tuple(
        Cell(
            "conv",
            (device,),
            conv.conv,
            dtypes=dtypes,
            refusal=conv.refusal,
            takes=("--save-package", "--load-package"),
        )
        for device, dtypes in (("gpu", GPU_DTYPES), ("ane", ANE_DTYPES))
    ),
)
