"""Pictures of a cluster: as text (`ansi`), as pixels (`pictures`), in a window (`human_window`), as files (`film`).

All of them draw what `scenes` read from a simulator, its state record mostly, with what is in `drawing`.
"""
