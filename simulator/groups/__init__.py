"""Groups of parameter-server jobs that share machines: their subtasks, their memory and their disks (paper harmony)."""
