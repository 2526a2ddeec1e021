"""Numbers and addresses: given once, kept in the ledger."""
