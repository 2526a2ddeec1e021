"""What a person writes, typed, with the line of every value."""
