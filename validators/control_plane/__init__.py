"""The control plane against the plan: BGP, BFD, EVPN, VNIs, router MACs, route targets and ECMP width."""
