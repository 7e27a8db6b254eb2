"""One batch size as timm's benchmark.py measures it (`--bench train --amp --amp-dtype bfloat16 --channels-last`).

    python tests/benchmarks/timm_train.py BATCH_SIZE

Makes the same calls of timm's library in the same order, with the defaults of that script: ten steps of warm-up, forty
that are timed, each waited for, and cuDNN's search for the fastest kernels. The script itself is not part of timm's
package. Needs timm and a GPU. Source: huggingface/pytorch-image-models, benchmark.py, BenchmarkRunner and
TrainBenchmarkRunner.
"""

from __future__ import annotations

import json
import sys
import time

import torch
from timm.data import resolve_data_config
from timm.models import create_model
from timm.optim import create_optimizer_v2

WARM, TIMED = 10, 40

batch = int(sys.argv[1])
torch.backends.cudnn.benchmark = True
model = create_model("mobilenetv2_100", num_classes=16, in_chans=3)
model.to(device="cuda", memory_format=torch.channels_last)
shape = resolve_data_config({}, model=model)["input_size"]
model.train()
loss = torch.nn.CrossEntropyLoss().to("cuda")
optimizer = create_optimizer_v2(model, opt="sgd", lr=1e-4)
images = torch.randn((batch, *shape), device="cuda").contiguous(memory_format=torch.channels_last)


def step() -> float:
    optimizer.zero_grad()
    began = time.perf_counter()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        output = model(images)
        loss(output, torch.empty(batch, device="cuda", dtype=torch.long).random_(16)).backward()
    optimizer.step()
    torch.cuda.synchronize()
    return time.perf_counter() - began


for _ in range(WARM):
    step()
seconds = sum(step() for _ in range(TIMED))
print(json.dumps({"images_per_s": batch * TIMED / seconds, "seconds": seconds}))
