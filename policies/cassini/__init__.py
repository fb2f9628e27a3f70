"""CASSINI (Rajasekaran, Ghobadi, Akella, NSDI'24); cassini_schedulers.py has the policies."""
