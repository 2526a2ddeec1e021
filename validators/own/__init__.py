"""What a site expects of its devices beyond the plan, said in its own catalog."""
