"""From Python functions to code that is kept on disk: numba, with our own linking where its version allows it."""
