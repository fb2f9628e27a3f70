"""The compiled half of job groups: subtasks, memory, moves, the clock."""
