"""kvfabric: the network of a prefill/decode inference cluster, from inventory to signed acceptance."""

__version__ = "0.1.0"
