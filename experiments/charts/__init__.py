"""Charts: what each kind is made of, described once, and drawn into the page, SVG, PDF and PNG."""
