"""Several jobs on one GPU: their berths, their memory, and how they slow each other down."""
