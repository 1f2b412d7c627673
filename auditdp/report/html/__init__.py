"""Reports as HTML: pages, cards, plots and drawings."""
