"""CASSINI (Rajasekaran, Ghobadi, Akella, NSDI'24).

compatibility.py has the affinity graph and the compatibility score, cassini.py the choice among candidates and the
policy, cassini_schedulers.py what it augments, best_rotations.py what rotations can give at most; overlap.py and
rotation_search.py are compiled.
"""
