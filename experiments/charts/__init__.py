"""Charts: described once, and drawn into the page, SVG, PDF and PNG.

matplotlib writes PDF and PNG; its SVG neither stretches with a page nor has a dark side.
"""
