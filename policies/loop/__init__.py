"""The loop that plays compiled rules: the next instant, the pass of the rule, and what comes of the instant."""
