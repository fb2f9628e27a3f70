"""Numbers about models (deep networks), each with its source."""
