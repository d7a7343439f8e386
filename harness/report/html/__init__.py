"""The report as one HTML file that needs no network: a view model in Python, templates, one style, one script.

Drawing it imports neither torch nor NumPy. ``vendor`` holds uPlot (MIT), which draws the learning curves.
"""
