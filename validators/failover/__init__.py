"""Failover and drain of gateways: what long flows and new connections meet while a gateway leaves and returns."""
