"""Engine `uml`: the native engine inside one User Mode Linux process, for hosts whose kernel lacks what it needs."""
