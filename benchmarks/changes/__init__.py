"""Changes of twenty small packages, and the share of harmful ones that CI's check finds."""
