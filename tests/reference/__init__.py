"""A slow, plain model of the world that the fast engine is checked against."""
