"""Charts: what each kind is made of, described once, and drawn into the page, SVG, PDF and PNG.

They are ours because matplotlib, which writes PDF and PNG here, has no pictures that stretch with a page and have a
dark side.
"""
