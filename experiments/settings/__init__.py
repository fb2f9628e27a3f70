"""What policies are played on: the words of a command line as one setting."""
