"""Where tables lie, what that costs (paper mast, Figure 4), and where they will lie."""
