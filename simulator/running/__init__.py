"""Jobs on their GPUs, compiled: which GPUs they hold, how fast they run, what is written down of them."""
