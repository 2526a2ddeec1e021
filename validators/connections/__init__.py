"""Connection probes through NAT gateways: ladders, idle timeouts, NAT behaviour.

Everything an agent runs needs Python 3.10+, numpy and Linux raw sockets only; scapy stays on the control host.
"""
