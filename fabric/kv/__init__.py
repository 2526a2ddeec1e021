"""KV cache sizes, move or recompute, and whether splitting prefill and decode pays: answers from data alone."""
