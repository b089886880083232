"""Pages that are served on this machine alone: the playground, and the map of live nodes."""
