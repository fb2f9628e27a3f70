"""A cluster whose jobs share links, as pixels: network and loads, one link's circles and use, queue and jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from ....simulator.base.codes import DOWN
from ....simulator.cluster.links import LinkGraph
from ....simulator.engine.simulator import Simulator
from ..drawing import palette
from ..drawing.palette import Colour, job_colour
from ..drawing.pen import Pen
from ..drawing.picture_words import span
from ..scenes.link_scene import NetworkScene, read_network
from ..scenes.scene import Scene, read_scene
from ..scenes.seen import Seen, draw_run
from .circles import draw_circles, draw_use
from .floor import Box
from .panels import draw_queue, draw_running, draw_tiers, draw_totals

IDLE, FULL, OVER = palette.TRACK, palette.TIER_COLOURS[0], palette.TIER_COLOURS[3]
HALF = palette.TIER_COLOURS[2]
SHARED_WIDTH, OWN_WIDTH = 2.4, 1.0  # units
PALE = 0.5  # share of white in past panels


class Boxes:
    """Places of the parts of a picture; `u` as `unit` of a pen."""

    def __init__(self, size: tuple[int, int], u: Callable[[float], int]) -> None:
        margin, head, foot, gap = u(14), u(74), u(34), u(10)
        right, bottom = size[0] - margin, size[1] - foot
        middle = margin + round((right - margin) * 0.6)
        split = head + round((bottom - head) * 0.55)
        half = margin + (middle - margin - gap) // 2
        self.network = (margin, head, middle, split)
        self.queue = (margin, split + gap, half, bottom)
        self.running = (half + gap, split + gap, middle, bottom)
        self.circles = (middle + gap, head, right, head + round((bottom - head) * 0.48))
        self.use = (middle + gap, self.circles[3] + gap, right, bottom)
        self.foot = bottom


def draw_network(simulator: Simulator, size: tuple[int, int], seen: Seen | None = None) -> np.ndarray:
    """The picture of jobs on shared links; see `picture.draw_rgb`. While they share none, the last circles are pale."""
    scene, network, links = read_scene(simulator), read_network(simulator), simulator.topology.links
    assert links is not None
    pen = Pen.page(size)
    boxes = Boxes(size, pen.unit)
    pen.panels(boxes.network, boxes.queue, boxes.running, boxes.circles, boxes.use)
    draw_totals(pen, boxes.network[0], size[0], scene)
    words = f"{scene.name} · {scene.gpus:,} GPUs · {links.num_links:,} links · {network.contending} jobs meet on links"
    pen.text((boxes.network[0] + 2, pen.unit(44)), words, 10, palette.FAINT, within=round(size[0] * 0.37))
    draw_run(pen, scene.jct_s, seen, round(size[0] * 0.36))
    _draw_graph(pen, boxes.network, links, scene, network)
    draw_queue(pen, boxes.queue, scene)
    draw_running(pen, boxes.running, scene)
    _draw_crossing(pen, boxes, network, scene, seen)
    _draw_legend(pen, boxes)
    return pen.pixels()


def _draw_crossing(pen: Pen, boxes: Boxes, network: NetworkScene, scene: Scene, seen: Seen | None) -> None:
    """The two panels of the worst link, or, pale, of the last one that jobs shared."""
    seen = seen if seen is not None else Seen()
    is_now = network.crossing is not None
    if is_now:
        seen.crossing, seen.at_s = network.crossing, scene.now_s
        seen.labels = {job.job: job.label for job in scene.running}
    when = "" if is_now or seen.crossing is None else f", {span(scene.now_s - seen.at_s)} ago"
    draw_circles(pen, boxes.circles, seen.crossing, seen.labels, when)
    draw_use(pen, boxes.use, seen.crossing, when)
    if when:
        for box in (boxes.circles, boxes.use):
            pen.fade((box[0] + 2, box[1] + pen.unit(26), box[2] - 2, box[3] - pen.unit(4)), PALE)


def load_colour(load: float) -> Colour:
    """Grey for no load; green, amber and red for loads of 0, 1/2 and 1 or more."""
    if load <= 0.0:
        return IDLE
    if load < 0.5:
        return palette.mix(FULL, HALF, 2.0 * load)
    return palette.mix(HALF, OVER, min(1.0, 2.0 * load - 1.0))


def _draw_graph(pen: Pen, box: Box, links: LinkGraph, scene: Scene, network: NetworkScene) -> None:
    u = pen.unit
    pen.title(box, "Network")
    place = _places(links)
    left, top = box[0] + u(16), box[1] + u(40)
    width, height = box[2] - box[0] - u(32), box[3] - box[1] - u(66)
    at = [(left + round(x * width), top + round(y * height)) for x, y in place]
    order = np.lexsort((network.load, network.sharers > 1))
    for link in order.tolist():
        start, end = at[int(links.source[link])], at[int(links.target[link])]
        shared = network.sharers[link] > 1
        shift = u(1.5) if start[1] > end[1] or (start[1] == end[1] and start[0] > end[0]) else -u(1.5)
        shifted = [(x + shift, y) for x, y in (start, end)]
        pen.line(shifted[0], shifted[1], load_colour(float(network.load[link])), SHARED_WIDTH if shared else OWN_WIDTH)
    nics = set(links.nic_node.reshape(-1).tolist())
    side = u(4)
    for node, (x, y) in enumerate(at):
        if node not in nics:
            pen.card((x - 2 * side, y - side, x + 2 * side, y + side), palette.INK, None, 2)
    _draw_machines(pen, [at[node] for node in links.machine_node.tolist()], scene, width)


def _draw_machines(pen: Pen, at: Sequence[tuple[int, int]], scene: Scene, width: int) -> None:
    u = pen.unit
    labels = {job.job: job.label for job in scene.running}
    half = max(1, min(u(12), round(width / max(1, len(at) - 1) * 0.42))) if len(at) > 1 else u(12)
    machines = [machine for rack in scene.racks() for machine in rack.machines]
    for (x, y), machine in zip(at, machines, strict=True):
        box = (x - half, y - u(2), x + half, y - u(2) + max(u(6), min(u(20), 2 * half)))
        owners = scene.owner[machine.gpus.start : machine.gpus.stop].tolist()
        bounds = [box[0] + (box[2] - box[0]) * i // len(owners) for i in range(len(owners) + 1)]
        for i, owner in enumerate(owners):
            fill = palette.GPU_DOWN if owner == DOWN else palette.GPU_FREE if owner < 0 else job_colour(owner)
            stripe = (bounds[i], box[1], bounds[i + 1], box[3])
            pen.box(stripe, fill)
            if owner >= 0 and stripe[2] - stripe[0] >= u(12):
                size = pen.fitting_size(labels[owner], 10, stripe[2] - stripe[0] - 2)
                middle = ((stripe[0] + stripe[2]) // 2, (stripe[1] + stripe[3]) // 2)
                pen.text(middle, labels[owner], size, palette.ink_on(fill), anchor="mm")


@lru_cache(maxsize=4)
def _places(links: LinkGraph) -> tuple[tuple[float, float], ...]:
    """The place of each node, 0 to 1 from left and top: machines in order at the bottom, switches by hops from them.

    A switch stands over the middle of its nodes on the level below; equal middles are moved apart.
    """
    hops = links.hops.astype(np.int64)
    level = np.where(hops >= 0, hops, np.iinfo(np.int64).max).min(axis=1)
    level[links.nic_node] = 0
    x = np.zeros(links.num_nodes)
    x[links.nic_node] = ((np.arange(links.num_machines) + 0.5) / links.num_machines)[:, None]
    for height in range(1, int(level.max()) + 1):
        nodes = np.flatnonzero(level == height)
        below = [links.target[(links.source == node) & (level[links.target] == height - 1)] for node in nodes]
        middle = np.array([x[under].mean() if len(under) else 0.5 for under in below])
        order = np.argsort(middle, kind="stable")
        even = (np.arange(len(nodes)) + 0.5) / len(nodes)
        crowded = len(nodes) > 1 and float(np.diff(middle[order]).min()) < 0.5 / len(nodes)
        x[nodes[order]] = even if crowded else middle[order]
    y = 1.0 - level / max(1, int(level.max()))
    return tuple(zip(x.tolist(), y.tolist(), strict=True))


def _draw_legend(pen: Pen, boxes: Boxes) -> None:
    u = pen.unit
    y, x = boxes.foot + u(16), boxes.network[0]
    x = pen.text((x, y), "mean load of a link", 10, palette.FAINT, anchor="lm") + u(8)
    x = pen.text((x, y), "0", 10, palette.FAINT, anchor="lm") + u(4)
    pen.shades((x, y - u(3), x + u(96), y + u(3)), 24, lambda load: load_colour(0.001 + load))
    x = pen.text((x + u(96) + u(4), y), "1 and more", 10, palette.FAINT, anchor="lm") + u(16)
    pen.line((x, y), (x + u(22), y), FULL, SHARED_WIDTH)
    x = pen.text((x + u(27), y), "several jobs", 10, palette.FAINT, anchor="lm") + u(12)
    pen.line((x, y), (x + u(22), y), FULL, OWN_WIDTH)
    x = pen.text((x + u(27), y), "one", 10, palette.FAINT, anchor="lm") + u(24)
    draw_tiers(pen, (x, y), "a job's band: within one")
