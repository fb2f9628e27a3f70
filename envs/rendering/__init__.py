"""Pictures of a cluster: as text (`ansi`), as pixels (`pictures`), in a window (`human_window`), as files (`film`)."""
