"""One spelling for a model's name, whatever the trace writes."""

from __future__ import annotations

import re
from functools import lru_cache

_PARENTHESES = re.compile(r"\([^)]*\)")
_SEPARATORS = re.compile(r"[^a-z0-9]+")

# The same network under another name. BERT and VGG stand for what paper dally's job sets mean by them (its
# Table I and the authors' layer files); inception3/4 are the names of Tiresias' traces; imagenet and cifar10
# are the applications of the Pollux workloads, whose models are ResNet-50 and a ResNet-18 with a 10-class
# head.
_ALIASES = {
    "vgg": "vgg11",
    "bert": "bertlarge",
    "mobilenetv3small": "mobilenetv3",
    "inceptionv3": "inception3",
    "inceptionv4": "inception4",
    "imagenet": "resnet50",
}


@lru_cache(maxsize=4096)
def plain(model: str) -> str:
    """Lower case without separators or a parenthesised batch size: "ResNet-18 (batch size 32)" -> "resnet18"."""
    return _SEPARATORS.sub("", _PARENTHESES.sub("", model).lower())


@lru_cache(maxsize=4096)
def normalised(model: str) -> str:
    """As `plain`, aliases resolved: "mobilenet_v2" -> "mobilenetv2"; "BERT" -> "bertlarge"."""
    name = plain(model)
    return _ALIASES.get(name, name)
