"""Pictures of a cluster: as text (`ansi`), as pixels (`picture`), in a window (`window`), as files (`film`).

All of them draw a `Scene`, which `scene` reads from a simulator's state record and from nothing else.
"""
