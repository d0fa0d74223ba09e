"""The control plane in virtual time: every fault, every step checked, every run repeatable."""
