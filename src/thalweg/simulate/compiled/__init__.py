"""The loops of the simulator, compiled: no Python between two events."""
