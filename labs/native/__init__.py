"""Engine `native`: every node is a set of namespaces (network, mount, host name) of one kernel with VRF devices.

Everything here runs inside the lab's machine (a VM, or a PID namespace of this host on the same Debian root) and uses
the standard library only, because that root has nothing else of ours.
"""
