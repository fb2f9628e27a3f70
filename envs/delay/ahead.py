"""Asking for what a step of Delay-v0 will look at, while other rows are stepped: most of what a step takes is waiting.

A thousand rows do not fit the processor's caches. Lists of jobs are asked for two rows ahead, what depends on them one.
"""

from ...simulator.compiler.jit import kernel
from ...simulator.numerics.prefetch import LINE, prefetch, prefetch_lines
from .columns import CANDIDATES, CLUSTER
from .delay_window import HOLD_KIND, KNOWN, PER_WAITING
from .observation import CANDIDATE_COLUMNS, QUEUE_COLUMNS, RUNNING_COLUMNS

SCALARS = 28  # lines of a record that hold its numbers,
WINDOW_SCALARS = 8  # and of a window
WORDS = 8  # numbers in a line
FLOATS = 16
RAN = 8  # numbers that a window remembers of a running job


@kernel
def ask_ahead(states, windows, features, masks, chosen, i):
    """Ask for what a step of the rows after the i-th chosen one will look at."""
    if i + 2 < chosen.size:
        _ask_for_lists(states, windows, chosen[i + 2])
    if i + 1 < chosen.size:
        row = chosen[i + 1]
        _ask_for_jobs(states[row], windows[row])
        _ask_for_rows(states[row], windows[row], features, masks, row)


@kernel
def _ask_for_lists(states, windows, row):
    """Ask for the numbers of a record and of its window, and for the lists of jobs that the window shows."""
    prefetch_lines(states, row, SCALARS)
    prefetch_lines(windows, row, WINDOW_SCALARS)
    w = windows[row]
    for first in range(0, 16, WORDS):
        prefetch(w.waiting_job, first, 0)
        prefetch(w.running_job, first, 0)


@kernel
def _ask_for_jobs(s, w):
    """Ask for what stands in the record about the jobs that the window shows."""
    for slot in range(w.waiting_shown):
        job = w.waiting_job[slot]
        prefetch(s.waiting_since_s, job, 0)
        prefetch(s.arrival_s, job, 0)
        prefetch(s.gpus, job, 0)
        prefetch(s.starts, job, 0)
        prefetch(s.demand, job, 0)
        prefetch(s.job_at_rank, job, 0)
    for slot in range(w.running_shown):
        job = w.running_job[slot]
        prefetch(s.started_s, job, 0)
        prefetch(s.planned_finish_s, job, 0)
        prefetch(s.arrival_s, job, 0)
        prefetch(s.tier, job, 0)
        prefetch(s.first_gpu, job, 0)
        prefetch(s.end_position, job, 0)
        prefetch(w.ran, RAN * (job & (KNOWN - 1)), 0)
    prefetch(s.window_low, 0, 0)
    prefetch(s.running_low, 0, 0)
    prefetch(s.event_key, 0, 0)
    prefetch(s.event_item, 0, 0)
    prefetch(s.class_gpus, 0, 0)
    prefetch(s.class_count, 0, 0)
    prefetch(s.class_base, 0, 0)
    prefetch(s.machine_free, 0, 0)
    prefetch(s.machine_first_slot, 0, 0)
    prefetch(s.machine_rack, 0, 0)
    prefetch(s.slot_free, 0, 0)
    prefetch(s.slot_free, WORDS, 0)
    prefetch(s.rack_free, 0, 0)
    prefetch(s.free_low, 0, 0)
    for first in range(0, s.n_gpus, WORDS):
        prefetch(s.gpu_machine, first, 0)
        prefetch(s.gpu_next, first, 0)
    for line in range(2):
        prefetch(s.waits_known, 0, LINE * line)
        prefetch(s.waits_timer, 0, LINE * line)
        prefetch(s.runner, 0, LINE * line)
        prefetch(s.end_key, 0, LINE * line)
        prefetch(s.end_job, 0, LINE * line)
    prefetch(s.waits_count, 0, 0)
    prefetch(s.waits_first, 0, 0)


@kernel
def _ask_for_rows(s, w, features, masks, row):
    """Ask for what is written about the jobs: slots of the window, rows of the observation."""
    for first in range(0, w.slots, WORDS):
        prefetch(w.written_job, first, 0)
        prefetch(w.written_since_s, first, 0)
        prefetch(w.times, first, 0)
    for first in range(0, w.running_slots, WORDS):
        prefetch(w.written_runner, first, 0)
        prefetch(w.written_start_s, first, 0)
        prefetch(w.written_end_s, first, 0)
        prefetch(w.times, w.slots + 3 * first, 0)
    for slot in range(0, w.waiting_shown, 2):
        prefetch(w.slot_tier, 3 * slot, 0)
        prefetch(w.slot_left, 3 * slot, 0)
    for line in range(2):
        prefetch(w.class_tier, 0, LINE * line)
        prefetch(w.class_left, 0, LINE * line)
        prefetch(w.outlook, 0, LINE * line)
        prefetch(w.outlook_s, 0, LINE * line)
        prefetch(w.legal, 0, LINE * line)
        prefetch(masks, row * masks.shape[1], LINE * line)
    prefetch(w.class_probe, 0, 0)
    prefetch(w.outlook_probe, 0, 0)
    begin = row * features.shape[1]
    rows = len(CLUSTER) + w.slots * QUEUE_COLUMNS + w.running_slots * RUNNING_COLUMNS
    for first in range(0, rows, FLOATS):
        prefetch(features, begin + first, 0)
    hold = begin + rows + CANDIDATE_COLUMNS * (1 + HOLD_KIND) + CANDIDATES.free_after
    for slot in range(w.waiting_shown):
        prefetch(features, hold + slot * PER_WAITING * CANDIDATE_COLUMNS, 0)
