"""The commands of `clustergym`, one small module each; heavy libraries are imported when a command runs."""
