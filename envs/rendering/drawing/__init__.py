"""What pictures are drawn with: a pen, colours, words."""
