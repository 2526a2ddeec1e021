"""RoCE classes, PFC, ECN and headroom."""
