"""`clustergym tune`: the search for good parameters of policies and of training."""
