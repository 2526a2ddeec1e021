"""The rules, one module a subject; a rule is there by being written here."""
