"""Job groups on parameter servers (paper harmony): jobs whose subtasks interleave on the machines of their group."""
