"""The features that a record has room for: several jobs on a GPU, links, regions; asked before their kernels run."""

from ..compiler.jit import kernel, known


@known
def has_berths(s):
    """True if the record has room for several jobs on a GPU."""
    return s.gpu_job.size > s.gpu_slot.size


@kernel
def gpu_of(s, berth):
    """The GPU that a berth belongs to; where GPUs are not shared they are their own berths."""
    return berth % s.gpu_slot.size if has_berths(s) else berth


@known
def has_links(s):
    """True if the record has room for a network."""
    return s.link_capacity.size > 1


@known
def has_regions(s):
    """True if the record has room for regions."""
    return s.cluster_region.size > 1
