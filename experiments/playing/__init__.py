"""Playing policies on settings, here, in other processes or on other machines, and what is seen of their runs."""
