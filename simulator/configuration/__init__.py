"""What a simulated cluster is, as one value: its options, their words, and the network that they name."""
