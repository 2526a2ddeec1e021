"""Labs: run a slice of a plan with the very files that `render` wrote."""
