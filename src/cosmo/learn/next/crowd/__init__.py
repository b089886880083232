"""How the numbers of a crowd are fitted: worlds of all kinds, and evolution strategies."""
