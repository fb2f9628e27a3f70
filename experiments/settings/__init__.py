"""The settings on which policies are played: the words of a command line as one setting."""
