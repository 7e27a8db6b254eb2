"""A plain training script, as one would write it to try one batch size: the shell loop's side of `sweep_time.py`.

    python tests/benchmarks/plain_train.py BATCH_SIZE [STEPS]

mobilenet_v2 at 224 px, bf16, channels-last, resident batch, ten steps of warm-up. Knows nothing of gpubench.
"""

import sys
import time

import torch
import torch.nn.functional as F
import torchvision

batch, steps = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 50
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
wait = torch.cuda.synchronize if device.type == "cuda" else (lambda: None)
model = torchvision.models.mobilenet_v2(num_classes=16).to(device, memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
images = torch.randn(batch, 3, 224, 224, device=device).contiguous(memory_format=torch.channels_last)
labels = torch.randint(16, (batch,), device=device)


def train(count: int) -> float:
    wait()
    began = time.perf_counter()
    for _ in range(count):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
    wait()
    return time.perf_counter() - began


train(10)
seconds = train(steps)
memory = torch.cuda.max_memory_reserved() / 2**20 if device.type == "cuda" else 0
print(f"batch {batch}: {batch * steps / seconds:.0f} images/s, {memory:.0f} MiB reserved")
