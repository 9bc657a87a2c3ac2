#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training step of PyTorch and timm, timed as `collar bench step` times ours.

    OMP_NUM_THREADS=2 python bench/peers/torch_step.py --freeze backbone --json torch.json

Needs torch and timm. channels_last is what PyTorch is fastest in on CPUs.
"""

import argparse
import json
import statistics
import time

import timm
import torch


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--model", default="resnet50d")
    parser.add_argument("--img-size", type=int, default=224)
    parser.add_argument("-b", "--batch-size", type=int, default=16)
    parser.add_argument("--num-classes", type=int, default=37)
    parser.add_argument("--freeze", choices=["none", "backbone"], default="none")
    parser.add_argument("--precision", choices=["f32", "bf16"], default="f32")
    parser.add_argument(
        "--layout", choices=["channels_last", "contiguous"], default="channels_last"
    )
    parser.add_argument("--steps", type=int, default=12, help="timed, after three that warm up")
    parser.add_argument("--json", help="also write the figures to this file")
    return parser.parse_args()


def make_step(options):
    torch.manual_seed(0)
    layout = torch.channels_last if options.layout == "channels_last" else torch.contiguous_format
    model = timm.create_model(options.model, num_classes=options.num_classes).train()
    if options.freeze == "backbone":
        model.requires_grad_(False)
        model.get_classifier().requires_grad_(True)
    model = model.to(memory_format=layout)
    optimizer = torch.optim.AdamW(p for p in model.parameters() if p.requires_grad)
    size = options.img_size
    images = torch.rand(options.batch_size, 3, size, size).contiguous(memory_format=layout)
    labels = torch.randint(0, options.num_classes, (options.batch_size,))

    def step():
        with torch.autocast("cpu", torch.bfloat16, enabled=options.precision == "bf16"):
            logits = model(images)
        torch.nn.functional.cross_entropy(logits.float(), labels).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def main():
    options = parse_arguments()
    step = make_step(options)
    for _ in range(3):
        step()
    seconds = []
    for _ in range(options.steps):
        begin = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - begin)

    report = vars(options) | {
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "step_seconds": statistics.median(seconds),
        "images_per_second": options.batch_size / statistics.median(seconds),
        "images_per_second_best": options.batch_size / min(seconds),
    }
    file = report.pop("json")
    print(
        f"torch {report['torch']}, {options.model}, freeze {options.freeze}, {options.precision}, "
        f"{options.layout}, {report['threads']} threads: {report['images_per_second']:.2f} img/s, "
        f"median of {options.steps} (best {report['images_per_second_best']:.2f})"
    )
    if file:
        with open(file, "w", encoding="utf-8") as out:
            json.dump(report, out, indent=2)


if __name__ == "__main__":
    main()
